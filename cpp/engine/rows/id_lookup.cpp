#include "engine/rows/id_lookup.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

namespace bitweigh {

namespace {

constexpr Row no_row = std::numeric_limits<Row>::max();
// The bytes that one step of sorting counts as towards the next interrupt check.
constexpr std::size_t step_bytes = 64;

// The difference id - min_id; either may come from a damaged file and be negative.
std::uint64_t offset_of(Id min_id, Id id) {
    return static_cast<std::uint64_t>(id) - static_cast<std::uint64_t>(min_id);
}

// Sorts ids without gaps: each determines its position. Returns false if two are equal, which
// leaves another position empty.
bool place_by_id(IdColumn ids, std::size_t rows, Id min_id, Row* by_id, Checkpoint& checkpoint) {
    std::fill(by_id, by_id + rows, no_row);
    for (std::size_t row = 0; row < rows; ++row) {
        by_id[offset_of(min_id, ids[row])] = static_cast<Row>(row);
        checkpoint.done(step_bytes);
    }
    return std::find(by_id, by_id + rows, no_row) == by_id + rows;
}

// Radix sort, lowest digit first; each pass is stable.
template <class Key>
void sort_by_digits(IdColumn ids, std::size_t rows, Id min_id, std::uint64_t range, Row* by_id,
                    Checkpoint& checkpoint) {
    constexpr unsigned digit_bits = 11;
    constexpr std::size_t n_digits = std::size_t{1} << digit_bits;
    struct Entry {
        Key key;
        Row row;
    };
    std::vector<Entry> entries(rows);
    std::vector<Entry> sorted(rows);
    for (std::size_t row = 0; row < rows; ++row) {
        entries[row] = {static_cast<Key>(offset_of(min_id, ids[row])), static_cast<Row>(row)};
        checkpoint.done(step_bytes);
    }
    for (unsigned shift = 0; shift < 64 && range >> shift != 0; shift += digit_bits) {
        const auto digit_of = [&](const Entry& entry) {
            return static_cast<std::size_t>(entry.key >> shift) & (n_digits - 1);
        };
        std::array<std::size_t, n_digits> starts{};
        for (const Entry& entry : entries) ++starts[digit_of(entry)];
        std::size_t start = 0;
        for (std::size_t& count : starts) count = std::exchange(start, start + count);
        for (const Entry& entry : entries) {
            sorted[starts[digit_of(entry)]++] = entry;
            checkpoint.done(step_bytes);
        }
        entries.swap(sorted);
    }
    for (std::size_t i = 0; i < rows; ++i) by_id[i] = entries[i].row;
}

// Sorting so few ids one by one is faster than counting their digits.
constexpr std::size_t max_compared_ids = 512;

}  // namespace

std::vector<Id> sorted_distinct(std::span<const Id> ids, Checkpoint& checkpoint) {
    // A copy first: the caller's array may change at any time.
    std::vector<Id> sorted(ids.begin(), ids.end());
    const auto not_below = [](Id a, Id b) { return a >= b; };
    const bool ascending =
        std::adjacent_find(sorted.begin(), sorted.end(), not_below) == sorted.end();
    if (!ascending && (sorted.size() <= max_compared_ids || sorted.size() >= max_segment_rows)) {
        std::sort(sorted.begin(), sorted.end());
    } else if (!ascending) {
        std::vector<Row> order(sorted.size());
        sort_by_id(sorted.data(), sorted.size(), order.data(), checkpoint);
        std::vector<Id> unsorted(sorted.size());
        unsorted.swap(sorted);
        for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = unsorted[order[i]];
    }
    if (!ascending) sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    sorted.erase(sorted.begin(), std::lower_bound(sorted.begin(), sorted.end(), Id{0}));
    return sorted;
}

void sort_by_id(IdColumn ids, std::size_t rows, Row* by_id, Checkpoint& checkpoint) {
    if (rows == 0) return;
    Id min_id = ids[0];
    Id max_id = ids[0];
    for (std::size_t row = 1; row < rows; ++row) {
        min_id = std::min(min_id, ids[row]);
        max_id = std::max(max_id, ids[row]);
    }
    const std::uint64_t range = offset_of(min_id, max_id);
    if (range == rows - 1 && place_by_id(ids, rows, min_id, by_id, checkpoint)) return;
    if (range <= std::numeric_limits<std::uint32_t>::max()) {
        sort_by_digits<std::uint32_t>(ids, rows, min_id, range, by_id, checkpoint);
    } else {
        sort_by_digits<std::uint64_t>(ids, rows, min_id, range, by_id, checkpoint);
    }
}

}  // namespace bitweigh
