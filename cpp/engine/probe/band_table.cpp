#include "engine/probe/band_table.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace bitweigh {

void keys_of(const std::uint8_t* codes, std::size_t n, std::size_t n_bytes,
             std::span<const std::uint16_t> bits, BitOrder order, std::uint32_t* keys) {
    // One byte of the code at a time: a table has the key bits of each byte value.
    std::vector<std::uint32_t> bytes;  // those that have bits of the key
    for (std::uint16_t bit : bits) {
        if (std::find(bytes.begin(), bytes.end(), bit / 8u) == bytes.end())
            bytes.push_back(bit / 8u);
    }
    std::vector<std::uint32_t> tables(bytes.size() * 256);
    for (std::size_t b = 0; b < bytes.size(); ++b) {
        for (std::size_t j = 0; j < bits.size(); ++j) {
            if (bits[j] / 8u != bytes[b]) continue;
            const unsigned mask = bit_mask(bits[j], order);
            for (unsigned v = 0; v < 256; ++v) {
                if (v & mask) tables[b * 256 + v] |= std::uint32_t{1} << j;
            }
        }
    }
    for (std::size_t i = 0; i < n; ++i) {
        std::uint32_t key = 0;
        for (std::size_t b = 0; b < bytes.size(); ++b) {
            key |= tables[b * 256 + codes[i * n_bytes + bytes[b]]];
        }
        keys[i] = key;
    }
}

void sort_by_key(const std::uint32_t* keys, std::size_t n, std::size_t n_bits,
                 std::uint32_t* starts, Row* rows, Checkpoint& checkpoint) {
    // The bytes that moving a row counts as towards the next interrupt check: its destination is
    // seldom cached.
    constexpr std::size_t row_bytes = 64;
    const std::size_t size = std::size_t{1} << n_bits;
    std::fill(starts, starts + size + 1, 0u);
    for (std::size_t i = 0; i < n; ++i) ++starts[keys[i] + 1];
    for (std::size_t v = 0; v < size; ++v) starts[v + 1] += starts[v];
    // starts[v] moves to the end of bucket v, which is the start of the next.
    for (std::size_t i = 0; i < n; ++i) {
        rows[starts[keys[i]]++] = static_cast<Row>(i);
        checkpoint.done(row_bytes);
    }
    std::memmove(starts + 1, starts, size * sizeof *starts);
    starts[0] = 0;
}

void pack_rows(const std::uint8_t* codes, std::size_t n_bytes, const Row* rows, std::size_t n,
               std::uint8_t* blocks) {
    constexpr std::size_t ahead = 16;
    const std::size_t block_bytes = n_bytes * block_rows;
    for (std::size_t i = 0; i < n; ++i) {
        if (i + ahead < n) __builtin_prefetch(codes + rows[i + ahead] * n_bytes);
        const std::uint8_t* code = codes + rows[i] * n_bytes;
        std::uint8_t* to = blocks + i / block_rows * block_bytes + i % block_rows;
        for (std::size_t p = 0; p < n_bytes; ++p) to[p * block_rows] = code[p];
    }
    if (n % block_rows != 0) {
        for (std::size_t i = n; i % block_rows != 0; ++i) {
            std::uint8_t* to = blocks + i / block_rows * block_bytes + i % block_rows;
            for (std::size_t p = 0; p < n_bytes; ++p) to[p * block_rows] = 0;
        }
    }
}

}  // namespace bitweigh
