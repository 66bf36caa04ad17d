// Tests the walk over a band's keys against all of its keys.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/probe/band_query.h"
#include "tests/check.h"

namespace bitweigh::test {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double smallest = std::numeric_limits<double>::denorm_min();

double fraction(Rng& rng) {
    return static_cast<double>(pick(rng, 1 << 30)) / (1 << 30);
}

// The ways to draw flip weights.
struct WeightKind {
    const char* name;
    double (*weight)(Rng&);
};
constexpr WeightKind kinds[] = {
    {"any", [](Rng& rng) { return fraction(rng); }},
    {"some zero", [](Rng& rng) { return pick(rng, 1) ? 0.0 : fraction(rng); }},
    {"all zero", [](Rng&) { return 0.0; }},
    {"equal", [](Rng&) { return 0.1; }},
    {"few values", [](Rng& rng) { return static_cast<double>(pick(rng, 3)); }},
    {"subnormal", [](Rng& rng) { return static_cast<double>(pick(rng, 5)) * smallest; }},
    {"huge", [](Rng& rng) { return fraction(rng) * 0x1p1015; }},
    {"spread", [](Rng& rng) { return std::ldexp(1.0 + fraction(rng), -int(pick(rng, 70))); }},
    {"tiny to huge",
     [](Rng& rng) { return std::ldexp(1.0, static_cast<int>(pick(rng, 2080)) - 1070); }},
};

// A band of some bits of a longer code, and the sum of each of its keys by the definition: the
// weights of the bits that differ from the cheapest key, added in ascending order.
struct Problem {
    const char* kind;
    std::vector<std::uint16_t> bits;
    std::vector<double> flips;
    std::vector<std::uint8_t> cheap_ones;
    Key cheapest = 0;
    std::vector<double> sums;  // Sums by key.

