#include "engine/allocate.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace bitweigh {

namespace {

std::size_t sum_of_levels(const std::vector<BandPlan>& bands) {
    std::size_t sum = 0;
    for (const BandPlan& band : bands) sum += band.level;
    return sum;
}

// The band whose next level is cheapest, and that cost; null if none has a next level.
BandPlan* cheapest_step(std::vector<BandPlan>& bands, float& cost) {
    BandPlan* best = nullptr;
    cost = std::numeric_limits<float>::infinity();
    for (BandPlan& band : bands) {
        if (band.level >= last_level) continue;
        const float own = band.keys[band.level + 1] * band.key_cost;
        if (own < cost) {
            cost = own;
            best = &band;
        }
    }
    return best;
}

}  // namespace

void count_keys(const BandQuery& band, double level, LevelCounts& keys) {
    LevelCounts other;
    LevelCounts* from = &keys;
    LevelCounts* to = &other;
    keys.fill(0.0f);
    keys[0] = 1.0f;
    for (std::size_t j = 0; j < band.n_bits(); ++j) {
        const double steps = band.weight(j) / level + 0.5;
        if (!(steps < static_cast<double>(last_level + 1))) break;
        const auto weight = static_cast<std::size_t>(steps);
        std::copy(from->begin(), from->begin() + static_cast<std::ptrdiff_t>(weight), to->begin());
        for (std::size_t l = weight; l <= last_level; ++l) {
            (*to)[l] = (*from)[l] + (*from)[l - weight];
        }
        std::swap(from, to);
    }
    if (from != &keys) keys = other;
}

float advance(std::vector<BandPlan>& bands, float most) {
    float spent = 0.0f;
    for (std::size_t sum = sum_of_levels(bands); sum <= budget_levels; ++sum) {
        float cost = 0.0f;
        BandPlan* best = cheapest_step(bands, cost);
        if (best == nullptr || (spent > 0.0f && spent + cost > most)) break;
        spent += cost;
        ++best->level;
    }
    return spent;
}

float cost_to_finish(std::vector<BandPlan> bands, float enough) {
    float spent = 0.0f;
    for (std::size_t sum = sum_of_levels(bands); sum <= budget_levels && spent <= enough; ++sum) {
        float cost = 0.0f;
        BandPlan* best = cheapest_step(bands, cost);
        if (best == nullptr) return std::numeric_limits<float>::infinity();
        spent += cost;
        ++best->level;
    }
    return spent;
}

}  // namespace bitweigh
