// Sorting a few hundred entries by distance, without a mispredicted branch for each comparison.
//
// Distances that are spread over their range fall almost one by one into twice as many bins, which
// leaves an insertion sort of nearly sorted entries. Otherwise std::sort is used.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace bitweigh {

// Sorts entries with finite `distance` by `before`, which must order by ascending distance first.
template <class Entry, class Before>
void bucket_sort_by_distance(std::vector<Entry>& entries, Before before) {
    // The insertion sort moves entries within their bin: std::sort is faster with fuller bins.
    constexpr std::uint32_t max_bin_entries = 16;
    constexpr std::size_t min_entries = 24;
    if (entries.size() < min_entries) {
        std::sort(entries.begin(), entries.end(), before);
        return;
    }
    double smallest = entries[0].distance;
    double largest = entries[0].distance;
    for (const Entry& entry : entries) {
        smallest = std::min(smallest, entry.distance);
        largest = std::max(largest, entry.distance);
    }
    if (!std::isfinite(largest - smallest)) {
        std::sort(entries.begin(), entries.end(), before);
        return;
    }
    const std::size_t n_bins = std::bit_ceil(2 * entries.size());
    // The cap keeps it finite where all distances are equal, or almost equal.
    const double bins_per_distance = std::min(
        static_cast<double>(n_bins - 1) / (largest - smallest), std::numeric_limits<double>::max());
    const auto bin_of = [&](const Entry& entry) {
        const double bin = (entry.distance - smallest) * bins_per_distance;
        return static_cast<std::size_t>(std::min(bin, static_cast<double>(n_bins - 1)));
    };
    std::vector<std::uint32_t> ends(n_bins);  // first the size of each bin, then its end
    std::uint32_t fullest = 0;
    for (const Entry& entry : entries) fullest = std::max(fullest, ++ends[bin_of(entry)]);
    if (fullest > max_bin_entries) {
        std::sort(entries.begin(), entries.end(), before);
        return;
    }
    std::uint32_t end = 0;
    for (std::uint32_t& bin_end : ends) bin_end = end += bin_end;
    std::vector<Entry> spread(entries.size());
    for (const Entry& entry : entries) spread[--ends[bin_of(entry)]] = entry;
    for (std::size_t i = 1; i < spread.size(); ++i) {
        const Entry entry = spread[i];
        std::size_t at = i;
        for (; at > 0 && before(entry, spread[at - 1]); --at) spread[at] = spread[at - 1];
        spread[at] = entry;
    }
    entries = std::move(spread);
}

}  // namespace bitweigh
