// Tests keys and rests bit by bit, the sort against std::stable_sort, cuts against counting, packed
// rests against packed copies.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/building/lean_rows.h"
#include "engine/rows/bits.h"
#include "tests/check.h"

namespace bitweigh::test {

namespace {

constexpr std::uint8_t untouched = 0xee;

// A row as the tests sort it: key, then the order in which rows were given.
struct TestRow {
    std::uint64_t key;
    std::vector<std::uint8_t> code;
    std::uint64_t number;
};

std::vector<std::uint8_t> random_codes(Rng& rng, std::size_t n, std::size_t n_bytes,
                                       unsigned mask = 0xff) {
    std::vector<std::uint8_t> codes(n * n_bytes);
    for (std::uint8_t& byte : codes) byte = static_cast<std::uint8_t>(rng() >> 56 & mask);
    return codes;
}

std::vector<std::uint16_t> random_bits(Rng& rng, std::size_t n_bits, std::size_t n_selected) {
    std::vector<std::uint16_t> bits(n_bits);
    std::iota(bits.begin(), bits.end(), std::uint16_t{0});
    std::shuffle(bits.begin(), bits.end(), rng);
    bits.resize(n_selected);
    std::sort(bits.begin(), bits.end());
    return bits;
}

// Bit j of the value is bit bits[j] of the code, as NumPy counts them.
std::uint64_t value_of(const std::uint8_t* code, const std::vector<std::uint16_t>& bits,
                       BitOrder order) {
    std::uint64_t value = 0;
    for (std::size_t j = 0; j < bits.size(); ++j) {
        const std::size_t shift = order == BitOrder::big ? 7 - bits[j] % 8 : bits[j] % 8;
        value |= std::uint64_t{code[bits[j] / 8] >> shift & 1u} << j;
    }
    return value;
}

void check_readers(Rng& rng, BitOrder order, std::size_t n_bits, std::size_t n_key_bits) {
    const std::size_t n = 20, n_bytes = bytes_of(n_bits);
    const std::vector<std::uint8_t> codes = random_codes(rng, n, n_bytes);
    const std::vector<std::uint16_t> bits = random_bits(rng, n_bits, n_key_bits);
    const std::vector<std::uint16_t> rest_bits = other_bits(bits, n_bits);
    const BitReader key(bits, order, n_bytes), rest(rest_bits, order, n_bytes);
    bool right = true;
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint8_t* code = codes.data() + i * n_bytes;
        right &= key(code) == value_of(code, bits, order);
        right &= rest(code) == value_of(code, rest_bits, order);
    }
    CHECK(right, n_bits << " bits, " << n_key_bits << " of them in the key");
    std::vector<std::uint16_t> all = bits;
    all.insert(all.end(), rest_bits.begin(), rest_bits.end());
    std::sort(all.begin(), all.end());
    std::vector<std::uint16_t> expected(n_bits);
    std::iota(expected.begin(), expected.end(), std::uint16_t{0});
    CHECK(all == expected && std::is_sorted(rest_bits.begin(), rest_bits.end()),
          n_bits << " bits, " << n_key_bits << " of them in the key");
}

void check_sort(Rng& rng, std::size_t n, std::size_t n_bits, std::size_t n_key_bits,
                std::size_t number_bytes, unsigned mask) {
    const std::size_t n_bytes = bytes_of(n_bits);
    const std::vector<std::uint16_t> bits = random_bits(rng, n_bits, n_key_bits);
    const BitReader key(bits, BitOrder::big, n_bytes);
    // One byte past the end of each array must stay as it is.
    std::vector<std::uint8_t> codes = random_codes(rng, n, n_bytes, mask);
    std::vector<std::uint8_t> numbers = random_codes(rng, n, number_bytes);
    std::vector<TestRow> rows;
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint8_t* code = codes.data() + i * n_bytes;
        TestRow row{value_of(code, bits, BitOrder::big), {code, code + n_bytes}, 0};
        std::memcpy(&row.number, numbers.data() + i * number_bytes, number_bytes);
        rows.push_back(row);
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const TestRow& a, const TestRow& b) { return a.key < b.key; });
    codes.push_back(untouched);
    numbers.push_back(untouched);
    std::vector<std::uint8_t> spare_codes(codes.size(), untouched);
    std::vector<std::uint8_t> spare_numbers(numbers.size(), untouched);
    Checkpoint checkpoint = uninterrupted();
    const bool in_spare =
        sort_lean_rows({codes.data(), numbers.data()}, {spare_codes.data(), spare_numbers.data()},
                       n, number_bytes, key, checkpoint);
    const auto& sorted_codes = in_spare ? spare_codes : codes;
    const auto& sorted_numbers = in_spare ? spare_numbers : numbers;
    bool right = true;
    for (std::size_t i = 0; i < n; ++i) {
        right &= std::equal(rows[i].code.begin(), rows[i].code.end(),
                            sorted_codes.begin() + static_cast<std::ptrdiff_t>(i * n_bytes));
        right &= std::memcmp(&rows[i].number, sorted_numbers.data() + i * number_bytes,
                             number_bytes) == 0;
    }
    for (const auto* array : {&codes, &numbers, &spare_codes, &spare_numbers}) {
        right &= array->back() == untouched;
    }
    CHECK(right, n << " rows of " << n_bits << " bits, " << n_key_bits << " key bits, mask " << mask
                   << ", numbers of " << number_bytes << " bytes");

    // Cuts of the sorted rows.
    const std::uint64_t n_keys = std::uint64_t{1} << n_key_bits;
    for (int repeat = 0; repeat < 5; ++repeat) {
        const std::uint64_t bound = pick(rng, n_keys);
        const auto below = std::count_if(rows.begin(), rows.end(),
                                         [&](const TestRow& row) { return row.key < bound; });
        CHECK(count_below(sorted_codes.data(), n, key, bound) == static_cast<std::size_t>(below),
              n << " rows, keys below " << bound);
    }
    if (n_key_bits > 12) return;
    std::vector<std::uint32_t> starts(n_keys), expected(n_keys);
    for (std::size_t k = 0; k < n_keys; ++k) {
        expected[k] = static_cast<std::uint32_t>(
            7 + std::count_if(rows.begin(), rows.end(),
                              [&](const TestRow& row) { return row.key < k; }));
    }
    CHECK(key_starts(sorted_codes.data(), n, key, 0, starts, 7) && starts == expected,
          n << " rows, " << n_key_bits << " key bits");
    if (n > 0 && rows[0].key < rows[n - 1].key) {
        CHECK(!key_starts(sorted_codes.data(), n, key, rows[0].key + 1, starts, 7),
              "a key before the first");
        starts.resize(rows[n - 1].key);
        CHECK(!key_starts(sorted_codes.data(), n, key, 0, starts, 7), "a key after the last");
    }
}

