// Codes as bytes: which mask belongs to which bit, and the two layouts, rows and blocks.
//
// rows:   row r is n_bytes adjacent bytes, as callers pass them (np.packbits).
// blocks: 32 rows together, byte plane by byte plane: byte p of row r lies at
//         (r / 32) * n_bytes * 32 + p * 32 + r % 32. Rows past the last are zero bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/types.h"

namespace bitweigh {

// NumPy's two orders of the bits inside a byte. The stored bytes are the same for both.
enum class BitOrder { big, little };

inline constexpr std::size_t bytes_of(std::size_t n_bits) {
    return (n_bits + 7) / 8;
}

// The bit of byte i / 8 that holds bit i.
inline constexpr unsigned bit_mask(std::size_t i, BitOrder order) {
    return order == BitOrder::big ? 128u >> (i % 8) : 1u << (i % 8);
}

// A mask of the bytes that are zero: bit r stands for byte r. Eight at a time, without a branch.
inline std::uint32_t zero_bytes(const std::uint8_t bytes[block_rows]) {
    constexpr std::uint64_t low_bits = 0x7f7f7f7f7f7f7f7f;
    std::uint32_t zero = 0;
    for (std::size_t first = 0; first < block_rows; first += 8) {
        std::uint64_t eight = 0;
        for (std::size_t i = 0; i < 8; ++i) eight |= std::uint64_t{bytes[first + i]} << (8 * i);
        // The top bit of each byte: set where the byte is zero. The sum has no carry between bytes.
        const std::uint64_t top = ~(((eight & low_bits) + low_bits) | eight | low_bits);
        // The product brings bit 0 of byte i to bit 56 + i.
        zero |= static_cast<std::uint32_t>((top >> 7) * 0x0102040810204080 >> 56) << first;
    }
    return zero;
}

// A mask of the rows of a block that have the same code as its row r.
inline std::uint32_t rows_like(const std::uint8_t* block, std::size_t n_bytes, std::size_t r) {
    std::uint8_t differing[block_rows] = {};
    for (std::size_t p = 0; p < n_bytes; ++p) {
        const std::uint8_t* plane = block + p * block_rows;
        const std::uint8_t byte = plane[r];
        for (std::size_t i = 0; i < block_rows; ++i) {
            differing[i] = static_cast<std::uint8_t>(differing[i] | (plane[i] ^ byte));
        }
    }
    return zero_bytes(differing);
}

// The mask of the bits of the last byte that no code may set. n_bits >= 1.
unsigned unused_mask(std::size_t n_bits, BitOrder order);

// The first row whose last byte has a bit of `unused` set, or `n` if there is none.
std::size_t first_stray_row(const std::uint8_t* codes, std::size_t n, std::size_t n_bytes,
                            unsigned unused);

// Packs n codes into blocks; `blocks` has room for blocks_of(n) of them.
void pack_blocks(const std::uint8_t* codes, std::size_t n, std::size_t n_bytes,
                 std::uint8_t* blocks);

// Copies n rows, in the order of `rows`, from the blocks into `codes`.
void unpack_rows(const std::uint8_t* blocks, std::size_t n_bytes, const Row* rows, std::size_t n,
                 std::uint8_t* codes);

}  // namespace bitweigh
