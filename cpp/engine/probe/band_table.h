// Building a band: keys of codes, rows in ascending key, the directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/parallel.h"
#include "engine/rows/bits.h"
#include "engine/rows/segment.h"

namespace bitweigh {

// The key of each of n codes, as callers pack them.
void keys_of(const std::uint8_t* codes, std::size_t n, std::size_t n_bytes,
             std::span<const std::uint16_t> bits, BitOrder order, std::uint32_t* keys);

// Counts the keys into `starts` (2^n_bits + 1) and writes the rows in ascending key, rows of equal
// key in ascending order, into `rows` (n).
void sort_by_key(const std::uint32_t* keys, std::size_t n, std::size_t n_bits,
                 std::uint32_t* starts, Row* rows, Checkpoint& checkpoint);

// Packs the given rows of `codes`, in their order, into blocks.
void pack_rows(const std::uint8_t* codes, std::size_t n_bytes, const Row* rows, std::size_t n,
               std::uint8_t* blocks);

}  // namespace bitweigh
