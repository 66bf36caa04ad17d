// Segments, bands, row masks and sets of segments for Python: objects that keep alive the arrays
// that the engine reads.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/interruptible.h"
#include "bindings/segment_arrays.h"
#include "bindings/segment_set_object.h"
#include "engine/rows/bits.h"
#include "engine/rows/row_mask.h"
#include "engine/rows/segment_set.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace bitweigh {

namespace {

// The bytes that looking up an id counts as towards the next interrupt check.
constexpr std::size_t lookup_bytes = 8192;

using Masks = Input<std::uint32_t, 1>;

RowMask mask_from(const Masks& masks, std::size_t rows) {
    if (masks.shape(0) != blocks_of(rows)) {
        throw std::invalid_argument("there must be a mask for each 32 rows");
    }
    const auto owner = std::make_shared<Masks>(masks);
    return {std::shared_ptr<const std::uint32_t[]>(owner, masks.data()), rows};
}

void write_masks(const RowMask& mask, const Output<std::uint32_t, 1>& masks,
                 std::size_t first_block) {
    const std::size_t n_blocks = blocks_of(mask.rows());
    if (first_block > n_blocks || masks.shape(0) > n_blocks - first_block) {
        throw std::out_of_range("there are not so many blocks");
    }
    for (std::size_t i = 0; i < masks.shape(0); ++i) {
        masks.data()[i] = mask.view().denied_in(first_block + i);
    }
}

SegmentSetObject set_of(const nb::sequence& segments, const nb::sequence& removed) {
    const auto arrays = all_shared_from<SegmentArrays>(segments);
    const auto masks = all_shared_from<RowMask>(removed);
    if (arrays.size() != masks.size()) {
        throw std::invalid_argument("removed must have a RowMask or None for each segment");
    }
    std::size_t n_bytes = 0;
    std::vector<SegmentSet::Member> members;
    for (std::size_t s = 0; s < arrays.size(); ++s) {
        if (!arrays[s]) throw std::invalid_argument("a segment must not be None");
        if (s > 0 && arrays[s]->n_bytes != n_bytes) {
            throw std::invalid_argument("segments have codes of different lengths");
        }
        n_bytes = arrays[s]->n_bytes;
        members.push_back({{arrays[s], &arrays[s]->view}, masks[s]});
    }
    return {SegmentSet(std::move(members)), n_bytes};
}

std::span<const Id> span_of(const Ids& ids) {
    return {ids.data(), ids.shape(0)};
}

FilterKind kind_of(bool deny) {
    return deny ? FilterKind::deny : FilterKind::allow;
}

void locate(const SegmentSetObject& segments, const Ids& wanted,
            const Output<std::int32_t, 1>& numbers, const Output<Row, 1>& rows) {
    if (numbers.shape(0) != wanted.shape(0) || rows.shape(0) != wanted.shape(0)) {
        throw std::invalid_argument("the arrays do not fit each other");
    }
    run_checked(nullptr, [&](Checkpoint& checkpoint) {
        for (std::size_t i = 0; i < wanted.shape(0); ++i) {
            const std::optional<RowLocation> location =
                segments.set.find(wanted.data()[i], checkpoint);
            numbers.data()[i] = location ? static_cast<std::int32_t>(location->segment) : -1;
            rows.data()[i] = location ? location->row : 0;
            checkpoint.done(lookup_bytes);
        }
    });
}

// Returns pairs of a segment's number and its new mask.
nb::list remove_ids(const SegmentSetObject& segments, const Ids& ids, bool ignore_missing) {
    Removal removal;
    run_checked(nullptr, [&](Checkpoint& checkpoint) {
        removal = segments.set.remove(span_of(ids), checkpoint);
    });
    if (removal.missing && !ignore_missing) {
        PyErr_SetObject(PyExc_KeyError, nb::int_(ids.data()[*removal.missing]).ptr());
        throw nb::python_error();
    }
    nb::list changes;
    for (Removal::Change& change : removal.changes) {
        changes.append(nb::make_tuple(change.segment, std::move(change.mask)));
    }
    return changes;
}

template <class Filter>
SegmentSetObject filtered(const SegmentSetObject& segments, const Deadline* deadline,
                          Filter filter) {
    std::optional<SegmentSet> set;
    run_checked(nullptr, or_none(deadline),
                [&](Checkpoint& checkpoint) { set.emplace(filter(checkpoint)); });
    return {std::move(*set), segments.n_bytes};
}

SegmentSetObject filtered_by_ids(const SegmentSetObject& segments, const Ids& ids, bool deny,
                                 const Deadline* deadline) {
    return filtered(segments, deadline, [&](Checkpoint& checkpoint) {
        return segments.set.filtered_by_ids(span_of(ids), kind_of(deny), segments.n_bytes,
                                            checkpoint);
    });
}

SegmentSetObject filtered_by_flags(const SegmentSetObject& segments, const Input<bool, 1>& flags,
                                   bool deny, const Deadline* deadline) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(flags.data());
    return filtered(segments, deadline, [&](Checkpoint& checkpoint) {
        return segments.set.filtered_by_flags({bytes, flags.shape(0)}, kind_of(deny),
                                              segments.n_bytes, checkpoint);
    });
}

