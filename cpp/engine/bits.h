// Codes as bytes: which mask belongs to which bit, and the two layouts, rows and blocks.
//
// rows:   row r is n_bytes adjacent bytes, what callers hand in (np.packbits).
// blocks: 32 rows together, byte plane by byte plane: byte p of row r lies at
//         (r / 32) * n_bytes * 32 + p * 32 + r % 32. Rows past the last are zero bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/types.h"

namespace bitweigh {

// NumPy's two orders of the bits inside a byte. The stored bytes are the same for both.
enum class BitOrder { big, little };

inline constexpr std::size_t bytes_of(std::size_t n_bits) { return (n_bits + 7) / 8; }

// The bit of byte i / 8 that holds bit i.
inline constexpr unsigned bit_mask(std::size_t i, BitOrder order) {
    return order == BitOrder::big ? 128u >> (i % 8) : 1u << (i % 8);
}

// Bits of the last byte that no code may set. n_bits >= 1.
unsigned unused_mask(std::size_t n_bits, BitOrder order);

// The first row whose last byte has one of the bits of `unused` set, or `n` if none has.
std::size_t first_stray_row(const std::uint8_t* codes, std::size_t n, std::size_t n_bytes,
                            unsigned unused);

// `blocks` has room for blocks_of(n) blocks.
void pack_blocks(const std::uint8_t* codes, std::size_t n, std::size_t n_bytes,
                 std::uint8_t* blocks);

// Copies the given rows out of the blocks, in the given order.
void unpack_rows(const std::uint8_t* blocks, std::size_t n_bytes, const Row* rows, std::size_t n,
                 std::uint8_t* codes);

}  // namespace bitweigh
