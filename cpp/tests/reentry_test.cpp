// Tests searches that begin while another search on the same thread is under way, and searches
// after any allocation of another search has failed: both must find what they would find alone. A
// separate program, because it replaces operator new. Should run under a sanitizer, since some of
// what a search may leave behind only makes the next one read out of bounds.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include "engine/range_search.h"
#include "engine/search.h"
#include "tests/check.h"
#include "tests/probe_cases.h"

namespace {

// The number of allocations, on all threads, until one fails; none fails while it is negative.
std::atomic<long long> allocations_left = -1;
std::atomic<std::size_t> failed_allocations = 0;

void* allocate(std::size_t size) {
    if (allocations_left.load() >= 0 && allocations_left.fetch_sub(1) == 0) {
        ++failed_allocations;
        throw std::bad_alloc();
    }
    if (void* memory = std::malloc(size ? size : 1)) return memory;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) {
    return allocate(size);
}
void* operator new[](std::size_t size) {
    return allocate(size);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace bitweigh::test {
namespace {

constexpr Tuning tuning = {
    .first_round_ns = 200.0, .min_scan_factor = 0.0, .min_scan_ns_per_k = 0.0};

// The same query many times over one segment, by one method; both kinds of search.
struct RepeatedQuery {
    const Case& c;
    Segment segment = c.rows->view();
    Method method;
    std::size_t threads;
    std::size_t k;
    std::size_t n_queries;
    double radius;
    std::vector<double> costs = {};
    std::vector<double> radii = {};

    void repeat_query() {
        for (std::size_t q = 0; q < n_queries; ++q) {
            costs.insert(costs.end(), c.costs.begin(), c.costs.end());
        }
        radii.assign(n_queries, radius);
    }
    SearchRequest request() const {
        SearchRequest request = request_for(c, segment, method, k, threads, tuning);
        request.costs = costs.data();
        request.n_queries = n_queries;
        return request;
    }
};

bool are_first(const std::vector<Neighbour>& found, const Case& c, std::size_t n) {
    const auto same = [](const Neighbour& a, const Neighbour& b) {
        return a.distance == b.distance && a.id == b.id;
    };
    return found.size() == n && std::equal(found.begin(), found.end(), c.expected.begin(), same);
}

// Whether every query has its k nearest, and every row within its radius.
bool search_is_right(const RepeatedQuery& batch, const InterruptCheck& check) {
    const std::size_t size = batch.n_queries * batch.k;
    std::vector<double> distances(size);
    std::vector<Id> ids(size);
    std::vector<SearchCounters> counters(batch.n_queries);
    search(batch.request(), {distances.data(), ids.data(), counters.data()}, check);
    bool right = true;
    for (std::size_t q = 0; q < batch.n_queries; ++q) {
        std::vector<Neighbour> found;
        for (std::size_t i = q * batch.k; i < (q + 1) * batch.k; ++i) {
            found.push_back({distances[i], ids[i]});
        }
        right = right && are_first(found, batch.c, batch.k);
    }
    return right;
}

bool range_is_right(const RepeatedQuery& batch, const InterruptCheck& check) {
    std::vector<SearchCounters> counters(batch.n_queries);
    SearchRequest request = batch.request();
    request.radii = batch.radii.data();
    request.options.limit = batch.c.n;
    const auto within = range_search(request, counters.data(), check);
    const auto is_within = [&](const Neighbour& row) { return row.distance <= batch.radius; };
    const auto n = std::count_if(batch.c.expected.begin(), batch.c.expected.end(), is_within);
    return std::all_of(within.begin(), within.end(), [&](const std::vector<Neighbour>& found) {
        return are_first(found, batch.c, static_cast<std::size_t>(n));
    });
}

RepeatedQuery repeated_query(const Case& c, Method method, std::size_t threads, std::size_t k,
                             std::size_t n_queries) {
    RepeatedQuery batch{.c = c,
                        .method = method,
                        .threads = threads,
                        .k = k,
                        .n_queries = n_queries,
                        .radius = c.expected[std::min(c.n - 1, 3 * k)].distance};
    batch.repeat_query();
    return batch;
}

const InterruptCheck never = [] { return false; };

// Has more or fewer bands, of other widths, than the interrupted search: scratch memory that the
// two shared would not fit.
void test_searches_inside_searches() {
    Rng rng(14);
    const Case outer = make_case(rng, find_costs("any"), any_codes, 30000, 32,
                                 {{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13}});
    const Case inner = make_case(rng, find_costs("whole numbers"), approaching, 500, 65,
                                 draw_layout(rng, 65, 9, 9));
    const RepeatedQuery asked_inside = repeated_query(inner, Method::probe, 1, 20, 1);
    for (const Method method : {Method::probe, Method::automatic}) {
        const RepeatedQuery batch = repeated_query(outer, method, 1, 10, 300);
        std::size_t inside = 0;
        bool right = true;
        const InterruptCheck search_inside = [&] {
            ++inside;
            right = right && search_is_right(asked_inside, never) &&
                    range_is_right(asked_inside, never);
            return false;
        };
        CHECK(search_is_right(batch, search_inside), "a search that was interrupted");
        CHECK(range_is_right(batch, search_inside), "a range search that was interrupted");
        CHECK(right && inside > 3, inside << " searches inside others");
    }
}

// Lets the n-th allocation fail, for every n until the search needs fewer. The next search, with
// other bands on the same thread, must be right.
void test_failing_allocations() {
    Rng rng(15);
    const Case first =
        make_case(rng, find_costs("any"), few_near, 3000, 64, draw_layout(rng, 64, 8, 8));
    const Case next = make_case(rng, find_costs("whole numbers"), approaching, 200, 16,
                                draw_layout(rng, 16, 3, 4));
    for (const Method method : {Method::probe, Method::automatic, Method::scan}) {
        for (const std::size_t threads : {1, 3}) {
            const RepeatedQuery batch = repeated_query(first, method, threads, 40, 5);
            const RepeatedQuery asked_next = repeated_query(next, Method::probe, 1, 10, 1);
            for (const auto is_right : {search_is_right, range_is_right}) {
                bool failed = true;
                for (long long n = 0; failed; ++n) {
                    const std::size_t before = failed_allocations;
                    bool right = false;
                    allocations_left = n;
                    try {
                        right = is_right(batch, never);
                        allocations_left = -1;
                    } catch (const std::bad_alloc&) {
                        allocations_left = -1;
                        right = true;
                    }
                    failed = failed_allocations > before;
                    CHECK(right, "allocation " << n << " failed, and the answer was wrong");
                    CHECK(search_is_right(asked_next, never) && range_is_right(asked_next, never),
                          "after allocation " << n << " of " << threads << " threads");
                }
            }
        }
    }
    std::cout << failed_allocations << " allocations failed" << std::endl;
    CHECK(failed_allocations > 500, failed_allocations << " allocations");
}

}  // namespace
}  // namespace bitweigh::test

int main() {
    using namespace bitweigh::test;
    test_searches_inside_searches();
    test_failing_allocations();
    std::cout << (failures ? "FAILED: " : "passed: ") << failures << " of " << checks
              << " checks failed" << std::endl;
    return failures ? 1 : 0;
}
