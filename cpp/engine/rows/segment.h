// A segment as the engine sees it: arrays that somebody else owns and nobody changes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/rows/id_column.h"
#include "engine/rows/row_mask.h"
#include "engine/types.h"

namespace bitweigh {

// Rows in blocks, in some order. A position is a place in that order.
struct BlockRows {
    const std::uint8_t* blocks;  // blocks_of(rows) blocks, as bits.h lays them out
    IdColumn ids;                // by row
    std::size_t rows;            // < max_segment_rows
    const Row* row_numbers;      // by position; null where positions are rows
    RowMaskView mask = {};       // by row

    std::size_t n_blocks() const { return blocks_of(rows); }

    // The positions of a block that count: those that exist (only the last block has fewer than 32)
    // and, where that can be seen without looking at each, that are not denied.
    std::uint32_t rows_in(std::size_t block) const {
        const std::size_t left = rows - block * block_rows;
        const std::uint32_t existing =
            left >= block_rows ? ~std::uint32_t{0} : (std::uint32_t{1} << left) - 1;
        return row_numbers ? existing : existing & ~mask.denied_in(block);
    }

    // Which rows of a block have an id less than `end`: a bit for each. Only where positions are
    // rows.
    std::uint32_t ids_below(std::size_t block, Id end) const {
        const std::size_t first = block * block_rows;
        return ids.below(first, std::min(block_rows, rows - first), end);
    }

    // Where the id at a position is, one of rows_in; nowhere if that row is denied, or if its
    // number is damaged: it may come from a mapped file that nobody has verified.
    IdPlace id_at(std::size_t position) const {
        if (row_numbers == nullptr) return ids.place(position);
        const Row row = row_numbers[position];
        if (row >= rows || mask.denies(row)) return {};
        return ids.place(row);
    }
};

// The rows of a segment once more, in ascending key: bit j of a row's key is bit bits[j] of its
// code. The rows with key v are at positions [starts[v], starts[v + 1]).
struct Band {
    std::span<const std::uint16_t> bits;  // 1 to max_band_bits of them
    const std::uint32_t* starts;          // 2^bits.size() + 1
    BlockRows rows;
};
inline constexpr std::size_t max_band_bits = 24;

struct Segment : BlockRows {
    std::span<const Band> bands;  // empty: to be scanned
    const Row* by_id = nullptr;   // rows in ascending id; null where rows are in that order
    std::size_t denied_rows = 0;  // by the mask
    // Where few rows are allowed, the blocks that have any: the others need not be read. Null: all.
    std::span<const std::uint32_t> allowed_blocks = {};
};

// The segments of a search, one after the other, as one line of blocks that can be cut anywhere.
class SegmentLine {
public:
    explicit SegmentLine(std::span<const Segment> segments) : segments_(segments) {
        for (const Segment& segment : segments) {
            starts_.push_back(n_blocks_);
            n_blocks_ += segment.n_blocks();
            rows_ += segment.rows - segment.denied_rows;
        }
    }

    std::size_t n_blocks() const { return n_blocks_; }
    // Rows that a search may return.
    std::size_t rows() const { return rows_; }

    // Calls visit(segment, begin, end) for each segment that has blocks in [begin, end) of the
    // line, with the block numbers that they have in the segment.
    template <class Visit>
    void visit(std::size_t begin, std::size_t end, Visit visit) const {
        for (std::size_t s = 0; s < segments_.size(); ++s) {
            const std::size_t first = starts_[s];
            const std::size_t last = first + segments_[s].n_blocks();
            const std::size_t from = std::max(begin, first);
            const std::size_t to = std::min(end, last);
            if (from < to) visit(segments_[s], from - first, to - first);
        }
    }

private:
    std::span<const Segment> segments_;
    std::vector<std::size_t> starts_;
    std::size_t n_blocks_ = 0;
    std::size_t rows_ = 0;
};

}  // namespace bitweigh
