// A segment as the engine sees it: arrays that somebody else owns and nobody changes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/types.h"

namespace bitweigh {

struct Segment {
    const std::uint8_t* blocks;  // blocks_of(rows) blocks, as bits.h lays them out
    const Id* ids;               // by row
    std::size_t rows;            // < max_segment_rows

    std::size_t n_blocks() const { return blocks_of(rows); }

    // The rows of a block that exist; only the last block of a segment has fewer than 32.
    std::uint32_t rows_in(std::size_t block) const {
        const std::size_t left = rows - block * block_rows;
        return left >= block_rows ? ~std::uint32_t{0} : (std::uint32_t{1} << left) - 1;
    }
};

// The segments of a search, one after the other, as one line of blocks that can be cut anywhere.
class SegmentLine {
public:
    explicit SegmentLine(std::span<const Segment> segments) : segments_(segments) {
        for (const Segment& segment : segments) {
            starts_.push_back(n_blocks_);
            n_blocks_ += segment.n_blocks();
            rows_ += segment.rows;
        }
    }

    std::size_t n_blocks() const { return n_blocks_; }
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
