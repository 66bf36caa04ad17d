// Tests bands and probing, in a separate program: the suites of band_table_test.cpp,
// band_query_test.cpp and range_test.cpp, then probing against the definition.
//
// Tests of damaged directories and row numbers prove something only under a sanitizer, which
// detects reads out of bounds. Also fails if the counters show that a path was never used.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <limits>
#include <vector>

#include "engine/pages.h"
#include "engine/probe/probe_query.h"
#include "engine/search.h"
#include "tests/check.h"
#include "tests/probe_cases.h"

namespace bitweigh::test {
namespace {

// Small steps, which lead to many rounds and repeated walks.
constexpr Tuning tunings[] = {
    {},
    {.first_round_ns = 0.0, .min_scan_factor = 0.0, .min_scan_ns_per_k = 0.0},
    {.warm_up_rows = 32,
     .warm_up_per_k = 1,
     .narrow_max_bits = 0,
     .narrow_max_scan_bits = 0,
     .first_round_ns = 0.0,
     .min_scan_factor = 0.0,
     .min_scan_ns_per_k = 0.0},
    {.warm_up_rows = 32,
     .warm_up_per_k = 1,
     .first_round_ns = 1e5,
     .min_scan_factor = 0.0,
     .min_scan_ns_per_k = 0.0},
};

struct Tally {
    SearchCounters counters;
    std::size_t ended_early = 0;  // Searches that ended with keys left in every band.
    std::size_t gave_up = 0;
};
Tally tally;

bool are_nearest(const std::vector<Neighbour>& found, const Case& c, std::size_t k) {
    const auto same = [](const Neighbour& a, const Neighbour& b) {
        return a.distance == b.distance && a.id == b.id;
    };
    return found.size() == std::min(k, c.n) &&
           std::equal(found.begin(), found.end(), c.expected.begin(), same);
}

struct Probed {
    bool finished;
    std::vector<Neighbour> found;
    SearchCounters counters;
};

// `bound` is known from elsewhere.
Probed probe(const Case& c, std::size_t k, const Kernel& kernel, const Tuning& tuning, double bound,
             bool to_the_end) {
    // One scratch for all queries, as in a batch: nothing of the previous query may remain.
    static ProbeScratch scratch;
    std::atomic<bool> stop = false;
    Checkpoint checkpoint(stop, nullptr);
    const CostTable table(c.costs.data(), c.n_bits, c.order);
    SharedBound shared;
    shared.lower_to(bound);
    ScanQuery scan(table, k, kernel, c.n_bits > tuning.narrow_max_bits, shared, true);
    const Segment segment = c.rows->view();
    ProbeQuery probing(segment, c.costs.data(), table, scan, scratch, tuning);
    const bool finished = probing.run(to_the_end, checkpoint);
    // Answers alone would seldom show a search that ends a little too early.
    CHECK(!finished || scan.counters().exhausted_bands > 0 ||
              sum_of_limits(scratch.plan.limits()) > table.flips_within(scan.worst()),
          c.text << ", k " << k << ": ended before the limits exceeded the bound");
    std::vector<Neighbour> found = scan.take_sorted();
    return {finished, std::move(found), scan.counters()};
}

void check_probe(Rng& rng, const Case& c, std::size_t k) {
    const Kernel& kernel = *available_kernels()[pick(rng, available_kernels().size() - 1)];
    const Tuning& tuning = tunings[pick(rng, std::size(tunings) - 1)];
    // The sharpest bound that may be known, and none.
    for (const double bound : {c.expected[k - 1].distance, padding_distance}) {
        for (const bool to_the_end : {true, false}) {
            const Probed probed = probe(c, k, kernel, tuning, bound, to_the_end);
            const SearchCounters& counters = probed.counters;
            CHECK(probed.finished || !to_the_end, c.text << ", k " << k);
            CHECK(counters.fallbacks == !probed.finished, c.text << ", k " << k);
            CHECK(!probed.finished || are_nearest(probed.found, c, k),
                  c.text << ", k " << k << ", bound " << bound << ", " << kernel.name);
            tally.counters.add(probed.counters);
            tally.gave_up += !probed.finished;
            tally.ended_early += probed.finished && counters.exhausted_bands == 0;
        }
    }
}

// Reads what it is told of, so that a sanitizer detects bytes beyond an array.
class TouchingReader : public PageReader {
public:
    void will_read(const void* first, std::size_t bytes) override {
        const auto* start = static_cast<const volatile std::uint8_t*>(first);
        for (std::size_t i = 0; i < bytes; ++i) sum_ += start[i];
        ++told;
    }
    bool has_faulted() override { return true; }
    std::uint64_t waits() override { return waited += waits_each_time; }

