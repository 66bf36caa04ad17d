// Selects the k-th smallest number without branches on the data.
//
// std::nth_element mispredicts about every second comparison; on a few hundred numbers that made
// up half the cost of keeping the K nearest. It still finishes the selection: if a few rounds did
// not narrow the values down, its linear time bounds the total.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace bitweigh {

// Moves the values below the pivot to the front and returns their number.
inline std::size_t partition_values(double* values, std::size_t n, double pivot) {
    std::size_t end = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double value = values[i];
        values[i] = values[end];
        values[end] = value;
        end += value < pivot;
    }
    return end;
}

// Returns the k-th smallest of n values, 1 <= k <= n, none of them NaN. Reorders the values.
inline double kth_smallest(double* values, std::size_t n, std::size_t k) {
    // The pivot is the median of three values from scattered positions: values often rise, fall or
    // do both, and then the first, middle and last are extremes. The same positions in every call.
    std::uint64_t random = 0x9e3779b97f4a7c15u;
    const auto pick = [&] {
        random = random * 6364136223846793005u + 1442695040888963407u;
        return values[(random >> 33) % n];
    };
    for (int round = 0; n > 16 && round < 24; ++round) {
        const double a = pick();
        const double b = pick();
        const double c = pick();
        const double pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
        const std::size_t below = partition_values(values, n, pivot);
        if (below == 0) break;  // the pivot is the smallest: many equal values
        if (k <= below) {
            n = below;
        } else {
            values += below;
            n -= below;
            k -= below;
        }
    }
    std::nth_element(values, values + k - 1, values + n);
    return values[k - 1];
}

}  // namespace bitweigh
