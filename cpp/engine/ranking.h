// True distances between vectors, and candidates ranked by them.
//
// A distance is defined to the last bit, as NumPy computes it from the row and the query in
// float64:
//   euclidean      sqrt(((v - q) ** 2).sum())
//   cosine         clip(1 - (v * q).sum() / sqrt((v ** 2).sum()), 0, 2), for a query q of length 1
//   inner_product  -(v * q).sum(), so that the largest products are nearest
// where sum() adds pairwise. It depends on that row and that query alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/parallel.h"
#include "engine/types.h"

namespace bitweigh {

enum class VectorMetric { euclidean, cosine, inner_product };

// The bits of an IEEE half-precision number, NumPy's float16.
enum class Half : std::uint16_t {};

// Vectors of float, Half or std::int8_t in one or more arrays, whose rows are numbered
// consecutively.
template <class Stored>
class VectorTable {
public:
    explicit VectorTable(std::size_t n_features) : n_features_(n_features) {}

    // Appends an array of shape (n_rows, n_features), which must outlive this.
    void push_back(const Stored* rows, std::size_t n_rows) {
        pieces_.push_back({rows, n_rows_, n_rows_ + n_rows});
        n_rows_ += n_rows;
    }

    std::size_t n_features() const { return n_features_; }
    std::size_t n_rows() const { return n_rows_; }

    // Returns the values of a row; `row` must be less than n_rows().
    const Stored* row(std::size_t row) const {
        const Piece* piece = pieces_.data();
        while (row >= piece->end) ++piece;
        return piece->rows + (row - piece->first) * n_features_;
    }

private:
    struct Piece {
        const Stored* rows;
        std::size_t first, end;  // Row numbers [first, end).
    };
    std::vector<Piece> pieces_;
    std::size_t n_features_;
    std::size_t n_rows_ = 0;
};

struct Queries {
    const double* values;  // Array of shape (size, n_features).
    std::size_t size;
};

struct ThreadLimit {
    std::size_t limit;  // Maximum number of threads.
    bool capped;        // Whether to use no more threads than the work is worth.
};

struct Candidates {
    const std::int64_t* rows;  // Row numbers of shape (queries, per_query); -1 for no candidate.
    const Id* ids;             // Ids of the same shape.
    std::size_t per_query;
};

// Writes the k nearest candidates of each query into arrays of shape (queries, k), nearest first,
// equal distances in ascending id, padded with infinity and -1. NaN distances, which only damaged
// rows have, come last. Throws std::out_of_range for a row that is not in the table.
template <class Stored>
void rank_candidates(const VectorTable<Stored>& table, const Queries& queries,
                     const Candidates& candidates, VectorMetric metric, std::size_t k,
                     double* distances, Id* ids, ThreadLimit threads, const InterruptCheck& check,
                     const Deadline& deadline = {});

// Writes the distance of each query to each of the rows into an array of shape (queries, n_rows).
// Throws std::out_of_range for a row that is not in the table.
template <class Stored>
void write_distances(const VectorTable<Stored>& table, const Queries& queries,
                     const std::int64_t* rows, std::size_t n_rows, VectorMetric metric,
                     double* distances, ThreadLimit threads, const InterruptCheck& check,
                     const Deadline& deadline = {});

// Writes the position of each id in `sorted`, which is in ascending order; -1 if it is not there.
void find_sorted(const Id* sorted, std::size_t n_sorted, const Id* ids, std::size_t n_ids,
                 std::int64_t* positions, Checkpoint& checkpoint);

// Sorts what was found for each query: elements [ends[q], ends[q + 1]) of both arrays, nearest
// first, equal distances in ascending id.
void sort_found(double* distances, Id* ids, const std::int64_t* ends, std::size_t n_queries,
                Checkpoint& checkpoint);

}  // namespace bitweigh
