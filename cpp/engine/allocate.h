// How far to go in each band next, and what finishing would cost.
//
// A search may stop once the limits of its bands together exceed what the K-th best distance
// leaves, so which band advances is free: the one whose next step costs least. Steps are levels,
// equal parts of that budget; how many keys a level of a band holds is counted by a knapsack over
// its weights, rounded to levels. Counts only decide the order of the work, never an answer.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "engine/band_query.h"

namespace bitweigh {

// The number of keys of a band by level: keys[l] have a sum of about l levels.
inline constexpr std::size_t most_levels = 128;
using LevelCounts = std::array<float, most_levels + 2>;

// Counts up to level `last`.
void count_keys(const BandQuery& band, double level, std::size_t last, LevelCounts& keys);

// One band in the eyes of the allocation.
struct BandPlan {
    LevelCounts keys;
    float key_cost;      // of probing one key, nanoseconds
    std::size_t level;   // reached so far
    bool walked = true;  // whether the keys of level 0 were probed

    // What going from a level to the next costs.
    float step_cost(std::size_t from) const {
        const float skipped = from == 0 && !walked ? keys[0] : 0.0f;
        return (keys[from + 1] + skipped) * key_cost;
    }
};

class Allocation {
public:
    // To be called first, for every query.
    void resize(std::size_t n_bands);

    std::vector<BandPlan> bands;

    // Levels of the budget that keys are counted for. Later budgets are smaller and have fewer;
    // below `fewest_levels` they are too coarse and it pays to count anew.
    std::size_t budget_levels() const { return budget_levels_; }
    std::size_t fewest_levels() const { return budget_levels_ / 2; }
    // One band alone may have to exceed the budget.
    std::size_t last_level() const { return budget_levels_ + 1; }

    // Advances the cheapest bands until the next step would cost more than `most` in all, at least
    // one that costs anything, and at most until the levels add up to `needed` (<= last_level()).
    // Returns the cost.
    float advance(std::size_t needed, float most);

    // What it costs to go on until the levels add up to `needed`; stops counting above `enough`.
    // Infinite where the bands end before.
    float cost_to_finish(std::size_t needed, float enough);

private:
    // Scratch: where each band would be, and what its next step would cost.
    void look_ahead();
    std::size_t cheapest() const;
    void step(std::size_t band);
    std::size_t budget_levels_ = 0;
    std::vector<std::size_t> ahead_;
    std::vector<float> costs_;
    std::size_t sum_ = 0;  // of the levels ahead
};

}  // namespace bitweigh
