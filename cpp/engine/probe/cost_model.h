// What a scan and what probing take, in nanoseconds, and how far such estimates are believed. They
// decide where probing goes next and when it falls back to the scan: speed, never an answer.
//
// A query pays "costs" for its bits; everything here is time, and its names end in _ns. Functions
// depend on their arguments alone.
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
    // A scan: one plane of a block, and more for each plane where blocks are long and come from
    // memory: 0.7 ns a plane at 64 bits, 0.9 at 512, 1.1 at 1024.
    double scan_plane_ns = 0.66;
    double scan_long_plane_ns = 0.0037;
    // And each neighbour wanted, for which many rows are verified; together at most as much as the
    // planes.
    double scan_neighbour_ns = 300.0;

    // Probing: preparing a query, and each of its bands.
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
    // Every search verifies about this many rows for each neighbour wanted; only more of them count
    // as spent.
    std::size_t usual_verified_per_k = 8;

    // Buckets near a query hold more rows than those farther off: when the time of a band's keys is
    // estimated again, what earlier rounds saw keeps this share of its weight.
    float remembered_share = 0.3f;

    // Each round may take this many times as long as the one before: early rounds lower the bound,
    // and late ones should be few.
    double round_growth = 2.0;

    // Early predictions are too high, because the bound is still falling. So probing falls back
    // only where the predicted total exceeds the scan times a tolerance. The tolerance starts at
    // `first_tolerance` plus `tolerance_per_k` for each neighbour wanted (1.29x without), but no
    // more than `max_tolerance`, which only limits what searches for many neighbours may waste. It
    // falls linearly to `early_tolerance` when `early_share` of a scan is spent (1.15x without that
    // stage), and to 1 at `late_share`.
    double first_tolerance = 6.0;
    double tolerance_per_k = 0.25;
    double max_tolerance = 30.0;
    double early_tolerance = 3.0;
    // Until `late_share` is spent, no round takes more than `early_share` of a scan.
    double early_share = 0.05;
    // Without a bound there is nothing to predict from: probing stops when this share is spent.
    double late_share = 0.12;

    // Whatever was predicted, probing stops after `min_share` of a scan; or, where
    // `prediction_margin` times the prediction is more (1.25x without a margin), after that, but
    // never later than after `max_share`.
    double min_share = 0.3;
    double max_share = 0.8;
    double prediction_margin = 1.1;

    // The kernel over n_blocks blocks of codes of n_bytes.
    double scan_ns(std::size_t n_blocks, std::size_t n_bytes) const;
    // The same, with verifying what k neighbours need.
    double scan_ns(std::size_t n_blocks, std::size_t n_bytes, std::size_t k) const;

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
    // One key with the blocks of its rows.
    double probe_ns(double blocks_per_key, double block_ns) const {
        return key_lookup_ns + block_ns * blocks_per_key;
    }

    // Rows that any search for k neighbours verifies.
    std::size_t usual_verified(std::size_t k) const;

    // The factor by which the predicted total may exceed the scan, when probing has taken
    // `spent_share` of a scan. Falls as more is spent, and is 1 from `late_share` on.
    double tolerance(double spent_share, std::size_t k) const;

    // What probing may take before it stops, when `predicted_ns` are predicted in all.
    double limit_ns(double scan_ns, double predicted_ns) const;
};
inline constexpr CostModel cost_model;

// Predictions above this, eleven days, are all alike; they fit any type.
inline constexpr double max_predicted_ns = 1e15;

// What one query has spent on the bands of one segment, set against a scan of that segment.
class ProbeSpending {
public:
    // `bound_falls`: the K nearest are wanted. Within a radius there is no bound that could still
    // fall, and predictions are believed from the start.
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
    // What is left before the limit; never negative.
    double left_ns() const;
    // Whether so much is spent that predictions are believed, or that there should be one.
    bool is_late() const { return spent_ns_ > cost_model.late_share * scan_ns_; }

    // What going on may seem to take; where it seems to take more, the scan is better.
    double overrun_allowed_ns() const;
    // Going on takes `finish_ns`, which is allowed: sets the limit by it.
    void expect(double finish_ns) {
        limit_ns_ = cost_model.limit_ns(scan_ns_, spent_ns_ + finish_ns);
    }

    // What the next round may take, where `wanted_ns` are wanted.
    double round_limit_ns(double wanted_ns) const;

private:
    double scan_ns_;
    std::size_t k_;
    bool bound_falls_;
    double spent_ns_;
    double limit_ns_;
};

}  // namespace bitweigh
