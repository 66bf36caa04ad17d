// Every row within a radius, of many queries over the segments of one state.
#pragma once

#include <vector>

#include "engine/tiles.h"

namespace bitweigh {

// For each query the rows with distance <= its radius, by (distance, id); the request has radii.
// More rows of one query than the request's limit: TooManyRows.
std::vector<std::vector<Neighbour>> range_search(const SearchRequest& request,
                                                 SearchCounters* counters,
                                                 const InterruptCheck& check);

}  // namespace bitweigh
