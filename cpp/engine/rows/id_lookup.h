// From ids to rows: the rows of a segment in ascending id, and the row of an id by them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/parallel.h"
#include "engine/rows/id_column.h"
#include "engine/types.h"

namespace bitweigh {

// `by_id` has the rows in ascending id; null where the rows are in that order themselves. Returns
// the row, or `rows` if there is no such id, also where `by_id` is damaged and names rows that do
// not exist.
inline std::size_t find_row(IdColumn ids, const Row* by_id, std::size_t rows, Id wanted) {
    const auto row_at = [&](std::size_t place) -> std::size_t {
        return by_id ? by_id[place] : place;
    };
    std::size_t begin = 0;
    std::size_t end = rows;
    const auto is_at = [&](std::uint64_t place) {
        return place < rows && row_at(place) < rows && ids[row_at(place)] == wanted;
    };
    // Ids without gaps, as an index gives them, are found at once; those from 0 without a look at
    // the first, which in a mapped file may be a page fault.
    const auto number = static_cast<std::uint64_t>(wanted);
    if (is_at(number)) return row_at(number);
    if (rows > 0 && row_at(0) < rows) {
        const std::uint64_t beyond_first = number - static_cast<std::uint64_t>(ids[row_at(0)]);
        if (is_at(beyond_first)) return row_at(beyond_first);
    }
    while (begin < end) {
        const std::size_t middle = begin + (end - begin) / 2;
        const std::size_t row = row_at(middle);
        if (row >= rows) return rows;
        const Id id = ids[row];
        if (id == wanted) return row;
        if (id < wanted) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return rows;
}

// Writes the rows in ascending id into `by_id` (rows); rows of equal id in ascending order. No id
// is negative.
void sort_by_id(IdColumn ids, std::size_t rows, Row* by_id, Checkpoint& checkpoint);

}  // namespace bitweigh
