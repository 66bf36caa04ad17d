// Tests counts of keys by level against all keys, and the promises of a budget on random plans.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "engine/probe/band_budget.h"
#include "tests/check.h"

namespace bitweigh::test {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::size_t last_level = 49;

BandQuery make_band(const std::vector<double>& flips) {
    std::vector<std::uint16_t> bits(flips.size());
    std::iota(bits.begin(), bits.end(), std::uint16_t{0});
    const std::vector<std::uint8_t> cheap_ones(flips.size());
    BandQuery band;
    band.prepare(bits, flips.data(), cheap_ones.data());
    return band;
}

// Counts each key separately: the sum of its weights, each rounded to whole levels.
void check_counts(const std::vector<double>& flips, double level) {
    // Further levels are not written.
    LevelCounts counts;
    counts.fill(-1.0f);
    count_keys(make_band(flips), level, last_level, counts);
    LevelCounts expected;
    expected.fill(-1.0f);
    std::fill_n(expected.begin(), last_level + 1, 0.0f);
    for (std::size_t key = 0; key < std::size_t{1} << flips.size(); ++key) {
        double sum = 0.0;
        for (std::size_t j = 0; j < flips.size(); ++j) {
            if (key >> j & 1) sum += std::floor(flips[j] / level + 0.5);
        }
        if (sum <= static_cast<double>(last_level)) ++expected[static_cast<std::size_t>(sum)];
    }
    CHECK(counts == expected, flips.size() << " bits, level " << level << ": " << counts[0] << ", "
                                           << counts[1] << ", ..., expected " << expected[0] << ", "
                                           << expected[1]);
}

void test_counts(Rng& rng) {
    for (int repeat = 0; repeat < 300; ++repeat) {
        std::vector<double> flips(1 + pick(rng, 11));
        // From all weights within a level to most weights beyond the last level.
        const double max_flip = std::ldexp(1.0, static_cast<int>(pick(rng, 12)) - 2);
        for (double& flip : flips) {
            flip = pick(rng, 5) ? max_flip * static_cast<double>(pick(rng, 1000)) / 1000.0 : 0.0;
        }
        check_counts(flips, 1.0);
        for (double& flip : flips) flip *= 0x1p-1000;
        check_counts(flips, 0x1p-1000);
    }
    // A budget so small that a level is zero: no count means anything, but each is a number.
    for (const double flip : {0.0, 5e-324, 1e300}) {
        LevelCounts counts;
        count_keys(make_band({0.0, flip, flip}), 0.0, last_level, counts);
        const bool finite = std::all_of(counts.begin(), counts.begin() + last_level + 1,
                                        [](float count) { return std::isfinite(count); });
        CHECK(finite && counts[0] >= 1.0f, "flip " << flip);
    }
}

std::size_t sum_of_levels(const BandBudget& plans) {
    std::size_t sum = 0;
    for (const BandLevels& band : plans.bands) sum += band.level;
    return sum;
}

// Whole numbers, small enough for every sum of costs to be exact; many levels have no key.
BandBudget draw_plans(Rng& rng) {
    BandBudget plans;
    plans.resize(1 + pick(rng, 20));
    for (BandLevels& band : plans.bands) {
        band.keys.fill(0.0f);
        const std::size_t often = 1 + pick(rng, 3);
        for (float& keys : band.keys) {
            if (pick(rng, often) == 0) keys = static_cast<float>(pick(rng, 50));
        }
        band.key_ns = static_cast<float>(1 + pick(rng, 9));
        band.level = pick(rng, 4) ? 0 : pick(rng, plans.last_level());
        band.probed = static_cast<float>(pick(rng, 50));
    }
    return plans;
}

std::size_t draw_needed(Rng& rng, const BandBudget& plans) {
    return pick(rng, 2) ? plans.last_level() : 1 + pick(rng, plans.last_level() - 1);
}

void check_advance(Rng& rng, BandBudget& plans) {
    const std::vector<BandLevels> before = plans.bands;
    const std::size_t sum_before = sum_of_levels(plans);
    const std::size_t needed = draw_needed(rng, plans);
    const auto max_ns = static_cast<float>(pick(rng, pick(rng, 1) ? 100 : 3000));
    const float spent = plans.advance(needed, max_ns);
    const std::size_t sum = sum_of_levels(plans);

    float cost = 0.0f;
    std::size_t paying = 0;
    bool rising = true;
    for (std::size_t b = 0; b < before.size(); ++b) {
        const BandLevels& band = plans.bands[b];
        rising &= before[b].level <= band.level && band.level <= plans.last_level();
        for (std::size_t l = before[b].level + 1; l <= band.level; ++l) {
            const float left_at_0 = l == 1 ? std::max(0.0f, band.keys[0] - band.probed) : 0.0f;
            const float level_ns = (band.keys[l] + left_at_0) * band.key_ns;
            cost += level_ns;
            paying += level_ns > 0.0f;
        }
    }
    CHECK(rising, before.size() << " bands");
    CHECK(spent == cost, before.size() << " bands: " << spent << ", not " << cost);
    CHECK(spent <= max_ns || paying == 1,
          "spent " << spent << " of " << max_ns << " on " << paying);
    if (sum_before < needed) {
        CHECK(sum > sum_before, before.size() << " bands");
        CHECK(sum <= needed, "levels add up to " << sum << ", needed " << needed);
    } else {
        CHECK(sum == sum_before && spent == 0.0f, "levels add up to " << sum);
    }
}

// However the rounds are cut, the same steps are made, and predicted.
void check_finish(Rng& rng, BandBudget plans) {
    const std::size_t needed = draw_needed(rng, plans);
    const float predicted = plans.finish_ns(needed, infinity);
    // Stops counting above the limit.
    const auto enough = static_cast<float>(pick(rng, static_cast<std::size_t>(predicted)));
    const float cut = plans.finish_ns(needed, enough);
    CHECK(cut <= predicted && (cut > enough || cut == predicted),
          "enough " << enough << ": " << cut << " of " << predicted);
    float spent = 0.0f;
    for (std::size_t rounds = 0; sum_of_levels(plans) < needed; ++rounds) {
        if (rounds > max_levels) break;
        spent += plans.advance(needed, static_cast<float>(pick(rng, 500)));
    }
    CHECK(sum_of_levels(plans) >= needed, plans.bands.size() << " bands do not finish");
    CHECK(spent == predicted, plans.bands.size()
                                  << " bands: " << spent << ", predicted " << predicted);
}

void test_plans(Rng& rng) {
    for (int repeat = 0; repeat < 2000; ++repeat) {
        BandBudget plans = draw_plans(rng);
        check_finish(rng, plans);
        for (int round = 0; round < 5; ++round) check_advance(rng, plans);
        // Without a limit, to the end of the budget.
        plans.advance(plans.last_level(), infinity);
        CHECK(sum_of_levels(plans) >= plans.last_level(), plans.bands.size() << " bands");
    }
    // A band that cannot advance, whatever is needed.
    BandBudget ended;
    ended.resize(1);
    ended.bands[0] = {{}, 1.0f, ended.last_level(), 0.0f};
    CHECK(ended.finish_ns(ended.last_level() + 1, 1000.0f) == infinity, "no level is left");
}

}  // namespace

void test_band_budget() {
    Rng rng(7);
    test_counts(rng);
    test_plans(rng);
}

}  // namespace bitweigh::test
