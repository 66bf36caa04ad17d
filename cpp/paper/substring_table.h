// A hash table of the paper: the rows of all codes by the value of one substring of their bits.
//
// Norouzi et al. (MIH) keep an array over all keys, with a bitmap for long substrings. Here the
// rows are sorted by key, and a directory over the leading bits of the key shows where to look. For
// short substrings the directory has an entry for each key; for long ones about one entry for each
// row, so a table takes 8 to 12 bytes a row whatever the length of the substring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/parallel.h"
#include "engine/rows/bits.h"
#include "engine/types.h"

namespace bitweigh::paper {

// A substring's value: bit j of the key is bit first + j of the code.
using Key = std::uint32_t;
inline constexpr std::size_t max_key_bits = 32;

// Bits [first, first + bits) of a code.
struct Substring {
    std::size_t first;
    std::size_t bits;  // Number of bits, 1 to max_key_bits.
};

// A view of packed codes, with the length and the order of their bits.
struct Codes {
    const std::uint8_t* data;  // Array of shape (n, n_bytes()).
    std::size_t n;
    std::size_t n_bits;
    BitOrder order;

    std::size_t n_bytes() const { return bytes_of(n_bits); }
    const std::uint8_t* row(std::size_t i) const { return data + i * n_bytes(); }
};

Key key_of(const std::uint8_t* code, const Substring& substring, BitOrder order);

class SubstringTable {
public:
    SubstringTable(const Codes& codes, const Substring& substring, Checkpoint& checkpoint);

    const Substring& substring() const { return substring_; }

    // The rows whose substring is `key`, ascending.
    std::span<const Row> bucket(Key key) const;

private:
    Substring substring_;
    std::size_t low_bits_;               // Number of low bits of a key not used by the directory.
    std::vector<std::uint32_t> starts_;  // Directory by leading bits of the key, and its end.
    std::vector<Row> rows_;              // Rows in ascending key.
    std::vector<Key> keys_;              // Keys of rows_; empty if the directory has every key.
};

// The paper's number of substrings, b / log2 n, rounded, but at least 1 and enough that none
// exceeds max_key_bits.
std::size_t substrings_by_rule(std::size_t n_bits, std::size_t n);

// A table for each of m disjoint substrings of ceil(b / m) or floor(b / m) bits.
std::vector<SubstringTable> split_tables(const Codes& codes, std::size_t m, Checkpoint& checkpoint);

}  // namespace bitweigh::paper
