// The types of NumPy arrays that the bindings accept, and the checks that need to read them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/deadline.h"
#include "engine/rows/bits.h"
#include "engine/types.h"

namespace bitweigh {

template <class Value, std::size_t ndim>
using Input =
    nanobind::ndarray<const Value, nanobind::ndim<ndim>, nanobind::c_contig, nanobind::device::cpu>;
// An array of the caller that is written to.
template <class Value, std::size_t ndim>
using Output =
    nanobind::ndarray<Value, nanobind::ndim<ndim>, nanobind::c_contig, nanobind::device::cpu>;
using Codes = Input<std::uint8_t, 2>;
using Blocks = Input<std::uint8_t, 1>;
using Ids = Input<Id, 1>;
using Costs = Input<double, 3>;

// A sequence of objects that hold a T.
//
// Arguments are never std::vector or std::shared_ptr: nanobind converts those in noexcept
// functions, where a lack of memory would end the process.
template <class T>
using Objects = nanobind::typed<nanobind::sequence, T>;

// The T that an object holds, kept alive with the object; null for None. The last copy must be
// dropped by a thread that has the GIL.
template <class T>
std::shared_ptr<const T> shared_from(nanobind::handle object) {
    if (object.is_none()) return nullptr;
    const T* value = nanobind::cast<const T*>(object);
    return {value, [owner = nanobind::borrow(object)](const T*) {}};
}
template <class T>
std::vector<std::shared_ptr<const T>> all_shared_from(const nanobind::sequence& objects) {
    std::vector<std::shared_ptr<const T>> values;
    for (nanobind::handle object : objects) values.push_back(shared_from<T>(object));
    return values;
}

BitOrder order_named(const std::string& name);

// Writes each value as a double, exactly. NumPy would convert in the floating-point mode of the
// caller, which may turn subnormal values into zero.
void widen(const nanobind::ndarray<const float, nanobind::c_contig, nanobind::device::cpu>& values,
           const nanobind::ndarray<double, nanobind::c_contig, nanobind::device::cpu>& widened);

// Raises ValueError for the first query with a fault, naming the element as the caller indexes it:
// a single query without its index. Throws DeadlinePassed if that comes first.
void check_costs(const double* costs, std::size_t n_queries, std::size_t n_bits, bool single,
                 const Deadline& deadline = {});
inline void check_costs(const Costs& costs, bool single) {
    check_costs(costs.data(), costs.shape(0), costs.shape(1), single);
}

// Each defines the functions and classes of the file of its name.
void bind_search(nanobind::module_& m);
void bind_segments(nanobind::module_& m);
void bind_building(nanobind::module_& m);
void bind_lean(nanobind::module_& m);
void bind_ranking(nanobind::module_& m);

}  // namespace bitweigh
