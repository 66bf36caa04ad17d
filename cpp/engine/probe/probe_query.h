// Probes the bands of one segment for one query, exactly: buckets near the query, nearest first,
// until no row outside them can be among the K nearest, or within the radius.
//
// Why it may stop. When a band was walked up to a limit, every row whose key has a sum within that
// limit was seen. A row not seen in any band has a larger sum than the limit in each band that was
// walked, and the other bits add no less than 0: so its flip sums are at least the sum of the
// limits. Once that exceeds worst - offset + slack, its distance exceeds `worst`.
//
// The slack of cost_table.h also covers the rounding of these sums. In a band of s bits a row's sum
// is at most (1 + u)^s times the real one: each weight is rounded once and s - 1 additions are.
// Adding m limits rounds m - 1 times. No bit is in two bands, so s + m - 1 <= n_bits, and the
// limits together exceed the row's real flip sums, which are at most 2 M, by less than 2 n_bits u
// M. With what a distance, the offset and the target are off, (n_bits / 8 + 9) u M, n_bits u M and
// 6 u M, that is less than 4 (n_bits + 8) u M for every n_bits and bands of any size.
#pragma once

#include <chrono>
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

// The scratch memory of a query. ProbeQuery sets every member before it reads it, except `keys`,
// which is empty between two queries.
struct ProbeScratch {
    std::vector<double> flips;             // Flip weight of each bit of the code.
    std::vector<std::uint8_t> cheap_ones;  // Whether 1 is the cheap value of each bit.
    std::vector<BandQuery> bands;
    ProbePlan plan;
    struct BandKey {
        std::uint32_t band;
        Key key;
        double flip_sum;
    };
    std::vector<BandKey> keys;  // Keys to probe next.
    BlockList blocks;           // Blocks of those keys,
    LeanList lean_blocks;       // or of keys of one band of a lean segment.
    std::vector<Hit> hits;
};

// A ProbeScratch for the duration of a search. Each thread keeps one between searches, because
// building one takes longer than a short search. A search takes it away from the thread until it
// ends: another search may run on the same thread meanwhile, from a signal handler or a finaliser,
// and then gets a new ProbeScratch. A search that ends with an exception frees its ProbeScratch.
class BorrowedScratch {
public:
    BorrowedScratch();
    ~BorrowedScratch();
    BorrowedScratch(const BorrowedScratch&) = delete;
    BorrowedScratch& operator=(const BorrowedScratch&) = delete;

    ProbeScratch& operator*() { return *scratch_; }

private:
    int exceptions_;  // Number of uncaught exceptions when it was borrowed.
    std::unique_ptr<ProbeScratch> scratch_;
};

// How a search treats segments that have bands. The answer is always the same.
enum class Method {
    automatic,  // Probe, and fall back to the scan if that turns out to be faster.
    scan,       // Ignore the bands.
    probe,      // Probe to the end, however long it takes.
};

// Whether to use the bands of a segment; with Method::automatic, not if a scan takes little longer
// than preparing to probe.
bool worth_probing(const Segment& segment, std::size_t n_bytes, std::size_t k, Method method,
                   const Tuning& tuning);

class ProbeQuery {
public:
    // `costs` is the query, of shape (n_bits, 2); `scan` keeps the nearest. The segment must have
    // bands.
    ProbeQuery(const Segment& segment, const double* costs, const CostTable& table, ScanQuery& scan,
               ProbeScratch& scratch, const Tuning& tuning);

    // Returns true after scoring every row that can be among the K nearest, or false if scanning
    // the whole segment is faster than going on. With `to_the_end` it never returns false.
    bool run(bool to_the_end, Checkpoint& checkpoint);

private:
    void prepare(const double* costs);
    bool probe(Checkpoint& checkpoint);
    // Looks up the number of blocks of each band's cheapest key, without reading them.
    void look_at_cheapest();
    bool has_bound() const { return scan_.worst() < padding_distance; }
    // The flip sum that the limits of the bands must together exceed, as far as is known now,
    // before the search may end.
    double next_target() const;
    // Predicts the time of all probing, spent and still to come.
    void predict();
    // Whether a scan is predicted to be faster than going on, or no bound was found in time.
    bool exceeds_scan();
    // Probes every key between the limits and the next ones; returns false if that takes too long.
    bool walk_to_next(Checkpoint& checkpoint);
    // Whether there is time left for probing.
    bool may_go_on() const { return to_the_end_ || spending_.within_limit(); }
    // Probes the keys collected in the scratch; returns false, with blocks left, if that takes too
    // long.
    bool probe_keys(Checkpoint& checkpoint);
    // The number of rows that the kernel has let through, beyond those that every search verifies.
    double excess_verified() const;
    // Lists the blocks of the keys; returns false, with an incomplete list, if they would take too
    // long: a single bucket may hold most of the rows, which shows only here.
    bool list_blocks(Checkpoint& checkpoint);
    // The same for keys of one band of a lean segment.
    bool list_lean_blocks(Checkpoint& checkpoint);
    bool is_lean() const { return segment_.lean != nullptr; }
    // Tells the reader, if there is one, of the directory entries of the keys,
    void tell_of_keys();
    // and of the listed blocks.
    void tell_of_blocks(std::span<const std::uint8_t* const> starts, std::size_t block_bytes);
    // Begins to tell a reader of mapped pages if the last round took so long that it must have
    // waited for a disk.
    void notice_disk();
    // Notes that the pages are in memory if the search asked for all of them and never waited.
    void notice_memory();

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
    const BlockRows* lean_rows_ = nullptr;  // Rows of the band in scratch_.lean_blocks.
    double cost_ratio_ = 1.0;  // Ratio of actual to planned time of the last round, at least 1.
    double predicted_ns_ =
        -1.0;  // Prediction for all probing, the first or, after giving up, the last; -1 before it.
    std::size_t at_once_ = first_blocks_at_once;  // Number of blocks to scan next.
    using Clock = std::chrono::steady_clock;
    Clock::time_point round_begun_{};  // When the last round of a mapped segment began,
    double round_spent_ns_ = 0.0;      // with this estimate of the time spent before.
    bool asked_from_start_ = false;    // Whether the segment's reader was told of all reads;
    std::uint64_t waits_before_ = 0;   // this thread had waited so often before.
    bool to_the_end_ = false;
    bool all_seen_ = false;  // Whether a band has no key left, so that all rows were seen.
};

}  // namespace bitweigh
