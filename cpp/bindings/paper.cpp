// The extension module of the paper's methods: converts, releases the GIL, calls. It shares no
// bound class with the engine's module.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/interruptible.h"
#include "paper/checked_loops.h"
#include "paper/linear_scan.h"
#include "paper/mih.h"
#include "paper/miwq.h"
#include "paper/pq_table.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace bitweigh;

namespace {

constexpr const char* counter_names[] = {"buckets", "empty_buckets", "candidates", "duplicates",
                                         "rounds"};

// The arrays for the answers: (nq, k), (nq, k) and, except for scans, (nq, len(counter_names)).
using Distances = Output<double, 2>;
using RowNumbers = Output<Id, 2>;
using Counts = Output<std::int64_t, 2>;

void check_shapes(bool match) {
    if (!match) throw std::invalid_argument("the arrays do not fit each other");
}

void write(const std::vector<Neighbour>& found, double* distances, Id* ids, std::size_t k) {
    for (std::size_t i = 0; i < k; ++i) {
        const bool padded = i >= found.size();
        distances[i] = padded ? padding_distance : found[i].distance;
        ids[i] = padded ? padding_id : found[i].id;
    }
}

// Calls search(costs, k, checkpoint) for one query after the other, without the GIL, and passes its
// result to write_answer(query, answer). `costs` has shape (nq, n_bits, 2).
template <class Search, class Write>
void for_each_query(const Costs& costs, std::size_t n_bits, const Distances& distances,
                    const RowNumbers& ids, const Search& search, const Write& write_answer) {
    check_costs(costs, costs.shape(0) == 1);
    check_shapes(costs.shape(1) == n_bits && costs.shape(2) == 2 &&
                 distances.shape(0) == costs.shape(0) && ids.shape(0) == costs.shape(0) &&
                 distances.shape(1) > 0 && ids.shape(1) == distances.shape(1));
    run_checked(nullptr, [&](Checkpoint& checkpoint) {
        for (std::size_t q = 0; q < costs.shape(0); ++q) {
            write_answer(q, search(costs.data() + q * n_bits * 2, distances.shape(1), checkpoint));
            checkpoint.done(paper::bucket_bytes);
        }
    });
}

template <class Search>
void scan_each(const Codes& codes, const Costs& costs, const Distances& distances,
               const RowNumbers& ids, const Search& search) {
    check_shapes(codes.shape(1) == bytes_of(costs.shape(1)) && codes.shape(0) < max_segment_rows);
    const std::size_t k = distances.shape(1);
    for_each_query(costs, costs.shape(1), distances, ids, search,
                   [&](std::size_t q, const std::vector<Neighbour>& found) {
                       write(found, distances.data() + q * k, ids.data() + q * k, k);
                   });
}

template <class Search>
void probe_each(const Costs& costs, std::size_t n_bits, const Distances& distances,
                const RowNumbers& ids, const Counts& counts, const Search& search) {
    constexpr std::size_t n_counts = std::size(counter_names);
    check_shapes(counts.shape(0) == costs.shape(0) && counts.shape(1) == n_counts);
    const std::size_t k = distances.shape(1);
    for_each_query(costs, n_bits, distances, ids, search,
                   [&](std::size_t q, const paper::Answer& answer) {
                       write(answer.neighbours, distances.data() + q * k, ids.data() + q * k, k);
                       const paper::Counters& c = answer.counters;
                       std::int64_t* out = counts.data() + q * n_counts;
                       for (std::uint64_t count :
                            {c.buckets, c.empty_buckets, c.candidates, c.duplicates, c.rounds}) {
                           *out++ = static_cast<std::int64_t>(count);
                       }
                   });
}

void linear_scan(const Codes& codes, const Costs& costs, const Distances& distances,
                 const RowNumbers& ids, const std::string& bitorder, bool single_precision) {
    const BitOrder order = order_named(bitorder);
    scan_each(codes, costs, distances, ids,
              [&](const double* query, std::size_t k, Checkpoint& checkpoint) {
                  return paper::linear_scan(codes.data(), codes.shape(0), query, costs.shape(1),
                                            order, k, single_precision, checkpoint);
              });
}

// An index of the paper together with the codes it reads, which it keeps alive.
template <class Index>
struct Owner {
    Codes codes;
    paper::Codes view;           // View of `codes`.
    std::optional<Index> index;  // Set by the constructor.

