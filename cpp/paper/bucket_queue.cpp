#include "paper/bucket_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace bitweigh::paper {

BucketQueue::BucketQueue(const double* costs, const Substring& substring) {
    std::vector<std::pair<double, Key>> order(substring.bits);
    Bucket smallest{0.0, 0, -1};
    for (std::size_t j = 0; j < substring.bits; ++j) {
        const double* own = costs + 2 * (substring.first + j);
        // Eq. 4: the cheaper value, 0 where both cost the same.
        const bool one = own[1] < own[0];
        if (one) smallest.key |= Key{1} << j;
        smallest.cost += own[one ? 1 : 0];
        order[j] = {own[one ? 0 : 1] - own[one ? 1 : 0], Key{1} << j};
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
    const Bucket taken = queue_.top();
    queue_.pop();
    const auto next = static_cast<std::size_t>(taken.rightmost + 1);
    if (next < bits_.size()) {
        const int place = taken.rightmost + 1;
        // Operation 1: also change the bit right next to the rightmost changed one.
        queue_.push({taken.cost + increases_[next], taken.key ^ bits_[next], place});
        // Operation 2: move the rightmost changed bit one place on. Not for the initial bucket.
        if (next > 0) {
            queue_.push({taken.cost + (increases_[next] - increases_[next - 1]),
                         taken.key ^ bits_[next - 1] ^ bits_[next], place});
        }
    }
    return taken;
}

}  // namespace bitweigh::paper
