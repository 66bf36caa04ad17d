// The K nearest neighbours met so far: a max-heap by (distance, id) whose root is the K-th.
//
// A bound may be given from outside: a distance that the K-th best of the whole search is known
// not to exceed. `worst` is the smaller of the two, so it only falls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/types.h"

namespace bitweigh {

class TopK {
public:
    // k >= 1.
    explicit TopK(std::size_t k) : k_(k) {}

    // No row farther than this can be among the K nearest; equal ones can, by their id.
    double worst() const { return worst_; }
    bool full() const { return heap_.size() == k_; }

    void lower_bound_to(double bound) { worst_ = std::min(worst_, bound); }

    // Keeps the neighbour if it is among the K nearest so far. True if `worst` fell.
    bool offer(const Neighbour& neighbour) {
        if (heap_.size() < k_) {
            heap_.push_back(neighbour);
            std::push_heap(heap_.begin(), heap_.end(), nearer);
            return full() && lower_to_root();
        }
        if (!nearer(neighbour, heap_.front())) return false;
        replace_root(neighbour);
        return lower_to_root();
    }

    // The neighbours in rising order; leaves this empty.
    std::vector<Neighbour> take_sorted() {
        std::sort_heap(heap_.begin(), heap_.end(), nearer);
        return std::exchange(heap_, {});
    }

private:
    bool lower_to_root() {
        if (heap_.front().distance >= worst_) return false;
        worst_ = heap_.front().distance;
        return true;
    }

    void replace_root(const Neighbour& neighbour) {
        std::size_t hole = 0;
        for (;;) {
            std::size_t child = 2 * hole + 1;
            if (child >= heap_.size()) break;
            if (child + 1 < heap_.size() && nearer(heap_[child], heap_[child + 1])) ++child;
            if (!nearer(neighbour, heap_[child])) break;
            heap_[hole] = heap_[child];
            hole = child;
        }
        heap_[hole] = neighbour;
    }

    std::size_t k_;
    double worst_ = padding_distance;
    std::vector<Neighbour> heap_;
};

}  // namespace bitweigh
