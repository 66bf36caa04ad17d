// PQTable (Matsui et al. 2018), as the paper adapts it: 8 bits of a code are a sub-code of a
// product quantiser, several of them make the key of a table, and the multi-sequence algorithm
// gives the buckets of a table in ascending cost.
//
// Its merge is reconstructed from the paper's description; PQTable_max_heap takes that of Alg. 2.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

#include "paper/bucket_queue.h"
#include "paper/candidates.h"
#include "paper/scratch.h"
#include "paper/substring_table.h"

namespace bitweigh::paper {

// The multi-sequence algorithm (Babenko and Lempitsky): each part of the key has its sub-codes
// sorted by cost, and a priority queue walks their combinations. The authors push a combination
// when all its predecessors were taken out; here each has one parent, which needs no marks: the
// one that is smaller by one in its last part that is not at the start.
class SubCodeQueue {
public:
    SubCodeQueue(const double* costs, const Substring& substring);

    bool empty() const { return queue_.empty(); }
    double top_cost() const;
    Bucket pop();

private:
    static constexpr std::size_t part_bits = 8;
    static constexpr std::size_t max_parts = max_key_bits / part_bits;

    struct SubCode {
        double cost;
        Key key;  // in its place in the whole key
    };
    struct Combination {
        double cost;
        std::array<std::uint8_t, max_parts> places;  // in each part's sorted sub-codes
    };
    struct Later {
        bool operator()(const Combination& a, const Combination& b) const {
            return a.cost > b.cost;
        }
    };

    double cost_of(const std::array<std::uint8_t, max_parts>& places) const;

    std::vector<std::vector<SubCode>> parts_;
    std::priority_queue<Combination, std::vector<Combination>, Later> queue_;
};

// b / log2 n to the nearest power of two, and so many that no key is too long.
std::size_t pq_tables_by_rule(std::size_t n_bits, std::size_t n);

class PqTable {
public:
    PqTable(const Codes& codes, std::size_t n_tables, Checkpoint& checkpoint);

    // PQTable's merge: the next bucket of each table in turn. A row met in all tables is at least
    // as near as any row not met at all, so once K rows were, the answer is among the rows met.
    Answer search(const double* costs, std::size_t k, Checkpoint& checkpoint);
    // PQTable_max_heap: the merge of Alg. 2.
    Answer search_max_heap(const double* costs, std::size_t k, Checkpoint& checkpoint);

private:
    class Search;

    Codes codes_;
    std::vector<SubstringTable> tables_;
    SpareScratch<MetRows> spare_met_;
    SpareScratch<std::vector<std::uint16_t>> spare_meetings_;  // by row; all 0 between queries
};

}  // namespace bitweigh::paper
