// Estimates how long scanning and probing take, in nanoseconds, and how far the estimates are
// trusted. They decide where probing goes next and when it falls back to the scan: speed, never an
// answer.
//
// "Costs" are what a code pays for its bits; everything here is time, and its names end in _ns.
// Functions depend on their arguments alone.
//
// The times were fitted to the engine's clock on one core of a Zen 4, with up to 1 M rows. Only
// their ratios decide, and those vary less from machine to machine. The rules were compared
// by the modelled time of 1,440 searches: five kinds of 400,000 to 1 M codes of 64, 128 and 256
// bits, three kinds of costs, k from 1 to 1000. "1.29x without" says that one of these 60 sets
// takes 1.29 times as long without a rule; all of them together differ by less than 1 %.
#pragma once

#include <cstddef>

namespace bitweigh {

struct CostModel {
    // Scanning one plane of a block, and the increase per plane of the block, since long blocks
    // come from memory: 0.7 ns a plane at 64 bits, 0.9 at 512, 1.1 at 1024.
    double scan_plane_ns = 0.66;
    double scan_long_plane_ns = 0.0037;
    // Verifying rows in a scan, per neighbour; in all at most as much as scanning the planes.
    double scan_neighbour_ns = 300.0;

    // Preparing a query for probing, and each of its bands.
    double setup_base_ns = 1300.0;
    double setup_band_ns = 250.0;
    // Planning a round, and each band in it.
    double round_base_ns = 250.0;
    double round_band_ns = 50.0;
    // Looking up a key.
    double key_lookup_ns = 10.0;
    // A block from a list, which is seldom in a cache, and each of its planes.
    double block_base_ns = 20.0;
    double block_plane_ns = 3.2;
    // Verifying a row that the kernel let through, and each of its bytes.
    double verify_base_ns = 4.0;
    double verify_byte_ns = 0.75;
    // Rows that every search verifies per neighbour, about; only those beyond them count as spent.
    std::size_t usual_verified_per_k = 8;

    // Buckets near a query hold more rows than those farther away: whenever the time of a band's
    // keys is estimated again, the blocks seen in earlier rounds keep this share of their weight.
    float remembered_share = 0.3f;

    // Each round may take this many times as long as the one before: early rounds lower the bound,
    // and late ones should be few.
    double round_growth = 2.0;

    // The first bound comes from a few rows, and may be far too high: no prediction is believed
    // before this share of a scan is spent. In large segments that is many keys: without it 1-4 %
    // of the queries of 20 M codes fell back, and took a hundred times as long as probing to the
    // end.
    double unpredicted_share = 0.01;
    // Early predictions are too high, because the bound is still falling. So probing falls back
    // only where the predicted total exceeds the scan times a tolerance. The tolerance starts at
    // `first_tolerance` plus `tolerance_per_k` for each neighbour (1.29x without), but no
    // more than `max_tolerance`, which only limits what searches for many neighbours may waste. It
    // falls linearly to `early_tolerance` when `early_share` of a scan is spent (1.15x without that
    // stage), and to 1 at `late_share`.
    double first_tolerance = 6.0;
    double tolerance_per_k = 0.25;
    double max_tolerance = 30.0;
    double early_tolerance = 3.0;
    // Until `late_share` is spent, no round takes more than `early_share` of a scan.
    double early_share = 0.05;
    // Without a bound there is no prediction: probing stops when this share of a scan is spent.
    double late_share = 0.12;

    // Whatever was predicted, probing stops after `min_share` of a scan; if `prediction_margin`
    // times the prediction is more (1.25x without a margin), it stops after that, but no later than
    // after `max_share`.
    double min_share = 0.3;
    double max_share = 0.8;
    double prediction_margin = 1.1;

    // What is reported as predicted ends at this many scans: beyond it nobody cares how many, and
    // counting on takes time.
    double max_predicted_share = 100.0;

    // The time of the kernel over n_blocks blocks of codes of n_bytes.
    double scan_ns(double n_blocks, std::size_t n_bytes) const;
    // The same, with the time of verifying rows for k neighbours.
    double scan_ns(double n_blocks, std::size_t n_bytes, std::size_t k) const;

    double setup_ns(std::size_t n_bands) const {
        return setup_base_ns + setup_band_ns * static_cast<double>(n_bands);
    }
    double round_ns(std::size_t n_bands) const {
        return round_base_ns + round_band_ns * static_cast<double>(n_bands);
    }
    double block_ns(std::size_t n_bytes) const {
        return block_base_ns + block_plane_ns * static_cast<double>(n_bytes);
    }
    double verify_ns(std::size_t n_bytes) const {
        return verify_base_ns + verify_byte_ns * static_cast<double>(n_bytes);
    }
    // The time of probing one key with the blocks of its rows.
    double probe_ns(double blocks_per_key, double block_ns) const {
        return key_lookup_ns + block_ns * blocks_per_key;
    }

    // The number of rows that every search for k neighbours verifies.
    std::size_t usual_verified(std::size_t k) const;

    // The factor by which the predicted total may exceed the scan, when probing has taken
    // `spent_share` of a scan. Falls as more is spent, and is 1 from `late_share` on.
    double tolerance(double spent_share, std::size_t k) const;

    // The time after which probing stops, if `predicted_ns` are predicted in all.
    double limit_ns(double scan_ns, double predicted_ns) const;
};
inline constexpr CostModel cost_model;

// A round is never given more time than this, eleven days, so that it fits any type.
inline constexpr double max_round_ns = 1e15;

// The time that one query has spent on the bands of one segment, compared with a scan of it.
class ProbeSpending {
public:
    // `bound_falls`: this is a search for the K nearest. In a range search the bound is fixed, and
    // predictions are trusted from the start.
    ProbeSpending(double scan_ns, double setup_ns, std::size_t k, bool bound_falls)
        : scan_ns_(scan_ns),
          k_(k),
          bound_falls_(bound_falls),
          spent_ns_(setup_ns),
          limit_ns_(cost_model.limit_ns(scan_ns, 0.0)) {}

    double scan_ns() const { return scan_ns_; }
    double spent_ns() const { return spent_ns_; }
    void add(double ns) { spent_ns_ += ns; }

    bool within_limit() const { return spent_ns_ <= limit_ns_; }
    // The time left before the limit; never negative.
    double left_ns() const;
    // Whether so little is spent after a step of `step_ns` that predictions are not believed.
    bool is_early(double step_ns) const {
        return spent_ns_ + step_ns < cost_model.unpredicted_share * scan_ns_;
    }
    // Whether so much is spent that predictions are trusted, or that there should be one.
    bool is_late() const { return spent_ns_ > cost_model.late_share * scan_ns_; }

    // The longest prediction for finishing by probing at which it goes on.
    double overrun_allowed_ns() const;
    // Sets the limit, given that finishing is predicted to take `finish_ns`.
    void expect(double finish_ns) {
        limit_ns_ = cost_model.limit_ns(scan_ns_, spent_ns_ + finish_ns);
    }

    // The time that the next round may take: `round_ns`, or less while it is early.
    double round_limit_ns(double round_ns) const;

private:
    double scan_ns_;  // Time of a scan of the segment.
    std::size_t k_;
    bool bound_falls_;
    double spent_ns_;  // Time spent so far.
    double limit_ns_;  // Time after which probing stops.
};

}  // namespace bitweigh
