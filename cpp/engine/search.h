// Many queries over the segments of one state, on several threads.
#pragma once

#include <cstddef>
#include <span>

#include "engine/bits.h"
#include "engine/parallel.h"
#include "engine/probe_query.h"
#include "engine/scan/scan.h"
#include "engine/scan_query.h"
#include "engine/segment.h"
#include "engine/tuning.h"

namespace bitweigh {

struct SearchRequest {
    std::span<const Segment> segments;
    std::size_t n_bits;
    BitOrder order;
    const double* costs;  // n_queries x n_bits x 2, without faults
    std::size_t n_queries;
    std::size_t k;  // >= 1
    Method method;
    const Kernel* kernel;
    std::size_t threads;  // >= 1
    bool cap_threads;     // use no more of them than the work is worth
    Tuning tuning;
};

// n_queries x k each, and n_queries counters.
struct SearchAnswer {
    double* distances;
    Id* ids;
    SearchCounters* counters;
};

// Fills the answer: the k nearest by (distance, id), padded with padding_distance and padding_id.
void search(const SearchRequest& request, const SearchAnswer& answer, const InterruptCheck& check);

}  // namespace bitweigh
