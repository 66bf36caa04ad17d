#include "engine/band_query.h"

namespace bitweigh {

void BandQuery::prepare(std::span<const std::uint16_t> bits, const double* flips,
                        const std::uint8_t* cheap_ones) {
    n_bits_ = bits.size();
    cheapest_ = 0;
    std::array<double, max_band_bits> own;
    std::array<std::uint32_t, max_band_bits> places{};
    for (std::size_t j = 0; j < n_bits_; ++j) {
        own[j] = flips[bits[j]];
        cheapest_ |= static_cast<Key>(cheap_ones[bits[j]]) << j;
    }
    // Every weight counts the smaller ones: no branch depends on the data.
    for (std::size_t i = 0; i < n_bits_; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            const std::uint32_t after = own[j] <= own[i];
            places[i] += after;
            places[j] += 1 - after;
        }
    }
    for (std::size_t j = 0; j < n_bits_; ++j) {
        weights_[places[j]] = own[j];
        masks_[places[j]] = Key{1} << j;
    }
    dearest_ = 0.0;
    for (std::size_t j = 0; j < n_bits_; ++j) dearest_ += weights_[j];
}

}  // namespace bitweigh
