// Decides which band advances next, and predicts how long finishing would take.
//
// A search may stop once the limits of its bands together exceed a budget, the flip sum that the
// K-th best distance leaves. Any band may advance, so the one whose next step takes the least time
// does. Steps are levels, equal parts of that budget; the number of keys in each level of a band is
// counted by a knapsack over its weights, rounded to levels. Counts only decide the order of the
// work, never an answer.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "engine/probe/band_query.h"

namespace bitweigh {

// The number of keys of a band by level: keys[l] have a sum of about l levels.
inline constexpr std::size_t max_levels = 128;
using LevelCounts = std::array<float, max_levels + 2>;

// Counts the keys of a band up to level `last`; `level` is the flip sum of one level.
void count_keys(const BandQuery& band, double level, std::size_t last, LevelCounts& keys);

// A band as the budget sees it.
struct BandLevels {
    LevelCounts keys;
    float key_ns;       // Time of probing one key.
    std::size_t level;  // Level reached so far.
    float probed;       // Number of keys that were probed.

    // The time of advancing from a level to the next.
    float step_ns(std::size_t from) const {
        // Weights of less than half a level are rounded to 0: then there are many keys of level 0.
        const float unprobed = from == 0 ? std::max(0.0f, keys[0] - probed) : 0.0f;
        return (keys[from + 1] + unprobed) * key_ns;
    }
};

class BandBudget {
public:
    // Must be called first, for every query.
    void resize(std::size_t n_bands);

    std::vector<BandLevels> bands;

    // The number of levels of the budget that keys are counted for. Later budgets are smaller and
    // have fewer; below `min_levels` they are too coarse and it pays to count again.
    std::size_t budget_levels() const { return budget_levels_; }
    std::size_t min_levels() const { return budget_levels_ / 2; }
    // The last level counted: a single band may have to exceed the budget.
    std::size_t last_level() const { return budget_levels_ + 1; }

    // Advances the cheapest bands until the total time would exceed `max_ns`, but by at least one
    // step that takes any time, and at most until the levels add up to `needed` (<= last_level()).
    // Returns the time.
    float advance(std::size_t needed, float max_ns);

    // The time until the levels add up to `needed`; stops counting above `max_ns`. Infinite if the
    // bands end before that.
    float finish_ns(std::size_t needed, float max_ns);

private:
    // Copies the state of the bands into ahead_, step_ns_ and sum_.
    void look_ahead();
    std::size_t cheapest() const;
    void step(std::size_t band);
    std::size_t budget_levels_ = 0;
    // Scratch of advance() and finish_ns().
    std::vector<std::size_t> ahead_;  // Level that each band would have reached.
    std::vector<float> step_ns_;      // Time of each band's next step.
    std::size_t sum_ = 0;             // Sum of ahead_.
};

}  // namespace bitweigh
