// Finds rows by id: sorts the rows of a segment by id, and looks an id up in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/parallel.h"
#include "engine/rows/id_column.h"
#include "engine/types.h"

namespace bitweigh {

// Returns the row with this id, or `rows` if there is none, also if `by_id` is damaged and names
// rows that do not exist. `by_id` has the rows in ascending id; null if rows are in that order
// already.
inline std::size_t find_row(IdColumn ids, const Row* by_id, std::size_t rows, Id wanted_id) {
    const auto row_at = [&](std::size_t position) -> std::size_t {
        return by_id ? by_id[position] : position;
    };
    std::size_t begin = 0;
    std::size_t end = rows;
    const auto is_at = [&](std::uint64_t position) {
        return position < rows && row_at(position) < rows && ids[row_at(position)] == wanted_id;
    };
    // Ids without gaps, as an index assigns them, are found at once; those that start from 0
    // without reading the first, which in a mapped file may be a page fault.
    const auto from_zero = static_cast<std::uint64_t>(wanted_id);
    if (is_at(from_zero)) return row_at(from_zero);
    if (rows > 0 && row_at(0) < rows) {
        const Id first = ids[row_at(0)];
        const std::uint64_t from_first = from_zero - static_cast<std::uint64_t>(first);
        if (is_at(from_first)) return row_at(from_first);
        // Other segments have most ids: those beyond this one's are not searched for.
        if (wanted_id < first) return rows;
        if (row_at(rows - 1) < rows && wanted_id > ids[row_at(rows - 1)]) return rows;
    }
    while (begin < end) {
        const std::size_t middle = begin + (end - begin) / 2;
        const std::size_t row = row_at(middle);
        if (row >= rows) return rows;
        const Id id = ids[row];
        if (id == wanted_id) return row;
        if (id < wanted_id) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return rows;
}

// The rows of ids that find_rows looked up, from wanted_ids[first] on; the others have none.
struct FoundRows {
    std::size_t first = 0;
    std::vector<Row> rows;  // Row of each id, or the number of rows if there is none.
};

// Looks up many ids, which must ascend, together, so that they wait for memory at the same time. No
// two rows have the same id; in a damaged file that breaks this, some may not be found.
FoundRows find_rows(IdColumn ids, const Row* by_id, std::size_t rows,
                    std::span<const Id> wanted_ids, Checkpoint& checkpoint);

// Returns the ids in ascending order, each once, without negative ones, which no row has.
std::vector<Id> sorted_distinct(std::span<const Id> ids);

// Writes the rows in ascending id into `by_id`, rows of equal id in ascending order. No id is
// negative.
void sort_by_id(IdColumn ids, std::size_t rows, Row* by_id, Checkpoint& checkpoint);

}  // namespace bitweigh
