#include "engine/rows/id_lookup.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

namespace bitweigh {

namespace {

constexpr Row no_row = std::numeric_limits<Row>::max();
// What one step of sorting counts as towards the next look at Ctrl-C, in bytes.
constexpr std::size_t step_bytes = 64;

// The difference of two ids, which may come from a damaged file and be negative.
std::uint64_t beyond(Id least, Id id) {
    return static_cast<std::uint64_t>(id) - static_cast<std::uint64_t>(least);
}

// Ids without gaps: each names its place. False where two are equal, which leaves another place
// empty.
bool place_by_id(IdColumn ids, std::size_t rows, Id least, Row* by_id, Checkpoint& checkpoint) {
    std::fill(by_id, by_id + rows, no_row);
    for (std::size_t row = 0; row < rows; ++row) {
        by_id[beyond(least, ids[row])] = static_cast<Row>(row);
        checkpoint.done(step_bytes);
    }
    return std::find(by_id, by_id + rows, no_row) == by_id + rows;
}

// By digits, the lowest first; each pass keeps the order of the last for equal digits.
template <class Key>
void sort_by_digits(IdColumn ids, std::size_t rows, Id least, std::uint64_t range, Row* by_id,
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
        entries[row] = {static_cast<Key>(beyond(least, ids[row])), static_cast<Row>(row)};
        checkpoint.done(step_bytes);
    }
    for (unsigned shift = 0; shift < 64 && range >> shift != 0; shift += digit_bits) {
        const auto digit_of = [&](const Entry& entry) {
            return static_cast<std::size_t>(entry.key >> shift) & (n_digits - 1);
        };
        std::array<std::size_t, n_digits> starts{};
        for (const Entry& entry : entries) ++starts[digit_of(entry)];
        std::size_t start = 0;
        for (std::size_t& own : starts) own = std::exchange(start, start + own);
        for (const Entry& entry : entries) {
            sorted[starts[digit_of(entry)]++] = entry;
            checkpoint.done(step_bytes);
        }
        entries.swap(sorted);
    }
    for (std::size_t i = 0; i < rows; ++i) by_id[i] = entries[i].row;
}

}  // namespace

void sort_by_id(IdColumn ids, std::size_t rows, Row* by_id, Checkpoint& checkpoint) {
    if (rows == 0) return;
    Id least = ids[0];
    Id most = ids[0];
    for (std::size_t row = 1; row < rows; ++row) {
        least = std::min(least, ids[row]);
        most = std::max(most, ids[row]);
    }
    const std::uint64_t range = beyond(least, most);
    if (range == rows - 1 && place_by_id(ids, rows, least, by_id, checkpoint)) return;
    if (range <= std::numeric_limits<std::uint32_t>::max()) {
        sort_by_digits<std::uint32_t>(ids, rows, least, range, by_id, checkpoint);
    } else {
        sort_by_digits<std::uint64_t>(ids, rows, least, range, by_id, checkpoint);
    }
}

}  // namespace bitweigh
