// The segments of one state of an index: where an id is, what is left when rows are removed, and
// which rows a filtered search may return. A set never changes; those made from it share its
// segments and the masks, or pages of masks, that stay the same.
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
    std::size_t segment;
    Row row;
};

// What removing ids comes to.
struct Removal {
    struct Change {
        std::size_t segment;
        RowMask mask;  // of all rows that are removed from it then
    };
    std::vector<Change> changes;         // of the segments that have the ids, ascending
    std::optional<std::size_t> missing;  // position of the first id that the set does not have
};

// What a filter does with the rows it names. All others get the opposite.
enum class FilterKind { allow, deny };

class SegmentSet {
public:
    struct Member {
        std::shared_ptr<const Segment> segment;  // whose own mask allows every row
        std::shared_ptr<const RowMask> mask;     // null where every row is allowed
    };

    // Throws std::invalid_argument where a mask does not have the rows of its segment.
    explicit SegmentSet(std::vector<Member> members);
    // Views point to what vectors own, which moves with them but is not copied.
    SegmentSet(SegmentSet&&) = default;
    SegmentSet& operator=(SegmentSet&&) = default;

    // In the order of the members, with their masks; as long as this lives.
    std::span<const Segment> segments() const { return views_; }

    // Where the row with this id is, if the set has it and allows it.
    std::optional<RowLocation> find(Id wanted) const;

    // The same id may be named twice.
    Removal remove(std::span<const Id> ids, Checkpoint& checkpoint) const;

    // The set with the rows denied that the filter does not let through. Ids that the set does not
    // have are ignored, flags[i] != 0 names the id i. By ids it takes time for those and for 16 KiB
    // of mask around each at most, however many rows there are; by flags for all rows.
    SegmentSet filtered_by_ids(std::span<const Id> ids, FilterKind kind,
                               Checkpoint& checkpoint) const;
    SegmentSet filtered_by_flags(std::span<const std::uint8_t> flags, FilterKind kind,
                                 Checkpoint& checkpoint) const;

private:
    using BlockNumbers = std::vector<std::uint32_t>;

    // By segment: its rows with these ids, in any order. Calls missing(i) for each ids[i] that is
    // in none.
    template <class Missing>
    std::vector<std::vector<Row>> rows_with(std::span<const Id> ids, Checkpoint& checkpoint,
                                            Missing missing) const;
    RowMask mask_of(std::size_t segment) const;
    void list_allowed_blocks();

    std::vector<Member> members_;
    std::vector<Segment> views_;
    // What views_ point into: bands that know the mask, where there is one, and the blocks that
    // have an allowed row, where those are few.
    std::vector<std::vector<Band>> bands_;
    std::vector<BlockNumbers> allowed_blocks_;
};

}  // namespace bitweigh
