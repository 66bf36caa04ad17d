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

// The k nearest rows of `codes` (n x bytes_of(n_bits), as callers pack them), nearest first; ids
// are row numbers. `costs` is n_bits x 2. In single precision tables and sums are float, the
// fastest and what such scans usually do; distances are rounded then.
std::vector<Neighbour> linear_scan(const std::uint8_t* codes, std::size_t n, const double* costs,
                                   std::size_t n_bits, BitOrder order, std::size_t k,
                                   bool single_precision, Checkpoint& checkpoint);

}  // namespace bitweigh::paper
