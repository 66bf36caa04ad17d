// Searches for Python: converts the arguments, releases the GIL, calls the engine. Python has
// checked the arguments, except for faults that only show while reading the data.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/interruptible.h"
#include "bindings/mapped_pages.h"
#include "bindings/segment_set_object.h"
#include "engine/range_search.h"
#include "engine/scan/scan.h"
#include "engine/search.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace bitweigh {

namespace {

const Kernel& kernel_named(const char* name) {
    const Kernel* kernel = find_kernel(name);
    if (!kernel) {
        throw std::invalid_argument("no kernel named '" + std::string(name) + "' on this machine");
    }
    return *kernel;
}

std::vector<std::string> kernel_names() {
    std::vector<std::string> names;
    for (const Kernel* kernel : available_kernels()) names.emplace_back(kernel->name);
    return names;
}

// An array of the caller that is written to, of any shape with the right number of elements.
template <class Value>
using FlatOutput = nb::ndarray<Value, nb::c_contig, nb::device::cpu>;
using Counters = std::optional<FlatOutput<std::int64_t>>;

template <class Value>
Value* data_of(const FlatOutput<Value>& output, std::size_t size) {
    if (output.size() != size) {
        throw std::invalid_argument("the arrays for the answer do not fit the queries");
    }
    return output.data();
}

// The counters of a search, written for the caller if wanted.
class Counted {
public:
    Counted(const Counters& counters, std::size_t n_queries)
        : counts_(counters ? data_of(*counters, n_queries * n_counters) : nullptr),
          counted_(n_queries) {}

