// Tests kth_smallest against std::nth_element, and TopK against a sorted list, also where rows are
// offered repeatedly.
#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "engine/query/bucket_sort.h"
#include "engine/query/kth_smallest.h"
#include "engine/query/top_k.h"
#include "tests/check.h"

namespace bitweigh::test {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// About `distinct` different numbers, sometimes rising or falling.
std::vector<double> make_values(Rng& rng, std::size_t n, std::size_t distinct) {
    std::vector<double> values(n);
    for (double& value : values) value = static_cast<double>(pick(rng, distinct - 1)) - 5.0;
    if (pick(rng, 3) == 0) std::sort(values.begin(), values.end());
    if (pick(rng, 3) == 0) std::reverse(values.begin(), values.end());
    if (pick(rng, 3) == 0) values[pick(rng, n - 1)] = infinity;
    if (pick(rng, 3) == 0) values[pick(rng, n - 1)] = -infinity;
    if (pick(rng, 3) == 0) values[pick(rng, n - 1)] = -0.0;
    return values;
}

// Checks one selection from the values for each k.
void check_kth(const std::vector<double>& values, std::span<const std::size_t> ks) {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    for (const std::size_t k : ks) {
        std::vector<double> reordered = values;
        const double found = kth_smallest(reordered.data(), reordered.size(), k);
        CHECK(found == sorted[k - 1],
              "n " << values.size() << " k " << k << ": " << found << ", not " << sorted[k - 1]);
        // The values are reordered, but none is lost.
        std::sort(reordered.begin(), reordered.end());
        CHECK(reordered == sorted, "n " << values.size() << " k " << k);
    }
}

// Values that rise and fall, as distances along ordered codes do. Their first, middle and last are
// extremes: a selection that used them as pivots would take quadratic time, hours for the
// size of long runs, minutes for the other.
void check_orders_that_fool_a_pivot() {
    const std::size_t n = is_long_run() ? 1'000'000 : 200'000;
    std::vector<double> pipe(n);
    std::vector<double> valley(n);
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t from_middle = i < n / 2 ? n / 2 - i : i - n / 2;
        valley[i] = static_cast<double>(from_middle);
        pipe[i] = -valley[i];
    }
    const std::size_t ks[] = {1, n / 10, n};
    check_kth(pipe, ks);
    check_kth(valley, ks);
}

// Offers the neighbours in the order they have, as a scan does; `bound` comes from outside, before
// the neighbour number `bound_at`.
template <class Entry, class MakeEntry>
void check_top_k(const std::vector<Neighbour>& neighbours, std::size_t k, double bound,
                 std::size_t bound_at, MakeEntry make_entry) {
    TopK<Entry> top(k);
    double worst = top.worst();
    CHECK(worst == infinity, "k " << k);
    std::vector<double> sorted;
    bool follows = true;
    for (std::size_t i = 0; i < neighbours.size(); ++i) {
        if (i == bound_at) top.lower_bound_to(bound);
        const double distance = neighbours[i].distance;
        if (distance <= top.worst()) top.offer(make_entry(neighbours[i]));
        sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), distance), distance);
        // `worst` only falls, and never below the K-th best seen, except to the bound from outside.
        const double kth = sorted.size() < k ? infinity : sorted[k - 1];
        follows &= top.worst() <= worst && (top.worst() >= kth || i >= bound_at);
        worst = top.worst();
    }
    CHECK(follows, "n " << neighbours.size() << " k " << k << " bound " << bound);

    std::vector<Neighbour> expected = neighbours;
    std::sort(expected.begin(), expected.end(), nearer);
    expected.resize(std::min(k, expected.size()));
    const std::vector<Neighbour> found = top.take_sorted();
    const auto same = [](const Neighbour& a, const Neighbour& b) {
        return a.distance == b.distance && a.id == b.id;
    };
    const bool equal =
        std::equal(found.begin(), found.end(), expected.begin(), expected.end(), same);
    CHECK(equal, "n " << neighbours.size() << " k " << k << " bound " << bound);
    CHECK(top.take_sorted().empty(), "n " << neighbours.size() << " k " << k);
}

// With ever nearer entries, `worst` lags behind the K-th best by at most K entries.
void check_worst_follows(std::size_t k) {
    TopK<Neighbour> top(k);
    bool follows = true;
    for (std::size_t i = 0; i < 50 * k; ++i) {
        const double distance = -static_cast<double>(i);
        top.offer({distance, static_cast<Id>(i)});
        const double kth_of_late = distance + static_cast<double>(2 * k - 1);
        follows &= i < 2 * k || top.worst() <= kth_of_late;
    }
    CHECK(follows, "k " << k);
}

