#include "paper/pq_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "engine/scan/scan.h"
#include "paper/byte_tables.h"
#include "paper/table_merge.h"

namespace bitweigh::paper {

SubCodeQueue::SubCodeQueue(const double* costs, const Substring& substring) {
    for (std::size_t first = 0; first < substring.bits; first += part_bits) {
        const std::size_t bits = std::min(part_bits, substring.bits - first);
        std::vector<SubCode> part(std::size_t{1} << bits);
        for (std::size_t v = 0; v < part.size(); ++v) {
            part[v] = {0.0, static_cast<Key>(v) << first};
            for (std::size_t j = 0; j < bits; ++j) {
                part[v].cost += costs[2 * (substring.first + first + j) + (v >> j & 1)];
            }
        }
        std::sort(part.begin(), part.end(),
                  [](const SubCode& a, const SubCode& b) { return a.cost < b.cost; });
        parts_.push_back(std::move(part));
    }
    queue_.push({cost_of({}), {}});
}

double SubCodeQueue::top_cost() const {
    return queue_.empty() ? std::numeric_limits<double>::infinity() : queue_.top().cost;
}

Bucket SubCodeQueue::pop() {
    const Combination popped = queue_.top();
    queue_.pop();
    std::size_t last = 0;  // the last part that is not at its start
    Key key = 0;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
        if (popped.indexes[p] != 0) last = p;
        key |= parts_[p][popped.indexes[p]].key;
    }
    for (std::size_t p = last; p < parts_.size(); ++p) {
        if (popped.indexes[p] + std::size_t{1} < parts_[p].size()) {
            Combination next = popped;
            ++next.indexes[p];
            next.cost = cost_of(next.indexes);
            queue_.push(next);
        }
    }
    return {popped.cost, key, -1};
}

double SubCodeQueue::cost_of(const std::array<std::uint8_t, max_parts>& indexes) const {
    double cost = 0.0;
    for (std::size_t p = 0; p < parts_.size(); ++p) cost += parts_[p][indexes[p]].cost;
    return cost;
}

std::size_t pq_tables_by_rule(std::size_t n_bits, std::size_t n) {
    const double by_rule =
        static_cast<double>(n_bits) / std::log2(static_cast<double>(std::max<std::size_t>(n, 2)));
    const double power = std::round(std::log2(std::max(by_rule, 1.0)));
    const std::size_t min_tables = std::bit_ceil((n_bits + max_key_bits - 1) / max_key_bits);
    const std::size_t max_tables = std::bit_floor(n_bits);
    return std::min(max_tables,
                    std::max(min_tables, std::size_t{1} << static_cast<unsigned>(power)));
}

// One query with PQTable's own merge.
class PqTable::Search {
public:
    Search(const PqTable& index, std::vector<std::uint16_t>& times_seen, const double* costs,
           std::size_t k, Checkpoint& checkpoint)
        : index_(index),
          times_seen_(times_seen),
          checkpoint_(checkpoint),
          k_(k),
          distances_(costs, index.codes_.n_bits, index.codes_.order) {
        for (const SubstringTable& table : index.tables_) {
            queues_.emplace_back(costs, table.substring());
        }
    }

    Answer run() {
        while (in_all_tables_ < k_ && next_round()) {
        }
        Answer answer{nearest(), counters_};
        for (const Neighbour& row : scored_) {
            times_seen_[static_cast<std::size_t>(row.id)] = 0;
        }
        return answer;
    }

private:
    // Returns false once a table has no bucket left: then every row was seen in it. (This ends a
    // search for K > n.)
    bool next_round() {
        count_round(++counters_.rounds, queues_.size(), checkpoint_);
        for (std::size_t t = 0; t < queues_.size(); ++t) {
            if (queues_[t].empty()) return false;
            visit(index_.tables_[t].bucket(queues_[t].pop().key));
            if (in_all_tables_ >= k_) return true;
        }
        return true;
    }

    void visit(std::span<const Row> bucket) {
        ++counters_.buckets;
        counters_.empty_buckets += bucket.empty();
        for_each_row(bucket, checkpoint_, [&](Row row) {
            std::uint16_t& tables_seen_in = times_seen_[row];
            if (tables_seen_in == 0) {
                ++counters_.candidates;
                scored_.push_back({distances_.distance(index_.codes_.row(row)), row});
            } else {
                ++counters_.duplicates;
            }
            if (++tables_seen_in == queues_.size()) ++in_all_tables_;
        });
    }

    std::vector<Neighbour> nearest() const {
        std::vector<Neighbour> sorted = scored_;
        sort_by_distance(sorted, checkpoint_);
        sorted.resize(std::min(k_, sorted.size()));
        return sorted;
    }

    const PqTable& index_;
    std::vector<std::uint16_t>& times_seen_;  // Number of tables that each row was seen in.
    Checkpoint& checkpoint_;
    std::size_t k_;
    ByteTables<double> distances_;
    std::vector<SubCodeQueue> queues_;
    std::vector<Neighbour> scored_;  // Every row seen, with its distance.
    std::size_t in_all_tables_ = 0;  // Number of rows seen in all tables.
    Counters counters_;
};

PqTable::PqTable(const Codes& codes, std::size_t n_tables, Checkpoint& checkpoint)
    : codes_(codes),
      tables_(split_tables(codes, n_tables, checkpoint)),
      spare_seen_(codes.n),
      spare_times_seen_(codes.n) {}

Answer PqTable::search(const double* costs, std::size_t k, Checkpoint& checkpoint) {
    clean_vector_state();
    const std::size_t n_found = std::min(k, codes_.n);
    if (n_found == 0) return {};
    std::unique_ptr<std::vector<std::uint16_t>> times_seen = spare_times_seen_.take();
    Answer answer = Search(*this, *times_seen, costs, n_found, checkpoint).run();
    spare_times_seen_.give_back(std::move(times_seen));
    return answer;
}

Answer PqTable::search_max_heap(const double* costs, std::size_t k, Checkpoint& checkpoint) {
    clean_vector_state();
    const std::size_t n_found = std::min(k, codes_.n);
    if (n_found == 0) return {};
    std::unique_ptr<SeenRows> seen = spare_seen_.take();
    TableMerge<SubCodeQueue> merge(codes_, tables_, *seen, costs, n_found, QueueOrder::ascending,
                                   checkpoint);
    Answer answer = merge.run();
    spare_seen_.give_back(std::move(seen));
    return answer;
}

}  // namespace bitweigh::paper
