// Ranking by true distance, for Python: passes NumPy arrays of vectors to the engine.
#include "engine/ranking.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/interruptible.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace bitweigh {

namespace {

using VectorArray = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A sequence of arrays whose rows are numbered consecutively.
using Vectors = nb::typed<nb::sequence, nb::object>;

// Calls work(table) with the rows of all arrays, which must be of one dtype: int8, float16 or
// float32.
template <class Work>
void with_table(const Vectors& arrays, std::size_t n_features, const Work& work) {
    VectorTable<float> floats(n_features);
    VectorTable<Half> halves(n_features);
    VectorTable<std::int8_t> bytes(n_features);
    std::vector<VectorArray> owners;  // keep the arrays alive even if the caller's sequence changes
    for (nb::handle object : arrays) {
        const auto& array = owners.emplace_back(nb::cast<VectorArray>(object));
        if (array.shape(1) != n_features) {
            throw std::invalid_argument("the vectors have another width than the queries");
        }
        if (array.dtype() == nb::dtype<float>()) {
            floats.push_back(static_cast<const float*>(array.data()), array.shape(0));
        } else if (array.dtype() == nb::dlpack::dtype{2, 16, 1}) {
            halves.push_back(static_cast<const Half*>(array.data()), array.shape(0));
        } else if (array.dtype() == nb::dtype<std::int8_t>()) {
            bytes.push_back(static_cast<const std::int8_t*>(array.data()), array.shape(0));
        } else {
            throw std::invalid_argument("vectors must be int8, float16 or float32");
        }
    }
    if ((floats.n_rows() > 0) + (halves.n_rows() > 0) + (bytes.n_rows() > 0) > 1) {
        throw std::invalid_argument("the arrays of vectors must have one dtype");
    }
    if (halves.n_rows()) {
        work(halves);
    } else if (bytes.n_rows()) {
        work(bytes);
    } else {
        work(floats);
    }
}

VectorMetric metric_named(const std::string& name) {
    if (name == "inner_product") return VectorMetric::inner_product;
    return name == "cosine" ? VectorMetric::cosine : VectorMetric::euclidean;
}

void rank(const Vectors& vectors, const Input<double, 2>& queries,
          const Input<std::int64_t, 2>& rows, const Input<Id, 2>& ids, const std::string& metric,
          std::size_t threads, bool cap_threads, const Output<double, 2>& distances,
          const Output<Id, 2>& nearest, const Deadline* deadline) {
    const std::size_t n_queries = queries.shape(0), k = distances.shape(1);
    if (rows.shape(0) != n_queries || ids.shape(0) != n_queries || ids.shape(1) != rows.shape(1) ||
        distances.shape(0) != n_queries || nearest.shape(0) != n_queries || nearest.shape(1) != k) {
        throw std::invalid_argument("the arrays do not fit the queries");
    }
    with_table(vectors, queries.shape(1), [&](const auto& table) {
        run_interruptibly(or_none(deadline), [&](const InterruptCheck& check) {
            rank_candidates(table, {queries.data(), n_queries},
                            {rows.data(), ids.data(), rows.shape(1)}, metric_named(metric), k,
                            distances.data(), nearest.data(), {threads, cap_threads}, check,
                            or_none(deadline));
        });
    });
}

void distances_to(const Vectors& vectors, const Input<double, 2>& queries,
                  const Input<std::int64_t, 1>& rows, const std::string& metric,
                  std::size_t threads, bool cap_threads, const Output<double, 2>& distances,
                  const Deadline* deadline) {
    if (distances.shape(0) != queries.shape(0) || distances.shape(1) != rows.shape(0)) {
        throw std::invalid_argument("the arrays do not fit the queries");
    }
    with_table(vectors, queries.shape(1), [&](const auto& table) {
        run_interruptibly(or_none(deadline), [&](const InterruptCheck& check) {
            write_distances(table, {queries.data(), queries.shape(0)}, rows.data(), rows.shape(0),
                            metric_named(metric), distances.data(), {threads, cap_threads}, check,
                            or_none(deadline));
        });
    });
}

void find(const Ids& ids, const Ids& wanted, const Output<std::int64_t, 1>& places,
          const Deadline* deadline) {
    if (places.shape(0) != wanted.shape(0)) {
        throw std::invalid_argument("places must have as many elements as wanted");
    }
    run_checked(nullptr, or_none(deadline), [&](Checkpoint& checkpoint) {
        find_sorted(ids.data(), ids.shape(0), wanted.data(), wanted.shape(0), places.data(),
                    checkpoint);
    });
}

void sort_all(const Output<double, 1>& distances, const Output<Id, 1>& ids,
              const Input<std::int64_t, 1>& ends, const Deadline* deadline) {
    const std::size_t n = distances.shape(0), n_ends = ends.shape(0);
    bool fits = n == ids.shape(0) && n_ends > 0 && ends.data()[0] == 0 &&
                static_cast<std::size_t>(ends.data()[n_ends - 1]) == n;
    for (std::size_t q = 1; q < n_ends; ++q) fits = fits && ends.data()[q - 1] <= ends.data()[q];
    if (!fits) throw std::invalid_argument("ends must ascend from 0 to the number of elements");
    run_checked(nullptr, or_none(deadline), [&](Checkpoint& checkpoint) {
        sort_found(distances.data(), ids.data(), ends.data(), n_ends - 1, checkpoint);
    });
}

}  // namespace

void bind_ranking(nb::module_& m) {
    m.def(
        "rank_candidates", &rank, "vectors"_a, "queries"_a, "rows"_a, "ids"_a, "metric"_a,
        "threads"_a, "cap_threads"_a, "distances"_a.noconvert(), "nearest"_a.noconvert(),
        "deadline"_a.none() = nb::none(),
        "Write the nearest of each query's candidates into distances (nq, k) and nearest (nq, k).\n"
        "Candidates are rows (nq, m) of the arrays in vectors, -1 for none, and their ids.");
    m.def("vector_distances", &distances_to, "vectors"_a, "queries"_a, "rows"_a, "metric"_a,
          "threads"_a, "cap_threads"_a, "distances"_a.noconvert(), "deadline"_a.none() = nb::none(),
          "Write the distance of each query to each row into distances (nq, n).");
    m.def(
        "find_sorted", &find, "ids"_a, "wanted"_a, "places"_a.noconvert(),
        "deadline"_a.none() = nb::none(),
        "Write the position of each wanted id in ids, which must be ascending, into places (n,);\n"
        "-1 if it is not there.");
    m.def(
        "sort_found", &sort_all, "distances"_a.noconvert(), "ids"_a.noconvert(), "ends"_a,
        "deadline"_a.none() = nb::none(),
        "Sort elements [ends[q], ends[q + 1]) of both arrays (n,) by (distance, id), for each q.");
}

}  // namespace bitweigh
