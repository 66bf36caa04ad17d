// The kernel for aarch64: two 16-byte vectors hold a plane of a block.
#include "engine/scan/kernels.h"

#if BITWEIGH_HAS_NEON

#include <arm_neon.h>

#define BITWEIGH_TARGET
#include "engine/scan/scan_loop.h"

namespace bitweigh {
namespace {

struct Neon {
    using Vec = uint8x16x2_t;
    static constexpr int group = 2;
    static constexpr int wide_group = 1;

    // The mask of a comparison's result: one bit for each byte, which is 0 or 255.
    BITWEIGH_INLINE std::uint32_t mask_of(uint8x16_t in) {
        static const std::uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                 1, 2, 4, 8, 16, 32, 64, 128};
        const uint8x16_t bits = vandq_u8(in, vld1q_u8(weights));
        return vaddv_u8(vget_low_u8(bits)) |
               static_cast<std::uint32_t>(vaddv_u8(vget_high_u8(bits))) << 8;
    }
    BITWEIGH_INLINE uint16x8_t words(uint8x16_t x) { return vreinterpretq_u16_u8(x); }
    BITWEIGH_INLINE uint8x16_t bytes(uint16x8_t x) { return vreinterpretq_u8_u16(x); }

    BITWEIGH_INLINE Vec zero() { return {{vdupq_n_u8(0), vdupq_n_u8(0)}}; }
    BITWEIGH_INLINE Vec splat(std::uint8_t byte) { return {{vdupq_n_u8(byte), vdupq_n_u8(byte)}}; }
    BITWEIGH_INLINE Vec load(const std::uint8_t* p) { return {{vld1q_u8(p), vld1q_u8(p + 16)}}; }
    BITWEIGH_INLINE Vec load_table(const std::uint8_t* p) {
        const uint8x16_t table = vld1q_u8(p);
        return {{table, table}};
    }
    BITWEIGH_INLINE Vec lookup_low(Vec table, Vec x) {
        const uint8x16_t low = vdupq_n_u8(15);
        return {{vqtbl1q_u8(table.val[0], vandq_u8(x.val[0], low)),
                 vqtbl1q_u8(table.val[0], vandq_u8(x.val[1], low))}};
    }
    BITWEIGH_INLINE Vec lookup_high(Vec table, Vec x) {
        return {{vqtbl1q_u8(table.val[0], vshrq_n_u8(x.val[0], 4)),
                 vqtbl1q_u8(table.val[0], vshrq_n_u8(x.val[1], 4))}};
    }
    BITWEIGH_INLINE Vec add_saturating(Vec a, Vec b) {
        return {{vqaddq_u8(a.val[0], b.val[0]), vqaddq_u8(a.val[1], b.val[1])}};
    }
    BITWEIGH_INLINE Vec add_bytes(Vec a, Vec b) {
        return {{vaddq_u8(a.val[0], b.val[0]), vaddq_u8(a.val[1], b.val[1])}};
    }
    BITWEIGH_INLINE Vec least(Vec a, Vec b) {
        return {{vminq_u8(a.val[0], b.val[0]), vminq_u8(a.val[1], b.val[1])}};
    }
    BITWEIGH_INLINE std::uint32_t rows_at_most(Vec x, std::uint8_t threshold) {
        const uint8x16_t limit = vdupq_n_u8(threshold);
        return mask_of(vcleq_u8(x.val[0], limit)) | mask_of(vcleq_u8(x.val[1], limit)) << 16;
    }
    BITWEIGH_INLINE bool any_at_most(Vec x, std::uint8_t threshold) {
        return vminvq_u8(vminq_u8(x.val[0], x.val[1])) <= threshold;
    }
    BITWEIGH_INLINE Vec add_words(Vec a, Vec b) {
        return {{bytes(vaddq_u16(words(a.val[0]), words(b.val[0]))),
                 bytes(vaddq_u16(words(a.val[1]), words(b.val[1])))}};
    }
    BITWEIGH_INLINE Vec high_bytes(Vec x) {
        return {{bytes(vshrq_n_u16(words(x.val[0]), 8)), bytes(vshrq_n_u16(words(x.val[1]), 8))}};
    }
    BITWEIGH_INLINE uint8x16_t at_most_wide(uint8x16_t all, uint8x16_t high, uint16x8_t limit) {
        const uint16x8_t odd = words(high);
        const uint16x8_t even = vsubq_u16(words(all), vshlq_n_u16(odd, 8));
        // Low byte of each lane from the even row, high byte from the odd one.
        return vbslq_u8(bytes(vdupq_n_u16(0xff00)), bytes(vcleq_u16(odd, limit)),
                        bytes(vcleq_u16(even, limit)));
    }
    BITWEIGH_INLINE std::uint32_t rows_at_most_wide(Vec all, Vec high, std::uint16_t threshold) {
        const uint16x8_t limit = vdupq_n_u16(threshold);
        return mask_of(at_most_wide(all.val[0], high.val[0], limit)) |
               mask_of(at_most_wide(all.val[1], high.val[1], limit)) << 16;
    }
    BITWEIGH_INLINE void prefetch(const std::uint8_t* p) { __builtin_prefetch(p); }
};

}  // namespace

const Kernel neon_kernel = {"neon",
                            scan_narrow<Neon>,
                            scan_wide<Neon>,
                            scan_narrow_listed<Neon>,
                            scan_wide_listed<Neon>,
                            scan_lean<Neon>};

}  // namespace bitweigh

#endif
