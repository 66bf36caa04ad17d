// The paper's Linear Scan: the weighted distance of every code by a 256-entry table per byte.
//
// The exhaustive search that the paper compares with ("accelerated by adopting the look-up
// tables"). Tables and sums are float32, as in the implementations it was measured with, so
// distances are rounded; the engine's exact scan is elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/bits.h"
#include "engine/types.h"

namespace bitweigh::paper {

// The k nearest rows of `codes` (n x bytes_of(n_bits), as callers pack them), nearest first; ids
// are row numbers. `costs` is n_bits x 2.
std::vector<Neighbour> linear_scan(const std::uint8_t* codes, std::size_t n, const double* costs,
                                   std::size_t n_bits, BitOrder order, std::size_t k);

}  // namespace bitweigh::paper
