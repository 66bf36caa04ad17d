// Parts that the tests share: a counting check, random numbers, and the list of suites.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/scan/scan_query.h"

namespace bitweigh::test {

inline constexpr std::size_t shown_failures = 20;
inline std::size_t checks = 0;
inline std::size_t failures = 0;

inline void fail(const char* file, int line, const char* condition, const std::string& detail) {
    if (++failures > shown_failures) return;
    std::cout << file << ":" << line << ": failed: " << condition << "; " << detail << std::endl;
}

// Counts a check, and reports it if it fails. `detail` is streamed and identifies the case; it is
// evaluated only on failure. For the main thread alone.
#define CHECK(condition, detail)                                                       \
    do {                                                                               \
        ++::bitweigh::test::checks;                                                    \
        if (!(condition)) {                                                            \
            std::ostringstream detail_text;                                            \
            detail_text << detail;                                                     \
            ::bitweigh::test::fail(__FILE__, __LINE__, #condition, detail_text.str()); \
        }                                                                              \
    } while (false)

// Whether to test at length, as `make test-all` does.
inline bool is_long_run() {
    const char* const setting = std::getenv("BITWEIGH_LONG");
    return setting != nullptr && std::string_view(setting) == "1";
}
// How often to repeat random cases: `count` times in long runs, else a third.
inline std::size_t repeats(std::size_t count) {
    return is_long_run() ? count : std::max<std::size_t>(1, count / 3);
}

// A random number from 0 to `max`, the same sequence on every machine.
using Rng = std::mt19937_64;
inline std::size_t pick(Rng& rng, std::size_t max) {
    return rng() % (max + 1);
}

// A checkpoint for work that is never interrupted.
inline Checkpoint uninterrupted() {
    static std::atomic<bool> never = false;
    return {never, nullptr};
}

// The work that one kernel did in all searches.
struct KernelTally {
    std::string kernel;
    std::size_t searches = 0;
    SearchCounters counters;
};

// bits_test.cpp
void test_bits();
void test_costs();
void test_segments();
// row_test.cpp
void test_row_masks();
void test_id_lookup();
// segment_set_test.cpp
void test_segment_sets();
// top_k_test.cpp
void test_kth_smallest();
void test_bucket_sort();
void test_top_k();
// parallel_test.cpp
void test_tasks();
// cost_model_test.cpp, band_budget_test.cpp: the program of plan_test.cpp
void test_cost_model();
void test_band_budget();
// band_table_test.cpp, band_query_test.cpp, lean_rows_test.cpp, range_test.cpp: the program of
// probe_test.cpp
void test_band_tables();
void test_band_queries();
void test_ranges();
void test_lean_rows();
// ranking_test.cpp
void test_ranking();
// kernel_test.cpp; returns the number of scans compared.
std::size_t test_kernels();
// search_test.cpp; `path` is a file of write_vectors.py.
std::vector<KernelTally> test_searches(const std::string& path);

}  // namespace bitweigh::test
