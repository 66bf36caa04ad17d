// Codes of at most 64 bits whose rows store only a rest: the bits that the key of their band does
// not imply.
//
// The rest of a code are its bits that are not in the key, in ascending order: rest bit i is bit
// i % 8 of rest byte i / 8, lowest first, whatever the order of the bits in the code. Rests lie in
// blocks as codes do (bits.h); a rest without bits takes one byte, 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/rows/bits.h"
#include "engine/types.h"

namespace bitweigh {

inline constexpr std::size_t max_lean_bits = 64;

// The bytes of a code as one number: byte p of the code is byte p of the number, lowest first.
using CodeNumber = std::uint64_t;

class LeanCodes {
public:
    // `key_bits` are distinct bits of the code; n_bits <= max_lean_bits.
    LeanCodes(std::span<const std::uint16_t> key_bits, std::size_t n_bits, BitOrder order);

    std::span<const std::uint16_t> key_bits() const { return key_bits_; }
    std::span<const std::uint16_t> rest_bits() const { return rest_bits_; }
    // The number of bytes of a rest.
    std::size_t n_bytes() const { return n_bytes_; }

    // The bits of a code that its key implies; the others are 0.
    CodeNumber key_part(Key key) const {
        CodeNumber part = 0;
        const CodeNumber* parts = key_parts_.data();
        for (; key != 0; key >>= 8, parts += 256) part |= parts[key & 255];
        return part;
    }
    // The bits of a code that row r (0-31) of a block stores; the others are 0.
    CodeNumber rest_part(const std::uint8_t* block, std::size_t r) const {
        CodeNumber part = 0;
        for (std::size_t p = 0; p < n_bytes_; ++p) {
            part |= rest_parts_[p * 256 + block[p * block_rows + r]];
        }
        return part;
    }

    // Writes the rest of a code, n_bytes() bytes `stride` apart.
    void write_rest(CodeNumber code, std::uint8_t* rest, std::size_t stride) const;

private:
    std::vector<std::uint16_t> key_bits_;
    std::vector<std::uint16_t> rest_bits_;
    std::size_t n_bytes_;
    // For each byte of a key, and of a rest, the bits of the code that each of its values sets.
    std::vector<CodeNumber> key_parts_;
    std::vector<CodeNumber> rest_parts_;
    std::vector<CodeNumber> rest_masks_;  // Bit of the code of each rest bit.
};

// The lean rows of a band, in ascending key: where the rows of each key are.
struct LeanRows {
    const LeanCodes* codes;
    const std::uint32_t* starts;  // Directory of n_keys + 1 positions.
    std::size_t n_keys;

    // The key of the row at a position; some key if the directory is damaged.
    Key key_at(std::size_t position) const;
    // The key at a later position, for whoever goes through the rows in order.
    Key next_key(Key key, std::size_t position) const {
        while (key + 1 < n_keys && starts[key + 1] <= position) ++key;
        return key;
    }
};

}  // namespace bitweigh
