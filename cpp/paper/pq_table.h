// PQTable (Matsui et al. 2018), as the paper adapts it: 8 bits of a code are a sub-code of a
// product quantiser, several of them make the key of a table, and the multi-sequence algorithm
// gives the buckets of a table in ascending cost.
//
// Its merge is reconstructed from the paper's description; PQTable_max_heap uses that of Alg. 2.
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
// when all its predecessors were popped; here each has one parent, which needs no marks: the
// combination that is smaller by one in its last part that is not at the start.
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
        Key key;  // Bits of the sub-code, shifted to where they are in the whole key.
    };
    struct Combination {
        double cost;
        std::array<std::uint8_t, max_parts> indexes;  // Index in each part's sorted sub-codes.
    };
    struct Later {
        bool operator()(const Combination& a, const Combination& b) const {
            return a.cost > b.cost;
        }
    };

    double cost_of(const std::array<std::uint8_t, max_parts>& indexes) const;

    std::vector<std::vector<SubCode>> parts_;  // Sub-codes of each part, in ascending cost.
    std::priority_queue<Combination, std::vector<Combination>, Later> queue_;
};

// The power of two nearest to b / log2 n, but enough tables that no key exceeds max_key_bits.
std::size_t pq_tables_by_rule(std::size_t n_bits, std::size_t n);

class PqTable {
public:
    PqTable(const Codes& codes, std::size_t n_tables, Checkpoint& checkpoint);

    // PQTable's merge: probes the next bucket of each table in turn. A row seen in all tables is at
    // least as near as any row not seen, so once K rows were, the answer is among the rows seen.
    Answer search(const double* costs, std::size_t k, Checkpoint& checkpoint);
    // PQTable_max_heap: the merge of Alg. 2.
    Answer search_max_heap(const double* costs, std::size_t k, Checkpoint& checkpoint);

private:
    class Search;

    Codes codes_;
    std::vector<SubstringTable> tables_;
    SpareScratch<SeenRows> spare_seen_;
    SpareScratch<std::vector<std::uint16_t>> spare_times_seen_;  // Counts by row; 0 when idle.
};

}  // namespace bitweigh::paper
