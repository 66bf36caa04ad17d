// Many queries over the segments of one state, on several threads: how the work of every kind of
// search is cut, and what each piece does. search.h and range_search.h say what is looked for.
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <vector>

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
    std::size_t k;  // >= 1, or every_row
    Method method;
    const Kernel* kernel;
    std::size_t threads;  // >= 1
    bool cap_threads;     // use no more of them than the work is worth
    Tuning tuning;
    // With every_row as k:
    const double* radii = nullptr;  // n_queries, not NaN
    std::size_t limit = every_row;  // most rows of one query; more of them: TooManyRows
};

// Thrown where a query has more rows within its radius than the caller wants.
struct TooManyRows : std::exception {
    explicit TooManyRows(std::size_t query_in) : query(query_in) {}
    const char* what() const noexcept override { return "more rows than the limit"; }
    std::size_t query;
};

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
