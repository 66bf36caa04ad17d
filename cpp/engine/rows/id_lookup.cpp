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

// The bytes that looking up an id counts as towards the next interrupt check.
constexpr std::size_t lookup_bytes = 4096;

// The ids of a segment in ascending order, by position. Rows of a damaged file may not exist; the
// last row then stands for them.
class AscendingIds {
public:
    AscendingIds(IdColumn ids, const Row* by_id, std::size_t rows)
        : ids_(ids), by_id_(by_id), rows_(rows) {}

    std::size_t row_at(std::size_t position) const {
        return by_id_ ? std::min<std::size_t>(by_id_[position], rows_ - 1) : position;
    }
    Id operator[](std::size_t position) const { return ids_[row_at(position)]; }
    Id of_row(std::size_t row) const { return ids_[row]; }
    // Whether the ids have no gaps, so that each determines its position.
    bool are_dense() const { return offset_of((*this)[0], (*this)[rows_ - 1]) == rows_ - 1; }

    // Prefetches what row_at reads, and, when that has arrived, the id.
    void prefetch_row(std::size_t position) const {
        if (by_id_) __builtin_prefetch(by_id_ + position);
    }
    void prefetch_id(std::size_t row) const {
        if (!ids_.is_counted()) ids_.place(row).prefetch();
    }

private:
    IdColumn ids_;
    const Row* by_id_;
    std::size_t rows_;
};

// Writes for each of n <= ids_at_once wanted ids, `stride` apart, the position in [begin, end) at
// which it is if it is there. Halves the same range for all of them, step by step. begin < end.
void find_positions(const AscendingIds& ids, std::size_t begin, std::size_t end, const Id* wanted,
                    std::size_t n, std::size_t stride, std::size_t* positions) {
    std::fill(positions, positions + n, begin);
    Row rows[ids_at_once];
    for (std::size_t left = end - begin; left > 1;) {
        const std::size_t half = left / 2;
        for (std::size_t i = 0; i < n; ++i) ids.prefetch_row(positions[i] + half);
        for (std::size_t i = 0; i < n; ++i) {
            rows[i] = static_cast<Row>(ids.row_at(positions[i] + half));
            ids.prefetch_id(rows[i]);
        }
        for (std::size_t i = 0; i < n; ++i) {
            positions[i] += ids.of_row(rows[i]) <= wanted[i * stride] ? half : 0;
        }
        left -= half;
    }
}

}  // namespace

FoundRows find_rows(IdColumn column, const Row* by_id, std::size_t rows,
                    std::span<const Id> wanted_ids, Checkpoint& checkpoint) {
    if (rows == 0) return {};
    const AscendingIds ids(column, by_id, rows);
    // Other segments may have most of the ids.
    const auto begin = std::lower_bound(wanted_ids.begin(), wanted_ids.end(), ids[0]);
    const auto end = std::upper_bound(begin, wanted_ids.end(), ids[rows - 1]);
    FoundRows found{static_cast<std::size_t>(begin - wanted_ids.begin()),
                    std::vector<Row>(static_cast<std::size_t>(end - begin))};
    const std::span<const Id> wanted = wanted_ids.subspan(found.first, found.rows.size());
    const std::size_t n_batches = (wanted.size() + ids_at_once - 1) / ids_at_once;
    // Where the first id of each batch is: the others are between it and that of the next batch.
    std::vector<std::size_t> bounds(n_batches + 1, rows - 1);
    const bool dense = ids.are_dense();
    for (std::size_t b = 0; !dense && b < n_batches; b += ids_at_once) {
        find_positions(ids, 0, rows, &wanted[b * ids_at_once], std::min(ids_at_once, n_batches - b),
                       ids_at_once, &bounds[b]);
    }
    std::size_t positions[ids_at_once];
    for (std::size_t b = 0; b < n_batches; ++b) {
        const std::size_t from = b * ids_at_once;
        const std::size_t n = std::min(ids_at_once, wanted.size() - from);
        if (dense) {
            for (std::size_t i = 0; i < n; ++i) {
                // Less than `rows`, whatever a damaged file has.
                positions[i] = std::min(rows - 1, offset_of(ids[0], wanted[from + i]));
            }
        } else {
            // In order, unless the file is damaged.
            const std::size_t lowest = std::min(bounds[b], bounds[b + 1]);
            find_positions(ids, lowest, bounds[b + 1] + 1, &wanted[from], n, 1, positions);
        }
        for (std::size_t i = 0; i < n; ++i) ids.prefetch_row(positions[i]);
        for (std::size_t i = 0; i < n; ++i) {
            positions[i] = ids.row_at(positions[i]);
            ids.prefetch_id(positions[i]);
        }
        for (std::size_t i = 0; i < n; ++i) {
            const bool is_right = ids.of_row(positions[i]) == wanted[from + i];
            found.rows[from + i] = static_cast<Row>(is_right ? positions[i] : rows);
        }
        checkpoint.done(n * lookup_bytes);
    }
    return found;
}

std::vector<Id> sorted_distinct(std::span<const Id> ids) {
    // A copy first: the caller's array may change at any time.
    std::vector<Id> sorted(ids.begin(), ids.end());
    if (!std::is_sorted(sorted.begin(), sorted.end())) std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
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
