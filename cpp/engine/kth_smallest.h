// The k-th smallest of some numbers, without branches on the data.
//
// std::nth_element mispredicts about every second comparison; on a few hundred numbers that made
// up half the cost of keeping the K nearest.
#pragma once

#include <algorithm>
#include <cstddef>

namespace bitweigh {

// Moves the values below a pivot, which is one of them, to the front; returns how many there are.
inline std::size_t partition_values(double* values, std::size_t n) {
    const double a = values[0];
    const double b = values[n / 2];
    const double c = values[n - 1];
    const double pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
    std::size_t end = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double value = values[i];
        values[i] = values[end];
        values[end] = value;
        end += value < pivot;
    }
    return end;
}

// 1 <= k <= n; no value is NaN. Reorders the values.
inline double kth_smallest(double* values, std::size_t n, std::size_t k) {
    while (n > 16) {
        const std::size_t below = partition_values(values, n);
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
