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
    : members_(std::move(members)), bands_(members_.size()) {
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

std::vector<RowLocation> SegmentSet::find_ascending(std::span<const Id> ids,
                                                    Checkpoint& checkpoint) const {
    std::vector<RowLocation> locations(ids.size(), {no_segment, 0});
    for (std::size_t s = 0; s < views_.size(); ++s) {
        const Segment& view = views_[s];
        const FoundRows found =
            find_rows(view.ids, view.rows_by_id(checkpoint), view.rows, ids, checkpoint);
        for (std::size_t i = 0; i < found.rows.size(); ++i) {
            RowLocation& location = locations[found.first + i];
            const Row row = found.rows[i];
            if (row >= view.rows || view.mask.denies(row)) continue;
            if (location.segment == no_segment) location = {s, row};
        }
    }
    return locations;
}

std::optional<RowLocation> SegmentSet::find(Id id, Checkpoint& checkpoint) const {
    for (std::size_t s = 0; s < views_.size(); ++s) {
        const Segment& view = views_[s];
        const std::size_t row = find_row(view.ids, view.rows_by_id(checkpoint), view.rows, id);
        if (row < view.rows && !view.mask.denies(static_cast<Row>(row))) {
            return RowLocation{s, static_cast<Row>(row)};
        }
    }
    return std::nullopt;
}

std::vector<std::vector<Row>> SegmentSet::by_segment(std::span<const RowLocation> locations) const {
    std::vector<std::vector<Row>> rows(views_.size());
    for (const RowLocation& location : locations) {
        if (location.segment != no_segment) rows[location.segment].push_back(location.row);
    }
    return rows;
}

RowMask SegmentSet::mask_of(std::size_t segment) const {
    const Member& member = members_[segment];
    return member.mask ? *member.mask : RowMask(member.segment->rows);
}

Removal SegmentSet::remove(std::span<const Id> ids, Checkpoint& checkpoint) const {
    Removal removal;
    std::vector<RowLocation> locations;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (const std::optional<RowLocation> location = find(ids[i], checkpoint)) {
            locations.push_back(*location);
        } else if (!removal.missing) {
            removal.missing = i;
        }
        checkpoint.done(lookup_bytes);
    }
    const auto rows = by_segment(locations);
    for (std::size_t s = 0; s < rows.size(); ++s) {
        if (!rows[s].empty()) removal.changes.push_back({s, mask_of(s).denying(rows[s])});
    }
    return removal;
}

SegmentSet SegmentSet::filtered_by_ids(std::span<const Id> ids, FilterKind kind,
                                       std::size_t n_bytes, Checkpoint& checkpoint) const {
    // Sorted ids are looked up faster, and each row must be copied only once.
    std::vector<RowLocation> locations = find_ascending(sorted_distinct(ids), checkpoint);
    const auto rows = by_segment(locations);
    std::vector<Member> members = members_;
    std::vector<RowLocation> few_rows;
    if (kind == FilterKind::deny) {
        for (std::size_t s = 0; s < rows.size(); ++s) {
            const std::size_t allowed_before = views_[s].rows - views_[s].denied_rows;
            if (rows[s].empty() && !are_few(s, allowed_before)) continue;
            replace_mask(members[s], s, mask_of(s).denying(rows[s]), few_rows);
        }
        return restricted_to(std::move(members), few_rows, n_bytes, checkpoint);
    }
    for (std::size_t s = 0; s < rows.size(); ++s) {
        if (are_few(s, rows[s].size())) {
            members[s].segment = nullptr;
        } else {
            // Removed rows are not found, so none of them is allowed again.
            const RowMask none = RowMask::denying_all(members[s].segment->rows);
            members[s].mask = std::make_shared<const RowMask>(none.allowing(rows[s]));
        }
    }
    // In ascending id, as they were looked up.
    std::erase_if(locations, [&](const RowLocation& location) {
        return location.segment == no_segment || members[location.segment].segment;
    });
    return restricted_to(std::move(members), locations, n_bytes, checkpoint);
}

SegmentSet SegmentSet::filtered_by_flags(std::span<const std::uint8_t> flags, FilterKind kind,
                                         std::size_t n_bytes, Checkpoint& checkpoint) const {
    std::vector<Member> members = members_;
    std::vector<RowLocation> few_rows;
    for (std::size_t s = 0; s < members.size(); ++s) {
        const Segment& segment = views_[s];
        const auto denied_in = [&](std::size_t block) {
            const std::uint32_t flagged = flagged_rows(segment, block, flags);
            checkpoint.done(flags_bytes);
            return segment.mask.denied_in(block) | (kind == FilterKind::deny ? flagged : ~flagged);
        };
        replace_mask(members[s], s, RowMask::from_blocks(segment.rows, denied_in), few_rows);
    }
    return restricted_to(std::move(members), few_rows, n_bytes, checkpoint);
}

bool SegmentSet::are_few(std::size_t segment, std::size_t rows) const {
    return rows * gathered_filter_ratio <= views_[segment].rows;
}

void SegmentSet::replace_mask(Member& member, std::size_t segment, RowMask mask,
                              std::vector<RowLocation>& few_rows) const {
    if (are_few(segment, mask.allowed_rows())) {
        mask.visit_allowed([&](Row row) { few_rows.push_back({segment, row}); });
        member.segment = nullptr;
    } else {
        member.mask = std::make_shared<const RowMask>(std::move(mask));
    }
}

SegmentSet SegmentSet::restricted_to(std::vector<Member> members,
                                     std::span<const RowLocation> few_rows, std::size_t n_bytes,
                                     Checkpoint& checkpoint) const {
    std::erase_if(members, [](const Member& member) { return !member.segment; });
    if (few_rows.empty()) return SegmentSet(std::move(members));
    auto gathered = std::make_shared<const GatheredRows>(views_, few_rows, n_bytes, checkpoint);
    members.insert(members.begin(), Member{{gathered, &gathered->view()}, nullptr});
    SegmentSet set(std::move(members));
    set.gathered_ = std::move(gathered);
    return set;
}

std::size_t SegmentSet::filter_bytes() const {
    std::size_t bytes = gathered_ ? gathered_->bytes() : 0;
    for (const Member& member : members_) bytes += member.mask ? member.mask->bytes() : 0;
    return bytes;
}

}  // namespace bitweigh
