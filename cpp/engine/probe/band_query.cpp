#include "engine/probe/band_query.h"

namespace bitweigh {

void BandQuery::prepare(std::span<const std::uint16_t> bits, const double* flips,
                        const std::uint8_t* cheap_ones) {
    n_bits_ = bits.size();
    cheapest_ = 0;
    std::array<double, max_band_bits> own;
    for (std::size_t j = 0; j < n_bits_; ++j) {
        own[j] = flips[bits[j]];
        cheapest_ |= static_cast<Key>(cheap_ones[bits[j]]) << j;
    }
    // Every weight counts those before it: no branch depends on the data.
    for (std::size_t i = 0; i < n_bits_; ++i) {
        const double weight = own[i];
        std::int64_t place = 0;
        for (std::size_t j = 0; j < i; ++j) place += own[j] <= weight;
        for (std::size_t j = i + 1; j < n_bits_; ++j) place += own[j] < weight;
        weights_[static_cast<std::size_t>(place)] = weight;
        masks_[static_cast<std::size_t>(place)] = Key{1} << i;
    }
    max_sum_ = 0.0;
    for (std::size_t j = 0; j < n_bits_; ++j) max_sum_ += weights_[j];
}

}  // namespace bitweigh
