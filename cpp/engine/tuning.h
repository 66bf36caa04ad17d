// Every number that trades speed and never changes an answer, with the measurement behind it
// (one core of a Zen 4, 1 M rows; `make bench` repeats them).
#pragma once

#include <cstddef>

namespace bitweigh {

// Bytes that the kernels prefetch ahead, counted from the end of the group of blocks they read.
// Prefetches are spread over the plane loop: in one burst per group they cost 3-4x out of cache.
// Short codes: 4 KiB is 10 % slower where half the codes come from memory, 16 KiB 20 % everywhere.
// Long codes: what lies between must not be pushed out of the first-level cache by what is being
// read; 1 KiB, 8 KiB and 16 KiB are 10-25 % slower at 1024 bits.
inline constexpr std::size_t narrow_prefetch_bytes = 8192;
inline constexpr std::size_t wide_prefetch_bytes = 4096;

// Scale of 8-bit sums: the current worst distance is about this many steps. The threshold lies
// one or two above it and must stay below 255, the value of a saturated sum.
inline constexpr double narrow_steps = 250.0;
// 8-bit tables are quantised again when the threshold has fallen below this: half the precision.
inline constexpr unsigned narrow_rescale_below = 128;

// Scale of 16-bit sums: the current worst distance is about this many steps per nibble table. With
// 8 there are up to 3x as many candidates where codes are duplicated, with 24 more entries are
// capped.
inline constexpr double wide_steps_per_table = 16.0;

// Where 8-bit sums let through so many rows that are not near, and more than one in so many of
// those scanned, sums of 16 bits are used from then on: a large group of equal codes just beyond
// the bound may lie within what 8 bits round off.
inline constexpr std::size_t widen_after = 4096;
inline constexpr std::size_t widen_share = 80;

// So many candidates in one block are a group of equal codes or of equal distances: it pays to
// look, and to look again in the same block where so many were alike. A million equal codes of 64
// bits take 2 ms so, and 14 scored one by one.
inline constexpr int many_hits = 8;
inline constexpr int many_alike = 3;

// Where probing was given up, its bound is loose if more than one sampled row in so many is nearer:
// only then a sample for many neighbours pays, which costs 100,000 codes of 512 bits 5 % at k =
// 100.
inline constexpr std::size_t loose_share = 8;

// Bytes of codes that several queries pass over before the next ones are read: they stay in the
// second-level cache.
inline constexpr std::size_t chunk_bytes = 128 * 1024;
// Most queries that pass over a chunk together; their tables share that cache with the chunk.
inline constexpr std::size_t tile_queries = 16;
// The bound only falls between two kernel calls, and early on it falls fast: a call looks at no
// more than this share of the rows already seen, but at no fewer than `first_chunk_blocks`.
inline constexpr std::size_t chunk_growth = 8;
inline constexpr std::size_t first_chunk_blocks = 16;

// Each band gets so many levels of the budget on average, but there are no fewer than this in all:
// with 2 levels a band, searches of 256 bits go too far and visit 1.4x as many blocks.
inline constexpr std::size_t levels_per_band = 8;
inline constexpr std::size_t min_budget_levels = 32;
// Keys whose directory entries are fetched together, blocks between two looks at the bound, and the
// first blocks of a list, which are fetched while it is made.
inline constexpr std::size_t keys_at_once = 128;
inline constexpr std::size_t first_blocks_at_once = 4;
inline constexpr std::size_t blocks_at_once = 64;
inline constexpr std::size_t listed_prefetch = 8;

// A worker asks whether the search was interrupted after this many bytes of codes: well under a
// millisecond of scanning, so that asking costs nothing and Ctrl-C feels immediate.
inline constexpr std::size_t interrupt_check_bytes = std::size_t{4} << 20;

// A thread is started for every so many bytes of codes x queries (about 0.2 ms of work): starting
// one costs about 0.05 ms, up to 0.4 ms on a sleeping core.
inline constexpr std::size_t bytes_per_thread = std::size_t{8} << 20;
// What a query that probes counts for at most: about 15 microseconds.
inline constexpr std::size_t probe_bytes = std::size_t{512} << 10;
// The work is cut into about this many tasks for each thread, by queries and, where those are few,
// by rows: a thread that starts late or a slow core then does not hold up the rest.
inline constexpr std::size_t tasks_per_thread = 4;

// Where a filter allows at most one row in so many, the blocks that have any are listed and only
// those are read: with rows spread evenly, at most every other block has one.
inline constexpr std::size_t sparse_filter_ratio = 64;
// A byte of a vector that is ranked takes as long as so many bytes of codes that are scanned.
inline constexpr std::size_t ranking_bytes_factor = 8;
// Of the next row to be ranked, so many bytes are fetched ahead; the processor follows with the
// rest.
inline constexpr std::size_t max_prefetched_bytes = 1024;

// What tests may change, so that small inputs reach every path.
struct Tuning {
    // Rows, spread evenly over all segments, that give the first bound: at least this many, and
    // `warm_up_per_k` for each neighbour wanted. A larger sample saves candidates (K for each
    // factor e) but is scored in full: 1024 rows are as fast at 1 M rows, and 20-30 % slower at
    // 20,000 rows of 64 or 1024 bits.
    std::size_t warm_up_rows = 256;
    std::size_t warm_up_per_k = 8;
    // Codes longer than this many bits use 16-bit sums: with 8 bits each of the 2 tables a byte
    // loses half a step of 250 on average, and there are 3x as many candidates at 512 bits, 9x at
    // 1024. In a scan 16 bits are 1.1-1.7x as fast from 256 bits on, and up to 1.15x slower at 160;
    // in bands, where blocks are read one by one, 1.1-1.4x slower at 256.
    std::size_t narrow_max_bits = 256;
    std::size_t narrow_max_scan_bits = 160;
    // Nanoseconds, by the estimates above, that the first round of probing may take.
    double first_round_ns = 1500.0;
    // A scan takes at least so many times as long as preparing to probe where probing is tried at
    // all; and so many nanoseconds for each neighbour wanted, since rows that are met by probing
    // take longer to keep.
    double min_scan_factor = 10.0;
    double min_scan_ns_per_k = 400.0;
};

}  // namespace bitweigh
