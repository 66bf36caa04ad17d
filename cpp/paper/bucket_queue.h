// The paper's table bucket finding algorithm: the buckets of one table in ascending sum of weights.
//
// A priority queue holds buckets; its top is the un-probed one with the smallest sum (Theorem 1).
// Taking it out pushes the two that Operations 1 and 2 make of it, and those two operations make
// every bucket exactly once (Corollary 1).
#pragma once

#include <cstddef>
#include <queue>
#include <vector>

#include "paper/substring_table.h"

namespace bitweigh::paper {

struct Bucket {
    double cost;  // f(s) of Eq. 6: the costs of the substring's bits
    Key key;
    int rightmost;  // place, in the order of Eq. 5, of the rightmost changed bit; -1: none changed
};

class BucketQueue {
public:
    // The paper's Init(): `costs` is n_bits x 2, the substring lies in it.
    BucketQueue(const double* costs, const Substring& substring);

    bool empty() const { return queue_.empty(); }
    // Sum of weights of the next bucket, +inf when there is none left.
    double top_cost() const;
    // Takes the next bucket out; the queue must not be empty.
    Bucket pop();

private:
    struct Later {
        bool operator()(const Bucket& a, const Bucket& b) const { return a.cost > b.cost; }
    };

    // In ascending increase of weight (Eq. 5): that increase, and the bit of the key.
    std::vector<double> increases_;
    std::vector<Key> bits_;
    std::priority_queue<Bucket, std::vector<Bucket>, Later> queue_;
};

}  // namespace bitweigh::paper
