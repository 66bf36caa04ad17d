#include "engine/ranking.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "engine/query/stoppable.h"
#include "engine/tuning.h"

namespace bitweigh {

namespace {

// Widens a half exactly, without branches, so that compilers vectorise loops over it.
float as_float(Half half) {
    const auto bits = static_cast<std::int32_t>(half);
    // Exponent and fraction at the bits where float has them.
    const std::int32_t magnitude = (bits & 0x7fff) << 13;
    constexpr std::int32_t rebias = (127 - 15) << 23;     // from half's exponent to float's
    constexpr std::int32_t min_normal = 113 << 23;        // 2^-14
    const std::int32_t is_tiny = -(magnitude < 1 << 23);  // all bits, or none
    const std::int32_t is_infinite_or_nan = -(magnitude >= 31 << 23);
    const std::int32_t normal = magnitude + rebias + (is_infinite_or_nan & rebias);
    // Below 2^-14 the fraction counts units of 2^-24: it is added to 2^-14, which is exact, and
    // 2^-14 is subtracted again.
    const float tiny =
        std::bit_cast<float>(magnitude + min_normal) - std::bit_cast<float>(min_normal);
    const std::int32_t widened =
        (is_tiny & std::bit_cast<std::int32_t>(tiny)) | (~is_tiny & normal);
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
    return std::bit_cast<float>(static_cast<std::uint32_t>(widened) | sign);
}

double squared_gap(double v, double q) {
    return (v - q) * (v - q);
}
double product(double v, double q) {
    return v * q;
}
double square(double v, double) {
    return v * v;
}

// The sum of term(v[i], q[i]) over n features, added in the order of NumPy's pairwise summation.
template <double term(double, double)>
double pairwise_sum(const float* v, const double* q, std::size_t n) {
    constexpr std::size_t max_leaf = 128;
    if (n > max_leaf) {
        const std::size_t half = n / 2 - n / 2 % 8;
        return pairwise_sum<term>(v, q, half) + pairwise_sum<term>(v + half, q + half, n - half);
    }
    const auto at = [&](std::size_t i) { return term(v[i], q[i]); };
    // NumPy starts from -0 instead: only the sign of a sum of 0 depends on that.
    double sum = 0.0;
    std::size_t i = 0;
    if (n >= 8) {
        // Eight variables instead of an array: compilers keep them in vector registers.
        double a = at(0), b = at(1), c = at(2), d = at(3), e = at(4), f = at(5), g = at(6),
               h = at(7);
        for (i = 8; i + 8 <= n; i += 8) {
            a += at(i);
            b += at(i + 1);
            c += at(i + 2);
            d += at(i + 3);
            e += at(i + 4);
            f += at(i + 5);
            g += at(i + 6);
            h += at(i + 7);
        }
        sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
    }
    for (; i < n; ++i) sum += at(i);
    return sum;
}

double euclidean(const float* v, const double* q, std::size_t n) {
    return std::sqrt(pairwise_sum<squared_gap>(v, q, n));
}

double cosine(const float* v, const double* q, std::size_t n) {
    const double length = std::sqrt(pairwise_sum<square>(v, q, n));
    const double distance = 1.0 - pairwise_sum<product>(v, q, n) / length;
    // A NaN stays a NaN: it compares false.
    return distance < 0.0 ? 0.0 : distance > 2.0 ? 2.0 : distance;
}

double distance_of(VectorMetric metric, const float* v, const double* q, std::size_t n) {
    switch (metric) {
        case VectorMetric::euclidean:
            return euclidean(v, q, n);
        case VectorMetric::cosine:
            return cosine(v, q, n);
        case VectorMetric::inner_product:
            break;
    }
    return -pairwise_sum<product>(v, q, n);
}

// Computes distances to stored vectors. Other numbers than floats are first widened into an
// internal buffer, exactly.
template <class Stored>
class Meter {
public:
    Meter(VectorMetric metric, std::size_t n_features)
        : metric_(metric), widened_(n_features), n_(n_features) {}

    const float* floats_of(const float* row) { return row; }
    const float* floats_of(const Half* row) {
        float* widened = widened_.data();
        for (std::size_t i = 0; i < n_; ++i) widened[i] = as_float(row[i]);
        return widened_.data();
    }
    const float* floats_of(const std::int8_t* row) {
        float* widened = widened_.data();
        for (std::size_t i = 0; i < n_; ++i) widened[i] = row[i];
        return widened_.data();
    }

