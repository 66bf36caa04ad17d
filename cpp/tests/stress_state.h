// What stress_test.cpp searches: states that never change, one after the other, as an index makes
// them. A new one shares segments and denied rows with the old.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "engine/bits.h"
#include "engine/denied_rows.h"
#include "engine/segment.h"
#include "tests/banded_segment.h"
#include "tests/check.h"

namespace bitweigh::test {

inline constexpr std::size_t most_parts = 5;
inline constexpr std::size_t page_rows = DeniedPages::page_blocks * block_rows;
// With at most one row in so many allowed, only the blocks that have any are read.
inline constexpr std::size_t sparse = 64;

// What all states of a round have in common.
struct Format {
    std::size_t n_bits;
    BitOrder order;
    bool large;  // the first segment has more than one page of denied rows, and is never dropped
};

template <class Value>
using Shared = std::shared_ptr<const std::vector<Value>>;

// A segment as one state has it. Another state may share any of this.
struct Part {
    std::shared_ptr<const BandedSegment> arrays;
    bool counted_ids;                          // not stored
    Shared<char> gone;                         // by row: what answers are computed from
    Shared<std::uint32_t> masks;               // that `denied` was made from, if it was
    std::shared_ptr<const DeniedRows> denied;  // null: none
    Shared<std::uint32_t> allowed_blocks;      // null: all

    std::size_t rows() const { return arrays->ids().size(); }
};

class State {
public:
    explicit State(std::vector<Part> parts) : parts_(std::move(parts)), bands_(parts_.size()) {
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            const Part& part = parts_[i];
            Segment segment = part.arrays->view();
            if (part.counted_ids) segment.ids = IdColumn(part.arrays->ids()[0]);
            if (part.denied) {
                segment.denied = part.denied->view();
                segment.denied_rows = part.denied->count();
            }
            bands_[i].assign(segment.bands.begin(), segment.bands.end());
            for (Band& band : bands_[i]) {
                band.rows.ids = segment.ids;
                band.rows.denied = segment.denied;
            }
            segment.bands = bands_[i];
            if (part.allowed_blocks) segment.allowed_blocks = *part.allowed_blocks;
            segments_.push_back(segment);
        }
    }
    State(const State&) = delete;  // segments point to their bands
    State& operator=(const State&) = delete;

    const std::vector<Part>& parts() const { return parts_; }
    std::span<const Segment> segments() const { return segments_; }
    std::size_t rows() const {
        std::size_t rows = 0;
        for (const Part& part : parts_) rows += part.rows();
        return rows;
    }

private:
    std::vector<Part> parts_;
    std::vector<std::vector<Band>> bands_;
    std::vector<Segment> segments_;
};

// The newest state: as much of an index as searches and the writer share.
class Newest {
public:
    std::shared_ptr<const State> get() const {
        const std::lock_guard lock(mutex_);
        return state_;
    }
    void replace(std::shared_ptr<const State> state) {
        const std::lock_guard lock(mutex_);
        state_.swap(state);
    }

private:
    mutable std::mutex mutex_;
    std::shared_ptr<const State> state_ = std::make_shared<const State>(std::vector<Part>());
};

// The part without some more rows, as removing makes it.
inline Part without(Part part, const std::vector<Row>& rows) {
    const DeniedRows none(part.rows());
    const DeniedRows& before = part.denied ? *part.denied : none;
    part.denied = std::make_shared<const DeniedRows>(before.with(rows.data(), rows.size()));
    std::vector<char> gone = *part.gone;
    for (const Row row : rows) gone[row] = 1;
    part.gone = std::make_shared<const std::vector<char>>(std::move(gone));
    return part;
}

