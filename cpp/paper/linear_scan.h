// The paper's Linear Scan: the weighted distance of every code by a 256-entry table per byte.
//
// The exhaustive search that the paper compares with ("accelerated by adopting the look-up
// tables"). Not to be confused with the engine's scan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/parallel.h"
#include "engine/rows/bits.h"
#include "engine/types.h"

namespace bitweigh::paper {

// Returns the k nearest rows of `codes`, of shape (n, bytes_of(n_bits)), nearest first; ids are row
// numbers. `costs` has shape (n_bits, 2). In single precision tables and sums are float, which is
// fastest and usual for such scans, but rounds the distances.
std::vector<Neighbour> linear_scan(const std::uint8_t* codes, std::size_t n, const double* costs,
                                   std::size_t n_bits, BitOrder order, std::size_t k,
                                   bool single_precision, Checkpoint& checkpoint);

}  // namespace bitweigh::paper
