// A query's flip sums quantised for the scan kernels, following the worst distance down.
//
// Every entry is floor(flip sum x scale), capped, so the sum of a code's entries never exceeds its
// flip sum x scale, and for a code within `worst` it never exceeds
//     threshold = ceil((worst - offset + slack) x scale) + 1.
// The + 1 pays for the rounding of the products (each is below 2^16, so off by less than 2^-36).
// Any finite scale > 0 is valid; it only decides how sharp the bound is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/query/cost_table.h"
#include "engine/scan/scan.h"

namespace bitweigh {

class BoundTables {
public:
    // Sums have 16 bits if `wide`, else 8. `costs` must outlive this.
    BoundTables(const CostTable& costs, bool wide)
        : BoundTables(costs, costs.nibble_flips(), costs.n_bytes(), wide) {}
    // For blocks of other planes than the bytes of the code: `nibble_flips` has shape (planes, 2,
    // 16) and must outlive this, too.
    BoundTables(const CostTable& costs, const double* nibble_flips, std::size_t planes, bool wide);

    // Must be called before the first scan and whenever `worst` has fallen; `worst` is finite.
    void lower_to(double worst);

    bool wide() const { return wide_; }
    const ScanTables& tables() const { return tables_; }
    // The sum that a kernel starts from for rows whose other bits have this flip sum.
    std::uint8_t base_of(double flip_sum) const {
        const double exact = flip_sum * scale_;
        return static_cast<std::uint8_t>(exact < 255.0 ? exact : 255.0);
    }

    // The number of quantisations after the first.
    std::size_t rescales() const { return quantisations_ ? quantisations_ - 1 : 0; }
    // The number of capped entries, over all quantisations.
    std::size_t capped_entries() const { return capped_entries_; }

private:
    bool ready() const { return scale_ > 0.0; }
    double threshold_for(double budget) const;
    void quantise(double budget);

    const CostTable& costs_;
    const double* nibble_flips_;
    bool wide_;
    double steps_;          // Approximate threshold right after a quantisation.
    double rescale_below_;  // Threshold at which the precision has halved.
    unsigned entry_max_;
    double scale_ = 0.0;  // Steps per unit of flip sum; 0 before the first quantisation.
    std::vector<std::uint8_t> entries_;  // Table entries in the layout of scan.h.
    // Scratch of quantise(): every entry once, as int and as byte.
    std::vector<int> quantised_flips_;
    std::vector<std::uint8_t> byte_entries_;
    ScanTables tables_;
    std::size_t quantisations_ = 0;
    std::size_t capped_entries_ = 0;
};

}  // namespace bitweigh