    SearchCounters* data() { return counted_.data(); }
    const std::vector<SearchCounters>& queries() const { return counted_; }
    void write() const {
        if (!counts_) return;
        std::int64_t* counts = counts_;
        for (const SearchCounters& query : counted_) {
            query.write(counts);
            counts += n_counters;
        }
    }

private:
    std::int64_t* counts_;
    std::vector<SearchCounters> counted_;
};

// An engine that counts its queries, and those for which bands were enough. Threads count at once.
struct CountingEngine : Engine {
    explicit CountingEngine(const Engine& engine) : Engine(engine) {}
    // A query whose radius, if there is one, is infinite has all rows: it says nothing about bands.
    void count(const std::vector<SearchCounters>& counted, const double* radii = nullptr) {
        std::uint64_t n_queries = 0, by_bands = 0;
        for (std::size_t q = 0; q < counted.size(); ++q) {
            if (radii && radii[q] == std::numeric_limits<double>::infinity()) continue;
            ++n_queries;
            by_bands += counted[q].probes > 0 && counted[q].fallbacks == 0;
        }
        queries.fetch_add(n_queries, std::memory_order_relaxed);
        queries_by_bands.fetch_add(by_bands, std::memory_order_relaxed);
    }
    std::atomic<std::uint64_t> queries = 0;
    std::atomic<std::uint64_t> queries_by_bands = 0;
};

// (n_bits, 2), a single query, or (nq, n_bits, 2).
using AnyCosts = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

SearchRequest request_of(const Engine& engine, const SegmentSetObject& segments,
                         const AnyCosts& costs, const SearchOptions& options) {
    const std::size_t ndim = costs.ndim();
    if ((ndim != 2 && ndim != 3) || costs.shape(ndim - 1) != 2 ||
        costs.shape(ndim - 2) != engine.n_bits) {
        throw std::invalid_argument("costs must have shape (n_bits, 2) or (nq, n_bits, 2)");
    }
    const bool single = ndim == 2;
    const std::size_t n_queries = single ? 1 : costs.shape(0);
    check_costs(costs.data(), n_queries, engine.n_bits, single, options.deadline);
    if (segments.n_bytes != 0 && segments.n_bytes != bytes_of(engine.n_bits)) {
        throw std::invalid_argument("a segment has codes of another length than the queries");
    }
    return {.segments = segments.set.segments(),
            .engine = engine,
            .costs = costs.data(),
            .n_queries = n_queries,
            .options = options};
}

void search_segments(CountingEngine& engine, const SegmentSetObject& segments,
                     const AnyCosts& costs, std::size_t k, const SearchOptions& options,
                     const FlatOutput<double>& distances, const FlatOutput<Id>& ids,
                     const Counters& counters, PageCounter* pages) {
    SearchRequest request = request_of(engine, segments, costs, options);
    request.pages = pages;
    if (k == 0) throw std::invalid_argument("k must be at least 1");
    request.k = k;
    Counted counted(counters, request.n_queries);
    const std::size_t size = request.n_queries * k;
    const SearchAnswer answer{data_of(distances, size), data_of(ids, size), counted.data()};
    run_interruptibly(options.deadline,
                      [&](const InterruptCheck& check) { search(request, answer, check); });
    engine.count(counted.queries());
    counted.write();
}

using Distances = nb::ndarray<nb::numpy, double, nb::ndim<1>>;
using FoundIds = nb::ndarray<nb::numpy, Id, nb::ndim<1>>;

std::tuple<Distances, FoundIds> range_search_segments(
    CountingEngine& engine, const SegmentSetObject& segments, const AnyCosts& costs,
    const Input<double, 1>& radii, const SearchOptions& options,
    const FlatOutput<std::int64_t>& lims, const Counters& counters) {
    SearchRequest request = request_of(engine, segments, costs, options);
    if (radii.shape(0) != request.n_queries) {
        throw std::invalid_argument("there must be a radius for each query");
    }
    request.radii = radii.data();
    std::int64_t* ends = data_of(lims, request.n_queries + 1);
    Counted counted(counters, request.n_queries);
    auto rows = std::make_unique<FlatRows>();
    run_interruptibly(options.deadline, [&](const InterruptCheck& check) {
        auto found = range_search(request, counted.data(), check);
        Stop never;
        Checkpoint checkpoint(never.requested, &check, options.deadline);
        flatten(found, *rows, ends, checkpoint);
    });
    engine.count(counted.queries(), request.radii);
    counted.write();
    nb::capsule owner(rows.get(), [](void* p) noexcept { delete static_cast<FlatRows*>(p); });
    FlatRows* owned = rows.release();  // only now: there may be no memory for a capsule
    const std::size_t n = owned->ids.size();
    return {Distances(owned->distances.data(), {n}, owner),
            FoundIds(owned->ids.data(), {n}, owner)};
}

// Raises bitweigh.errors.DeadlineError for DeadlinePassed.
void raise_deadline_error(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const DeadlinePassed& passed) {
        const nb::object error = nb::module_::import_("bitweigh.errors").attr("DeadlineError");
        PyErr_SetObject(error.ptr(), error(passed.timeout, passed.seconds_late).ptr());
    }
}

void bind_deadline(nb::module_& m) {
    nb::class_<Deadline>(m, "Deadline", "When a call must have ended; immutable.")
        .def(nb::init<double>(), "timeout"_a,
             "Begin to count `timeout` seconds, by a steady clock.")
        .def(
            "check",
            [](const Deadline& self) {
                if (self.has_passed()) throw DeadlinePassed(self);
            },
            "Raise DeadlineError if the time is over.")
        .def_prop_ro("exists", &Deadline::exists, "Whether the time is limited at all.");
    nb::register_exception_translator(raise_deadline_error);
}

void bind_options(nb::module_& m) {
    nb::enum_<Method>(m, "Method", "How a search uses bands; never changes the answer.")
        .value("auto", Method::automatic)
        .value("scan", Method::scan)
        .value("probe", Method::probe);
    nb::class_<SearchOptions>(m, "SearchOptions", "The options of a single search.")
        .def(nb::init<>())
#define BITWEIGH_PROPERTY(type, name, value, doc) .def_rw(#name, &SearchOptions::name, doc)
            BITWEIGH_SEARCH_OPTIONS(BITWEIGH_PROPERTY)
#undef BITWEIGH_PROPERTY
        ;
}

}  // namespace

