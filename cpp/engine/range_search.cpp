#include "engine/range_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/probe_query.h"

namespace bitweigh {

namespace {

// So many are never kept, so that none is ever dropped for a nearer one.
constexpr std::size_t all_rows = std::numeric_limits<std::size_t>::max() / 4;

class RangeQuery {
public:
    RangeQuery(const SearchRequest& request, std::size_t query, double radius, std::size_t limit)
        : request_(request),
          query_(query),
          radius_(radius),
          limit_(limit),
          costs_(request.costs + query * request.n_bits * 2),
          table_(costs_, request.n_bits, request.order),
          scan_(table_, all_rows, *request.kernel, request.n_bits > request.tuning.narrow_max_bits,
                bound_),
          look_at_(limit) {
        bound_.lower_to(radius);
    }

    std::vector<Neighbour> run(ProbeSpace& space, Checkpoint& checkpoint) {
        for (const Segment& segment : request_.segments) {
            bool met = false;
            // Without a bound there is nothing that probing could leave out.
            if (radius_ < padding_distance &&
                may_probe(segment, table_.n_bytes(), 0, request_.method, request_.tuning)) {
                ProbeQuery probing(segment, costs_, table_, scan_, space, request_.tuning);
                met = probing.run(request_.method == Method::probe, checkpoint);
                check_limit();
            }
            if (!met) scan(segment, checkpoint);
        }
        std::vector<Neighbour> found = scan_.take_sorted();
        // A row that was met in several bands comes several times, side by side.
        const auto same = [](const Neighbour& a, const Neighbour& b) { return a.id == b.id; };
        found.erase(std::unique(found.begin(), found.end(), same), found.end());
        if (found.size() > limit_) throw TooManyRows(query_);
        return found;
    }

    SearchCounters counters() { return scan_.counters(); }

private:
    void scan(const Segment& segment, Checkpoint& checkpoint) {
        if (segment.allowed_blocks.data() != nullptr) {
            scan_.scan_allowed(segment, 0, segment.n_blocks(), checkpoint);
            return;
        }
        const std::size_t block_bytes = bytes_of(request_.n_bits) * block_rows;
        const std::size_t chunk = std::max<std::size_t>(4, chunk_bytes / block_bytes);
        std::vector<Hit> hits(std::min(chunk, segment.n_blocks()));
        for (std::size_t first = 0; first < segment.n_blocks(); first += chunk) {
            const std::size_t last = std::min(first + chunk, segment.n_blocks());
            scan_.scan(segment, first, last, hits.data());
            checkpoint.done((last - first) * block_bytes);
            check_limit();
        }
    }

    // A row is met as often as its blocks are, in several bands or for several keys of one.
    void check_limit() {
        if (scan_.kept() <= look_at_) return;
        scan_.drop_repeats();
        if (scan_.kept() > limit_) throw TooManyRows(query_);
        look_at_ = std::max(limit_, 2 * scan_.kept());
    }

    const SearchRequest& request_;
    std::size_t query_;
    double radius_;
    std::size_t limit_;
    const double* costs_;
    CostTable table_;
    SharedBound bound_;
    ScanQuery scan_;
    std::size_t look_at_;  // so many rows, repeats among them, that it is worth to look
};

}  // namespace

std::vector<std::vector<Neighbour>> range_search(const SearchRequest& request, const double* radii,
                                                 std::size_t limit, SearchCounters* counters,
                                                 const InterruptCheck& check) {
    std::vector<std::vector<Neighbour>> found(request.n_queries);
    clean_vector_state();
    run_tasks(request.n_queries, request.threads, check, [&](std::size_t q, Checkpoint& checkpoint) {
        RangeQuery query(request, q, radii[q], limit);
        found[q] = query.run(space_of_thread(), checkpoint);
        counters[q] = query.counters();
    });
    return found;
}

}  // namespace bitweigh