// The part with each row left only with a chance of so many thousandths, as a filter or a saved
// index makes it: by masks, with the blocks listed that have any row left if those are few.
inline Part thinned(Part part, Rng& rng, std::size_t chance, bool list_blocks) {
    std::vector<char> gone = *part.gone;
    std::vector<std::uint32_t> masks(blocks_of(part.rows()), ~std::uint32_t{0});
    std::vector<std::uint32_t> blocks;
    std::size_t left = 0;
    for (std::size_t row = 0; row < gone.size(); ++row) {
        gone[row] = gone[row] || pick(rng, 999) >= chance;
        if (gone[row]) continue;
        ++left;
        masks[row / block_rows] &= ~(std::uint32_t{1} << row % block_rows);
        const auto block = static_cast<std::uint32_t>(row / block_rows);
        if (blocks.empty() || blocks.back() != block) blocks.push_back(block);
    }
    part.gone = std::make_shared<const std::vector<char>>(std::move(gone));
    part.masks = std::make_shared<const std::vector<std::uint32_t>>(std::move(masks));
    part.denied = std::make_shared<const DeniedRows>(part.masks->data(), part.rows());
    if (list_blocks && left * sparse <= part.rows()) {
        // Not null where there are none, as the data of an empty array may be.
        blocks.reserve(1);
        part.allowed_blocks = std::make_shared<const std::vector<std::uint32_t>>(std::move(blocks));
    }
    return part;
}

// Makes one state after the other.
class Writer {
public:
    Writer(const Format& format, Newest& newest, std::uint64_t seed)
        : format_(format), newest_(newest), rng_(seed) {
        const std::size_t rows = (format_.large ? page_rows : 0) + 100;
        newest_.replace(std::make_shared<const State>(std::vector<Part>{fresh_part(rows)}));
    }

    void step() {
        std::vector<Part> parts = newest_.get()->parts();
        const std::size_t action = pick(rng_, 9);
        if (action == 0 && parts.size() < most_parts) {
            parts.push_back(fresh_part(1 + pick(rng_, 600)));
        } else if (action == 1 && parts.size() > 1) {
            const std::size_t number = format_.large + pick(rng_, parts.size() - 1 - format_.large);
            parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(number));
        } else {
            Part& part = parts[pick(rng_, parts.size() - 1)];
            std::vector<Row> rows(1 + pick(rng_, 9));
            for (Row& row : rows) row = static_cast<Row>(pick(rng_, part.rows() - 1));
            part = without(part, rows);
        }
        newest_.replace(std::make_shared<const State>(std::move(parts)));
        ++states;
    }

    std::size_t states = 0;

private:
    Part fresh_part(std::size_t rows) {
        const std::size_t n_bytes = bytes_of(format_.n_bits);
        std::vector<std::uint8_t> codes(rows * n_bytes);
        const unsigned unused = unused_mask(format_.n_bits, format_.order);
        for (std::size_t i = 0; i < codes.size(); ++i) {
            codes[i] = static_cast<std::uint8_t>(rng_());
            if (i % n_bytes == n_bytes - 1) codes[i] &= static_cast<std::uint8_t>(~unused);
        }
        const bool counted = pick(rng_, 2) == 0;
        std::vector<Id> ids(rows);
        std::iota(ids.begin(), ids.end(), next_id_ + (pick(rng_, 3) ? 0 : Id{1} << 40));
        next_id_ += static_cast<Id>(rows);
        if (!counted) std::shuffle(ids.begin(), ids.end(), rng_);
        Layout layout;
        if (pick(rng_, 3)) layout = draw_layout(rng_, format_.n_bits, 4, 7);
        // Counted ids leave the rows no other order than theirs.
        const bool own_order = counted || pick(rng_, 1) == 1;
        Part part{std::make_shared<const BandedSegment>(codes, ids, format_.n_bits, format_.order,
                                                        std::move(layout), own_order),
                  counted,
                  std::make_shared<const std::vector<char>>(rows),
                  nullptr,
                  nullptr,
                  nullptr};
        // Where rows are many few are left, so that answers are soon computed.
        if (rows > page_rows) return thinned(part, rng_, 20, false);
        return pick(rng_, 1) ? part : thinned(part, rng_, 900, false);
    }

    const Format& format_;
    Newest& newest_;
    Rng rng_;
    Id next_id_ = 0;
};

}  // namespace bitweigh::test
