// NumPy arrays as the bindings take them, and the checks that need to read them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/bits.h"
#include "engine/types.h"

namespace bitweigh {

template <class Value, std::size_t ndim>
using Input =
    nanobind::ndarray<const Value, nanobind::ndim<ndim>, nanobind::c_contig, nanobind::device::cpu>;
// An array of the caller's that is written to.
template <class Value, std::size_t ndim>
using Output =
    nanobind::ndarray<Value, nanobind::ndim<ndim>, nanobind::c_contig, nanobind::device::cpu>;
using Codes = Input<std::uint8_t, 2>;
using Blocks = Input<std::uint8_t, 1>;
using Ids = Input<Id, 1>;
using Costs = Input<double, 3>;

// Objects that hold a T, as pointers to it; null for None.
//
// Arguments are no std::vector: nanobind converts those where nothing may be thrown, and so a lack
// of memory would end the process.
template <class T>
using Objects = nanobind::typed<nanobind::sequence, T>;
template <class T>
std::vector<const T*> pointers_of(const nanobind::sequence& objects) {
    std::vector<const T*> pointers;
    for (nanobind::handle object : objects) {
        pointers.push_back(object.is_none() ? nullptr : nanobind::cast<const T*>(object));
    }
    return pointers;
}

BitOrder order_named(const std::string& name);

// Writes each value as a double, exactly. NumPy does so in the floating-point mode of the caller,
// which may take tiny values for zero.
void widen(const nanobind::ndarray<const float, nanobind::c_contig, nanobind::device::cpu>& values,
           const nanobind::ndarray<double, nanobind::c_contig, nanobind::device::cpu>& widened);

// Raises ValueError for the first query with a fault, naming the place as the caller indexes it.
void check_costs(const Costs& costs, bool single);

// The functions and classes of the files of these names.
void bind_segments(nanobind::module_& m);
void bind_building(nanobind::module_& m);

}  // namespace bitweigh
