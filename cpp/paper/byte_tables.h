// Computes distances of packed codes with a table of 256 sums per byte: the paper's look-up tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/rows/bits.h"

namespace bitweigh::paper {

// Value is float, as in the implementations that the paper was measured with, or double.
template <class Value>
class ByteTables {
public:
    // `costs` has shape (n_bits, 2).
    ByteTables(const double* costs, std::size_t n_bits, BitOrder order)
        : n_bytes_(bytes_of(n_bits)), sums_(n_bytes_ * 256) {
        double sums[256];
        for (std::size_t p = 0; p < n_bytes_; ++p) {
            sums[0] = 0.0;
            for (std::size_t shift = 0; shift < 8; ++shift) {
                const std::size_t i = p * 8 + (order == BitOrder::big ? 7 - shift : shift);
                const double cost0 = i < n_bits ? costs[2 * i] : 0.0;
                const double cost1 = i < n_bits ? costs[2 * i + 1] : 0.0;
                double* const upper = sums + (std::size_t{1} << shift);
                for (std::size_t v = 0; v < (std::size_t{1} << shift); ++v) {
                    upper[v] = sums[v] + cost1;
                    sums[v] += cost0;
                }
            }
            for (std::size_t v = 0; v < 256; ++v) sums_[p * 256 + v] = static_cast<Value>(sums[v]);
        }
    }

    // The sum of weights of a code (Eq. 2). fixed_bytes, if not 0, is the number of bytes, known to
    // the compiler. From 16 bytes on four sums run side by side: one would wait for each addition.
    template <std::size_t fixed_bytes = 0>
    Value distance(const std::uint8_t* code) const {
        const std::size_t bytes = fixed_bytes ? fixed_bytes : n_bytes_;
        const Value* sums = sums_.data();
        if (bytes < 16) {
            Value sum = 0;
            for (std::size_t p = 0; p < bytes; ++p) sum += sums[p * 256 + code[p]];
            return sum;
        }
        Value parts[4] = {};
        std::size_t p = 0;
        for (; p + 4 <= bytes; p += 4) {
            for (std::size_t j = 0; j < 4; ++j) parts[j] += sums[(p + j) * 256 + code[p + j]];
        }
        for (; p < bytes; ++p) parts[0] += sums[p * 256 + code[p]];
        return (parts[0] + parts[1]) + (parts[2] + parts[3]);
    }

private:
    std::size_t n_bytes_;
    std::vector<Value> sums_;  // Cost sums of shape (n_bytes, 256).
};

}  // namespace bitweigh::paper
