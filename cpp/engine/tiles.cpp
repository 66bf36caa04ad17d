#include "engine/tiles.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/probe/probe_query.h"
#include "engine/query/stoppable.h"
#include "engine/scan/scan_query.h"

namespace bitweigh {

namespace {

// How a search is cut into tasks: tiles of queries x pieces of the line of blocks.
struct Split {
    std::size_t threads;
    std::size_t queries_per_tile;
    std::size_t tiles;
    std::size_t pieces;  // Number of pieces of the line per tile.
};

// The bytes that the tables of a byte of a query count as towards the next check.
constexpr std::size_t table_bytes = 2048;

std::size_t divide_up(std::size_t a, std::size_t b) {
    return (a + b - 1) / b;
}

bool worth_probing(const SearchRequest& request, const Segment& segment) {
    // The number of rows within a radius is not known in advance.
    const std::size_t k = request.radii ? 0 : request.k;
    return worth_probing(segment, bytes_of(request.engine.n_bits), k, request.options.method,
                         request.engine.tuning);
}
bool worth_probing(const SearchRequest& request) {
    return std::any_of(request.segments.begin(), request.segments.end(),
                       [&](const Segment& segment) { return worth_probing(request, segment); });
}

Split split_work(const SearchRequest& request, const SegmentLine& line) {
    Split split{};
    const std::size_t block_bytes = bytes_of(request.engine.n_bits) * block_rows;
    split.threads = std::max<std::size_t>(1, request.options.threads);
    if (request.options.cap_threads) {
        std::size_t bytes = line.n_blocks() * block_bytes;
        if (worth_probing(request)) bytes = std::min(bytes, probe_bytes);
        const double worth = static_cast<double>(bytes) * static_cast<double>(request.n_queries) /
                             static_cast<double>(bytes_per_thread);
        if (worth < static_cast<double>(split.threads)) {
            split.threads = std::max<std::size_t>(1, static_cast<std::size_t>(worth));
        }
    }
    const std::size_t tasks = split.threads == 1 ? 1 : split.threads * tasks_per_thread;
    split.queries_per_tile =
        std::clamp<std::size_t>(divide_up(request.n_queries, tasks), 1, tile_queries);
    split.tiles = divide_up(request.n_queries, split.queries_per_tile);
    const std::size_t max_pieces = std::max<std::size_t>(1, line.n_blocks());
    split.pieces = std::min(divide_up(tasks, split.tiles), max_pieces);
    return split;
}

// A few queries, which first probe one after the other and then together scan the segments that
// still need it, chunk by chunk within each piece of the line. prepare() is called once, before the
// pieces; the last piece delivers the answers.
class Tile {
public:
    Tile(const SearchRequest& request, const SegmentLine& line, AnswerSink& answers,
         std::size_t first, std::size_t last, std::size_t pieces)
        : request_(request),
          line_(line),
          answers_(answers),
          first_(first),
          n_(last - first),
          pieces_(pieces),
          pieces_left_(pieces) {}

    // Builds the tables, probes, and samples first bounds for the segments to scan. Returns false
    // if there are none; the answers were then delivered.
    bool prepare(Checkpoint& checkpoint) {
        const auto start = std::chrono::steady_clock::now();
        tables_.reserve(n_);
        found_.resize(n_);
        counters_.resize(n_);
        to_scan_.assign(n_ * request_.segments.size(), 1);
        bounds_ = std::make_unique<SharedBound[]>(n_);
        BorrowedScratch scratch;
        // Where k exceeds the number of rows, all of them must be scored.
        const bool probing =
            worth_probing(request_) && (request_.radii || request_.k <= line_.rows());
        for (std::size_t q = 0; q < n_; ++q) {
            tables_.emplace_back(costs_of(q), request_.engine.n_bits, request_.engine.order);
            if (request_.radii) bounds_[q].lower_to(request_.radii[first_ + q]);
            checkpoint.done(bytes_of(request_.engine.n_bits) * table_bytes);
            if (probing && probing_can_prune(q)) probe(q, *scratch, checkpoint);
        }
        if (std::none_of(to_scan_.begin(), to_scan_.end(), [](char scan) { return scan != 0; })) {
            count_time(start);
            finish(checkpoint);
            return false;
        }
        if (request_.pages) tell_of_scan(*request_.pages);
        for (std::size_t q = 0; q < n_; ++q) {
            if (!any_to_scan(q) || request_.radii) continue;
            sample_bound(tables_[q], line_, max_kept(), request_.engine.tuning, bounds_[q],
                         counters_[q], checkpoint);
        }
        count_time(start);
        return true;
    }

