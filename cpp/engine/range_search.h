// Range search: every row within the radius of each query, over the segments of one state.
#pragma once

#include <vector>

#include "engine/tiles.h"

namespace bitweigh {

// Returns, for each query, the rows with distance <= its radius in the order of (distance, id), and
// writes its counters. The request must have radii. Throws TooManyRows if a query has more rows
// than the request's limit.
std::vector<std::vector<Neighbour>> range_search(const SearchRequest& request,
                                                 SearchCounters* counters,
                                                 const InterruptCheck& check);

}  // namespace bitweigh
