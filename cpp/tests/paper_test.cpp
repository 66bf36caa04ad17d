// Tests the paper's claims about its queues (Alg. 1) and its merge (Alg. 2): a plain program,
// paper_test.
//
// The merge is watched probe by probe and compared with brute force.
#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "paper/bucket_queue.h"
#include "paper/pq_table.h"
#include "paper/table_merge.h"
#include "tests/check.h"
#include "tests/paper_cases.h"

namespace bitweigh::test {

namespace {

using paper::BucketQueue;
using paper::QueueOrder;
using paper::SubCodeQueue;

// Counts of the situations that the checks are about: without them the checks prove nothing.
struct Tally {
    std::size_t stops_below_s = 0;         // Stops with S-hat < S.
    std::size_t final_before_the_end = 0;  // Probes with nearest rows final and others not seen.
    std::size_t descending_was_earlier = 0;
    std::size_t cases_without_ties = 0;
    std::size_t levels_with_ties = 0;
};
Tally tally;

// Corollary 1 and Theorem 1: every key is popped once and costs never fall, so each key popped is
// the cheapest of those not popped before.
template <class Queue>
void check_queue(const CostKind& kind, const std::vector<double>& costs,
                 const Substring& substring) {
    const std::size_t n_keys = std::size_t{1} << substring.bits;
    std::vector<int> came(n_keys, 0);
    double last = -infinity;
    bool never_falls = true;
    bool costs_agree = true;
    Queue queue(costs.data(), substring);
    std::size_t n_popped = 0;
    // A queue that repeats keys might never be empty.
    for (; !queue.empty() && n_popped <= n_keys; ++n_popped) {
        const double top = queue.top_cost();
        const paper::Bucket bucket = queue.pop();
        never_falls &= bucket.cost >= last;
        costs_agree &= bucket.cost == top && top == cost_of_key(costs, substring, bucket.key);
        last = bucket.cost;
        if (bucket.key < n_keys) ++came[bucket.key];
    }
    const bool each_once = std::all_of(came.begin(), came.end(), [](int n) { return n == 1; });
    CHECK(n_popped == n_keys && each_once, kind.name << ", " << substring.bits << " bits");
    CHECK(never_falls, kind.name << ", " << substring.bits << " bits");
    CHECK(costs_agree, kind.name << ", " << substring.bits << " bits");
    CHECK(queue.top_cost() == infinity, kind.name << ", " << substring.bits << " bits");
}

void test_queues() {
    Rng rng(11);
    for (const CostKind& kind : kinds) {
        for (const std::size_t bits : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 17}) {
            for (int repeat = 0; repeat < (bits <= 12 ? 8 : 1); ++repeat) {
                const Substring substring{pick(rng, 5), bits};
                const std::vector<double> costs = make_costs(rng, kind, substring.first + bits + 2);
                check_queue<BucketQueue>(kind, costs, substring);
                check_queue<SubCodeQueue>(kind, costs, substring);
            }
        }
    }
}

// A probe as the merge reported it.
struct Seen {
    std::size_t table;
    Key key;
    double cost;
    double s_hat;
    std::vector<double> heap;  // Distances in the heap, nearest first.

