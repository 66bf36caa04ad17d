#include "engine/allocate.h"

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

void Allocation::resize(std::size_t n_bands) {
    bands.resize(n_bands);
    budget_levels_ = std::clamp(levels_per_band * n_bands, fewest_budget_levels, most_levels);
}

void Allocation::look_ahead() {
    ahead_.clear();
    costs_.clear();
    sum_ = 0;
    for (const BandPlan& band : bands) {
        ahead_.push_back(band.level);
        costs_.push_back(band.level < last_level() ? band.step_cost(band.level) : infinity);
        sum_ += band.level;
    }
}

// No branch depends on which band it is.
std::size_t Allocation::cheapest() const {
    std::size_t best = 0;
    float cost = costs_[0];
    for (std::size_t b = 1; b < costs_.size(); ++b) {
        best = costs_[b] < cost ? b : best;
        cost = costs_[b] < cost ? costs_[b] : cost;
    }
    return best;
}

void Allocation::step(std::size_t band) {
    ++sum_;
    ++ahead_[band];
    costs_[band] = ahead_[band] < last_level() ? bands[band].step_cost(ahead_[band]) : infinity;
}

float Allocation::advance(std::size_t needed, float most) {
    look_ahead();
    float spent = 0.0f;
    while (sum_ < needed) {
        const std::size_t best = cheapest();
        const float cost = costs_[best];
        if (cost == infinity || (spent > 0.0f && spent + cost > most)) break;
        spent += cost;
        step(best);
    }
    for (std::size_t b = 0; b < bands.size(); ++b) bands[b].level = ahead_[b];
    return spent;
}

float Allocation::cost_to_finish(std::size_t needed, float enough) {
    look_ahead();
    float spent = 0.0f;
    while (sum_ < needed && spent <= enough) {
        const std::size_t best = cheapest();
        if (costs_[best] == infinity) return infinity;
        spent += costs_[best];
        step(best);
    }
    return spent;
}

}  // namespace bitweigh
