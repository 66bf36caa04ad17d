#include "engine/building/lean_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace bitweigh {

namespace {

// Bits of the key that one pass of the sort looks at: as many places to write to stay cached.
constexpr std::size_t max_digit_bits = 12;
// The bytes that moving a row counts as towards the next interrupt check.
constexpr std::size_t row_cost = 64;

// Moves rows to places[digit]++. Sizes that are known at compile time, unlike 0, are moved in one
// instruction.
template <std::size_t fixed_code_bytes, std::size_t number_bytes>
void scatter(RowArrays from, RowArrays to, std::size_t n, const BitReader& key, std::size_t shift,
             std::size_t mask, std::uint32_t* places, Checkpoint& checkpoint) {
    const std::size_t n_bytes = fixed_code_bytes ? fixed_code_bytes : key.n_bytes();
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint8_t* code = from.codes + i * n_bytes;
        const std::size_t place = places[key(code) >> shift & mask]++;
        std::memcpy(to.codes + place * n_bytes, code, n_bytes);
        std::memcpy(to.numbers + place * number_bytes, from.numbers + i * number_bytes,
                    number_bytes);
        checkpoint.done(row_cost);
    }
}

using Scatter = decltype(&scatter<0, 4>);

Scatter scatter_for(std::size_t n_bytes, std::size_t number_bytes) {
    const bool wide = number_bytes == 8;
    if (n_bytes == 8) return wide ? scatter<8, 8> : scatter<8, 4>;
    if (n_bytes == 4) return wide ? scatter<4, 8> : scatter<4, 4>;
    return wide ? scatter<0, 8> : scatter<0, 4>;
}

}  // namespace

BitReader::BitReader(std::span<const std::uint16_t> bits, BitOrder order, std::size_t n_bytes)
    : n_bits_(bits.size()), n_bytes_(n_bytes) {
    for (std::size_t byte = 0; byte < n_bytes; ++byte) {
        std::array<std::uint64_t, 256> table{};
        bool is_used = false;
        for (std::size_t j = 0; j < bits.size(); ++j) {
            if (bits[j] / 8u != byte) continue;
            is_used = true;
            const unsigned mask = bit_mask(bits[j], order);
            for (unsigned v = 0; v < 256; ++v) {
                if (v & mask) table[v] |= std::uint64_t{1} << j;
            }
        }
        if (!is_used) continue;
        used_[n_used_++] = byte;
        tables_.push_back(table);
    }
}

std::vector<std::uint16_t> other_bits(std::span<const std::uint16_t> bits, std::size_t n_bits) {
    std::vector<std::uint16_t> others;
    for (std::size_t i = 0; i < n_bits; ++i) {
        const auto bit = static_cast<std::uint16_t>(i);
        if (std::find(bits.begin(), bits.end(), bit) == bits.end()) others.push_back(bit);
    }
    return others;
}

bool sort_lean_rows(RowArrays rows, RowArrays spare, std::size_t n, std::size_t number_bytes,
                    const BitReader& key, Checkpoint& checkpoint) {
    // The last digits first; each pass keeps the order of rows with equal digits.
    const Scatter move = scatter_for(key.n_bytes(), number_bytes);
    const std::size_t n_passes = (key.n_bits() + max_digit_bits - 1) / max_digit_bits;
    const std::size_t digit_bits = (key.n_bits() + n_passes - 1) / n_passes;
    const std::size_t n_digits = std::size_t{1} << digit_bits;
    const std::size_t mask = n_digits - 1;
    std::vector<std::uint32_t> counts(n_passes * n_digits);
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t value = key(rows.codes + i * key.n_bytes());
        for (std::size_t pass = 0; pass < n_passes; ++pass) {
            ++counts[pass * n_digits + (value >> pass * digit_bits & mask)];
        }
        checkpoint.done(row_cost / 4);
    }
    bool in_spare = false;
    for (std::size_t pass = 0; pass < n_passes; ++pass) {
        std::uint32_t* places = counts.data() + pass * n_digits;
        // If all rows have the same digit, they stay where they are.
        if (std::find(places, places + n_digits, n) != places + n_digits) continue;
        std::uint32_t next = 0;
        for (std::size_t digit = 0; digit < n_digits; ++digit) {
            next += std::exchange(places[digit], next);
        }
        move(in_spare ? spare : rows, in_spare ? rows : spare, n, key, pass * digit_bits, mask,
             places, checkpoint);
        in_spare = !in_spare;
    }
    return in_spare;
}

bool key_starts(const std::uint8_t* codes, std::size_t n, const BitReader& key, std::uint64_t first,
                std::span<std::uint32_t> starts, std::uint64_t first_position) {
    std::size_t done = 0;
    for (std::size_t k = 0; k < starts.size(); ++k) {
        starts[k] = static_cast<std::uint32_t>(first_position + done);
        while (done < n && key(codes + done * key.n_bytes()) == first + k) ++done;
    }
    return done == n;
}

std::size_t count_below(const std::uint8_t* codes, std::size_t n, const BitReader& key,
                        std::uint64_t bound) {
    std::size_t below = 0, end = n;
    while (below < end) {
        const std::size_t middle = below + (end - below) / 2;
        if (key(codes + middle * key.n_bytes()) < bound) {
            below = middle + 1;
        } else {
            end = middle;
        }
    }
    return below;
}

void pack_rests(const std::uint8_t* codes, std::size_t n, const BitReader& rest,
                std::size_t n_rest_bytes, std::size_t offset, std::uint8_t* blocks) {
    const std::size_t block_bytes = n_rest_bytes * block_rows;
    const std::size_t n_blocks = blocks_of(offset + n);
    if (n_blocks == 0) return;
    // The first and the last block may have rows that are not written below.
    std::memset(blocks, 0, block_bytes);
    std::memset(blocks + (n_blocks - 1) * block_bytes, 0, block_bytes);
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t value = rest(codes + i * rest.n_bytes());
        const std::size_t row = offset + i;
        std::uint8_t* to = blocks + row / block_rows * block_bytes + row % block_rows;
        for (std::size_t p = 0; p < n_rest_bytes; ++p) {
            to[p * block_rows] = static_cast<std::uint8_t>(value >> 8 * p);
        }
    }
}

std::size_t mark_ids(const std::uint32_t* ids, std::size_t n, std::uint8_t* marks) {
    for (std::size_t i = 0; i < n; ++i) {
        const auto mark = static_cast<std::uint8_t>(1u << ids[i] % 8);
        if (marks[ids[i] / 8] & mark) return i;
        marks[ids[i] / 8] |= mark;
    }
    return n;
}

}  // namespace bitweigh
