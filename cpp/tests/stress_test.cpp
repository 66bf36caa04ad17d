// Tests threads that search while another thread replaces the state, in a separate program:
// `stress_test SECONDS`. Every answer must be that of the state searched, by the definition.
//
// A write to memory that other threads read shows only under a thread sanitizer.
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/range_search.h"
#include "engine/rows/bits.h"
#include "engine/search.h"
#include "tests/check.h"
#include "tests/stress_state.h"

namespace bitweigh::test {
namespace {

constexpr std::size_t n_searchers = 3;
constexpr Format formats[] = {
    {13, BitOrder::little, true}, {33, BitOrder::big, false}, {70, BitOrder::little, false}};

constexpr Tuning tunings[] = {
    {},
    {.warm_up_rows = 32,
     .warm_up_per_k = 1,
     .first_round_ns = 0.0,
     .min_scan_factor = 0.0,
     .min_scan_ns_per_k = 0.0},
    {.warm_up_rows = 32,
     .warm_up_per_k = 1,
     .narrow_max_bits = 0,
     .min_scan_factor = 0.0,
     .min_scan_ns_per_k = 0.0},
};

struct Tally {
    std::size_t searches = 0;
    std::size_t range_searches = 0;
    std::size_t refused = 0;   // Range searches with more rows than the limit.
    std::size_t filtered = 0;  // Filtered searches of either kind.
    std::size_t gathered = 0;  // Filtered searches of copied rows.
    std::size_t large = 0;     // Searches of either kind over more than a page of rows.
    std::size_t outlived = 0;  // Searches of either kind in a state no longer the newest.
    SearchCounters counters;

    void add(const Tally& other) {
        searches += other.searches;
        range_searches += other.range_searches;
        refused += other.refused;
        filtered += other.filtered;
        gathered += other.gathered;
        large += other.large;
        outlived += other.outlived;
        counters.add(other.counters);
    }
};

bool are_same(const Neighbour& a, const Neighbour& b) {
    return std::bit_cast<std::uint64_t>(a.distance) == std::bit_cast<std::uint64_t>(b.distance) &&
           a.id == b.id;
}

// Searches the newest state, or the state it already has.
class Searcher {
public:
    Searcher(const Format& format, const Newest& newest, std::uint64_t seed)
        : format_(format), newest_(newest), rng_(seed) {}

    // The error found in the answer; empty if there is none.
    std::string step() {
        if (!held_ || pick(rng_, 2)) held_ = newest_.get();
        const std::shared_ptr<const State> state = pick(rng_, 2) ? held_ : filtered_state();
        draw_costs();
        const SearchRequest request = draw_request(*state);
        const bool right =
            lookup_is_right(*state) && (pick(rng_, 2) ? search_is_right(request, *state)
                                                      : range_search_is_right(request, *state));
        tally.large += state->rows() > page_rows;
        tally.outlived += held_ != newest_.get();
        if (right) return "";
        std::ostringstream text;
        text << format_.n_bits << " bits, " << state->parts().size() << " segments, "
             << state->rows() << " rows, " << request.n_queries << " queries, k " << request.k
             << ", method " << static_cast<int>(request.options.method) << ", "
             << request.engine.kernel->name << ", " << request.options.threads << " threads"
             << (state == held_ ? "" : ", filtered");
        return text.str();
    }

    Tally tally;

private:
    void draw_costs() {
        costs_.resize((1 + pick(rng_, 3)) * format_.n_bits * 2);
        // Whole numbers lead to ties, which ids decide.
        const bool whole = pick(rng_, 1) == 1;
        for (double& cost : costs_) {
            cost = static_cast<double>(pick(rng_, 1 << 20)) / (1 << 17) - 4.0;
            if (whole) cost = std::round(cost);
        }
    }
    const double* costs_of(std::size_t q) const { return costs_.data() + q * format_.n_bits * 2; }

    SearchRequest draw_request(const State& state) {
        constexpr Method methods[] = {Method::automatic, Method::scan, Method::probe};
        const std::span<const Kernel* const> kernels = available_kernels();
        return {.segments = state.set().segments(),
                .engine = {format_.n_bits, format_.order, kernels[pick(rng_, kernels.size() - 1)],
                           tunings[pick(rng_, std::size(tunings) - 1)]},
                .costs = costs_.data(),
                .n_queries = costs_.size() / (format_.n_bits * 2),
                .k = 1 + pick(rng_, pick(rng_, 9) ? 30 : 800),
                .options = {.method = methods[pick(rng_, std::size(methods) - 1)],
                            .threads = 1 + pick(rng_, 2)}};
    }

