// The kernel for x86-64 CPUs with AVX-512: one vector holds two planes of a block, which lie side
// by side. The sums of even and odd planes are added at the end: the order does not change a sum
// that saturates at 255, nor one modulo 2^16.
//
// Blocks of a list come from memory, where vectors of 64 bytes gain nothing: those functions are
// the ones of scan_loop.h, with vectors of 32 bytes and the comparisons of AVX-512.
#include "engine/scan/kernels.h"

#if BITWEIGH_HAS_AVX512

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes the value that its own intrinsics leave undefined for one that is used.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#define BITWEIGH_TARGET __attribute__((target("avx2,avx512f,avx512bw,avx512vl")))
#include "engine/scan/scan_loop.h"
#include "engine/scan/x86_vectors.h"

namespace bitweigh {
namespace {

struct Avx512 : X86Vectors {
    static constexpr int group = 4;
    static constexpr int wide_group = 4;

    BITWEIGH_INLINE std::uint32_t rows_at_most(Vec x, std::uint8_t threshold) {
        return _mm256_cmple_epu8_mask(x, splat(threshold));
    }
    BITWEIGH_INLINE bool any_at_most(Vec x, std::uint8_t threshold) {
        return rows_at_most(x, threshold) != 0;
    }
};

// The tables of two planes, in the halves of vectors; those of a last plane alone are followed by
// zeros, so that the half without a plane adds nothing.
struct PlanePair {
    __m512i low;
    __m512i high;
};

BITWEIGH_INLINE __m512i halves(const std::uint8_t* first, const std::uint8_t* second) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(Avx512::load(first)), Avx512::load(second), 1);
}

BITWEIGH_INLINE __m256i lower_half(__m512i x) {
    return _mm512_castsi512_si256(x);
}

BITWEIGH_INLINE __m256i upper_half(__m512i x) {
    return _mm512_extracti64x4_epi64(x, 1);
}

BITWEIGH_INLINE __m512i load_two(const std::uint8_t* p) {
    return _mm512_loadu_si512(p);
}

// 32 bytes, and zeros; memory after them is not read.
BITWEIGH_INLINE __m512i load_one(const std::uint8_t* p) {
    return _mm512_maskz_loadu_epi64(0x0f, p);
}

BITWEIGH_INLINE PlanePair tables_of_two(const std::uint8_t* entries) {
    return {halves(entries, entries + plane_table_bytes),
            halves(entries + table_bytes, entries + plane_table_bytes + table_bytes)};
}

BITWEIGH_INLINE PlanePair tables_of_one(const std::uint8_t* entries) {
    return {load_one(entries), load_one(entries + table_bytes)};
}

BITWEIGH_INLINE __m512i lookup_low(const PlanePair& tables, __m512i x) {
    return _mm512_shuffle_epi8(tables.low, _mm512_and_si512(x, _mm512_set1_epi8(15)));
}

BITWEIGH_INLINE __m512i lookup_high(const PlanePair& tables, __m512i x) {
    return _mm512_shuffle_epi8(tables.high,
                               _mm512_and_si512(_mm512_srli_epi16(x, 4), _mm512_set1_epi8(15)));
}

BITWEIGH_INLINE __m512i add_entries(__m512i sum, const PlanePair& tables, __m512i x) {
    return _mm512_adds_epu8(_mm512_adds_epu8(sum, lookup_low(tables, x)), lookup_high(tables, x));
}

template <int fixed_planes>
BITWEIGH_INLINE Hit* scan_group_narrow_pairs(const std::uint8_t* blocks, std::size_t first,
                                             const ScanTables& tables, Hit* hits) {
    constexpr int group = Avx512::group;
    const std::size_t planes = fixed_planes ? fixed_planes : tables.planes;
    const std::uint8_t* start = blocks + first * planes * block_rows;
    __m512i pairs[group];
    for (int g = 0; g < group; ++g) pairs[g] = _mm512_setzero_si512();
    std::size_t p = 0;
#pragma GCC unroll 8
    for (; p + 2 <= planes; p += 2) {
        // Before the tables are loaded: its barrier would send them through memory.
        prefetch_planes<Avx512, group, 2, narrow_prefetch_bytes>(start, planes, p);
        const PlanePair two = tables_of_two(tables.entries + p * plane_table_bytes);
#pragma GCC unroll 8
        for (int g = 0; g < group; ++g) {
            pairs[g] = add_entries(pairs[g], two, load_two(start + (g * planes + p) * block_rows));
        }
    }
    if (p < planes) {
        const PlanePair one = tables_of_one(tables.entries + p * plane_table_bytes);
        for (int g = 0; g < group; ++g) {
            pairs[g] = add_entries(pairs[g], one, load_one(start + (g * planes + p) * block_rows));
        }
    }
    __m256i sum[group];
    for (int g = 0; g < group; ++g) {
        sum[g] = _mm256_adds_epu8(lower_half(pairs[g]), upper_half(pairs[g]));
    }
    return report_narrow<Avx512, group>(sum, tables, first, hits);
}