    std::atomic<std::size_t> told = 0;  // Number of calls.
    std::atomic<std::uint64_t> waited = 0;
    std::uint64_t waits_each_time = 0;

private:
    std::atomic<std::size_t> sum_ = 0;
};
TouchingReader reader;

// The view of a segment whose arrays count as mapped, or do not.
Segment any_view(Rng& rng, const Case& c) {
    static MappedPages pages(reader);
    Segment segment = c.rows->view();
    pages.cold = pick(rng, 1) == 1;
    if (pick(rng, 1)) segment.mapped = &pages;
    return segment;
}

struct Answer {
    std::vector<double> distances;
    std::vector<Id> ids;
    SearchCounters counters;
};

Answer search_case(const Case& c, const Segment& segment, Method method, std::size_t k,
                   std::size_t threads, const Tuning& tuning) {
    Answer answer{std::vector<double>(k), std::vector<Id>(k), {}};
    const SearchRequest request = request_for(c, segment, method, k, threads, tuning);
    search(request, {answer.distances.data(), answer.ids.data(), &answer.counters},
           [] { return false; });
    return answer;
}

bool is_answer(const Answer& answer, const Case& c, std::size_t k) {
    std::vector<Neighbour> found;
    for (std::size_t i = 0; i < std::min(k, c.n); ++i) {
        found.push_back({answer.distances[i], answer.ids[i]});
    }
    return are_nearest(found, c, k);
}

// Whichever method is used, and whether or not it falls back, the answer has the same bytes as that
// of a scan without bands and that of the definition.
void check_methods(Rng& rng, const Case& c, std::size_t k) {
    const Tuning& tuning = tunings[pick(rng, std::size(tunings) - 1)];
    const Answer scanned = search_case(c, c.rows->plain_view(), Method::scan, k, 1, tuning);
    CHECK(is_answer(scanned, c, k), c.text << ", k " << k);
    for (const Method method : {Method::automatic, Method::scan, Method::probe}) {
        const std::size_t threads = 1 + pick(rng, 2);
        const Answer answer = search_case(c, any_view(rng, c), method, k, threads, tuning);
        const bool same =
            answer.ids == scanned.ids &&
            std::memcmp(answer.distances.data(), scanned.distances.data(), k * sizeof(double)) == 0;
        CHECK(same, c.text << ", k " << k << ", method " << static_cast<int>(method) << ", "
                           << threads << " threads, gave up " << answer.counters.fallbacks);
        tally.counters.add(answer.counters);
    }
}

void test_small_segments() {
    Rng rng(8);
    for (const CostKind& kind : cost_kinds) {
        for (std::size_t repeat = 0; repeat < repeats(70); ++repeat) {
            constexpr std::size_t all_rows[] = {1, 2, 31, 32, 33, 65, 130, 300};
            constexpr std::size_t all_bits[] = {1, 3, 7, 8, 9, 16, 33, 64, 65, 130};
            const std::size_t n = all_rows[pick(rng, std::size(all_rows) - 1)];
            const std::size_t n_bits = all_bits[pick(rng, std::size(all_bits) - 1)];
            // Including a single band, bands of one bit each, and bits that no band has.
            const std::size_t most_bands = repeat % 4 ? n_bits : 1;
            const std::size_t most_bits = repeat % 3 ? 8 : 1;
            const Case c = make_case(rng, kind, draw_code_kind(rng), n, n_bits,
                                     draw_layout(rng, n_bits, most_bands, most_bits));
            const std::size_t step = n <= 33 && repeat < 20 ? 1 : 1 + n / 4;
            for (std::size_t k = 1; k <= n; k += step) check_probe(rng, c, k);
            check_probe(rng, c, n);
            for (const std::size_t k : {std::size_t{1}, 1 + pick(rng, n - 1), n, n + 2}) {
                check_methods(rng, c, k);
            }
        }
    }
}

// Bands of one bit each over a long code, for the longest sums of limits.
void test_many_bands() {
    Rng rng(9);
    for (const CostKind& kind : cost_kinds) {
        constexpr std::size_t n_bits = 512;
        Layout layout(n_bits);
        for (std::size_t i = 0; i < n_bits; ++i) layout[i] = {static_cast<std::uint16_t>(i)};
        const Case c = make_case(rng, kind, approaching, 100, n_bits, std::move(layout));
        for (const std::size_t k : {1, 10}) check_probe(rng, c, k);
        check_methods(rng, c, 5);
    }
}

// With enough rows for the choice to matter: if few rows are near and the others far, few blocks
// are read. If all rows tie, each key would have to be walked: probing is abandoned in time.
void test_give_up() {
    Rng rng(10);
    const auto run = [&](CostKind kind, CodeKind codes, std::size_t k) {
        const Layout layout = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                               {20, 21, 22, 23, 24, 25, 26, 27, 28, 29},
                               {31, 32, 33, 34, 35, 36, 37, 38, 39},
                               {63, 62, 61, 60, 51, 50, 49, 48}};
        const Case c = make_case(rng, kind, codes, 200000, 64, layout);
        const Answer answer = search_case(c, c.rows->view(), Method::automatic, k, 1, {});
        CHECK(is_answer(answer, c, k), c.text << ", k " << k);
        const SearchCounters& probing = answer.counters;
        CHECK(probing.probes > 0 && probing.blocks_probed < blocks_of(c.n),
              c.text << ": " << probing.blocks_probed << " blocks");
        return answer.counters;
    };
    // All rows have the same key in every band.
    const CodeKind lumped = [](std::size_t i, std::size_t, std::size_t) {
        return i > 10 && i < 20 ? std::size_t{500} : std::size_t{0};
    };
    for (const std::size_t k : {1, 10}) {
        CHECK(run(find_costs("any"), lumped, k).fallbacks == 1, "k " << k);
        const SearchCounters easy = run(find_costs("any"), few_near, k);
        CHECK(easy.fallbacks == 0, "k " << k);
        CHECK(easy.rows_scanned < 50000, easy.rows_scanned << " rows");
        const SearchCounters hard = run(find_costs("all zero"), any_codes, k);
        CHECK(hard.fallbacks == 1, "k " << k);
        CHECK(hard.rows_scanned >= 200000, hard.rows_scanned << " rows");
    }
}

// Damages arrays as they may be damaged in a mapped file that nobody has verified.
void damage(Rng& rng, BandedSegment::BandArrays& band, std::size_t n) {
    const std::size_t way = pick(rng, 6);
    for (std::size_t v = 0; v < band.starts.size(); ++v) {
        std::uint32_t& start = band.starts[v];
        if (way == 0) start = static_cast<std::uint32_t>(rng());
        if (way == 1) start = static_cast<std::uint32_t>(n - std::min(n, v));
        if (way == 2) start = std::numeric_limits<std::uint32_t>::max();
        if (way == 3) start = v % 2 ? static_cast<std::uint32_t>(n + pick(rng, 2)) : 0;
        if (way == 4 && pick(rng, 3) == 0) start = static_cast<std::uint32_t>(pick(rng, n + 40));
    }
    for (Row& row : band.rows) {
        if (way >= 4 && pick(rng, 2) == 0) row = static_cast<Row>(pick(rng, 1) ? rng() : n);
        if (way == 6) row = 0;
    }
}

// The answers may be wrong, but every search ends, with ids that exist.
void test_damaged_bands() {
    Rng rng(11);
    for (int repeat = 0; repeat < 600; ++repeat) {
        const std::size_t n = 1 + pick(rng, 200);
        const std::size_t n_bits = 1 + pick(rng, 80);
        const CostKind& kind = cost_kinds[pick(rng, std::size(cost_kinds) - 1)];
        const Case c =
            make_case(rng, kind, draw_code_kind(rng), n, n_bits, draw_layout(rng, n_bits, 5, 8));
        for (BandedSegment::BandArrays& band : c.rows->arrays()) {
            if (pick(rng, 3)) damage(rng, band, n);
        }
        const std::size_t k = 1 + pick(rng, n - 1);
        for (const Method method : {Method::automatic, Method::scan, Method::probe}) {
            const Answer answer = search_case(c, any_view(rng, c), method, k, 1,
                                              tunings[pick(rng, std::size(tunings) - 1)]);
            bool known = true;
            for (std::size_t i = 0; i < k; ++i) {
                const auto id = static_cast<std::size_t>(answer.ids[i] - 7);
                known &=
                    answer.ids[i] == padding_id ? answer.distances[i] == padding_distance : id < n;
            }
            CHECK(known, c.text << ", k " << k << ", method " << static_cast<int>(method));
        }
    }
}

// Pages are asked for while they may not be in memory, and no longer.
void test_pages_in_memory() {
    Rng rng(5);
    const Case c =
        make_case(rng, cost_kinds[0], any_codes, 5000, 40, Layout{{0, 1, 2, 3, 4}, {7, 8, 9, 10}});
    TouchingReader told;
    MappedPages pages(told);
    Segment segment = c.rows->view();
    segment.mapped = &pages;
    const auto is_right = [&] {
        return is_answer(search_case(c, segment, Method::probe, 10, 1, {}), c, 10);
    };
    told.waits_each_time = 1;
    CHECK(is_right() && told.told > 0 && pages.cold, "");
    told.waits_each_time = 0;
    CHECK(is_right() && !pages.cold, "");
    SearchRequest request = request_for(c, segment, Method::probe, 10, 1, {});
    TouchingReader counter;
    request.pages = &counter;
    Answer answer{std::vector<double>(10), std::vector<Id>(10), {}};
    search(request, {answer.distances.data(), answer.ids.data(), &answer.counters},
           [] { return false; });
    CHECK(is_answer(answer, c, 10) && counter.told > answer.counters.probes, "");
}

// A path that no case used proves nothing.
void check_reached() {
    CHECK(reader.told > 0, "");
    const SearchCounters& c = tally.counters;
    std::cout << "probes " << c.probes << ", empty " << c.empty_probes << ", blocks "
              << c.blocks_probed << ", rounds " << c.rounds << ", walks again " << c.rewalks
              << ", exhausted bands " << c.exhausted_bands << ", ended early " << tally.ended_early
              << ", gave up " << tally.gave_up << ", duplicates " << c.duplicates
              << ", rows scanned " << c.rows_scanned << " wide " << c.rows_scanned_wide
              << ", scored " << c.rows_scored_directly << std::endl;
    CHECK(c.probes > c.empty_probes && c.empty_probes > 0, "");
    CHECK(c.blocks_probed > 0 && c.rounds > 0 && c.rewalks > 0, "");
    CHECK(c.exhausted_bands > 0 && tally.ended_early > 0 && tally.gave_up > 0, "");
    CHECK(c.duplicates > 0 && c.rows_scored_directly > 0, "");
    CHECK(c.rows_scanned > c.rows_scanned_wide && c.rows_scanned_wide > 0, "");
}

}  // namespace
}  // namespace bitweigh::test

int main() {
    using namespace bitweigh::test;
    test_band_tables();
    test_lean_rows();
    test_band_queries();
    // With a band that repeats keys a search might never end.
    if (failures == 0) {
        test_small_segments();
        test_many_bands();
        test_give_up();
        test_damaged_bands();
        test_pages_in_memory();
        check_reached();
        test_ranges();
    }
    std::cout << (failures ? "FAILED: " : "passed: ") << failures << " of " << checks
              << " checks failed" << std::endl;
    return failures ? 1 : 0;
}
