// The states that stress_test.cpp searches: immutable sets of segments that replace each other, as
// in an index. Each state also has its rows in a plain form, which answers are checked against.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/rows/bits.h"
#include "engine/rows/row_mask.h"
#include "engine/rows/segment_set.h"
#include "tests/banded_segment.h"
#include "tests/check.h"

namespace bitweigh::test {

inline constexpr std::size_t max_parts = 5;
inline constexpr std::size_t page_rows = RowMaskView::page_blocks * block_rows;

// The format shared by all states of a round.
struct Format {
    std::size_t n_bits;
    BitOrder order;
    bool large;  // Whether the first segment, never dropped, has more than one page of masks.
};

// A segment as one state has it. Other states may share any of this.
struct Part {
    std::shared_ptr<const BandedSegment> arrays;
    SegmentSet::Member member;
    std::shared_ptr<const std::vector<char>> gone;  // Flags by row: removed or filtered out.

    std::size_t rows() const { return arrays->ids().size(); }
};

inline std::vector<SegmentSet::Member> members_of(const std::vector<Part>& parts) {
    std::vector<SegmentSet::Member> members;
    for (const Part& part : parts) members.push_back(part.member);
    return members;
}

class State {
public:
    explicit State(std::vector<Part> parts) : State(parts, SegmentSet(members_of(parts))) {}
    // `set` is filtered: its masks are not those of the parts' members.
    State(std::vector<Part> parts, SegmentSet set)
        : parts_(std::move(parts)), set_(std::move(set)) {}

    const std::vector<Part>& parts() const { return parts_; }
    const SegmentSet& set() const { return set_; }
    std::size_t rows() const {
        std::size_t rows = 0;
        for (const Part& part : parts_) rows += part.rows();
        return rows;
    }

private:
    std::vector<Part> parts_;
    SegmentSet set_;
};

// The newest state, shared by searches and the writer.
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

// Marks the rows of the part for which is_gone(row) is true.
template <class IsGone>
void mark_gone(Part& part, IsGone is_gone) {
    std::vector<char> gone = *part.gone;
    for (std::size_t row = 0; row < gone.size(); ++row) gone[row] = gone[row] || is_gone(row);
    part.gone = std::make_shared<const std::vector<char>>(std::move(gone));
}

// Returns the part with each row kept with a chance of `chance` thousandths, denied by stored masks
// as a saved index has them.
inline Part thinned(Part part, Rng& rng, std::size_t chance) {
    mark_gone(part, [&](std::size_t) { return pick(rng, 999) >= chance; });
    std::shared_ptr<std::uint32_t[]> masks(new std::uint32_t[blocks_of(part.rows())]());
    for (std::size_t row = 0; row < part.rows(); ++row) {
        masks[row / block_rows] |= std::uint32_t{(*part.gone)[row] != 0} << row % block_rows;
    }
    part.member.mask = std::make_shared<const RowMask>(std::move(masks), part.rows());
    return part;
}

// Returns the state with a filter, which names each row with a chance of `chance` thousandths.
inline std::shared_ptr<const State> filtered(const State& state, std::size_t n_bytes, Rng& rng,
                                             std::size_t chance) {
    std::vector<Part> parts = state.parts();
    const FilterKind kind = pick(rng, 1) ? FilterKind::allow : FilterKind::deny;
    Checkpoint checkpoint = uninterrupted();
    if (pick(rng, 2) == 0) {
        std::vector<std::uint8_t> flags(pick(rng, 2 * page_rows));
        for (std::uint8_t& flag : flags) flag = pick(rng, 999) < chance;
        for (Part& part : parts) {
            mark_gone(part, [&](std::size_t row) {
                const auto id = static_cast<std::size_t>(part.arrays->ids()[row]);
                const bool named = id < flags.size() && flags[id];
                return named == (kind == FilterKind::deny);
            });
        }
        return std::make_shared<const State>(
            std::move(parts), state.set().filtered_by_flags(flags, kind, n_bytes, checkpoint));
    }
    std::vector<Id> ids = {Id{1} << 60};  // which no state has
    for (Part& part : parts) {
        const std::vector<char> was_gone = *part.gone;
        mark_gone(part, [&](std::size_t row) {
            // Few of the rows that are gone are named: looking them up takes time.
            const bool named = pick(rng, was_gone[row] ? 99'999 : 999) < chance;
            if (named) ids.push_back(part.arrays->ids()[row]);
            return named == (kind == FilterKind::deny);
        });
    }
    std::shuffle(ids.begin(), ids.end(), rng);
    return std::make_shared<const State>(
        std::move(parts), state.set().filtered_by_ids(ids, kind, n_bytes, checkpoint));
}

// Replaces one state by the next.
class Writer {
public:
    Writer(const Format& format, Newest& newest, std::uint64_t seed)
        : format_(format), newest_(newest), rng_(seed) {
        const std::size_t rows = (format_.large ? page_rows : 0) + 100;
        newest_.replace(std::make_shared<const State>(std::vector<Part>{fresh_part(rows)}));
    }

    void step() {
        const std::shared_ptr<const State> state = newest_.get();
        std::vector<Part> parts = state->parts();
        const std::size_t action = pick(rng_, 9);
        if (action == 0 && parts.size() < max_parts) {
            parts.push_back(fresh_part(1 + pick(rng_, 600)));
        } else if (action == 1 && parts.size() > 1) {
            const std::size_t number = format_.large + pick(rng_, parts.size() - 1 - format_.large);
            parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(number));
        } else {
            remove(state->set(), parts);
        }
        newest_.replace(std::make_shared<const State>(std::move(parts)));
        ++states;
    }

    std::size_t states = 0;

private:
    // Removes a few rows of any parts; some may be gone already.
    void remove(const SegmentSet& set, std::vector<Part>& parts) {
        std::vector<Id> ids;
        std::vector<std::set<std::size_t>> rows(parts.size());
        bool has_missing = false;
        for (std::size_t n = 1 + pick(rng_, 9); n > 0; --n) {
            const std::size_t number = pick(rng_, parts.size() - 1);
            const Part& part = parts[number];
            const std::size_t row = pick(rng_, part.rows() - 1);
            ids.push_back(part.arrays->ids()[row]);
            rows[number].insert(row);
            has_missing = has_missing || (*part.gone)[row];
        }
        Checkpoint checkpoint = uninterrupted();
        Removal removal = set.remove(ids, checkpoint);
        if (removal.missing.has_value() != has_missing) {
            throw std::logic_error("a removal reports wrongly whether an id is missing");
        }
        for (Removal::Change& change : removal.changes) {
            parts[change.segment].member.mask =
                std::make_shared<const RowMask>(std::move(change.mask));
        }
        for (std::size_t number = 0; number < parts.size(); ++number) {
            if (rows[number].empty()) continue;
            mark_gone(parts[number], [&](std::size_t row) { return rows[number].contains(row); });
        }
    }

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
        // Rows with counted ids cannot be reordered.
        const bool own_order = counted || pick(rng_, 1) == 1;
        Part part;
        part.arrays = std::make_shared<const BandedSegment>(
            codes, ids, format_.n_bits, format_.order, std::move(layout), own_order, counted);
        part.member.segment = shared_view(part.arrays);
        part.gone = std::make_shared<const std::vector<char>>(rows);
        // Of many rows only a few are kept, so that expected answers are computed quickly.
        if (rows > page_rows) return thinned(part, rng_, 20);
        return pick(rng_, 1) ? part : thinned(part, rng_, 900);
    }

    const Format& format_;
    Newest& newest_;
    Rng rng_;
    Id next_id_ = 0;
};

}  // namespace bitweigh::test
