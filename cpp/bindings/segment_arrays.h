// Segments and bands together with the arrays they read, which they keep alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arrays.h"
#include "engine/segment.h"

namespace bitweigh {

struct BandArrays {
    Input<std::uint16_t, 1> bits;
    Input<std::uint32_t, 1> starts;
    Blocks blocks;
    std::optional<Input<Row, 1>> rows;  // none where the band has the segment's own order

    BandArrays(Input<std::uint16_t, 1> bits_in, Input<std::uint32_t, 1> starts_in, Blocks blocks_in,
               std::optional<Input<Row, 1>> rows_in)
        : bits(std::move(bits_in)),
          starts(std::move(starts_in)),
          blocks(std::move(blocks_in)),
          rows(std::move(rows_in)) {
        if (bits.shape(0) == 0 || bits.shape(0) > max_band_bits ||
            starts.shape(0) != (std::size_t{1} << bits.shape(0)) + 1) {
            throw std::invalid_argument("the arrays of a band do not fit each other");
        }
    }
};

// Which rows of a segment a search may return.
struct AllowedArrays {
    Input<std::uint32_t, 1> masks;                  // by 32 rows, a bit for each
    std::size_t rows;                               // how many
    std::optional<Input<std::uint32_t, 1>> blocks;  // where they are few: those with any, ascending
};

// Ids by row, in 32 bits where they fit.
using StoredIds = std::variant<Ids, Input<std::uint32_t, 1>>;

inline IdColumn column_of(const StoredIds& ids) {
    return std::visit([](const auto& array) { return IdColumn(array.data()); }, ids);
}
inline std::size_t size_of(const StoredIds& ids) {
    return std::visit([](const auto& array) { return array.shape(0); }, ids);
}

struct SegmentArrays {
    Blocks blocks;
    StoredIds ids;
    std::size_t n_bytes;
    std::vector<BandArrays> band_arrays;
    std::vector<Band> bands;
    Segment view;

    SegmentArrays(Blocks blocks_in, StoredIds ids_in, std::size_t n_bits,
                  const std::vector<const BandArrays*>& bands_in)
        : blocks(std::move(blocks_in)), ids(std::move(ids_in)), n_bytes(bytes_of(n_bits)) {
        const std::size_t rows = size_of(ids);
        if (rows >= max_segment_rows) throw std::invalid_argument("a segment has too many rows");
        check_blocks(blocks);
        std::vector<bool> covered(n_bits);
        for (const BandArrays* band : bands_in) add_band(*band, n_bits, covered);
        view = {{blocks.data(), column_of(ids), rows, nullptr}, bands};
    }
    // The view points into `bands`.
    SegmentArrays(const SegmentArrays&) = delete;
    SegmentArrays& operator=(const SegmentArrays&) = delete;

private:
    void check_blocks(const Blocks& some) const {
        if (some.shape(0) != blocks_of(size_of(ids)) * block_rows * n_bytes) {
            throw std::invalid_argument("blocks and ids do not have the same number of rows");
        }
    }
    void add_band(const BandArrays& band, std::size_t n_bits, std::vector<bool>& covered) {
        check_blocks(band.blocks);
        if (band.rows && band.rows->shape(0) != size_of(ids)) {
            throw std::invalid_argument("a band does not have the rows of its segment");
        }
        for (std::size_t j = 0; j < band.bits.shape(0); ++j) {
            const std::size_t bit = band.bits.data()[j];
            if (bit >= n_bits) throw std::out_of_range("no such bit");
            // What bands prove together holds only if each bit counts once.
            if (covered[bit]) throw std::invalid_argument("two bands have a bit in common");
            covered[bit] = true;
        }
        band_arrays.push_back(band);
        bands.push_back({{band.bits.data(), band.bits.shape(0)},
                         band.starts.data(),
                         {band.blocks.data(), column_of(ids), size_of(ids),
                          band.rows ? band.rows->data() : nullptr}});
    }
};

// The segments of one state: made once, since a search may take microseconds.
struct SegmentList {
    std::vector<const SegmentArrays*> arrays;  // kept alive by the list they came in
    std::vector<Segment> views;

    explicit SegmentList(std::vector<const SegmentArrays*> segments)
        : arrays(std::move(segments)) {
        for (const SegmentArrays* segment : arrays) views.push_back(segment->view);
    }
};

}  // namespace bitweigh
