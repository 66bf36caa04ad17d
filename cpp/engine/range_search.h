// Range search: every row within the radius of each query, over the segments of one state.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/tiles.h"

namespace bitweigh {

// Returns, for each query, the rows with distance <= its radius in the order of (distance, id), and
// writes its counters unless they are null. The request must have radii. Throws TooManyRows if a
// query has more rows than the request's limit.
std::vector<std::vector<Neighbour>> range_search(const SearchRequest& request,
                                                 SearchCounters* counters,
                                                 const InterruptCheck& check);

// The rows of all queries, one query after the other, as two columns.
struct FlatRows {
    std::vector<double> distances;
    std::vector<Id> ids;
};

// Moves the rows of each query into `flat`, and writes where those of each query end, and first a
// 0, into `ends`, of shape (queries + 1,). Frees the rows of each query when they are moved.
void flatten(std::vector<std::vector<Neighbour>>& found, FlatRows& flat, std::int64_t* ends,
             Checkpoint& checkpoint);

}  // namespace bitweigh
