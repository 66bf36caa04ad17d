// The plain Hamming distance, for the methods that the paper compares with.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "engine/rows/bits.h"

namespace bitweigh::paper {

// The cheapest code (Eq. 4): the binary query that the costs stand for.
inline std::vector<std::uint8_t> cheapest_code(const double* costs, std::size_t n_bits,
                                               BitOrder order) {
    std::vector<std::uint8_t> code(bytes_of(n_bits));
    for (std::size_t i = 0; i < n_bits; ++i) {
        if (costs[2 * i + 1] < costs[2 * i]) {
            code[i / 8] = static_cast<std::uint8_t>(code[i / 8] | bit_mask(i, order));
        }
    }
    return code;
}

inline std::size_t hamming_distance(const std::uint8_t* a, const std::uint8_t* b,
                                    std::size_t n_bytes) {
    int differing = 0;
    std::size_t p = 0;
    for (; p + 8 <= n_bytes; p += 8) {
        std::uint64_t x;
        std::uint64_t y;
        std::memcpy(&x, a + p, 8);
        std::memcpy(&y, b + p, 8);
        differing += std::popcount(x ^ y);
    }
    for (; p < n_bytes; ++p) differing += std::popcount(static_cast<unsigned>(a[p] ^ b[p]));
    return static_cast<std::size_t>(differing);
}

}  // namespace bitweigh::paper
