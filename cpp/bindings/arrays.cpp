#include "bindings/arrays.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "engine/float_mode.h"
#include "engine/query/cost_table.h"

namespace bitweigh {

BitOrder order_named(const std::string& name) {
    return name == "little" ? BitOrder::little : BitOrder::big;
}

void widen(const nanobind::ndarray<const float, nanobind::c_contig, nanobind::device::cpu>& values,
           const nanobind::ndarray<double, nanobind::c_contig, nanobind::device::cpu>& widened) {
    if (values.size() != widened.size()) {
        throw std::invalid_argument("widened must have as many elements as values");
    }
    const StandardFloatMode mode;
    std::copy_n(values.data(), values.size(), widened.data());
}

void check_costs(const double* costs, std::size_t n_queries, std::size_t n_bits, bool single,
                 const Deadline& deadline) {
    const StandardFloatMode mode;
    for (std::size_t q = 0; q < n_queries; ++q) {
        if (q % 16 == 15 && deadline.has_passed()) throw DeadlinePassed(deadline);
        const double* query_costs = costs + q * n_bits * 2;
        const CostFault fault = find_cost_fault(query_costs, n_bits);
        if (fault.kind == CostFault::Kind::none) continue;
        const std::string index = single ? "" : std::to_string(q);
        if (fault.kind == CostFault::Kind::too_large) {
            throw std::invalid_argument(
                "costs" + (single ? "" : "[" + index + "]") +
                ": the absolute values of a query's costs must add up to at most 2**1020");
        }
        const double value = query_costs[2 * fault.bit + fault.value];
        const std::string shown = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
        throw std::invalid_argument("costs[" + index + (single ? "" : ", ") +
                                    std::to_string(fault.bit) + ", " + std::to_string(fault.value) +
                                    "] is " + shown + ", every cost must be finite");
    }
}

}  // namespace bitweigh
