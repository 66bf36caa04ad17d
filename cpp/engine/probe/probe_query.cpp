#include "engine/probe/probe_query.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <numeric>
#include <utility>

namespace bitweigh {

namespace {

// The capacity of the longest list of blocks that a thread keeps.
constexpr std::size_t max_blocks_kept = std::size_t{1} << 16;

// The bytes that these count as towards the next check: passing over a key, looking it up, and
// listing a block.
constexpr std::size_t key_bytes = 32;
constexpr std::size_t lookup_bytes = 256;
constexpr std::size_t listed_bytes = 16;

thread_local std::unique_ptr<ProbeScratch> thread_scratch;

std::size_t blocks_between(std::uint32_t begin, std::uint32_t end) {
    return begin < end ? (end - 1) / block_rows - begin / block_rows + 1 : 0;
}

// Prefetches into the second-level cache what will be read after many other lines.
void prefetch_soon(const std::uint8_t* start, std::size_t bytes) {
    for (std::size_t p = 0; p < bytes; p += 64) __builtin_prefetch(start + p, 0, 2);
}

double scan_ns_of(const Segment& segment, const CostTable& table, const ScanQuery& scan,
                  const Tuning& tuning) {
    const double blocks = tuning.scan_factor * static_cast<double>(segment.n_blocks());
    if (scan.wants_every_row()) return cost_model.scan_ns(blocks, table.n_bytes());
    return cost_model.scan_ns(blocks, table.n_bytes(), scan.k());
}

}  // namespace

bool worth_probing(const Segment& segment, std::size_t n_bytes, std::size_t k, Method method,
                   const Tuning& tuning) {
    if (method == Method::scan || segment.bands.empty()) return false;
    if (method == Method::probe) return true;
    const double blocks = tuning.scan_factor * static_cast<double>(segment.n_blocks());
    return cost_model.scan_ns(blocks, n_bytes) >=
           std::max(tuning.min_scan_factor * cost_model.setup_ns(segment.bands.size()),
                    tuning.min_scan_ns_per_k * static_cast<double>(k));
}

BorrowedScratch::BorrowedScratch()
    : exceptions_(std::uncaught_exceptions()), scratch_(std::move(thread_scratch)) {
    if (!scratch_) scratch_ = std::make_unique<ProbeScratch>();
}

BorrowedScratch::~BorrowedScratch() {
    if (std::uncaught_exceptions() > exceptions_) return;
    // A search of huge buckets must not leave its memory allocated.
    if (scratch_->blocks.starts.capacity() > max_blocks_kept) return;
    thread_scratch = std::move(scratch_);
}

ProbeQuery::ProbeQuery(const Segment& segment, const double* costs, const CostTable& table,
                       ScanQuery& scan, ProbeScratch& scratch, const Tuning& tuning)
    : segment_(segment),
      table_(table),
      scan_(scan),
      scratch_(scratch),
      plan_(scratch.plan),
      counters_(scan.probe_counters()),
      first_round_ns_(tuning.first_round_ns),
      block_ns_(cost_model.block_ns(segment.bytes_of_row(table.n_bytes()))),
      verify_ns_(cost_model.verify_ns(table.n_bytes())),
      spending_(scan_ns_of(segment, table, scan, tuning), cost_model.setup_ns(segment.bands.size()),
                scan.k(), !scan.wants_every_row()) {
    prepare(costs);
    if (segment.mapped && !scan.pages()) {
        round_begun_ = Clock::now();
        if (segment.mapped->cold.load(std::memory_order_relaxed)) {
            scan.tell(&segment.mapped->reader);
            asked_from_start_ = true;
            waits_before_ = segment.mapped->reader.waits();
        }
    }
}

void ProbeQuery::prepare(const double* costs) {
    const std::size_t n_bits = table_.n_bits();
    scratch_.flips.resize(n_bits);
    scratch_.cheap_ones.resize(n_bits);
    for (std::size_t i = 0; i < n_bits; ++i) {
        scratch_.flips[i] = std::fabs(costs[2 * i + 1] - costs[2 * i]);
        scratch_.cheap_ones[i] = costs[2 * i + 1] < costs[2 * i];
    }
    scratch_.bands.resize(segment_.bands.size());
    for (std::size_t b = 0; b < segment_.bands.size(); ++b) {
        scratch_.bands[b].prepare(segment_.bands[b].bits, scratch_.flips.data(),
                                  scratch_.cheap_ones.data());
    }
    plan_.start(scratch_.bands, segment_.rows, block_ns_);
}

bool ProbeQuery::run(bool to_the_end, Checkpoint& checkpoint) {
    to_the_end_ = to_the_end;
    const bool done = probe(checkpoint);
    notice_memory();
    if (!done) {
        plan_.update(next_target());
        predict();
    }
    const double spent_ns = spending_.spent_ns();
    counters_.fallbacks += !done;
    counters_.predicted_ns += static_cast<std::uint64_t>(std::max(predicted_ns_, spent_ns));
    counters_.probe_spent_ns += static_cast<std::uint64_t>(spent_ns);
    counters_.scan_ns += static_cast<std::uint64_t>(spending_.scan_ns());
    return done;
}

bool ProbeQuery::probe(Checkpoint& checkpoint) {
    if (scan_.wants_every_row()) {
        look_at_cheapest();
    } else {
        plan_.choose_cheapest_keys();
        if (!walk_to_next(checkpoint)) return false;
        notice_disk();
    }
    double round_ns = first_round_ns_;
    while (!all_seen_) {
        const double target = next_target();
        if (sum_of_limits(plan_.limits()) > target) return true;
        ++counters_.rounds;
        spending_.add(cost_model.round_ns(scratch_.bands.size()));
        plan_.update(target);
        if (has_bound() && predicted_ns_ < 0.0) predict();
        const bool gives_up = !to_the_end_ && exceeds_scan();
        if (gives_up && !spending_.is_early(0.0)) return false;
        const double max_ns = to_the_end_ ? round_ns : spending_.round_limit_ns(round_ns);
        const double planned_ns = plan_.choose_next(target, static_cast<float>(max_ns));
        if (gives_up && !spending_.is_early(planned_ns)) return false;
        const double before_ns = spending_.spent_ns();
        if (!walk_to_next(checkpoint)) return false;
        notice_disk();
        if (planned_ns > 0.0) {
            cost_ratio_ = std::max(1.0, (spending_.spent_ns() - before_ns) / planned_ns);
        }
        round_ns = std::clamp(round_ns * cost_model.round_growth, 1.0, max_round_ns);
    }
    return true;
}

void ProbeQuery::look_at_cheapest() {
    for (std::size_t b = 0; b < scratch_.bands.size(); ++b) {
        const std::uint32_t* starts = segment_.bands[b].starts + scratch_.bands[b].cheapest();
        if (scan_.pages()) scan_.pages()->will_read(starts, 2 * sizeof(std::uint32_t));
        __builtin_prefetch(starts);
    }
    for (std::size_t b = 0; b < scratch_.bands.size(); ++b) {
        const std::uint32_t* starts = segment_.bands[b].starts + scratch_.bands[b].cheapest();
        plan_.seen(b) = {1.0f, static_cast<float>(blocks_between(starts[0], starts[1]))};
    }
}

double ProbeQuery::next_target() const {
    if (has_bound()) return table_.flips_within(scan_.worst());
    const auto& flips = scratch_.flips;
    return plan_.target_without_bound(std::accumulate(flips.begin(), flips.end(), 0.0));
}

void ProbeQuery::predict() {
    const double max_ns = cost_model.max_predicted_share * spending_.scan_ns();
    predicted_ns_ =
        std::min(spending_.spent_ns() + plan_.finish_ns(static_cast<float>(max_ns)), max_ns);
}

bool ProbeQuery::exceeds_scan() {
    if (!has_bound()) return spending_.is_late();
    const double allowed_ns = spending_.overrun_allowed_ns();
    const double finish_ns =
        cost_ratio_ * plan_.finish_ns(static_cast<float>(allowed_ns / cost_ratio_));
    if (finish_ns > allowed_ns) return true;
    spending_.expect(finish_ns);
    return false;
}

bool ProbeQuery::walk_to_next(Checkpoint& checkpoint) {
    // A reader is set only between two rounds.
    const std::size_t max_keys = scan_.pages() ? told_keys_at_once : keys_at_once;
    // The limits rise only after all keys of all bands were probed.
    for (std::size_t b = 0; b < scratch_.bands.size(); ++b) {
        const double limit = plan_.limits()[b];
        const double next = plan_.next()[b];
        if (!(next > limit)) continue;
        counters_.rewalks += limit >= 0.0;
        const Band& band = segment_.bands[b];
        // With a deadline the walk reports the keys that it passes over, too: there may be
        // millions.
        const double above = checkpoint.has_deadline() ? -padding_distance : limit;
        const bool completed = scratch_.bands[b].walk(above, next, [&](Key key, double sum) {
            if (!(sum > limit)) {
                checkpoint.done(key_bytes);
                return true;
            }
            __builtin_prefetch(band.starts + key);
            scratch_.keys.push_back({static_cast<std::uint32_t>(b), key, sum});
            return scratch_.keys.size() < max_keys || (probe_keys(checkpoint) && may_go_on());
        });
        if (!completed) return false;
        // Lean rows of different bands need different tables.
        if (is_lean() && !probe_keys(checkpoint)) return false;
    }
    if (!probe_keys(checkpoint)) return false;
    const std::size_t exhausted = plan_.arrive();
    counters_.exhausted_bands += exhausted;
    all_seen_ = exhausted > 0;
    return true;
}

bool ProbeQuery::probe_keys(Checkpoint& checkpoint) {
    counters_.probes += scratch_.keys.size();
    spending_.add(cost_model.key_lookup_ns * static_cast<double>(scratch_.keys.size()));
    if (scan_.pages()) tell_of_keys();
    const bool affordable = is_lean() ? list_lean_blocks(checkpoint) : list_blocks(checkpoint);
    checkpoint.done(scratch_.keys.size() * lookup_bytes);
    scratch_.keys.clear();
    if (!affordable) return false;
    if (scan_.pages()) {
        if (is_lean()) {
            tell_of_blocks(scratch_.lean_blocks.starts,
                           lean_rows_ ? lean_rows_->lean->codes->n_bytes() * block_rows : 0);
        } else {
            tell_of_blocks(scratch_.blocks.starts, table_.n_bytes() * block_rows);
        }
        at_once_ = blocks_at_once;
    }
    scratch_.hits.resize(std::max(scratch_.hits.size(), blocks_at_once));
    const std::size_t n_blocks = is_lean() ? scratch_.lean_blocks.size() : scratch_.blocks.size();
    std::size_t i = 0;
    while (i < n_blocks && may_go_on()) {
        const std::size_t n = std::min(at_once_, n_blocks - i);
        const double verified_before = excess_verified();
        if (is_lean()) {
            scan_.scan_lean(*lean_rows_, scratch_.lean_blocks, i, n, scratch_.hits.data());
        } else {
            scan_.scan_listed(scratch_.blocks, i, n, scratch_.hits.data());
        }
        counters_.blocks_probed += n;
        spending_.add(block_ns_ * static_cast<double>(n) +
                      verify_ns_ * (excess_verified() - verified_before));
        checkpoint.done(n * table_.n_bytes() * block_rows);
        i += n;
        at_once_ = std::min(2 * at_once_, blocks_at_once);
    }
    // Even if time is up now: these may have been the last keys that the search needs.
    return i == n_blocks;
}

void ProbeQuery::tell_of_keys() {
    for (const auto& [b, key, _] : scratch_.keys) {
        scan_.pages()->will_read(segment_.bands[b].starts + key, 2 * sizeof(std::uint32_t));
    }
}

void ProbeQuery::tell_of_blocks(std::span<const std::uint8_t* const> starts,
                                std::size_t block_bytes) {
    for (std::size_t i = 0; i < starts.size();) {
        const std::size_t first = i++;
        // Adjacent blocks, or the same one for another key, are one run.
        while (i < starts.size() &&
               (starts[i] == starts[i - 1] + block_bytes || starts[i] == starts[i - 1])) {
            ++i;
        }
        const auto bytes = static_cast<std::size_t>(starts[i - 1] - starts[first]) + block_bytes;
        scan_.pages()->will_read(starts[first], bytes);
    }
}

void ProbeQuery::notice_disk() {
    if (!segment_.mapped || scan_.pages()) return;
    const Clock::time_point now = Clock::now();
    const std::chrono::duration<double, std::nano> taken = now - round_begun_;
    const double expected_ns = spending_.spent_ns() - round_spent_ns_;
    // A thread that was only kept from running has touched no such page.
    if (taken.count() > disk_read_ns + disk_time_factor * expected_ns &&
        segment_.mapped->reader.has_faulted()) {
        segment_.mapped->cold.store(true, std::memory_order_relaxed);
        scan_.tell(&segment_.mapped->reader);
    }
    round_begun_ = now;
    round_spent_ns_ = spending_.spent_ns();
}

void ProbeQuery::notice_memory() {
    if (!asked_from_start_) return;
    MappedPages& mapped = *segment_.mapped;
    if (mapped.reader.waits() == waits_before_) mapped.cold.store(false, std::memory_order_relaxed);
}

double ProbeQuery::excess_verified() const {
    // Any search for the k nearest verifies a few rows per neighbour. In a range search every
    // verified row is usually kept, unless it was seen before.
    const std::size_t usual =
        scan_.wants_every_row() ? scan_.kept() : cost_model.usual_verified(scan_.k());
    return static_cast<double>(std::max(usual, scan_.verified()) - usual);
}

bool ProbeQuery::list_blocks(Checkpoint& checkpoint) {
    BlockList& blocks = scratch_.blocks;
    const std::size_t block_bytes = table_.n_bytes() * block_rows;
    const auto max_blocks = to_the_end_ ? std::numeric_limits<std::size_t>::max()
                                        : static_cast<std::size_t>(spending_.left_ns() / block_ns_);
    blocks.clear();
    for (const auto& [b, key, _] : scratch_.keys) {
        const Band* band = &segment_.bands[b];
        const std::uint32_t begin = band->starts[key];
        const std::uint32_t end = band->starts[key + 1];
        ProbePlan::Seen& seen = plan_.seen(b);
        seen.keys += 1.0f;
        seen.probed += 1.0f;
        // The second condition only fails in a damaged file.
        if (begin >= end || end > band->rows.rows) {
            ++counters_.empty_probes;
            continue;
        }
        const std::size_t before = blocks.size();
        for (auto block = static_cast<std::uint32_t>(begin / block_rows);
             block <= (end - 1) / block_rows; ++block) {
            const std::uint8_t* start = band->rows.blocks + block * block_bytes;
            // Two keys of a band may have their rows in the same block.
            if (blocks.size() > 0 && blocks.starts.back() == start) continue;
            if (blocks.size() * block_bytes < listed_prefetch_bytes) {
                prefetch_soon(start, block_bytes);
            }
            if (blocks.size() >= max_blocks) {
                seen.blocks += static_cast<float>(blocks_between(begin, end));
                return false;
            }
            blocks.push_back(band->rows, block, block_bytes);
        }
        checkpoint.done((blocks.size() - before) * listed_bytes);
        seen.blocks += static_cast<float>(blocks.size() - before);
    }
    return true;
}

bool ProbeQuery::list_lean_blocks(Checkpoint& checkpoint) {
    LeanList& blocks = scratch_.lean_blocks;
    blocks.clear();
    if (scratch_.keys.empty()) return true;
    const std::size_t b = scratch_.keys.front().band;
    const Band& band = segment_.bands[b];
    const std::size_t block_bytes = band.rows.lean->codes->n_bytes() * block_rows;
    lean_rows_ = &band.rows;
    const auto max_blocks = to_the_end_ ? std::numeric_limits<std::size_t>::max()
                                        : static_cast<std::size_t>(spending_.left_ns() / block_ns_);
    ProbePlan::Seen& seen = plan_.seen(b);
    for (const auto& [_, key, flip_sum] : scratch_.keys) {
        const std::uint32_t begin = band.starts[key];
        const std::uint32_t end = band.starts[key + 1];
        seen.keys += 1.0f;
        seen.probed += 1.0f;
        // The second condition only fails in a damaged file.
        if (begin >= end || end > band.rows.rows) {
            ++counters_.empty_probes;
            continue;
        }
        seen.blocks += static_cast<float>(blocks_between(begin, end));
        if (blocks.size() + blocks_between(begin, end) > max_blocks) return false;
        const std::size_t listed_already = blocks.size() * block_bytes;
        if (listed_already < listed_prefetch_bytes) {
            prefetch_soon(band.rows.blocks + begin / block_rows * block_bytes,
                          std::min(blocks_between(begin, end) * block_bytes,
                                   listed_prefetch_bytes - listed_already));
        }
        checkpoint.done(blocks.push_back(band.rows, begin, end, key, flip_sum) * listed_bytes);
    }
    return true;
}

}  // namespace bitweigh
