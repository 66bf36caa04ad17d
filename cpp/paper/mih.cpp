#include "paper/mih.h"

#include <algorithm>
#include <numeric>

#include "engine/scan/scan.h"
#include "paper/byte_tables.h"
#include "paper/hamming.h"

namespace bitweigh::paper {

namespace {

// Rows by plain Hamming distance: list d has those at distance d.
using Shells = std::vector<std::vector<Row>>;

// Calls visit(flips) for every set of exactly `weight` of the low `bits` bits.
template <class Visit>
void visit_subsets(std::size_t bits, std::size_t weight, Visit visit) {
    if (weight > bits) return;
    if (weight == 0) return visit(Key{0});
    const std::uint64_t limit = std::uint64_t{1} << bits;
    for (std::uint64_t set = (std::uint64_t{1} << weight) - 1; set < limit;) {
        visit(static_cast<Key>(set));
        // The next larger number with as many bits set (Gosper).
        const std::uint64_t lowest = set & (~set + 1);
        const std::uint64_t ripple = set + lowest;
        set = ripple | (((set ^ ripple) / lowest) >> 2);
    }
}

}  // namespace

Answer hamming_ranking(const Codes& codes, const double* costs, std::size_t k) {
    clean_vector_state();
    const std::vector<std::uint8_t> query = cheapest_code(costs, codes.n_bits, codes.order);
    Shells shells(codes.n_bits + 1);
    for (std::size_t i = 0; i < codes.n; ++i) {
        const std::size_t d = hamming_distance(codes.row(i), query.data(), codes.n_bytes());
        // A full shell needs no more rows than K: later ones come after those in it.
        if (shells[d].size() < k) shells[d].push_back(static_cast<Row>(i));
    }
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
    Search(MultiIndexHashing& index, const double* costs, std::size_t k)
        : index_(index),
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
        for (Row row : rows_to_rank(radius, culled)) {
            answer.neighbours.push_back({distances_.distance(index_.codes_.row(row)), row});
        }
        std::sort(answer.neighbours.begin(), answer.neighbours.end(), nearer);
        answer.neighbours.resize(std::min(k_, answer.neighbours.size()));
        answer.counters = counters_;
        index_.met_.forget();
        return answer;
    }

private:
    // Grows the radius r of the search until K codes are within it, and returns it. A code within
    // r = m a + b of the query is within a in one of the first b + 1 substrings or within a - 1 in
    // one of the others, so step r probes the one table r mod m at distance r / m.
    std::size_t grow_radius() {
        const std::size_t m = index_.tables_.size();
        std::size_t within = 0;
        for (std::size_t r = 0;; ++r) {
            const SubstringTable& table = index_.tables_[r % m];
            visit_subsets(table.substring().bits, r / m, [&](Key flips) {
                meet(table.bucket(keys_[r % m] ^ flips));
            });
            ++counters_.rounds;
            // Every code at distance r is known now. At n_bits that is every code: K > n ends there.
            within += shells_[r].size();
            if (within >= k_ || r == index_.codes_.n_bits) return r;
        }
    }

    void meet(std::span<const Row> bucket) {
        ++counters_.buckets;
        counters_.empty_buckets += bucket.empty();
        for (Row row : bucket) {
            if (!index_.met_.meet(row)) {
                ++counters_.duplicates;
                continue;
            }
            ++counters_.candidates;
            const std::uint8_t* code = index_.codes_.row(row);
            shells_[hamming_distance(code, query_.data(), index_.codes_.n_bytes())].push_back(row);
        }
    }

    std::vector<Row> rows_to_rank(std::size_t radius, Culled culled) {
        const std::size_t last = culled == Culled::met ? shells_.size() - 1 : radius;
        std::vector<Row> rows;
        for (std::size_t d = 0; d <= last; ++d) {
            std::sort(shells_[d].begin(), shells_[d].end());
            rows.insert(rows.end(), shells_[d].begin(), shells_[d].end());
        }
        if (culled == Culled::found) rows.resize(std::min(k_, rows.size()));
        return rows;
    }

    MultiIndexHashing& index_;
    std::size_t k_;
    std::vector<std::uint8_t> query_;
    std::vector<Key> keys_;  // of the query, by table
    ByteTables<double> distances_;
    Shells shells_;
    Counters counters_;
};

MultiIndexHashing::MultiIndexHashing(const Codes& codes, std::size_t m)
    : codes_(codes), tables_(split_tables(codes, m)), met_(codes.n) {}

Answer MultiIndexHashing::search(const double* costs, std::size_t k, Culled culled) {
    clean_vector_state();
    const std::size_t wanted = std::min(k, codes_.n);
    if (wanted == 0) return {};
    const std::lock_guard lock(mutex_);
    return Search(*this, costs, wanted).run(culled);
}

}  // namespace bitweigh::paper
