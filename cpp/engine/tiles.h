// Searches with many queries over the segments of one state, on several threads. Here the work of
// every kind of search is cut up and done; search.h and range_search.h define the answers.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/counters.h"
#include "engine/parallel.h"
#include "engine/search_request.h"
#include "engine/types.h"

namespace bitweigh {

// Receives the answers of a search.
class AnswerSink {
public:
    virtual ~AnswerSink() = default;
    // Called once for each query, by any thread. `found` is sorted by (distance, id).
    virtual void take(std::size_t query, std::vector<Neighbour>&& found,
                      const SearchCounters& counters, Checkpoint& checkpoint) = 0;
};

void search_in_tiles(const SearchRequest& request, AnswerSink& answers,
                     const InterruptCheck& check);

}  // namespace bitweigh