    std::string text() const {
        return std::string(kind) + ", " + std::to_string(bits.size()) + " bits";
    }
    std::vector<Key> keys_within(double above, double limit) const {
        std::vector<Key> keys;
        for (Key key = 0; key < sums.size(); ++key) {
            if (sums[key] > above && sums[key] <= limit) keys.push_back(key);
        }
        return keys;
    }
};

Problem make_problem(Rng& rng, const WeightKind& kind, std::size_t n_bits) {
    Problem problem{kind.name, std::vector<std::uint16_t>(n_bits + pick(rng, 9)), {}, {}, 0, {}};
    for (std::size_t i = 0; i < problem.bits.size(); ++i) {
        problem.bits[i] = static_cast<std::uint16_t>(i);
        problem.flips.push_back(kind.weight(rng));
        problem.cheap_ones.push_back(static_cast<std::uint8_t>(pick(rng, 1)));
    }
    std::shuffle(problem.bits.begin(), problem.bits.end(), rng);
    problem.bits.resize(n_bits);
    for (std::size_t j = 0; j < n_bits; ++j) {
        if (problem.cheap_ones[problem.bits[j]]) problem.cheapest += Key{1} << j;
    }
    for (Key key = 0; key < Key{1} << n_bits; ++key) {
        std::vector<double> paid;
        for (std::size_t j = 0; j < n_bits; ++j) {
            if ((key ^ problem.cheapest) >> j & 1) paid.push_back(problem.flips[problem.bits[j]]);
        }
        std::sort(paid.begin(), paid.end());
        problem.sums.push_back(std::accumulate(paid.begin(), paid.end(), 0.0));
    }
    return problem;
}

std::vector<Key> walked(const BandQuery& band, double above, double limit) {
    std::vector<Key> keys;
    const bool through = band.walk(above, limit, [&](Key key, double) {
        keys.push_back(key);
        return true;
    });
    CHECK(through, "above " << above << " limit " << limit);
    return keys;
}

// Limits that a sum just reaches or just misses, and limits unrelated to sums.
double draw_limit(Rng& rng, const Problem& problem) {
    const double sum = problem.sums[pick(rng, problem.sums.size() - 1)];
    switch (pick(rng, 7)) {
        case 0:
            return std::nextafter(sum, -infinity);
        case 1:
            return std::nextafter(sum, infinity);
        case 2:
            return fraction(rng);
        case 3:
            return 0.0;
        case 4:
            return pick(rng, 1) ? infinity : -infinity;
        default:
            return sum;
    }
}

void check_band(const Problem& problem, const BandQuery& band) {
    CHECK(band.n_bits() == problem.bits.size(), problem.text());
    CHECK(band.cheapest() == problem.cheapest, problem.text());
    CHECK(band.max_sum() == *std::max_element(problem.sums.begin(), problem.sums.end()),
          problem.text() << ": " << band.max_sum());
    std::vector<double> weights;
    for (const std::uint16_t bit : problem.bits) weights.push_back(problem.flips[bit]);
    std::sort(weights.begin(), weights.end());
    bool same = true;
    for (std::size_t j = 0; j < weights.size(); ++j) same &= band.weight(j) == weights[j];
    CHECK(same, problem.text());
}

void check_walks(Rng& rng, const Problem& problem, const BandQuery& band) {
    for (int repeat = 0; repeat < 12; ++repeat) {
        double above = repeat < 4 ? -infinity : draw_limit(rng, problem);
        double limit = draw_limit(rng, problem);
        if (above > limit) std::swap(above, limit);
        std::vector<Key> keys = walked(band, above, limit);
        std::sort(keys.begin(), keys.end());
        const std::vector<Key> expected = problem.keys_within(above, limit);
        CHECK(keys == expected, problem.text()
                                    << ", above " << above << " limit " << limit << ": "
                                    << keys.size() << " keys, expected " << expected.size());
    }
}

// Walks over rising limits, the first from -inf, emit every key once.
void check_rising_limits(Rng& rng, const Problem& problem, const BandQuery& band) {
    std::vector<double> limits = {-infinity};
    for (std::size_t i = pick(rng, 6); i > 0; --i) limits.push_back(draw_limit(rng, problem));
    limits.push_back(band.max_sum());
    std::sort(limits.begin(), limits.end());
    std::vector<Key> all;
    for (std::size_t i = 0; i + 1 < limits.size(); ++i) {
        const std::vector<Key> keys = walked(band, limits[i], limits[i + 1]);
        all.insert(all.end(), keys.begin(), keys.end());
    }
    std::sort(all.begin(), all.end());
    std::vector<Key> expected(problem.sums.size());
    std::iota(expected.begin(), expected.end(), Key{0});
    CHECK(all == expected, problem.text() << ", " << limits.size() - 1 << " walks: " << all.size()
                                          << " keys, expected " << expected.size());
}

// A walk stopped at its n-th key emits the first n keys of a complete walk and returns false.
void check_stops(Rng& rng, const Problem& problem, const BandQuery& band) {
    const std::vector<Key> all = walked(band, -infinity, infinity);
    for (const std::size_t stop : {std::size_t{1}, 1 + pick(rng, all.size() - 1), all.size()}) {
        std::vector<Key> keys;
        const bool through = band.walk(-infinity, infinity, [&](Key key, double) {
            keys.push_back(key);
            return keys.size() < stop;
        });
        CHECK(!through, problem.text() << ", stopped at key " << stop << " of " << all.size());
        CHECK(keys.size() == stop && std::equal(keys.begin(), keys.end(), all.begin()),
              problem.text() << ", stopped at key " << stop << ": " << keys.size() << " keys");
    }
}

// For bands with too many keys to list: counts the subsets of 1, 2, ... with a sum within a limit.
void check_longest_band() {
    std::vector<std::uint16_t> bits(max_band_bits);
    std::iota(bits.begin(), bits.end(), std::uint16_t{0});
    std::vector<double> flips(max_band_bits);
    std::iota(flips.rbegin(), flips.rend(), 1.0);
    const std::vector<std::uint8_t> cheap_ones(max_band_bits, 1);
    BandQuery band;
    band.prepare(bits, flips.data(), cheap_ones.data());
    constexpr std::size_t limit = 40;
    std::vector<std::size_t> subsets(limit + 1);
    subsets[0] = 1;
    for (std::size_t weight = 1; weight <= max_band_bits; ++weight) {
        for (std::size_t sum = limit; sum >= weight; --sum) subsets[sum] += subsets[sum - weight];
    }
    for (const std::size_t above : {0, 17, 39}) {
        const auto first = subsets.begin() + static_cast<std::ptrdiff_t>(above) + 1;
        const std::size_t expected = std::accumulate(first, subsets.end(), std::size_t{0});
        const std::vector<Key> keys =
            walked(band, static_cast<double>(above), static_cast<double>(limit));
        CHECK(keys.size() == expected, "above " << above << ": " << keys.size() << " keys");
    }
    CHECK(band.cheapest() == (Key{1} << max_band_bits) - 1, band.cheapest());
}

}  // namespace

void test_band_queries() {
    Rng rng(6);
    // One object for all bands, as in a search: nothing of the previous band may remain.
    BandQuery band;
    for (const WeightKind& kind : kinds) {
        for (std::size_t n_bits = 1; n_bits <= 10; ++n_bits) {
            for (int repeat = 0; repeat < 6; ++repeat) {
                const Problem problem = make_problem(rng, kind, n_bits);
                band.prepare(problem.bits, problem.flips.data(), problem.cheap_ones.data());
                check_band(problem, band);
                check_walks(rng, problem, band);
                check_rising_limits(rng, problem, band);
                check_stops(rng, problem, band);
            }
        }
    }
    check_longest_band();
}

}  // namespace bitweigh::test
