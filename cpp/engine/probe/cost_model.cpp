#include "engine/probe/cost_model.h"

#include <algorithm>
#include <limits>

namespace bitweigh {

double CostModel::scan_ns(double n_blocks, std::size_t n_bytes) const {
    const auto planes = static_cast<double>(n_bytes);
    const double plane_ns = scan_plane_ns + scan_long_plane_ns * planes;
    return n_blocks * planes * plane_ns;
}

double CostModel::scan_ns(double n_blocks, std::size_t n_bytes, std::size_t k) const {
    const double planes_ns = scan_ns(n_blocks, n_bytes);
    return planes_ns + std::min(planes_ns, scan_neighbour_ns * static_cast<double>(k));
}

std::size_t CostModel::usual_verified(std::size_t k) const {
    const std::size_t max_size = std::numeric_limits<std::size_t>::max();
    return k < max_size / usual_verified_per_k ? k * usual_verified_per_k : max_size;
}

double CostModel::tolerance(double spent_share, std::size_t k) const {
    if (spent_share < early_share) {
        const double first = first_tolerance + tolerance_per_k * static_cast<double>(k);
        const double excess = std::min(max_tolerance, first) - early_tolerance;
        return early_tolerance + excess * (1.0 - spent_share / early_share);
    }
    const double unspent = (late_share - spent_share) / (late_share - early_share);
    return 1.0 + (early_tolerance - 1.0) * std::max(0.0, unspent);
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

double ProbeSpending::round_limit_ns(double round_ns) const {
    return is_late() ? round_ns : std::min(round_ns, cost_model.early_share * scan_ns_);
}

}  // namespace bitweigh
