// Many queries over the segments of one state, on several threads: how the work of every kind of
// search is cut, and what each piece does. search.h and range_search.h say what is looked for.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/counters.h"
#include "engine/parallel.h"
#include "engine/search_request.h"
#include "engine/types.h"

namespace bitweigh {

// Where answers go.
class AnswerSink {
public:
    virtual ~AnswerSink() = default;
    // To be called once for each query, by any thread. `found` is in the order of the answer.
    virtual void take(std::size_t query, std::vector<Neighbour>&& found,
                      const SearchCounters& counters) = 0;
};

void search_in_tiles(const SearchRequest& request, AnswerSink& answers,
                     const InterruptCheck& check);

}  // namespace bitweigh