void unpack(const SegmentArrays& segment, const Input<Row, 1>& rows,
            const Output<std::uint8_t, 2>& codes, Stop* stop) {
    constexpr std::size_t chunk_rows = 1 << 16;
    if (codes.shape(0) != rows.shape(0) || codes.shape(1) != segment.n_bytes) {
        throw std::invalid_argument("codes must have shape (len(rows), n_bytes)");
    }
    for (std::size_t i = 0; i < rows.shape(0); ++i) {
        if (rows.data()[i] >= segment.view.rows) throw std::out_of_range("no such row");
    }
    run_checked(stop, [&](Checkpoint& checkpoint) {
        for (std::size_t first = 0; first < rows.shape(0); first += chunk_rows) {
            const std::size_t n = std::min(chunk_rows, rows.shape(0) - first);
            std::uint8_t* code = codes.data() + first * segment.n_bytes;
            if (segment.view.lean) {
                copy_lean_codes(segment.view, {rows.data() + first, n}, segment.n_bytes, code);
            } else {
                unpack_rows(segment.view.blocks, segment.n_bytes, rows.data() + first, n, code);
            }
            checkpoint.done(n * segment.n_bytes * 8);
        }
    });
}

}  // namespace

void bind_segments(nb::module_& m) {
    nb::class_<BandArrays>(m, "Band", "The rows of a segment in ascending key; immutable.")
        .def(nb::init<Input<std::uint16_t, 1>, Input<std::uint32_t, 1>, Blocks,
                      std::optional<Input<Row, 1>>>(),
             "bits"_a, "starts"_a, "blocks"_a, "rows"_a.none());
    nb::class_<CountedIds>(m, "CountedIds",
                           "Ids that are not stored but counted up from the first.")
        .def(
            "__init__",
            [](CountedIds* self, Id first, std::size_t rows) {
                new (self) CountedIds{first, rows};
            },
            "first"_a, "rows"_a);
    nb::class_<SegmentArrays>(m, "Segment", "Rows in blocks with their ids; immutable.")
        .def(nb::init<Blocks, StoredIds, std::optional<Input<Row, 1>>, std::size_t,
                      Objects<BandArrays>, std::optional<std::string>, bool>(),
             "blocks"_a, "ids"_a, "by_id"_a.none(), "n_bits"_a, "bands"_a,
             "lean_order"_a.none() = nb::none(), "is_mapped"_a = false,
             "With lean_order, the order of the bits in codes, blocks hold rests of codes, the "
             "first are\nthose of the first band, and ids are sorted on first use. If is_mapped, "
             "the "
             "arrays are those\nof mapped files, which may not be in memory.")
        .def_prop_ro(
            "id_lookup_nbytes", [](const SegmentArrays& self) { return self.id_lookup_bytes(); },
            "Bytes of the rows in ascending id, 0 before they are sorted.");

    nb::class_<RowMask>(m, "RowMask", "Which rows of a segment a search may return; immutable.")
        .def(
            "__init__",
            [](RowMask* self, const Masks& masks, std::size_t rows) {
                new (self) RowMask(mask_from(masks, rows));
            },
            "masks"_a, "rows"_a, "Deny each row whose bit is set; every mask has 32 bits.")
        .def("write_masks", &write_masks, "masks"_a.noconvert(), "first_block"_a = 0,
             "Write the masks of blocks from first_block on, with a set bit for each denied row.")
        .def_prop_ro("denied_rows", &RowMask::denied_rows)
        .def_prop_ro("nbytes", &RowMask::bytes);

    nb::class_<SegmentSetObject>(m, "SegmentSet", "Segments in the order of a search; immutable.")
        .def(
            "__init__",
            [](SegmentSetObject* self, const nb::sequence& segments, const nb::sequence& removed) {
                new (self) SegmentSetObject(set_of(segments, removed));
            },
            "segments"_a, "removed"_a,
            nb::sig("def __init__(self, segments: Sequence[Segment], "
                    "removed: Sequence[RowMask | None]) -> None"))
        .def("locate", &locate, "ids"_a, "numbers"_a.noconvert(), "rows"_a.noconvert(),
             "Write the segment number and the row of each id; -1 and 0 if no segment has it.")
        .def("remove", &remove_ids, "ids"_a, "ignore_missing"_a,
             nb::sig("def remove(self, ids: NDArray[numpy.int64], ignore_missing: bool) -> "
                     "list[tuple[int, RowMask]]"),
             "Return the number and the new mask of each segment that has any of these ids.\n"
             "Raises KeyError for the first id that no segment has, unless ignore_missing is true.")
        .def("filtered_by_ids", &filtered_by_ids, "ids"_a, "deny"_a,
             "deadline"_a.none() = nb::none(),
             "Return the set with only these ids allowed, or with them denied.")
        .def("filtered_by_flags", &filtered_by_flags, "flags"_a, "deny"_a,
             "deadline"_a.none() = nb::none(),
             "Return the set with only those ids i allowed that have flags[i], or with them "
             "denied.")
        .def_prop_ro("filter_nbytes",
                     [](const SegmentSetObject& self) { return self.set.filter_bytes(); });
    m.def("unpack_rows", &unpack, "segment"_a, "rows"_a, "codes"_a.noconvert(),
          "stop"_a.none() = nb::none(),
          "Write the codes of the given rows into codes (len(rows), n_bytes).");
}

}  // namespace bitweigh
