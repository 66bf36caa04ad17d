// Segments and bands together with the arrays they read, which they keep alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/mapped_pages.h"
#include "engine/rows/id_column.h"
#include "engine/rows/id_order.h"
#include "engine/rows/lean_codes.h"
#include "engine/rows/segment.h"

namespace bitweigh {

struct BandArrays {
    Input<std::uint16_t, 1> bits;
    Input<std::uint32_t, 1> starts;
    Blocks blocks;
    std::optional<Input<Row, 1>> rows;  // Rows in the band's order; none if it is the segment's.

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

// Ids that are not stored but counted up from the first.
struct CountedIds {
    Id first = 0;
    std::size_t rows = 0;
};

// Ids by row: stored in 64 or 32 bits, or counted.
using StoredIds = std::variant<Ids, Input<std::uint32_t, 1>, CountedIds>;

inline IdColumn column_of(const StoredIds& ids) {
    if (const auto* counted = std::get_if<CountedIds>(&ids)) return IdColumn(counted->first);
    if (const auto* wide = std::get_if<Ids>(&ids)) return IdColumn(wide->data());
    return IdColumn(std::get<Input<std::uint32_t, 1>>(ids).data());
}
inline std::size_t size_of(const StoredIds& ids) {
    if (const auto* counted = std::get_if<CountedIds>(&ids)) return counted->rows;
    if (const auto* wide = std::get_if<Ids>(&ids)) return wide->shape(0);
    return std::get<Input<std::uint32_t, 1>>(ids).shape(0);
}

struct SegmentArrays {
    Blocks blocks;
    StoredIds ids;
    std::optional<Input<Row, 1>> by_id;  // Rows in ascending id; none if rows are in that order.
    std::size_t n_bytes;                 // Number of bytes of a code.
    std::vector<BandArrays> band_arrays;
    std::vector<Band> bands;           // Views of band_arrays.
    std::deque<LeanCodes> lean_codes;  // Those of each band; empty if codes are stored whole.
    std::deque<LeanRows> lean_rows;
    std::optional<IdOrder> id_order;
    std::optional<ReadAhead> read_ahead;  // Set, with the next, if the arrays are mapped.
    std::optional<MappedPages> mapped;
    Segment view;  // View of all of these.

    SegmentArrays(Blocks blocks_in, StoredIds ids_in, std::optional<Input<Row, 1>> by_id_in,
                  std::size_t n_bits, const Objects<BandArrays>& bands_in,
                  const std::optional<std::string>& lean_order, bool is_mapped)
        : blocks(std::move(blocks_in)),
          ids(std::move(ids_in)),
          by_id(std::move(by_id_in)),
          n_bytes(bytes_of(n_bits)) {
        const std::size_t rows = size_of(ids);
        if (rows >= max_segment_rows) throw std::invalid_argument("a segment has too many rows");
        if (const auto* counted = std::get_if<CountedIds>(&ids)) {
            if (counted->first < 0 || counted->first > counted_ids_end - static_cast<Id>(rows)) {
                throw std::invalid_argument("counted ids must be at least 0 and less than 2**61");
            }
        }
        if (by_id && by_id->shape(0) != rows) {
            throw std::invalid_argument("by_id must have as many rows as its segment");
        }
        if (lean_order && n_bits > max_lean_bits) {
            throw std::invalid_argument("lean codes have at most 64 bits");
        }
        std::vector<bool> covered(n_bits);
        for (const auto& band : all_shared_from<BandArrays>(bands_in)) {
            if (!band) throw std::invalid_argument("a band must not be None");
            add_band(*band, n_bits, covered,
                     lean_order ? std::optional(order_named(*lean_order)) : std::nullopt);
        }
        if (lean_order && bands.empty()) throw std::invalid_argument("lean codes need a band");
        check_blocks(blocks, lean_order ? lean_codes[0].n_bytes() : n_bytes);
        view = {
            {blocks.data(), column_of(ids), rows, nullptr}, bands, by_id ? by_id->data() : nullptr};
        if (lean_order) {
            view.lean = &lean_rows[0];
            view.id_order = &id_order.emplace(column_of(ids), rows);
        }
        if (is_mapped) view.mapped = &mapped.emplace(read_ahead.emplace());
    }
    std::size_t id_lookup_bytes() const {
        if (id_order) return id_order->bytes();
        return by_id ? by_id->nbytes() : 0;
    }
    // The view points into `bands`.
    SegmentArrays(const SegmentArrays&) = delete;
    SegmentArrays& operator=(const SegmentArrays&) = delete;

private:
    void check_blocks(const Blocks& checked, std::size_t row_bytes) const {
        if (checked.shape(0) != blocks_of(size_of(ids)) * block_rows * row_bytes) {
            throw std::invalid_argument("blocks and ids do not have the same number of rows");
        }
    }
    void add_band(const BandArrays& band, std::size_t n_bits, std::vector<bool>& covered,
                  std::optional<BitOrder> lean_order) {
        if (band.rows && band.rows->shape(0) != size_of(ids)) {
            throw std::invalid_argument("a band must have as many rows as its segment");
        }
        for (std::size_t j = 0; j < band.bits.shape(0); ++j) {
            const std::size_t bit = band.bits.data()[j];
            if (bit >= n_bits) throw std::out_of_range("no such bit");
            // The bound that bands prove together holds only if each bit counts once.
            if (covered[bit]) throw std::invalid_argument("two bands have a bit in common");
            covered[bit] = true;
        }
        const std::span<const std::uint16_t> bits = {band.bits.data(), band.bits.shape(0)};
        const LeanRows* lean = nullptr;
        if (lean_order) {
            if (bands.empty() != !band.rows) {
                throw std::invalid_argument("lean rows are in the order of the first band");
            }
            lean_codes.emplace_back(bits, n_bits, *lean_order);
            lean = &lean_rows.emplace_back(
                LeanRows{&lean_codes.back(), band.starts.data(), band.starts.shape(0) - 1});
        }
        check_blocks(band.blocks, lean ? lean->codes->n_bytes() : n_bytes);
        band_arrays.push_back(band);
        bands.push_back({bits,
                         band.starts.data(),
                         {.blocks = band.blocks.data(),
                          .ids = column_of(ids),
                          .rows = size_of(ids),
                          .row_numbers = band.rows ? band.rows->data() : nullptr,
                          .lean = lean}});
    }
};

}  // namespace bitweigh
