#include "paper/mih.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "engine/scan/scan.h"
#include "paper/byte_tables.h"
#include "paper/hamming.h"

namespace bitweigh::paper {

namespace {

// Rows by plain Hamming distance: shells[d] has those at distance d.
using Shells = std::vector<std::vector<Row>>;

// Calls visit(flips) for every key with exactly `weight` bits set, all among the low `bits` bits.
template <class Visit>
void visit_subsets(std::size_t bits, std::size_t weight, Checkpoint& checkpoint, Visit visit) {
    if (weight > bits) return;
    if (weight == 0) return visit(Key{0});
    const std::uint64_t limit = std::uint64_t{1} << bits;
    for (std::uint64_t set = (std::uint64_t{1} << weight) - 1; set < limit;) {
        for (std::size_t i = 0; i < piece_buckets && set < limit; ++i) {
            visit(static_cast<Key>(set));
            // The next larger number with as many bits set (Gosper).
            const std::uint64_t lowest = set & (~set + 1);
            const std::uint64_t ripple = set + lowest;
            set = ripple | (((set ^ ripple) / lowest) >> 2);
        }
        count(checkpoint, piece_buckets * bucket_bytes);
    }
}

}  // namespace

Answer hamming_ranking(const Codes& codes, const double* costs, std::size_t k,
                       Checkpoint& checkpoint) {
    clean_vector_state();
    const std::vector<std::uint8_t> query = cheapest_code(costs, codes.n_bits, codes.order);
    Shells shells(codes.n_bits + 1);
    in_pieces(codes.n, checkpoint, [&](std::size_t first, std::size_t n) {
        for (std::size_t i = first; i < first + n; ++i) {
            const std::size_t d = hamming_distance(codes.row(i), query.data(), codes.n_bytes());
            // A shell needs at most K rows: later rows rank after those in it.
            if (shells[d].size() < k) shells[d].push_back(static_cast<Row>(i));
        }
    });
    Answer answer;
    answer.counters.candidates = codes.n;
    for (std::size_t d = 0; d < shells.size(); ++d) {
        for (Row row : shells[d]) {
            if (answer.neighbours.size() == k) return answer;
            answer.neighbours.push_back({static_cast<double>(d), row});
        }
    }
    return answer;
}

// One query of MIH.
class MultiIndexHashing::Search {
public:
    Search(const MultiIndexHashing& index, SeenRows& seen, const double* costs, std::size_t k,
           Checkpoint& checkpoint)
        : index_(index),
          seen_(seen),
          checkpoint_(checkpoint),
          k_(k),
          query_(cheapest_code(costs, index.codes_.n_bits, index.codes_.order)),
          distances_(costs, index.codes_.n_bits, index.codes_.order),
          shells_(index.codes_.n_bits + 1) {
        for (const SubstringTable& table : index.tables_) {
            keys_.push_back(key_of(query_.data(), table.substring(), index.codes_.order));
        }
    }

    Answer run(Culled culled) {
        const std::size_t radius = grow_radius();
        Answer answer;
        for_each_row(rows_to_rank(radius, culled), checkpoint_, [&](Row row) {
            answer.neighbours.push_back({distances_.distance(index_.codes_.row(row)), row});
        });
        sort_by_distance(answer.neighbours, checkpoint_);
        answer.neighbours.resize(std::min(k_, answer.neighbours.size()));
        answer.counters = counters_;
        seen_.clear();
        return answer;
    }

private:
    // Grows the radius r of the search until K codes are within it, and returns it. A code within
    // r = m a + b of the query is within a in one of the first b + 1 substrings or within a - 1 in
    // one of the others, so step r probes only table r mod m, at distance r / m.
    std::size_t grow_radius() {
        const std::size_t m = index_.tables_.size();
        std::size_t within = 0;
        for (std::size_t r = 0;; ++r) {
            const SubstringTable& table = index_.tables_[r % m];
            // Not inlined, the call for each bucket would cost 4 % of a query.
            const auto probe = [&](Key flips) __attribute__((always_inline)) {
                visit(table.bucket(keys_[r % m] ^ flips));
            };
            visit_subsets(table.substring().bits, r / m, checkpoint_, probe);
            ++counters_.rounds;
            // Every code within distance r is known now. At r = n_bits that is every code, which
            // ends a search for K > n.
            within += shells_[r].size();
            if (within >= k_ || r == index_.codes_.n_bits) return r;
        }
    }

    void visit(std::span<const Row> bucket) {
        ++counters_.buckets;
        counters_.empty_buckets += bucket.empty();
        for_each_row(bucket, checkpoint_, [&](Row row) {
            if (!seen_.insert(row)) {
                ++counters_.duplicates;
                return;
            }
            ++counters_.candidates;
            const std::uint8_t* code = index_.codes_.row(row);
            shells_[hamming_distance(code, query_.data(), index_.codes_.n_bytes())].push_back(row);
        });
    }

    std::vector<Row> rows_to_rank(std::size_t radius, Culled culled) {
        const std::size_t last = culled == Culled::met ? shells_.size() - 1 : radius;
        std::vector<Row> rows;
        for (std::size_t d = 0; d <= last; ++d) {
            sort_checked(shells_[d].size(), checkpoint_, std::less<Row>(), [&](const auto& before) {
                std::sort(shells_[d].begin(), shells_[d].end(), before);
            });
            rows.insert(rows.end(), shells_[d].begin(), shells_[d].end());
        }
        if (culled == Culled::found) rows.resize(std::min(k_, rows.size()));
        return rows;
    }

    const MultiIndexHashing& index_;
    SeenRows& seen_;
    Checkpoint& checkpoint_;
    std::size_t k_;
    std::vector<std::uint8_t> query_;
    std::vector<Key> keys_;  // Key of the query in each table.
    ByteTables<double> distances_;
    Shells shells_;
    Counters counters_;
};

MultiIndexHashing::MultiIndexHashing(const Codes& codes, std::size_t m, Checkpoint& checkpoint)
    : codes_(codes), tables_(split_tables(codes, m, checkpoint)), spare_(codes.n) {}

Answer MultiIndexHashing::search(const double* costs, std::size_t k, Culled culled,
                                 Checkpoint& checkpoint) {
    clean_vector_state();
    const std::size_t n_found = std::min(k, codes_.n);
    if (n_found == 0) return {};
    std::unique_ptr<SeenRows> seen = spare_.take();
    Answer answer = Search(*this, *seen, costs, n_found, checkpoint).run(culled);
    spare_.give_back(std::move(seen));
    return answer;
}

}  // namespace bitweigh::paper