    std::shared_ptr<const State> filtered_state() {
        const std::shared_ptr<const State> state =
            filtered(*held_, bytes_of(format_.n_bits), rng_, pick(rng_, 1) ? 500 : 5);
        ++tally.filtered;
        tally.gathered += state->set().has_gathered_rows();
        return state;
    }

    // Whether a row is found by its id, unless it is gone.
    bool lookup_is_right(const State& state) {
        if (state.parts().empty()) return true;
        const std::size_t number = pick(rng_, state.parts().size() - 1);
        const Part& part = state.parts()[number];
        const std::size_t row = pick(rng_, part.rows() - 1);
        const Id id = part.arrays->ids()[row];
        Checkpoint checkpoint = uninterrupted();
        const std::optional<RowLocation> found = state.set().find(id, checkpoint);
        if ((*part.gone)[row]) return !found;
        return found && state.set().segments()[found->segment].ids[found->row] == id;
    }

    // The distance of each row that is not gone, by the definition: the costs of a byte's bits
    // added in ascending bit number, then those sums in ascending byte number.
    std::vector<Neighbour> distances(const State& state, const double* costs) const {
        const std::size_t n_bytes = bytes_of(format_.n_bits);
        std::vector<double> sums(n_bytes * 256);
        for (std::size_t i = 0; i < format_.n_bits; ++i) {
            for (unsigned byte = 0; byte < 256; ++byte) {
                const bool bit = (byte & bit_mask(i, format_.order)) != 0;
                sums[i / 8 * 256 + byte] += costs[2 * i + bit];
            }
        }
        std::vector<Neighbour> all;
        all.reserve(state.rows());
        for (const Part& part : state.parts()) {
            const std::uint8_t* code = part.arrays->codes().data();
            for (std::size_t row = 0; row < part.rows(); ++row, code += n_bytes) {
                if ((*part.gone)[row]) continue;
                double sum = 0.0;
                for (std::size_t p = 0; p < n_bytes; ++p) sum += sums[p * 256 + code[p]];
                all.push_back({sum, part.arrays->ids()[row]});
            }
        }
        return all;
    }

    bool search_is_right(const SearchRequest& request, const State& state) {
        ++tally.searches;
        std::vector<double> found(request.n_queries * request.k);
        std::vector<Id> ids(found.size());
        std::vector<SearchCounters> counters(request.n_queries);
        search(request, {found.data(), ids.data(), counters.data()}, [] { return false; });
        bool right = true;
        for (std::size_t q = 0; q < request.n_queries; ++q) {
            tally.counters.add(counters[q]);
            std::vector<Neighbour> expected = distances(state, costs_of(q));
            const std::size_t n = std::min(request.k, expected.size());
            std::partial_sort(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(n),
                              expected.end(), nearer);
            expected.resize(n);
            expected.resize(request.k, {padding_distance, padding_id});
            for (std::size_t i = 0; i < request.k; ++i) {
                const std::size_t index = q * request.k + i;
                right &= are_same({found[index], ids[index]}, expected[i]);
            }
        }
        return right;
    }

    bool range_search_is_right(SearchRequest request, const State& state) {
        ++tally.range_searches;
        std::vector<double> radii;
        std::vector<std::vector<Neighbour>> expected;
        std::size_t max_rows = 0;
        for (std::size_t q = 0; q < request.n_queries; ++q) {
            std::vector<Neighbour> all = distances(state, costs_of(q));
            radii.push_back(0.0);
            if (!all.empty()) {
                // The distance of a row, so that the radius is reached exactly.
                const std::size_t nth = pick(rng_, std::min<std::size_t>(all.size(), 300) - 1);
                const auto at = all.begin() + static_cast<std::ptrdiff_t>(nth);
                std::nth_element(all.begin(), at, all.end(), nearer);
                radii.back() = at->distance;
            }
            std::erase_if(all, [&](const Neighbour& row) { return row.distance > radii.back(); });
            std::sort(all.begin(), all.end(), nearer);
            max_rows = std::max(max_rows, all.size());
            expected.push_back(std::move(all));
        }
        const std::size_t limit = pick(rng_, 3) ? max_rows : max_rows / 2;
        std::vector<SearchCounters> counters(request.n_queries);
        request.radii = radii.data();
        request.options.limit = limit;
        try {
            const auto found = range_search(request, counters.data(), [] { return false; });
            const auto are_all_same = [](const auto& a, const auto& b) {
                return std::equal(a.begin(), a.end(), b.begin(), b.end(), are_same);
            };
            return max_rows <= limit &&
                   std::equal(found.begin(), found.end(), expected.begin(), are_all_same);
        } catch (const TooManyRows& error) {
            ++tally.refused;
            return expected[error.query].size() > limit;
        }
    }