    void run_piece(std::size_t piece, Checkpoint& checkpoint) {
        const auto start = std::chrono::steady_clock::now();
        std::vector<ScanQuery> scans;
        std::vector<std::size_t> queries;
        scans.reserve(n_);
        for (std::size_t q = 0; q < n_; ++q) {
            if (!any_to_scan(q)) continue;
            queries.push_back(q);
            const bool wide = request_.engine.n_bits > request_.engine.tuning.narrow_max_scan_bits;
            scans.emplace_back(tables_[q], max_kept(), *request_.engine.kernel, wide, bounds_[q],
                               false, &checkpoint);
            scans.back().tell(request_.pages);
        }
        scan_piece(scans, queries, line_.n_blocks() * piece / pieces_,
                   line_.n_blocks() * (piece + 1) / pieces_, checkpoint);
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < queries.size(); ++i) {
            collect(queries[i], scans[i], checkpoint);
        }
        count_time(start);
        if (--pieces_left_ == 0) finish(checkpoint);
    }

private:
    // The maximum number of rows to keep for a query: never more than there are.
    std::size_t max_kept() const {
        if (request_.radii) return every_row;
        return std::max<std::size_t>(1, std::min(request_.k, line_.rows()));
    }
    void check_limit(std::size_t q, std::size_t rows) const {
        if (rows > request_.options.limit) throw TooManyRows(first_ + q);
    }
    const double* costs_of(std::size_t q) const {
        return request_.costs + (first_ + q) * request_.engine.n_bits * 2;
    }
    // Whether segment s has yet to be scanned for query q.
    char& to_scan(std::size_t q, std::size_t s) {
        return to_scan_[q * request_.segments.size() + s];
    }
    bool any_to_scan(std::size_t q) {
        for (std::size_t s = 0; s < request_.segments.size(); ++s) {
            if (to_scan(q, s)) return true;
        }
        return false;
    }

    // Tells a reader of the segments that any query of the tile scans: of all of their rows.
    void tell_of_scan(PageReader& pages) {
        for (std::size_t s = 0; s < request_.segments.size(); ++s) {
            const Segment& segment = request_.segments[s];
            bool scanned = false;
            for (std::size_t q = 0; q < n_; ++q) scanned |= to_scan(q, s) != 0;
            if (!scanned) continue;
            const std::size_t row_bytes = segment.bytes_of_row(bytes_of(request_.engine.n_bits));
            pages.will_read(segment.blocks, segment.n_blocks() * block_rows * row_bytes);
            if (segment.lean) {
                const std::size_t n_starts = segment.lean->n_keys + 1;
                pages.will_read(segment.lean->starts, n_starts * sizeof(std::uint32_t));
            }
        }
    }

    // Whether probing can leave rows out; not within an infinite radius.
    bool probing_can_prune(std::size_t q) const {
        return !request_.radii || request_.radii[first_ + q] < padding_distance;
    }

    void probe(std::size_t q, ProbeScratch& scratch, Checkpoint& checkpoint) {
        const bool wide = request_.engine.n_bits > request_.engine.tuning.narrow_max_bits;
        ScanQuery scan(tables_[q], max_kept(), *request_.engine.kernel, wide, bounds_[q], true,
                       &checkpoint);
        scan.tell(request_.pages);
        for (std::size_t s = 0; s < request_.segments.size(); ++s) {
            const Segment& segment = request_.segments[s];
            const bool to_the_end = request_.options.method == Method::probe;
            if (!worth_probing(request_, segment)) continue;
            ProbeQuery probing(segment, costs_of(q), tables_[q], scan, scratch,
                               request_.engine.tuning);
            const std::size_t kept_before = scan.kept();
            to_scan(q, s) = !probing.run(to_the_end, checkpoint);
            // The scan finds every row within the radius: none need be kept twice and merged.
            if (to_scan(q, s) && request_.radii) scan.keep_first(kept_before);
        }
        collect(q, scan, checkpoint);
    }

    void scan_piece(std::vector<ScanQuery>& scans, const std::vector<std::size_t>& queries,
                    std::size_t begin, std::size_t end, Checkpoint& checkpoint) {
        const std::size_t block_bytes = bytes_of(request_.engine.n_bits) * block_rows;
        std::size_t max_blocks = std::max<std::size_t>(4, chunk_bytes / block_bytes);
        if (checkpoint.has_deadline()) max_blocks = std::min(max_blocks, deadline_max_blocks);
        std::vector<Hit> hits(std::min(max_blocks, end - begin));
        std::size_t blocks_scanned = 0;
        line_.visit(begin, end, [&](const Segment& segment, std::size_t from, std::size_t to) {
            const auto s = static_cast<std::size_t>(&segment - request_.segments.data());
            while (from < to) {
                const std::size_t growing =
                    std::max(first_chunk_blocks, blocks_scanned / chunk_growth);
                const std::size_t size = std::min({growing, max_blocks, to - from});
                for (std::size_t i = 0; i < scans.size(); ++i) {
                    if (!to_scan(queries[i], s)) continue;
                    scans[i].scan(segment, from, from + size, hits.data());
                    if (request_.radii) check_limit(queries[i], scans[i].kept());
                    checkpoint.done(size * block_bytes);
                }
                from += size;
                blocks_scanned += size;
            }
        });
    }

