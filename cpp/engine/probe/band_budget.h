// Which band goes on next, and what finishing would take.
//
// A search may stop once the limits of its bands together exceed what the K-th best distance
// leaves, so which band advances is free: the one whose next step takes the least time. Steps are
// levels, equal parts of that budget; how many keys a level of a band holds is counted by a
// knapsack over its weights, rounded to levels. Counts only decide the order of the work, never an
// answer.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "engine/probe/band_query.h"

namespace bitweigh {

// The number of keys of a band by level: keys[l] have a sum of about l levels.
inline constexpr std::size_t max_levels = 128;
using LevelCounts = std::array<float, max_levels + 2>;

// Counts up to level `last`.
void count_keys(const BandQuery& band, double level, std::size_t last, LevelCounts& keys);

// One band as the budget sees it.
struct BandLevels {
    LevelCounts keys;
    float key_ns;        // of probing one key
    std::size_t level;   // reached so far
    bool walked = true;  // whether the keys of level 0 were probed

    // What going from a level to the next takes.
    float step_ns(std::size_t from) const {
        const float skipped = from == 0 && !walked ? keys[0] : 0.0f;
        return (keys[from + 1] + skipped) * key_ns;
    }
};

class BandBudget {
public:
    // To be called first, for every query.
    void resize(std::size_t n_bands);

    std::vector<BandLevels> bands;

    // Levels of the budget that keys are counted for. Later budgets are smaller and have fewer;
    // below `min_levels` they are too coarse and it pays to count again.
    std::size_t budget_levels() const { return budget_levels_; }
    std::size_t min_levels() const { return budget_levels_ / 2; }
    // One band alone may have to exceed the budget.
    std::size_t last_level() const { return budget_levels_ + 1; }

    // Advances the cheapest bands until the next step would take more than `max_ns` in all, at
    // least by one step that takes any time, and at most until the levels add up to `needed` (<=
    // last_level()). Returns the time.
    float advance(std::size_t needed, float max_ns);

    // What it takes to go on until the levels add up to `needed`; stops counting above `max_ns`.
    // Infinite where the bands end before.
    float finish_ns(std::size_t needed, float max_ns);

private:
    // Scratch: where each band would be, and what its next step would take.
    void look_ahead();
    std::size_t cheapest() const;
    void step(std::size_t band);
    std::size_t budget_levels_ = 0;
    std::vector<std::size_t> ahead_;
    std::vector<float> step_ns_;
    std::size_t sum_ = 0;  // of the levels ahead
};

}  // namespace bitweigh
