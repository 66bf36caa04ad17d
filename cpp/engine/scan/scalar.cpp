// The kernel in plain C++, for CPUs without the others and as the plainest statement of the sums.
#include <algorithm>
#include <array>

#include "engine/scan/kernels.h"

#define BITWEIGH_TARGET
#include "engine/scan/scan_loop.h"

namespace bitweigh {
namespace {

struct Scalar {
    using Vec = std::array<std::uint8_t, block_rows>;
    static constexpr int group = 1;
    static constexpr int wide_group = 1;

    template <class Byte>
    static Vec each(Byte byte) {
        Vec out;
        for (std::size_t r = 0; r < block_rows; ++r) out[r] = static_cast<std::uint8_t>(byte(r));
        return out;
    }
    // 16-bit lanes are pairs of bytes, the even row's byte first.
    static unsigned word(const Vec& x, std::size_t lane) { return x[2 * lane] | x[2 * lane + 1] << 8; }
    template <class Word>
    static Vec each_word(Word word) {
        Vec out;
        for (std::size_t lane = 0; lane < block_rows / 2; ++lane) {
            const unsigned value = word(lane);
            out[2 * lane] = static_cast<std::uint8_t>(value);
            out[2 * lane + 1] = static_cast<std::uint8_t>(value >> 8);
        }
        return out;
    }

    static Vec zero() { return Vec{}; }
    static Vec load(const std::uint8_t* p) {
        return each([&](std::size_t r) { return p[r]; });
    }
    static Vec load_table(const std::uint8_t* p) { return load(p); }
    static Vec lookup_low(const Vec& table, const Vec& x) {
        return each([&](std::size_t r) { return table[x[r] & 15]; });
    }
    static Vec lookup_high(const Vec& table, const Vec& x) {
        return each([&](std::size_t r) { return table[x[r] >> 4]; });
    }
    static Vec add_saturating(const Vec& a, const Vec& b) {
        return each([&](std::size_t r) { return std::min(a[r] + b[r], 255); });
    }
    static Vec add_bytes(const Vec& a, const Vec& b) {
        return each([&](std::size_t r) { return a[r] + b[r]; });
    }
    static Vec least(const Vec& a, const Vec& b) {
        return each([&](std::size_t r) { return std::min(a[r], b[r]); });
    }
    static std::uint32_t rows_at_most(const Vec& x, std::uint8_t threshold) {
        std::uint32_t rows = 0;
        for (std::size_t r = 0; r < block_rows; ++r) {
            rows |= static_cast<std::uint32_t>(x[r] <= threshold) << r;
        }
        return rows;
    }
    static bool any_at_most(const Vec& x, std::uint8_t threshold) {
        return rows_at_most(x, threshold) != 0;
    }
    static Vec add_words(const Vec& a, const Vec& b) {
        return each_word([&](std::size_t lane) { return word(a, lane) + word(b, lane); });
    }
    static Vec high_bytes(const Vec& x) {
        return each_word([&](std::size_t lane) { return word(x, lane) >> 8; });
    }
    static std::uint32_t rows_at_most_wide(const Vec& all, const Vec& high,
                                           std::uint16_t threshold) {
        std::uint32_t rows = 0;
        for (std::size_t lane = 0; lane < block_rows / 2; ++lane) {
            const unsigned odd = word(high, lane);
            const unsigned even = (word(all, lane) - (odd << 8)) & 0xffffu;
            rows |= static_cast<std::uint32_t>(even <= threshold) << (2 * lane);
            rows |= static_cast<std::uint32_t>(odd <= threshold) << (2 * lane + 1);
        }
        return rows;
    }
    static void prefetch(const std::uint8_t*) {}
};

}  // namespace

const Kernel scalar_kernel = {"scalar", scan_narrow<Scalar>, scan_wide<Scalar>};

}  // namespace bitweigh
