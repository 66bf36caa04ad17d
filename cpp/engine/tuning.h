// The constants that affect speed but never an answer, each with the measurement behind it
// (one core of a Zen 4, 1 M rows; `make bench` repeats them).
#pragma once

#include <cstddef>

namespace bitweigh {

// Bytes that the kernels prefetch ahead, counted from the end of the group of blocks they read.
// Prefetches are spread over the plane loop: in one burst per group they cost 3-4x out of cache.
// Short codes: 4 KiB is 10 % slower where half the codes come from memory, 16 KiB 20 % everywhere.
// Long codes: what was prefetched must not be evicted from the first-level cache before it is read;
// 1 KiB, 8 KiB and 16 KiB are 10-25 % slower at 1024 bits.
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

// A query switches to 16-bit sums once 8-bit sums have let through more than `widen_after` rows
// that were too far, and more than one in `widen_share` of the rows scanned: a large group of equal
// codes just beyond the bound may lie within what 8 bits round off.
inline constexpr std::size_t widen_after = 4096;
inline constexpr std::size_t widen_share = 80;

// `many_hits` candidates in one block are probably a group of equal codes or equal distances: it
// pays to look for codes equal to the first, and to look again in that block if `many_alike` were
// equal. A million equal codes of 64 bits take 2 ms that way, and 14 ms if they are scored one by
// one.
inline constexpr int many_hits = 8;
inline constexpr int many_alike = 3;

// The bound left by abandoned probing is loose if more than one in this many sampled rows is
// nearer: only then does a sample for many neighbours pay, which costs 100,000 codes of 512 bits 5
// % at k = 100.
inline constexpr std::size_t loose_share = 8;

// The size of a chunk, the codes that all queries of a tile scan before the next ones are read: it
// stays in the second-level cache.
inline constexpr std::size_t chunk_bytes = 128 * 1024;
// The maximum number of queries that scan a chunk together; their tables share that cache with it.
inline constexpr std::size_t tile_queries = 16;
// The bound falls only between two kernel calls, and early on it falls fast: a call scans at most
// 1 / chunk_growth of the blocks already scanned, but at least `first_chunk_blocks`.
inline constexpr std::size_t chunk_growth = 8;
inline constexpr std::size_t first_chunk_blocks = 16;

// The average number of budget levels per band, and the minimum in all: with 2 levels a band,
// searches of 256 bits go too far and visit 1.4x as many blocks.
inline constexpr std::size_t levels_per_band = 8;
inline constexpr std::size_t min_budget_levels = 32;
// Keys whose directory entries are prefetched together.
inline constexpr std::size_t keys_at_once = 128;
// Blocks scanned between two updates of the bound: the first number, doubled up to the second.
inline constexpr std::size_t first_blocks_at_once = 4;
inline constexpr std::size_t blocks_at_once = 64;
// Bytes of blocks prefetched into the second-level cache while they are listed: nearly always all
// of them. With the first 8 blocks alone, searches take 6-16 % longer (a million codes, 128 and 256
// bits), 16-20 % (100 million, 64 bits) and 10-12 % (a billion, lean rows); with 32 KiB 5-12 %
// longer at 256 bits and from 100 million rows on.
inline constexpr std::size_t listed_prefetch_bytes = 160 * 1024;
// Blocks that the kernels then prefetch ahead in a list.
inline constexpr std::size_t listed_prefetch = 8;

// Keys looked up together while pages are read ahead: as many as a disk reads at a time.
inline constexpr std::size_t told_keys_at_once = 1024;
// A round that took this much longer than `disk_time_factor` times its estimate may have waited for
// a disk, where one page takes 40 to 90 us; the system knows for certain, but asking it takes 0.3.
inline constexpr double disk_read_ns = 20'000.0;
inline constexpr double disk_time_factor = 4.0;

// A thread checks for an interrupt after this many bytes of codes: well under a millisecond of
// scanning, so that checking costs nothing and Ctrl-C feels immediate.
inline constexpr std::size_t interrupt_check_bytes = std::size_t{4} << 20;
// The same for a call with a deadline, which may be checked 5 ms late: where many rows are kept, a
// byte takes up to a hundred times as long as in a plain scan. Reading the clock costs about 25 ns.
inline constexpr std::size_t deadline_check_bytes = std::size_t{64} << 10;
// The maximum number of blocks that such a call scans between two checks.
inline constexpr std::size_t deadline_max_blocks = 512;

// One thread is used for this many bytes of codes x queries (about 0.2 ms of work): starting one
// costs about 0.05 ms, up to 0.4 ms on a sleeping core.
inline constexpr std::size_t bytes_per_thread = std::size_t{8} << 20;
// The most that a probing query counts as, in these bytes: about 15 microseconds.
inline constexpr std::size_t probe_bytes = std::size_t{512} << 10;
// The work is cut into about this many tasks per thread, by queries and, where those are few, by
// rows: a thread that starts late or runs on a slow core does not hold up the rest.
inline constexpr std::size_t tasks_per_thread = 4;

// If a filter allows at most one row of a segment in this many, these rows are copied, and only the
// copies are read. With one in 10 of 1 M rows of 64 bits a search takes 50 us, and 150 us by bands
// and a mask; with one in 2 it would take 170 us, and 45 us. Copying takes 30 ns a row.
inline constexpr std::size_t gathered_filter_ratio = 8;
// Ids that are looked up together, so that the places where they are found are prefetched.
inline constexpr std::size_t ids_at_once = 64;
// Rows prefetched ahead while they are copied.
inline constexpr std::size_t gathering_prefetch = 16;
// Ranking a byte of a vector takes as long as scanning this many bytes of codes.
inline constexpr std::size_t ranking_bytes_factor = 8;
// Bytes of a vector that ranking prefetches; the processor follows with the rest.
inline constexpr std::size_t max_prefetched_bytes = 1024;

// The settings that tests change so that small inputs reach every path.
struct Tuning {
    // Rows sampled evenly over all segments for the first bound: at least `warm_up_rows`, and at
    // least `warm_up_per_k` for each neighbour. A larger sample saves candidates (K for each factor
    // e) but is scored in full: 1024 rows are as fast at 1 M rows, and 20-30 % slower at 20,000
    // rows of 64 or 1024 bits.
    std::size_t warm_up_rows = 256;
    std::size_t warm_up_per_k = 8;
    // Longest codes, in bits, that use 8-bit sums in bands and in a scan. With 8 bits each of the 2
    // tables a byte loses half a step of 250 on average, and there are 3x as many candidates at 512
    // bits, 9x at 1024. In a scan 16 bits are 1.1-1.7x as fast from 256 bits on, and up to 1.15x
    // slower at 160; in bands, where blocks are read one by one, 1.1-1.4x slower at 256.
    std::size_t narrow_max_bits = 256;
    std::size_t narrow_max_scan_bits = 160;
    // Estimated time that the first round of probing may take.
    double first_round_ns = 1500.0;
    // Probing is tried only if a scan takes at least `min_scan_factor` times as long as preparing
    // to probe, and at least `min_scan_ns_per_k` for each neighbour, since rows found by probing
    // take longer to keep.
    double min_scan_factor = 10.0;
    double min_scan_ns_per_k = 400.0;
    // How many times as many blocks a scan is assumed to have. A sample of the rows is then probed
    // as far as all of them would be: how the number of bands is chosen.
    double scan_factor = 1.0;
};

}  // namespace bitweigh
