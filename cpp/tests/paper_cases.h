// Queries over a few rows for paper_test.cpp, with their answers by brute force.
//
// Costs are multiples of 2^-8 up to 2^27, so every sum is exact in whatever order it is added, and
// can be compared for equality.
#pragma once

#include <algorithm>
#include <atomic>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "engine/parallel.h"
#include "engine/rows/bits.h"
#include "paper/substring_table.h"
#include "tests/check.h"

namespace bitweigh::test {

using paper::Key;
using paper::Substring;
using paper::SubstringTable;

inline constexpr double infinity = std::numeric_limits<double>::infinity();

// These tests are never interrupted.
inline std::atomic<bool> never = false;
inline Checkpoint unchecked(never, nullptr);

// The two costs of one bit.
using Pair = std::pair<double, double>;

// A random multiple of 2^-8 from -max to max.
inline double number(Rng& rng, std::size_t max) {
    return static_cast<double>(pick(rng, 512 * max)) / 256.0 - static_cast<double>(max);
}
inline Pair wide(Rng& rng) {
    return {number(rng, 1 << 27), number(rng, 1 << 27)};
}
inline Pair few_values(Rng& rng) {
    return {static_cast<double>(pick(rng, 4)) - 2.0, static_cast<double>(pick(rng, 4)) - 2.0};
}
inline Pair hamming(Rng& rng) {
    return pick(rng, 1) ? Pair{0.0, 1.0} : Pair{1.0, 0.0};
}
inline Pair zeros(Rng& rng) {
    return {pick(rng, 1) ? 0.0 : -0.0, pick(rng, 1) ? 0.0 : -0.0};
}
inline Pair same_either_way(Rng& rng) {
    const double cost = number(rng, 100);
    return {cost, cost};
}
// Costs like those of Asym: squared gaps to a low and a high mean.
inline Pair squares(Rng& rng) {
    const double query = static_cast<double>(pick(rng, 96)) - 48.0;
    return {(query + 13.0) * (query + 13.0) / 256.0, (query - 13.0) * (query - 13.0) / 256.0};
}
inline Pair mixed(Rng& rng) {
    constexpr Pair (*ways[])(Rng&) = {wide, few_values, zeros, same_either_way, squares};
    return ways[pick(rng, std::size(ways) - 1)](rng);
}

struct CostKind {
    const char* name;
    Pair (*pair)(Rng&);
};
inline constexpr CostKind kinds[] = {
    {"wide", wide},   {"few values", few_values},           {"hamming", hamming},
    {"zeros", zeros}, {"same either way", same_either_way}, {"squares", squares},
    {"mixed", mixed},
};

// Draws costs of shape (n_bits, 2).
inline std::vector<double> make_costs(Rng& rng, const CostKind& kind, std::size_t n_bits) {
    std::vector<double> costs;
    for (std::size_t i = 0; i < n_bits; ++i) {
        const auto [cost0, cost1] = kind.pair(rng);
        costs.insert(costs.end(), {cost0, cost1});
    }
    return costs;
}

inline double cost_of_key(const std::vector<double>& costs, const Substring& substring, Key key) {
    double cost = 0.0;
    for (std::size_t j = 0; j < substring.bits; ++j) {
        cost += costs[2 * (substring.first + j) + (key >> j & 1)];
    }
    return cost;
}

struct Case {
    const CostKind& kind;
    std::size_t n_bits;
    std::size_t m;
    std::size_t n;
    BitOrder bit_order;
    std::vector<std::uint8_t> rows;
    std::vector<double> costs;

    paper::Codes codes() const { return {rows.data(), n, n_bits, bit_order}; }
    bool bit(std::size_t row, std::size_t i) const {
        return (codes().row(row)[i / 8] & bit_mask(i, bit_order)) != 0;
    }
    std::string text() const {
        std::ostringstream out;
        out << kind.name << ", " << n_bits << " bits, " << m << " tables, n " << n;
        return out.str();
    }
};

// Draws a case. Codes may be distinct or repeated, and bits balanced or mostly 0.
inline Case make_case(Rng& rng, const CostKind& kind) {
    const std::size_t n_bits = 1 + pick(rng, 23);
    const std::size_t min_m = (n_bits + 10) / 11;  // substrings of at most 11 bits
    const std::size_t m = min_m + pick(rng, std::min(n_bits, std::size_t{6}) - min_m);
    const std::size_t n = 1 + pick(rng, 39);
    const BitOrder order = pick(rng, 1) ? BitOrder::big : BitOrder::little;
    std::vector<std::uint8_t> no_bits(n * bytes_of(n_bits), 0);
    Case c{kind, n_bits, m, n, order, std::move(no_bits), make_costs(rng, kind, n_bits)};
    const std::size_t distinct = pick(rng, 2) ? n : 3;
    const std::size_t one_in = pick(rng, 1) ? 2 : 8;
    for (std::size_t row = 0; row < n; ++row) {
        for (std::size_t i = 0; i < n_bits; ++i) {
            std::uint8_t& byte = c.rows[row * bytes_of(n_bits) + i / 8];
            const bool bit = row < distinct ? pick(rng, one_in - 1) == 0 : c.bit(row % distinct, i);
            if (bit) byte = static_cast<std::uint8_t>(byte | bit_mask(i, order));
        }
    }
    return c;
}

// The answers of a case by brute force over all keys and all rows.
struct Truth {
    std::vector<std::vector<double>> bucket_costs;  // Costs of each table's buckets, ascending.
    std::vector<std::vector<Key>> keys;             // Keys of each table by row.
    std::vector<double> distances;                  // Distances by row.
    std::vector<double> nearest;                    // Distances in ascending order.

    Truth(const Case& c, const std::vector<SubstringTable>& tables) : distances(c.n, 0.0) {
        for (const SubstringTable& table : tables) {
            const Substring& substring = table.substring();
            std::vector<double>& costs = bucket_costs.emplace_back();
            for (Key key = 0; key < Key{1} << substring.bits; ++key) {
                costs.push_back(cost_of_key(c.costs, substring, key));
            }
            std::sort(costs.begin(), costs.end());
            std::vector<Key>& table_keys = keys.emplace_back(c.n, 0);
            for (std::size_t row = 0; row < c.n; ++row) {
                for (std::size_t j = 0; j < substring.bits; ++j) {
                    table_keys[row] |= static_cast<Key>(c.bit(row, substring.first + j)) << j;
                }
                distances[row] += cost_of_key(c.costs, substring, table_keys[row]);
            }
        }
        nearest = distances;
        std::sort(nearest.begin(), nearest.end());
    }

    // The cost at the top of a table's queue after `popped` buckets were popped.
    double top(std::size_t table, std::size_t popped) const {
        const std::vector<double>& costs = bucket_costs[table];
        return popped < costs.size() ? costs[popped] : infinity;
    }
    // Whether two buckets of a table cost the same.
    bool has_ties() const {
        return std::any_of(bucket_costs.begin(), bucket_costs.end(), [](const auto& costs) {
            return std::adjacent_find(costs.begin(), costs.end()) != costs.end();
        });
    }
};

}  // namespace bitweigh::test
