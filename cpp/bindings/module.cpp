// The extension module: converts, releases the GIL, calls the engine. No logic; arguments were
// checked in Python, except what is only seen while reading the data.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/block_memory.h"
#include "engine/bits.h"
#include "engine/cost_table.h"
#include "engine/scan/scan.h"
#include "engine/search.h"
#include "paper/linear_scan.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace bitweigh;

namespace {

template <class Value, std::size_t ndim>
using Input = nb::ndarray<const Value, nb::ndim<ndim>, nb::c_contig, nb::device::cpu>;
template <class Value, std::size_t ndim>
using Output = nb::ndarray<nb::numpy, Value, nb::ndim<ndim>>;
using Codes = Input<std::uint8_t, 2>;
using Blocks = Input<std::uint8_t, 1>;
using Ids = Input<Id, 1>;
using Costs = Input<double, 3>;

// A new NumPy array that owns its memory, and where to write it.
template <class Value, std::size_t ndim>
std::pair<Value*, Output<Value, ndim>> new_array(const std::size_t (&shape)[ndim]) {
    std::size_t size = 1;
    for (std::size_t length : shape) size *= length;
    auto* data = new Value[size];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<Value*>(p); });
    return {data, Output<Value, ndim>(data, ndim, shape, owner)};
}

// A segment together with the arrays it reads, which it keeps alive.
struct SegmentArrays {
    Blocks blocks;
    Ids ids;
    Segment view;

    SegmentArrays(Blocks blocks_in, Ids ids_in, std::size_t n_bits)
        : blocks(std::move(blocks_in)), ids(std::move(ids_in)) {
        const std::size_t rows = ids.shape(0);
        if (rows >= max_segment_rows) throw std::invalid_argument("a segment has too many rows");
        if (blocks.shape(0) != blocks_of(rows) * block_rows * bytes_of(n_bits)) {
            throw std::invalid_argument("blocks and ids do not have the same number of rows");
        }
        view = {blocks.data(), ids.data(), rows};
    }
};

BitOrder order_named(const std::string& name) {
    return name == "little" ? BitOrder::little : BitOrder::big;
}

const Kernel& kernel_named(const std::string& name) {
    const Kernel* kernel = find_kernel(name);
    if (!kernel) throw std::invalid_argument("no kernel named '" + name + "' on this machine");
    return *kernel;
}

std::vector<std::string> kernel_names() {
    std::vector<std::string> names;
    for (const Kernel* kernel : available_kernels()) names.emplace_back(kernel->name);
    return names;
}

// Lets Python's signal handlers run a few times a second. They only ever run on the main thread;
// elsewhere this asks in vain, at the price of taking the GIL.
class SignalCheck {
public:
    bool operator()() {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(40)) return false;
        last_ = now;
        const nb::gil_scoped_acquire gil;
        return PyErr_CheckSignals() != 0;
    }

private:
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Raises ValueError for the first query with a fault, naming the place as the caller indexes it.
void check_costs(const Costs& costs, bool single) {
    for (std::size_t q = 0; q < costs.shape(0); ++q) {
        const double* own = costs.data() + q * costs.shape(1) * 2;
        const CostFault fault = find_cost_fault(own, costs.shape(1));
        if (fault.kind == CostFault::Kind::none) continue;
        const std::string query = single ? "" : std::to_string(q);
        if (fault.kind == CostFault::Kind::too_large) {
            throw std::invalid_argument(
                "costs" + (single ? "" : "[" + query + "]") +
                ": the absolute values of a query's costs must add up to at most 2**1020");
        }
        throw std::invalid_argument("costs[" + query + (single ? "" : ", ") +
                                    std::to_string(fault.bit) + ", " + std::to_string(fault.value) +
                                    "] is " +
                                    std::to_string(own[2 * fault.bit + fault.value]) +
                                    ", every cost must be finite");
    }
}

using CounterArray = Output<std::int64_t, 2>;
constexpr const char* counter_names[] = {"rows_scored_directly", "rows_scanned",
                                         "rows_scanned_wide",    "candidates",
                                         "rescales",             "capped_entries"};

CounterArray counter_array(const std::vector<SearchCounters>& counters) {
    auto [data, array] = new_array<std::int64_t, 2>({counters.size(), std::size(counter_names)});
    for (const SearchCounters& c : counters) {
        for (std::uint64_t count : {c.rows_scored_directly, c.rows_scanned, c.rows_scanned_wide,
                                    c.candidates, c.rescales, c.capped_entries}) {
            *data++ = static_cast<std::int64_t>(count);
        }
    }
    return array;
}

