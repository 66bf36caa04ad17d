// Tests search() against the answers of bitweigh.reference, bit by bit, in every setup, with bands
// and without, by every method.
#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "engine/search.h"
#include "tests/banded_segment.h"
#include "tests/check.h"

namespace bitweigh::test {

namespace {

static_assert(std::endian::native == std::endian::little, "the vectors are little-endian");

// A case in the format that write_vectors.py documents.
struct Case {
    std::size_t number;
    std::size_t n_bits;
    BitOrder order;
    std::size_t n;
    std::size_t n_queries;
    std::size_t k;
    std::vector<std::uint8_t> codes;
    std::vector<Id> ids;
    std::vector<double> costs;
    std::vector<double> expected_distances;
    std::vector<Id> expected_ids;
};

class Reader {
public:
    explicit Reader(const std::string& path) {
        std::ifstream file(path, std::ios::binary);
        if (!file) throw std::runtime_error("cannot read " + path);
        bytes_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }

    template <class Value>
    std::vector<Value> read(std::size_t n) {
        const std::size_t n_left = (bytes_.size() - at_) / sizeof(Value);
        if (n > n_left) throw std::runtime_error("the vectors end early");
        std::vector<Value> values(n);
        if (n) std::memcpy(values.data(), bytes_.data() + at_, n * sizeof(Value));
        at_ += n * sizeof(Value);
        return values;
    }
    std::size_t read_number() { return static_cast<std::size_t>(read<std::uint64_t>(1)[0]); }
    bool at_end() const { return at_ == bytes_.size(); }

private:
    std::vector<char> bytes_;
    std::size_t at_ = 0;
};

Case read_case(Reader& reader, std::size_t number) {
    Case c{};
    c.number = number;
    c.n_bits = reader.read_number();
    c.order = reader.read_number() ? BitOrder::little : BitOrder::big;
    c.n = reader.read_number();
    c.n_queries = reader.read_number();
    c.k = reader.read_number();
    c.codes = reader.read<std::uint8_t>(c.n * bytes_of(c.n_bits));
    c.ids = reader.read<Id>(c.n);
    c.costs = reader.read<double>(c.n_queries * c.n_bits * 2);
    c.expected_distances = reader.read<double>(c.n_queries * c.k);
    c.expected_ids = reader.read<Id>(c.n_queries * c.k);
    return c;
}

// The rows of a case cut into segments of uneven size, some of them empty if there are few rows.
// With `banded` about half of them, and at least one, have bands.
class Segments {
public:
    Segments(const Case& c, std::size_t parts, bool banded) {
        const std::size_t n_bytes = bytes_of(c.n_bits);
        std::vector<std::size_t> cuts = {0, c.n};
        if (parts == 3) cuts = {0, c.n / 5, c.n / 2, c.n};
        Rng rng(c.number);
        const std::size_t always = pick(rng, parts - 1);
        for (std::size_t i = 0; i < parts; ++i) {
            const std::size_t rows = cuts[i + 1] - cuts[i];
            Layout layout;
            if (banded && (i == always || pick(rng, 1))) {
                layout = draw_layout(rng, c.n_bits, 6, 9);
            }
            const bool own_order = pick(rng, 1) == 1;
            arrays_.push_back(std::make_unique<BandedSegment>(
                std::span(c.codes).subspan(cuts[i] * n_bytes, rows * n_bytes),
                std::span(c.ids).subspan(cuts[i], rows), c.n_bits, c.order, std::move(layout),
                own_order));
            segments_.push_back(arrays_.back()->view());
        }
    }
    std::span<const Segment> get() const { return segments_; }

private:
    std::vector<std::unique_ptr<BandedSegment>> arrays_;
    std::vector<Segment> segments_;
};

struct Setup {
    const char* name;
    Tuning tuning;
};

// A short warm-up leaves most rows of the small cases to the kernel; short rounds of probing lead
// to many rounds.
constexpr Setup setups[] = {
    {"default", {}},
    {"short warm-up", {.warm_up_rows = 32, .warm_up_per_k = 1}},
    {"16-bit sums",
     {.warm_up_rows = 32,
      .warm_up_per_k = 1,
      .narrow_max_bits = 0,
      .narrow_max_scan_bits = 0,
      .first_round_ns = 0.0,
      .min_scan_factor = 0.0,
      .min_scan_ns_per_k = 0.0}},
    {"8-bit sums",
     {.warm_up_rows = 32,
      .warm_up_per_k = 1,
      .narrow_max_bits = 8192,
      .narrow_max_scan_bits = 8192}},
};

struct Run {
    const Case& c;
    const Kernel& kernel;
    const Setup& setup;
    std::size_t threads;
    std::span<const Segment> segments;
    Method method;

