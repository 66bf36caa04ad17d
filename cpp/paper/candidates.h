// Parts that the paper's methods share: the K-size max-heap, the set of rows seen, and the
// counters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

#include "engine/types.h"
#include "paper/checked_loops.h"

namespace bitweigh::paper {

// Counters of the work done for a query.
struct Counters {
    std::uint64_t buckets = 0;        // Buckets probed.
    std::uint64_t empty_buckets = 0;  // Buckets probed that had no rows.
    std::uint64_t candidates = 0;     // Rows seen for the first time, and so scored.
    std::uint64_t duplicates = 0;     // Rows seen again.
    std::uint64_t rounds = 0;         // Rounds over the tables.
};

struct Answer {
    std::vector<Neighbour> neighbours;  // Neighbours, nearest first; ids are row numbers.
    Counters counters;
};

inline void sort_by_distance(std::vector<Neighbour>& neighbours, Checkpoint& checkpoint) {
    sort_checked(neighbours.size(), checkpoint, nearer, [&](const auto& before) {
        std::sort(neighbours.begin(), neighbours.end(), before);
    });
}

// The paper's max_heap: at most K nodes, the root has the largest sum of weights.
class MaxHeap {
public:
    explicit MaxHeap(std::size_t k) : k_(k) {}

    bool full() const { return heap_.size() == k_; }
    // The heap must not be empty.
    double root() const { return heap_.top().distance; }

    // As printed, a row that equals the root does not replace it.
    void insert(double distance, Row row) {
        if (!full()) {
            heap_.push({distance, row});
        } else if (distance < root()) {
            heap_.pop();
            heap_.push({distance, row});
        }
    }

    // Returns the neighbours, nearest first; leaves the heap empty.
    std::vector<Neighbour> take_sorted(Checkpoint& checkpoint) {
        std::vector<Neighbour> sorted;
        for (; !heap_.empty(); heap_.pop()) {
            sorted.push_back(heap_.top());
            checkpoint.done(row_bytes);
        }
        sort_by_distance(sorted, checkpoint);
        return sorted;
    }

private:
    std::size_t k_;
    std::priority_queue<Neighbour, std::vector<Neighbour>, decltype(nearer)> heap_;
};

// The set of rows seen by the current query. Clearing takes time for the rows in it, not for all.
class SeenRows {
public:
    explicit SeenRows(std::size_t n) : seen_(n) {}

    // Returns true if the row was not in the set.
    bool insert(Row row) {
        if (seen_[row]) return false;
        seen_[row] = true;
        rows_.push_back(row);
        return true;
    }
    void clear() {
        for (Row row : rows_) seen_[row] = false;
        rows_.clear();
    }

private:
    std::vector<bool> seen_;  // Flags by row.
    std::vector<Row> rows_;   // Rows whose flag is set.
};

}  // namespace bitweigh::paper
