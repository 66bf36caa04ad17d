#include "engine/query/cost_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace bitweigh {

namespace {

constexpr double max_cost_sum = 0x1p1020;

// Every byte value with its eight bits reversed.
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
    // False if the sum is NaN.
    if (sum <= max_cost_sum) return {};
    for (std::size_t i = 0; i < 2 * n_bits; ++i) {
        if (!std::isfinite(costs[i])) return {CostFault::Kind::not_finite, i / 2, i % 2};
    }
    return {CostFault::Kind::too_large, 0, 0};
}

CostTable::CostTable(const double* costs, std::size_t n_bits, BitOrder order)
    : costs_(costs),
      n_bits_(n_bits),
      n_bytes_(bytes_of(n_bits)),
      byte_sums_(std::make_unique_for_overwrite<double[]>(n_bytes_ * 256)),
      nibble_flips_(std::make_unique_for_overwrite<double[]>(n_bytes_ * 2 * 16)) {
    double offset = 0.0;
    double magnitude = 0.0;
    double min_distance = 0.0;
    double group = 0.0;
    for (std::size_t i = 0; i < n_bits; ++i) {
        const double cheap = std::min(costs[2 * i], costs[2 * i + 1]);
        offset += cheap;
        group += cheap;
        if (i % 8 == 7 || i + 1 == n_bits) {
            min_distance += group;
            group = 0.0;
        }
        magnitude += std::max(std::fabs(costs[2 * i]), std::fabs(costs[2 * i + 1]));
    }
    offset_ = offset;
    least_distance_ = min_distance;
    // The factor 1 + 2^-40 covers the rounding of `magnitude` and of the product.
    const double slack =
        4.0 * static_cast<double>(n_bits + 8) * 0x1p-53 * magnitude * (1 + 0x1p-40);
    slack_ = std::nextafter(slack, std::numeric_limits<double>::infinity());
    fill_byte_sums(costs, order);
    fill_nibble_flips(costs, order);
}

void CostTable::distances(const std::uint8_t* block, double out[block_rows]) const {
    std::fill(out, out + block_rows, 0.0);
    const double* table = byte_sums_.get();
    for (std::size_t p = 0; p < n_bytes_; ++p, table += 256) {
        const std::uint8_t* plane = block + p * block_rows;
        for (std::size_t r = 0; r < block_rows; ++r) out[r] += table[plane[r]];
    }
}

namespace {

// Extends a table of the sums of j bits to j + 1 bits. Costs are added to both halves: adding the
// difference of two costs to one half would give other values than the definition. With j known at
// compile time the vector code needs no checks: twice as fast as a loop over j.
template <std::size_t j>
inline void add_bit(double* __restrict sums, const double* costs) {
    constexpr std::size_t size = std::size_t{1} << j;
    double* __restrict upper = sums + size;
    for (std::size_t v = 0; v < size; ++v) {
        const double sum = sums[v];
        upper[v] = sum + costs[2 * j + 1];
        sums[v] = sum + costs[2 * j];
    }
}

template <std::size_t... j>
void add_bits(double* sums, const double* costs, std::size_t bits, std::index_sequence<j...>) {
    sums[0] = 0.0;
    ((j < bits ? add_bit<j>(sums, costs) : void()), ...);
}

}  // namespace

void CostTable::fill_byte_sums(const double* costs, BitOrder order) {
    double sums[256];
    for (std::size_t p = 0; p < n_bytes_; ++p) {
        const std::size_t bits = std::min<std::size_t>(8, n_bits_ - p * 8);
        double* table = byte_sums_.get() + p * 256;
        // Sums in little bit order: bit j of the index is bit j of the group.
        double* little_sums = order == BitOrder::little && bits == 8 ? table : sums;
        add_bits(little_sums, costs + p * 16, bits, std::make_index_sequence<8>());
        if (little_sums == table) continue;
        // Unused bits are never set in a stored code, but may be in a damaged mapped file: they are
        // masked off, so that every entry has a finite value.
        const std::size_t used = (std::size_t{1} << bits) - 1;
        for (std::size_t v = 0; v < 256; ++v) {
            table[v] = sums[(order == BitOrder::little ? v : reversed[v]) & used];
        }
    }
}

void CostTable::fill_nibble_flips(const double* costs, BitOrder order) {
    for (std::size_t p = 0; p < n_bytes_; ++p) {
        // For each bit of the byte, how much more its two values cost than the cheap one. Unused
        // bits cost nothing either way.
        double flips[16] = {};
        for (std::size_t i = p * 8; i < std::min(n_bits_, p * 8 + 8); ++i) {
            const std::size_t shift = order == BitOrder::big ? 7 - i % 8 : i % 8;
            const double flip = costs[2 * i + 1] - costs[2 * i];
            flips[2 * shift] = std::max(0.0, -flip);
            flips[2 * shift + 1] = std::max(0.0, flip);
        }
        for (std::size_t nibble = 0; nibble < 2; ++nibble) {
            add_bits(nibble_flips_.get() + (2 * p + nibble) * 16, flips + 8 * nibble, 4,
                     std::make_index_sequence<4>());
        }
    }
}

}  // namespace bitweigh
