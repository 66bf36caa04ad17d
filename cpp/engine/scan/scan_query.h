// Scans blocks for one query, exactly: the kernel names candidates, the definition decides.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/counters.h"
#include "engine/pages.h"
#include "engine/parallel.h"
#include "engine/query/bound_tables.h"
#include "engine/query/cost_table.h"
#include "engine/query/top_k.h"
#include "engine/rows/segment.h"
#include "engine/scan/lean_tables.h"
#include "engine/scan/scan.h"
#include "engine/tuning.h"

namespace bitweigh {

// A distance that the K-th nearest of a query's whole search does not exceed, shared by the threads
// that scan different rows for it. It only falls.
class SharedBound {
public:
    double get() const { return bound_.load(std::memory_order_relaxed); }
    void lower_to(double bound) {
        double current = get();
        while (bound < current &&
               !bound_.compare_exchange_weak(current, bound, std::memory_order_relaxed)) {
        }
    }

private:
    std::atomic<double> bound_ = padding_distance;
};

// Samples blocks spread evenly over the line, since rows close to each other may be alike, and
// lowers the bound to the distance of the k-th nearest row in them. If there is a bound already, a
// small sample is enough or shows whether a larger one is worth it. Does nothing if the sample
// would be the whole line.
void sample_bound(const CostTable& costs, const SegmentLine& line, std::size_t k,
                  const Tuning& tuning, SharedBound& bound, SearchCounters& counters,
                  Checkpoint& checkpoint);

// A list of blocks to scan, of any segment and band.
struct BlockList {
    struct Place {
        const BlockRows* rows;
        std::uint32_t block;  // Number of the block in `rows`.
    };
    std::vector<const std::uint8_t*> starts;  // First byte of each block.
    std::vector<Place> places;                // Place of each block.

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
    // `wide`: use 16-bit sums from the start. `repeats`: rows may be scanned more than once. If k
    // is every_row, all rows within the bound are kept. With a deadline, the checkpoint is told of
    // work on many rows.
    ScanQuery(const CostTable& costs, std::size_t k, const Kernel& kernel, bool wide,
              SharedBound& bound, bool repeats = false, Checkpoint* checkpoint = nullptr);

    // Offers every row of blocks [begin, end) that can be among the K nearest. `hits` has room for
    // end - begin.
    void scan(const BlockRows& rows, std::size_t begin, std::size_t end, Hit* hits);
    // The same for n blocks of the list, from `first` on. `hits` has room for n.
    void scan_listed(const BlockList& list, std::size_t first, std::size_t n, Hit* hits);
    // The same for lean rows of one band.
    void scan_lean(const BlockRows& rows, LeanList& list, std::size_t first, std::size_t n,
                   Hit* hits);

    // No row farther than this can be among the K nearest; +inf while no bound is known.
    double worst() const { return std::min(top_.worst(), bound_.get()); }

    // The number of rows kept at the moment.
    std::size_t kept() const { return top_.size(); }

    // Drops all but the first n rows kept; only if k is every_row.
    void keep_first(std::size_t n) { top_.keep_first(n); }

    // The number of rows that the kernel has let through.
    std::size_t verified() const { return counters_.verified; }
    std::size_t k() const { return top_.k(); }
    // Whether all rows within the bound are kept; the bound then never falls.
    bool wants_every_row() const { return top_.k() == every_row; }

    // From now on the reader, which may be null, is told what will be read: row numbers, and ids of
    // rows kept. Whoever lists blocks tells of those.
    void tell(PageReader* reader) { pages_ = reader; }
    PageReader* pages() const { return pages_; }

    // Returns the rows kept, nearest first. Must be called once, after all scanning.
    std::vector<Neighbour> take_sorted();
    // Must be called once, after all scanning.
    SearchCounters counters();
    SearchCounters& probe_counters() { return counters_; }

private:
    // Returns whether a bound is known.
    bool has_bound();
    // The same, and updates the tables to it.
    bool ready();
    // scan() of lean rows: lists the rows of each key that can be within the bound.
    void scan_lean_blocks(const BlockRows& rows, std::size_t begin, std::size_t end);
    LeanTables& lean_tables(const BlockRows& rows);
    void score_lean(const BlockRows& rows, const LeanList::Place& place, std::uint32_t hit_rows);
    void count(std::size_t rows);
    void count_tables();
    void score_all(const BlockRows& rows, std::size_t block);
    // Scores rows that the kernel let through; those within the bound are offered later, when their
    // row numbers, which are seldom in the cache, have been prefetched.
    void score(const BlockRows& rows, std::size_t block, std::uint32_t hit_rows);
    void score_each(const BlockRows& rows, std::size_t block, std::uint32_t hit_rows);
    // Scores the rows that have the code of the first, whose distance is computed once. Returns the
    // other rows, which have yet to be scored.
    std::uint32_t score_alike(const BlockRows& rows, std::size_t block, std::uint32_t hit_rows);
    // Drops the rows that come after the K-th nearest and returns the rest. No row may be nearer
    // than `distance`.
    std::uint32_t drop_behind(const BlockRows& rows, std::size_t block, double distance,
                              std::uint32_t hit_rows) const;
    void offer_scored();
    void offer(const BlockRows& rows, std::size_t position, double distance);

    const CostTable& costs_;
    const Kernel& kernel_;
    SharedBound& bound_;
    std::optional<BoundTables> bounds_;
    std::vector<std::unique_ptr<LeanTables>> lean_tables_;  // Those of the bands seen so far.
    LeanList lean_list_;                                    // Scratch of scan_lean_blocks().
    std::vector<Hit> lean_hits_;
    TopK<Candidate> top_;
    double tables_worst_ = padding_distance;  // Value of `worst` that the tables are for.
    std::size_t rejected_ = 0;                // Number of candidates that were too far.
    SearchCounters counters_;
    struct Scored {
        double distance;
        const BlockRows* rows;
        Row position;
    };
    std::array<Scored, 3 * block_rows> scored_;  // Rows within the bound, yet to be offered.
    std::size_t n_scored_ = 0;
    PageReader* pages_ = nullptr;
};

}  // namespace bitweigh
