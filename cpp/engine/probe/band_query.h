// One query as one band sees it: the cheapest key, and the weight of flipping each of its bits.
//
// The keys within a limit are walked depth first, without a heap. With flip weights in ascending
// order, every subset whose sum is within the limit is reached through subsets that are, and the
// first bit that exceeds the limit ends a branch, because the later ones cost at least as much:
// sums of floats round monotonically. Weights are always added in ascending order, so a key always
// has the same sum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "engine/rows/segment.h"

namespace bitweigh {

class BandQuery {
public:
    // `flips` has the flip weight of each bit of the code, `cheap_ones` whether 1 is its cheap
    // value.
    void prepare(std::span<const std::uint16_t> bits, const double* flips,
                 const std::uint8_t* cheap_ones);

    std::size_t n_bits() const { return n_bits_; }
    Key cheapest() const { return cheapest_; }
    // The j-th smallest flip weight.
    double weight(std::size_t j) const { return weights_[j]; }
    // The flip sum of the most expensive key.
    double max_sum() const { return max_sum_; }

    // Calls emit(key, sum) once for every key whose sum is above `above` and at most `limit`, until
    // it returns false. Returns whether all keys were emitted. above < 0 includes the cheapest key.
    template <class Emit>
    bool walk(double above, double limit, Emit emit) const {
        if (0.0 > above && 0.0 <= limit && !emit(cheapest_, 0.0)) return false;
        return extend(0, 0.0, cheapest_, above, limit, emit);
    }

private:
    template <class Emit>
    bool extend(std::size_t first, double sum, Key key, double above, double limit,
                Emit& emit) const {
        for (std::size_t j = first; j < n_bits_; ++j) {
            const double next = sum + weights_[j];
            if (next > limit) return true;
            const Key flipped = key ^ masks_[j];
            if (next > above && !emit(flipped, next)) return false;
            if (!extend(j + 1, next, flipped, above, limit, emit)) return false;
        }
        return true;
    }

    std::size_t n_bits_ = 0;
    Key cheapest_ = 0;
    double max_sum_ = 0.0;
    std::array<double, max_band_bits> weights_;  // Flip weights in ascending order.
    std::array<Key, max_band_bits> masks_;       // Key bit of each weight.
};

}  // namespace bitweigh
