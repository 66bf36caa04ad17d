// The one hot kernel: which rows of a run of blocks may be within a threshold?
//
// A kernel adds, for each row, one table entry per nibble of its code, and reports the rows whose
// sum is at most the threshold. The entries are lower bounds, so a row it does not report is
// certainly too far; a row it reports is only a candidate. All kernels report the same rows.
// README.md in this folder has the formula, the layout and the measured rates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/types.h"

namespace bitweigh {

// The size of a nibble's table and of the two tables of a plane, low nibble first. The 16 entries
// of a table are stored twice, because an AVX2 shuffle looks up two halves separately.
inline constexpr std::size_t table_bytes = 32;
inline constexpr std::size_t plane_table_bytes = 2 * table_bytes;
// The largest entry of a wide scan, which adds four entries in 8 bits before it widens them.
inline constexpr unsigned wide_entry_max = 63;

// The flip sums of one query, quantised for a kernel.
struct ScanTables {
    const std::uint8_t* entries;  // Array of planes x plane_table_bytes entries.
    std::size_t planes;           // Number of bytes of a code.
    // Largest sum to report. Narrow: sums saturate at 255, so it is at most 254. Wide: sums must
    // stay below 2^16.
    std::uint16_t threshold;
};

// A block with rows that may be within the threshold.
struct Hit {
    std::uint32_t block;  // Block number, or position in the list.
    std::uint32_t rows;   // Mask of those rows: bit r stands for row r of the block.
};

// Scans blocks [begin, end) and writes the hits in ascending block order. `hits` has room for
// end - begin of them; returns the number written. The rows that pad a segment's last block are
// reported like any others: the caller drops them.
using ScanBlocks = std::size_t (*)(const std::uint8_t* blocks, std::size_t begin, std::size_t end,
                                   const ScanTables& tables, Hit* hits);

// The same for n blocks anywhere in memory; a hit's block is its position in the list.
using ScanListed = std::size_t (*)(const std::uint8_t* const* blocks, std::size_t n,
                                   const ScanTables& tables, Hit* hits);

// The same, narrow, for rows whose sum starts from bases[i] in block i: that of the bits which the
// blocks do not hold.
using ScanLean = std::size_t (*)(const std::uint8_t* const* blocks, const std::uint8_t* bases,
                                 std::size_t n, const ScanTables& tables, Hit* hits);

struct Kernel {
    const char* name;
    ScanBlocks narrow;  // Scan with 8-bit saturating sums.
    ScanBlocks wide;    // Scan with 16-bit sums.
    ScanListed narrow_listed;
    ScanListed wide_listed;
    ScanLean lean_listed;
};

// The kernels that this machine can run, fastest first; the last is always "scalar".
std::span<const Kernel* const> available_kernels();

// Clears the upper halves of the vector registers, which code of other libraries may leave in use;
// plain floating-point code then runs up to 3.3x slower (seen on a Zen 4 after a search of another
// library). Must be called on a thread before it computes.
void clean_vector_state();

// Returns null if this machine has no kernel of this name.
const Kernel* find_kernel(std::string_view name);

}  // namespace bitweigh
