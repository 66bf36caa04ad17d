#include "paper/bucket_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace bitweigh::paper {

BucketQueue::BucketQueue(const double* costs, const Substring& substring) {
    std::vector<std::pair<double, Key>> order(substring.bits);
    Bucket smallest{0.0, 0, -1};
    for (std::size_t j = 0; j < substring.bits; ++j) {
        const double* bit_costs = costs + 2 * (substring.first + j);
        // Eq. 4: the cheaper value, 0 where both cost the same.
        const bool cheap_value = bit_costs[1] < bit_costs[0];
        if (cheap_value) smallest.key |= Key{1} << j;
        smallest.cost += bit_costs[cheap_value ? 1 : 0];
        order[j] = {bit_costs[cheap_value ? 0 : 1] - bit_costs[cheap_value ? 1 : 0], Key{1} << j};
    }
    std::sort(order.begin(), order.end());
    for (const auto& [increase, bit] : order) {
        increases_.push_back(increase);
        bits_.push_back(bit);
    }
    queue_.push(smallest);
}

double BucketQueue::top_cost() const {
    return queue_.empty() ? std::numeric_limits<double>::infinity() : queue_.top().cost;
}

Bucket BucketQueue::pop() {
    const Bucket popped = queue_.top();
    queue_.pop();
    const auto next = static_cast<std::size_t>(popped.rightmost + 1);
    if (next < bits_.size()) {
        const int rightmost = popped.rightmost + 1;
        // Operation 1: also change the bit right next to the rightmost changed one.
        queue_.push({popped.cost + increases_[next], popped.key ^ bits_[next], rightmost});
        // Operation 2: move the rightmost changed bit one to the right. Not for the initial bucket.
        if (next > 0) {
            queue_.push({popped.cost + (increases_[next] - increases_[next - 1]),
                         popped.key ^ bits_[next - 1] ^ bits_[next], rightmost});
        }
    }
    return popped;
}

}  // namespace bitweigh::paper
