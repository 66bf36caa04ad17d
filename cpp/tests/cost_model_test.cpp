// Tests the promises of the cost model for any input: times rise with the work, the tolerance falls
// as more is spent, and probing never takes more than its share of a scan.
#include "engine/probe/cost_model.h"

#include <cmath>
#include <limits>
#include <vector>

#include "tests/check.h"

namespace bitweigh::test {

namespace {

constexpr std::size_t max_size = std::numeric_limits<std::size_t>::max();
constexpr double infinity = std::numeric_limits<double>::infinity();
const std::vector<std::size_t> sizes = {1, 2, 8, 10, 100, 1000, 1u << 20, max_size / 16, max_size};

void test_scan_time() {
    double last = 0.0;
    for (const std::size_t n_blocks : sizes) {
        const double ns = cost_model.scan_ns(static_cast<double>(n_blocks), 8);
        CHECK(ns > last && std::isfinite(ns), n_blocks << " blocks: " << ns);
        CHECK(cost_model.scan_ns(static_cast<double>(n_blocks), 16) > 2 * ns,
              n_blocks << " blocks of long codes");
        double last_of_k = ns;
        for (const std::size_t k : sizes) {
            const double with_k = cost_model.scan_ns(static_cast<double>(n_blocks), 8, k);
            CHECK(with_k >= last_of_k && with_k <= 2 * ns, n_blocks << " blocks, k " << k);
            last_of_k = with_k;
        }
        last = ns;
    }
    CHECK(cost_model.scan_ns(0, 8, 10) == 0.0, "nothing to scan");
}

void test_probe_time() {
    for (std::size_t n = 0; n + 1 < sizes.size(); ++n) {
        const std::size_t a = sizes[n];
        const std::size_t b = sizes[n + 1];
        CHECK(cost_model.setup_ns(a) < cost_model.setup_ns(b), a << " bands");
        CHECK(cost_model.round_ns(a) < cost_model.round_ns(b), a << " bands");
        CHECK(cost_model.block_ns(a) < cost_model.block_ns(b), a << " bytes");
        CHECK(cost_model.verify_ns(a) < cost_model.verify_ns(b), a << " bytes");
    }
    CHECK(cost_model.probe_ns(0.0, 50.0) > 0.0, "a key without rows is looked up all the same");
    CHECK(cost_model.probe_ns(2.0, 50.0) - cost_model.probe_ns(1.0, 50.0) == 50.0, "one block");
    // A block that is read separately takes longer than a block of a scan.
    for (const std::size_t n_bytes : {1, 8, 64, 256}) {
        CHECK(cost_model.block_ns(n_bytes) > cost_model.scan_ns(1, n_bytes), n_bytes << " bytes");
    }
}

void test_usual_verified() {
    CHECK(cost_model.usual_verified(3) == 3 * cost_model.usual_verified_per_k, "k 3");
    std::size_t last = 0;
    for (const std::size_t k : sizes) {
        const std::size_t rows = cost_model.usual_verified(k);
        CHECK(rows >= last && rows >= k, "k " << k << ": " << rows);
        last = rows;
    }
    CHECK(last == max_size, "saturates");
}

void test_tolerance() {
    for (const std::size_t k : sizes) {
        double last = cost_model.tolerance(0.0, k);
        CHECK(last <= cost_model.max_tolerance, "k " << k << ": " << last);
        for (double share = 0.0; share < 0.3; share += 1.0 / 4096) {
            const double tolerance = cost_model.tolerance(share, k);
            CHECK(tolerance >= 1.0 && tolerance <= last,
                  "k " << k << ", share " << share << ": " << tolerance);
            // No jumps, at which a search of one more row would suddenly fall back.
            CHECK(last - tolerance < 0.2,
                  "k " << k << ", share " << share << ": " << last - tolerance);
            CHECK(share < cost_model.late_share || tolerance == 1.0,
                  "k " << k << ", share " << share);
            CHECK(tolerance >= cost_model.tolerance(share, k - 1),
                  "k " << k << ", share " << share);
            last = tolerance;
        }
        for (const double share : {1.0, 1e300, infinity}) {
            CHECK(cost_model.tolerance(share, k) == 1.0, "k " << k << ", share " << share);
        }
    }
}

void test_limit() {
    constexpr double scan_ns = 1000.0;
    double last = 0.0;
    for (const double predicted : {0.0, 1.0, 299.0, 400.0, 700.0, 1000.0, 1e300, infinity}) {
        const double limit = cost_model.limit_ns(scan_ns, predicted);
        CHECK(limit >= last, "predicted " << predicted);
        CHECK(limit >= cost_model.min_share * scan_ns, "predicted " << predicted);
        CHECK(limit <= cost_model.max_share * scan_ns, "predicted " << predicted);
        last = limit;
    }
    CHECK(cost_model.limit_ns(scan_ns, 500.0) > 500.0, "a prediction that holds is not cut short");
    CHECK(last < scan_ns, "falling back is at most twice as slow as the scan");
}

// With random rounds, a search that falls back at the limit has spent less than a scan, and no
// accepted prediction exceeds the tolerance.
void test_spending(Rng& rng) {
    for (int repeat = 0; repeat < 2000; ++repeat) {
        const double scan_ns = std::ldexp(1.0, static_cast<int>(pick(rng, 40)));
        const std::size_t k = sizes[pick(rng, sizes.size() - 1)];
        const bool bound_falls = pick(rng, 2) > 0;
        ProbeSpending spending(scan_ns, scan_ns / 100, k, bound_falls);
        for (int round = 0; round < 50 && spending.within_limit(); ++round) {
            const double spent = spending.spent_ns();
            const double share = spent / scan_ns;
            const double allowed = spending.overrun_allowed_ns();
            const double factor = bound_falls ? cost_model.tolerance(share, k) : 1.0;
            CHECK(spent + allowed <= factor * scan_ns * (1 + 1e-12), "share " << share);
            CHECK(spending.left_ns() <= cost_model.max_share * scan_ns, "share " << share);
            const double planned_ns = scan_ns * static_cast<double>(pick(rng, 100)) / 400;
            const double round_ns = spending.round_limit_ns(planned_ns);
            const bool early = spent <= cost_model.late_share * scan_ns;
            CHECK(round_ns <= planned_ns, "share " << share);
            CHECK(early ? round_ns <= cost_model.early_share * scan_ns : round_ns == planned_ns,
                  "share " << share << ", round " << round_ns << " of " << scan_ns);
            CHECK(spending.is_late() == !early, "share " << share);
            spending.expect(allowed * static_cast<double>(pick(rng, 100)) / 100);
            spending.add(std::min(round_ns, spending.left_ns()));
            CHECK(spending.spent_ns() <= cost_model.max_share * scan_ns * (1 + 1e-12),
                  "spent " << spending.spent_ns() << " of " << scan_ns);
        }
        spending.add(2 * scan_ns);
        CHECK(!spending.within_limit() && spending.left_ns() == 0.0, "scan " << scan_ns);
    }
}

}  // namespace

void test_cost_model() {
    Rng rng(12);
    test_scan_time();
    test_probe_time();
    test_usual_verified();
    test_tolerance();
    test_limit();
    test_spending(rng);
}

}  // namespace bitweigh::test
