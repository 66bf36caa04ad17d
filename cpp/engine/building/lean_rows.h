// Rows of a lean segment while it is built: their keys and rests, sorting them, cutting sorted rows
// at keys, packing their rests into blocks.
//
// A row is a code of at most 8 bytes and a number of 4 or 8 bytes, its id or its row number. Codes
// and numbers are separate arrays. The *rest* of a code is those of its bits that the key of a band
// does not imply.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/parallel.h"
#include "engine/rows/bits.h"

namespace bitweigh {

inline constexpr std::size_t max_lean_bytes = 8;

// Reads selected bits of codes: bit j of the value is bit bits[j] of the code.
class BitReader {
public:
    // All bits lie inside n_bytes <= max_lean_bytes, and there are at most 64.
    BitReader(std::span<const std::uint16_t> bits, BitOrder order, std::size_t n_bytes);

    std::uint64_t operator()(const std::uint8_t* code) const {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < n_used_; ++i) value |= tables_[i][code[used_[i]]];
        return value;
    }
    std::size_t n_bits() const { return n_bits_; }
    std::size_t n_bytes() const { return n_bytes_; }

private:
    std::size_t n_bits_, n_bytes_;
    std::size_t n_used_ = 0;
    std::array<std::size_t, max_lean_bytes> used_{};  // The bytes of a code that have such bits.
    std::vector<std::array<std::uint64_t, 256>> tables_;  // The bits of each value of those bytes.
};

// The bits of codes of n_bits bits that are not among `bits`, ascending.
std::vector<std::uint16_t> other_bits(std::span<const std::uint16_t> bits, std::size_t n_bits);

// Arrays of rows.
struct RowArrays {
    std::uint8_t* codes;
    std::uint8_t* numbers;
};

// Sorts n rows by key; rows of equal key keep their order. Uses both arrays; returns true if the
// sorted rows are in `spare`, false if they are in `rows`. `number_bytes` is 4 or 8.
bool sort_lean_rows(RowArrays rows, RowArrays spare, std::size_t n, std::size_t number_bytes,
                    const BitReader& key, Checkpoint& checkpoint);

// Writes, for each key from `first` on, first_position + how many of the n sorted codes have a
// smaller key. Returns false if the codes are not sorted or have another key.
bool key_starts(const std::uint8_t* codes, std::size_t n, const BitReader& key, std::uint64_t first,
                std::span<std::uint32_t> starts, std::uint64_t first_position);

// How many of the n sorted codes have a key smaller than `bound`.
std::size_t count_below(const std::uint8_t* codes, std::size_t n, const BitReader& key,
                        std::uint64_t bound);

// Packs the rests of n codes into blocks, the first at row `offset` < block_rows of the first
// block. `blocks` has room for blocks_of(offset + n) of n_rest_bytes each; other rows are zero.
void pack_rests(const std::uint8_t* codes, std::size_t n, const BitReader& rest,
                std::size_t n_rest_bytes, std::size_t offset, std::uint8_t* blocks);

// Sets the bit of each id in `marks`, which has one for each, and returns the position of the first
// id whose bit was set already, or `n`.
std::size_t mark_ids(const std::uint32_t* ids, std::size_t n, std::uint8_t* marks);

}  // namespace bitweigh
