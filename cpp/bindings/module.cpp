// The extension module: converts, releases the GIL, calls the engine. No logic; arguments were
// checked in Python, except what is only seen while reading the data.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/block_memory.h"
#include "bindings/segment_arrays.h"
#include "bindings/signal_check.h"
#include "engine/band_table.h"
#include "engine/bits.h"
#include "engine/id_lookup.h"
#include "engine/range_search.h"
#include "engine/scan/scan.h"
#include "engine/search.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace bitweigh;

namespace {

const Kernel& kernel_named(const std::string& name) {
    const Kernel* kernel = find_kernel(name);
    if (!kernel) throw std::invalid_argument("no kernel named '" + name + "' on this machine");
    return *kernel;
}

Method method_named(const std::string& name) {
    if (name == "scan") return Method::scan;
    return name == "probe" ? Method::probe : Method::automatic;
}

std::vector<std::string> kernel_names() {
    std::vector<std::string> names;
    for (const Kernel* kernel : available_kernels()) names.emplace_back(kernel->name);
    return names;
}

constexpr const char* counter_names[] = {
    "rows_scored_directly", "rows_scanned",  "rows_scanned_wide", "candidates",
    "rescales",             "capped_entries", "probes",           "empty_probes",
    "blocks_probed",        "rounds",         "walks_again",      "exhausted_bands",
    "duplicates",           "give_ups",       "predicted_cost",   "probing_cost",
    "scan_cost",            "nanoseconds"};

void write_counters(const std::vector<SearchCounters>& counters, std::int64_t* out) {
    for (const SearchCounters& c : counters) {
        const ProbeCounters& p = c.probing;
        for (std::uint64_t count :
             {c.rows_scored_directly, c.rows_scanned, c.rows_scanned_wide, c.candidates, c.rescales,
              c.capped_entries, p.probes, p.empty_probes, p.blocks_probed, p.rounds, p.walks_again,
              p.exhausted_bands, c.duplicates, p.give_ups, p.predicted_cost, p.probing_cost,
              p.scan_cost, c.nanoseconds}) {
            *out++ = static_cast<std::int64_t>(count);
        }
    }
}

using AllowedList = std::optional<std::vector<const AllowedArrays*>>;

// What every kind of search is asked with, and how.
struct Ask {
    const SegmentList& segments;
    const AllowedList& allowed;  // one for each segment, or nothing
    const Costs& costs;
    bool single;  // how the caller indexes the costs
    const std::string& bitorder;
    const std::string& method;
    const std::string& kernel;
    std::size_t threads;
    bool cap_threads;
    const Tuning& tuning;
};

// Segments that are filtered as a search sees them, with their bands.
struct FilteredSegments {
    std::vector<Segment> segments;
    std::vector<std::vector<Band>> bands;
};

void allow(const AllowedArrays& allowed, Segment& segment, std::vector<Band>& bands) {
    const std::size_t n_blocks = segment.n_blocks();
    if (allowed.masks.shape(0) != n_blocks || allowed.rows > segment.rows) {
        throw std::invalid_argument("a filter does not fit its segment");
    }
    segment.allowed = allowed.masks.data();
    segment.denied_rows = segment.rows - allowed.rows;
    if (allowed.blocks) {
        for (std::size_t i = 0; i < allowed.blocks->shape(0); ++i) {
            if (allowed.blocks->data()[i] >= n_blocks) throw std::out_of_range("no such block");
        }
        segment.allowed_blocks = {allowed.blocks->data(), allowed.blocks->shape(0)};
    }
    for (Band& band : bands) band.rows.allowed = segment.allowed;
    segment.bands = bands;
}

// Checks what an Ask holds and makes a request of it; `filtered` must outlive the request.
SearchRequest request_of(const Ask& ask, std::size_t k, FilteredSegments& filtered) {
    check_costs(ask.costs, ask.single);
    if (ask.costs.shape(1) == 0 || ask.costs.shape(2) != 2) {
        throw std::invalid_argument("costs must have shape (nq, n_bits, 2)");
    }
    for (const SegmentArrays* segment : ask.segments.arrays) {
        if (segment->n_bytes != bytes_of(ask.costs.shape(1))) {
            throw std::invalid_argument("a segment has codes of another length than the queries");
        }
    }
    std::span<const Segment> segments = ask.segments.views;
    if (ask.allowed) {
        if (ask.allowed->size() != segments.size()) {
            throw std::invalid_argument("a filter must be given for each segment");
        }
        filtered.segments = ask.segments.views;
        filtered.bands.resize(segments.size());
        for (std::size_t s = 0; s < segments.size(); ++s) {
            filtered.bands[s] = ask.segments.arrays[s]->bands;
            allow(*(*ask.allowed)[s], filtered.segments[s], filtered.bands[s]);
        }
        segments = filtered.segments;
    }
    return {.segments = segments,
            .n_bits = ask.costs.shape(1),
            .order = order_named(ask.bitorder),
            .costs = ask.costs.data(),
            .n_queries = ask.costs.shape(0),
            .k = k,
            .method = method_named(ask.method),
            .kernel = &kernel_named(ask.kernel),
            .threads = ask.threads,
            .cap_threads = ask.cap_threads,
            .tuning = ask.tuning};
}

// Runs work(check) without the GIL; Ctrl-C raises what its handler raises.
template <class Work>
void run_interruptibly(Work work) {
    try {
        const nb::gil_scoped_release release;
        work(SignalCheck());
    } catch (const Interrupted&) {
        if (PyErr_Occurred()) throw nb::python_error();
        throw std::runtime_error("the search was interrupted");
    }
}

// An array of the caller's, of any shape with so many elements in all.
template <class Value>
using FlatOutput = nb::ndarray<Value, nb::c_contig, nb::device::cpu>;

template <class Value>
Value* data_of(const FlatOutput<Value>& output, std::size_t size) {
    if (output.size() != size) {
        throw std::invalid_argument("the arrays for the answer do not fit the queries");
    }
    return output.data();
}

using Counters = std::optional<FlatOutput<std::int64_t>>;

void write_counters(const std::vector<SearchCounters>& counted, const Counters& counters) {
    if (counters) {
        write_counters(counted, data_of(*counters, counted.size() * std::size(counter_names)));
    }
}

void search_segments(const SegmentList& segments, const AllowedList& allowed, const Costs& costs,
                     bool single, const std::string& bitorder, const std::string& method,
                     const std::string& kernel, std::size_t threads, bool cap_threads,
                     const Tuning& tuning, std::size_t k, const FlatOutput<double>& distances,
                     const FlatOutput<Id>& ids, const Counters& counters) {
    FilteredSegments filtered;
    const Ask ask{segments, allowed, costs,   single,      bitorder,
                  method,   kernel,  threads, cap_threads, tuning};
    const SearchRequest request = request_of(ask, k, filtered);
    if (k == 0) throw std::invalid_argument("k must be at least 1");
    std::vector<SearchCounters> counted(request.n_queries);
    const std::size_t size = request.n_queries * k;
    const SearchAnswer answer{data_of(distances, size), data_of(ids, size), counted.data()};
    run_interruptibly([&](const InterruptCheck& check) { search(request, answer, check); });
    write_counters(counted, counters);
}

using Distances = nb::ndarray<nb::numpy, double, nb::ndim<1>>;
using FoundIds = nb::ndarray<nb::numpy, Id, nb::ndim<1>>;

// Writes where the rows of each query begin into lims (nq + 1), and returns distances and ids.
std::tuple<Distances, FoundIds> range_search_segments(
    const SegmentList& segments, const AllowedList& allowed, const Costs& costs, bool single,
    const std::string& bitorder, const std::string& method, const std::string& kernel,
    std::size_t threads, bool cap_threads, const Tuning& tuning, const Input<double, 1>& radii,
    std::size_t limit, const FlatOutput<std::int64_t>& lims, const Counters& counters) {
    FilteredSegments filtered;
    const Ask ask{segments, allowed, costs,   single,      bitorder,
                  method,   kernel,  threads, cap_threads, tuning};
    const SearchRequest request = request_of(ask, 1, filtered);
    if (radii.shape(0) != request.n_queries) {
        throw std::invalid_argument("there must be a radius for each query");
    }
    std::int64_t* ends = data_of(lims, request.n_queries + 1);
    std::vector<SearchCounters> counted(request.n_queries);
    std::vector<std::vector<Neighbour>> found;
    run_interruptibly([&](const InterruptCheck& check) {
        found = range_search(request, radii.data(), limit, counted.data(), check);
    });
    write_counters(counted, counters);
    auto all = std::make_unique<std::pair<std::vector<double>, std::vector<Id>>>();
    *ends++ = 0;
    for (std::size_t q = 0; q < found.size(); ++q) {
        for (const Neighbour& one : found[q]) {
            all->first.push_back(one.distance);
            all->second.push_back(one.id);
        }
        *ends++ = static_cast<std::int64_t>(all->first.size());
        found[q] = std::vector<Neighbour>();
    }
    auto* pair = all.release();
    nb::capsule owner(pair, [](void* p) noexcept {
        delete static_cast<std::pair<std::vector<double>, std::vector<Id>>*>(p);
    });
    const std::size_t n = pair->first.size();
    return {Distances(pair->first.data(), {n}, owner), FoundIds(pair->second.data(), {n}, owner)};
}

// Memory of `bytes` that `fill(data)` writes without the GIL.
template <class Fill>
nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>> make_blocks(std::size_t bytes, Fill fill) {
    auto memory = std::make_unique<BlockMemory>(bytes);
    {
        const nb::gil_scoped_release release;
        fill(memory->data());
    }
    std::uint8_t* data = memory->data();
    nb::capsule owner(memory.release(),
                      [](void* p) noexcept { delete static_cast<BlockMemory*>(p); });
    return {data, {bytes}, owner};
}

nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>> pack(const Codes& codes) {
    return make_blocks(blocks_of(codes.shape(0)) * block_rows * codes.shape(1),
                       [&](std::uint8_t* blocks) {
                           pack_blocks(codes.data(), codes.shape(0), codes.shape(1), blocks);
                       });
}

nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>> pack_in_order(const Codes& codes,
                                                                const Input<Row, 1>& rows) {
    for (std::size_t i = 0; i < rows.shape(0); ++i) {
        if (rows.data()[i] >= codes.shape(0)) throw std::out_of_range("no such row");
    }
    return make_blocks(blocks_of(rows.shape(0)) * block_rows * codes.shape(1),
                       [&](std::uint8_t* blocks) {
                           pack_rows(codes.data(), codes.shape(1), rows.data(), rows.shape(0),
                                     blocks);
                       });
}

void sort_band(const Codes& codes, const Input<std::uint16_t, 1>& bits, const std::string& bitorder,
               const Output<std::uint32_t, 1>& starts, const Output<Row, 1>& rows) {
    const std::size_t n = codes.shape(0);
    if (bits.shape(0) == 0 || bits.shape(0) > max_band_bits || rows.shape(0) != n ||
        starts.shape(0) != (std::size_t{1} << bits.shape(0)) + 1 || n >= max_segment_rows) {
        throw std::invalid_argument("the arrays of a band do not fit each other");
    }
    for (std::size_t j = 0; j < bits.shape(0); ++j) {
        if (bits.data()[j] >= 8 * codes.shape(1)) throw std::out_of_range("no such bit");
    }
    const BitOrder order = order_named(bitorder);
    const nb::gil_scoped_release release;
    std::vector<std::uint32_t> keys(n);
    keys_of(codes.data(), n, codes.shape(1), {bits.data(), bits.shape(0)}, order, keys.data());
    sort_by_key(keys.data(), n, bits.shape(0), starts.data(), rows.data());
}

void unpack(const SegmentArrays& segment, const Input<Row, 1>& rows,
            const Output<std::uint8_t, 2>& codes) {
    if (codes.shape(0) != rows.shape(0) || codes.shape(1) != segment.n_bytes) {
        throw std::invalid_argument("the array for the codes does not fit the rows");
    }
    for (std::size_t i = 0; i < rows.shape(0); ++i) {
        if (rows.data()[i] >= segment.view.rows) throw std::out_of_range("no such row");
    }
    const nb::gil_scoped_release release;
    unpack_rows(segment.view.blocks, segment.n_bytes, rows.data(), rows.shape(0), codes.data());
}

void find_ids(const StoredIds& ids, const Input<Row, 1>& by_id, const Ids& wanted,
              const Output<Row, 1>& rows, const Output<bool, 1>& found) {
    if (by_id.shape(0) != size_of(ids) || rows.shape(0) != wanted.shape(0) ||
        found.shape(0) != wanted.shape(0)) {
        throw std::invalid_argument("the arrays do not fit each other");
    }
    const nb::gil_scoped_release release;
    for (std::size_t i = 0; i < wanted.shape(0); ++i) {
        const std::size_t row =
            find_row(column_of(ids), by_id.data(), by_id.shape(0), wanted.data()[i]);
        found.data()[i] = row < by_id.shape(0);
        rows.data()[i] = found.data()[i] ? static_cast<Row>(row) : Row{0};
    }
}

std::size_t stray_row(const Codes& codes, std::size_t n_bits, const std::string& bitorder) {
    const unsigned unused = unused_mask(n_bits, order_named(bitorder));
    return first_stray_row(codes.data(), codes.shape(0), codes.shape(1), unused);
}

}  // namespace

