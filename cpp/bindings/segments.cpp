// Segments, bands, removed rows and filters for Python: classes that hold arrays, and lookups by
// id.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/interruptible.h"
#include "bindings/segment_arrays.h"
#include "engine/bits.h"
#include "engine/id_lookup.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace bitweigh {

namespace {

// What a lookup of an id counts as towards the next look at Ctrl-C, in bytes.
constexpr std::size_t lookup_bytes = 8192;

void check_rows(const Input<Row, 1>& rows, std::size_t end) {
    for (std::size_t i = 0; i < rows.shape(0); ++i) {
        if (rows.data()[i] >= end) throw std::out_of_range("no such row");
    }
}

void write_masks(const DeniedArrays& denied, const Output<std::uint32_t, 1>& masks) {
    if (masks.shape(0) != blocks_of(denied.rows.rows())) {
        throw std::invalid_argument("there must be a mask for each 32 rows");
    }
    for (std::size_t block = 0; block < masks.shape(0); ++block) {
        masks.data()[block] = denied.rows.view().in(block);
    }
}

// The rows of a state by their ids. Those that were removed are not found.
void locate(const SegmentList& list, const Ids& wanted, const Output<std::int32_t, 1>& segments,
            const Output<Row, 1>& rows) {
    if (segments.shape(0) != wanted.shape(0) || rows.shape(0) != wanted.shape(0)) {
        throw std::invalid_argument("the arrays do not fit each other");
    }
    run_checked(nullptr, [&](Checkpoint& checkpoint) {
        for (std::size_t i = 0; i < wanted.shape(0); ++i) {
            const std::optional<RowPlace> place = list.find(wanted.data()[i]);
            segments.data()[i] = place ? static_cast<std::int32_t>(place->segment) : -1;
            rows.data()[i] = place ? place->row : 0;
            checkpoint.done(lookup_bytes);
        }
    });
}

// What is left of each segment that has rows with these ids, as pairs of its number and all rows
// that are removed from it then. None where an id is in no segment, unless that may be.
std::optional<std::vector<std::pair<std::size_t, DeniedArrays>>> remove_ids(const SegmentList& list,
                                                                            const Ids& wanted,
                                                                            bool may_miss) {
    std::vector<std::vector<Row>> rows(list.arrays.size());
    std::vector<std::pair<std::size_t, DeniedArrays>> removed;
    bool missing = false;
    run_checked(nullptr, [&](Checkpoint& checkpoint) {
        for (std::size_t i = 0; i < wanted.shape(0) && !missing; ++i) {
            const std::optional<RowPlace> place = list.find(wanted.data()[i]);
            if (place) rows[place->segment].push_back(place->row);
            missing = !place && !may_miss;
            checkpoint.done(lookup_bytes);
        }
    });
    if (missing) return std::nullopt;
    for (std::size_t s = 0; s < rows.size(); ++s) {
        if (rows[s].empty()) continue;
        const DeniedArrays before = list.removed[s]
                                        ? *list.removed[s]
                                        : DeniedArrays(list.arrays[s]->view.rows, std::nullopt);
        removed.emplace_back(
            s, DeniedArrays(before.masks, before.rows.with(rows[s].data(), rows[s].size())));
    }
    return removed;
}

void unpack(const SegmentArrays& segment, const Input<Row, 1>& rows,
            const Output<std::uint8_t, 2>& codes, Stop* stop) {
    constexpr std::size_t chunk_rows = 1 << 16;
    if (codes.shape(0) != rows.shape(0) || codes.shape(1) != segment.n_bytes) {
        throw std::invalid_argument("the array for the codes does not fit the rows");
    }
    check_rows(rows, segment.view.rows);
    run_checked(stop, [&](Checkpoint& checkpoint) {
        for (std::size_t first = 0; first < rows.shape(0); first += chunk_rows) {
            const std::size_t n = std::min(chunk_rows, rows.shape(0) - first);
            unpack_rows(segment.view.blocks, segment.n_bytes, rows.data() + first, n,
                        codes.data() + first * segment.n_bytes);
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
    nb::class_<CountedIds>(m, "CountedIds", "Ids that are not stored: each one more than the last.")
        .def(
            "__init__",
            [](CountedIds* self, Id first, std::size_t rows) {
                new (self) CountedIds{first, rows};
            },
            "first"_a, "rows"_a);
    nb::class_<SegmentArrays>(m, "Segment", "Rows in blocks with their ids; immutable.")
        .def(nb::init<Blocks, StoredIds, std::optional<Input<Row, 1>>, std::size_t,
                      Objects<BandArrays>>(),
             "blocks"_a, "ids"_a, "by_id"_a.none(), "n_bits"_a, "bands"_a);

    nb::class_<DeniedArrays>(m, "DeniedRows", "Rows that a search may not return; immutable.")
        .def(nb::init<std::size_t, std::optional<Input<std::uint32_t, 1>>>(), "rows"_a,
             "masks"_a.none() = nb::none(), "Of so many rows; masks have a bit for each.")
        .def("write_masks", &write_masks, "masks"_a.noconvert(), "Write a bit for each row.")
        .def_prop_ro("count", [](const DeniedArrays& self) { return self.rows.count(); })
        .def_prop_ro("nbytes", [](const DeniedArrays& self) {
            return self.rows.bytes() + (self.masks ? self.masks->nbytes() : 0);
        });
    nb::class_<AllowedArrays>(m, "Allowed", "Which rows of a segment a filter allows.")
        .def(
            "__init__",
            [](AllowedArrays* self, const DeniedArrays& denied,
               std::optional<Input<std::uint32_t, 1>> blocks) {
                new (self) AllowedArrays{denied, std::move(blocks)};
            },
            "denied"_a, "blocks"_a.none());
    nb::class_<SegmentList>(m, "SegmentList", "Segments in the order of a search; immutable.")
        .def(nb::init<Objects<SegmentArrays>, nb::sequence>(),
             nb::sig("def __init__(self, segments: Sequence[Segment], "
                     "removed: Sequence[DeniedRows | None]) -> None"),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());
    m.def("locate", &locate, "segments"_a, "wanted"_a, "numbers"_a.noconvert(),
          "rows"_a.noconvert(),
          "Write the number of the segment and the row of each wanted id; -1 where it is in none.");
    m.def(
        "remove_ids", &remove_ids, "segments"_a, "wanted"_a, "may_miss"_a,
        "The numbers of the segments that have these ids, each with its removed rows afterwards;\n"
        "None where an id is in none, unless that may be.");
    m.def("unpack_rows", &unpack, "segment"_a, "rows"_a, "codes"_a.noconvert(),
          "stop"_a.none() = nb::none(),
          "Write the codes of the given rows into codes (len(rows), n_bytes).");
}

}  // namespace bitweigh
