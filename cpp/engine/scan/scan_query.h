// One query over blocks, exactly: the kernel names candidates, the definition decides.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/counters.h"
#include "engine/parallel.h"
#include "engine/query/bound_tables.h"
#include "engine/query/cost_table.h"
#include "engine/query/top_k.h"
#include "engine/rows/segment.h"
#include "engine/scan/scan.h"
#include "engine/tuning.h"

namespace bitweigh {

// A distance that the K-th best of a query's whole search does not exceed, shared by the threads
// that scan different rows for it. It only falls.
class SharedBound {
public:
    double get() const { return bound_.load(std::memory_order_relaxed); }
    void lower_to(double bound) {
        double seen = get();
        while (bound < seen &&
               !bound_.compare_exchange_weak(seen, bound, std::memory_order_relaxed)) {
        }
    }

private:
    std::atomic<double> bound_ = padding_distance;
};

// Looks at blocks spread evenly over the line, since rows near each other may be alike, and lowers
// the bound to the distance of the k-th best there. Where there is a bound already, a small sample
// is enough or tells whether a larger one is worth it. Does nothing where a sample would be the
// whole line.
void sample_bound(const CostTable& costs, const SegmentLine& line, std::size_t k,
                  const Tuning& tuning, SharedBound& bound, SearchCounters& counters,
                  Checkpoint& checkpoint);

// Blocks to look at: where each starts, and whose it is.
struct BlockList {
    struct Place {
        const BlockRows* rows;
        std::uint32_t block;
    };
    std::vector<const std::uint8_t*> starts;
    std::vector<Place> places;

    std::size_t size() const { return starts.size(); }
    void clear() {
        starts.clear();
        places.clear();
    }
    void push_back(const BlockRows& rows, std::uint32_t block, std::size_t block_bytes) {
        starts.push_back(rows.blocks + block * block_bytes);
        places.push_back({&rows, block});
    }
};

class ScanQuery {
public:
    // `wide`: with 16-bit sums from the start. `repeats`: rows may be met more than once. With
    // every_row as k everything within the bound is kept.
    ScanQuery(const CostTable& costs, std::size_t k, const Kernel& kernel, bool wide,
              SharedBound& bound, bool repeats = false);

    // Offers every row of blocks [begin, end) that can be among the K nearest. `hits` has room for
    // end - begin.
    void scan(const BlockRows& rows, std::size_t begin, std::size_t end, Hit* hits);
    // The same for n blocks of any bands, in any order.
    void scan_listed(const BlockList& list, std::size_t first, std::size_t n, Hit* hits);

    // Those of blocks [begin, end) that the segment lists as having rows that are allowed.
    void scan_allowed(const Segment& segment, std::size_t begin, std::size_t end,
                      Checkpoint& checkpoint);

    // No row farther than this can be among the K nearest; +inf while fewer than K were met.
    double worst() const { return std::min(top_.worst(), bound_.get()); }

    // How many rows are kept at the moment.
    std::size_t kept() const { return top_.size(); }

    // Keeps only so many of them, those that came first; only where every row is wanted.
    void keep_first(std::size_t n) { top_.keep_first(n); }

    // How many rows the kernel has let through.
    std::size_t verified() const { return counters_.verified; }
    std::size_t k() const { return top_.k(); }
    // Whether everything within a bound is wanted, which then never falls.
    bool wants_every_row() const { return top_.k() == every_row; }

    // What was found, nearest first; to be called once, at the end.
    std::vector<Neighbour> take_sorted();
    // To be called once, when everything was scanned.
    SearchCounters counters();
    SearchCounters& probe_counters() { return counters_; }

private:
    // Whether a bound is known; brings the tables down to it.
    bool ready();
    void count(std::size_t rows);
    void count_tables();
    void score_all(const BlockRows& rows, std::size_t block);
    // Scores rows that the kernel let through; those within the bound wait until their row numbers,
    // which are seldom in the cache, have been fetched.
    void score(const BlockRows& rows, std::size_t block, std::uint32_t hit_rows);
    void score_each(const BlockRows& rows, std::size_t block, std::uint32_t hit_rows);
    // Rows with the same code have the same distance, and it is computed once. Returns the rows of
    // other codes, which are yet to be scored.
    std::uint32_t score_alike(const BlockRows& rows, std::size_t block, std::uint32_t hit_rows);
    // Of rows that are no nearer than `distance`, those that are not behind the K-th nearest.
    std::uint32_t drop_behind(const BlockRows& rows, std::size_t block, double distance,
                              std::uint32_t hit_rows) const;
    void offer_scored();
    void offer(const BlockRows& rows, std::size_t position, double distance);

    const CostTable& costs_;
    const Kernel& kernel_;
    SharedBound& bound_;
    std::optional<BoundTables> bounds_;
    TopK<Candidate> top_;
    double tables_worst_ = padding_distance;  // what the tables' threshold was made for
    std::size_t rejected_ = 0;                // candidates that were not near
    SearchCounters counters_;
    struct Scored {
        double distance;
        const BlockRows* rows;
        Row position;
    };
    std::array<Scored, 3 * block_rows> scored_;
    std::size_t n_scored_ = 0;
};

}  // namespace bitweigh