    double distance(const float* row, const double* query) const {
        return distance_of(metric_, row, query, n_);
    }

private:
    VectorMetric metric_;
    std::vector<float> widened_;
    std::size_t n_;
};

// Prefetches the start of a row. Rows are scattered over a file, so that one is fetched while
// another is summed.
template <class Stored>
void prefetch_row(const Stored* row, std::size_t n_features) {
    constexpr std::size_t line_bytes = 64;
    const auto* bytes = reinterpret_cast<const char*>(row);
    const std::size_t n_bytes = std::min(n_features * sizeof(Stored), max_prefetched_bytes);
    for (std::size_t i = 0; i < n_bytes; i += line_bytes) __builtin_prefetch(bytes + i);
}

std::size_t threads_for(const ThreadLimit& threads, double vector_bytes) {
    const std::size_t limit = std::max<std::size_t>(1, threads.limit);
    const double worth = vector_bytes * ranking_bytes_factor / bytes_per_thread;
    if (!threads.capped || worth >= static_cast<double>(limit)) return limit;
    return std::max<std::size_t>(1, static_cast<std::size_t>(worth));
}

// Calls work(first, end, checkpoint) for parts [first, end) of [0, n), on at most `threads`
// threads.
template <class Work>
void in_parts(std::size_t n, std::size_t threads, const InterruptCheck& check,
              const Deadline& deadline, const Work& work) {
    const std::size_t parts = std::min(n, threads == 1 ? 1 : threads * tasks_per_thread);
    run_tasks(parts, threads, check, deadline, [&](std::size_t part, Checkpoint& checkpoint) {
        const std::size_t step = (n + parts - 1) / parts;
        work(std::min(n, part * step), std::min(n, (part + 1) * step), checkpoint);
    });
}

template <class Stored>
void check_row(const VectorTable<Stored>& table, std::int64_t row) {
    if (row < 0 || static_cast<std::uint64_t>(row) >= table.n_rows()) {
        throw std::out_of_range("no such row");
    }
}

bool is_ranked_before(const Neighbour& a, const Neighbour& b) {
    if (std::isnan(a.distance) || std::isnan(b.distance)) {
        if (std::isnan(a.distance) != std::isnan(b.distance)) return std::isnan(b.distance);
        return a.id < b.id;
    }
    return is_nearer(a, b);
}

// Ranks candidates, one query at a time.
template <class Stored>
class Ranker {
public:
    Ranker(const VectorTable<Stored>& table, VectorMetric metric)
        : table_(table), meter_(metric, table.n_features()) {}

    // Returns those of n candidates that have a row, with the k nearest sorted to the front.
    const std::vector<Neighbour>& rank(const double* query, const std::int64_t* rows, const Id* ids,
                                       std::size_t n, std::size_t k, Checkpoint& checkpoint) {
        found_.clear();
        rows_.clear();
        visit_in_steps(n, &checkpoint, [&](std::size_t i) {
            if (rows[i] < 0) return;
            check_row(table_, rows[i]);
            rows_.push_back(table_.row(static_cast<std::size_t>(rows[i])));
            found_.push_back({0.0, ids[i]});
        });
        const std::size_t n_features = table_.n_features();
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if (i + 2 < rows_.size()) prefetch_row(rows_[i + 2], n_features);
            found_[i].distance = meter_.distance(meter_.floats_of(rows_[i]), query);
            checkpoint.done(n_features * sizeof(Stored) * ranking_bytes_factor);
        }
        const auto end = found_.begin() + static_cast<std::ptrdiff_t>(std::min(k, found_.size()));
        with_order(is_ranked_before, &checkpoint, found_.size(), [&](const auto& order) {
            std::partial_sort(found_.begin(), end, found_.end(), order);
        });
        return found_;
    }

private:
    const VectorTable<Stored>& table_;
    Meter<Stored> meter_;
    std::vector<const Stored*> rows_;
    std::vector<Neighbour> found_;
};

}  // namespace

template <class Stored>
void rank_candidates(const VectorTable<Stored>& table, const Queries& queries,
                     const Candidates& candidates, VectorMetric metric, std::size_t k,
                     double* distances, Id* ids, ThreadLimit threads, const InterruptCheck& check,
                     const Deadline& deadline) {
    const std::size_t n = candidates.per_query;
    const std::size_t row_bytes = table.n_features() * sizeof(Stored);
    const double work = static_cast<double>(queries.size) * static_cast<double>(n * row_bytes);
    in_parts(queries.size, threads_for(threads, work), check, deadline,
             [&](std::size_t first, std::size_t end, Checkpoint& checkpoint) {
                 Ranker<Stored> ranker(table, metric);
                 for (std::size_t q = first; q < end; ++q) {
                     const double* query = queries.values + q * table.n_features();
                     const std::vector<Neighbour>& ranked = ranker.rank(
                         query, candidates.rows + q * n, candidates.ids + q * n, n, k, checkpoint);
                     visit_in_steps(k, &checkpoint, [&](std::size_t i) {
                         const bool found = i < ranked.size();
                         distances[q * k + i] = found ? ranked[i].distance : padding_distance;
                         ids[q * k + i] = found ? ranked[i].id : padding_id;
                     });
                 }
             });
}

