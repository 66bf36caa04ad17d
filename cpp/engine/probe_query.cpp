#include "engine/probe_query.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/tuning.h"

namespace bitweigh {

namespace {

// Nanoseconds; a prediction of more is as good as one of this.
constexpr float most_predicted = 1e15f;

double scan_cost_of(const Segment& segment, std::size_t n_bytes) {
    const auto planes = static_cast<double>(n_bytes);
    const double plane_cost = scan_plane_cost + scan_long_plane_cost * planes;
    return static_cast<double>(segment.n_blocks()) * planes * plane_cost;
}

double preparing_cost_of(const Segment& segment) {
    return probing_cost + band_cost * static_cast<double>(segment.bands.size());
}

// Of the longest list of blocks that a thread keeps.
constexpr std::size_t most_blocks_kept = std::size_t{1} << 16;

// A band that was not walked adds nothing.
double sum_of_limits(const std::vector<double>& limits) {
    double sum = 0.0;
    for (const double limit : limits) sum += std::max(0.0, limit);
    return sum;
}

std::size_t blocks_between(std::uint32_t begin, std::uint32_t end) {
    return begin < end ? (end - 1) / block_rows - begin / block_rows + 1 : 0;
}

}  // namespace

bool may_probe(const Segment& segment, std::size_t n_bytes, std::size_t k, Method method,
               const Tuning& tuning) {
    if (method == Method::scan || segment.bands.empty()) return false;
    // Where few rows are allowed, only the blocks that have any are read.
    if (segment.allowed_blocks.data() != nullptr) return false;
    if (method == Method::probe) return true;
    return scan_cost_of(segment, n_bytes) >=
           std::max(tuning.least_scan_factor * preparing_cost_of(segment),
                    tuning.least_scan_cost_per_k * static_cast<double>(k));
}

namespace {

thread_local std::unique_ptr<ProbeSpace> kept_space;

}  // namespace

BorrowedProbeSpace::BorrowedProbeSpace()
    : exceptions_(std::uncaught_exceptions()), space_(std::move(kept_space)) {
    if (!space_) space_ = std::make_unique<ProbeSpace>();
}

BorrowedProbeSpace::~BorrowedProbeSpace() {
    if (std::uncaught_exceptions() > exceptions_) return;
    // A search of huge buckets must not hold on to its memory.
    if (space_->blocks.starts.capacity() > most_blocks_kept) return;
    kept_space = std::move(space_);
}

ProbeQuery::ProbeQuery(const Segment& segment, const double* costs, const CostTable& table,
                       ScanQuery& scan, ProbeSpace& space, const Tuning& tuning)
    : segment_(segment),
      table_(table),
      scan_(scan),
      space_(space),
      counters_(scan.probe_counters()),
      tuning_(tuning) {
    const auto planes = static_cast<double>(table.n_bytes());
    const double planes_cost = scan_cost_of(segment, table.n_bytes());
    scan_cost_ = planes_cost;
    if (!scan.wants_every_row()) {
        scan_cost_ += std::min(planes_cost, scan_neighbour_cost * static_cast<double>(scan.k()));
    }
    limit_ = later_limit * scan_cost_;
    spent_ = preparing_cost_of(segment);
    block_cost_ = block_cost + block_plane_cost * planes;
    candidate_cost_ = candidate_cost + candidate_byte_cost * planes;
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
    space_.allocation.resize(m);
    space_.limits.assign(m, -std::numeric_limits<double>::infinity());
    space_.met.assign(m, {0.0f, 0.0f});
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
    if (scan_.wants_every_row()) {
        look_at_cheapest();
    } else {
        // The cheapest key of each band first: their rows often give a bound close to the last one.
        space_.next.assign(space_.bands.size(), 0.0);
        if (!walk_to_next(checkpoint)) return false;
    }
    double most = tuning_.first_round_cost;
    while (!all_met_) {
        const double target = next_target();
        if (sum_of_limits(space_.limits) > target) return true;
        ++counters_.rounds;
        spent_ += round_cost + round_band_cost * static_cast<double>(space_.bands.size());
        plan(target);
        if (scan_.worst() < padding_distance) {
            if (!to_the_end_ && is_too_dear()) return false;
        } else if (!to_the_end_ && spent_ > first_limit * scan_cost_) {
            return false;
        }
        const bool early = !to_the_end_ && spent_ < late_share * scan_cost_;
        const double affordable = early ? std::min(most, early_round_share * scan_cost_) : most;
        const double cost = space_.allocation.advance(needed_, static_cast<float>(affordable));
        if (scan_.worst() < padding_distance && predicted_ < 0.0) {
            predicted_ = spent_ + cost + space_.allocation.cost_to_finish(needed_, most_predicted);
        }
        choose_next(target);
        const double before = spent_;
        if (!walk_to_next(checkpoint)) return false;
        if (cost > 0.0) surprise_ = std::max(1.0, (spent_ - before) / cost);
        most = std::max(1.0, most * round_growth);
    }
    return true;
}

void ProbeQuery::look_at_cheapest() {
    for (std::size_t b = 0; b < space_.bands.size(); ++b) {
        __builtin_prefetch(segment_.bands[b].starts + space_.bands[b].cheapest());
    }
    for (std::size_t b = 0; b < space_.bands.size(); ++b) {
        const std::uint32_t* starts = segment_.bands[b].starts + space_.bands[b].cheapest();
        space_.met[b] = {1.0f, static_cast<float>(blocks_between(starts[0], starts[1]))};
    }
}

double ProbeQuery::next_target() {
    if (scan_.worst() < padding_distance) return table_.flips_within(scan_.worst());
    // Fewer than K rows met: on by cost alone, towards more and more of all flips. One band reaches
    // its dearest key before the limits add up to all of them.
    const double all = std::accumulate(space_.flips.begin(), space_.flips.end(), 0.0);
    const double reached = sum_of_limits(space_.limits);
    return std::max({all / 2, 2 * reached, std::numeric_limits<double>::min()});
}

namespace {

// How many times more than a scan probing may seem to cost when it has cost this share of one.
double doubt_at(double share, std::size_t k) {
    if (share < early_share) {
        const double first = first_doubt + doubt_per_neighbour * static_cast<double>(k);
        const double more = std::min(most_doubt, first) - early_doubt;
        return early_doubt + more * (1.0 - share / early_share);
    }
    const double left = (late_share - share) / (late_share - early_share);
    return 1.0 + (early_doubt - 1.0) * std::max(0.0, left);
}

}  // namespace

bool ProbeQuery::is_too_dear() {
    // Within a radius there is no bound that could still fall.
    const double doubt = scan_.wants_every_row() ? 1.0 : doubt_at(spent_ / scan_cost_, scan_.k());
    const double most = scan_cost_ * doubt - spent_;
    const double left =
        surprise_ * space_.allocation.cost_to_finish(needed_, static_cast<float>(most / surprise_));
    if (left > most) return true;
    const double predicted = over_predicted * (spent_ + left);
    limit_ = std::max(later_limit * scan_cost_, std::min(most_limit * scan_cost_, predicted));
    return false;
}

void ProbeQuery::plan(double target) {
    // False also for a level that was rounded to zero, or none.
    const double levels = target / level_;
    const auto most = static_cast<double>(space_.allocation.budget_levels());
    const auto fewest = static_cast<double>(space_.allocation.fewest_levels());
    const bool counted = levels >= fewest && levels < most + 0.5;
    if (!counted) count(target);
    // A whole number of levels is not enough, however it was rounded.
    needed_ = counted ? static_cast<std::size_t>(levels * (1.0 + 0x1p-40)) + 1
                      : space_.allocation.last_level();
    for (std::size_t b = 0; b < space_.bands.size(); ++b) {
        // What its keys cost so far, with one average key added.
        const auto keys = static_cast<double>(std::size_t{1} << space_.bands[b].n_bits());
        const double average = 1.0 + static_cast<double>(segment_.rows) / (keys * block_rows);
        const double blocks = (average + space_.met[b].blocks) / (1.0 + space_.met[b].keys);
        space_.allocation.bands[b].key_cost = static_cast<float>(key_cost + block_cost_ * blocks);
        space_.allocation.bands[b].walked = space_.limits[b] >= 0.0;
        space_.met[b].keys *= remembered_share;
        space_.met[b].blocks *= remembered_share;
    }
}

void ProbeQuery::count(double target) {
    const std::size_t last = space_.allocation.last_level();
    level_ = target / static_cast<double>(space_.allocation.budget_levels());
    for (std::size_t b = 0; b < space_.bands.size(); ++b) {
        BandPlan& plan = space_.allocation.bands[b];
        count_keys(space_.bands[b], level_, last, plan.keys);
        // A limit that is a whole number of levels must not be taken for one less.
        const double reached = std::max(0.0, space_.limits[b]) / level_ + 1e-6;
        plan.level = reached < static_cast<double>(last) ? static_cast<std::size_t>(reached) : last;
    }
}

void ProbeQuery::choose_next(double target) {
    const double reached = next_by_levels();
    std::size_t levels = 0;
    for (const BandPlan& plan : space_.allocation.bands) levels += plan.level;
    if (levels < needed_) return;
    if (reached > target) {
        lower_next(reached - target);
        // Without an end of the search there is no end of rounds.
        if (!(sum_of_limits(space_.next) > target)) next_by_levels();
    } else {
        // A level so small that it is rounded away.
        space_.next[0] = std::nextafter(target, padding_distance);
    }
}

double ProbeQuery::next_by_levels() {
    space_.next.clear();
    for (std::size_t b = 0; b < space_.bands.size(); ++b) {
        const std::size_t level = space_.allocation.bands[b].level;
        const double limit = static_cast<double>(level) * level_;
        space_.next.push_back(level > 0 ? std::max(space_.limits[b], limit) : space_.limits[b]);
    }
    return sum_of_limits(space_.next);
}

// The last step goes beyond the target, by up to a level: the dearest bands need not go so far.
void ProbeQuery::lower_next(double excess) {
    // A little remains, more than rounding takes away.
    excess *= 1.0 - 0x1p-20;
    while (excess > 0.0) {
        std::size_t dearest = 0;
        float most = 0.0f;
        for (std::size_t b = 0; b < space_.bands.size(); ++b) {
            const BandPlan& plan = space_.allocation.bands[b];
            if (!(space_.next[b] > space_.limits[b])) continue;
            const float cost = plan.keys[plan.level] * plan.key_cost;
            if (cost > most) {
                most = cost;
                dearest = b;
            }
        }
        if (most == 0.0f) return;
        const double from = std::max(0.0, space_.limits[dearest]);
        const double back = std::min(excess, space_.next[dearest] - from);
        space_.next[dearest] -= back;
        excess -= back;
        // Where nothing is gained, a band that was not walked need not be.
        if (space_.next[dearest] <= from) space_.next[dearest] = space_.limits[dearest];
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
            space_.keys.push_back({static_cast<std::uint32_t>(b), key});
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
    space_.hits.resize(std::max(space_.hits.size(), blocks_at_once));
    for (std::size_t i = 0; i < space_.blocks.size() && (to_the_end_ || spent_ <= limit_);) {
        const std::size_t n = std::min(at_once_, space_.blocks.size() - i);
        const double in_vain = candidates_in_vain();
        scan_.scan_listed(space_.blocks, i, n, space_.hits.data());
        counters_.blocks_probed += n;
        spent_ += block_cost_ * static_cast<double>(n) +
                  candidate_cost_ * (candidates_in_vain() - in_vain);
        checkpoint.done(n * table_.n_bytes() * block_rows);
        i += n;
        at_once_ = std::min(2 * at_once_, blocks_at_once);
    }
    return to_the_end_ || spent_ <= limit_;
}

double ProbeQuery::candidates_in_vain() const {
    // Of the k nearest only so many are kept, and a search that goes well has about as many
    // candidates more. Of every row within a radius each candidate is kept, unless it was met
    // before.
    const std::size_t usual = scan_.wants_every_row() ? scan_.kept() : usual_candidates * scan_.k();
    return static_cast<double>(std::max(usual, scan_.candidates()) - usual);
}

bool ProbeQuery::list_blocks() {
    const std::size_t block_bytes = table_.n_bytes() * block_rows;
    const double left = std::max(0.0, limit_ - spent_);
    const auto most = to_the_end_ ? std::numeric_limits<std::size_t>::max()
                                  : static_cast<std::size_t>(left / block_cost_);
    space_.blocks.clear();
    for (const auto& [b, key] : space_.keys) {
        const Band* band = &segment_.bands[b];
        const std::uint32_t begin = band->starts[key];
        const std::uint32_t end = band->starts[key + 1];
        space_.met[b].keys += 1.0f;
        // The second condition only fails in a damaged file.
        if (begin >= end || end > band->rows.rows) {
            ++counters_.empty_probes;
            continue;
        }
        const std::size_t before = space_.blocks.size();
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
        space_.met[b].blocks += static_cast<float>(space_.blocks.size() - before);
    }
    return true;
}

}  // namespace bitweigh
