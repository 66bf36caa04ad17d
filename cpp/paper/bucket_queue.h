// The paper's table bucket finding algorithm: the buckets of one table in ascending sum of weights.
//
// A priority queue holds buckets; its top is the un-probed bucket with the smallest sum (Theorem
// 1). Popping it pushes the two buckets that Operations 1 and 2 derive from it. Together the
// operations generate every bucket exactly once (Corollary 1).
#pragma once

#include <cstddef>
#include <queue>
#include <vector>

#include "paper/substring_table.h"

namespace bitweigh::paper {

struct Bucket {
    double cost;  // Sum of the costs of the substring's bits, f(s) of Eq. 6.
    Key key;
    int rightmost;  // Index, in the order of Eq. 5, of the rightmost changed bit; -1 if none is.
};

class BucketQueue {
public:
    // The paper's Init(). `costs` has shape (n_bits, 2) and includes the substring's bits.
    BucketQueue(const double* costs, const Substring& substring);

    bool empty() const { return queue_.empty(); }
    // The cost of the next bucket, +inf if there is none left.
    double top_cost() const;
    // Removes and returns the next bucket; the queue must not be empty.
    Bucket pop();

private:
    struct Later {
        bool operator()(const Bucket& a, const Bucket& b) const { return a.cost > b.cost; }
    };

    std::vector<double> increases_;  // Cost of changing each bit, in ascending order (Eq. 5).
    std::vector<Key> bits_;          // Mask of each bit in the key, in the same order.
    std::priority_queue<Bucket, std::vector<Bucket>, Later> queue_;
};

}  // namespace bitweigh::paper
