// What the paper's methods share: the K-size max-heap, the rows met before, and the counts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

#include "engine/types.h"
#include "paper/checked_loops.h"

namespace bitweigh::paper {

// What a query did.
struct Counters {
    std::uint64_t buckets = 0;        // probed
    std::uint64_t empty_buckets = 0;  // of those, without a row
    std::uint64_t candidates = 0;     // rows met for the first time, and so scored
    std::uint64_t duplicates = 0;     // rows met again
    std::uint64_t rounds = 0;
};

struct Answer {
    std::vector<Neighbour> neighbours;  // nearest first; ids are row numbers
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

    // Nearest first; leaves the heap empty.
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

// Rows met by the current query. Forgetting them costs as much as there were, not as there are
// rows.
class MetRows {
public:
    explicit MetRows(std::size_t n) : met_(n) {}

    // True the first time.
    bool meet(Row row) {
        if (met_[row]) return false;
        met_[row] = true;
        touched_.push_back(row);
        return true;
    }
    void forget() {
        for (Row row : touched_) met_[row] = false;
        touched_.clear();
    }

private:
    std::vector<bool> met_;
    std::vector<Row> touched_;
};

}  // namespace bitweigh::paper
