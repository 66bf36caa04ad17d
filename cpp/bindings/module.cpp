// The extension module: what Python sees of the engine. No logic.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bindings/arrays.h"
#include "engine/rows/segment.h"
#include "engine/types.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace bitweigh;

NB_MODULE(_core, m) {
    // A daemon thread that is alive at exit keeps objects alive, which is not a leak.
    nb::set_leak_warnings(false);
    m.doc() = "The compiled engine of bitweigh. Private: use bitweigh.Index.";

    bind_search(m);
    bind_segments(m);
    bind_building(m);
    bind_lean(m);
    bind_ranking(m);
    m.def("widen", &widen, "values"_a, "widened"_a.noconvert(),
          "Write each value into widened as float64, exactly in any floating-point mode.");

    m.attr("max_segment_rows") = max_segment_rows;
    m.attr("max_band_bits") = max_band_bits;
    m.attr("max_lean_bits") = max_lean_bits;
    m.attr("version") = BITWEIGH_VERSION;
}
