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

// Table entries of one query, quantised for a kernel. Per plane two tables, low nibble first; each
// table's 16 entries stand there twice, because an AVX2 shuffle looks up two halves separately.
inline constexpr std::size_t table_bytes = 32;
inline constexpr std::size_t plane_table_bytes = 2 * table_bytes;
// In a wide scan four entries are added in 8 bits before they are widened.
inline constexpr unsigned wide_entry_max = 63;

struct ScanTables {
    const std::uint8_t* entries;
    std::size_t planes;
    // Narrow: sums saturate at 255, threshold <= 254. Wide: sums must stay below 2^16.
    std::uint16_t threshold;
};

// Rows of one block that may be within the threshold: bit r stands for row r of the block.
struct Hit {
    std::uint32_t block;
    std::uint32_t rows;
};

// Scans blocks [begin, end) and writes the hits in ascending block order. `hits` has room for
// end - begin of them; returns how many were written. The rows that pad a segment's last block are
// reported like any others: the caller drops them.
using ScanBlocks = std::size_t (*)(const std::uint8_t* blocks, std::size_t begin, std::size_t end,
                                   const ScanTables& tables, Hit* hits);

// The same for n blocks anywhere in memory; a hit's block is its place in the list.
using ScanListed = std::size_t (*)(const std::uint8_t* const* blocks, std::size_t n,
                                   const ScanTables& tables, Hit* hits);

struct Kernel {
    const char* name;
    ScanBlocks narrow;  // 8-bit saturating sums
    ScanBlocks wide;    // 16-bit sums
    ScanListed narrow_listed;
    ScanListed wide_listed;
};

// Kernels that this machine can run, fastest first; the last is always "scalar".
std::span<const Kernel* const> available_kernels();

// To be called on a thread before it computes. Code of other libraries may leave the upper halves
// of the vector registers in use; plain floating-point code then runs up to 3.3x slower (seen on a
// Zen 4 after a search of another library).
void clean_vector_state();

// nullptr if this machine has no such kernel.
const Kernel* find_kernel(std::string_view name);

}  // namespace bitweigh
