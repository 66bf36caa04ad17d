// One query over blocks, exactly: the kernel names candidates, the definition decides.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/bound_tables.h"
#include "engine/cost_table.h"
#include "engine/parallel.h"
#include "engine/scan/scan.h"
#include "engine/segment.h"
#include "engine/top_k.h"
#include "engine/tuning.h"

namespace bitweigh {

// What a query's search did. Counts depend on the number of threads; the answer does not.
struct SearchCounters {
    std::uint64_t rows_scored_directly = 0;  // without the kernel: small indexes, warm-up
    std::uint64_t rows_scanned = 0;          // by the kernel
    std::uint64_t rows_scanned_wide = 0;     // of those, with 16-bit sums
    std::uint64_t candidates = 0;            // rows that the kernel let through
    std::uint64_t rescales = 0;              // tables quantised anew because `worst` had halved
    std::uint64_t capped_entries = 0;        // table entries too large for their 8 bits

    void add(const SearchCounters& other);
};

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

// The distance of the k-th best among blocks spread evenly over the line: a first bound. Rows near
// each other in a segment may be alike, hence spread. Returns +inf where the sample has fewer than
// k rows, or would be the whole line.
double sample_bound(const CostTable& costs, const SegmentLine& line, std::size_t k,
                    const Tuning& tuning, SearchCounters& counters, Checkpoint& checkpoint);

class ScanQuery {
public:
    ScanQuery(const CostTable& costs, std::size_t k, const Kernel& kernel, const Tuning& tuning,
              SharedBound& bound);

    // Offers every row of blocks [begin, end) of the segment that can be among the K nearest.
    // `hits` has room for end - begin.
    void scan(const Segment& segment, std::size_t begin, std::size_t end, Hit* hits);

    // What was found, nearest first; to be called once, at the end.
    std::vector<Neighbour> take_sorted();
    // Valid once everything was scanned.
    SearchCounters counters() const;

private:
    void score_all(const Segment& segment, std::size_t begin, std::size_t end);
    void verify(const Segment& segment, const Hit& hit);
    void offer(const Segment& segment, std::size_t block, std::size_t r, double distance);

    const CostTable& costs_;
    const Kernel& kernel_;
    SharedBound& bound_;
    BoundTables bounds_;
    TopK<Candidate> top_;
    double tables_worst_ = padding_distance;  // what the tables' threshold was made for
    SearchCounters counters_;
};

}  // namespace bitweigh
