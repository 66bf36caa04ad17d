#include "engine/scan/scan_query.h"

#include <algorithm>
#include <bit>

#include "engine/query/stoppable.h"

namespace bitweigh {

namespace {

// Scoring a block by the definition takes about as long as scanning this many.
constexpr std::size_t scoring_cost = 16;
// The number of rows of a block from which on it is faster to score the whole block.
constexpr int min_rows_to_score_block = 8;

// The distances of about `rows` rows in blocks spread evenly over the line; empty if that would be
// all blocks.
std::vector<double> sample_distances(const CostTable& costs, const SegmentLine& line,
                                     std::size_t rows, SearchCounters& counters,
                                     Checkpoint& checkpoint) {
    // A filtered line needs more blocks for as many rows, by this factor if they are spread evenly.
    const std::size_t sparsity = std::max<std::size_t>(
        1, line.n_blocks() * block_rows / std::max<std::size_t>(1, line.rows()));
    const std::size_t n_sampled = blocks_of(rows) * sparsity;
    if (n_sampled >= line.n_blocks()) return {};
    const auto visit_sampled = [&](std::size_t i, auto visit) {
        const std::size_t line_block = i * line.n_blocks() / n_sampled;
        line.visit(line_block, line_block + 1,
                   [&](const Segment& segment, std::size_t block, std::size_t) {
                       const std::size_t n_bytes = segment.bytes_of_row(costs.n_bytes());
                       visit(segment, block, segment.blocks + block * n_bytes * block_rows);
                   });
    };
    std::vector<double> sampled;
    sampled.reserve(n_sampled * block_rows / sparsity);
    for (std::size_t i = 0; i < n_sampled; ++i) {
        if (i + 1 < n_sampled) {
            visit_sampled(
                i + 1, [&](const Segment& segment, std::size_t, const std::uint8_t* start) {
                    for (std::size_t p = 0; p < segment.bytes_of_row(costs.n_bytes()); p += 2) {
                        __builtin_prefetch(start + p * block_rows);
                    }
                });
        }
        visit_sampled(i, [&](const Segment& segment, std::size_t block, const std::uint8_t* start) {
            const std::uint32_t allowed = segment.rows_in(block);
            if (segment.lean) {
                visit_lean_codes(segment, block, allowed, [&](std::size_t, CodeNumber code) {
                    sampled.push_back(costs.distance(code));
                });
                return;
            }
            if (std::popcount(allowed) < min_rows_to_score_block) {
                for (std::uint32_t left = allowed; left != 0; left &= left - 1) {
                    const auto r = static_cast<std::size_t>(std::countr_zero(left));
                    sampled.push_back(costs.distance(start, r));
                }
                return;
            }
            double distances[block_rows];
            costs.distances(start, distances);
            for (std::size_t r = 0; r < block_rows; ++r) {
                if (allowed >> r & 1) sampled.push_back(distances[r]);
            }
        });
        checkpoint.done(costs.n_bytes() * block_rows * scoring_cost / sparsity);
    }
    counters.rows_scored_directly += sampled.size();
    return sampled;
}

}  // namespace

void sample_bound(const CostTable& costs, const SegmentLine& line, std::size_t k,
                  const Tuning& tuning, SharedBound& bound, SearchCounters& counters,
                  Checkpoint& checkpoint) {
    if (bound.get() < padding_distance) {
        std::vector<double> small =
            sample_distances(costs, line, tuning.warm_up_rows / 2, counters, checkpoint);
        if (small.size() >= tuning.warm_up_per_k * k) {
            bound.lower_to(kth_smallest(small.data(), small.size(), k, &checkpoint));
            return;
        }
        const auto nearer_rows = std::count_if(
            small.begin(), small.end(), [&](double distance) { return distance < bound.get(); });
        if (static_cast<std::size_t>(nearer_rows) * loose_share <= small.size()) return;
    }
    const std::size_t rows = std::max(tuning.warm_up_rows, tuning.warm_up_per_k * k);
    std::vector<double> sampled = sample_distances(costs, line, rows, counters, checkpoint);
    if (sampled.size() >= k) {
        bound.lower_to(kth_smallest(sampled.data(), sampled.size(), k, &checkpoint));
    }
}

ScanQuery::ScanQuery(const CostTable& costs, std::size_t k, const Kernel& kernel, bool wide,
                     SharedBound& bound, bool repeats, Checkpoint* checkpoint)
    : costs_(costs),
      kernel_(kernel),
      bound_(bound),
      bounds_(std::in_place, costs, wide),
      top_(k, repeats, checkpoint) {}

void ScanQuery::scan(const BlockRows& rows, std::size_t begin, std::size_t end, Hit* hits) {
    if (rows.lean) return scan_lean_blocks(rows, begin, end);
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

bool ScanQuery::has_bound() {
    top_.lower_bound_to(bound_.get());
    return top_.worst() < padding_distance;
}

bool ScanQuery::ready() {
    if (!has_bound()) return false;
    if (!bounds_->wide() &&
        rejected_ > std::max(widen_after, counters_.rows_scanned / widen_share)) {
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
    if (pages_) {
        top_.visit_kept([&](const Candidate& kept) {
            if (const void* id = kept.id.address()) pages_->will_read(id, 1);
        });
    }
    return top_.take_sorted();
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
    std::uint32_t left = hit_rows & rows.rows_in(block);
    const int n_hits = std::popcount(left);
    counters_.verified += static_cast<std::uint64_t>(n_hits);
    if (n_hits >= many_hits) {
        left = drop_behind(rows, block, costs_.least_distance(), left);
        while (std::popcount(left) >= many_hits) {
            const std::uint32_t others = score_alike(rows, block, left);
            const bool are_alike = std::popcount(left ^ others) >= many_alike;
            left = others;
            if (!are_alike) break;
        }
    }
    score_each(rows, block, left);
}

void ScanQuery::score_each(const BlockRows& rows, std::size_t block, std::uint32_t hit_rows) {
    const std::uint8_t* start = rows.blocks + block * costs_.n_bytes() * block_rows;
    const double worst = top_.worst();
    for (std::uint32_t left = hit_rows; left != 0; left &= left - 1) {
        const auto r = static_cast<std::size_t>(std::countr_zero(left));
        const std::size_t position = block * block_rows + r;
        const double distance = costs_.distance(start, r);
        scored_[n_scored_] = {distance, &rows, static_cast<Row>(position)};
        n_scored_ += distance <= worst;
        rejected_ += !(distance <= worst);
        if (rows.row_numbers) __builtin_prefetch(rows.row_numbers + position);
    }
}

std::uint32_t ScanQuery::score_alike(const BlockRows& rows, std::size_t block,
                                     std::uint32_t hit_rows) {
    const std::uint8_t* start = rows.blocks + block * costs_.n_bytes() * block_rows;
    const auto first = static_cast<std::size_t>(std::countr_zero(hit_rows));
    const std::uint32_t alike = rows_like(start, costs_.n_bytes(), first) & hit_rows;
    const double distance = costs_.distance(start, first);
    if (distance > top_.worst()) {
        rejected_ += static_cast<std::size_t>(std::popcount(alike));
        return hit_rows ^ alike;
    }
    std::uint32_t left = drop_behind(rows, block, distance, alike);
    for (; left != 0; left &= left - 1) {
        const std::size_t position =
            block * block_rows + static_cast<std::size_t>(std::countr_zero(left));
        scored_[n_scored_++] = {distance, &rows, static_cast<Row>(position)};
        if (rows.row_numbers) __builtin_prefetch(rows.row_numbers + position);
    }
    return hit_rows ^ alike;
}

std::uint32_t ScanQuery::drop_behind(const BlockRows& rows, std::size_t block, double distance,
                                     std::uint32_t hit_rows) const {
    const Candidate* kth = top_.kth();
    if (!kth || distance < kth->distance || rows.row_numbers) return hit_rows;
    // The rows are as far as the K-th nearest, or farther: only those with a lower id can precede
    // it.
    return hit_rows & rows.ids_below(block, *kth->id);
}

void ScanQuery::offer_scored() {
    if (pages_) {
        for (std::size_t i = 0; i < n_scored_; ++i) {
            const Row* row_numbers = scored_[i].rows->row_numbers;
            if (row_numbers) pages_->will_read(row_numbers + scored_[i].position, sizeof(Row));
        }
    }
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
