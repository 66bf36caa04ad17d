// Operations on vectors of 32 bytes that the kernels for x86-64 share; see scan_loop.h, after which
// it is included, so that they are compiled for the CPU of the kernel.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace bitweigh {
namespace {

struct X86Vectors {
    using Vec = __m256i;

    BITWEIGH_INLINE Vec zero() { return _mm256_setzero_si256(); }
    BITWEIGH_INLINE Vec splat(std::uint8_t byte) {
        return _mm256_set1_epi8(static_cast<char>(byte));
    }
    BITWEIGH_INLINE Vec load(const std::uint8_t* p) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    }
    BITWEIGH_INLINE Vec load_table(const std::uint8_t* p) { return load(p); }
    BITWEIGH_INLINE Vec lookup_low(Vec table, Vec x) {
        return _mm256_shuffle_epi8(table, _mm256_and_si256(x, _mm256_set1_epi8(15)));
    }
    BITWEIGH_INLINE Vec lookup_high(Vec table, Vec x) {
        return lookup_low(table, _mm256_srli_epi16(x, 4));
    }
    BITWEIGH_INLINE Vec add_saturating(Vec a, Vec b) { return _mm256_adds_epu8(a, b); }
    BITWEIGH_INLINE Vec add_bytes(Vec a, Vec b) { return _mm256_add_epi8(a, b); }
    BITWEIGH_INLINE Vec least(Vec a, Vec b) { return _mm256_min_epu8(a, b); }
    BITWEIGH_INLINE std::uint32_t rows_at_most(Vec x, std::uint8_t threshold) {
        const Vec limit = _mm256_set1_epi8(static_cast<char>(threshold));
        return static_cast<std::uint32_t>(
            _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(x, limit), x)));
    }
    BITWEIGH_INLINE bool any_at_most(Vec x, std::uint8_t threshold) {
        return rows_at_most(x, threshold) != 0;
    }
    BITWEIGH_INLINE Vec add_words(Vec a, Vec b) { return _mm256_add_epi16(a, b); }
    BITWEIGH_INLINE Vec high_bytes(Vec x) { return _mm256_srli_epi16(x, 8); }
    BITWEIGH_INLINE std::uint32_t rows_at_most_wide(Vec all, Vec high, std::uint16_t threshold) {
        const Vec limit = _mm256_set1_epi16(static_cast<short>(threshold));
        const Vec even = _mm256_sub_epi16(all, _mm256_slli_epi16(high, 8));
        const Vec even_in = _mm256_cmpeq_epi16(_mm256_min_epu16(even, limit), even);
        const Vec odd_in = _mm256_cmpeq_epi16(_mm256_min_epu16(high, limit), high);
        // Low byte of each lane from the even row, high byte from the odd one.
        return static_cast<std::uint32_t>(_mm256_movemask_epi8(
            _mm256_blendv_epi8(even_in, odd_in, _mm256_set1_epi16(static_cast<short>(0xff00)))));
    }
    BITWEIGH_INLINE void prefetch(const std::uint8_t* p) {
        _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
    }
};

}  // namespace
}  // namespace bitweigh
