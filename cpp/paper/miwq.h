// The paper's two algorithms: MIWQ on a single table (Alg. 1) and on m tables (Alg. 2).
#pragma once

#include <cstddef>
#include <vector>

#include "engine/types.h"
#include "paper/candidates.h"
#include "paper/queue_order.h"
#include "paper/scratch.h"
#include "paper/substring_table.h"

namespace bitweigh::paper {

// Alg. 1: probes the buckets of one table over the whole code until K rows are found. At most 32
// bits.
class SingleIndex {
public:
    SingleIndex(const Codes& codes, Checkpoint& checkpoint);
    Answer search(const double* costs, std::size_t k, Checkpoint& checkpoint) const;

private:
    Codes codes_;
    SubstringTable table_;
};

// Alg. 2: merges m tables over disjoint substrings of ceil(b / m) or floor(b / m) bits.
class MultiIndex {
public:
    MultiIndex(const Codes& codes, std::size_t m, Checkpoint& checkpoint);
    std::size_t m() const { return tables_.size(); }
    Answer search(const double* costs, std::size_t k, QueueOrder order, Checkpoint& checkpoint);

private:
    Codes codes_;
    std::vector<SubstringTable> tables_;
    SpareScratch<SeenRows> spare_;
};

}  // namespace bitweigh::paper
