#include "engine/probe/cost_model.h"

#include <algorithm>
#include <limits>

namespace bitweigh {

double CostModel::scan_ns(std::size_t n_blocks, std::size_t n_bytes) const {
    const auto planes = static_cast<double>(n_bytes);
    const double plane_ns = scan_plane_ns + scan_long_plane_ns * planes;
    return static_cast<double>(n_blocks) * planes * plane_ns;
}

double CostModel::scan_ns(std::size_t n_blocks, std::size_t n_bytes, std::size_t k) const {
    const double planes_ns = scan_ns(n_blocks, n_bytes);
    return planes_ns + std::min(planes_ns, scan_neighbour_ns * static_cast<double>(k));
}

std::size_t CostModel::usual_verified(std::size_t k) const {
    const std::size_t max = std::numeric_limits<std::size_t>::max();
    return k < max / usual_verified_per_k ? k * usual_verified_per_k : max;
}

double CostModel::tolerance(double spent_share, std::size_t k) const {
    if (spent_share < early_share) {
        const double first = first_tolerance + tolerance_per_k * static_cast<double>(k);
        const double more = std::min(max_tolerance, first) - early_tolerance;
        return early_tolerance + more * (1.0 - spent_share / early_share);
    }
    const double left = (late_share - spent_share) / (late_share - early_share);
    return 1.0 + (early_tolerance - 1.0) * std::max(0.0, left);
}

double CostModel::limit_ns(double scan_ns, double predicted_ns) const {
    return std::max(min_share * scan_ns,
                    std::min(max_share * scan_ns, prediction_margin * predicted_ns));
}

double ProbeSpending::left_ns() const {
    return std::max(0.0, limit_ns_ - spent_ns_);
}

double ProbeSpending::overrun_allowed_ns() const {
    const double tolerance = bound_falls_ ? cost_model.tolerance(spent_ns_ / scan_ns_, k_) : 1.0;
    return scan_ns_ * tolerance - spent_ns_;
}

double ProbeSpending::round_limit_ns(double wanted_ns) const {
    return is_late() ? wanted_ns : std::min(wanted_ns, cost_model.early_share * scan_ns_);
}

}  // namespace bitweigh
