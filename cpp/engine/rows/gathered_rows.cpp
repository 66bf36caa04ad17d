#include "engine/rows/gathered_rows.h"

#include <algorithm>

#include "engine/rows/id_lookup.h"
#include "engine/tuning.h"

namespace bitweigh {

namespace {

// Copying a byte of a code takes about as long as scanning this many: it lies in another cache line
// than the next but one.
constexpr std::size_t copying_cost = 32;

// The first byte that is stored of a row.
const std::uint8_t* start_of(const Segment& segment, Row row, std::size_t n_bytes) {
    const std::size_t row_bytes = segment.bytes_of_row(n_bytes);
    return segment.blocks + row / block_rows * row_bytes * block_rows + row % block_rows;
}

}  // namespace

GatheredRows::GatheredRows(std::span<const Segment> segments, std::span<const RowLocation> rows,
                           std::size_t n_bytes, Checkpoint& checkpoint)
    : blocks_(blocks_of(rows.size()) * n_bytes * block_rows) {
    ids_.reserve(rows.size());
    const std::size_t prefetched = std::min(n_bytes * block_rows, max_prefetched_bytes);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i + gathering_prefetch < rows.size()) {
            const auto [segment, row] = rows[i + gathering_prefetch];
            const std::uint8_t* start = start_of(segments[segment], row, n_bytes);
            for (std::size_t at = 0; at < prefetched; at += 64) __builtin_prefetch(start + at);
        }
        const Segment& segment = segments[rows[i].segment];
        std::uint8_t* copy =
            blocks_.data() + i / block_rows * n_bytes * block_rows + i % block_rows;
        copy_code(segment, rows[i].row, n_bytes, copy, block_rows);
        ids_.push_back(segment.ids[rows[i].row]);
        checkpoint.done(n_bytes * copying_cost);
    }
    if (!std::is_sorted(ids_.begin(), ids_.end())) {
        by_id_.resize(ids_.size());
        sort_by_id(ids_.data(), ids_.size(), by_id_.data(), checkpoint);
    }
    view_.blocks = blocks_.data();
    view_.ids = IdColumn(ids_.data());
    view_.rows = ids_.size();
    view_.by_id = by_id_.empty() ? nullptr : by_id_.data();
}

}  // namespace bitweigh