    const Format& format_;
    const Newest& newest_;
    Rng rng_;
    std::shared_ptr<const State> held_;
    std::vector<double> costs_;
};

// Runs one format for a number of seconds. The first thread that fails ends it.
class Round {
public:
    explicit Round(const Format& format) : writer_(format, newest_, format.n_bits) {
        for (std::size_t i = 0; i < n_searchers; ++i) searchers_.emplace_back(format, newest_, i);
    }

    void run(std::chrono::duration<double> time) {
        std::vector<std::thread> threads;
        threads.emplace_back([&] {
            repeat([&] {
                writer_.step();
                return std::string();
            });
        });
        for (Searcher& searcher : searchers_) {
            threads.emplace_back([&] { repeat([&] { return searcher.step(); }); });
        }
        const auto end = std::chrono::steady_clock::now() + time;
        while (!over_ && std::chrono::steady_clock::now() < end) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        over_ = true;
        for (std::thread& thread : threads) thread.join();
    }

    // Valid after the run.
    const std::vector<std::string>& wrong() const { return wrong_; }
    std::size_t states() const { return writer_.states; }
    Tally tally() const {
        Tally all;
        for (const Searcher& searcher : searchers_) all.add(searcher.tally);
        return all;
    }

private:
    template <class Step>
    void repeat(Step step) {
        while (!over_) {
            std::string wrong;
            try {
                wrong = step();
            } catch (const std::exception& error) {
                wrong = error.what();
            }
            if (wrong.empty()) continue;
            const std::lock_guard lock(mutex_);
            wrong_.push_back(wrong);
            over_ = true;
        }
    }

    Newest newest_;
    Writer writer_;
    std::vector<Searcher> searchers_;
    std::atomic<bool> over_ = false;
    std::mutex mutex_;  // Guard of the members below.
    std::vector<std::string> wrong_;
};

// A path that no search used proves nothing.
void check_reached(const Tally& tally, std::size_t states) {
    const SearchCounters& counters = tally.counters;
    std::cout << tally.searches << " searches and " << tally.range_searches << " range searches, "
              << tally.refused << " refused; " << tally.filtered << " filtered, " << tally.gathered
              << " to copied rows; " << tally.large << " over many rows; " << tally.outlived
              << " outlived their state; " << states << " states; " << counters.probes
              << " probes, " << counters.fallbacks << " given up" << std::endl;
    CHECK(tally.searches > 0 && tally.range_searches > 0 && tally.refused > 0, "");
    CHECK(tally.filtered > 0 && tally.gathered > 0 && tally.large > 0, "");
    CHECK(tally.outlived > 0 && states > 0, "");
    CHECK(counters.probes > 0 && counters.fallbacks > 0, "");
    CHECK(counters.rows_scanned > counters.rows_scanned_wide && counters.rows_scanned_wide > 0, "");
}

}  // namespace
}  // namespace bitweigh::test

int main(int n_arguments, char** arguments) {
    using namespace bitweigh::test;
    const double seconds = n_arguments == 2 ? std::atof(arguments[1]) : 10.0;
    Tally tally;
    std::size_t states = 0;
    for (const Format& format : formats) {
        Round round(format);
        round.run(std::chrono::duration<double>(seconds / std::size(formats)));
        for (const std::string& wrong : round.wrong()) CHECK(wrong.empty(), wrong);
        tally.add(round.tally());
        states += round.states();
    }
    if (failures == 0) check_reached(tally, states);
    std::cout << (failures ? "FAILED: " : "passed: ") << failures << " of " << checks
              << " checks failed" << std::endl;
    return failures ? 1 : 0;
}
