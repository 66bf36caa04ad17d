// Tests the planner, in a separate program: the suites of cost_model_test.cpp and
// band_budget_test.cpp, then plans that are followed without any rows.
#include "engine/probe/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "engine/probe/cost_model.h"
#include "tests/check.h"

namespace bitweigh::test {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::size_t max_rounds = 1000;

BandQuery make_band(const std::vector<double>& flips) {
    std::vector<std::uint16_t> bits(flips.size());
    std::iota(bits.begin(), bits.end(), std::uint16_t{0});
    const std::vector<std::uint8_t> cheap_ones(flips.size());
    BandQuery band;
    band.prepare(bits, flips.data(), cheap_ones.data());
    return band;
}

// Draws flip weights of all sizes; in some bands a few or all are 0.
std::vector<BandQuery> draw_bands(Rng& rng, double scale) {
    std::vector<BandQuery> bands;
    for (std::size_t b = 1 + pick(rng, 11); b > 0; --b) {
        const std::size_t zeros = pick(rng, 3);
        std::vector<double> flips(1 + pick(rng, 12));
        for (double& flip : flips) {
            flip = pick(rng, 3) < zeros ? 0.0 : scale * static_cast<double>(pick(rng, 1000)) / 1000;
        }
        bands.push_back(make_band(flips));
    }
    return bands;
}

double sum_of_max(const std::vector<BandQuery>& bands) {
    double sum = 0.0;
    for (const BandQuery& band : bands) sum += band.max_sum();
    return sum;
}

struct Followed {
    std::size_t rounds = 0;
    bool exhausted = false;
};

// Follows a plan until the limits exceed the target, which sometimes falls, as a bound does.
Followed follow(Rng& rng, ProbePlan& plan, const std::vector<BandQuery>& bands, double target) {
    Followed followed;
    double round_ns = static_cast<double>(pick(rng, 2000));
    while (!followed.exhausted && !(sum_of_limits(plan.limits()) > target)) {
        if (++followed.rounds > max_rounds) break;
        const std::vector<double> before(plan.limits().begin(), plan.limits().end());
        plan.update(target);
        const float finish_ns = plan.finish_ns(infinity);
        const float step_ns = plan.choose_next(target, static_cast<float>(round_ns));
        CHECK(step_ns <= finish_ns, "a step of " << step_ns << " to finish in " << finish_ns);
        bool rises = false;
        bool falls = false;
        for (std::size_t b = 0; b < bands.size(); ++b) {
            rises |= plan.next()[b] > before[b];
            falls |= plan.next()[b] < before[b];
            plan.seen(b).keys += static_cast<float>(pick(rng, 5));
            plan.seen(b).blocks += static_cast<float>(pick(rng, 20));
        }
        CHECK(!falls, "a limit fell, target " << target);
        // Steps may pass through levels without a key; the next round then continues from there.
        CHECK(rises || step_ns == 0.0f, "nothing was gained, target " << target);
        // No farther than the target requires, except for the rest of a level without keys; a band
        // that was farther already stays there.
        const double sum = sum_of_limits(plan.next());
        const double level = target / 16;  // at most: at least 16 levels are counted
        CHECK(sum <= target + level + std::numeric_limits<double>::min() ||
                  sum <= sum_of_limits(before),
              "limits add up to " << sum << ", target " << target);
        followed.exhausted = plan.arrive() > 0;
        CHECK(std::equal(plan.limits().begin(), plan.limits().end(), plan.next().begin()), "");
        if (pick(rng, 3) == 0) target *= 0.9;
        round_ns *= 2.0;
    }
    CHECK(followed.rounds <= max_rounds, "no end, target " << target);
    return followed;
}

void test_plans_end() {
    Rng rng(13);
    Followed all;
    std::size_t early = 0;
    for (int repeat = 0; repeat < 1500; ++repeat) {
        constexpr double scales[] = {1.0, 1e-300, 1e300, 5e-324 * 2000};
        const double scale = scales[pick(rng, 3)];
        const std::vector<BandQuery> bands = draw_bands(rng, scale);
        const double max = sum_of_max(bands);
        ProbePlan plan;
        plan.start(bands, 100000, 45.6);
        if (pick(rng, 3)) {
            plan.choose_cheapest_keys();
            plan.arrive();
        }
        const double target = max * static_cast<double>(pick(rng, 120)) / 100;
        const Followed followed =
            follow(rng, plan, bands, std::max(target, std::numeric_limits<double>::min()));
        all.rounds += followed.rounds;
        all.exhausted |= followed.exhausted;
        early += followed.rounds > 0 && !followed.exhausted;
    }
    CHECK(all.rounds > 3000 && all.exhausted && early > 100,
          all.rounds << " rounds, " << early << " ended early");
}

void test_first_steps() {
    const std::vector<BandQuery> bands = {make_band({1.0, 2.0}), make_band({0.0, 0.0})};
    ProbePlan plan;
    plan.start(bands, 1000, 50.0);
    CHECK(plan.limits()[0] < 0.0 && sum_of_limits(plan.limits()) == 0.0, "nothing was walked");
    plan.choose_cheapest_keys();
    CHECK(plan.next()[0] == 0.0 && plan.next()[1] == 0.0, "the cheapest key of each band");
    CHECK(plan.arrive() == 1, "the second band has only keys that cost nothing");
}

// A plan that is used again keeps nothing of its previous query.
void test_plans_start_afresh() {
    const std::vector<BandQuery> bands = {make_band({1.0, 2.0, 3.0, 4.0})};
    const std::vector<BandQuery> others = {make_band({0.1, 0.1, 0.1, 0.1})};
    ProbePlan fresh;
    ProbePlan used;
    used.start(others, 1000000, 50.0);
    used.seen(0) = {1.0f, 1000.0f};
    used.update(5.0);
    used.choose_next(5.0, infinity);
    used.arrive();
    used.start(bands, 1000, 50.0);
    fresh.start(bands, 1000, 50.0);
    for (ProbePlan* plan : {&fresh, &used}) {
        CHECK(plan->limits()[0] < 0.0, plan->limits()[0]);
        plan->update(5.0);
    }
    CHECK(used.finish_ns(infinity) == fresh.finish_ns(infinity), used.finish_ns(infinity));
}

void test_targets_without_bound() {
    const std::vector<BandQuery> bands = {make_band({1.0, 2.0, 3.0})};
    ProbePlan plan;
    plan.start(bands, 1000, 50.0);
    CHECK(plan.target_without_bound(6.0) == 3.0, "half of all flips");
    CHECK(plan.target_without_bound(0.0) > 0.0, "a target that can be exceeded");
    plan.update(3.0);
    plan.choose_next(3.0, infinity);
    plan.arrive();
    const double reached = sum_of_limits(plan.limits());
    CHECK(reached > 3.0, reached);
    CHECK(plan.target_without_bound(6.0) == 2 * reached, "then twice as far");
}

// Of two equal bands, the one whose keys lead to fewer blocks advances farther.
void test_time_decides() {
    const std::vector<double> flips = {1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7};
    const std::vector<BandQuery> bands = {make_band(flips), make_band(flips)};
    ProbePlan plan;
    plan.start(bands, 1000, 50.0);
    plan.choose_cheapest_keys();
    plan.arrive();
    plan.seen(0) = {1.0f, 200.0f};
    plan.seen(1) = {1.0f, 1.0f};
    plan.update(6.0);
    const float with_lump = plan.finish_ns(infinity);
    plan.choose_next(6.0, infinity);
    CHECK(plan.next()[1] > plan.next()[0], plan.next()[0] << ", " << plan.next()[1]);
    const double sum = sum_of_limits(plan.next());
    CHECK(sum > 6.0 && sum < 6.0001, "just beyond the target, not a level: " << sum);
    plan.start(bands, 1000, 50.0);
    plan.choose_cheapest_keys();
    plan.arrive();
    plan.update(6.0);
    CHECK(plan.finish_ns(infinity) < with_lump, "fewer blocks take less time");
}

// Keys whose sums are rounded to level 0 take time, too, unless they were probed.
void test_light_keys_take_time() {
    // 16 weights of less than half a level: all 65,536 keys are of level 0.
    const std::vector<BandQuery> bands = {make_band(std::vector<double>(16, 1.0))};
    constexpr double target = 1000.0;
    ProbePlan plan;
    plan.start(bands, 1000, 50.0);
    plan.choose_cheapest_keys();
    plan.arrive();
    plan.seen(0) = {1.0f, 0.0f, 1.0f};
    plan.update(target);
    const float all_ns = plan.finish_ns(infinity);
    CHECK(all_ns > 65535 * cost_model.key_lookup_ns, all_ns);
    plan.seen(0).probed = 60000.0f;
    plan.update(target);
    const float rest_ns = plan.finish_ns(infinity);
    CHECK(rest_ns > 5536 * cost_model.key_lookup_ns && rest_ns < all_ns / 5, rest_ns);
}

}  // namespace
}  // namespace bitweigh::test

int main() {
    using namespace bitweigh::test;
    test_cost_model();
    test_band_budget();
    test_first_steps();
    test_plans_start_afresh();
    test_targets_without_bound();
    test_time_decides();
    test_light_keys_take_time();
    test_plans_end();
    std::cout << (failures ? "FAILED: " : "passed: ") << failures << " of " << checks
              << " checks failed" << std::endl;
    return failures ? 1 : 0;
}
