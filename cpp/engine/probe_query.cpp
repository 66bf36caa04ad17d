#include "engine/probe_query.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/tuning.h"

namespace bitweigh {

namespace {

// Nanoseconds; a prediction of more is as good as one of this.
constexpr float most_predicted = 1e15f;

}  // namespace

ProbeQuery::ProbeQuery(const Segment& segment, const double* costs, const CostTable& table,
                       ScanQuery& scan, ProbeSpace& space, const Tuning& tuning)
    : segment_(segment),
      table_(table),
      scan_(scan),
      space_(space),
      counters_(scan.probe_counters()),
      tuning_(tuning) {
    const auto planes = static_cast<double>(table.n_bytes());
    scan_cost_ = static_cast<double>(segment.n_blocks()) * scan_plane_cost * planes;
    block_cost_ = block_cost + block_plane_cost * planes;
    prepare(costs);
}

void ProbeQuery::prepare(const double* costs) {
    const std::size_t n_bits = table_.n_bits();
    space_.flips.resize(n_bits);
    space_.cheap_ones.resize(n_bits);
    for (std::size_t i = 0; i < n_bits; ++i) {
        space_.flips[i] = std::fabs(costs[2 * i + 1] - costs[2 * i]);
        space_.cheap_ones[i] = costs[2 * i + 1] < costs[2 * i];
    }
    const std::size_t m = segment_.bands.size();
    space_.bands.resize(m);
    space_.plans.resize(m);
    space_.limits.assign(m, -std::numeric_limits<double>::infinity());
    for (std::size_t b = 0; b < m; ++b) {
        space_.bands[b].prepare(segment_.bands[b].bits, space_.flips.data(),
                                space_.cheap_ones.data());
    }
}

bool ProbeQuery::run(bool to_the_end, Checkpoint& checkpoint) {
    to_the_end_ = to_the_end;
    const bool done = probe(checkpoint);
    counters_.give_ups += !done;
    const double predicted = std::min(std::max(predicted_, spent_), double{most_predicted});
    counters_.predicted_cost += static_cast<std::uint64_t>(predicted);
    counters_.probing_cost += static_cast<std::uint64_t>(spent_);
    counters_.scan_cost += static_cast<std::uint64_t>(scan_cost_);
    return done;
}

bool ProbeQuery::probe(Checkpoint& checkpoint) {
    // The cheapest key of each band first: their rows often give a bound close to the last one.
    space_.next.assign(space_.bands.size(), 0.0);
    if (!walk_to_next(checkpoint)) return false;
    double most = tuning_.first_round_cost;
    while (!all_met_) {
        const double target = next_target();
        if (std::accumulate(space_.limits.begin(), space_.limits.end(), 0.0) > target) return true;
        ++counters_.rounds;
        const double level = target / static_cast<double>(budget_levels);
        plan(level);
        if (scan_.worst() < padding_distance) {
            if (predicted_ < 0.0) predicted_ = spent_ + cost_to_finish(space_.plans, most_predicted);
            if (!to_the_end_ && is_too_dear()) return false;
        }
        advance(space_.plans, static_cast<float>(most));
        choose_next(level, target);
        if (!walk_to_next(checkpoint)) return false;
        most = std::max(1.0, most * round_growth);
    }
    return true;
}

double ProbeQuery::next_target() {
    const double budget = scan_.worst() - table_.offset() + table_.slack();
    if (budget < padding_distance) return budget;
    // Fewer than K rows met: on by cost alone, towards more and more of all flips. One band reaches
    // its dearest key before the limits add up to all of them.
    const double all = std::accumulate(space_.flips.begin(), space_.flips.end(), 0.0);
    const double reached = std::accumulate(space_.limits.begin(), space_.limits.end(), 0.0);
    return std::max({all / 2, 2 * reached, std::numeric_limits<double>::min()});
}

// Early predictions are too high, since the bound still falls: they are trusted the less, the less
// was spent.
bool ProbeQuery::is_too_dear() const {
    const double share = spent_ / scan_cost_;
    if (share < no_give_up_share) return false;
    const double trust = std::min(1.0, share / give_up_share);
    const double most = scan_cost_ * (early_doubt - (early_doubt - 1.0) * trust) - spent_;
    return cost_to_finish(space_.plans, static_cast<float>(most)) > most;
}

void ProbeQuery::plan(double level) {
    for (std::size_t b = 0; b < space_.bands.size(); ++b) {
        BandPlan& plan = space_.plans[b];
        count_keys(space_.bands[b], level, plan.keys);
        const auto keys = static_cast<double>(std::size_t{1} << space_.bands[b].n_bits());
        const double rows = static_cast<double>(segment_.rows) / keys;
        plan.key_cost = static_cast<float>(key_cost + block_cost_ * (1.0 + rows / block_rows));
        // A limit that is a whole number of levels must not be taken for one less.
        const double reached = std::max(0.0, space_.limits[b]) / level + 1e-6;
        plan.level = reached < last_level ? static_cast<std::size_t>(reached) : last_level;
    }
}

void ProbeQuery::choose_next(double level, double target) {
    std::size_t levels = 0;
    double reached = 0.0;
    space_.next.clear();
    for (std::size_t b = 0; b < space_.bands.size(); ++b) {
        const auto own = static_cast<double>(space_.plans[b].level);
        space_.next.push_back(std::max(space_.limits[b], own * level));
        reached += space_.next[b];
        levels += space_.plans[b].level;
    }
    // The last levels exceed the target, unless it is so small that a level is rounded away.
    if (levels > budget_levels && !(reached > target)) {
        space_.next[0] = std::nextafter(target, padding_distance);
    }
}

bool ProbeQuery::walk_to_next(Checkpoint& checkpoint) {
    // The limits rise only when all keys of all bands were probed.
    for (std::size_t b = 0; b < space_.bands.size(); ++b) {
        if (!(space_.next[b] > space_.limits[b])) continue;
        counters_.walks_again += space_.limits[b] >= 0.0;
        const Band& band = segment_.bands[b];
        const bool whole = space_.bands[b].walk(space_.limits[b], space_.next[b], [&](Key key) {
            __builtin_prefetch(band.starts + key);
            space_.keys.push_back({&band, key});
            return space_.keys.size() < keys_at_once || probe_keys(checkpoint);
        });
        if (!whole) return false;
    }
    if (!probe_keys(checkpoint)) return false;
    for (std::size_t b = 0; b < space_.bands.size(); ++b) {
        space_.limits[b] = space_.next[b];
        if (space_.limits[b] >= space_.bands[b].dearest()) {
            all_met_ = true;
            ++counters_.exhausted_bands;
        }
    }
    return true;
}

bool ProbeQuery::probe_keys(Checkpoint& checkpoint) {
    counters_.probes += space_.keys.size();
    spent_ += key_cost * static_cast<double>(space_.keys.size());
    const bool affordable = list_blocks();
    space_.keys.clear();
    if (!affordable) return false;
    counters_.blocks_probed += space_.blocks.size();
    spent_ += block_cost_ * static_cast<double>(space_.blocks.size());
    space_.hits.resize(std::max(space_.hits.size(), blocks_at_once));
    for (std::size_t i = 0; i < space_.blocks.size();) {
        const std::size_t n = std::min(at_once_, space_.blocks.size() - i);
        scan_.scan_listed(space_.blocks, i, n, space_.hits.data());
        checkpoint.done(n * table_.n_bytes() * block_rows);
        i += n;
        at_once_ = std::min(2 * at_once_, blocks_at_once);
    }
    return to_the_end_ || spent_ <= give_up_limit * scan_cost_;
}

bool ProbeQuery::list_blocks() {
    const std::size_t block_bytes = table_.n_bytes() * block_rows;
    const double left = std::max(0.0, give_up_limit * scan_cost_ - spent_);
    const auto most = to_the_end_ ? std::numeric_limits<std::size_t>::max()
                                  : static_cast<std::size_t>(left / block_cost_);
    space_.blocks.clear();
    for (const auto& [band, key] : space_.keys) {
        const std::uint32_t begin = band->starts[key];
        const std::uint32_t end = band->starts[key + 1];
        // The second condition only fails in a damaged file.
        if (begin >= end || end > band->rows.rows) {
            ++counters_.empty_probes;
            continue;
        }
        for (auto block = static_cast<std::uint32_t>(begin / block_rows);
             block <= (end - 1) / block_rows; ++block) {
            const std::uint8_t* start = band->rows.blocks + block * block_bytes;
            // Two keys of a band may have their rows in the same block.
            if (space_.blocks.size() > 0 && space_.blocks.starts.back() == start) continue;
            if (space_.blocks.size() < listed_prefetch) {
                for (std::size_t p = 0; p < block_bytes; p += 64) __builtin_prefetch(start + p);
            }
            if (space_.blocks.size() >= most) return false;
            space_.blocks.push_back(band->rows, block, block_bytes);
        }
    }
    return true;
}

}  // namespace bitweigh
