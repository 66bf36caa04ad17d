// Plans how far to walk each band of a segment next.
//
// The limit of a band is the flip sum up to which all of its keys were probed. A search ends when
// the limits add up to more than a target, so each round does this: determine the target, count the
// keys between the limits and the target by level, advance the bands whose keys take the least
// time, and walk each band from its limit to the next one. This file does all of that but the walk:
// it knows bands and time, but no rows and no blocks.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/probe/band_budget.h"
#include "engine/probe/band_query.h"

namespace bitweigh {

// The sum of limits; a band that was not walked adds nothing.
double sum_of_limits(std::span<const double> limits);

class ProbePlan {
public:
    // Must be called first, for every query. `bands` must outlive the use of the plan. `rows` is
    // the number of rows of the segment, `block_ns` the time of scanning a block.
    void start(std::span<const BandQuery> bands, std::size_t rows, double block_ns);

    // The limit of each band: -inf before its first walk, then at least 0.
    std::span<const double> limits() const { return limits_; }
    // The limits after the next step.
    std::span<const double> next() const { return next_; }

    // The keys of a band that were looked up and the blocks they led to, where earlier rounds count
    // less, and all keys that were probed; counted by the caller.
    struct Seen {
        float keys;
        float blocks;
        float probed = 0.0f;
    };
    Seen& seen(std::size_t band) { return seen_[band]; }

    // Sets the next limits to the cheapest key of each band: its rows often give a bound close to
    // the final one.
    void choose_cheapest_keys() { next_.assign(bands_.size(), 0.0); }

    // A target for when fewer than K rows were seen: a growing part of `all_flips`, the sum of all
    // flip weights. One band reaches its last key before the limits add up to all of them.
    double target_without_bound(double all_flips) const;

    // Begins a round: counts the keys of each band by level, and estimates the time of each.
    void update(double target);
    // The time until the limits exceed the target; stops counting above `max_ns`.
    float finish_ns(float max_ns) { return budget_.finish_ns(needed_, max_ns); }
    // Chooses the next limits: as far as `max_ns` allows, but at least one step, and no farther
    // than the target requires. Returns the time that this takes.
    float choose_next(double target, float max_ns);

    // Makes the next limits the limits, after every key up to them was probed. Returns the number
    // of bands that have no key left.
    std::size_t arrive();

private:
    // Chooses the size of a level and counts the keys by level.
    void count(double target);
    // Sets the next limits from the levels reached; returns their sum.
    double next_by_levels();
    // Lowers the next limits of the most expensive bands by `excess` in all: the last step may go
    // beyond the target by up to a level.
    void lower_next(double excess);

    std::span<const BandQuery> bands_;
    std::size_t rows_ = 0;   // Number of rows of the segment.
    double block_ns_ = 0.0;  // Time of scanning a block.
    std::vector<double> limits_;
    std::vector<double> next_;
    std::vector<Seen> seen_;
    BandBudget budget_;
    double level_ = 0.0;      // Flip sum of a level; 0 before keys are counted.
    std::size_t needed_ = 0;  // Number of levels that exceeds the target.
};

}  // namespace bitweigh
