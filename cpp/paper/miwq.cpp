#include "paper/miwq.h"

#include <algorithm>
#include <numeric>

#include "engine/scan/scan.h"
#include "paper/bucket_queue.h"
#include "paper/byte_tables.h"

namespace bitweigh::paper {

SingleIndex::SingleIndex(const Codes& codes)
    : codes_(codes), table_(codes, Substring{0, codes.n_bits}) {}

Answer SingleIndex::search(const double* costs, std::size_t k) const {
    Answer answer;
    // As printed it would look for K > n rows for ever: it ends when all rows are found.
    const std::size_t wanted = std::min(k, codes_.n);
    BucketQueue pri_que(costs, table_.substring());
    while (answer.neighbours.size() < wanted) {
        const Bucket code = pri_que.pop();
        const std::span<const Row> found = table_.bucket(code.key);
        ++answer.counters.buckets;
        answer.counters.empty_buckets += found.empty();
        answer.counters.candidates += found.size();
        // All rows of a bucket are equally far; the last bucket is cut to K.
        for (Row row : found) {
            if (answer.neighbours.size() < wanted) answer.neighbours.push_back({code.cost, row});
        }
    }
    // Buckets of equal cost come in no particular order.
    std::sort(answer.neighbours.begin(), answer.neighbours.end(), nearer);
    return answer;
}

// One query of Alg. 2.
class MultiIndex::Search {
public:
    Search(MultiIndex& index, const double* costs, std::size_t k, QueueOrder order)
        : index_(index),
          distances_(costs, index.codes_.n_bits, index.codes_.order),
          order_(order),
          max_heap_(k),
          code_(index.m()),
          increase_(index.m()),
          que_order_(index.m()) {
        for (const SubstringTable& table : index.tables_) {
            pri_que_.emplace_back(costs, table.substring());
        }
    }

    Answer run() {
        while (!satisfied_ && next_round()) probe_round();
        index_.met_.forget();
        return {max_heap_.take_sorted(), counters_};
    }

private:
    // Takes the top out of every queue. False if a queue has none left: that table's buckets, and
    // so all rows, were met. (As printed the loop would go on for ever where K > n.)
    bool next_round() {
        s_hat_ = 0.0;
        for (std::size_t t = 0; t < index_.m(); ++t) {
            if (pri_que_[t].empty()) return false;
            code_[t] = pri_que_[t].pop();
            // Eq. 10; +inf once the queue is empty.
            increase_[t] = pri_que_[t].top_cost() - code_[t].cost;
            s_hat_ += code_[t].cost;
        }
        std::iota(que_order_.begin(), que_order_.end(), std::size_t{0});
        std::stable_sort(que_order_.begin(), que_order_.end(), [&](std::size_t a, std::size_t b) {
            return order_ == QueueOrder::ascending ? increase_[a] < increase_[b]
                                                   : increase_[a] > increase_[b];
        });
        ++counters_.rounds;
        return true;
    }

    void probe_round() {
        for (std::size_t cur : que_order_) {
            insert(index_.tables_[cur].bucket(code_[cur].key));
            s_hat_ += increase_[cur];  // Eq. 9: this queue now counts with its next top
            if (max_heap_.full() && max_heap_.root() <= s_hat_) {
                satisfied_ = true;
                return;
            }
        }
    }

    void insert(std::span<const Row> bucket) {
        ++counters_.buckets;
        counters_.empty_buckets += bucket.empty();
        for (Row row : bucket) {
            if (!index_.met_.meet(row)) {
                ++counters_.duplicates;
                continue;
            }
            ++counters_.candidates;
            max_heap_.insert(distances_.distance(index_.codes_.row(row)), row);
        }
    }

    MultiIndex& index_;
    ByteTables<double> distances_;
    QueueOrder order_;
    MaxHeap max_heap_;
    std::vector<BucketQueue> pri_que_;
    std::vector<Bucket> code_;            // this round's bucket of each table
    std::vector<double> increase_;        // Eq. 10
    std::vector<std::size_t> que_order_;  // tables in the order they are probed
    double s_hat_ = 0.0;                  // Eq. 9
    bool satisfied_ = false;
    Counters counters_;
};

MultiIndex::MultiIndex(const Codes& codes, std::size_t m)
    : codes_(codes), tables_(split_tables(codes, m)), met_(codes.n) {}

Answer MultiIndex::search(const double* costs, std::size_t k, QueueOrder order) {
    clean_vector_state();
    const std::size_t wanted = std::min(k, codes_.n);
    if (wanted == 0) return {};
    const std::lock_guard lock(mutex_);
    return Search(*this, costs, wanted, order).run();
}

}  // namespace bitweigh::paper
