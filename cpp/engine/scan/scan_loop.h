// The algorithm that the vector kernels share, written once over a small set of operations.
//
// Before including this file a kernel defines BITWEIGH_TARGET, the attribute that lets a function
// use its CPU's instructions (empty where the compiler's default has them). Every function below
// is a template over the kernel's `Simd` type, which lives in an unnamed namespace: nothing
// compiled for one CPU can be picked by the linker for another.
//
// Simd provides:
//   Vec                             32 unsigned bytes, one per row of a block
//   group, wide_group               blocks scanned side by side, so that a table load serves all
//   zero(), splat(byte), load(p), load_table(p)
//   lookup_low(table, x)            table[x & 15] per byte; lookup_high: table[x >> 4]
//   add_saturating, add_bytes, least (per byte)
//   any_at_most(x, t), rows_at_most(x, t)      a bool, a 32-bit mask
//   add_words, high_bytes           16-bit lanes; high_bytes(x) = x >> 8 in each lane
//   rows_at_most_wide(all, high, t) see `widen` below
//   prefetch(p)
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/scan/scan.h"
#include "engine/tuning.h"

#define BITWEIGH_INLINE BITWEIGH_TARGET __attribute__((always_inline)) static inline

namespace bitweigh {
namespace {

// Prefetches blocks of later groups, a few cache lines at a time. The stream is prefetched
// in address order but read in `group` lanes side by side, so the last lane is read up to one group
// earlier than its address says: the distance is counted from the end of this group.
template <class Simd, int group, int step, std::size_t distance>
BITWEIGH_INLINE void prefetch_planes(const std::uint8_t* start, std::size_t planes, std::size_t p) {
    constexpr std::size_t plane_bytes = group * block_rows;
    const std::uint8_t* ahead = start + distance + (planes + p) * plane_bytes;
    for (std::size_t line = 0; line < step * plane_bytes; line += 64) Simd::prefetch(ahead + line);
    // Keeps the compiler from moving the prefetches of all planes into one burst, which fills the
    // CPU's miss buffers: 3-4x slower where the codes come from memory.
    __asm__ volatile("" ::: "memory");
}

// Adds the entries of plane p of `group` blocks to their sums.
template <class Simd, int group>
BITWEIGH_INLINE void add_plane(const std::uint8_t* start, std::size_t planes, std::size_t p,
                               const std::uint8_t* entries, typename Simd::Vec* sum) {
    using Vec = typename Simd::Vec;
    const Vec low_table = Simd::load_table(entries + p * plane_table_bytes);
    const Vec high_table = Simd::load_table(entries + p * plane_table_bytes + table_bytes);
    prefetch_planes<Simd, group, 1, narrow_prefetch_bytes>(start, planes, p);
#pragma GCC unroll 8
    for (int g = 0; g < group; ++g) {
        const Vec x = Simd::load(start + (g * planes + p) * block_rows);
        sum[g] = Simd::add_saturating(sum[g], Simd::lookup_low(low_table, x));
        sum[g] = Simd::add_saturating(sum[g], Simd::lookup_high(high_table, x));
    }
}

// The same for blocks anywhere in memory; prefetches those at `next`, if any.
template <class Simd, int group>
BITWEIGH_INLINE void add_listed_plane(const std::uint8_t* const* blocks,
                                      const std::uint8_t* const* next, std::size_t p,
                                      const std::uint8_t* entries, typename Simd::Vec* sum) {
    using Vec = typename Simd::Vec;
    const Vec low_table = Simd::load_table(entries + p * plane_table_bytes);
    const Vec high_table = Simd::load_table(entries + p * plane_table_bytes + table_bytes);
#pragma GCC unroll 8
    for (int g = 0; g < group; ++g) {
        const Vec x = Simd::load(blocks[g] + p * block_rows);
        sum[g] = Simd::add_saturating(sum[g], Simd::lookup_low(low_table, x));
        sum[g] = Simd::add_saturating(sum[g], Simd::lookup_high(high_table, x));
        if (next && p % 2 == 0) Simd::prefetch(next[g] + p * block_rows);
    }
}

// Writes a hit for each block with a row within the threshold.
template <class Simd, int group>
BITWEIGH_INLINE Hit* report_narrow(const typename Simd::Vec* sum, const ScanTables& tables,
                                   std::size_t first, Hit* hits) {
    const auto threshold = static_cast<std::uint8_t>(tables.threshold);
    typename Simd::Vec least = sum[0];
    for (int g = 1; g < group; ++g) least = Simd::least(least, sum[g]);
    if (__builtin_expect(!Simd::any_at_most(least, threshold), 1)) return hits;
    for (int g = 0; g < group; ++g) {
        const std::uint32_t rows = Simd::rows_at_most(sum[g], threshold);
        if (rows) *hits++ = {static_cast<std::uint32_t>(first + g), rows};
    }
    return hits;
}

// `fixed_planes`, if not 0, is the number of planes: known to the compiler, the loop unrolls.
template <class Simd, int group, int fixed_planes>
BITWEIGH_INLINE Hit* scan_group_narrow(const std::uint8_t* blocks, std::size_t first,
                                       const ScanTables& tables, Hit* hits) {
    using Vec = typename Simd::Vec;
    const std::size_t planes = fixed_planes ? fixed_planes : tables.planes;
    const std::uint8_t* start = blocks + first * planes * block_rows;
    Vec sum[group];
    for (int g = 0; g < group; ++g) sum[g] = Simd::zero();
    if constexpr (fixed_planes != 0) {
#pragma GCC unroll 16
        for (std::size_t p = 0; p < planes; ++p) {
            add_plane<Simd, group>(start, planes, p, tables.entries, sum);
        }
    } else {
        for (std::size_t p = 0; p < planes; ++p) {
            add_plane<Simd, group>(start, planes, p, tables.entries, sum);
        }
    }
    return report_narrow<Simd, group>(sum, tables, first, hits);
}

// As scan_group_narrow, for blocks anywhere in memory, the first at position `first` of a list.
template <class Simd, int group, int fixed_planes>
BITWEIGH_INLINE Hit* scan_listed_group_narrow(const std::uint8_t* const* blocks,
                                              const std::uint8_t* const* next, std::size_t first,
                                              const ScanTables& tables, Hit* hits) {
    using Vec = typename Simd::Vec;
    const std::size_t planes = fixed_planes ? fixed_planes : tables.planes;
    Vec sum[group];
    for (int g = 0; g < group; ++g) sum[g] = Simd::zero();
    if constexpr (fixed_planes != 0) {
#pragma GCC unroll 16
        for (std::size_t p = 0; p < planes; ++p) {
            add_listed_plane<Simd, group>(blocks, next, p, tables.entries, sum);
        }
    } else {
        for (std::size_t p = 0; p < planes; ++p) {
            add_listed_plane<Simd, group>(blocks, next, p, tables.entries, sum);
        }
    }
    return report_narrow<Simd, group>(sum, tables, first, hits);
}

// 16-bit sums of 32 rows in two vectors of 16 lanes: `all` adds even row + 256 x odd row modulo
// 2^16, `high` adds the odd rows alone, so the even rows are all - 256 x high.
template <class Simd>
struct WideSum {
    typename Simd::Vec all;
    typename Simd::Vec high;
};

template <class Simd>
BITWEIGH_INLINE void widen(WideSum<Simd>& sum, typename Simd::Vec bytes) {
    sum.all = Simd::add_words(sum.all, bytes);
    sum.high = Simd::add_words(sum.high, Simd::high_bytes(bytes));
}

template <class Simd, int group>
BITWEIGH_INLINE Hit* scan_group_wide(const std::uint8_t* blocks, std::size_t first,
                                     const ScanTables& tables, Hit* hits) {
    using Vec = typename Simd::Vec;
    const std::size_t planes = tables.planes;
    const std::uint8_t* start = blocks + first * planes * block_rows;
    WideSum<Simd> sum[group];
    for (int g = 0; g < group; ++g) sum[g] = {Simd::zero(), Simd::zero()};
    std::size_t p = 0;
    for (; p + 2 <= planes; p += 2) {
        const std::uint8_t* entries = tables.entries + p * plane_table_bytes;
        const Vec low0 = Simd::load_table(entries);
        const Vec high0 = Simd::load_table(entries + table_bytes);
        const Vec low1 = Simd::load_table(entries + 2 * table_bytes);
        const Vec high1 = Simd::load_table(entries + 3 * table_bytes);
        prefetch_planes<Simd, group, 2, wide_prefetch_bytes>(start, planes, p);
#pragma GCC unroll 8
        for (int g = 0; g < group; ++g) {
            const std::uint8_t* plane = start + (g * planes + p) * block_rows;
            const Vec x = Simd::load(plane);
            const Vec y = Simd::load(plane + block_rows);
            // Four entries of at most 63: no carry out of a byte.
            widen<Simd>(
                sum[g],
                Simd::add_bytes(
                    Simd::add_bytes(Simd::lookup_low(low0, x), Simd::lookup_high(high0, x)),
                    Simd::add_bytes(Simd::lookup_low(low1, y), Simd::lookup_high(high1, y))));
        }
    }
    if (p < planes) {
        const std::uint8_t* entries = tables.entries + p * plane_table_bytes;
        const Vec low = Simd::load_table(entries);
        const Vec high = Simd::load_table(entries + table_bytes);
        for (int g = 0; g < group; ++g) {
            const Vec x = Simd::load(start + (g * planes + p) * block_rows);
            widen<Simd>(sum[g],
                        Simd::add_bytes(Simd::lookup_low(low, x), Simd::lookup_high(high, x)));
        }
    }
    for (int g = 0; g < group; ++g) {
        const std::uint32_t rows =
            Simd::rows_at_most_wide(sum[g].all, sum[g].high, tables.threshold);
        if (rows) *hits++ = {static_cast<std::uint32_t>(first + g), rows};
    }
    return hits;
}

template <class Simd, int fixed_planes>
BITWEIGH_TARGET std::size_t scan_narrow_planes(const std::uint8_t* blocks, std::size_t begin,
                                               std::size_t end, const ScanTables& tables,
                                               Hit* hits) {
    Hit* last = hits;
    std::size_t block = begin;
    for (; block + Simd::group <= end; block += Simd::group) {
        last = scan_group_narrow<Simd, Simd::group, fixed_planes>(blocks, block, tables, last);
    }
    for (; block < end; ++block) {
        last = scan_group_narrow<Simd, 1, fixed_planes>(blocks, block, tables, last);
    }
    return static_cast<std::size_t>(last - hits);
}

template <class Simd>
BITWEIGH_TARGET std::size_t scan_narrow(const std::uint8_t* blocks, std::size_t begin,
                                        std::size_t end, const ScanTables& tables, Hit* hits) {
    // Unrolled: 11 % faster at 32 bits, 7 % at 64, 5 % at 128.
    switch (tables.planes) {
        case 4:
            return scan_narrow_planes<Simd, 4>(blocks, begin, end, tables, hits);
        case 8:
            return scan_narrow_planes<Simd, 8>(blocks, begin, end, tables, hits);
        case 12:
            return scan_narrow_planes<Simd, 12>(blocks, begin, end, tables, hits);
        case 16:
            return scan_narrow_planes<Simd, 16>(blocks, begin, end, tables, hits);
        default:
            return scan_narrow_planes<Simd, 0>(blocks, begin, end, tables, hits);
    }
}

template <class Simd>
BITWEIGH_TARGET std::size_t scan_wide(const std::uint8_t* blocks, std::size_t begin,
                                      std::size_t end, const ScanTables& tables, Hit* hits) {
    Hit* last = hits;
    std::size_t block = begin;
    for (; block + Simd::wide_group <= end; block += Simd::wide_group) {
        last = scan_group_wide<Simd, Simd::wide_group>(blocks, block, tables, last);
    }
    for (; block < end; ++block) last = scan_group_wide<Simd, 1>(blocks, block, tables, last);
    return static_cast<std::size_t>(last - hits);
}

template <class Simd, int fixed_planes>
BITWEIGH_TARGET std::size_t scan_narrow_planes_listed(const std::uint8_t* const* blocks,
                                                      std::size_t n, const ScanTables& tables,
                                                      Hit* hits) {
    constexpr std::size_t group = Simd::group;
    Hit* last = hits;
    std::size_t i = 0;
    for (; i + group <= n; i += group) {
        // Near the end of the list there is nothing to prefetch but the blocks being read.
        const std::size_t next = i + listed_prefetch + group <= n ? i + listed_prefetch : i;
        last = scan_listed_group_narrow<Simd, group, fixed_planes>(blocks + i, blocks + next, i,
                                                                   tables, last);
    }
    for (; i < n; ++i) {
        last = scan_listed_group_narrow<Simd, 1, fixed_planes>(blocks + i, blocks + i, i, tables,
                                                               last);
    }
    return static_cast<std::size_t>(last - hits);
}

// Scans long blocks in two halves: if all rows of a block are too far after the first half of its
// planes, the rest is never read. Blocks of a list come from memory, where reading dominates.
template <class Simd>
BITWEIGH_TARGET std::size_t scan_narrow_halves_listed(const std::uint8_t* const* blocks,
                                                      std::size_t n, const ScanTables& tables,
                                                      Hit* hits) {
    using Vec = typename Simd::Vec;
    constexpr std::size_t group = Simd::group;
    constexpr std::size_t at_once = 64;
    const std::size_t planes = tables.planes;
    // Even: a cache line holds two planes.
    const std::size_t half = planes / 4 * 2;
    const auto threshold = static_cast<std::uint8_t>(tables.threshold);
    Hit* last = hits;
    for (std::size_t first = 0; first < n; first += at_once) {
        const std::size_t end = first + at_once < n ? first + at_once : n;
        // The blocks whose second half is read, padded to whole groups.
        Vec sums[at_once + group];
        const std::uint8_t* near_blocks[at_once + group];
        std::uint32_t positions[at_once + group];
        std::size_t n_near = 0;
        for (std::size_t i = first; i < end; i += group) {
            const std::uint8_t* starts[group];
            const std::uint8_t* next[group];
            Vec sum[group];
#pragma GCC unroll 8
            for (std::size_t g = 0; g < group; ++g) {
                starts[g] = blocks[i + g < end ? i + g : end - 1];
                next[g] = blocks[i + g + listed_prefetch < n ? i + g + listed_prefetch : n - 1];
                sum[g] = Simd::zero();
            }
            for (std::size_t p = 0; p < half; ++p) {
                add_listed_plane<Simd, group>(starts, next, p, tables.entries, sum);
            }
            const std::size_t before = n_near;
#pragma GCC unroll 8
            for (std::size_t g = 0; g < group; ++g) {
                sums[n_near] = sum[g];
                near_blocks[n_near] = starts[g];
                positions[n_near] = static_cast<std::uint32_t>(i + g);
                n_near += i + g < end && Simd::any_at_most(sum[g], threshold);
            }
            for (std::size_t j = before; j < n_near; ++j) {
                for (std::size_t p = half; p < planes; p += 2) {
                    Simd::prefetch(near_blocks[j] + p * block_rows);
                }
            }
        }
        for (std::size_t i = 0; i < n_near; i += group) {
            const std::size_t in_group = n_near - i < group ? n_near - i : group;
            for (std::size_t g = in_group; g < group; ++g) near_blocks[i + g] = near_blocks[i];
            for (std::size_t p = half; p < planes; ++p) {
                add_listed_plane<Simd, group>(near_blocks + i, nullptr, p, tables.entries,
                                              sums + i);
            }
            for (std::size_t g = 0; g < in_group; ++g) {
                const std::uint32_t rows = Simd::rows_at_most(sums[i + g], threshold);
                if (rows) *last++ = {positions[i + g], rows};
            }
        }
    }
    return static_cast<std::size_t>(last - hits);
}

template <class Simd>
BITWEIGH_TARGET std::size_t scan_narrow_listed(const std::uint8_t* const* blocks, std::size_t n,
                                               const ScanTables& tables, Hit* hits) {
    switch (tables.planes) {
        case 4:
            return scan_narrow_planes_listed<Simd, 4>(blocks, n, tables, hits);
        case 8:
            return scan_narrow_planes_listed<Simd, 8>(blocks, n, tables, hits);
        default:
            break;
    }
    if (tables.planes < 12) return scan_narrow_planes_listed<Simd, 0>(blocks, n, tables, hits);
    return scan_narrow_halves_listed<Simd>(blocks, n, tables, hits);
}

template <class Simd, int fixed_planes>
BITWEIGH_TARGET std::size_t scan_lean_planes(const std::uint8_t* const* blocks,
                                             const std::uint8_t* bases, std::size_t n,
                                             const ScanTables& tables, Hit* hits) {
    using Vec = typename Simd::Vec;
    constexpr std::size_t group = Simd::group;
    const std::size_t planes = fixed_planes ? fixed_planes : tables.planes;
    Hit* last = hits;
    std::size_t i = 0;
    for (; i + group <= n; i += group) {
        const std::size_t next = i + listed_prefetch + group <= n ? i + listed_prefetch : i;
        Vec sum[group];
        for (std::size_t g = 0; g < group; ++g) sum[g] = Simd::splat(bases[i + g]);
        for (std::size_t p = 0; p < planes; ++p) {
            add_listed_plane<Simd, group>(blocks + i, blocks + next, p, tables.entries, sum);
        }
        last = report_narrow<Simd, group>(sum, tables, i, last);
    }
    for (; i < n; ++i) {
        Vec sum[1] = {Simd::splat(bases[i])};
        for (std::size_t p = 0; p < planes; ++p) {
            add_listed_plane<Simd, 1>(blocks + i, nullptr, p, tables.entries, sum);
        }
        last = report_narrow<Simd, 1>(sum, tables, i, last);
    }
    return static_cast<std::size_t>(last - hits);
}

template <class Simd>
BITWEIGH_TARGET std::size_t scan_lean(const std::uint8_t* const* blocks, const std::uint8_t* bases,
                                      std::size_t n, const ScanTables& tables, Hit* hits) {
    // 64 bits with keys of 24.
    if (tables.planes == 5) return scan_lean_planes<Simd, 5>(blocks, bases, n, tables, hits);
    return scan_lean_planes<Simd, 0>(blocks, bases, n, tables, hits);
}

template <class Simd>
BITWEIGH_TARGET std::size_t scan_wide_listed(const std::uint8_t* const* blocks, std::size_t n,
                                             const ScanTables& tables, Hit* hits) {
    Hit* last = hits;
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint8_t* next = blocks[i + 2 < n ? i + 2 : i];
        for (std::size_t p = 0; p < tables.planes; p += 2) Simd::prefetch(next + p * block_rows);
        Hit* const before = last;
        last = scan_group_wide<Simd, 1>(blocks[i], 0, tables, last);
        if (last != before) before->block = static_cast<std::uint32_t>(i);
    }
    return static_cast<std::size_t>(last - hits);
}

}  // namespace
}  // namespace bitweigh
