// One query over the bands of one segment, exactly: buckets near the query, nearest first, until no
// row outside them can be among the K nearest, or within the radius.
//
// Why it may stop. When a band was walked up to a limit, every row whose key has a sum within that
// limit was seen. A row not seen in any band has a larger sum than the limit in each band that was
// walked, and the other bits cost at least nothing: so its flip sums are at least the sum of the
// limits. Once that exceeds worst - offset + slack, its distance exceeds `worst`.
//
// The slack of cost_table.h also covers the rounding of these sums. In a band of s bits a row's sum
// is at most (1 + u)^s times the real one: each weight is rounded once and s - 1 additions are.
// Adding m limits rounds m - 1 times. No bit is in two bands, so s + m - 1 <= n_bits, and the
// limits together exceed the row's real flip sums, which are at most 2 M, by less than 2 n_bits u
// M. With what a distance, the offset and the target are off, (n_bits / 8 + 9) u M, n_bits u M and
// 6 u M, that is less than 4 (n_bits + 8) u M for every n_bits and bands of any size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/parallel.h"
#include "engine/probe/band_query.h"
#include "engine/probe/cost_model.h"
#include "engine/probe/plan.h"
#include "engine/query/cost_table.h"
#include "engine/rows/segment.h"
#include "engine/scan/scan_query.h"
#include "engine/tuning.h"

namespace bitweigh {

// Scratch memory of a query. ProbeQuery sets every part of it before it reads it, but for `keys`,
// which are empty between two queries.
struct ProbeScratch {
    std::vector<double> flips;
    std::vector<std::uint8_t> cheap_ones;
    std::vector<BandQuery> bands;
    ProbePlan plan;
    struct BandKey {
        std::uint32_t band;
        Key key;
    };
    std::vector<BandKey> keys;
    BlockList blocks;
    std::vector<Hit> hits;
};

// A ProbeScratch for the time of a search. Each thread keeps one from one search to the next,
// because making one takes longer than a short search. A search takes it away from the thread while
// it lasts: a search may be interrupted by another one on the same thread, from a signal handler or
// a finaliser, which then gets scratch memory of its own. A search that ends by an exception throws
// its scratch memory away.
class BorrowedScratch {
public:
    BorrowedScratch();
    ~BorrowedScratch();
    BorrowedScratch(const BorrowedScratch&) = delete;
    BorrowedScratch& operator=(const BorrowedScratch&) = delete;

    ProbeScratch& operator*() { return *scratch_; }

private:
    int exceptions_;  // under way when it was borrowed
    std::unique_ptr<ProbeScratch> scratch_;
};

// What a search may do with segments that have bands. The answer is always the same.
enum class Method {
    automatic,  // probe, and scan where that turns out to be faster
    scan,
    probe,  // to the end, however long it takes
};

// Whether the bands of a segment are to be used; not where a scan is over before probing has begun.
bool worth_probing(const Segment& segment, std::size_t n_bytes, std::size_t k, Method method,
                   const Tuning& tuning);

class ProbeQuery {
public:
    // `costs` is the query, n_bits x 2; `scan` keeps the nearest. The segment has bands.
    ProbeQuery(const Segment& segment, const double* costs, const CostTable& table, ScanQuery& scan,
               ProbeScratch& scratch, const Tuning& tuning);

    // Sees every row that can be among the K nearest and returns true; or returns false because
    // scanning the whole segment is faster than going on. With `to_the_end` it never does.
    bool run(bool to_the_end, Checkpoint& checkpoint);

private:
    void prepare(const double* costs);
    bool probe(Checkpoint& checkpoint);
    // Looks up how many rows the cheapest key of each band has, without reading any.
    void look_at_cheapest();
    bool has_bound() const { return scan_.worst() < padding_distance; }
    // What the limits of the bands must exceed together before the search may end, as far as is
    // known.
    double next_target() const;
    // Whether a scan is predicted to be faster than going on, or no bound was found in time.
    bool exceeds_scan();
    // Probes every key between the limits and the next ones; false where that takes too long.
    bool walk_to_next(Checkpoint& checkpoint);
    bool probe_keys(Checkpoint& checkpoint);
    // Rows that the kernel has let through, beyond those that every search has to verify.
    double verified_in_vain() const;
    // Lists the blocks of the keys; false, with some of them, where they take too long: a single
    // bucket may hold most of the rows, which is seen only here.
    bool list_blocks();

    const Segment& segment_;
    const CostTable& table_;
    ScanQuery& scan_;
    ProbeScratch& scratch_;
    ProbePlan& plan_;
    SearchCounters& counters_;
    const double first_round_ns_;
    const double block_ns_;
    const double verify_ns_;
    ProbeSpending spending_;
    double cost_ratio_ = 1.0;     // how many times longer than planned the last round took; >= 1
    double predicted_ns_ = -1.0;  // of all probing, once there is a bound
    std::size_t at_once_ = first_blocks_at_once;
    bool to_the_end_ = false;
    bool all_seen_ = false;  // a band has no key left
};

}  // namespace bitweigh
