// Tests keys bit by bit, the sort against std::stable_sort, packed rows against packed copies.
#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/probe/band_table.h"
#include "engine/rows/bits.h"
#include "tests/check.h"

namespace bitweigh::test {

namespace {

constexpr std::uint32_t untouched = 0xdeadbeef;

std::vector<std::uint8_t> random_codes(Rng& rng, std::size_t n, std::size_t n_bytes) {
    std::vector<std::uint8_t> codes(n * n_bytes);
    for (std::uint8_t& byte : codes) byte = static_cast<std::uint8_t>(rng() >> 56);
    return codes;
}

// Bit i of the code as NumPy counts them.
bool bit_of(const std::uint8_t* code, std::size_t i, BitOrder order) {
    const std::size_t shift = order == BitOrder::big ? 7 - i % 8 : i % 8;
    return code[i / 8] >> shift & 1;
}

void check_keys(Rng& rng, BitOrder order, std::size_t n, std::size_t n_bytes, std::size_t n_bits) {
    const std::vector<std::uint8_t> codes = random_codes(rng, n, n_bytes);
    std::vector<std::uint16_t> bits(8 * n_bytes);
    std::iota(bits.begin(), bits.end(), std::uint16_t{0});
    std::shuffle(bits.begin(), bits.end(), rng);
    bits.resize(n_bits);
    std::vector<std::uint32_t> keys(n + 1, untouched);
    keys_of(codes.data(), n, n_bytes, bits, order, keys.data());
    bool right = keys[n] == untouched;
    for (std::size_t i = 0; i < n; ++i) {
        std::uint32_t key = 0;
        for (std::size_t j = 0; j < n_bits; ++j) {
            if (bit_of(codes.data() + i * n_bytes, bits[j], order)) key += std::uint32_t{1} << j;
        }
        right &= keys[i] == key;
    }
    CHECK(right, (order == BitOrder::big ? "big, " : "little, ")
                     << n << " codes of " << n_bytes << " bytes, " << n_bits << " key bits");
}

void check_sort(const char* kind, const std::vector<std::uint32_t>& keys, std::size_t n_bits) {
    const std::size_t n = keys.size();
    const std::size_t size = std::size_t{1} << n_bits;
    std::vector<std::uint32_t> starts(size + 2, untouched);
    std::vector<Row> rows(n + 1, untouched);
    Checkpoint checkpoint = uninterrupted();
    sort_by_key(keys.data(), n, n_bits, starts.data(), rows.data(), checkpoint);
    CHECK(starts.back() == untouched && rows.back() == untouched,
          kind << ", " << n << " rows, " << n_bits << " bits");
    rows.pop_back();
    starts.pop_back();

    std::vector<Row> expected(n);
    std::iota(expected.begin(), expected.end(), Row{0});
    std::stable_sort(expected.begin(), expected.end(),
                     [&](Row a, Row b) { return keys[a] < keys[b]; });
    CHECK(rows == expected, kind << ", " << n << " rows, " << n_bits << " bits");

    // starts[v] is the number of smaller keys.
    std::vector<std::uint32_t> counts(size + 1);
    for (const std::uint32_t key : keys) ++counts[key + 1];
    std::partial_sum(counts.begin(), counts.end(), counts.begin());
    CHECK(starts == counts, kind << ", " << n << " rows, " << n_bits << " bits");
}

void check_sorts(Rng& rng, std::size_t n, std::size_t n_bits) {
    const auto last = static_cast<std::uint32_t>((std::size_t{1} << n_bits) - 1);
    std::vector<std::uint32_t> keys(n);
    for (std::uint32_t& key : keys) key = static_cast<std::uint32_t>(pick(rng, last));
    check_sort("random keys", keys, n_bits);
    std::sort(keys.begin(), keys.end());
    check_sort("rising keys", keys, n_bits);
    std::reverse(keys.begin(), keys.end());
    check_sort("falling keys", keys, n_bits);
    for (std::uint32_t& key : keys) key = pick(rng, 1) ? last : 0;
    check_sort("the two ends", keys, n_bits);
    for (const std::uint32_t same : {std::uint32_t{0}, last / 2, last}) {
        check_sort("equal keys", std::vector<std::uint32_t>(n, same), n_bits);
    }
}

// Packs n rows of the codes, in any order, some of them repeatedly.
void check_pack(Rng& rng, std::size_t n, std::size_t n_bytes) {
    const std::size_t n_codes = n + 5;
    const std::vector<std::uint8_t> codes = random_codes(rng, n_codes, n_bytes);
    std::vector<Row> rows(n_codes);
    std::iota(rows.begin(), rows.end(), Row{0});
    std::shuffle(rows.begin(), rows.end(), rng);
    rows.resize(n);
    if (n > 3) rows[n / 2] = rows[0];
    std::vector<std::uint8_t> copies;
    for (const Row row : rows) {
        copies.insert(copies.end(), codes.data() + row * n_bytes,
                      codes.data() + (row + 1) * n_bytes);
    }
    const std::size_t size = blocks_of(n) * n_bytes * block_rows;
    std::vector<std::uint8_t> expected(size + 1, 0xee);
    pack_blocks(copies.data(), n, n_bytes, expected.data());
    // Not zero beforehand: padding must be written.
    std::vector<std::uint8_t> blocks(size + 1, 0xee);
    pack_rows(codes.data(), n_bytes, rows.data(), n, blocks.data());
    CHECK(blocks == expected, n << " rows of " << n_bytes << " bytes");
    bool zero = true;
    for (std::size_t r = n; r < blocks_of(n) * block_rows; ++r) {
        for (std::size_t p = 0; p < n_bytes; ++p) {
            zero &= blocks[(r / block_rows * n_bytes + p) * block_rows + r % block_rows] == 0;
        }
    }
    CHECK(zero, n << " rows of " << n_bytes << " bytes");
}

}  // namespace

void test_band_tables() {
    Rng rng(5);
    for (const BitOrder order : {BitOrder::big, BitOrder::little}) {
        for (const std::size_t n_bytes : {1, 2, 3, 8, 17, 64}) {
            for (std::size_t n_bits = 1; n_bits <= std::min(8 * n_bytes, max_band_bits); ++n_bits) {
                for (const std::size_t n : {0, 1, 33}) {
                    check_keys(rng, order, n, n_bytes, n_bits);
                }
            }
        }
    }
    for (const std::size_t n : {0, 1, 2, 31, 33, 500}) {
        for (const std::size_t n_bits : {1, 2, 5, 8, 11, 16}) check_sorts(rng, n, n_bits);
    }
    constexpr std::uint32_t last = (std::uint32_t{1} << max_band_bits) - 1;
    check_sort("the most key bits", {last, 0, last - 1, last}, max_band_bits);
    for (const std::size_t n : {0, 1, 2, 15, 16, 17, 31, 32, 33, 64, 100}) {
        for (const std::size_t n_bytes : {1, 2, 3, 8, 17}) check_pack(rng, n, n_bytes);
    }
}

}  // namespace bitweigh::test
