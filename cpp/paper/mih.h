// Two methods that the paper compares with and that first rank by plain Hamming distance.
//
// Baseline: all codes by Hamming distance. MIH (Norouzi et al. 2014): the codes within a growing
// Hamming radius, found in m tables, then "culled" by weighted distance. Neither is exact.
#pragma once

#include <cstddef>
#include <vector>

#include "paper/candidates.h"
#include "paper/scratch.h"
#include "paper/substring_table.h"

namespace bitweigh::paper {

// The k codes nearest to the cheapest code by Hamming distance; ties go to the lowest row.
Answer hamming_ranking(const Codes& codes, const double* costs, std::size_t k,
                       Checkpoint& checkpoint);

// The codes that MIH ranks by weighted distance. The paper does not say which; the choice decides
// the precision.
enum class Culled {
    found,  // The K nearest codes by Hamming distance alone.
    shell,  // All codes within the radius at which K were found, including the whole last shell.
    met,    // Every code seen in a probed bucket, even beyond that radius.
};

class MultiIndexHashing {
public:
    MultiIndexHashing(const Codes& codes, std::size_t m, Checkpoint& checkpoint);
    Answer search(const double* costs, std::size_t k, Culled culled, Checkpoint& checkpoint);

private:
    class Search;

    Codes codes_;
    std::vector<SubstringTable> tables_;
    SpareScratch<SeenRows> spare_;
};

}  // namespace bitweigh::paper
