#include "engine/scan/lean_tables.h"

#include <algorithm>

namespace bitweigh {

namespace {

// The flip sums of each value of `width` (4 or 8) bits of the code, from bits[first] on; a value
// with bits beyond the last adds nothing for them.
void add_flip_sums(const CostTable& costs, std::span<const std::uint16_t> bits, std::size_t first,
                   std::size_t width, double* sums) {
    sums[0] = 0.0;
    for (std::size_t j = 0; j < width; ++j) {
        const std::size_t size = std::size_t{1} << j;
        CostTable::BitFlips flips = {0.0, 0.0};
        if (first + j < bits.size()) flips = costs.bit_flips(bits[first + j]);
        for (std::size_t v = 0; v < size; ++v) {
            sums[size + v] = sums[v] + flips.one;
            sums[v] += flips.zero;
        }
    }
}

std::vector<double> flip_sums(const CostTable& costs, std::span<const std::uint16_t> bits,
                              std::size_t n_groups, std::size_t width) {
    std::vector<double> sums(n_groups << width);
    for (std::size_t i = 0; i < n_groups; ++i) {
        add_flip_sums(costs, bits, i * width, width, sums.data() + (i << width));
    }
    return sums;
}

}  // namespace

std::size_t LeanList::push_back(const BlockRows& rows, std::size_t begin, std::size_t end, Key key,
                                double flip_sum) {
    const std::size_t block_bytes = rows.lean->codes->n_bytes() * block_rows;
    const std::size_t first = begin / block_rows;
    const std::size_t last = (end - 1) / block_rows;
    for (std::size_t block = first; block <= last; ++block) {
        std::uint32_t mask = ~std::uint32_t{0};
        if (block == first) mask &= ~std::uint32_t{0} << begin % block_rows;
        if (block == last) mask &= ~std::uint32_t{0} >> (block_rows - 1 - (end - 1) % block_rows);
        starts.push_back(rows.blocks + block * block_bytes);
        places.push_back({static_cast<std::uint32_t>(block), mask, key, flip_sum});
    }
    return last - first + 1;
}

LeanTables::LeanTables(const CostTable& costs, const LeanCodes& codes)
    : codes_(codes),
      nibble_flips_(flip_sums(costs, codes.rest_bits(), 2 * codes.n_bytes(), 4)),
      n_key_bytes_(bytes_of(codes.key_bits().size())),
      key_flips_(flip_sums(costs, codes.key_bits(), n_key_bytes_, 8)),
      bounds_(costs, nibble_flips_.data(), codes.n_bytes(), false) {}

void LeanTables::lower_to(double worst) {
    if (!(worst < worst_)) return;
    worst_ = worst;
    bounds_.lower_to(worst);
}

}  // namespace bitweigh
