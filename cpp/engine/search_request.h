// What a search is asked: over which segments, for which queries, for what, and how.
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <string>

#include "engine/probe/probe_query.h"
#include "engine/query/top_k.h"
#include "engine/rows/bits.h"
#include "engine/rows/segment.h"
#include "engine/scan/scan.h"
#include "engine/tuning.h"

namespace bitweigh {

// What all searches of an index have in common.
struct Engine {
    std::size_t n_bits;
    BitOrder order;
    const Kernel* kernel;
    Tuning tuning = {};
};

// Every option of a single call, once, as OPTION(type, name, default, meaning): the struct and its
// class in Python follow from this list.
#define BITWEIGH_SEARCH_OPTIONS(OPTION)                                                        \
    OPTION(Method, method, Method::automatic, "What to do with segments that have bands.")     \
    OPTION(std::size_t, threads, 1, "Maximum number of threads, at least 1.")                  \
    OPTION(bool, cap_threads, false, "Whether to use no more threads than the work is worth.") \
    OPTION(std::size_t, limit, every_row,                                                      \
           "Maximum number of rows within a radius; more of them raise TooManyRowsError.")

struct SearchOptions {
#define BITWEIGH_MEMBER(type, name, value, meaning) type name = value;
    BITWEIGH_SEARCH_OPTIONS(BITWEIGH_MEMBER)
#undef BITWEIGH_MEMBER
};

struct SearchRequest {
    std::span<const Segment> segments;
    Engine engine;
    const double* costs;  // n_queries x n_bits x 2, without faults
    std::size_t n_queries;
    // The k nearest rows are wanted or, if there are radii, every row within them.
    std::size_t k = 1;              // >= 1; not read where there are radii
    const double* radii = nullptr;  // n_queries, not NaN
    SearchOptions options = {};
};

// Thrown where a query has more rows within its radius than options.limit.
struct TooManyRows : std::exception {
    explicit TooManyRows(std::size_t query_in) : query(query_in), text_(std::to_string(query)) {}
    // The number of the query, which is all that the bindings pass on.
    const char* what() const noexcept override { return text_.c_str(); }
    std::size_t query;

private:
    std::string text_;
};

}  // namespace bitweigh
