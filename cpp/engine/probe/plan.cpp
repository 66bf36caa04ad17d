#include "engine/probe/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/probe/cost_model.h"
#include "engine/types.h"

namespace bitweigh {

double sum_of_limits(std::span<const double> limits) {
    double sum = 0.0;
    for (const double limit : limits) sum += std::max(0.0, limit);
    return sum;
}

void ProbePlan::start(std::span<const BandQuery> bands, std::size_t rows, double block_ns) {
    bands_ = bands;
    rows_ = rows;
    block_ns_ = block_ns;
    limits_.assign(bands.size(), -std::numeric_limits<double>::infinity());
    seen_.assign(bands.size(), {0.0f, 0.0f, 0.0f});
    budget_.resize(bands.size());
    level_ = 0.0;
    needed_ = 0;
}

double ProbePlan::target_without_bound(double all_flips) const {
    return std::max(
        {all_flips / 2, 2 * sum_of_limits(limits_), std::numeric_limits<double>::min()});
}

void ProbePlan::update(double target) {
    // NaN or infinite, and so not counted, if the level is 0: not set yet, or rounded to 0.
    const double levels = target / level_;
    const auto max = static_cast<double>(budget_.budget_levels());
    const auto min = static_cast<double>(budget_.min_levels());
    const bool counted = levels >= min && levels < max + 0.5;
    if (!counted) count(target);
    // The levels must exceed the target, even if it is a whole number of levels and was rounded
    // down.
    needed_ =
        counted ? static_cast<std::size_t>(levels * (1.0 + 0x1p-40)) + 1 : budget_.last_level();
    for (std::size_t b = 0; b < bands_.size(); ++b) {
        // Blocks per key of the band: those seen so far, and one average key.
        const auto keys = static_cast<double>(std::size_t{1} << bands_[b].n_bits());
        const double average = 1.0 + static_cast<double>(rows_) / (keys * block_rows);
        const double blocks = (average + seen_[b].blocks) / (1.0 + seen_[b].keys);
        budget_.bands[b].key_ns = static_cast<float>(cost_model.probe_ns(blocks, block_ns_));
        budget_.bands[b].probed = seen_[b].probed;
        seen_[b].keys *= cost_model.remembered_share;
        seen_[b].blocks *= cost_model.remembered_share;
    }
}

void ProbePlan::count(double target) {
    const std::size_t last = budget_.last_level();
    level_ = target / static_cast<double>(budget_.budget_levels());
    for (std::size_t b = 0; b < bands_.size(); ++b) {
        BandLevels& band = budget_.bands[b];
        count_keys(bands_[b], level_, last, band.keys);
        // The 1e-6 keeps a limit that is a whole number of levels from being rounded to one less.
        const double reached = std::max(0.0, limits_[b]) / level_ + 1e-6;
        band.level = reached < static_cast<double>(last) ? static_cast<std::size_t>(reached) : last;
    }
}

float ProbePlan::choose_next(double target, float max_ns) {
    const float step_ns = budget_.advance(needed_, max_ns);
    const double reached = next_by_levels();
    std::size_t levels = 0;
    for (const BandLevels& band : budget_.bands) levels += band.level;
    if (levels < needed_) return step_ns;
    if (reached > target) {
        lower_next(reached - target);
        // The limits must exceed the target in spite of rounding, or the search would never end.
        if (!(sum_of_limits(next_) > target)) next_by_levels();
    } else {
        // The level is so small that it was rounded away.
        next_[0] = std::nextafter(target, padding_distance);
    }
    return step_ns;
}

double ProbePlan::next_by_levels() {
    next_.clear();
    for (std::size_t b = 0; b < bands_.size(); ++b) {
        const std::size_t level = budget_.bands[b].level;
        const double limit = static_cast<double>(level) * level_;
        next_.push_back(level > 0 ? std::max(limits_[b], limit) : limits_[b]);
    }
    return sum_of_limits(next_);
}

void ProbePlan::lower_next(double excess) {
    // Leaves a small excess, larger than any rounding.
    excess *= 1.0 - 0x1p-20;
    while (excess > 0.0) {
        std::size_t slowest = 0;
        float max_ns = 0.0f;
        for (std::size_t b = 0; b < bands_.size(); ++b) {
            const BandLevels& band = budget_.bands[b];
            if (!(next_[b] > limits_[b])) continue;
            const float ns = band.keys[band.level] * band.key_ns;
            if (ns > max_ns) {
                max_ns = ns;
                slowest = b;
            }
        }
        if (max_ns == 0.0f) return;
        const double from = std::max(0.0, limits_[slowest]);
        const double decrease = std::min(excess, next_[slowest] - from);
        next_[slowest] -= decrease;
        excess -= decrease;
        // A band that would not advance beyond 0 need not be walked at all.
        if (next_[slowest] <= from) next_[slowest] = limits_[slowest];
    }
}

std::size_t ProbePlan::arrive() {
    std::size_t exhausted = 0;
    for (std::size_t b = 0; b < bands_.size(); ++b) {
        limits_[b] = next_[b];
        exhausted += limits_[b] >= bands_[b].max_sum();
    }
    return exhausted;
}

}  // namespace bitweigh
