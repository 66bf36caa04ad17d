// A few rows of some segments, copied into blocks of their own: a search for them reads nothing
// else, however many rows the segments have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/parallel.h"
#include "engine/rows/segment.h"
#include "engine/types.h"

namespace bitweigh {

class GatheredRows {
public:
    // Copies these rows of the segments, in their order. No two of them have the same id.
    GatheredRows(std::span<const Segment> segments, std::span<const RowLocation> rows,
                 std::size_t n_bytes, Checkpoint& checkpoint);
    // The view points into the arrays.
    GatheredRows(const GatheredRows&) = delete;
    GatheredRows& operator=(const GatheredRows&) = delete;

    // The rows as a segment without bands and without a mask; valid while this lives.
    const Segment& view() const { return view_; }

    // The size of the copies.
    std::size_t bytes() const {
        return blocks_.size() + ids_.size() * sizeof(Id) + by_id_.size() * sizeof(Row);
    }

private:
    std::vector<std::uint8_t> blocks_;
    std::vector<Id> ids_;     // Ids by row.
    std::vector<Row> by_id_;  // Rows in ascending id; empty if they are in that order already.
    Segment view_{};
};

}  // namespace bitweigh
