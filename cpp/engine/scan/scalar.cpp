// The kernel in plain C++: for CPUs without vector kernels, and the plainest statement of what a
// kernel does. It does not use the loop that the others share, so that each checks the other.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/scan/kernels.h"

namespace bitweigh {
namespace {

// A mask of the rows of a block whose sum, from `base` on, is within the threshold. Serves narrow
// and wide scans: a sum that an 8-bit kernel would saturate is above every narrow threshold here
// too.
std::uint32_t rows_within(const std::uint8_t* block, unsigned base, const ScanTables& tables) {
    const std::uint8_t* plane = block;
    const std::uint8_t* low = tables.entries;
    std::uint32_t sums[block_rows];
    std::fill(sums, sums + block_rows, base);
    for (std::size_t p = 0; p < tables.planes; ++p) {
        const std::uint8_t* high = low + table_bytes;
        for (std::size_t r = 0; r < block_rows; ++r) {
            sums[r] += static_cast<std::uint32_t>(low[plane[r] & 15] + high[plane[r] >> 4]);
        }
        plane += block_rows;
        low += plane_table_bytes;
    }
    std::uint32_t rows = 0;
    for (std::size_t r = 0; r < block_rows; ++r) {
        rows |= static_cast<std::uint32_t>(sums[r] <= tables.threshold) << r;
    }
    return rows;
}

std::size_t scan_blocks(const std::uint8_t* blocks, std::size_t begin, std::size_t end,
                        const ScanTables& tables, Hit* hits) {
    Hit* last = hits;
    for (std::size_t block = begin; block < end; ++block) {
        const std::uint8_t* start = blocks + block * tables.planes * block_rows;
        if (const std::uint32_t rows = rows_within(start, 0, tables)) {
            *last++ = {static_cast<std::uint32_t>(block), rows};
        }
    }
    return static_cast<std::size_t>(last - hits);
}

std::size_t scan_listed(const std::uint8_t* const* blocks, std::size_t n, const ScanTables& tables,
                        Hit* hits) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (const std::uint32_t rows = rows_within(blocks[i], 0, tables)) {
            hits[found++] = {static_cast<std::uint32_t>(i), rows};
        }
    }
    return found;
}

std::size_t scan_lean(const std::uint8_t* const* blocks, const std::uint8_t* bases, std::size_t n,
                      const ScanTables& tables, Hit* hits) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (const std::uint32_t rows = rows_within(blocks[i], bases[i], tables)) {
            hits[found++] = {static_cast<std::uint32_t>(i), rows};
        }
    }
    return found;
}

}  // namespace

const Kernel scalar_kernel = {"scalar",    scan_blocks, scan_blocks,
                              scan_listed, scan_listed, scan_lean};

}  // namespace bitweigh