// Offers each row one to four times, consecutively or in any order: the answer is the same as for
// each row once, and `worst` does not fall below the K-th best of the rows offered.
void check_repeats(Rng& rng, std::size_t n, std::size_t k, std::size_t distinct) {
    std::vector<Id> ids(n);
    std::iota(ids.begin(), ids.end(), Id{0});
    std::shuffle(ids.begin(), ids.end(), rng);
    std::vector<Neighbour> rows;
    std::vector<std::size_t> offers;
    for (std::size_t i = 0; i < n; ++i) {
        rows.push_back({static_cast<double>(pick(rng, distinct - 1)), ids[i]});
        offers.insert(offers.end(), 1 + pick(rng, 3), i);
    }
    if (pick(rng, 1)) std::shuffle(offers.begin(), offers.end(), rng);
    TopK<Candidate> top(k, true);
    std::vector<bool> seen(n);
    std::vector<double> sorted;
    bool follows = true;
    for (const std::size_t i : offers) {
        const double distance = rows[i].distance;
        if (distance <= top.worst()) top.offer({distance, IdPlace(&ids[i])});
        if (!seen[i]) {
            sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), distance), distance);
            seen[i] = true;
        }
        follows &= top.worst() >= (sorted.size() < k ? infinity : sorted[k - 1]);
    }
    CHECK(follows, "n " << n << " k " << k << " distinct " << distinct);
    const std::size_t again = offers.size() - n;
    CHECK(top.repeats() <= again, top.repeats() << " of " << again);
    // Nothing was dropped, so every repeat was recognised.
    CHECK(k < n || top.repeats() == again, top.repeats() << " of " << again);
    std::sort(rows.begin(), rows.end(), nearer);
    const std::vector<Neighbour> found = top.take_sorted();
    bool equal = found.size() == std::min(k, n);
    for (std::size_t i = 0; equal && i < found.size(); ++i) {
        equal = found[i].distance == rows[i].distance && found[i].id == rows[i].id;
    }
    CHECK(equal, "n " << n << " k " << k << " distinct " << distinct << ": " << found.size());
}

// Offers many rows, each one or two times, with a deadline that is far away: the answer is that of
// a sort. With one that has passed, the first long step throws.
void check_with_deadline(Rng& rng, std::size_t n, std::size_t k, std::size_t distinct) {
    std::vector<Id> ids(n);
    std::iota(ids.begin(), ids.end(), Id{0});
    std::vector<Neighbour> rows;
    for (const Id id : ids) rows.push_back({static_cast<double>(pick(rng, distinct - 1)), id});
    std::atomic<bool> stop = false;
    const auto found_by = [&](const Deadline& deadline) {
        Checkpoint checkpoint(stop, nullptr, deadline);
        TopK<Candidate> top(k, true, &checkpoint);
        for (std::size_t offer = 0; offer < 3 * n / 2; ++offer) {
            const std::size_t i = offer % n;
            if (rows[i].distance <= top.worst()) top.offer({rows[i].distance, IdPlace(&ids[i])});
        }
        return top.take_sorted();
    };
    std::vector<Neighbour> expected = rows;
    std::sort(expected.begin(), expected.end(), nearer);
    expected.resize(std::min(k, n));
    const std::vector<Neighbour> found = found_by(Deadline(1000.0));
    const auto same = [](const Neighbour& a, const Neighbour& b) {
        return a.distance == b.distance && a.id == b.id;
    };
    CHECK(std::equal(found.begin(), found.end(), expected.begin(), expected.end(), same),
          "n " << n << " k " << k << " distinct " << distinct);
    bool passed = false;
    try {
        found_by(Deadline(0.0));
    } catch (const DeadlinePassed&) {
        passed = true;
    }
    CHECK(passed, "n " << n << " k " << k << " distinct " << distinct);
}

// Every id is new exactly once, whether ids are stored side by side or far apart, within the room
// reserved for `at_first` ids and beyond.
template <class Stored>
void check_seen_ids(Rng& rng, std::size_t n_ids, std::size_t at_first) {
    const std::vector<Stored> stored(100 * n_ids);
    SeenIds seen(at_first);
    for (const std::size_t apart : {1, 64, 97}) {
        std::vector<IdPlace> ids;
        for (std::size_t i = 0; i < n_ids; ++i) ids.emplace_back(&stored[i * apart]);
        std::shuffle(ids.begin(), ids.end(), rng);
        bool right = true;
        for (const IdPlace id : ids) right &= seen.insert(id) && !seen.insert(id);
        for (const IdPlace id : ids) right &= !seen.insert(id);
        CHECK(right, n_ids << " ids, " << apart << " apart");
        seen.clear();
    }
}

