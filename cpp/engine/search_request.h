// The request of a search: its segments, its queries, k or radii, and its options.
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <string>

#include "engine/deadline.h"
#include "engine/pages.h"
#include "engine/probe/probe_query.h"
#include "engine/query/top_k.h"
#include "engine/rows/bits.h"
#include "engine/rows/segment.h"
#include "engine/scan/scan.h"
#include "engine/tuning.h"

namespace bitweigh {

// The settings shared by all searches of an index.
struct Engine {
    std::size_t n_bits;
    BitOrder order;
    const Kernel* kernel;
    Tuning tuning = {};
};

// The options of a single call, as OPTION(type, name, default, doc). The struct and its
// Python class are generated from this list.
#define BITWEIGH_SEARCH_OPTIONS(OPTION)                                                        \
    OPTION(Method, method, Method::automatic, "What to do with segments that have bands.")     \
    OPTION(std::size_t, threads, 1, "Maximum number of threads, at least 1.")                  \
    OPTION(bool, cap_threads, false, "Whether to use no more threads than the work is worth.") \
    OPTION(std::size_t, limit, every_row,                                                      \
           "Maximum number of rows within a query's radius; more raise TooManyRowsError.")     \
    OPTION(Deadline, deadline, {}, "When the search must have ended; DeadlineError if it has not.")

struct SearchOptions {
#define BITWEIGH_MEMBER(type, name, value, doc) type name = value;
    BITWEIGH_SEARCH_OPTIONS(BITWEIGH_MEMBER)
#undef BITWEIGH_MEMBER
};

struct SearchRequest {
    std::span<const Segment> segments;
    Engine engine;
    const double* costs;  // Array of shape (n_queries, n_bits, 2), without a CostFault.
    std::size_t n_queries;
    std::size_t k = 1;              // Number of neighbours, >= 1; ignored in a range search.
    const double* radii = nullptr;  // Radii of the queries, none NaN; null: not a range search.
    SearchOptions options = {};
    PageReader* pages = nullptr;  // Told of all that is read; for one thread. May be null.
};

// Thrown if a query has more rows within its radius than options.limit.
struct TooManyRows : std::exception {
    explicit TooManyRows(std::size_t query_in) : query(query_in), text_(std::to_string(query)) {}
    // The number of the query, which is all that the bindings pass on.
    const char* what() const noexcept override { return text_.c_str(); }
    std::size_t query;  // Index of the query in the request.

private:
    std::string text_;
};

}  // namespace bitweigh
