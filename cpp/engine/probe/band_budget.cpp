#include "engine/probe/band_budget.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/tuning.h"

namespace bitweigh {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

}  // namespace

void count_keys(const BandQuery& band, double level, std::size_t last, LevelCounts& keys) {
    LevelCounts other;
    LevelCounts* from = &keys;
    LevelCounts* to = &other;
    keys[0] = 1.0f;
    std::fill_n(keys.begin() + 1, last, 0.0f);
    for (std::size_t j = 0; j < band.n_bits(); ++j) {
        const double steps = band.weight(j) / level + 0.5;
        if (!(steps < static_cast<double>(last + 1))) break;
        const auto weight = static_cast<std::size_t>(steps);
        std::copy_n(from->begin(), weight, to->begin());
        for (std::size_t l = weight; l <= last; ++l) {
            (*to)[l] = (*from)[l] + (*from)[l - weight];
        }
        std::swap(from, to);
    }
    if (from != &keys) std::copy_n(other.begin(), last + 1, keys.begin());
}

void BandBudget::resize(std::size_t n_bands) {
    bands.resize(n_bands);
    budget_levels_ = std::clamp(levels_per_band * n_bands, min_budget_levels, max_levels);
}

void BandBudget::look_ahead() {
    ahead_.clear();
    step_ns_.clear();
    sum_ = 0;
    for (const BandLevels& band : bands) {
        ahead_.push_back(band.level);
        step_ns_.push_back(band.level < last_level() ? band.step_ns(band.level) : infinity);
        sum_ += band.level;
    }
}

std::size_t BandBudget::cheapest() const {
    // No branch depends on which band is the cheapest.
    std::size_t best = 0;
    float min_ns = step_ns_[0];
    for (std::size_t b = 1; b < step_ns_.size(); ++b) {
        best = step_ns_[b] < min_ns ? b : best;
        min_ns = step_ns_[b] < min_ns ? step_ns_[b] : min_ns;
    }
    return best;
}

void BandBudget::step(std::size_t band) {
    ++sum_;
    ++ahead_[band];
    step_ns_[band] = ahead_[band] < last_level() ? bands[band].step_ns(ahead_[band]) : infinity;
}

float BandBudget::advance(std::size_t needed, float max_ns) {
    look_ahead();
    float spent_ns = 0.0f;
    while (sum_ < needed) {
        const std::size_t best = cheapest();
        const float ns = step_ns_[best];
        if (ns == infinity || (spent_ns > 0.0f && spent_ns + ns > max_ns)) break;
        spent_ns += ns;
        step(best);
    }
    for (std::size_t b = 0; b < bands.size(); ++b) bands[b].level = ahead_[b];
    return spent_ns;
}

float BandBudget::finish_ns(std::size_t needed, float max_ns) {
    look_ahead();
    float spent_ns = 0.0f;
    while (sum_ < needed && spent_ns <= max_ns) {
        const std::size_t best = cheapest();
        if (step_ns_[best] == infinity) return infinity;
        spent_ns += step_ns_[best];
        step(best);
    }
    return spent_ns;
}

}  // namespace bitweigh
