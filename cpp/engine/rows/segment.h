// A segment as the engine sees it: immutable arrays, owned elsewhere.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/pages.h"
#include "engine/rows/id_column.h"
#include "engine/rows/id_order.h"
#include "engine/rows/lean_codes.h"
#include "engine/rows/row_mask.h"
#include "engine/types.h"

namespace bitweigh {

// The rows of a segment in blocks, in any order. A position is an index in that order.
struct BlockRows {
    const std::uint8_t* blocks;      // Array of blocks_of(rows) blocks, in the layout of bits.h.
    IdColumn ids;                    // Ids by row.
    std::size_t rows;                // Number of rows, less than max_segment_rows.
    const Row* row_numbers;          // Rows by position; null if positions are rows.
    RowMaskView mask = {};           // Mask by row.
    const LeanRows* lean = nullptr;  // If not null, the blocks hold rests of codes.

    std::size_t n_blocks() const { return blocks_of(rows); }
    // The number of bytes that a row takes in the blocks, if codes have n_bytes.
    std::size_t bytes_of_row(std::size_t n_bytes) const {
        return lean ? lean->codes->n_bytes() : n_bytes;
    }

    // A mask of the positions of a block that count: those that exist (only the last block has
    // fewer than 32) and, if positions are rows, that are not denied.
    std::uint32_t rows_in(std::size_t block) const {
        const std::size_t rows_from = rows - block * block_rows;
        const std::uint32_t existing =
            rows_from >= block_rows ? ~std::uint32_t{0} : (std::uint32_t{1} << rows_from) - 1;
        return row_numbers ? existing : existing & ~mask.denied_in(block);
    }

    // A mask of the rows of a block that have an id less than `end`. Only if positions are rows.
    std::uint32_t ids_below(std::size_t block, Id end) const {
        const std::size_t first = block * block_rows;
        return ids.below(first, std::min(block_rows, rows - first), end);
    }

    // The place of the id at a position that is in rows_in; no place if its row is denied, or if
    // the row number is damaged: it may come from a mapped file that nobody has verified.
    IdPlace id_at(std::size_t position) const {
        if (row_numbers == nullptr) return ids.place(position);
        const Row row = row_numbers[position];
        if (row >= rows || mask.denies(row)) return {};
        return ids.place(row);
    }
};

// Calls visit(r, code) for each row r of a block of lean rows that the mask `wanted` has.
template <class Visit>
void visit_lean_codes(const BlockRows& rows, std::size_t block, std::uint32_t wanted, Visit visit) {
    if (wanted == 0) return;
    const LeanCodes& codes = *rows.lean->codes;
    const std::uint8_t* start = rows.blocks + block * codes.n_bytes() * block_rows;
    Key key = rows.lean->key_at(block * block_rows);
    for (; wanted != 0; wanted &= wanted - 1) {
        const auto r = static_cast<std::size_t>(std::countr_zero(wanted));
        key = rows.lean->next_key(key, block * block_rows + r);
        visit(r, codes.key_part(key) | codes.rest_part(start, r));
    }
}

// Copies the code of a row, n_bytes bytes, to bytes `stride` apart.
inline void copy_code(const BlockRows& rows, std::size_t row, std::size_t n_bytes,
                      std::uint8_t* code, std::size_t stride) {
    const std::size_t block = row / block_rows;
    const std::size_t r = row % block_rows;
    if (rows.lean) {
        visit_lean_codes(rows, block, std::uint32_t{1} << r, [&](std::size_t, CodeNumber number) {
            for (std::size_t p = 0; p < n_bytes; ++p, number >>= 8) {
                code[p * stride] = static_cast<std::uint8_t>(number);
            }
        });
        return;
    }
    const std::uint8_t* start = rows.blocks + block * n_bytes * block_rows + r;
    for (std::size_t p = 0; p < n_bytes; ++p) code[p * stride] = start[p * block_rows];
}

// Copies the codes of lean rows, n_bytes bytes each, one after the other. Rows that follow each
// other take no search for their keys.
inline void copy_lean_codes(const BlockRows& rows, std::span<const Row> wanted, std::size_t n_bytes,
                            std::uint8_t* code) {
    const LeanCodes& codes = *rows.lean->codes;
    Key key = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const Row row = wanted[i];
        const bool follows = i > 0 && row > wanted[i - 1] && row - wanted[i - 1] <= block_rows;
        key = follows ? rows.lean->next_key(key, row) : rows.lean->key_at(row);
        const std::uint8_t* block = rows.blocks + row / block_rows * codes.n_bytes() * block_rows;
        CodeNumber number = codes.key_part(key) | codes.rest_part(block, row % block_rows);
        for (std::size_t p = 0; p < n_bytes; ++p, number >>= 8) {
            *code++ = static_cast<std::uint8_t>(number);
        }
    }
}

// A second copy of a segment's rows, in ascending key: bit j of a row's key is bit bits[j] of its
// code. The rows with key v are at positions [starts[v], starts[v + 1]).
struct Band {
    std::span<const std::uint16_t> bits;  // Bits of the key, 1 to max_band_bits.
    const std::uint32_t* starts;          // Directory of 2^bits.size() + 1 positions.
    BlockRows rows;
};

struct Segment : BlockRows {
    std::span<const Band> bands;  // Bands; empty if the segment can only be scanned.
    const Row* by_id = nullptr;   // Rows in ascending id; null if rows are in that order already,
    const IdOrder* id_order = nullptr;  // or if this is not null, which has them on first use.
    std::size_t denied_rows = 0;        // Number of rows that the mask denies.
    MappedPages* mapped = nullptr;      // Null if the arrays are not mapped from files.

    // The rows in ascending id; null if rows are in that order already.
    const Row* rows_by_id(Checkpoint& checkpoint) const {
        return id_order ? id_order->rows(checkpoint) : by_id;
    }
};

// A row of one of several segments.
struct RowLocation {
    std::size_t segment;  // Index of the segment.
    Row row;
};

// The segments of a search, concatenated to a line of blocks that can be cut anywhere.
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
    // The number of rows that a search may return.
    std::size_t rows() const { return rows_; }

    // Calls visit(segment, begin, end) for each segment that has blocks in [begin, end) of the
    // line, with the segment's own block numbers.
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
    std::vector<std::size_t> starts_;  // Number in the line of each segment's first block.
    std::size_t n_blocks_ = 0;
    std::size_t rows_ = 0;
};

}  // namespace bitweigh
