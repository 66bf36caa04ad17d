// The paper's methods for Python: converts, releases the GIL, calls.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/arrays.h"
#include "paper/linear_scan.h"
#include "paper/mih.h"
#include "paper/miwq.h"
#include "paper/pq_table.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace bitweigh {

namespace {

constexpr const char* counter_names[] = {"buckets", "empty_buckets", "candidates", "duplicates",
                                         "rounds"};

// Where one query's answer goes: (k,), (k,) and, but for the linear scan, (len(counter_names),).
using Distances = Output<double, 1>;
using RowNumbers = Output<Id, 1>;
using Counts = Output<std::int64_t, 1>;

// `costs` is one query, (1, n_bits, 2).
void check(const Costs& costs, std::size_t n_bits, const Distances& distances,
           const RowNumbers& ids) {
    check_costs(costs, true);
    if (costs.shape(0) != 1 || costs.shape(1) != n_bits || costs.shape(2) != 2 ||
        distances.shape(0) == 0 || ids.shape(0) != distances.shape(0)) {
        throw std::invalid_argument("the arrays do not fit each other");
    }
}

void write(const std::vector<Neighbour>& found, const Distances& distances,
           const RowNumbers& ids) {
    for (std::size_t i = 0; i < distances.shape(0); ++i) {
        const bool padded = i >= found.size();
        distances.data()[i] = padded ? padding_distance : found[i].distance;
        ids.data()[i] = padded ? padding_id : found[i].id;
    }
}

void write(const paper::Answer& answer, const Distances& distances, const RowNumbers& ids,
           const Counts& counts) {
    if (counts.shape(0) != std::size(counter_names)) {
        throw std::invalid_argument("the array for the counts does not fit");
    }
    write(answer.neighbours, distances, ids);
    const paper::Counters& c = answer.counters;
    std::int64_t* out = counts.data();
    for (std::uint64_t count :
         {c.buckets, c.empty_buckets, c.candidates, c.duplicates, c.rounds}) {
        *out++ = static_cast<std::int64_t>(count);
    }
}

void linear_scan(const Codes& codes, const Costs& costs, const Distances& distances,
                 const RowNumbers& ids, const std::string& bitorder, bool single_precision) {
    check(costs, costs.shape(1), distances, ids);
    if (codes.shape(1) != bytes_of(costs.shape(1))) {
        throw std::invalid_argument("the arrays do not fit each other");
    }
    const nb::gil_scoped_release release;
    write(paper::linear_scan(codes.data(), codes.shape(0), costs.data(), costs.shape(1),
                             order_named(bitorder), distances.shape(0), single_precision),
          distances, ids);
}

// An index of the paper's together with the codes it reads, which it keeps alive.
template <class Index>
struct Owner {
    Codes codes;
    paper::Codes view;
    Index index;

    template <class... More>
    Owner(Codes codes_in, std::size_t n_bits, const std::string& bitorder, More... more)
        : codes(std::move(codes_in)),
          view{codes.data(), codes.shape(0), n_bits, order_named(bitorder)},
          index(checked(view, codes), more...) {}

    static const paper::Codes& checked(const paper::Codes& view, const Codes& codes) {
        if (codes.shape(1) != view.n_bytes() || codes.shape(0) >= max_segment_rows) {
            throw std::invalid_argument("the codes do not fit");
        }
        return view;
    }
};

using Single = Owner<paper::SingleIndex>;
using Multi = Owner<paper::MultiIndex>;
using Hashing = Owner<paper::MultiIndexHashing>;
using Pq = Owner<paper::PqTable>;

void hamming_ranking(const Codes& codes, const Costs& costs, const Distances& distances,
                     const RowNumbers& ids, const std::string& bitorder) {
    check(costs, costs.shape(1), distances, ids);
    if (codes.shape(1) != bytes_of(costs.shape(1)) || codes.shape(0) >= max_segment_rows) {
        throw std::invalid_argument("the arrays do not fit each other");
    }
    const paper::Codes view{codes.data(), codes.shape(0), costs.shape(1), order_named(bitorder)};
    const nb::gil_scoped_release release;
    write(paper::hamming_ranking(view, costs.data(), distances.shape(0)).neighbours, distances,
          ids);
}

paper::Culled culled_named(const std::string& name) {
    if (name == "found") return paper::Culled::found;
    return name == "met" ? paper::Culled::met : paper::Culled::shell;
}

}  // namespace