NB_MODULE(_core, m) {
    // A daemon thread that is alive at exit keeps objects alive, which is no leak of ours.
    nb::set_leak_warnings(false);
    m.doc() = "The compiled engine of bitweigh. Private: use bitweigh.Index.";

    nb::class_<Tuning>(m, "Tuning", "What tests change so that small inputs reach every path.")
        .def(nb::init<>())
        .def_rw("warm_up_rows", &Tuning::warm_up_rows, "Rows sampled for the first bound.")
        .def_rw("warm_up_per_k", &Tuning::warm_up_per_k, "And for each neighbour wanted.")
        .def_rw("narrow_max_bits", &Tuning::narrow_max_bits, "Longer codes use 16-bit sums.")
        .def_rw("first_round_cost", &Tuning::first_round_cost, "Of probing, in nanoseconds.")
        .def_rw("least_scan_factor", &Tuning::least_scan_factor, "Where bands are used at all.")
        .def_rw("least_scan_cost_per_k", &Tuning::least_scan_cost_per_k, "And per neighbour.");

    nb::class_<BandArrays>(m, "Band", "The rows of a segment in ascending key; immutable.")
        .def(nb::init<Input<std::uint16_t, 1>, Input<std::uint32_t, 1>, Blocks,
                      std::optional<Input<Row, 1>>>(),
             "bits"_a, "starts"_a, "blocks"_a, "rows"_a.none());
    nb::class_<SegmentArrays>(m, "Segment", "Rows in blocks with their ids; immutable.")
        .def(nb::init<Blocks, StoredIds, std::size_t, std::vector<const BandArrays*>>(), "blocks"_a,
             "ids"_a, "n_bits"_a, "bands"_a);

    nb::class_<AllowedArrays>(m, "Allowed", "Which rows of a segment a search may return.")
        .def(
            "__init__",
            [](AllowedArrays* self, Input<std::uint32_t, 1> masks, std::size_t rows,
               std::optional<Input<std::uint32_t, 1>> blocks) {
                new (self) AllowedArrays{std::move(masks), rows, std::move(blocks)};
            },
            "masks"_a, "rows"_a, "blocks"_a.none());

    m.def("kernel_names", &kernel_names, "Kernels that this machine can run, fastest first.");
    m.def("pack_blocks", &pack, "codes"_a, "Codes (n, n_bytes) as blocks of 32 rows.");
    m.def("pack_in_order", &pack_in_order, "codes"_a, "rows"_a,
          "The given rows of codes (n, n_bytes), in their order, as blocks of 32 rows.");
    m.def("sort_band", &sort_band, "codes"_a, "bits"_a, "bitorder"_a, "starts"_a.noconvert(),
          "rows"_a.noconvert(),
          "Write the rows (n,) in ascending key and where each key starts (2^len(bits) + 1,).");
    m.def("unpack_rows", &unpack, "segment"_a, "rows"_a, "codes"_a.noconvert(),
          "Write the codes of the given rows into codes (len(rows), n_bytes).");
    m.def("find_ids", &find_ids, "ids"_a, "by_id"_a, "wanted"_a, "rows"_a.noconvert(),
          "found"_a.noconvert(),
          "Write the row of each wanted id, and whether it is there; by_id has the rows in\n"
          "ascending id.");
    m.def("first_stray_row", &stray_row, "codes"_a, "n_bits"_a, "bitorder"_a,
          "First row with an unused bit set, or the number of rows.");
    nb::class_<SegmentList>(m, "SegmentList", "Segments in the order of a search; immutable.")
        .def(nb::init<std::vector<const SegmentArrays*>>(), "segments"_a, nb::keep_alive<1, 2>());
    m.def("search", &search_segments, "segments"_a, "allowed"_a.none(), "costs"_a, "single"_a,
          "bitorder"_a, "method"_a, "kernel"_a, "threads"_a, "cap_threads"_a, "tuning"_a, "k"_a,
          "distances"_a.noconvert(), "ids"_a.noconvert(), "counters"_a.noconvert().none(),
          "Write the k nearest into distances (nq, k) and ids (nq, k), and what was done into\n"
          "counters (nq, len(counter_names)).");
    m.def("range_search", &range_search_segments, "segments"_a, "allowed"_a.none(), "costs"_a,
          "single"_a, "bitorder"_a, "method"_a, "kernel"_a, "threads"_a, "cap_threads"_a,
          "tuning"_a, "radii"_a, "limit"_a, "lims"_a.noconvert(),
          "counters"_a.noconvert().none(),
          "Distances and ids of all rows within each radius; where those of each query begin goes\n"
          "into lims (nq + 1,).");
    nb::exception<TooManyRows>(m, "TooManyRowsError", PyExc_ValueError);
    bind_paper(m);

    nb::list names;
    for (const char* name : counter_names) names.append(name);
    m.attr("counter_names") = nb::tuple(names);
    m.attr("max_segment_rows") = max_segment_rows;
    m.attr("max_band_bits") = max_band_bits;
    m.attr("version") = BITWEIGH_VERSION;
}
