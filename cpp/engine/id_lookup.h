// From ids to rows: the rows of a segment in ascending id, and the row of an id by them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/id_column.h"
#include "engine/parallel.h"
#include "engine/types.h"

namespace bitweigh {

// `by_id` has the rows in ascending id; null where the rows are in that order themselves. Returns the
// row, or `rows` if there is no such id, also where `by_id` is damaged and names rows that do not exist.
inline std::size_t find_row(IdColumn ids, const Row* by_id, std::size_t rows, Id wanted) {
    const auto row_at = [&](std::size_t place) -> std::size_t { return by_id ? by_id[place] : place; };
    std::size_t begin = 0;
    std::size_t end = rows;
    // Ids without gaps, as an index gives them, are found at once.
    if (rows > 0 && row_at(0) < rows && wanted >= ids[row_at(0)]) {
        const std::uint64_t guess =
            static_cast<std::uint64_t>(wanted) - static_cast<std::uint64_t>(ids[row_at(0)]);
        if (guess < rows && row_at(guess) < rows && ids[row_at(guess)] == wanted) {
            return row_at(guess);
        }
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

// Writes the rows in ascending id into `by_id` (rows); rows of equal id in ascending order. No id is
// negative.
void sort_by_id(IdColumn ids, std::size_t rows, Row* by_id, Checkpoint& checkpoint);

}  // namespace bitweigh
