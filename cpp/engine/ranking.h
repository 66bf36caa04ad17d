// True distances between vectors, and candidates ranked by them.
//
// A distance is defined to the last bit, as NumPy computes it from the row and the query in
// float64:
//   euclidean  sqrt(((v - q) ** 2).sum())
//   cosine     clip(1 - (v * q).sum() / sqrt((v ** 2).sum()), 0, 2), for a query q of length 1
// where sum() adds pairwise. So it depends on that row and that query alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/parallel.h"
#include "engine/types.h"

namespace bitweigh {

enum class VectorMetric { euclidean, cosine };

// Bits of an IEEE half, the numbers of float16.
enum class Half : std::uint16_t {};

// Vectors of float or Half in one or more arrays, numbered through all of them.
template <class Stored>
class VectorTable {
public:
    explicit VectorTable(std::size_t n_features) : n_features_(n_features) {}

    void push_back(const Stored* rows, std::size_t n_rows) {
        pieces_.push_back({rows, n_rows_, n_rows_ + n_rows});
        n_rows_ += n_rows;
    }

    std::size_t n_features() const { return n_features_; }
    std::size_t n_rows() const { return n_rows_; }

    // The numbers of a row, which must be less than n_rows().
    const Stored* row(std::size_t row) const {
        const Piece* piece = pieces_.data();
        while (row >= piece->end) ++piece;
        return piece->rows + (row - piece->first) * n_features_;
    }

private:
    struct Piece {
        const Stored* rows;
        std::size_t first, end;  // numbers of its rows
    };
    std::vector<Piece> pieces_;
    std::size_t n_features_;
    std::size_t n_rows_ = 0;
};

struct Queries {
    const double* values;  // (size, n_features)
    std::size_t size;
};

// Threads to use: at most `limit`, and where `capped` no more than the work is worth.
struct ThreadLimit {
    std::size_t limit;
    bool capped;
};

// The candidates of each query: (queries, per_query). A row of -1 is none.
struct Candidates {
    const std::int64_t* rows;
    const Id* ids;
    std::size_t per_query;
};

// Writes the k nearest candidates of each query into (queries, k), nearest first, equal distances
// in ascending id, and pads with infinity and -1. Distances that are NaN, which only damaged rows
// have, come last. Throws std::out_of_range for a row that is not in the table.
template <class Stored>
void rank_candidates(const VectorTable<Stored>& table, const Queries& queries,
                     const Candidates& candidates, VectorMetric metric, std::size_t k,
                     double* distances, Id* ids, ThreadLimit threads, const InterruptCheck& check);

// Writes the distance of each query to each of the rows into (queries, n_rows).
template <class Stored>
void write_distances(const VectorTable<Stored>& table, const Queries& queries,
                     const std::int64_t* rows, std::size_t n_rows, VectorMetric metric,
                     double* distances, ThreadLimit threads, const InterruptCheck& check);

// Writes where each wanted id is in ascending ids, -1 where it is not.
void find_sorted(const Id* ids, std::size_t n_ids, const Id* wanted, std::size_t n_wanted,
                 std::int64_t* places, Checkpoint& checkpoint);

}  // namespace bitweigh