std::tuple<Output<double, 2>, Output<Id, 2>, CounterArray> search_segments(
    const std::vector<const SegmentArrays*>& segments, const Costs& costs, std::size_t k,
    const std::string& bitorder, const std::string& kernel, std::size_t threads, bool cap_threads,
    bool single, const Tuning& tuning) {
    check_costs(costs, single);
    std::vector<Segment> views;
    for (const SegmentArrays* segment : segments) views.push_back(segment->view);
    const std::size_t n_queries = costs.shape(0);
    auto [distances, distance_array] = new_array<double, 2>({n_queries, k});
    auto [ids, id_array] = new_array<Id, 2>({n_queries, k});
    std::vector<SearchCounters> counters(n_queries);
    const SearchRequest request{views,     costs.shape(1), order_named(bitorder),
                                costs.data(), n_queries,      k,
                                &kernel_named(kernel), threads, cap_threads, tuning};
    try {
        const nb::gil_scoped_release release;
        search(request, {distances, ids, counters.data()}, SignalCheck());
    } catch (const Interrupted&) {
        throw nb::python_error();
    }
    return {distance_array, id_array, counter_array(counters)};
}

Output<std::uint8_t, 1> pack(const Codes& codes) {
    const std::size_t bytes = blocks_of(codes.shape(0)) * block_rows * codes.shape(1);
    BlockMemory memory(bytes);
    {
        const nb::gil_scoped_release release;
        pack_blocks(codes.data(), codes.shape(0), codes.shape(1), memory.data());
    }
    std::uint8_t* data = memory.data();
    auto* owned = new BlockMemory(std::move(memory));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<BlockMemory*>(p); });
    return Output<std::uint8_t, 1>(data, {bytes}, owner);
}

Output<std::uint8_t, 2> unpack(const SegmentArrays& segment, std::size_t n_bytes,
                               const Input<Row, 1>& rows) {
    for (std::size_t i = 0; i < rows.shape(0); ++i) {
        if (rows.data()[i] >= segment.view.rows) throw std::out_of_range("no such row");
    }
    auto [data, array] = new_array<std::uint8_t, 2>({rows.shape(0), n_bytes});
    const nb::gil_scoped_release release;
    unpack_rows(segment.view.blocks, n_bytes, rows.data(), rows.shape(0), data);
    return array;
}

std::size_t stray_row(const Codes& codes, std::size_t n_bits, const std::string& bitorder) {
    const unsigned unused = unused_mask(n_bits, order_named(bitorder));
    return first_stray_row(codes.data(), codes.shape(0), codes.shape(1), unused);
}

std::tuple<Output<double, 1>, Output<Id, 1>> linear_scan(const Codes& codes,
                                                         const Input<double, 2>& costs,
                                                         std::size_t k,
                                                         const std::string& bitorder) {
    std::vector<Neighbour> found;
    {
        const nb::gil_scoped_release release;
        found = paper::linear_scan(codes.data(), codes.shape(0), costs.data(), costs.shape(0),
                                   order_named(bitorder), k);
    }
    auto [distances, distance_array] = new_array<double, 1>({k});
    auto [ids, id_array] = new_array<Id, 1>({k});
    for (std::size_t i = 0; i < k; ++i) {
        const bool padded = i >= found.size();
        distances[i] = padded ? padding_distance : found[i].distance;
        ids[i] = padded ? padding_id : found[i].id;
    }
    return {distance_array, id_array};
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The compiled engine of bitweigh. Private: use bitweigh.Index.";

    nb::class_<Tuning>(m, "Tuning", "What tests change so that small inputs reach every path.")
        .def(nb::init<>())
        .def_rw("warm_up_rows", &Tuning::warm_up_rows, "Rows sampled for the first bound.")
        .def_rw("warm_up_per_k", &Tuning::warm_up_per_k, "And for each neighbour wanted.")
        .def_rw("narrow_max_bits", &Tuning::narrow_max_bits, "Longer codes use 16-bit sums.");

    nb::class_<SegmentArrays>(m, "Segment", "Rows in blocks with their ids; immutable.")
        .def(nb::init<Blocks, Ids, std::size_t>(), "blocks"_a, "ids"_a, "n_bits"_a);

    m.def("kernel_names", &kernel_names, "Kernels that this machine can run, fastest first.");
    m.def("pack_blocks", &pack, "codes"_a, "Codes (n, n_bytes) as blocks of 32 rows.");
    m.def("unpack_rows", &unpack, "segment"_a, "n_bytes"_a, "rows"_a,
          "The codes of the given rows, (len(rows), n_bytes).");
    m.def("first_stray_row", &stray_row, "codes"_a, "n_bits"_a, "bitorder"_a,
          "First row with an unused bit set, or the number of rows.");
    m.def("search", &search_segments, "segments"_a, "costs"_a, "k"_a, nb::kw_only(), "bitorder"_a,
          "kernel"_a, "threads"_a, "cap_threads"_a, "single"_a, "tuning"_a,
          "distances (nq, k), ids (nq, k), counters (nq, len(counter_names)).");
    m.def("linear_scan", &linear_scan, "codes"_a, "costs"_a, "k"_a, "bitorder"_a,
          "The paper's Linear Scan: distances (k,), row numbers (k,).");

    nb::list names;
    for (const char* name : counter_names) names.append(name);
    m.attr("counter_names") = nb::tuple(names);
    m.attr("max_segment_rows") = max_segment_rows;
    m.attr("version") = BITWEIGH_VERSION;
}
