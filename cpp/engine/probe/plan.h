// How far to walk each band of a segment next.
//
// The limit of a band is the sum up to which all of its keys were probed. A search ends when the
// limits add up to more than a target, so a round of it goes like this: take the target, count the
// keys between the limits and the target by level, advance the bands whose keys take the least
// time, and walk each band from its limit to the next one. This file has all of that but the walk:
// it knows bands and time, no rows and no blocks.
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
    // To be called first, for every query. `bands` stay where they are as long as the plan is used;
    // the segment has `rows`, and a block takes `block_ns`.
    void start(std::span<const BandQuery> bands, std::size_t rows, double block_ns);

    // The limit of each band: -inf before its first walk, then at least 0.
    std::span<const double> limits() const { return limits_; }
    // Those after the next step.
    std::span<const double> next() const { return next_; }

    // What probing saw of a band: keys, and blocks that they led to. The caller counts.
    struct Seen {
        float keys;
        float blocks;
    };
    Seen& seen(std::size_t band) { return seen_[band]; }

    // Goes to the cheapest key of each band next: their rows often give a bound close to the last
    // one.
    void choose_cheapest_keys() { next_.assign(bands_.size(), 0.0); }

    // A target while fewer than K rows were seen: more and more of all flips, which add up to
    // `all_flips`. One band reaches its last key before the limits add up to all of them.
    double target_without_bound(double all_flips) const;

    // Begins a round: how many keys each band has by level, and what each takes.
    void update(double target);
    // What it takes to go on until the limits exceed the target; stops counting above `max_ns`.
    float finish_ns(float max_ns) { return budget_.finish_ns(needed_, max_ns); }
    // Chooses the next limits: as far as `max_ns` allow, but at least one step, and no farther than
    // the target asks for. Returns the time that this takes.
    float choose_next(double target, float max_ns);

    // Every key up to the next limits was probed. Returns how many bands have no key left.
    std::size_t arrive();

private:
    void count(double target);
    double next_by_levels();  // returns the sum of the next limits
    void lower_next(double excess);

    std::span<const BandQuery> bands_;
    std::size_t rows_ = 0;
    double block_ns_ = 0.0;
    std::vector<double> limits_;
    std::vector<double> next_;
    std::vector<Seen> seen_;
    BandBudget budget_;
    double level_ = 0.0;      // size of a level; 0 before keys are counted
    std::size_t needed_ = 0;  // levels that exceed the target
};

}  // namespace bitweigh
