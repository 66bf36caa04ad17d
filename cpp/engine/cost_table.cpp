#include "engine/cost_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace bitweigh {

namespace {

constexpr double largest_sum = 0x1p1020;

// Byte values with their eight bits in the other order.
constexpr std::array<std::uint8_t, 256> reverse_bytes() {
    std::array<std::uint8_t, 256> reversed{};
    for (unsigned v = 0; v < 256; ++v) {
        for (unsigned j = 0; j < 8; ++j) {
            if (v >> j & 1) reversed[v] = static_cast<std::uint8_t>(reversed[v] | 128u >> j);
        }
    }
    return reversed;
}
constexpr std::array<std::uint8_t, 256> reversed = reverse_bytes();

}  // namespace

CostFault find_cost_fault(const double* costs, std::size_t n_bits) {
    double sum = 0.0;
    for (std::size_t i = 0; i < 2 * n_bits; ++i) sum += std::fabs(costs[i]);
    // False for NaN too.
    if (sum <= largest_sum) return {};
    for (std::size_t i = 0; i < 2 * n_bits; ++i) {
        if (!std::isfinite(costs[i])) return {CostFault::Kind::not_finite, i / 2, i % 2};
    }
    return {CostFault::Kind::too_large, 0, 0};
}

CostTable::CostTable(const double* costs, std::size_t n_bits, BitOrder order)
    : n_bits_(n_bits),
      n_bytes_(bytes_of(n_bits)),
      byte_sums_(n_bytes_ * 256),
      nibble_flips_(n_bytes_ * 2 * 16) {
    double offset = 0.0;
    double magnitude = 0.0;
    for (std::size_t i = 0; i < n_bits; ++i) {
        offset += std::min(costs[2 * i], costs[2 * i + 1]);
        magnitude += std::max(std::fabs(costs[2 * i]), std::fabs(costs[2 * i + 1]));
    }
    offset_ = offset;
    // The 2^-40 share pays for the rounding of `magnitude` and of the product.
    const double slack = 4.0 * static_cast<double>(n_bits + 8) * 0x1p-53 * magnitude * (1 + 0x1p-40);
    slack_ = std::nextafter(slack, std::numeric_limits<double>::infinity());
    fill_byte_sums(costs, order);
    fill_nibble_flips(costs, order);
}

void CostTable::distances(const std::uint8_t* block, double out[block_rows]) const {
    std::fill(out, out + block_rows, 0.0);
    const double* table = byte_sums_.data();
    for (std::size_t p = 0; p < n_bytes_; ++p, table += 256) {
        const std::uint8_t* plane = block + p * block_rows;
        for (std::size_t r = 0; r < block_rows; ++r) out[r] += table[plane[r]];
    }
}

// Both halves are added anew at every bit: adding the difference of two costs to one half would
// give other values than the definition.
void CostTable::fill_byte_sums(const double* costs, BitOrder order) {
    double sums[256];
    for (std::size_t p = 0; p < n_bytes_; ++p) {
        const std::size_t first = p * 8;
        const std::size_t bits = std::min<std::size_t>(8, n_bits_ - first);
        // sums[v]: the costs of the bits so far, bit j of the byte taken from bit j of v.
        sums[0] = 0.0;
        for (std::size_t j = 0; j < bits; ++j) {
            const double cost0 = costs[2 * (first + j)];
            const double cost1 = costs[2 * (first + j) + 1];
            double* const upper = sums + (std::size_t{1} << j);
            for (std::size_t v = 0; v < (std::size_t{1} << j); ++v) {
                upper[v] = sums[v] + cost1;
                sums[v] = sums[v] + cost0;
            }
        }
        // Unused bits are never set in a stored code, but may be in a damaged mapped file: masked
        // off, so that every entry has a finite value.
        double* table = byte_sums_.data() + p * 256;
        const std::size_t used = (std::size_t{1} << bits) - 1;
        if (order == BitOrder::little) {
            for (std::size_t v = 0; v < 256; ++v) table[v] = sums[v & used];
        } else {
            for (std::size_t v = 0; v < 256; ++v) table[v] = sums[reversed[v] & used];
        }
    }
}

void CostTable::fill_nibble_flips(const double* costs, BitOrder order) {
    for (std::size_t p = 0; p < n_bytes_; ++p) {
        // Per mask bit: what paying the dear value costs more, and whether 1 is the dear one.
        // Unused bits cost nothing either way.
        double flip[8] = {};
        bool one_is_dear[8] = {};
        for (std::size_t i = p * 8; i < std::min(n_bits_, p * 8 + 8); ++i) {
            const std::size_t place = order == BitOrder::big ? 7 - i % 8 : i % 8;
            flip[place] = std::fabs(costs[2 * i + 1] - costs[2 * i]);
            one_is_dear[place] = costs[2 * i + 1] > costs[2 * i];
        }
        for (std::size_t nibble = 0; nibble < 2; ++nibble) {
            double* table = nibble_flips_.data() + (2 * p + nibble) * 16;
            table[0] = 0.0;
            for (std::size_t j = 0; j < 4; ++j) {
                const double d = flip[4 * nibble + j];
                const double d0 = one_is_dear[4 * nibble + j] ? 0.0 : d;
                const double d1 = one_is_dear[4 * nibble + j] ? d : 0.0;
                const std::size_t size = std::size_t{1} << j;
                for (std::size_t v = 0; v < size; ++v) {
                    table[v + size] = table[v] + d1;
                    table[v] += d0;
                }
            }
        }
    }
}

}  // namespace bitweigh