void check_pack(Rng& rng, std::size_t n, std::size_t n_bits, std::size_t n_key_bits,
                std::size_t offset) {
    const std::size_t n_bytes = bytes_of(n_bits);
    const std::vector<std::uint16_t> rest_bits =
        other_bits(random_bits(rng, n_bits, n_key_bits), n_bits);
    const std::size_t n_rest_bytes = std::max<std::size_t>(1, bytes_of(rest_bits.size()));
    const std::vector<std::uint8_t> codes = random_codes(rng, n, n_bytes);
    // The same with zero rows before the first.
    std::vector<std::uint8_t> rests((offset + n) * n_rest_bytes);
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t value =
            value_of(codes.data() + i * n_bytes, rest_bits, BitOrder::little);
        for (std::size_t p = 0; p < n_rest_bytes; ++p) {
            rests[(offset + i) * n_rest_bytes + p] = static_cast<std::uint8_t>(value >> 8 * p);
        }
    }
    const std::size_t size = blocks_of(offset + n) * n_rest_bytes * block_rows;
    std::vector<std::uint8_t> expected(size + 1, untouched), blocks(size + 1, untouched);
    pack_blocks(rests.data(), offset + n, n_rest_bytes, expected.data());
    pack_rests(codes.data(), n, BitReader(rest_bits, BitOrder::little, n_bytes), n_rest_bytes,
               offset, blocks.data());
    CHECK(blocks == expected, n << " rows of " << n_bits << " bits, " << n_key_bits
                                << " key bits, from row " << offset << " on");
}

void check_marks(Rng& rng) {
    std::vector<std::uint32_t> ids(1000);
    std::iota(ids.begin(), ids.end(), 3u);
    std::shuffle(ids.begin(), ids.end(), rng);
    std::vector<std::uint8_t> marks(126);
    CHECK(mark_ids(ids.data(), ids.size(), marks.data()) == ids.size(), "distinct ids");
    CHECK(mark_ids(ids.data() + 5, 1, marks.data()) == 0, "an id of an earlier call");
    std::fill(marks.begin(), marks.end(), std::uint8_t{0});
    ids[700] = ids[20];
    CHECK(mark_ids(ids.data(), ids.size(), marks.data()) == 700, "a repeated id");
}

}  // namespace

void test_lean_rows() {
    Rng rng(9);
    for (const BitOrder order : {BitOrder::big, BitOrder::little}) {
        for (std::size_t n_bits = 1; n_bits <= 8 * max_lean_bytes; ++n_bits) {
            for (int repeat = 0; repeat < 3; ++repeat) {
                const std::size_t max_key_bits = std::min(n_bits, max_band_bits);
                check_readers(rng, order, n_bits, 1 + pick(rng, max_key_bits - 1));
            }
        }
    }
    for (const std::size_t n : {0, 1, 2, 31, 33, 500}) {
        for (const std::size_t n_bits : {1, 7, 8, 9, 31, 32, 33, 63, 64}) {
            for (const std::size_t n_key_bits : {1, 5, 12, 13, 24, 25, 28}) {
                if (n_key_bits > n_bits) continue;
                // The second mask makes many keys equal, the third all of them.
                for (const unsigned mask : {0xffu, 0x11u, 0u}) {
                    check_sort(rng, n, n_bits, n_key_bits, 4 + 4 * pick(rng, 1), mask);
                }
            }
        }
    }
    for (const std::size_t n : {1, 2, 31, 32, 33, 64, 100}) {
        for (const std::size_t n_bits : {1, 7, 8, 9, 32, 63, 64}) {
            for (const std::size_t offset : {0, 1, 31}) {
                const std::size_t max_key_bits = std::min(n_bits, max_band_bits);
                check_pack(rng, n, n_bits, 1 + pick(rng, max_key_bits - 1), offset);
                check_pack(rng, n, n_bits, max_key_bits, offset);
            }
        }
    }
    check_marks(rng);
}

}  // namespace bitweigh::test
