// Sorting and selecting in large arrays for a call with a deadline: each comparison is reported, so
// that the call can be stopped in the middle. Without a deadline nothing is reported, and nothing
// is slower.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/parallel.h"
#include "engine/query/bucket_sort.h"
#include "engine/query/kth_smallest.h"
#include "engine/types.h"

namespace bitweigh {

// Entries that are handled between two checks of the deadline: less than a millisecond, even if
// each is read from memory.
inline constexpr std::size_t stoppable_entries = std::size_t{1} << 13;
// Entries that are sorted between two checks: at most about 2 ms.
inline constexpr std::size_t max_sorted_at_once = std::size_t{1} << 15;
// A comparison, with what it moves, takes about as long as scanning this many bytes of codes.
inline constexpr std::size_t comparison_bytes = 64;

// Whether to report the work on this many entries in steps. `checkpoint` may be null.
inline bool in_steps(const Checkpoint* checkpoint, std::size_t n) {
    return checkpoint && checkpoint->has_deadline() && n > stoppable_entries;
}

// An order that reports each comparison. A sort that it ends leaves the entries in any order.
template <class Before>
class ReportingOrder {
public:
    ReportingOrder(Before before, Checkpoint& checkpoint)
        : before_(before), checkpoint_(&checkpoint) {}

    template <class Entry>
    bool operator()(const Entry& a, const Entry& b) const {
        checkpoint_->done(comparison_bytes);
        return before_(a, b);
    }

private:
    Before before_;
    Checkpoint* checkpoint_;
};

// Calls work(order) with `before`, or with an order that reports the comparisons of n entries.
template <class Before, class Work>
void with_order(Before before, Checkpoint* checkpoint, std::size_t n, const Work& work) {
    if (in_steps(checkpoint, n)) {
        work(ReportingOrder<Before>(before, *checkpoint));
    } else {
        work(before);
    }
}

// Calls visit(i) for each i from 0 to n - 1, and checks every stoppable_entries.
template <class Visit>
void visit_in_steps(std::size_t n, Checkpoint* checkpoint, const Visit& visit) {
    for (std::size_t i = 0; i < n;) {
        const std::size_t end = std::min(n, i + stoppable_entries);
        for (; i < end; ++i) visit(i);
        if (in_steps(checkpoint, n)) checkpoint->check();
    }
}

// Sorts entries by (distance, id).
inline void sort_by_distance(std::vector<Neighbour>& entries, Checkpoint* checkpoint) {
    if (in_steps(checkpoint, entries.size()) && entries.size() > max_sorted_at_once) {
        std::sort(entries.begin(), entries.end(), ReportingOrder(nearer, *checkpoint));
    } else {
        bucket_sort_by_distance(entries, nearer);
    }
}

// The same as kth_smallest of kth_smallest.h.
inline double kth_smallest(double* values, std::size_t n, std::size_t k, Checkpoint* checkpoint) {
    if (!in_steps(checkpoint, n)) return kth_smallest(values, n, k);
    const auto less = [](double a, double b) { return a < b; };
    std::nth_element(values, values + k - 1, values + n, ReportingOrder(less, *checkpoint));
    return values[k - 1];
}

}  // namespace bitweigh
