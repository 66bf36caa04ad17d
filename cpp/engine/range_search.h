// Every row within a radius, of many queries over the segments of one state.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/tiles.h"

namespace bitweigh {

// For each query the rows with distance <= its radius, by (distance, id). `k` of the request means
// nothing here; radii are not NaN. More than `limit` rows of one query: TooManyRows.
std::vector<std::vector<Neighbour>> range_search(SearchRequest request, const double* radii,
                                                 std::size_t limit, SearchCounters* counters,
                                                 const InterruptCheck& check);

}  // namespace bitweigh
