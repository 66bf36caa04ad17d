// The types that every other file uses: rows, ids, blocks, neighbours and their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace bitweigh {

// The position of a code inside one segment. Never mixed with Id.
using Row = std::uint32_t;
// A value of the bits that a band is keyed by.
using Key = std::uint32_t;
// The most bits of a key: the directory of a band has 2^bits + 1 entries.
inline constexpr std::size_t max_band_bits = 28;
// The caller's key of a code: >= 0.
using Id = std::int64_t;

// The number of rows of a block. Byte p of all 32 rows lies in 32 adjacent bytes, plane p.
inline constexpr std::size_t block_rows = 32;
// A segment has fewer rows than this, so that a row and a block number fit in 32 bits.
inline constexpr std::size_t max_segment_rows = (std::size_t{1} << 32) - 64;

inline constexpr Id padding_id = -1;
inline constexpr double padding_distance = std::numeric_limits<double>::infinity();

inline constexpr std::size_t blocks_of(std::size_t rows) {
    return (rows + block_rows - 1) / block_rows;
}

struct Neighbour {
    double distance;
    Id id;
};

inline Neighbour neighbour_of(const Neighbour& neighbour) {
    return neighbour;
}

// The order of every answer: by distance, equal distances by id. Distances are never NaN.
inline bool is_nearer(const Neighbour& a, const Neighbour& b) {
    return a.distance < b.distance || (a.distance == b.distance && a.id < b.id);
}
// The same as a function object, for every type that has is_nearer.
inline constexpr auto nearer = [](const auto& a, const auto& b) { return is_nearer(a, b); };

}  // namespace bitweigh