    // Merges the rows that `scan` kept: the K nearest of all are among the K nearest of each scan.
    // A row that was both probed and scanned appears twice, in adjacent entries.
    void collect(std::size_t q, ScanQuery& scan, Checkpoint& checkpoint) {
        std::vector<Neighbour> found = scan.take_sorted();
        counters_[q].add(scan.counters());
        if (found_[q].empty()) {
            found_[q] = std::move(found);
            check_limit(q, found_[q].size());
            return;
        }
        const std::size_t n = found_[q].size() + found.size();
        std::vector<Neighbour> merged;
        merged.reserve(n);
        with_order(nearer, &checkpoint, n, [&](const auto& order) {
            std::merge(found_[q].begin(), found_[q].end(), found.begin(), found.end(),
                       std::back_inserter(merged), order);
        });
        const auto same = [](const Neighbour& a, const Neighbour& b) { return a.id == b.id; };
        with_order(same, &checkpoint, n, [&](const auto& same_row) {
            merged.erase(std::unique(merged.begin(), merged.end(), same_row), merged.end());
        });
        merged.resize(std::min(merged.size(), max_kept()));
        found_[q] = std::move(merged);
        check_limit(q, found_[q].size());
    }

    void count_time(std::chrono::steady_clock::time_point start) {
        const std::chrono::nanoseconds spent = std::chrono::steady_clock::now() - start;
        for (SearchCounters& counters : counters_) {
            counters.nanoseconds += static_cast<std::uint64_t>(spent.count()) / n_;
        }
    }

    void finish(Checkpoint& checkpoint) {
        for (std::size_t q = 0; q < n_; ++q) {
            answers_.take(first_ + q, std::move(found_[q]), counters_[q], checkpoint);
        }
        // A batch may have many tiles: each frees its memory when it is done.
        tables_ = std::vector<CostTable>();
        found_ = {};
    }

    const SearchRequest& request_;
    const SegmentLine& line_;
    AnswerSink& answers_;
    const std::size_t first_;   // Index of the tile's first query in the request.
    const std::size_t n_;       // Number of queries of the tile.
    const std::size_t pieces_;  // Number of pieces that the line is cut into.

    // Each of these has an entry per query of the tile.
    std::vector<CostTable> tables_;
    std::unique_ptr<SharedBound[]> bounds_;
    std::vector<char> to_scan_;  // Flags of shape (queries, segments): whether to scan.

    std::mutex mutex_;         // Guard of the members below.
    std::size_t pieces_left_;  // Number of pieces not yet scanned.
    std::vector<std::vector<Neighbour>> found_;
    std::vector<SearchCounters> counters_;
};

}  // namespace

void search_in_tiles(const SearchRequest& request, AnswerSink& answers,
                     const InterruptCheck& check) {
    if (request.n_queries == 0) return;
    clean_vector_state();
    const SegmentLine line(request.segments);
    const Split split = split_work(request, line);
    const auto first_of = [&](std::size_t t) {
        return std::min(request.n_queries, t * split.queries_per_tile);
    };
    const auto run = [&](std::size_t n, const auto& task) {
        run_tasks(n, split.threads, check, request.options.deadline, task);
    };
    if (split.pieces == 1) {
        run(split.tiles, [&](std::size_t t, Checkpoint& checkpoint) {
            Tile tile(request, line, answers, first_of(t), first_of(t + 1), 1);
            if (tile.prepare(checkpoint)) tile.run_piece(0, checkpoint);
        });
        return;
    }
    std::vector<std::unique_ptr<Tile>> tiles;
    tiles.reserve(split.tiles);
    for (std::size_t t = 0; t < split.tiles; ++t) {
        tiles.push_back(std::make_unique<Tile>(request, line, answers, first_of(t), first_of(t + 1),
                                               split.pieces));
    }
    std::vector<char> needs_scan(split.tiles);
    run(split.tiles, [&](std::size_t t, Checkpoint& checkpoint) {
        needs_scan[t] = tiles[t]->prepare(checkpoint);
    });
    run(split.tiles * split.pieces, [&](std::size_t task, Checkpoint& checkpoint) {
        const std::size_t t = task / split.pieces;
        if (needs_scan[t]) tiles[t]->run_piece(task % split.pieces, checkpoint);
    });
}

}  // namespace bitweigh
