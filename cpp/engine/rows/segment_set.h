// The segments of one state of an index: finds ids, removes rows, and filters the rows that a
// search may return. A set never changes; sets derived from it share its segments and the masks, or
// pages of masks, that stay the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/parallel.h"
#include "engine/rows/row_mask.h"
#include "engine/rows/segment.h"
#include "engine/types.h"

namespace bitweigh {

struct RowLocation {
    std::size_t segment;  // Index of the segment in the set.
    Row row;
};

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
    std::optional<RowLocation> find(Id id) const;

    // Computes the masks that deny these ids; the set itself stays as it is. An id may occur twice.
    Removal remove(std::span<const Id> ids, Checkpoint& checkpoint) const;

    // Returns the set with the rows denied that the filter excludes. Ids that the set does not have
    // are ignored; flags[i] != 0 names the id i. Filtering by ids takes time for each id and for at
    // most 16 KiB of mask around it, however many rows there are; filtering by flags reads all
    // rows.
    SegmentSet filtered_by_ids(std::span<const Id> ids, FilterKind kind,
                               Checkpoint& checkpoint) const;
    SegmentSet filtered_by_flags(std::span<const std::uint8_t> flags, FilterKind kind,
                                 Checkpoint& checkpoint) const;

private:
    using BlockNumbers = std::vector<std::uint32_t>;

    // Returns, for each segment, its rows with these ids in any order. Calls missing(i) for each
    // ids[i] that no segment has.
    template <class Missing>
    std::vector<std::vector<Row>> rows_with(std::span<const Id> ids, Checkpoint& checkpoint,
                                            Missing missing) const;
    RowMask mask_of(std::size_t segment) const;
    void list_allowed_blocks();

    std::vector<Member> members_;
    std::vector<Segment> views_;                // Segments of the members with their masks.
    std::vector<std::vector<Band>> bands_;      // Bands with the mask, if there is one, for views_.
    std::vector<BlockNumbers> allowed_blocks_;  // Blocks with an allowed row, if few, for views_.
};

}  // namespace bitweigh
