#include "engine/rows/bits.h"

#include <algorithm>
#include <cstring>

namespace bitweigh {

unsigned unused_mask(std::size_t n_bits, BitOrder order) {
    unsigned used = 0;
    for (std::size_t i = n_bits - (n_bits - 1) % 8 - 1; i < n_bits; ++i) used |= bit_mask(i, order);
    return 0xffu & ~used;
}

std::size_t first_stray_row(const std::uint8_t* codes, std::size_t n, std::size_t n_bytes,
                            unsigned unused) {
    if (unused == 0) return n;
    for (std::size_t row = 0; row < n; ++row) {
        if (codes[row * n_bytes + n_bytes - 1] & unused) return row;
    }
    return n;
}

void pack_blocks(const std::uint8_t* codes, std::size_t n, std::size_t n_bytes,
                 std::uint8_t* blocks) {
    for (std::size_t first = 0; first < n; first += block_rows) {
        const std::size_t rows = std::min(block_rows, n - first);
        const std::uint8_t* source = codes + first * n_bytes;
        std::uint8_t* block = blocks + first * n_bytes;
        if (rows < block_rows) std::memset(block, 0, n_bytes * block_rows);
        for (std::size_t plane = 0; plane < n_bytes; ++plane) {
            for (std::size_t row = 0; row < rows; ++row) {
                block[plane * block_rows + row] = source[row * n_bytes + plane];
            }
        }
    }
}

void unpack_rows(const std::uint8_t* blocks, std::size_t n_bytes, const Row* rows, std::size_t n,
                 std::uint8_t* codes) {
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t block = rows[i] / block_rows;
        const std::uint8_t* source = blocks + block * n_bytes * block_rows + rows[i] % block_rows;
        for (std::size_t plane = 0; plane < n_bytes; ++plane) {
            codes[i * n_bytes + plane] = source[plane * block_rows];
        }
    }
}

}  // namespace bitweigh