void bind_paper(nb::module_& m) {
    m.def("linear_scan", &linear_scan, "codes"_a, "costs"_a, "distances"_a.noconvert(),
          "ids"_a.noconvert(), "bitorder"_a, "single_precision"_a,
          "The paper's Linear Scan: write the k nearest into distances (k,) and row numbers (k,).");
    m.def("substrings_by_rule", &paper::substrings_by_rule, "n_bits"_a, "n"_a,
          "The paper's number of tables for n codes.");

    nb::class_<Single>(m, "SingleIndex", "The paper's Alg. 1.")
        .def(nb::init<Codes, std::size_t, const std::string&>(), "codes"_a, "n_bits"_a,
             "bitorder"_a)
        .def(
            "search",
            [](const Single& self, const Costs& costs, const Distances& distances,
               const RowNumbers& ids, const Counts& counts) {
                check(costs, self.view.n_bits, distances, ids);
                const nb::gil_scoped_release release;
                write(self.index.search(costs.data(), distances.shape(0)), distances, ids, counts);
            },
            "costs"_a, "distances"_a.noconvert(), "ids"_a.noconvert(), "counts"_a.noconvert());

    nb::class_<Multi>(m, "MultiIndex", "The paper's Alg. 2.")
        .def(nb::init<Codes, std::size_t, const std::string&, std::size_t>(), "codes"_a, "n_bits"_a,
             "bitorder"_a, "m"_a)
        .def(
            "search",
            [](Multi& self, const Costs& costs, const Distances& distances, const RowNumbers& ids,
               const Counts& counts, bool descending) {
                check(costs, self.view.n_bits, distances, ids);
                const nb::gil_scoped_release release;
                write(self.index.search(costs.data(), distances.shape(0),
                                        descending ? paper::QueueOrder::descending
                                                   : paper::QueueOrder::ascending),
                      distances, ids, counts);
            },
            "costs"_a, "distances"_a.noconvert(), "ids"_a.noconvert(), "counts"_a.noconvert(),
            "descending"_a);

    m.def("hamming_ranking", &hamming_ranking, "codes"_a, "costs"_a, "distances"_a.noconvert(),
          "ids"_a.noconvert(), "bitorder"_a, "The paper's Baseline.");

    nb::class_<Hashing>(m, "MultiIndexHashing", "MIH, culled by weighted distance.")
        .def(nb::init<Codes, std::size_t, const std::string&, std::size_t>(), "codes"_a, "n_bits"_a,
             "bitorder"_a, "m"_a)
        .def(
            "search",
            [](Hashing& self, const Costs& costs, const Distances& distances, const RowNumbers& ids,
               const Counts& counts, const std::string& culled) {
                check(costs, self.view.n_bits, distances, ids);
                const nb::gil_scoped_release release;
                write(self.index.search(costs.data(), distances.shape(0), culled_named(culled)),
                      distances, ids, counts);
            },
            "costs"_a, "distances"_a.noconvert(), "ids"_a.noconvert(), "counts"_a.noconvert(),
            "culled"_a);

    m.def("pq_tables_by_rule", &paper::pq_tables_by_rule, "n_bits"_a, "n"_a,
          "PQTable's number of tables for n codes.");

    nb::class_<Pq>(m, "PqTable", "PQTable over weighted binary codes.")
        .def(nb::init<Codes, std::size_t, const std::string&, std::size_t>(), "codes"_a, "n_bits"_a,
             "bitorder"_a, "m"_a)
        .def(
            "search",
            [](Pq& self, const Costs& costs, const Distances& distances, const RowNumbers& ids,
               const Counts& counts, bool max_heap) {
                check(costs, self.view.n_bits, distances, ids);
                const nb::gil_scoped_release release;
                const std::size_t k = distances.shape(0);
                write(max_heap ? self.index.search_max_heap(costs.data(), k)
                               : self.index.search(costs.data(), k),
                      distances, ids, counts);
            },
            "costs"_a, "distances"_a.noconvert(), "ids"_a.noconvert(), "counts"_a.noconvert(),
            "max_heap"_a);

    nb::list names;
    for (const char* name : counter_names) names.append(name);
    m.attr("paper_counter_names") = nb::tuple(names);
}

}  // namespace bitweigh
