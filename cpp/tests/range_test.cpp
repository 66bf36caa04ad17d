// Tests range_search() against the definition: every method, on one thread and several, with few
// rows and with thousands of ties.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <iterator>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "engine/range_search.h"
#include "tests/check.h"
#include "tests/probe_cases.h"

namespace bitweigh::test {
namespace {

constexpr Tuning tunings[] = {
    {},
    {.first_round_ns = 0.0, .min_scan_factor = 0.0, .min_scan_ns_per_k = 0.0},
    {.narrow_max_bits = 0, .narrow_max_scan_bits = 0, .min_scan_factor = 0.0},
};

SearchCounters tally;
std::size_t ended_early = 0;  // searches that ended with keys left in every band

void check_range(Rng& rng, const Case& c, double radius) {
    std::size_t n = 0;
    while (n < c.n && c.expected[n].distance <= radius) ++n;
    const Tuning& tuning = tunings[pick(rng, std::size(tunings) - 1)];
    const Segment segment = c.rows->view();
    for (const Method method : {Method::automatic, Method::scan, Method::probe}) {
        const std::size_t threads = 1 + 2 * pick(rng, 1);
        SearchRequest request = request_for(c, segment, method, 1, threads, tuning);
        request.radii = &radius;
        SearchCounters counters;
        const auto found = range_search(request, &counters, [] { return false; });
        const auto same = [](const Neighbour& a, const Neighbour& b) {
            return a.distance == b.distance && a.id == b.id;
        };
        CHECK(found[0].size() == n &&
                  std::equal(found[0].begin(), found[0].end(), c.expected.begin(), same),
              c.text << ", radius " << radius << ": " << found[0].size() << " of " << n
                     << ", method " << static_cast<int>(method) << ", " << threads << " threads");
        tally.add(counters);
        ended_early +=
            counters.probes > 0 && counters.fallbacks == 0 && counters.exhausted_bands == 0;
        // A limit counts each row once, in however many bands it is found.
        bool refused = false;
        try {
            request.options.limit = n;
            range_search(request, &counters, [] { return false; });
            request.options.limit = n - 1;
            if (n > 0) range_search(request, &counters, [] { return false; });
        } catch (const TooManyRows& error) {
            refused = error.query == 0;
        }
        CHECK(refused == (n > 0), c.text << ", radius " << radius << ", limit " << n);
    }
}

void check_radii(Rng& rng, const Case& c) {
    const double largest = std::numeric_limits<double>::max();
    const double infinity = std::numeric_limits<double>::infinity();
    const double nearest = c.expected.front().distance;
    const double any = c.expected[pick(rng, c.n - 1)].distance;
    for (const double radius :
         {nearest, std::nextafter(nearest, -infinity), any, std::nextafter(any, infinity),
          c.expected.back().distance, largest, -largest, infinity, -infinity}) {
        check_range(rng, c, radius);
    }
}

void test_small_ranges() {
    Rng rng(12);
    for (const CostKind& kind : cost_kinds) {
        for (std::size_t repeat = 0; repeat < repeats(25); ++repeat) {
            constexpr std::size_t all_rows[] = {1, 31, 33, 130, 300};
            constexpr std::size_t all_bits[] = {1, 7, 16, 65, 130};
            const std::size_t n = all_rows[pick(rng, std::size(all_rows) - 1)];
            const std::size_t n_bits = all_bits[pick(rng, std::size(all_bits) - 1)];
            check_radii(rng, make_case(rng, kind, draw_code_kind(rng), n, n_bits,
                                       draw_layout(rng, n_bits, 6, 8)));
        }
    }
}

// Thousands of rows with the same code, all of them in the same bucket of every band.
void test_equal_codes() {
    Rng rng(13);
    const CodeKind lumped = [](std::size_t i, std::size_t, std::size_t) {
        return i == 30 ? std::size_t{500} : std::size_t{0};
    };
    for (const char* costs : {"any", "whole numbers", "all zero"}) {
        const Layout layout = {{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}};
        check_radii(rng, make_case(rng, find_costs(costs), lumped, 5000, 32, layout));
    }
}

// Records the threads that scan. A thread waits, for a limited time, for as many as expected.
std::mutex mutex;
std::condition_variable arrived;
std::set<std::thread::id> scanning;
std::size_t expected_threads = 1;

std::size_t scan_and_tell(const std::uint8_t* blocks, std::size_t begin, std::size_t end,
                          const ScanTables& tables, Hit* hits) {
    {
        std::unique_lock lock(mutex);
        scanning.insert(std::this_thread::get_id());
        arrived.notify_all();
        arrived.wait_for(lock, std::chrono::seconds(20),
                         [] { return scanning.size() >= expected_threads; });
    }
    return available_kernels().front()->narrow(blocks, begin, end, tables, hits);
}

// One query is cut by rows, for up to the given number of threads, but no more than the work is
// worth.
void test_threads_of_one_query() {
    Rng rng(14);
    const Case c = make_case(rng, find_costs("any"), any_codes, 20000, 32, {});
    Kernel telling = *available_kernels().front();
    telling.narrow = scan_and_tell;
    const Segment segment = c.rows->view();
    const double radius = c.expected[9].distance;
    const auto threads_of = [&](std::size_t given, bool capped, std::size_t expected) {
        scanning.clear();
        expected_threads = expected;
        SearchRequest request = request_for(c, segment, Method::automatic, 1, given, {});
        request.engine.kernel = &telling;
        request.options.cap_threads = capped;
        request.radii = &radius;
        SearchCounters counters;
        const auto found = range_search(request, &counters, [] { return false; });
        CHECK(found[0].size() >= 10, found[0].size());
        return scanning.size();
    };
    CHECK(threads_of(3, false, 3) == 3, scanning.size());
    CHECK(threads_of(64, true, 1) == 1, scanning.size());
}

}  // namespace

void test_ranges() {
    test_small_ranges();
    test_equal_codes();
    test_threads_of_one_query();
    CHECK(tally.probes > 0 && tally.fallbacks > 0, "");
    CHECK(tally.duplicates > 0 && tally.rewalks > 0 && ended_early > 0, "");
}

}  // namespace bitweigh::test
