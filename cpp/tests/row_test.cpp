// Rows by id, and rows that a search may not return.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include "engine/denied_rows.h"
#include "engine/id_lookup.h"
#include "tests/check.h"

namespace bitweigh::test {

namespace {

constexpr std::size_t page_rows = DeniedPages::page_blocks * block_rows;

void check_denied(const DeniedRows& denied, const std::set<Row>& expected, const char* kind) {
    CHECK(denied.count() == expected.size(), kind << ", " << denied.rows() << " rows");
    bool right = true;
    for (std::size_t row = 0; row < denied.rows(); ++row) {
        right &=
            denied.view().has(static_cast<Row>(row)) == expected.contains(static_cast<Row>(row));
    }
    CHECK(right, kind << ", " << denied.rows() << " rows");
}

std::vector<Id> ids_of(Rng& rng, std::size_t rows, std::size_t kind) {
    std::vector<Id> ids(rows);
    std::iota(ids.begin(), ids.end(), Id{7});
    if (kind == 1) std::reverse(ids.begin(), ids.end());
    if (kind >= 2) std::shuffle(ids.begin(), ids.end(), rng);
    if (kind == 3) {
        for (Id& id : ids) id *= 1 + static_cast<Id>(rows);  // gaps
    }
    if (kind == 4) {
        for (Id& id : ids) id = (id << 40) - 1;  // beyond 32 bits
    }
    if (kind == 5 && rows > 1) ids[0] = ids[1];  // twice the same, in place of another
    return ids;
}

// By all three ways to store ids, from any row on.
void check_ids_below(Rng& rng, std::size_t n) {
    const std::size_t first = pick(rng, 3);
    std::vector<Id> wide(first + n);
    std::vector<std::uint32_t> narrow;
    for (Id& id : wide) id = pick(rng, 1) ? static_cast<Id>(pick(rng, 9)) : 0xffffffff;
    for (const Id id : wide) narrow.push_back(static_cast<std::uint32_t>(id));
    const Id start = static_cast<Id>(pick(rng, 20));
    const auto check = [&](const IdColumn& ids, Id end) {
        std::uint32_t expected = 0;
        for (std::size_t i = 0; i < n; ++i) expected |= std::uint32_t{ids[first + i] < end} << i;
        CHECK(ids.below(first, n, end) == expected, n << " ids below " << end);
    };
    for (const Id end : {Id{0}, Id{1}, Id{8}, Id{30}, Id{0xffffffff}, Id{1} << 32, Id{1} << 62}) {
        check(IdColumn(wide.data()), end);
        check(IdColumn(narrow.data()), end);
        check(IdColumn(start), end);
    }
}

}  // namespace

void test_denied_rows() {
    Rng rng(1);
    for (const std::size_t rows : {1ul, 31ul, 33ul, page_rows - 1, page_rows, 2 * page_rows + 65}) {
        DeniedRows denied(rows);
        std::set<Row> expected;
        check_denied(denied, expected, "none");
        for (std::size_t step = 0; step < 4; ++step) {
            const DeniedRows before = denied;
            const std::set<Row> before_expected = expected;
            std::vector<Row> more(1 + pick(rng, 5));
            for (Row& row : more) row = static_cast<Row>(pick(rng, rows - 1));
            denied = denied.with(more.data(), more.size());
            expected.insert(more.begin(), more.end());
            check_denied(denied, expected, "with more");
            check_denied(before, before_expected, "the one it was made from");
        }
        // From masks, whose bits beyond the last row mean nothing; exactly as long as promised.
        std::vector<std::uint32_t> masks(blocks_of(rows));
        for (const Row row : expected) masks[row / 32] |= std::uint32_t{1} << row % 32;
        if (rows % 32) masks.back() |= ~std::uint32_t{0} << rows % 32;
        const DeniedRows mapped(masks.data(), rows);
        check_denied(mapped, expected, "of masks");
        CHECK(mapped.bytes() == 0, rows);
        const auto last = static_cast<Row>(rows - 1);
        expected.insert(last);
        check_denied(mapped.with(&last, 1), expected, "of masks, with more");
    }
}

void test_id_lookup() {
    Rng rng(2);
    for (const std::size_t rows : {1ul, 2ul, 31ul, 1000ul, 5000ul}) {
        for (std::size_t kind = 0; kind < 6; ++kind) {
            const std::vector<Id> ids = ids_of(rng, rows, kind);
            std::vector<Row> by_id(rows);
            Checkpoint checkpoint = uninterrupted();
            sort_by_id(ids.data(), rows, by_id.data(), checkpoint);
            std::vector<Row> expected(rows);
            std::iota(expected.begin(), expected.end(), Row{0});
            std::stable_sort(expected.begin(), expected.end(),
                             [&](Row a, Row b) { return ids[a] < ids[b]; });
            CHECK(by_id == expected, rows << " rows, ids of kind " << kind);
            bool right = true;
            for (std::size_t row = 0; row < rows; ++row) {
                right &= ids[find_row(ids.data(), by_id.data(), rows, ids[row])] == ids[row];
                right &=
                    find_row(ids.data(), by_id.data(), rows, ids[row] * 3 + (Id{1} << 61)) == rows;
                if (kind == 0) right &= find_row(ids.data(), nullptr, rows, ids[row]) == row;
            }
            CHECK(right, rows << " rows, ids of kind " << kind);
        }
    }
    // Damaged: rows that do not exist, and ids that are not in order.
    const std::vector<Id> ids = {-5, Id{1} << 62, 3};
    for (const std::vector<Row>& by_id : {std::vector<Row>{9, 1, 2}, {0, 7, 2}, {2, 1, 0}}) {
        for (const Id wanted : {Id{0}, Id{3}, (Id{1} << 62) + ((Id{1} << 62) - 1)}) {
            CHECK(find_row(ids.data(), by_id.data(), 3, wanted) <= 3, wanted);
        }
    }
    std::vector<Row> by_id(3);
    Checkpoint checkpoint = uninterrupted();
    sort_by_id(ids.data(), 3, by_id.data(), checkpoint);
    CHECK((by_id == std::vector<Row>{0, 2, 1}), "a negative id");
    for (int repeat = 0; repeat < 100; ++repeat) check_ids_below(rng, 1 + pick(rng, 31));
    const IdColumn counted(Id{1} << 40);
    CHECK(counted[5] == (Id{1} << 40) + 5 && *counted.place(5) == counted[5], "counted ids");
    CHECK(find_row(counted, nullptr, 10, (Id{1} << 40) + 9) == 9, "the row of a counted id");
    CHECK(find_row(counted, nullptr, 10, (Id{1} << 40) + 10) == 10, "beyond the last counted id");
}

}  // namespace bitweigh::test
