// Tests ranking by true distance: halves, sums and order against straightforward definitions.
#include "engine/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/check.h"

namespace bitweigh::test {

namespace {

const InterruptCheck never = [] { return false; };

template <class Stored>
double distance(const Stored* row, const std::vector<double>& query, VectorMetric metric) {
    VectorTable<Stored> table(query.size());
    table.push_back(row, 1);
    const std::int64_t first = 0;
    double found = 0.0;
    write_distances(table, {query.data(), 1}, &first, 1, metric, &found, {1, false}, never);
    return found;
}

// The value of a half by its definition.
double value_of(unsigned bits) {
    const double sign = bits & 0x8000 ? -1.0 : 1.0;
    const unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 31) return fraction ? std::nan("") : sign * HUGE_VAL;
    if (exponent == 0) return sign * std::ldexp(fraction, -24);
    return sign * std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
}

void test_halves() {
    for (unsigned bits = 0; bits < 1 << 16; ++bits) {
        const Half half{static_cast<std::uint16_t>(bits)};
        // With a query for which the sign and the smallest half matter.
        const double query = 0x1p-20, expected = std::abs(value_of(bits) - query);
        const double found = distance(&half, {query}, VectorMetric::euclidean);
        const bool same = std::isnan(expected) ? std::isnan(found) : found == expected;
        CHECK(same, "half " << bits << ": " << found << ", not " << expected);
    }
}

void test_bytes() {
    for (int value = -128; value < 128; ++value) {
        const auto stored = static_cast<std::int8_t>(value);
        const double found = distance(&stored, {0.5}, VectorMetric::inner_product);
        CHECK(found == -0.5 * value, "byte " << value << ": " << found);
    }
}

// NumPy's sum of a row: up to 128 terms in eight sums, longer rows in two parts.
double sum_of(const std::vector<double>& terms) {
    if (terms.size() > 128) {
        const auto half = static_cast<std::ptrdiff_t>(terms.size() / 16 * 8);
        return sum_of({terms.begin(), terms.begin() + half}) +
               sum_of({terms.begin() + half, terms.end()});
    }
    const std::size_t whole = terms.size() / 8 * 8;
    double total = 0.0;
    if (whole) {
        std::vector<double> lanes(8, -0.0);
        for (std::size_t i = 0; i < whole; ++i) lanes[i % 8] += terms[i];
        for (std::size_t width = 8; width > 1; width /= 2) {
            for (std::size_t i = 0; i < width / 2; ++i) lanes[i] = lanes[2 * i] + lanes[2 * i + 1];
        }
        total = lanes[0];
    }
    for (std::size_t i = whole; i < terms.size(); ++i) total += terms[i];
    return total;
}

void test_sums() {
    Rng rng(7);
    std::normal_distribution<double> normal;
    for (std::size_t width = 1; width < 600; width += width < 300 ? 1 : 37) {
        std::vector<float> row(width);
        std::vector<double> query(width), gaps, products, squares;
        for (std::size_t i = 0; i < width; ++i) {
            row[i] = static_cast<float>(normal(rng));
            query[i] = normal(rng);
            const double v = row[i];
            gaps.push_back((v - query[i]) * (v - query[i]));
            products.push_back(v * query[i]);
            squares.push_back(v * v);
        }
        const double euclidean = distance(row.data(), query, VectorMetric::euclidean);
        CHECK(euclidean == std::sqrt(sum_of(gaps)), "width " << width << ": " << euclidean);
        const double cosine = distance(row.data(), query, VectorMetric::cosine);
        const double expected = 1.0 - sum_of(products) / std::sqrt(sum_of(squares));
        CHECK(cosine == std::clamp(expected, 0.0, 2.0), "width " << width << ": " << cosine);
        const double negated = distance(row.data(), query, VectorMetric::inner_product);
        CHECK(negated == -sum_of(products), "width " << width << ": " << negated);
    }
}

void test_order() {
    Rng rng(8);
    for (std::size_t round = 0; round < 200; ++round) {
        const std::size_t n = 1 + pick(rng, 20), m = 1 + pick(rng, 20), k = 1 + pick(rng, 25);
        std::vector<float> values(n);
        for (float& value : values) value = static_cast<float>(pick(rng, 4));
        VectorTable<float> table(1);
        const std::size_t cut = pick(rng, n);
        table.push_back(values.data(), cut);
        table.push_back(values.data() + cut, n - cut);
        const std::vector<double> queries{1.0, 3.0, 0.5};
        std::vector<std::int64_t> rows(3 * m);
        std::vector<Id> ids(3 * m);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            rows[i] = pick(rng, 5) ? static_cast<std::int64_t>(pick(rng, n - 1)) : -1;
            ids[i] = rows[i] < 0 ? padding_id : static_cast<Id>(rng() >> 2);
        }
        std::vector<double> distances(3 * k);
        std::vector<Id> nearest(3 * k);
        rank_candidates(table, {queries.data(), 3}, {rows.data(), ids.data(), m},
                        VectorMetric::euclidean, k, distances.data(), nearest.data(),
                        {1 + pick(rng, 3), false}, never);
        for (std::size_t q = 0; q < 3; ++q) {
            std::vector<Neighbour> expected;
            for (std::size_t i = q * m; i < (q + 1) * m; ++i) {
                if (rows[i] < 0) continue;
                const double gap = values[static_cast<std::size_t>(rows[i])] - queries[q];
                expected.push_back({std::abs(gap), ids[i]});
            }
            std::sort(expected.begin(), expected.end(), nearer);
            expected.resize(k, {padding_distance, padding_id});
            for (std::size_t i = 0; i < k; ++i) {
                CHECK(distances[q * k + i] == expected[i].distance &&
                          nearest[q * k + i] == expected[i].id,
                      "round " << round << ", query " << q << ", place " << i);
            }
        }
    }
}

void test_rows_that_are_not_there() {
    const float value = 1.0f;
    for (const std::int64_t row : {std::int64_t{1}, std::int64_t{-2}}) {
        VectorTable<float> table(1);
        table.push_back(&value, 1);
        const double query = 0.0;
        double found;
        bool thrown = false;
        try {
            write_distances(table, {&query, 1}, &row, 1, VectorMetric::euclidean, &found,
                            {1, false}, never);
        } catch (const std::out_of_range&) {
            thrown = true;
        }
        CHECK(thrown, "row " << row);
    }
}

}  // namespace

void test_ranking() {
    test_halves();
    test_bytes();
    test_sums();
    test_order();
    test_rows_that_are_not_there();
}

}  // namespace bitweigh::test
