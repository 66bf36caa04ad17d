// One query in the two forms a search needs.
//
// As the definition: per byte of a code a table of 256 doubles, each the costs of that byte's bits
// added in ascending bit number from +0.0; a distance is those table values added in ascending
// byte number from +0.0. Distances are computed in no other way.
//
// As a normalised query, for pruning: per nibble of a code a table of 16 flip sums (how much more a
// value costs than the cheapest), the offset (the cost of the cheapest code) and the slack.
//
// Why the slack is enough. Let u = 2^-53 and M = sum_i max(|cost[i,0]|, |cost[i,1]|). Against real
// arithmetic a distance is off by at most (n_bits / 8 + 9) u M, the offset by n_bits u M, the flip
// sums of a code together by 2 u M for the differences and 6 u M for adding four of them, and the
// three operations of worst - offset + slack by 6 u M, to first order in u. Together that is less
// than (2 n_bits + 24) u M, so slack = 4 (n_bits + 8) u M, rounded up, covers it and all
// higher-order terms: a code with distance <= worst has real flip sums <= worst - offset + slack.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/rows/bits.h"
#include "engine/rows/lean_codes.h"
#include "engine/types.h"

namespace bitweigh {

// The reason why a query's costs are refused, if they are.
struct CostFault {
    enum class Kind { none, not_finite, too_large } kind = Kind::none;
    std::size_t bit = 0;    // Bit of the first cost that is not finite.
    std::size_t value = 0;  // Bit value, 0 or 1, of that cost.
};

// Checks an array of shape (n_bits, 2). Sums of absolute values above 2^1020 are refused, so that
// no sum, no difference and no slack below can overflow.
CostFault find_cost_fault(const double* costs, std::size_t n_bits);

class CostTable {
public:
    // `costs` has shape (n_bits, 2) and no fault, and must outlive this.
    CostTable(const double* costs, std::size_t n_bits, BitOrder order);

    std::size_t n_bits() const { return n_bits_; }
    std::size_t n_bytes() const { return n_bytes_; }
    double offset() const { return offset_; }
    double slack() const { return slack_; }
    // The distance of the cheapest code. No code has a smaller distance, to the last bit:
    // floating-point sums round monotonically, so a more expensive bit never makes a sum smaller.
    double least_distance() const { return least_distance_; }

    // An upper limit of the total flip sum of any code with distance <= `worst`, which is not +inf.
    // The cap keeps the difference from overflowing for a radius near the largest double; it allows
    // every code, since flip sums are at most 2^1020.
    double flips_within(double worst) const { return std::min(worst - offset_ + slack_, 0x1p1021); }

    // The distance of row r (0-31) of a block.
    double distance(const std::uint8_t* block, std::size_t r) const {
        double sum = 0.0;
        const double* table = byte_sums_.get();
        for (std::size_t p = 0; p < n_bytes_; ++p, table += 256) {
            sum += table[block[p * block_rows + r]];
        }
        return sum;
    }

    // The distance of a code given as a number.
    double distance(CodeNumber code) const {
        double sum = 0.0;
        const double* table = byte_sums_.get();
        for (std::size_t p = 0; p < n_bytes_; ++p, table += 256, code >>= 8) {
            sum += table[code & 255];
        }
        return sum;
    }

    // The distances of all 32 rows of a block.
    void distances(const std::uint8_t* block, double out[block_rows]) const;

    // How much more the two values of a bit cost than the cheap one: one of them is 0.
    struct BitFlips {
        double zero;
        double one;
    };
    BitFlips bit_flips(std::size_t bit) const {
        const double flip = costs_[2 * bit + 1] - costs_[2 * bit];
        return {std::max(0.0, -flip), std::max(0.0, flip)};
    }

    // Flip sums of shape (n_bytes, 2, 16); nibble 0 is the low one of the byte.
    const double* nibble_flips() const { return nibble_flips_.get(); }

private:
    void fill_byte_sums(const double* costs, BitOrder order);
    void fill_nibble_flips(const double* costs, BitOrder order);

    const double* costs_;
    std::size_t n_bits_;
    std::size_t n_bytes_;
    double offset_;
    double slack_;
    double least_distance_;
    std::unique_ptr<double[]> byte_sums_;     // Cost sums of shape (n_bytes, 256).
    std::unique_ptr<double[]> nibble_flips_;  // Flip sums of shape (n_bytes, 2, 16).
};

}  // namespace bitweigh
