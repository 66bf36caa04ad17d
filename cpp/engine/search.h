// The k nearest rows of many queries over the segments of one state.
#pragma once

#include "engine/tiles.h"

namespace bitweigh {

// n_queries x k each, and n_queries counters.
struct SearchAnswer {
    double* distances;
    Id* ids;
    SearchCounters* counters;
};

// Fills the answer: the k nearest by (distance, id), padded with padding_distance and padding_id.
void search(const SearchRequest& request, const SearchAnswer& answer, const InterruptCheck& check);

}  // namespace bitweigh
