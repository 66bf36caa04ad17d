// k-nearest search: the k nearest rows of each query, over the segments of one state.
#pragma once

#include "engine/tiles.h"

namespace bitweigh {

// The arrays that an answer is written into.
struct SearchAnswer {
    double* distances;         // Array of shape (n_queries, k).
    Id* ids;                   // Array of shape (n_queries, k).
    SearchCounters* counters;  // Array of shape (n_queries,), or null.
};

// Writes the k nearest rows by (distance, id), padded with padding_distance and padding_id.
void search(const SearchRequest& request, const SearchAnswer& answer, const InterruptCheck& check);

}  // namespace bitweigh
