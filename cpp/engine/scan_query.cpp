#include "engine/scan_query.h"

#include <algorithm>
#include <bit>

#include "engine/kth_smallest.h"

namespace bitweigh {

void SearchCounters::add(const SearchCounters& other) {
    rows_scored_directly += other.rows_scored_directly;
    rows_scanned += other.rows_scanned;
    rows_scanned_wide += other.rows_scanned_wide;
    candidates += other.candidates;
    rescales += other.rescales;
    capped_entries += other.capped_entries;
    duplicates += other.duplicates;
    probing.probes += other.probing.probes;
    probing.empty_probes += other.probing.empty_probes;
    probing.blocks_probed += other.probing.blocks_probed;
    probing.rounds += other.probing.rounds;
    probing.walks_again += other.probing.walks_again;
    probing.exhausted_bands += other.probing.exhausted_bands;
    probing.give_ups += other.probing.give_ups;
    probing.predicted_cost += other.probing.predicted_cost;
    probing.probing_cost += other.probing.probing_cost;
    probing.scan_cost += other.probing.scan_cost;
    nanoseconds += other.nanoseconds;
}

namespace {

// Scoring a block by the definition takes about as long as scanning this many.
constexpr std::size_t scoring_cost = 16;
// Fewer rows of a block are scored one by one.
constexpr int few_rows = 8;

}  // namespace

double sample_bound(const CostTable& costs, const SegmentLine& line, std::size_t k,
                    const Tuning& tuning, SearchCounters& counters, Checkpoint& checkpoint) {
    // Of a filtered line so many more blocks that as many rows count, if they are spread evenly.
    const std::size_t share = std::max<std::size_t>(1, line.n_blocks() * block_rows /
                                                           std::max<std::size_t>(1, line.rows()));
    const std::size_t sample = blocks_of(sample_rows(k, tuning)) * share;
    if (sample >= line.n_blocks()) return padding_distance;
    const auto block_at = [&](std::size_t i, auto visit) {
        const std::size_t at = i * line.n_blocks() / sample;
        line.visit(at, at + 1, [&](const Segment& segment, std::size_t block, std::size_t) {
            visit(segment, block, segment.blocks + block * costs.n_bytes() * block_rows);
        });
    };
    std::vector<double> seen;
    seen.reserve(sample * block_rows / share);
    for (std::size_t i = 0; i < sample; ++i) {
        if (i + 1 < sample) {
            block_at(i + 1, [&](const Segment&, std::size_t, const std::uint8_t* start) {
                for (std::size_t p = 0; p < costs.n_bytes(); p += 2) {
                    __builtin_prefetch(start + p * block_rows);
                }
            });
        }
        block_at(i, [&](const Segment& segment, std::size_t block, const std::uint8_t* start) {
            const std::uint32_t counted = segment.rows_in(block);
            if (std::popcount(counted) < few_rows) {
                for (std::uint32_t left = counted; left != 0; left &= left - 1) {
                    const auto r = static_cast<std::size_t>(std::countr_zero(left));
                    seen.push_back(costs.distance(start, r));
                }
                return;
            }
            double distances[block_rows];
            costs.distances(start, distances);
            for (std::size_t r = 0; r < block_rows; ++r) {
                if (counted >> r & 1) seen.push_back(distances[r]);
            }
        });
        checkpoint.done(costs.n_bytes() * block_rows * scoring_cost / share);
    }
    counters.rows_scored_directly += seen.size();
    return seen.size() < k ? padding_distance : kth_smallest(seen.data(), seen.size(), k);
}

ScanQuery::ScanQuery(const CostTable& costs, std::size_t k, const Kernel& kernel, bool wide,
                     SharedBound& bound, bool repeats)
    : costs_(costs),
      kernel_(kernel),
      bound_(bound),
      bounds_(std::in_place, costs, wide),
      top_(k, repeats) {}

void ScanQuery::scan(const BlockRows& rows, std::size_t begin, std::size_t end, Hit* hits) {
    if (!ready()) {
        for (std::size_t block = begin; block < end; ++block) score_all(rows, block);
    } else {
        const ScanBlocks kernel = bounds_->wide() ? kernel_.wide : kernel_.narrow;
        const std::size_t n = kernel(rows.blocks, begin, end, bounds_->tables(), hits);
        for (std::size_t i = 0; i < n; ++i) score(rows, hits[i].block, hits[i].rows);
        offer_scored();
        count(std::min(rows.rows, end * block_rows) - begin * block_rows);
    }
    bound_.lower_to(top_.worst());
}

void ScanQuery::scan_listed(const BlockList& list, std::size_t first, std::size_t n, Hit* hits) {
    std::size_t i = first;
    for (; i < first + n && !ready(); ++i) score_all(*list.places[i].rows, list.places[i].block);
    if (i < first + n) {
        const ScanListed kernel = bounds_->wide() ? kernel_.wide_listed : kernel_.narrow_listed;
        const std::size_t left = first + n - i;
        const std::size_t found = kernel(list.starts.data() + i, left, bounds_->tables(), hits);
        for (std::size_t h = 0; h < found; ++h) {
            const BlockList::Place& place = list.places[i + hits[h].block];
            score(*place.rows, place.block, hits[h].rows);
        }
        offer_scored();
        count(left * block_rows);
    }
    bound_.lower_to(top_.worst());
}

void ScanQuery::scan_allowed(const Segment& segment, std::size_t begin, std::size_t end,
                             Checkpoint& checkpoint) {
    const std::size_t block_bytes = costs_.n_bytes() * block_rows;
    BlockList list;
    std::vector<Hit> hits(blocks_at_once);
    const auto scan_list = [&] {
        scan_listed(list, 0, list.size(), hits.data());
        checkpoint.done(list.size() * block_bytes);
        list.clear();
    };
    const auto& blocks = segment.allowed_blocks;
    for (auto at = std::lower_bound(blocks.begin(), blocks.end(), begin);
         at != blocks.end() && *at < end; ++at) {
        list.push_back(segment, *at, block_bytes);
        if (list.size() == blocks_at_once) scan_list();
    }
    scan_list();
}

bool ScanQuery::ready() {
    top_.lower_bound_to(bound_.get());
    if (top_.worst() == padding_distance) return false;
    if (!bounds_->wide() && rejected_ > std::max(widen_after, counters_.rows_scanned / widen_share)) {
        count_tables();
        bounds_.emplace(costs_, true);
        tables_worst_ = padding_distance;
    }
    if (top_.worst() < tables_worst_) {
        tables_worst_ = top_.worst();
        bounds_->lower_to(tables_worst_);
    }
    return true;
}

void ScanQuery::count(std::size_t rows) {
    counters_.rows_scanned += rows;
    counters_.rows_scanned_wide += bounds_->wide() ? rows : 0;
}

void ScanQuery::count_tables() {
    counters_.rescales += bounds_->rescales();
    counters_.capped_entries += bounds_->capped_entries();
}

SearchCounters ScanQuery::counters() {
    count_tables();
    counters_.duplicates = top_.repeats();
    return counters_;
}

std::vector<Neighbour> ScanQuery::take_sorted() {
    const std::vector<Candidate> sorted = top_.take_sorted();
    std::vector<Neighbour> neighbours;
    neighbours.reserve(sorted.size());
    for (const Candidate& c : sorted) neighbours.push_back({c.distance, *c.id});
    return neighbours;
}

void ScanQuery::score_all(const BlockRows& rows, std::size_t block) {
    double distances[block_rows];
    costs_.distances(rows.blocks + block * costs_.n_bytes() * block_rows, distances);
    std::uint32_t left = rows.rows_in(block);
    counters_.rows_scored_directly += static_cast<std::uint64_t>(std::popcount(left));
    for (; left != 0; left &= left - 1) {
        const auto r = static_cast<std::size_t>(std::countr_zero(left));
        offer(rows, block * block_rows + r, distances[r]);
    }
}

void ScanQuery::score(const BlockRows& rows, std::size_t block, std::uint32_t hit_rows) {
    if (n_scored_ + block_rows > scored_.size()) offer_scored();
    const std::uint8_t* start = rows.blocks + block * costs_.n_bytes() * block_rows;
    const double worst = top_.worst();
    std::uint32_t left = hit_rows & rows.rows_in(block);
    const std::size_t before = n_scored_;
    const auto let_through = static_cast<std::size_t>(std::popcount(left));
    counters_.candidates += let_through;
    for (; left != 0; left &= left - 1) {
        const auto r = static_cast<std::size_t>(std::countr_zero(left));
        const std::size_t position = block * block_rows + r;
        const double distance = costs_.distance(start, r);
        scored_[n_scored_] = {distance, &rows, static_cast<Row>(position)};
        n_scored_ += distance <= worst;
        if (rows.row_numbers) __builtin_prefetch(rows.row_numbers + position);
    }
    rejected_ += let_through - (n_scored_ - before);
}

void ScanQuery::offer_scored() {
    for (std::size_t i = 0; i < n_scored_; ++i) {
        offer(*scored_[i].rows, scored_[i].position, scored_[i].distance);
    }
    n_scored_ = 0;
}

void ScanQuery::offer(const BlockRows& rows, std::size_t position, double distance) {
    if (distance > top_.worst()) return;
    if (const IdPlace id = rows.id_at(position)) {
        id.prefetch();
        top_.offer({distance, id});
    }
}

}  // namespace bitweigh