template <class Stored>
void write_distances(const VectorTable<Stored>& table, const Queries& queries,
                     const std::int64_t* rows, std::size_t n_rows, VectorMetric metric,
                     double* distances, ThreadLimit threads, const InterruptCheck& check,
                     const Deadline& deadline) {
    const std::size_t n_features = table.n_features();
    const std::size_t row_bytes = n_features * sizeof(Stored);
    const double work = static_cast<double>(queries.size) * static_cast<double>(n_rows * row_bytes);
    in_parts(n_rows, threads_for(threads, work), check, deadline,
             [&](std::size_t first, std::size_t end, Checkpoint& checkpoint) {
                 Meter<Stored> meter(metric, n_features);
                 for (std::size_t i = first; i < end; ++i) {
                     check_row(table, rows[i]);
                     const float* row =
                         meter.floats_of(table.row(static_cast<std::size_t>(rows[i])));
                     for (std::size_t q = 0; q < queries.size; ++q) {
                         distances[q * n_rows + i] =
                             meter.distance(row, queries.values + q * n_features);
                         checkpoint.done(row_bytes * ranking_bytes_factor);
                     }
                 }
             });
}

void find_sorted(const Id* sorted, std::size_t n_sorted, const Id* ids, std::size_t n_ids,
                 std::int64_t* positions, Checkpoint& checkpoint) {
    for (std::size_t i = 0; i < n_ids; ++i) {
        // The first sorted id that is not less is one of the `size` from `first` on, or after them.
        // No branch depends on an id, so that the processor begins the next search early.
        std::size_t first = 0, size = n_sorted;
        while (size > 1) {
            const std::size_t half = size / 2;
            first += sorted[first + half - 1] < ids[i] ? half : 0;
            size -= half;
        }
        const bool found = n_sorted > 0 && sorted[first] == ids[i];
        positions[i] = found ? static_cast<std::int64_t>(first) : -1;
        checkpoint.done(sizeof(Id) * ranking_bytes_factor);
    }
}

void sort_found(double* distances, Id* ids, const std::int64_t* ends, std::size_t n_queries,
                Checkpoint& checkpoint) {
    std::vector<Neighbour> found;
    for (std::size_t q = 0; q < n_queries; ++q) {
        const auto first = static_cast<std::size_t>(ends[q]);
        const auto n = static_cast<std::size_t>(ends[q + 1]) - first;
        found.clear();
        found.reserve(n);  // a growing vector would copy millions of entries between two checks
        visit_in_steps(n, &checkpoint, [&](std::size_t i) {
            found.push_back({distances[first + i], ids[first + i]});
        });
        sort_by_distance(found, &checkpoint);
        visit_in_steps(n, &checkpoint, [&](std::size_t i) {
            distances[first + i] = found[i].distance;
            ids[first + i] = found[i].id;
        });
    }
}

template void rank_candidates(const VectorTable<float>&, const Queries&, const Candidates&,
                              VectorMetric, std::size_t, double*, Id*, ThreadLimit,
                              const InterruptCheck&, const Deadline&);
template void rank_candidates(const VectorTable<Half>&, const Queries&, const Candidates&,
                              VectorMetric, std::size_t, double*, Id*, ThreadLimit,
                              const InterruptCheck&, const Deadline&);
template void rank_candidates(const VectorTable<std::int8_t>&, const Queries&, const Candidates&,
                              VectorMetric, std::size_t, double*, Id*, ThreadLimit,
                              const InterruptCheck&, const Deadline&);
template void write_distances(const VectorTable<float>&, const Queries&, const std::int64_t*,
                              std::size_t, VectorMetric, double*, ThreadLimit,
                              const InterruptCheck&, const Deadline&);
template void write_distances(const VectorTable<Half>&, const Queries&, const std::int64_t*,
                              std::size_t, VectorMetric, double*, ThreadLimit,
                              const InterruptCheck&, const Deadline&);
template void write_distances(const VectorTable<std::int8_t>&, const Queries&, const std::int64_t*,
                              std::size_t, VectorMetric, double*, ThreadLimit,
                              const InterruptCheck&, const Deadline&);

}  // namespace bitweigh
