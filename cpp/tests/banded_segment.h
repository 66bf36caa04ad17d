// A segment with bands for tests, built as an index builds it, together with its arrays. They have
// exactly the sizes that the engine requires, so that a sanitizer detects every access beyond them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "engine/probe/band_table.h"
#include "engine/rows/bits.h"
#include "engine/rows/id_lookup.h"
#include "engine/rows/segment.h"
#include "tests/check.h"

namespace bitweigh::test {

// The bits of each band.
using Layout = std::vector<std::vector<std::uint16_t>>;

// Draws up to `max_bands` bands of 1 to `max_bits` bits from all bits, in any order, until no bit
// is left. Most layouts have bits that are in no band.
inline Layout draw_layout(Rng& rng, std::size_t n_bits, std::size_t max_bands,
                          std::size_t max_bits) {
    std::vector<std::uint16_t> bits(n_bits);
    std::iota(bits.begin(), bits.end(), std::uint16_t{0});
    if (pick(rng, 1)) std::shuffle(bits.begin(), bits.end(), rng);
    Layout layout;
    for (std::size_t b = 1 + pick(rng, max_bands - 1); b > 0 && !bits.empty(); --b) {
        const std::size_t size = std::min(1 + pick(rng, max_bits - 1), bits.size());
        layout.emplace_back(bits.end() - static_cast<std::ptrdiff_t>(size), bits.end());
        bits.resize(bits.size() - size);
    }
    return layout;
}

class BandedSegment {
public:
    struct BandArrays {
        std::vector<std::uint16_t> bits;
        std::vector<std::uint32_t> starts;
        std::vector<Row> rows;
        std::vector<std::uint8_t> blocks;
    };

    // `own_order`: the first band stores its rows in a separate order, like the others; otherwise
    // the segment is put in that band's order. `codes` has shape (n, n_bytes); the layout may be
    // empty. `counted_ids`: ids are not stored but counted up from the first.
    BandedSegment(std::span<const std::uint8_t> codes, std::span<const Id> ids, std::size_t n_bits,
                  BitOrder order, Layout layout, bool own_order, bool counted_ids = false)
        : codes_(codes.begin(), codes.end()),
          ids_(ids.begin(), ids.end()),
          counted_ids_(counted_ids),
          n_bytes_(bytes_of(n_bits)) {
        for (auto& bits : layout) sort_band(std::move(bits), order);
        if (!layout.empty() && !own_order) put_in_order_of_first_band(order);
        const auto fits = [](Id id) { return id < Id{1} << 32; };
        if (std::all_of(ids_.begin(), ids_.end(), fits)) {
            for (const Id id : ids_) narrow_ids_.push_back(static_cast<std::uint32_t>(id));
        }
        if (!std::is_sorted(ids_.begin(), ids_.end())) {
            by_id_.resize(ids_.size());
            Checkpoint checkpoint = uninterrupted();
            sort_by_id(ids_.data(), ids_.size(), by_id_.data(), checkpoint);
        }
        blocks_.resize(blocks_of(ids_.size()) * n_bytes_ * block_rows);
        pack_blocks(codes_.data(), ids_.size(), n_bytes_, blocks_.data());
        for (BandArrays& band : arrays_) {
            band.blocks.resize(blocks_.size());
            pack_rows(codes_.data(), n_bytes_, band.rows.data(), ids_.size(), band.blocks.data());
        }
        for (std::size_t b = 0; b < arrays_.size(); ++b) {
            Band band{arrays_[b].bits, arrays_[b].starts.data(), rows()};
            if (b > 0 || own_order) {
                band.rows.blocks = arrays_[b].blocks.data();
                band.rows.row_numbers = arrays_[b].rows.data();
            }
            bands_.push_back(band);
        }
    }
    BandedSegment(const BandedSegment&) = delete;
    BandedSegment& operator=(const BandedSegment&) = delete;

    // The segment with the bands, and without.
    Segment view() const {
        Segment segment = plain_view();
        segment.bands = bands_;
        return segment;
    }
    Segment plain_view() const {
        Segment segment{};
        static_cast<BlockRows&>(segment) = rows();
        segment.by_id = by_id_.empty() ? nullptr : by_id_.data();
        return segment;
    }

    // Codes and ids in the order of the segment.
    const std::vector<std::uint8_t>& codes() const { return codes_; }
    const std::vector<Id>& ids() const { return ids_; }
    // The arrays of the bands, which tests damage in place.
    std::vector<BandArrays>& arrays() { return arrays_; }

private:
    BlockRows rows() const {
        BlockRows rows{};
        rows.blocks = blocks_.data();
        // Uses both ways to store ids.
        const bool narrow = !narrow_ids_.empty() && ids_.size() % 2 == 0;
        rows.ids = narrow ? IdColumn(narrow_ids_.data()) : IdColumn(ids_.data());
        if (counted_ids_) rows.ids = IdColumn(ids_[0]);
        rows.rows = ids_.size();
        return rows;
    }

    void sort_band(std::vector<std::uint16_t> bits, BitOrder order) {
        BandArrays band{std::move(bits), {}, std::vector<Row>(ids_.size()), {}};
        band.starts.resize((std::size_t{1} << band.bits.size()) + 1);
        std::vector<std::uint32_t> keys(ids_.size());
        keys_of(codes_.data(), ids_.size(), n_bytes_, band.bits, order, keys.data());
        Checkpoint checkpoint = uninterrupted();
        sort_by_key(keys.data(), ids_.size(), band.bits.size(), band.starts.data(),
                    band.rows.data(), checkpoint);
        arrays_.push_back(std::move(band));
    }

    void put_in_order_of_first_band(BitOrder order) {
        const std::vector<Row> rows = arrays_[0].rows;
        const std::vector<std::uint8_t> codes = codes_;
        const std::vector<Id> ids = ids_;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            ids_[i] = ids[rows[i]];
            std::copy_n(codes.data() + rows[i] * n_bytes_, n_bytes_, codes_.data() + i * n_bytes_);
        }
        for (BandArrays& band : std::exchange(arrays_, {})) sort_band(std::move(band.bits), order);
    }

    std::vector<std::uint8_t> codes_;
    std::vector<Id> ids_;
    std::vector<std::uint32_t> narrow_ids_;  // The same ids; empty if they exceed 32 bits.
    std::vector<Row> by_id_;                 // Rows in ascending id; empty if ids are ascending.
    bool counted_ids_;
    std::size_t n_bytes_;
    std::vector<std::uint8_t> blocks_;
    std::vector<BandArrays> arrays_;
    std::vector<Band> bands_;
};

// The view of a segment with its bands, which keeps the segment alive.
inline std::shared_ptr<const Segment> shared_view(std::shared_ptr<const BandedSegment> arrays) {
    struct OwningView {
        std::shared_ptr<const BandedSegment> arrays;
        Segment view;
    };
    const Segment view = arrays->view();
    const auto owner = std::make_shared<const OwningView>(OwningView{std::move(arrays), view});
    return {owner, &owner->view};
}

}  // namespace bitweigh::test
