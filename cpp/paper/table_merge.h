// The paper's table merging algorithm, Alg. 2: rounds over the tables until the max-heap is final.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "paper/bucket_queue.h"
#include "paper/byte_tables.h"
#include "paper/candidates.h"
#include "paper/queue_order.h"
#include "paper/substring_table.h"

namespace bitweigh::paper {

// The state of the merge right after it probed a bucket, before it decides whether to stop.
struct Probe {
    std::size_t table;
    const Bucket& bucket;
    double s_hat;  // Value of Eq. 9 after this probe.
    const MaxHeap& max_heap;
};

struct Unwatched {
    void operator()(const Probe&) const {}
};

// The merge for one query. A Queue yields the buckets of a table in ascending cost: BucketQueue or
// SubCodeQueue. A Watch is called with every Probe, for tests.
template <class Queue, class Watch = Unwatched>
class TableMerge {
public:
    // 1 <= k <= codes.n; `seen` is empty before, and after a run that did not throw.
    TableMerge(const Codes& codes, const std::vector<SubstringTable>& tables, SeenRows& seen,
               const double* costs, std::size_t k, QueueOrder order, Checkpoint& checkpoint,
               Watch watch = {})
        : codes_(codes),
          tables_(tables),
          seen_(seen),
          distances_(costs, codes.n_bits, codes.order),
          order_(order),
          checkpoint_(checkpoint),
          max_heap_(k),
          code_(tables.size()),
          increase_(tables.size()),
          que_order_(tables.size()),
          watch_(std::move(watch)) {
        for (const SubstringTable& table : tables) {
            pri_que_.emplace_back(costs, table.substring());
        }
    }

    Answer run() {
        while (!satisfied_ && next_round()) probe_round();
        seen_.clear();
        return {max_heap_.take_sorted(checkpoint_), counters_};
    }

private:
    // Pops the top of every queue. Returns false if a queue is empty: all buckets of that table,
    // and so all rows, were seen. (As printed the loop would never end for K > n.)
    bool next_round() {
        s_hat_ = 0.0;
        for (std::size_t t = 0; t < tables_.size(); ++t) {
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
        count_round(++counters_.rounds, tables_.size(), checkpoint_);
        return true;
    }

    void probe_round() {
        for (std::size_t cur : que_order_) {
            insert(tables_[cur].bucket(code_[cur].key));
            s_hat_ += increase_[cur];  // Eq. 9: this queue now counts with its next top
            watch_(Probe{cur, code_[cur], s_hat_, max_heap_});
            if (max_heap_.full() && max_heap_.root() <= s_hat_) {
                satisfied_ = true;
                return;
            }
        }
    }

    void insert(std::span<const Row> bucket) {
        ++counters_.buckets;
        counters_.empty_buckets += bucket.empty();
        for_each_row(bucket, checkpoint_, [&](Row row) {
            if (!seen_.insert(row)) {
                ++counters_.duplicates;
                return;
            }
            ++counters_.candidates;
            max_heap_.insert(distances_.distance(codes_.row(row)), row);
        });
    }

    const Codes& codes_;
    const std::vector<SubstringTable>& tables_;
    SeenRows& seen_;
    ByteTables<double> distances_;
    QueueOrder order_;
    Checkpoint& checkpoint_;
    MaxHeap max_heap_;
    std::vector<Queue> pri_que_;
    std::vector<Bucket> code_;            // Bucket of each table in this round.
    std::vector<double> increase_;        // Increase of each table (Eq. 10).
    std::vector<std::size_t> que_order_;  // Tables in the order in which they are probed.
    double s_hat_ = 0.0;                  // Sum of Eq. 9.
    bool satisfied_ = false;              // Whether the max-heap is final.
    Counters counters_;
    [[no_unique_address]] Watch watch_;
};

}  // namespace bitweigh::paper
