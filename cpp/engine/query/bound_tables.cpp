#include "engine/query/bound_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/tuning.h"

namespace bitweigh {

BoundTables::BoundTables(const CostTable& costs, const double* nibble_flips, std::size_t planes,
                         bool wide)
    : costs_(costs),
      nibble_flips_(nibble_flips),
      wide_(wide),
      entries_(planes * plane_table_bytes),
      quantised_flips_(planes * 32),
      byte_entries_(planes * 32) {
    const double n_tables = 2.0 * static_cast<double>(planes);
    if (wide) {
        // Sums stay below 2^16 without saturating.
        entry_max_ = std::min(wide_entry_max, static_cast<unsigned>(65534.0 / n_tables));
        steps_ = std::min(wide_steps_per_table * n_tables, 65000.0);
        rescale_below_ = steps_ / 2;
    } else {
        entry_max_ = 255;
        steps_ = narrow_steps;
        rescale_below_ = narrow_rescale_below;
    }
    tables_ = {entries_.data(), planes, 0};
}

void BoundTables::lower_to(double worst) {
    const double budget = std::max(0.0, costs_.flips_within(worst));
    if (!ready() || threshold_for(budget) < rescale_below_) quantise(budget);
    const double max_threshold = wide_ ? 65534.0 : 254.0;
    tables_.threshold = static_cast<std::uint16_t>(std::min(threshold_for(budget), max_threshold));
}

double BoundTables::threshold_for(double budget) const {
    return std::ceil(budget * scale_) + 1.0;
}

void BoundTables::quantise(double budget) {
    // The cap keeps the scale finite where the budget is zero or subnormal.
    const double scale = std::min(steps_ / budget, std::numeric_limits<double>::max());
    if (scale == scale_) return;
    scale_ = scale;
    ++quantisations_;
    const double cap = entry_max_;
    const auto max_entry = static_cast<int>(entry_max_);
    const double* flips = nibble_flips_;
    const std::size_t n = 2 * tables_.planes * 16;
    // Plain loops of unknown length, which the compiler turns into vector code.
    int capped = 0;
    for (std::size_t i = 0; i < n; ++i) {
        // Truncation is floor: flip sums are >= 0.
        const double exact = flips[i] * scale;
        quantised_flips_[i] = static_cast<int>(exact < cap ? exact : cap);
    }
    for (std::size_t i = 0; i < n; ++i) capped += quantised_flips_[i] == max_entry;
    capped_entries_ += static_cast<std::size_t>(capped);
    std::uint8_t* narrow = byte_entries_.data();
    for (std::size_t i = 0; i < n; ++i) narrow[i] = static_cast<std::uint8_t>(quantised_flips_[i]);
    for (std::size_t i = 0; i < n; i += 16) {
        std::copy(narrow + i, narrow + i + 16, entries_.data() + 2 * i);
        std::copy(narrow + i, narrow + i + 16, entries_.data() + 2 * i + 16);
    }
}

}  // namespace bitweigh
