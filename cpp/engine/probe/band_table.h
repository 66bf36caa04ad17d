// Builds a band: the keys of codes, the rows in ascending key, the directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/parallel.h"
#include "engine/rows/bits.h"
#include "engine/rows/segment.h"

namespace bitweigh {

// Writes the keys of n codes, which are rows of n_bytes.
void keys_of(const std::uint8_t* codes, std::size_t n, std::size_t n_bytes,
             std::span<const std::uint16_t> bits, BitOrder order, std::uint32_t* keys);

// Writes the n rows in ascending key into `rows`, rows of equal key in ascending order, and the
// directory of 2^n_bits + 1 positions into `starts`.
void sort_by_key(const std::uint32_t* keys, std::size_t n, std::size_t n_bits,
                 std::uint32_t* starts, Row* rows, Checkpoint& checkpoint);

// Packs n rows of `codes`, in the order of `rows`, into blocks.
void pack_rows(const std::uint8_t* codes, std::size_t n_bytes, const Row* rows, std::size_t n,
               std::uint8_t* blocks);

}  // namespace bitweigh