    template <class... More>
    Owner(Codes codes_in, std::size_t n_bits, const std::string& bitorder, More... more)
        : codes(std::move(codes_in)),
          view{codes.data(), codes.shape(0), n_bits, order_named(bitorder)} {
        if (codes.shape(1) != view.n_bytes() || codes.shape(0) >= max_segment_rows) {
            throw std::invalid_argument(
                "codes must have ceil(n_bits / 8) columns and fewer than 2**32 - 64 rows");
        }
        run_checked(nullptr,
                    [&](Checkpoint& checkpoint) { index.emplace(view, more..., checkpoint); });
    }
};

using Single = Owner<paper::SingleIndex>;
using Multi = Owner<paper::MultiIndex>;
using Hashing = Owner<paper::MultiIndexHashing>;
using Pq = Owner<paper::PqTable>;

void hamming_ranking(const Codes& codes, const Costs& costs, const Distances& distances,
                     const RowNumbers& ids, const std::string& bitorder) {
    const paper::Codes view{codes.data(), codes.shape(0), costs.shape(1), order_named(bitorder)};
    scan_each(codes, costs, distances, ids,
              [&](const double* query, std::size_t k, Checkpoint& checkpoint) {
                  return paper::hamming_ranking(view, query, k, checkpoint).neighbours;
              });
}

paper::Culled culled_named(const std::string& name) {
    if (name == "found") return paper::Culled::found;
    return name == "met" ? paper::Culled::met : paper::Culled::shell;
}

}  // namespace

NB_MODULE(_paper, m) {
    // A daemon thread that is alive at exit keeps objects alive, which is not a leak.
    nb::set_leak_warnings(false);
    m.doc() = "The compiled methods of the paper. Private: use bitweigh.paper.";

    m.def("linear_scan", &linear_scan, "codes"_a, "costs"_a, "distances"_a.noconvert(),
          "ids"_a.noconvert(), "bitorder"_a, "single_precision"_a,
          "The paper's Linear Scan: write the k nearest into distances (nq, k) and their row "
          "numbers\n"
          "into ids (nq, k).");
    m.def("substrings_by_rule", &paper::substrings_by_rule, "n_bits"_a, "n"_a,
          "The paper's number of tables for n codes.");

    nb::class_<Single>(m, "SingleIndex", "The paper's Alg. 1.")
        .def(nb::init<Codes, std::size_t, const std::string&>(), "codes"_a, "n_bits"_a,
             "bitorder"_a)
        .def(
            "search",
            [](const Single& self, const Costs& costs, const Distances& distances,
               const RowNumbers& ids, const Counts& counts) {
                probe_each(costs, self.view.n_bits, distances, ids, counts,
                           [&](const double* query, std::size_t k, Checkpoint& checkpoint) {
                               return self.index->search(query, k, checkpoint);
                           });
            },
            "costs"_a, "distances"_a.noconvert(), "ids"_a.noconvert(), "counts"_a.noconvert());

    nb::class_<Multi>(m, "MultiIndex", "The paper's Alg. 2.")
        .def(nb::init<Codes, std::size_t, const std::string&, std::size_t>(), "codes"_a, "n_bits"_a,
             "bitorder"_a, "m"_a)
        .def(
            "search",
            [](Multi& self, const Costs& costs, const Distances& distances, const RowNumbers& ids,
               const Counts& counts, bool descending) {
                const paper::QueueOrder order =
                    descending ? paper::QueueOrder::descending : paper::QueueOrder::ascending;
                probe_each(costs, self.view.n_bits, distances, ids, counts,
                           [&](const double* query, std::size_t k, Checkpoint& checkpoint) {
                               return self.index->search(query, k, order, checkpoint);
                           });
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
                const paper::Culled ranked = culled_named(culled);
                probe_each(costs, self.view.n_bits, distances, ids, counts,
                           [&](const double* query, std::size_t k, Checkpoint& checkpoint) {
                               return self.index->search(query, k, ranked, checkpoint);
                           });
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
                probe_each(costs, self.view.n_bits, distances, ids, counts,
                           [&](const double* query, std::size_t k, Checkpoint& checkpoint) {
                               return max_heap ? self.index->search_max_heap(query, k, checkpoint)
                                               : self.index->search(query, k, checkpoint);
                           });
            },
            "costs"_a, "distances"_a.noconvert(), "ids"_a.noconvert(), "counts"_a.noconvert(),
            "max_heap"_a);

    nb::list names;
    for (const char* name : counter_names) names.append(name);
    m.attr("counter_names") = nb::tuple(names);
}
