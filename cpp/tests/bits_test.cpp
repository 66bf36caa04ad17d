// Tests bits and layouts, faults of costs, and the line of segments.
#include <algorithm>
#include <limits>
#include <vector>

#include "engine/query/cost_table.h"
#include "engine/rows/bits.h"
#include "engine/rows/segment.h"
#include "tests/check.h"

namespace bitweigh::test {

namespace {

void test_masks() {
    CHECK(unused_mask(3, BitOrder::big) == 0x1f, "");
    CHECK(unused_mask(3, BitOrder::little) == 0xf8, "");
    for (const BitOrder order : {BitOrder::big, BitOrder::little}) {
        for (std::size_t n_bits = 1; n_bits <= 8192; ++n_bits) {
            unsigned used = 0;
            for (std::size_t i = (bytes_of(n_bits) - 1) * 8; i < n_bits; ++i) {
                used += order == BitOrder::big ? 1u << (7 - i % 8) : 1u << (i % 8);
            }
            CHECK(unused_mask(n_bits, order) == 255 - used, "n_bits " << n_bits);
        }
    }
}

void test_stray_rows() {
    const std::vector<std::uint8_t> codes = {0xff, 0x80, 0xff, 0xe0, 0xff, 0x10, 0xff, 0x01};
    const unsigned unused = unused_mask(11, BitOrder::big);
    CHECK(first_stray_row(codes.data(), 4, 2, unused) == 2, "");
    CHECK(first_stray_row(codes.data(), 2, 2, unused) == 2, "none: the number of rows");
    CHECK(first_stray_row(codes.data(), 4, 2, 0) == 4, "");
    CHECK(first_stray_row(codes.data(), 0, 2, unused) == 0, "");
}

void test_layout(Rng& rng, std::size_t n, std::size_t n_bytes) {
    std::vector<std::uint8_t> codes(n * n_bytes);
    for (std::uint8_t& byte : codes) byte = static_cast<std::uint8_t>(rng());
    // One byte more than is written, and not zero beforehand.
    const std::size_t size = blocks_of(n) * n_bytes * block_rows;
    std::vector<std::uint8_t> blocks(size + 1, 0xee);
    pack_blocks(codes.data(), n, n_bytes, blocks.data());
    CHECK(blocks[size] == 0xee, "n " << n << " n_bytes " << n_bytes);
    bool right = true;
    for (std::size_t r = 0; r < blocks_of(n) * block_rows; ++r) {
        for (std::size_t p = 0; p < n_bytes; ++p) {
            const unsigned expected = r < n ? codes[r * n_bytes + p] : 0;
            right &= blocks[(r / 32) * n_bytes * 32 + p * 32 + r % 32] == expected;
        }
    }
    CHECK(right, "n " << n << " n_bytes " << n_bytes);

    std::vector<Row> rows(n);
    for (std::size_t i = 0; i < n; ++i) rows[i] = static_cast<Row>(i);
    std::vector<std::uint8_t> back(codes.size());
    unpack_rows(blocks.data(), n_bytes, rows.data(), n, back.data());
    CHECK(back == codes, "n " << n << " n_bytes " << n_bytes);

    // Any rows in any order, some of them twice.
    for (Row& row : rows) row = static_cast<Row>(pick(rng, n - 1));
    unpack_rows(blocks.data(), n_bytes, rows.data(), n, back.data());
    for (std::size_t i = 0; i < n; ++i) {
        right &= std::equal(back.begin() + static_cast<std::ptrdiff_t>(i * n_bytes),
                            back.begin() + static_cast<std::ptrdiff_t>((i + 1) * n_bytes),
                            codes.begin() + static_cast<std::ptrdiff_t>(rows[i] * n_bytes));
    }
    CHECK(right, "n " << n << " n_bytes " << n_bytes);
}

// Few distinct codes, so that many rows of a block are alike, and some differ in one byte only.
void test_rows_like(Rng& rng, std::size_t n_bytes) {
    std::vector<std::uint8_t> block(n_bytes * block_rows);
    const auto same = [&](std::size_t a, std::size_t b) {
        for (std::size_t p = 0; p < n_bytes; ++p) {
            if (block[p * block_rows + a] != block[p * block_rows + b]) return false;
        }
        return true;
    };
    for (std::uint8_t& byte : block) byte = static_cast<std::uint8_t>(0x80 * pick(rng, 1));
    if (pick(rng, 1)) {
        const std::size_t odd = pick(rng, block.size() - 1);
        for (std::size_t i = 0; i < block.size(); ++i) {
            block[i] = static_cast<std::uint8_t>(i / block_rows + (i == odd));
        }
    }
    for (std::size_t r = 0; r < block_rows; ++r) {
        std::uint32_t expected = 0;
        for (std::size_t i = 0; i < block_rows; ++i) expected |= std::uint32_t{same(i, r)} << i;
        CHECK(rows_like(block.data(), n_bytes, r) == expected, "row " << r);
    }
}

void test_zero_bytes(Rng& rng) {
    std::uint8_t bytes[block_rows];
    std::uint32_t expected = 0;
    for (std::size_t i = 0; i < block_rows; ++i) {
        constexpr std::uint8_t values[] = {0, 0, 1, 0x7f, 0x80, 0xff};
        bytes[i] = values[pick(rng, 5)];
        expected |= std::uint32_t{bytes[i] == 0} << i;
    }
    CHECK(zero_bytes(bytes) == expected, expected);
}

// least_distance() is the distance of the cheapest code, and no code has a smaller one, however
// sums are rounded.
void test_least_distance(Rng& rng, double huge) {
    constexpr std::size_t n_bits = 11;
    std::vector<double> costs(2 * n_bits);
    for (double& cost : costs) {
        cost = (static_cast<double>(pick(rng, 2000)) - 1000.0) / (1.0 + pick(rng, 30));
        if (pick(rng, 5) == 0) cost *= huge;
    }
    const CostTable table(costs.data(), n_bits, BitOrder::little);
    double min_distance = std::numeric_limits<double>::infinity();
    for (unsigned code = 0; code < 1u << n_bits; ++code) {
        std::uint8_t block[2 * block_rows] = {};
        block[0] = static_cast<std::uint8_t>(code);
        block[block_rows] = static_cast<std::uint8_t>(code >> 8);
        min_distance = std::min(min_distance, table.distance(block, 0));
    }
    CHECK(table.least_distance() == min_distance, table.least_distance()
                                                      << ", expected " << min_distance);
}

void check_fault(const std::vector<double>& costs, CostFault::Kind kind, std::size_t bit,
                 std::size_t value) {
    const CostFault fault = find_cost_fault(costs.data(), costs.size() / 2);
    CHECK(fault.kind == kind && fault.bit == bit && fault.value == value,
          "kind " << static_cast<int>(fault.kind) << " at " << fault.bit << ", " << fault.value
                  << "; expected " << static_cast<int>(kind) << " at " << bit << ", " << value);
}

// The blocks that visits of [begin, end) of the line report, as addresses.
std::vector<const std::uint8_t*> visited(const SegmentLine& line, std::size_t begin,
                                         std::size_t end) {
    std::vector<const std::uint8_t*> blocks;
    line.visit(begin, end, [&](const Segment& segment, std::size_t from, std::size_t to) {
        CHECK(to <= segment.n_blocks(), "to " << to << " of " << segment.n_blocks());
        for (; from < to; ++from) blocks.push_back(segment.blocks + from * block_rows);
    });
    return blocks;
}

}  // namespace

void test_bits() {
    test_masks();
    test_stray_rows();
    Rng rng(1);
    for (const std::size_t n : {1, 2, 31, 32, 33, 63, 64, 65, 100, 1000}) {
        for (const std::size_t n_bytes : {1, 2, 3, 8, 17, 64}) test_layout(rng, n, n_bytes);
    }
    for (int repeat = 0; repeat < 50; ++repeat) {
        test_zero_bytes(rng);
        for (const std::size_t n_bytes : {1, 2, 8, 33}) test_rows_like(rng, n_bytes);
    }
}

void test_costs() {
    using Kind = CostFault::Kind;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    const double largest = 0x1p1020;
    check_fault({1.0, -2.0, 0.0, -0.0, 5e-324, 1e300}, Kind::none, 0, 0);
    check_fault({1.0, 2.0, nan, 0.0}, Kind::not_finite, 1, 0);
    check_fault({1.0, 2.0, 0.0, -infinity}, Kind::not_finite, 1, 1);
    check_fault({1.0, infinity, nan, -infinity}, Kind::not_finite, 0, 1);
    check_fault({infinity, -infinity}, Kind::not_finite, 0, 0);
    // A cost that is not finite is reported first, however large the others are.
    check_fault({largest, largest, 0.0, nan}, Kind::not_finite, 1, 1);
    check_fault({largest, 0.0}, Kind::none, 0, 0);
    check_fault({-largest / 2, largest / 4, -largest / 4, 0.0}, Kind::none, 0, 0);
    check_fault({largest, 0x1p968, 0.0, 0.0}, Kind::too_large, 0, 0);
    check_fault({-largest, largest}, Kind::too_large, 0, 0);
    // The sum of absolute values overflows; the sum of the costs does not.
    const double max_double = std::numeric_limits<double>::max();
    check_fault({max_double, -max_double}, Kind::too_large, 0, 0);
    Rng rng(5);
    for (int repeat = 0; repeat < 20; ++repeat) {
        for (const double huge : {1.0, 1e15, 1e17}) test_least_distance(rng, huge);
    }
    const double negative[] = {-largest, -largest / 2};
    const CostTable table(negative, 1, BitOrder::big);
    CHECK(table.flips_within(max_double) >= largest && table.flips_within(max_double) < infinity,
          "");
}

void test_segments() {
    const std::vector<std::vector<std::size_t>> rows_of = {
        {}, {1}, {32}, {33}, {64, 1, 100}, {5, 320, 31, 32, 33}, {0, 40, 0, 0, 7, 0}};
    for (const auto& rows : rows_of) {
        std::vector<std::vector<std::uint8_t>> blocks;  // with one plane each
        std::vector<Segment> segments;
        std::vector<const std::uint8_t*> all;
        std::size_t n = 0;
        for (const std::size_t r : rows) {
            blocks.emplace_back(blocks_of(r) * block_rows);
            segments.push_back({{blocks.back().data(), IdColumn(), r, nullptr}, {}});
            for (std::size_t b = 0; b < segments.back().n_blocks(); ++b) {
                all.push_back(blocks.back().data() + b * block_rows);
                const std::size_t here = std::min<std::size_t>(32, r - b * block_rows);
                const auto mask = static_cast<std::uint32_t>((std::uint64_t{1} << here) - 1);
                CHECK(segments.back().rows_in(b) == mask, "block " << b << " of " << r << " rows");
            }
            n += r;
        }
        const SegmentLine line(segments);
        CHECK(line.n_blocks() == all.size() && line.rows() == n, rows.size() << " segments");
        // Wherever the line is cut, the parts visit the same blocks as the whole, in the same
        // order.
        for (std::size_t begin = 0; begin <= all.size(); ++begin) {
            for (std::size_t end = begin; end <= all.size(); ++end) {
                const std::vector<const std::uint8_t*> expected(
                    all.begin() + static_cast<std::ptrdiff_t>(begin),
                    all.begin() + static_cast<std::ptrdiff_t>(end));
                CHECK(visited(line, begin, end) == expected,
                      rows.size() << " segments, blocks " << begin << " to " << end);
            }
        }
    }
}

}  // namespace bitweigh::test
