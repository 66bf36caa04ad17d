// Rows with bands and a query for probe_test.cpp, and the answer by the definition.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/rows/bits.h"
#include "engine/tiles.h"
#include "engine/types.h"
#include "tests/banded_segment.h"
#include "tests/check.h"

namespace bitweigh::test {

inline double normal(Rng& rng) {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(pick(rng, 1 << 20)) / (1 << 20);
    return sum;
}

// Costs of which, in each group of 8 bits, the first is huge and the last cancels it, whatever the
// code: those between are rounded. At 1e17 they are rounded away, and all rows tie.
inline double cancelling(Rng& rng, std::size_t i, double huge) {
    return i % 8 == 0 ? huge : i % 8 == 7 ? -huge : normal(rng);
}

// A way to draw the costs of bit i.
struct CostKind {
    const char* name;
    double (*cost)(Rng&, std::size_t i);
};
inline constexpr CostKind cost_kinds[] = {
    {"any", [](Rng& rng, std::size_t) { return normal(rng); }},
    {"negative", [](Rng& rng, std::size_t) { return -std::fabs(normal(rng)); }},
    {"some bits free", [](Rng& rng, std::size_t i) { return i % 3 ? normal(rng) : 0.25; }},
    {"all zero", [](Rng& rng, std::size_t) { return pick(rng, 1) ? 0.0 : -0.0; }},
    {"all equal", [](Rng&, std::size_t) { return -0.7; }},
    {"one bit has all", [](Rng& rng, std::size_t i) { return i == 5 ? normal(rng) : 0.0; }},
    {"one bit has most", [](Rng& rng, std::size_t i) { return normal(rng) * (i == 5 ? 1e9 : 1); }},
    {"whole numbers",
     [](Rng& rng, std::size_t) { return static_cast<double>(pick(rng, 4)) - 2.0; }},
    {"rounded", [](Rng& rng, std::size_t i) { return cancelling(rng, i, 1e15); }},
    {"rounded away", [](Rng& rng, std::size_t i) { return cancelling(rng, i, 1e17); }},
    {"huge", [](Rng& rng, std::size_t) { return normal(rng) * 0x1p1000; }},
    {"subnormal",
     [](Rng& rng, std::size_t) { return (static_cast<double>(pick(rng, 80)) - 40.0) * 5e-324; }},
    {"spread", [](Rng& rng, std::size_t) { return std::ldexp(normal(rng), -int(pick(rng, 60))); }},
};

inline const CostKind& find_costs(std::string_view name) {
    return *std::find_if(std::begin(cost_kinds), std::end(cost_kinds),
                         [&](const CostKind& kind) { return kind.name == name; });
}

// Rows and one query, with its answer by the definition.
struct Case {
    std::string text;
    std::size_t n_bits;
    BitOrder order;
    std::size_t n;
    std::vector<double> costs;
    std::unique_ptr<BandedSegment> rows;
    std::vector<Neighbour> expected;  // All rows, nearest first.
};

inline double distance_of(const std::uint8_t* code, const Case& c) {
    double sum = 0.0;
    for (std::size_t p = 0; p < bytes_of(c.n_bits); ++p) {
        double group = 0.0;
        for (std::size_t i = 8 * p; i < std::min(c.n_bits, 8 * p + 8); ++i) {
            group += c.costs[2 * i + ((code[p] & bit_mask(i, c.order)) != 0)];
        }
        sum += group;
    }
    return sum;
}

// The probability, in thousandths, that bit i of row r of n is not the cheap value.
using CodeKind = std::size_t (*)(std::size_t i, std::size_t r, std::size_t n);
inline std::size_t any_codes(std::size_t, std::size_t, std::size_t) {
    return 500;
}
inline std::size_t approaching(std::size_t, std::size_t r, std::size_t n) {
    return (n - r) * 400 / n;
}
inline std::size_t few_near(std::size_t, std::size_t r, std::size_t) {
    return r < 20 ? r : 500;
}
inline CodeKind draw_code_kind(Rng& rng) {
    constexpr CodeKind code_kinds[] = {any_codes, approaching, few_near};
    return code_kinds[pick(rng, 2)];
}

// Draws the codes of a case, many of them several times.
inline std::vector<std::uint8_t> draw_codes(Rng& rng, const Case& c, CodeKind kind) {
    const std::size_t n_bytes = bytes_of(c.n_bits);
    std::vector<std::uint8_t> codes(c.n * n_bytes);
    for (std::size_t r = 0; r < c.n; ++r) {
        std::uint8_t* code = codes.data() + r * n_bytes;
        if (r > 0 && pick(rng, 5) == 0) {
            std::copy_n(codes.data() + pick(rng, r - 1) * n_bytes, n_bytes, code);
            continue;
        }
        for (std::size_t i = 0; i < c.n_bits; ++i) {
            const bool cheap = c.costs[2 * i + 1] < c.costs[2 * i];
            const bool flipped = pick(rng, 999) < kind(i, r, c.n);
            if (cheap != flipped) code[i / 8] |= static_cast<std::uint8_t>(bit_mask(i, c.order));
        }
    }
    return codes;
}

inline Case make_case(Rng& rng, const CostKind& kind, CodeKind codes, std::size_t n,
                      std::size_t n_bits, Layout layout) {
    Case c{"", n_bits, pick(rng, 1) ? BitOrder::big : BitOrder::little, n, {}, nullptr, {}};
    for (std::size_t i = 0; i < 2 * n_bits; ++i) c.costs.push_back(kind.cost(rng, i / 2));
    std::vector<Id> ids(n);
    std::iota(ids.begin(), ids.end(), Id{7});
    std::shuffle(ids.begin(), ids.end(), rng);
    std::size_t covered = 0;
    for (const auto& bits : layout) covered += bits.size();
    const bool own_order = pick(rng, 1) == 1;
    c.text = std::string(kind.name) + ", " + std::to_string(n) + " rows, " +
             std::to_string(layout.size()) + " bands of " + std::to_string(covered) + " of " +
             std::to_string(n_bits) + " bits" + (own_order ? ", own order" : "");
    c.rows = std::make_unique<BandedSegment>(draw_codes(rng, c, codes), ids, n_bits, c.order,
                                             std::move(layout), own_order);
    for (std::size_t r = 0; r < n; ++r) {
        const std::uint8_t* code = c.rows->codes().data() + r * bytes_of(n_bits);
        c.expected.push_back({distance_of(code, c), c.rows->ids()[r]});
    }
    std::sort(c.expected.begin(), c.expected.end(), nearer);
    return c;
}

// The query of a case over its rows, with bands or without.
inline SearchRequest request_for(const Case& c, const Segment& segment, Method method,
                                 std::size_t k, std::size_t threads, const Tuning& tuning) {
    return {.segments = {&segment, 1},
            .engine = {c.n_bits, c.order, available_kernels().front(), tuning},
            .costs = c.costs.data(),
            .n_queries = 1,
            .k = k,
            .options = {.method = method, .threads = threads}};
}

}  // namespace bitweigh::test
