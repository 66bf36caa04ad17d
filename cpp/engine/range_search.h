// Every row within a radius, of many queries over the segments of one state.
#pragma once

#include <cstddef>
#include <exception>
#include <vector>

#include "engine/parallel.h"
#include "engine/search.h"

namespace bitweigh {

// Thrown where a query has more rows within its radius than the caller wants.
struct TooManyRows : std::exception {
    explicit TooManyRows(std::size_t query_in) : query(query_in) {}
    const char* what() const noexcept override { return "more rows than the limit"; }
    std::size_t query;
};

// For each query the rows with distance <= its radius, by (distance, id). `k` of the request means
// nothing here; radii are not NaN. More than `limit` rows of one query: TooManyRows.
std::vector<std::vector<Neighbour>> range_search(const SearchRequest& request, const double* radii,
                                                 std::size_t limit, SearchCounters* counters,
                                                 const InterruptCheck& check);

}  // namespace bitweigh
