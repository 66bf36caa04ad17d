#include "engine/probe/band_query.h"

namespace bitweigh {

void BandQuery::prepare(std::span<const std::uint16_t> bits, const double* flips,
                        const std::uint8_t* cheap_ones) {
    n_bits_ = bits.size();
    cheapest_ = 0;
    std::array<double, max_band_bits> unsorted;
    for (std::size_t j = 0; j < n_bits_; ++j) {
        unsorted[j] = flips[bits[j]];
        cheapest_ |= static_cast<Key>(cheap_ones[bits[j]]) << j;
    }
    // Sorts by counting, for each weight, those before it: no branch depends on the data.
    for (std::size_t i = 0; i < n_bits_; ++i) {
        const double weight = unsorted[i];
        std::int64_t rank = 0;
        for (std::size_t j = 0; j < i; ++j) rank += unsorted[j] <= weight;
        for (std::size_t j = i + 1; j < n_bits_; ++j) rank += unsorted[j] < weight;
        weights_[static_cast<std::size_t>(rank)] = weight;
        masks_[static_cast<std::size_t>(rank)] = Key{1} << i;
    }
    max_sum_ = 0.0;
    for (std::size_t j = 0; j < n_bits_; ++j) max_sum_ += weights_[j];
}

}  // namespace bitweigh
