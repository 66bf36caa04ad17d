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
#include "bindings/interruptible.h"
#include "bindings/segment_arrays.h"
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

constexpr const char* counter_names[] = {"rows_scored_directly",
                                         "rows_scanned",
                                         "rows_scanned_wide",
                                         "candidates",
                                         "rescales",
                                         "capped_entries",
                                         "probes",
                                         "empty_probes",
                                         "blocks_probed",
                                         "rounds",
                                         "walks_again",
                                         "exhausted_bands",
                                         "duplicates",
                                         "give_ups",
                                         "predicted_cost",
                                         "probing_cost",
                                         "scan_cost",
                                         "nanoseconds"};

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

using AllowedList = std::optional<Objects<AllowedArrays>>;

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

void allow(const AllowedArrays& allowed, const SegmentArrays& arrays, DeniedSegments& segments) {
    segments.push_back(arrays, &allowed.denied);
    if (!allowed.blocks) return;
    const std::size_t n_blocks = segments.back().n_blocks();
    for (std::size_t i = 0; i < allowed.blocks->shape(0); ++i) {
        if (allowed.blocks->data()[i] >= n_blocks) throw std::out_of_range("no such block");
    }
    segments.back().allowed_blocks = {allowed.blocks->data(), allowed.blocks->shape(0)};
}

// Checks what an Ask holds and makes a request of it; `filtered` must outlive the request.
SearchRequest request_of(const Ask& ask, std::size_t k, DeniedSegments& filtered) {
    check_costs(ask.costs, ask.single);
    if (ask.costs.shape(1) == 0 || ask.costs.shape(2) != 2) {
        throw std::invalid_argument("costs must have shape (nq, n_bits, 2)");
    }
    for (const SegmentArrays* segment : ask.segments.arrays) {
        if (segment->n_bytes != bytes_of(ask.costs.shape(1))) {
            throw std::invalid_argument("a segment has codes of another length than the queries");
        }
    }
    std::span<const Segment> segments = ask.segments.segments.views();
    if (ask.allowed) {
        const std::vector<const AllowedArrays*> allowed = pointers_of<AllowedArrays>(*ask.allowed);
        if (allowed.size() != segments.size()) {
            throw std::invalid_argument("a filter must be given for each segment");
        }
        for (std::size_t s = 0; s < segments.size(); ++s) {
            if (!allowed[s]) throw std::invalid_argument("a filter must not be None");
            allow(*allowed[s], *ask.segments.arrays[s], filtered);
        }
        segments = filtered.views();
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
    DeniedSegments filtered;
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
    DeniedSegments filtered;
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
    nb::capsule owner(all.get(), [](void* p) noexcept {
        delete static_cast<std::pair<std::vector<double>, std::vector<Id>>*>(p);
    });
    auto* pair = all.release();  // only now: there may be no memory for a capsule
    const std::size_t n = pair->first.size();
    return {Distances(pair->first.data(), {n}, owner), FoundIds(pair->second.data(), {n}, owner)};
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
        .def_rw("narrow_max_scan_bits", &Tuning::narrow_max_scan_bits, "And in a scan.")
        .def_rw("first_round_cost", &Tuning::first_round_cost, "Of probing, in nanoseconds.")
        .def_rw("least_scan_factor", &Tuning::least_scan_factor, "Where bands are used at all.")
        .def_rw("least_scan_cost_per_k", &Tuning::least_scan_cost_per_k, "And per neighbour.");

    m.def("kernel_names", &kernel_names, "Kernels that this machine can run, fastest first.");
    bind_segments(m);
    bind_building(m);
    m.def("widen", &widen, "values"_a, "widened"_a.noconvert(),
          "Write each float32 into widened as float64, whatever the floating-point mode.");
    m.def("search", &search_segments, "segments"_a, "allowed"_a.none(), "costs"_a, "single"_a,
          "bitorder"_a, "method"_a, "kernel"_a, "threads"_a, "cap_threads"_a, "tuning"_a, "k"_a,
          "distances"_a.noconvert(), "ids"_a.noconvert(), "counters"_a.noconvert().none(),
          "Write the k nearest into distances (nq, k) and ids (nq, k), and what was done into\n"
          "counters (nq, len(counter_names)).");
    m.def("range_search", &range_search_segments, "segments"_a, "allowed"_a.none(), "costs"_a,
          "single"_a, "bitorder"_a, "method"_a, "kernel"_a, "threads"_a, "cap_threads"_a,
          "tuning"_a, "radii"_a, "limit"_a, "lims"_a.noconvert(), "counters"_a.noconvert().none(),
          "Distances and ids of all rows within each radius; where those of each query begin goes\n"
          "into lims (nq + 1,).");
    nb::exception<TooManyRows>(m, "TooManyRowsError", PyExc_ValueError);

    nb::list names;
    for (const char* name : counter_names) names.append(name);
    m.attr("counter_names") = nb::tuple(names);
    m.attr("max_segment_rows") = max_segment_rows;
    m.attr("max_band_bits") = max_band_bits;
    m.attr("version") = BITWEIGH_VERSION;
}
