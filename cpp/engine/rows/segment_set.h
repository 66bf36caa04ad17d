// The segments of one state of an index: finds ids, removes rows, and filters the rows that a
// search may return. A set never changes; sets derived from it share its segments and the masks, or
// pages of masks, that stay the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/parallel.h"
#include "engine/rows/gathered_rows.h"
#include "engine/rows/row_mask.h"
#include "engine/rows/segment.h"
#include "engine/types.h"

namespace bitweigh {

// The result of removing ids.
struct Removal {
    struct Change {
        std::size_t segment;  // Index of the segment in the set.
        RowMask mask;         // New mask, which denies all rows removed so far.
    };
    std::vector<Change> changes;         // Segments that have any of the ids, in ascending order.
    std::optional<std::size_t> missing;  // Position of the first id that the set does not have.
};

// Whether a filter allows or denies the rows it names. It does the opposite to all others.
enum class FilterKind { allow, deny };

class SegmentSet {
public:
    struct Member {
        std::shared_ptr<const Segment> segment;  // Segment whose view has no mask.
        std::shared_ptr<const RowMask> mask;     // Mask of its rows; null if every row is allowed.
    };

    // Throws std::invalid_argument if a mask and its segment differ in their number of rows.
    explicit SegmentSet(std::vector<Member> members);
    // Not copyable: views point into vectors, whose elements stay in place only when moved.
    SegmentSet(SegmentSet&&) = default;
    SegmentSet& operator=(SegmentSet&&) = default;

    // The members with their masks, in their order; valid while this lives.
    std::span<const Segment> segments() const { return views_; }

    // The location of the row with this id, if the set has it and allows it.
    std::optional<RowLocation> find(Id id, Checkpoint& checkpoint) const;

    // The same for many ids, which ascend; the segment is no_segment where there is none.
    static constexpr std::size_t no_segment = std::numeric_limits<std::size_t>::max();
    std::vector<RowLocation> find_ascending(std::span<const Id> ids, Checkpoint& checkpoint) const;

    // Computes the masks that deny these ids; the set itself stays as it is. An id may occur twice.
    Removal remove(std::span<const Id> ids, Checkpoint& checkpoint) const;

    // Returns the set without the rows that the filter excludes. A segment of which few rows remain
    // is left out, and its rows are copied into one new segment, the first of the set; the other
    // segments get a mask. Ids that the set does not have are ignored; flags[i] != 0 names the id
    // i. Codes have n_bytes bytes. Allowing few ids takes time for each id, however many rows there
    // are, and denying few also for 16 KiB of mask around each; filtering by flags reads all rows.
    SegmentSet filtered_by_ids(std::span<const Id> ids, FilterKind kind, std::size_t n_bytes,
                               Checkpoint& checkpoint) const;
    SegmentSet filtered_by_flags(std::span<const std::uint8_t> flags, FilterKind kind,
                                 std::size_t n_bytes, Checkpoint& checkpoint) const;

    // Whether the first segment has copied rows.
    bool has_gathered_rows() const { return gathered_ != nullptr; }
    // The size of the masks, including what they share with those of other sets, and of the copied
    // rows.
    std::size_t filter_bytes() const;

private:
    // The rows of each segment among these locations.
    std::vector<std::vector<Row>> by_segment(std::span<const RowLocation> locations) const;
    RowMask mask_of(std::size_t segment) const;
    // Whether so few rows of a segment are to be copied rather than masked.
    bool are_few(std::size_t segment, std::size_t rows) const;
    // Gives a member another mask. If that allows few rows, lists them and takes the segment away.
    void replace_mask(Member& member, std::size_t segment, RowMask mask,
                      std::vector<RowLocation>& few_rows) const;
    // Returns the members that still have a segment, and the few rows of the others, as a set.
    SegmentSet restricted_to(std::vector<Member> members, std::span<const RowLocation> few_rows,
                             std::size_t n_bytes, Checkpoint& checkpoint) const;

    std::vector<Member> members_;
    std::vector<Segment> views_;            // Segments of the members with their masks.
    std::vector<std::vector<Band>> bands_;  // Bands with the mask, if there is one, for views_.
    std::shared_ptr<const GatheredRows> gathered_;  // Rows of the first member, or null.
};

}  // namespace bitweigh