    bool probes() const {
        return method != Method::scan &&
               std::any_of(segments.begin(), segments.end(),
                           [](const Segment& segment) { return !segment.bands.empty(); });
    }
    std::string text() const {
        std::ostringstream out;
        out << "case " << c.number << " (" << c.n_bits << " bits, "
            << (c.order == BitOrder::big ? "big" : "little") << ", n " << c.n << ", k " << c.k
            << ", " << c.n_queries << " queries), " << kernel.name << ", " << setup.name << ", "
            << threads << " threads, " << segments.size() << " segments"
            << (probes() ? method == Method::probe ? ", probed" : ", probed or scanned" : "");
        return out.str();
    }
};

std::string first_difference(const Run& run, const std::vector<double>& distances,
                             const std::vector<Id>& ids) {
    std::ostringstream out;
    out.precision(17);
    for (std::size_t i = 0; i < run.c.expected_ids.size(); ++i) {
        const double distance = run.c.expected_distances[i];
        const Id id = run.c.expected_ids[i];
        if (std::memcmp(&distances[i], &distance, sizeof(double)) == 0 && ids[i] == id) continue;
        out << "query " << i / run.c.k << " place " << i % run.c.k << ": (" << distances[i] << ", "
            << ids[i] << "), expected (" << distance << ", " << id << ")";
        break;
    }
    return out.str();
}

// Searches, checks the answer and returns the counters of all queries together.
SearchCounters check_search(const Run& run) {
    const Case& c = run.c;
    // Filled with values that are no answer, and one element longer than the answer.
    std::vector<double> distances(c.n_queries * c.k + 1, -12345.0);
    std::vector<Id> ids(c.n_queries * c.k + 1, -12345);
    std::vector<SearchCounters> counters(c.n_queries);
    const SearchRequest request = {.segments = run.segments,
                                   .engine = {c.n_bits, c.order, &run.kernel, run.setup.tuning},
                                   .costs = c.costs.data(),
                                   .n_queries = c.n_queries,
                                   .k = c.k,
                                   .options = {.method = run.method, .threads = run.threads}};
    search(request, {distances.data(), ids.data(), counters.data()}, [] { return false; });
    CHECK(distances.back() == -12345.0 && ids.back() == -12345, run.text());
    distances.pop_back();
    ids.pop_back();
    const bool equal = std::memcmp(distances.data(), c.expected_distances.data(),
                                   distances.size() * sizeof(double)) == 0 &&
                       ids == c.expected_ids;
    CHECK(equal, run.text() << ": " << first_difference(run, distances, ids));

    SearchCounters all;
    for (const SearchCounters& query : counters) {
        if (!run.probes()) {
            CHECK(query.rows_scored_directly + query.rows_scanned >= c.n, run.text());
            CHECK(query.rows_scanned <= c.n, run.text());
            CHECK(query.probes == 0 && query.duplicates == 0, run.text());
        }
        CHECK(run.method != Method::probe || query.fallbacks == 0, run.text());
        CHECK(query.rows_scanned_wide <= query.rows_scanned, run.text());
        CHECK(query.verified <= query.rows_scanned, run.text());
        all.add(query);
    }
    return all;
}

bool same(const SearchCounters& a, const SearchCounters& b) {
    return a.rows_scored_directly == b.rows_scored_directly && a.rows_scanned == b.rows_scanned &&
           a.rows_scanned_wide == b.rows_scanned_wide && a.verified == b.verified &&
           a.rescales == b.rescales && a.capped_entries == b.capped_entries &&
           a.duplicates == b.duplicates && a.probes == b.probes &&
           a.blocks_probed == b.blocks_probed && a.fallbacks == b.fallbacks;
}

void check_setup(const Case& c, const Setup& setup, std::size_t threads,
                 std::span<const Segment> segments, Method method,
                 std::vector<KernelTally>& tallies) {
    std::optional<SearchCounters> first;
    for (std::size_t i = 0; i < tallies.size(); ++i) {
        const Run run = {c, *available_kernels()[i], setup, threads, segments, method};
        const SearchCounters counters = check_search(run);
        ++tallies[i].searches;
        tallies[i].counters.add(counters);
        if (!first) first = counters;
        // All kernels report the same rows; with several threads counts depend on their timing.
        CHECK(threads > 1 || same(counters, *first), run.text());
    }
}

void check_case(const Case& c, std::vector<KernelTally>& tallies) {
    // In short runs the combinations take turns, from case to case.
    const std::size_t turns = is_long_run() ? 1 : 2;
    for (const std::size_t parts : {1, 3}) {
        const Segments plain(c, parts, false);
        const Segments banded(c, parts, true);
        for (std::size_t i = 0; i < std::size(setups); ++i) {
            for (const std::size_t threads : {1, 3}) {
                if ((c.number + i + parts / 2 + threads / 2) % turns) continue;
                check_setup(c, setups[i], threads, plain.get(), Method::automatic, tallies);
            }
            // Probing takes longer: fewer of the setups.
            if ((c.number + i) % (2 * turns)) continue;
            for (const Method method : {Method::automatic, Method::scan, Method::probe}) {
                const std::size_t threads = 1 + (c.number / 2 + parts) % 3;
                check_setup(c, setups[i], threads, banded.get(), method, tallies);
            }
        }
    }
}

}  // namespace

std::vector<KernelTally> test_searches(const std::string& path) {
    Reader reader(path);
    const std::vector<char> magic = reader.read<char>(8);
    if (std::string(magic.begin(), magic.end()) != "BWVEC001") {
        throw std::runtime_error(path + " is not a file of write_vectors.py");
    }
    std::vector<KernelTally> tallies;
    for (const Kernel* kernel : available_kernels()) tallies.push_back({kernel->name, 0, {}});
    const std::size_t n_cases = reader.read_number();
    for (std::size_t i = 0; i < n_cases; ++i) check_case(read_case(reader, i), tallies);
    CHECK(n_cases > 0 && reader.at_end(), n_cases << " cases");
    for (const KernelTally& tally : tallies) {
        const SearchCounters& counters = tally.counters;
        CHECK(counters.probes > 0 && counters.rewalks > 0, tally.kernel);
        CHECK(counters.exhausted_bands > 0 && counters.fallbacks > 0, tally.kernel);
        CHECK(counters.duplicates > 0, tally.kernel);
    }
    return tallies;
}

}  // namespace bitweigh::test
