// Tests the engine, in a plain program: scan_test VECTORS.bin [--expect KERNEL]...
//
// VECTORS.bin comes from write_vectors.py. Fails if an answer is wrong, if an expected kernel did
// not run, or if the counters show that a path was never used.
#include <algorithm>
#include <chrono>
#include <exception>
#include <vector>

#include "tests/check.h"

namespace bitweigh::test {
namespace {

class Stopwatch {
public:
    void lap(const char* what, std::size_t count) {
        const auto now = std::chrono::steady_clock::now();
        const std::chrono::duration<double> spent = now - lap_start_;
        lap_start_ = now;
        std::cout << what << ": " << count << ", " << spent.count() << " s" << std::endl;
    }

private:
    std::chrono::steady_clock::time_point lap_start_ = std::chrono::steady_clock::now();
};

void report(const KernelTally& tally) {
    const SearchCounters& c = tally.counters;
    std::cout << "kernel " << tally.kernel << ": searches " << tally.searches
              << ", rows_scored_directly " << c.rows_scored_directly << ", rows_scanned "
              << c.rows_scanned << ", rows_scanned_wide " << c.rows_scanned_wide << ", verified "
              << c.verified << ", rescales " << c.rescales << ", capped_entries "
              << c.capped_entries << std::endl;
    // A path that no case used proves nothing.
    CHECK(c.rows_scored_directly > 0, tally.kernel);
    CHECK(c.rows_scanned > c.rows_scanned_wide, tally.kernel);
    CHECK(c.rows_scanned_wide > 0, tally.kernel);
    CHECK(c.verified > 0 && c.verified < c.rows_scanned, tally.kernel);
    CHECK(c.rescales > 0, tally.kernel);
    CHECK(c.capped_entries > 0, tally.kernel);
}

int run(const std::string& path, const std::vector<std::string>& expected) {
    Stopwatch watch;
    test_bits();
    test_costs();
    test_segments();
    test_row_masks();
    test_id_lookup();
    test_segment_sets();
    test_kth_smallest();
    test_bucket_sort();
    test_top_k();
    test_tasks();
    test_ranking();
    watch.lap("unit checks", checks);
    watch.lap("kernel scans compared", test_kernels());
    const std::vector<KernelTally> tallies = test_searches(path);
    watch.lap("checks in all", checks);
    for (const KernelTally& tally : tallies) report(tally);
    for (const std::string& name : expected) {
        const bool ran = std::any_of(tallies.begin(), tallies.end(), [&](const KernelTally& tally) {
            return tally.kernel == name && tally.searches > 0;
        });
        CHECK(ran, "kernel " << name << " was expected and did not run");
    }
    std::cout << (failures ? "FAILED: " : "passed: ") << failures << " of " << checks
              << " checks failed" << std::endl;
    return failures ? 1 : 0;
}

}  // namespace
}  // namespace bitweigh::test

int main(int argc, char** argv) {
    std::string path;
    std::vector<std::string> expected;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--expect" && i + 1 < argc) {
            expected.push_back(argv[++i]);
        } else if (path.empty() && !argument.starts_with("-")) {
            path = argument;
        } else {
            path.clear();
            break;
        }
    }
    if (path.empty()) {
        std::cout << "usage: scan_test VECTORS.bin [--expect KERNEL]..." << std::endl;
        return 2;
    }
    try {
        return bitweigh::test::run(path, expected);
    } catch (const std::exception& error) {
        std::cout << "FAILED: " << error.what() << std::endl;
        return 1;
    }
}