void bind_search(nb::module_& m) {
    nb::class_<Tuning>(m, "Tuning", "Settings that tests change to reach every path.")
        .def(nb::init<>())
        .def_rw("warm_up_rows", &Tuning::warm_up_rows,
                "Minimum number of rows sampled for the first bound.")
        .def_rw("warm_up_per_k", &Tuning::warm_up_per_k,
                "Minimum number of rows sampled per neighbour.")
        .def_rw("narrow_max_bits", &Tuning::narrow_max_bits,
                "Longest codes that use 8-bit sums in bands.")
        .def_rw("narrow_max_scan_bits", &Tuning::narrow_max_scan_bits,
                "Longest codes that use 8-bit sums in a scan.")
        .def_rw("first_round_ns", &Tuning::first_round_ns,
                "Estimated time that the first round of probing may take.")
        .def_rw("min_scan_factor", &Tuning::min_scan_factor,
                "Minimum ratio of scan time to set-up time for probing.")
        .def_rw("min_scan_ns_per_k", &Tuning::min_scan_ns_per_k,
                "Minimum scan time per neighbour for probing.")
        .def_rw("scan_factor", &Tuning::scan_factor,
                "Factor by which a scan is assumed to have more blocks.");
    bind_deadline(m);
    bind_options(m);
    nb::class_<CountingEngine>(m, "Engine", "The settings shared by all searches of an index.")
        .def(
            "__init__",
            [](CountingEngine* self, std::size_t n_bits, const char* bitorder, const char* kernel) {
                new (self) CountingEngine({n_bits, order_named(bitorder), &kernel_named(kernel)});
            },
            "n_bits"_a, "bitorder"_a, "kernel"_a)
        .def_prop_rw(
            "kernel", [](const CountingEngine& self) { return self.kernel->name; },
            [](CountingEngine& self, const char* name) { self.kernel = &kernel_named(name); })
        .def_rw("tuning", &CountingEngine::tuning)
        .def_prop_ro(
            "queries", [](const CountingEngine& self) { return self.queries.load(); },
            "Queries that were searched for.")
        .def_prop_ro(
            "queries_by_bands",
            [](const CountingEngine& self) { return self.queries_by_bands.load(); },
            "Queries that were answered by bands, without a scan of what has bands.")
        .def("search", &search_segments, "segments"_a, "costs"_a, "k"_a, "options"_a,
             "distances"_a.noconvert(), "ids"_a.noconvert(),
             "counters"_a.noconvert().none() = nb::none(), "pages"_a.none() = nb::none(),
             "Write the k nearest into distances (nq, k) and ids (nq, k), and the work done into\n"
             "counters (nq, len(counter_names)). `pages` counts for searches on one thread.")
        .def("range_search", &range_search_segments, "segments"_a, "costs"_a, "radii"_a,
             "options"_a, "lims"_a.noconvert(), "counters"_a.noconvert().none() = nb::none(),
             "Return the distances and ids of all rows within each radius, and write where those\n"
             "of each query begin into lims (nq + 1,).");
    nb::class_<PageCounter>(m, "PageCounter", "Counts the pages of 4 KiB that a search reads.")
        .def(nb::init<>())
        .def_prop_ro("pages", &PageCounter::pages, "Pages read, each counted once.")
        .def_prop_ro("missing", &PageCounter::missing,
                     "Pages of files among them that were not in memory before.");
    nb::exception<TooManyRows>(m, "TooManyRowsError", PyExc_ValueError);
    m.def("kernel_names", &kernel_names,
          "Return the kernels that this machine can run, fastest first.");

    nb::list names;
    for (const char* name : SearchCounters::names) names.append(name);
    m.attr("counter_names") = nb::tuple(names);
}

}  // namespace bitweigh