template <int fixed_planes>
BITWEIGH_TARGET std::size_t scan_narrow_pairs(const std::uint8_t* blocks, std::size_t begin,
                                              std::size_t end, const ScanTables& tables,
                                              Hit* hits) {
    Hit* last = hits;
    std::size_t block = begin;
    for (; block + Avx512::group <= end; block += Avx512::group) {
        last = scan_group_narrow_pairs<fixed_planes>(blocks, block, tables, last);
    }
    for (; block < end; ++block) {
        last = scan_group_narrow<Avx512, 1, fixed_planes>(blocks, block, tables, last);
    }
    return static_cast<std::size_t>(last - hits);
}

BITWEIGH_TARGET std::size_t narrow(const std::uint8_t* blocks, std::size_t begin, std::size_t end,
                                   const ScanTables& tables, Hit* hits) {
    switch (tables.planes) {
        case 4:
            return scan_narrow_pairs<4>(blocks, begin, end, tables, hits);
        case 8:
            return scan_narrow_pairs<8>(blocks, begin, end, tables, hits);
        case 16:
            return scan_narrow_pairs<16>(blocks, begin, end, tables, hits);
        default:
            return scan_narrow_pairs<0>(blocks, begin, end, tables, hits);
    }
}

// The sums of `WideSum`, of two planes in the halves of vectors.
struct WidePairs {
    __m512i all;
    __m512i high;
};

BITWEIGH_INLINE void widen_pairs(WidePairs& sum, __m512i bytes) {
    sum.all = _mm512_add_epi16(sum.all, bytes);
    sum.high = _mm512_add_epi16(sum.high, _mm512_srli_epi16(bytes, 8));
}

BITWEIGH_INLINE __m512i two_entries(const PlanePair& tables, __m512i x) {
    return _mm512_add_epi8(lookup_low(tables, x), lookup_high(tables, x));
}

BITWEIGH_INLINE __m256i both_halves(__m512i x) {
    return _mm256_add_epi16(lower_half(x), upper_half(x));
}

BITWEIGH_INLINE Hit* scan_group_wide_pairs(const std::uint8_t* blocks, std::size_t first,
                                           const ScanTables& tables, Hit* hits) {
    constexpr int group = Avx512::wide_group;
    const std::size_t planes = tables.planes;
    const std::uint8_t* start = blocks + first * planes * block_rows;
    WidePairs sum[group];
    for (int g = 0; g < group; ++g) sum[g] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    std::size_t p = 0;
    for (; p + 4 <= planes; p += 4) {
        const std::uint8_t* entries = tables.entries + p * plane_table_bytes;
        prefetch_planes<Avx512, group, 4, wide_prefetch_bytes>(start, planes, p);
        const PlanePair first_two = tables_of_two(entries);
        const PlanePair next_two = tables_of_two(entries + 2 * plane_table_bytes);
#pragma GCC unroll 8
        for (int g = 0; g < group; ++g) {
            const std::uint8_t* plane = start + (g * planes + p) * block_rows;
            // Four entries of at most 63: no carry out of a byte.
            widen_pairs(sum[g],
                        _mm512_add_epi8(two_entries(first_two, load_two(plane)),
                                        two_entries(next_two, load_two(plane + 2 * block_rows))));
        }
    }
    for (; p < planes; p += 2) {
        const bool alone = p + 1 == planes;
        const std::uint8_t* entries = tables.entries + p * plane_table_bytes;
        const PlanePair rest = alone ? tables_of_one(entries) : tables_of_two(entries);
        for (int g = 0; g < group; ++g) {
            const std::uint8_t* plane = start + (g * planes + p) * block_rows;
            widen_pairs(sum[g], two_entries(rest, alone ? load_one(plane) : load_two(plane)));
        }
    }
    for (int g = 0; g < group; ++g) {
        const std::uint32_t rows = Avx512::rows_at_most_wide(
            both_halves(sum[g].all), both_halves(sum[g].high), tables.threshold);
        if (rows) *hits++ = {static_cast<std::uint32_t>(first + g), rows};
    }
    return hits;
}

BITWEIGH_TARGET std::size_t wide(const std::uint8_t* blocks, std::size_t begin, std::size_t end,
                                 const ScanTables& tables, Hit* hits) {
    Hit* last = hits;
    std::size_t block = begin;
    for (; block + Avx512::wide_group <= end; block += Avx512::wide_group) {
        last = scan_group_wide_pairs(blocks, block, tables, last);
    }
    for (; block < end; ++block) last = scan_group_wide<Avx512, 1>(blocks, block, tables, last);
    return static_cast<std::size_t>(last - hits);
}

}  // namespace

const Kernel avx512_kernel = {
    "avx512",         narrow, wide, scan_narrow_listed<Avx512>, scan_wide_listed<Avx512>,
    scan_lean<Avx512>};

}  // namespace bitweigh

#endif
