// The row of an id, in a segment whose rows are not in ascending id.
#pragma once

#include <cstddef>

#include "engine/id_column.h"
#include "engine/types.h"

namespace bitweigh {

// `by_id` has the rows in ascending id. Returns the row, or `rows` if there is no such id, also where
// `by_id` is damaged and names rows that do not exist.
inline std::size_t find_row(IdColumn ids, const Row* by_id, std::size_t rows, Id wanted) {
    std::size_t begin = 0;
    std::size_t end = rows;
    // Ids without gaps, as an index gives them, are found at once.
    if (rows > 0 && by_id[0] < rows && wanted >= ids[by_id[0]]) {
        const auto guess = static_cast<std::uint64_t>(wanted - ids[by_id[0]]);
        if (guess < rows && by_id[guess] < rows && ids[by_id[guess]] == wanted) return by_id[guess];
    }
    while (begin < end) {
        const std::size_t middle = begin + (end - begin) / 2;
        const Row row = by_id[middle];
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

}  // namespace bitweigh