// Sorts as std::sort does, whether distances are spread, crowded into a bin, or all the same.
void check_bucket_sort(Rng& rng, std::size_t n, std::size_t distinct, double outlier) {
    std::vector<Neighbour> entries;
    for (std::size_t i = 0; i < n; ++i) {
        entries.push_back({static_cast<double>(pick(rng, distinct - 1)), static_cast<Id>(i)});
    }
    if (n > 0) entries[pick(rng, n - 1)].distance = outlier;
    std::shuffle(entries.begin(), entries.end(), rng);
    std::vector<Neighbour> expected = entries;
    std::sort(expected.begin(), expected.end(), nearer);
    bucket_sort_by_distance(entries, nearer);
    const auto same = [](const Neighbour& a, const Neighbour& b) {
        return a.distance == b.distance && a.id == b.id;
    };
    CHECK(std::equal(entries.begin(), entries.end(), expected.begin(), expected.end(), same),
          "n " << n << " distinct " << distinct << " outlier " << outlier);
}

}  // namespace

void test_bucket_sort() {
    Rng rng(4);
    for (const std::size_t distinct : {1, 2, 5, 100, 1000000}) {
        for (const double outlier : {0.0, -1e300, 5e-324, 1e300}) {
            for (int repeat = 0; repeat < 60; ++repeat) {
                check_bucket_sort(rng, pick(rng, repeat % 2 ? 60 : 700), distinct, outlier);
            }
        }
    }
}

void test_kth_smallest() {
    Rng rng(2);
    for (const std::size_t distinct : {1, 2, 3, 10, 1000, 1000000}) {
        for (std::size_t n = 1; n <= 70; ++n) {
            std::vector<std::size_t> ks(n);
            std::iota(ks.begin(), ks.end(), std::size_t{1});
            check_kth(make_values(rng, n, distinct), ks);
        }
        for (std::size_t repeat = 0; repeat < repeats(40); ++repeat) {
            const std::size_t n = 71 + pick(rng, 3000);
            const std::size_t ks[] = {1, n, 1 + pick(rng, n - 1)};
            check_kth(make_values(rng, n, distinct), ks);
        }
    }
    check_orders_that_fool_a_pivot();
}

void test_top_k() {
    for (const std::size_t k : {1, 2, 3, 4, 5, 10, 100}) check_worst_follows(k);
    Rng rng(3);
    for (const std::size_t k : {std::size_t{20'000}, std::size_t{150'000}, every_row}) {
        for (const std::size_t distinct : {1, 5, 1'000'000}) {
            check_with_deadline(rng, 100'000, k, distinct);
        }
    }
    for (const std::size_t n_ids : {1, 2, 3, 15, 16, 150, 1500}) {
        for (const std::size_t at_first : {std::size_t{0}, n_ids / 3, n_ids}) {
            check_seen_ids<Id>(rng, n_ids, at_first);
            check_seen_ids<std::uint32_t>(rng, n_ids, at_first);
        }
    }
    for (const std::size_t distinct : {1, 2, 5, 30, 1000000}) {
        for (std::size_t repeat = 0; repeat < repeats(200); ++repeat) {
            const std::size_t n = 1 + pick(rng, 100);
            check_repeats(rng, n, 1 + pick(rng, repeat % 2 ? n + 2 : 12), distinct);
            if (repeat % 5 == 0) check_repeats(rng, 50 * n, every_row, distinct);
        }
        for (std::size_t repeat = 0; repeat < repeats(200); ++repeat) {
            const std::size_t n = 1 + pick(rng, repeat % 4 < 2 ? 30 : 600);
            const std::size_t k = 1 + pick(rng, repeat % 2 ? n + 2 : 12);
            std::vector<Id> ids(n);
            std::iota(ids.begin(), ids.end(), Id{0});
            std::shuffle(ids.begin(), ids.end(), rng);
            std::vector<double> values = make_values(rng, n, distinct);
            // An infinite distance means padding and does not occur in a search.
            std::replace(values.begin(), values.end(), infinity, 1e300);
            std::vector<Neighbour> neighbours(n);
            for (std::size_t i = 0; i < n; ++i) neighbours[i] = {values[i], ids[i]};

            // The sharpest bound that may come from outside, and no bound.
            double bound = infinity;
            if (k <= n) bound = kth_smallest(values.data(), n, k);
            std::vector<Id> stored(n);
            std::iota(stored.begin(), stored.end(), Id{0});
            const auto as_candidate = [&](const Neighbour& row) {
                return Candidate{row.distance, IdPlace(&stored[static_cast<std::size_t>(row.id)])};
            };
            const auto as_neighbour = [](const Neighbour& row) { return row; };
            for (const std::size_t bound_at : {std::size_t{0}, n / 2, n}) {
                check_top_k<Neighbour>(neighbours, k, bound, bound_at, as_neighbour);
                check_top_k<Candidate>(neighbours, k, bound, bound_at, as_candidate);
            }
        }
    }
}

}  // namespace bitweigh::test