    // Compares all but the key, which ties leave open, and the heap.
    bool same_step(const Seen& other) const {
        return table == other.table && cost == other.cost && s_hat == other.s_hat;
    }
};

struct Trace {
    std::vector<Seen> probes;
    paper::Answer answer;
};

std::vector<double> distances_of(const std::vector<Neighbour>& neighbours) {
    std::vector<double> distances;
    for (const Neighbour& neighbour : neighbours) distances.push_back(neighbour.distance);
    return distances;
}

template <class Queue>
Trace watch(const Case& c, const std::vector<SubstringTable>& tables, std::size_t k,
            QueueOrder order) {
    using Watch = std::function<void(const paper::Probe&)>;
    Trace trace;
    const Watch note = [&](const paper::Probe& probe) {
        paper::MaxHeap heap = probe.max_heap;
        trace.probes.push_back({probe.table, probe.bucket.key, probe.bucket.cost, probe.s_hat,
                                distances_of(heap.take_sorted(unchecked))});
    };
    const paper::Codes codes = c.codes();
    paper::SeenRows seen(c.n);
    paper::TableMerge<Queue, Watch> merge(codes, tables, seen, c.costs.data(), k, order, unchecked,
                                          note);
    trace.answer = merge.run();
    return trace;
}

// The state right after a probe, by brute force.
struct Moment {
    double s_hat;              // Value of Eq. 9.
    double s;                  // Value of Eq. 8.
    std::vector<double> seen;  // Distances of the rows seen, ascending.
    double nearest_unseen;     // Smallest distance of a row not seen; +inf if there is none.
};

std::vector<Moment> replay(const Truth& truth, const std::vector<Seen>& probes) {
    const std::size_t m = truth.keys.size();
    std::vector<Moment> moments;
    std::vector<bool> is_seen(truth.distances.size(), false);
    std::vector<bool> probed;
    for (std::size_t i = 0; i < probes.size(); ++i) {
        if (i % m == 0) probed.assign(m, false);
        probed[probes[i].table] = true;
        Moment moment{0.0, 0.0, {}, infinity};
        for (std::size_t t = 0; t < m; ++t) {
            moment.s_hat += truth.top(t, i / m + (probed[t] ? 1 : 0));
            moment.s += truth.top(t, i / m + 1);
        }
        for (std::size_t row = 0; row < is_seen.size(); ++row) {
            const double distance = truth.distances[row];
            if (truth.keys[probes[i].table][row] == probes[i].key) is_seen[row] = true;
            if (is_seen[row]) moment.seen.push_back(distance);
            if (!is_seen[row]) moment.nearest_unseen = std::min(moment.nearest_unseen, distance);
        }
        std::sort(moment.seen.begin(), moment.seen.end());
        moments.push_back(std::move(moment));
    }
    return moments;
}

// Each round probes the next bucket of every table, in the given order by Eq. 10.
void check_rounds(const Case& c, const Truth& truth, const std::vector<Seen>& probes,
                  QueueOrder order) {
    std::vector<bool> probed;
    double last = 0.0;
    for (std::size_t i = 0; i < probes.size(); ++i) {
        const Seen& seen = probes[i];
        const double top = truth.top(seen.table, i / c.m);
        const double increase = truth.top(seen.table, i / c.m + 1) - top;
        CHECK(seen.cost == top, c.text() << ", probe " << i << ": " << seen.cost);
        if (i % c.m == 0) {
            probed.assign(c.m, false);
        } else if (order == QueueOrder::ascending) {
            CHECK(increase >= last, c.text() << ", probe " << i << ": " << increase);
        } else {
            CHECK(increase <= last, c.text() << ", probe " << i << ": " << increase);
        }
        last = increase;
        CHECK(!probed[seen.table], c.text() << ", probe " << i);
        probed[seen.table] = true;
    }
}

// S-hat and Theorem 2 at every probe of a merge that goes on until all rows are final. A merge for
// any K that stopped there, at its first chance or later, would have rows up to S-hat in its heap.
void check_moments(const Case& c, const Truth& truth, const std::vector<Seen>& probes,
                   const std::vector<Moment>& moments) {
    double before = 0.0;
    for (std::size_t t = 0; t < c.m; ++t) before += truth.top(t, 0);
    for (std::size_t i = 0; i < probes.size(); ++i) {
        const double s_hat = probes[i].s_hat;
        const std::vector<double>& seen = moments[i].seen;
        CHECK(s_hat == moments[i].s_hat, c.text() << ", probe " << i << ": " << s_hat);
        CHECK(s_hat <= moments[i].s, c.text() << ", probe " << i << ": " << s_hat);
        CHECK(s_hat >= before, c.text() << ", probe " << i << ": " << s_hat);
        CHECK(s_hat <= moments[i].nearest_unseen, c.text() << ", probe " << i << ": " << s_hat);
        const auto end = std::upper_bound(seen.begin(), seen.end(), s_hat);
        CHECK(std::equal(seen.begin(), end, truth.nearest.begin()), c.text() << ", probe " << i);
        before = s_hat;
        tally.final_before_the_end += end != seen.begin() && seen.size() < c.n;
    }
}

// The number of probes after which K rows are final, or 0 if they never are.
std::size_t probes_needed(const std::vector<Moment>& moments, std::size_t k) {
    for (std::size_t i = 0; i < moments.size(); ++i) {
        const std::vector<double>& seen = moments[i].seen;
        if (seen.size() >= k && seen[k - 1] <= moments[i].s_hat) return i + 1;
    }
    return 0;
}

// The same merge for one K: the same probes, the K nearest of the rows seen in the heap at each,
// the end at the first where they are final, and by Theorem 2 the answer.
void check_stop(const Case& c, const Truth& truth, const Trace& whole, const Trace& trace,
                const std::vector<Moment>& moments, std::size_t k) {
    const std::size_t needed = probes_needed(moments, k);
    CHECK(trace.probes.size() == needed,
          c.text() << ", k " << k << ": " << trace.probes.size() << " probes, not " << needed);
    CHECK(trace.answer.counters.buckets == trace.probes.size(), c.text() << ", k " << k);
    for (std::size_t i = 0; i < std::min(trace.probes.size(), moments.size()); ++i) {
        const Seen& seen = trace.probes[i];
        const bool same = seen.same_step(whole.probes[i]) && seen.key == whole.probes[i].key;
        CHECK(same, c.text() << ", k " << k << ", probe " << i);
        std::vector<double> expected = moments[i].seen;
        expected.resize(std::min(k, expected.size()));
        CHECK(seen.heap == expected, c.text() << ", k " << k << ", probe " << i);
    }
    const std::vector<double> nearest(truth.nearest.begin(),
                                      truth.nearest.begin() + static_cast<std::ptrdiff_t>(k));
    CHECK(distances_of(trace.answer.neighbours) == nearest, c.text() << ", k " << k);
    std::vector<bool> returned(c.n, false);
    for (const Neighbour& neighbour : trace.answer.neighbours) {
        const auto row = static_cast<std::size_t>(neighbour.id);
        CHECK(!returned[row] && neighbour.distance == truth.distances[row], c.text()
                                                                                << ", k " << k);
        returned[row] = true;
    }
    if (needed != 0) tally.stops_below_s += moments[needed - 1].s_hat < moments[needed - 1].s;
}

// Compares a merge over all rows with brute force.
struct Watched {
    Trace whole;
    std::vector<Moment> moments;
};

template <class Queue>
Watched check_merge(Rng& rng, const Case& c, const std::vector<SubstringTable>& tables,
                    const Truth& truth, QueueOrder order) {
    Watched watched{watch<Queue>(c, tables, c.n, order), {}};
    watched.moments = replay(truth, watched.whole.probes);
    check_rounds(c, truth, watched.whole.probes, order);
    check_moments(c, truth, watched.whole.probes, watched.moments);
    const std::size_t any_k = 1 + pick(rng, c.n - 1);
    for (const std::size_t k : {std::size_t{1}, any_k, (any_k + c.n) / 2, c.n}) {
        const Trace trace = watch<Queue>(c, tables, k, order);
        check_stop(c, truth, watched.whole, trace, watched.moments, k);
    }
    return watched;
}

// The keys of each table at each cost, in the first `n` probes. The last cost is omitted: further
// buckets of that cost may follow.
using Levels = std::map<std::pair<std::size_t, double>, std::vector<Key>>;
Levels levels_of(const std::vector<Seen>& probes, std::size_t n, std::size_t m) {
    Levels levels;
    std::vector<double> last(m, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        levels[{probes[i].table, probes[i].cost}].push_back(probes[i].key);
        last[probes[i].table] = probes[i].cost;
    }
    for (std::size_t t = 0; t < m; ++t) levels.erase({t, last[t]});
    for (auto& [level, keys] : levels) std::sort(keys.begin(), keys.end());
    return levels;
}

// MIWQ and PQTable_max_heap probe the same buckets in the same order, except among buckets of equal
// cost; only that can make one of them stop before the other.
void check_same_probes(const Case& c, const Truth& truth, const Watched& ours,
                       const Watched& theirs) {
    const std::vector<Seen>& a = ours.whole.probes;
    const std::vector<Seen>& b = theirs.whole.probes;
    const std::size_t both = std::min(a.size(), b.size());
    for (std::size_t i = 0; i < both; ++i) CHECK(a[i].same_step(b[i]), c.text() << ", probe " << i);
    if (truth.has_ties()) {
        const Levels levels = levels_of(a, both, c.m);
        CHECK(levels == levels_of(b, both, c.m), c.text());
        for (const auto& [level, keys] : levels) tally.levels_with_ties += keys.size() > 1;
        return;
    }
    ++tally.cases_without_ties;
    CHECK(a.size() == b.size(), c.text() << ": " << a.size() << " and " << b.size());
    for (std::size_t i = 0; i < both; ++i) CHECK(a[i].key == b[i].key, c.text() << ", probe " << i);
}

// After j probes of a round S-hat is largest when the largest increases came first. Say the
// ascending merge stops there. A row of its K that the descending one has not seen is no nearer
// than the descending S-hat and no farther than the ascending one, so these are equal: either j is
// all tables and both have seen the same rows, or all increases are equal and so are both orders.
void check_descending_is_no_later(const Case& c, const Watched& ascending,
                                  const Watched& descending) {
    for (std::size_t k = 1; k <= c.n; ++k) {
        const std::size_t later = probes_needed(ascending.moments, k);
        const std::size_t sooner = probes_needed(descending.moments, k);
        CHECK(sooner <= later, c.text() << ", k " << k << ": " << sooner << " and " << later);
        tally.descending_was_earlier += sooner < later;
    }
}

void test_merges() {
    Rng rng(12);
    for (const CostKind& kind : kinds) {
        for (int repeat = 0; repeat < 60; ++repeat) {
            const Case c = make_case(rng, kind);
            const std::vector<SubstringTable> tables =
                paper::split_tables(c.codes(), c.m, unchecked);
            const Truth truth(c, tables);
            std::vector<Watched> ours;
            for (const QueueOrder order : {QueueOrder::ascending, QueueOrder::descending}) {
                ours.push_back(check_merge<BucketQueue>(rng, c, tables, truth, order));
                const Watched theirs = check_merge<SubCodeQueue>(rng, c, tables, truth, order);
                check_same_probes(c, truth, ours.back(), theirs);
            }
            check_descending_is_no_later(c, ours[0], ours[1]);
        }
    }
    CHECK(tally.stops_below_s > 0, "");
    CHECK(tally.final_before_the_end > 0, "");
    CHECK(tally.descending_was_earlier > 0, "");
    CHECK(tally.cases_without_ties > 0, "");
    CHECK(tally.levels_with_ties > 0, "");
}

}  // namespace

}  // namespace bitweigh::test

int main() {
    using namespace bitweigh::test;
    test_queues();
    // With a queue that repeats keys a merge might never end.
    if (failures == 0) test_merges();
    std::cout << "stops below S: " << tally.stops_below_s
              << ", probes with final rows: " << tally.final_before_the_end
              << ", stops earlier when descending: " << tally.descending_was_earlier
              << ", cases without ties: " << tally.cases_without_ties
              << ", levels with ties: " << tally.levels_with_ties << std::endl;
    std::cout << (failures ? "FAILED: " : "passed: ") << failures << " of " << checks
              << " checks failed" << std::endl;
    return failures ? 1 : 0;
}
