// One query as the lean rows of a band see it: bound tables of the rests, and flip sums of keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/query/bound_tables.h"
#include "engine/query/cost_table.h"
#include "engine/rows/segment.h"

namespace bitweigh {

// Blocks of one band to scan, each for the rows of one key: a block in which several keys have rows
// is listed for each of them.
struct LeanList {
    struct Place {
        std::uint32_t block;  // Number of the block.
        std::uint32_t rows;   // Mask of the rows that have the key.
        Key key;
        double flip_sum;  // Flip sum of the key.
    };
    std::vector<const std::uint8_t*> starts;  // First byte of each block.
    std::vector<Place> places;
    std::vector<std::uint8_t> bases;  // Scratch: the sum that the kernel starts from.

    std::size_t size() const { return starts.size(); }
    void clear() {
        starts.clear();
        places.clear();
    }
    // Lists the blocks of the positions [begin, end), which have the key. Returns their number.
    std::size_t push_back(const BlockRows& rows, std::size_t begin, std::size_t end, Key key,
                          double flip_sum);
};

class LeanTables {
public:
    LeanTables(const CostTable& costs, const LeanCodes& codes);
    // The bound tables point into this.
    LeanTables(const LeanTables&) = delete;
    LeanTables& operator=(const LeanTables&) = delete;

    const LeanCodes& codes() const { return codes_; }
    // Must be called before the first scan and whenever `worst` has fallen; `worst` is finite.
    void lower_to(double worst);
    const BoundTables& bounds() const { return bounds_; }

    // The flip sum of a key, added by its bytes. The proof in probe_query.h covers its rounding as
    // it does that of a walk: no more additions, of the same weights.
    double key_flips(Key key) const {
        double sum = 0.0;
        const double* flips = key_flips_.data();
        for (std::size_t p = 0; p < n_key_bytes_; ++p, flips += 256)
            sum += flips[key >> 8 * p & 255];
        return sum;
    }

private:
    const LeanCodes& codes_;
    std::vector<double> nibble_flips_;  // Flip sums of shape (codes.n_bytes(), 2, 16).
    std::size_t n_key_bytes_;
    std::vector<double> key_flips_;  // Flip sums of shape (n_key_bytes_, 256).
    BoundTables bounds_;
    double worst_ = padding_distance;  // Distance that the bound tables are for.
};

}  // namespace bitweigh
