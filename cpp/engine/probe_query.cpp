#include "engine/probe_query.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/tuning.h"

namespace bitweigh {

ProbeQuery::ProbeQuery(const Segment& segment, const double* costs, const CostTable& table,
                       ScanQuery& scan, ProbeSpace& space, const Tuning& tuning)
    : segment_(segment), table_(table), scan_(scan), space_(space), counters_(scan.probe_counters()), tuning_(tuning) {
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
    double most = tuning_.first_round_cost;
    for (;;) {
        const double target = next_target();
        if (std::accumulate(space_.limits.begin(), space_.limits.end(), 0.0) > target) return true;
        ++counters_.rounds;
        const double level = target / static_cast<double>(budget_levels);
        plan(level);
        if (!to_the_end_ && spent_ > give_up_share * scan_cost_ &&
            spent_ + cost_to_finish(space_.plans, static_cast<float>(scan_cost_)) > scan_cost_) {
            return give_up();
        }
        advance(space_.plans, static_cast<float>(most));
        if (!advance_bands(level, target, checkpoint)) return give_up();
        if (all_met_) return true;
        most = std::max(1.0, most * round_growth);
    }
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

bool ProbeQuery::give_up() {
    ++counters_.give_ups;
    return false;
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

bool ProbeQuery::advance_bands(double level, double target, Checkpoint& checkpoint) {
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
    for (std::size_t b = 0; b < space_.bands.size(); ++b) {
        if (!(space_.next[b] > space_.limits[b])) continue;
        if (!walk(b, space_.next[b], checkpoint)) return false;
        if (all_met_) return true;
    }
    return true;
}

bool ProbeQuery::walk(std::size_t band, double limit, Checkpoint& checkpoint) {
    const double above = space_.limits[band];
    counters_.walks_again += above >= 0.0;
    space_.keys.clear();
    const std::uint32_t* starts = segment_.bands[band].starts;
    bool going = space_.bands[band].walk(above, limit, [&](Key key) {
        __builtin_prefetch(starts + key);
        space_.keys.push_back(key);
        return space_.keys.size() < keys_at_once || probe_keys(band, checkpoint);
    });
    going = going && probe_keys(band, checkpoint);
    if (!going) return false;
    space_.limits[band] = limit;
    if (limit >= space_.bands[band].dearest()) {
        all_met_ = true;
        ++counters_.exhausted_bands;
    }
    return true;
}

bool ProbeQuery::probe_keys(std::size_t band, Checkpoint& checkpoint) {
    const Band& own = segment_.bands[band];
    const std::size_t block_bytes = table_.n_bytes() * block_rows;
    space_.blocks.clear();
    std::uint32_t last = std::numeric_limits<std::uint32_t>::max();
    for (const Key key : space_.keys) {
        const std::uint32_t begin = own.starts[key];
        const std::uint32_t end = own.starts[key + 1];
        // The second condition only fails in a damaged file.
        if (begin >= end || end > own.rows.rows) {
            ++counters_.empty_probes;
            continue;
        }
        for (auto block = static_cast<std::uint32_t>(begin / block_rows);
             block <= (end - 1) / block_rows; ++block) {
            if (block == last) continue;
            last = block;
            if (space_.blocks.size() < listed_prefetch) {
                const std::uint8_t* start = own.rows.blocks + block * block_bytes;
                for (std::size_t p = 0; p < block_bytes; p += 64) __builtin_prefetch(start + p);
            }
            space_.blocks.push_back(block);
        }
    }
    counters_.probes += space_.keys.size();
    counters_.blocks_probed += space_.blocks.size();
    spent_ += key_cost * static_cast<double>(space_.keys.size()) +
              block_cost_ * static_cast<double>(space_.blocks.size());
    space_.keys.clear();
    const std::span<const std::uint32_t> blocks(space_.blocks);
    space_.hits.resize(std::max(space_.hits.size(), blocks_at_once));
    for (std::size_t i = 0; i < blocks.size();) {
        const std::size_t n = std::min(at_once_, blocks.size() - i);
        scan_.scan_listed(own.rows, blocks.subspan(i, n), space_.hits.data());
        checkpoint.done(n * block_bytes);
        i += n;
        at_once_ = std::min(2 * at_once_, blocks_at_once);
    }
    return to_the_end_ || spent_ <= give_up_limit * scan_cost_;
}

}  // namespace bitweigh
