#include "engine/rows/segment_set.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine/rows/bits.h"
#include "engine/rows/id_column.h"
#include "engine/rows/id_lookup.h"
#include "engine/tuning.h"

namespace bitweigh {

namespace {

// The bytes that looking up an id, and reading the flags of a block, count as towards the next
// interrupt check.
constexpr std::size_t lookup_bytes = 8192;
constexpr std::size_t flags_bytes = 1024;

// A mask of the rows of a block whose id i has flags[i] != 0.
std::uint32_t flagged_rows(const Segment& segment, std::size_t block,
                           std::span<const std::uint8_t> flags) {
    const std::size_t first = block * block_rows;
    const std::size_t n = std::min(block_rows, segment.rows - first);
    // Ids of a damaged file may be negative; as unsigned numbers they are beyond all flags.
    const auto first_id = static_cast<std::uint64_t>(segment.ids[first]);
    if (segment.ids.is_counted() && first_id >= flags.size()) return 0;
    if (segment.ids.is_counted() && flags.size() - first_id >= block_rows) {
        return ~zero_bytes(flags.data() + first_id);
    }
    std::uint32_t flagged = 0;
    for (std::size_t r = 0; r < n; ++r) {
        const auto id = static_cast<std::uint64_t>(segment.ids[first + r]);
        flagged |= std::uint32_t{id < flags.size() && flags[id] != 0} << r;
    }
    return flagged;
}

}  // namespace

SegmentSet::SegmentSet(std::vector<Member> members)
    : members_(std::move(members)), bands_(members_.size()), allowed_blocks_(members_.size()) {
    views_.reserve(members_.size());
    for (std::size_t s = 0; s < members_.size(); ++s) {
        const RowMask* mask = members_[s].mask.get();
        Segment& view = views_.emplace_back(*members_[s].segment);
        if (!mask) continue;
        if (mask->rows() != view.rows) {
            throw std::invalid_argument("a row mask must have as many rows as its segment");
        }
        view.mask = mask->view();
        view.denied_rows = mask->denied_rows();
        bands_[s].assign(view.bands.begin(), view.bands.end());
        for (Band& band : bands_[s]) band.rows.mask = view.mask;
        view.bands = bands_[s];
    }
}

std::optional<RowLocation> SegmentSet::find(Id id) const {
    for (std::size_t s = 0; s < views_.size(); ++s) {
        const Segment& view = views_[s];
        const std::size_t row = find_row(view.ids, view.by_id, view.rows, id);
        if (row < view.rows && !view.mask.denies(static_cast<Row>(row))) {
            return RowLocation{s, static_cast<Row>(row)};
        }
    }
    return std::nullopt;
}

template <class Missing>
std::vector<std::vector<Row>> SegmentSet::rows_with(std::span<const Id> ids, Checkpoint& checkpoint,
                                                    Missing missing) const {
    std::vector<std::vector<Row>> rows(views_.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (const std::optional<RowLocation> location = find(ids[i])) {
            rows[location->segment].push_back(location->row);
        } else {
            missing(i);
        }
        checkpoint.done(lookup_bytes);
    }
    return rows;
}

RowMask SegmentSet::mask_of(std::size_t segment) const {
    const Member& member = members_[segment];
    return member.mask ? *member.mask : RowMask(member.segment->rows);
}

Removal SegmentSet::remove(std::span<const Id> ids, Checkpoint& checkpoint) const {
    Removal removal;
    const auto rows = rows_with(ids, checkpoint, [&](std::size_t i) {
        if (!removal.missing) removal.missing = i;
    });
    for (std::size_t s = 0; s < rows.size(); ++s) {
        if (!rows[s].empty()) removal.changes.push_back({s, mask_of(s).denying(rows[s])});
    }
    return removal;
}

SegmentSet SegmentSet::filtered_by_ids(std::span<const Id> ids, FilterKind kind,
                                       Checkpoint& checkpoint) const {
    const auto rows = rows_with(ids, checkpoint, [](std::size_t) {});
    std::vector<Member> members = members_;
    for (std::size_t s = 0; s < rows.size(); ++s) {
        // Removed rows are not found, so none of them is allowed again.
        if (kind == FilterKind::allow) {
            const RowMask none = RowMask::denying_all(members[s].segment->rows);
            members[s].mask = std::make_shared<const RowMask>(none.allowing(rows[s]));
        } else if (!rows[s].empty()) {
            members[s].mask = std::make_shared<const RowMask>(mask_of(s).denying(rows[s]));
        }
    }
    SegmentSet filtered(std::move(members));
    filtered.list_allowed_blocks();
    return filtered;
}

SegmentSet SegmentSet::filtered_by_flags(std::span<const std::uint8_t> flags, FilterKind kind,
                                         Checkpoint& checkpoint) const {
    std::vector<Member> members = members_;
    for (std::size_t s = 0; s < members.size(); ++s) {
        const Segment& segment = views_[s];
        const auto denied_in = [&](std::size_t block) {
            const std::uint32_t flagged = flagged_rows(segment, block, flags);
            checkpoint.done(flags_bytes);
            return segment.mask.denied_in(block) | (kind == FilterKind::deny ? flagged : ~flagged);
        };
        members[s].mask =
            std::make_shared<const RowMask>(RowMask::from_blocks(segment.rows, denied_in));
    }
    SegmentSet filtered(std::move(members));
    filtered.list_allowed_blocks();
    return filtered;
}

void SegmentSet::list_allowed_blocks() {
    for (std::size_t s = 0; s < views_.size(); ++s) {
        const RowMask* mask = members_[s].mask.get();
        if (!mask || mask->allowed_rows() * sparse_filter_ratio > mask->rows()) continue;
        allowed_blocks_[s] = mask->allowed_blocks();
        // Allocates memory even for an empty list: null would mean all blocks.
        allowed_blocks_[s].reserve(1);
        views_[s].allowed_blocks = allowed_blocks_[s];
    }
}

}  // namespace bitweigh
