// How far to go in each band next, and what finishing would cost.
//
// A search may stop once the limits of its bands together exceed what the K-th best distance leaves,
// so which band advances is free: the one whose next step costs least. Steps are levels, equal
// parts of that budget; how many keys a level of a band holds is counted by a knapsack over its
// weights, rounded to levels. Counts only decide the order of the work, never an answer.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "engine/band_query.h"

namespace bitweigh {

inline constexpr std::size_t budget_levels = 48;
// One band alone may have to exceed the budget.
inline constexpr std::size_t last_level = budget_levels + 1;

// The number of keys of a band by level: keys[l] have a sum of about l levels.
using LevelCounts = std::array<float, last_level + 1>;

void count_keys(const BandQuery& band, double level, LevelCounts& keys);

// One band in the eyes of the allocation.
struct BandPlan {
    LevelCounts keys;
    float key_cost;     // of probing one key, nanoseconds
    std::size_t level;  // reached so far
};

// Advances the cheapest bands until the next step would cost more than `most` in all, at least one
// step, and at most until the levels add up to more than the budget. Returns the cost.
float advance(std::vector<BandPlan>& bands, float most);

// What it costs to go on until the levels add up to more than the budget; stops counting above
// `enough`. Infinite where the bands end before.
float cost_to_finish(std::vector<BandPlan> bands, float enough);

}  // namespace bitweigh
