// Tests masks of rows, and finding rows by id.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "engine/rows/id_lookup.h"
#include "engine/rows/row_mask.h"
#include "tests/check.h"

namespace bitweigh::test {

namespace {

constexpr std::size_t page_rows = RowMaskView::page_blocks * block_rows;

// `denied` says for each row whether it is denied.
void check_mask(const RowMask& mask, const std::vector<bool>& denied, const char* kind) {
    const auto n_denied = static_cast<std::size_t>(std::count(denied.begin(), denied.end(), true));
    CHECK(mask.denied_rows() == n_denied, kind << ", " << mask.rows() << " rows");
    CHECK(mask.allowed_rows() == mask.rows() - n_denied, kind);
    bool right = true;
    std::vector<Row> allowed;
    for (std::size_t row = 0; row < mask.rows(); ++row) {
        right &= mask.view().denies(static_cast<Row>(row)) == denied[row];
        if (!denied[row]) allowed.push_back(static_cast<Row>(row));
    }
    CHECK(right, kind << ", " << mask.rows() << " rows");
    std::vector<Row> visited;
    mask.visit_allowed([&](Row row) { visited.push_back(row); });
    CHECK(visited == allowed, kind << ", " << mask.rows() << " rows");
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
    if (kind == 5 && rows > 1) ids[0] = ids[1];  // a duplicate, and a gap
    return ids;
}

// Looks up ids that are there and others, and compares with looking them up one by one.
void check_many_lookups(Rng& rng, const std::vector<Id>& ids, const std::vector<Row>& by_id) {
    for (const std::size_t n : {0ul, 1ul, 63ul, 64ul, 65ul, 200ul, 5000ul}) {
        std::vector<Id> drawn(n);
        for (Id& id : drawn) {
            id = ids[pick(rng, ids.size() - 1)];
            if (pick(rng, 2) == 0) id += static_cast<Id>(pick(rng, 9)) - 5;
        }
        Checkpoint checkpoint = uninterrupted();
        const std::vector<Id> wanted = sorted_distinct(drawn);
        std::set<Id> expected(drawn.begin(), drawn.end());
        std::erase_if(expected, [](Id id) { return id < 0; });
        CHECK(std::equal(wanted.begin(), wanted.end(), expected.begin(), expected.end()), n);
        const FoundRows found = find_rows(ids.data(), by_id.data(), ids.size(), wanted, checkpoint);
        bool right = true;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            const std::size_t at = i - found.first;  // wraps around before the first
            const std::size_t row = at < found.rows.size() ? found.rows[at] : ids.size();
            const std::size_t alone = find_row(ids.data(), by_id.data(), ids.size(), wanted[i]);
            right &= row == alone;
        }
        CHECK(right, n << " ids in " << ids.size() << " rows");
    }
}

// Checks all three ways to store ids, from any row on.
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

void test_row_masks() {
    Rng rng(1);
    for (const std::size_t rows : {1ul, 31ul, 33ul, page_rows - 1, page_rows, 2 * page_rows + 65}) {
        for (const bool starts_empty : {false, true}) {
            RowMask mask = starts_empty ? RowMask::denying_all(rows) : RowMask(rows);
            std::vector<bool> denied(rows, starts_empty);
            check_mask(mask, denied, "none or all");
            for (std::size_t step = 0; step < 4; ++step) {
                const RowMask before = mask;
                const std::vector<bool> before_denied = denied;
                std::vector<Row> more(1 + pick(rng, 5));
                for (Row& row : more) row = static_cast<Row>(pick(rng, rows - 1));
                const bool allows = starts_empty == (step < 3);
                mask = allows ? mask.allowing(more) : mask.denying(more);
                for (const Row row : more) denied[row] = !allows;
                check_mask(mask, denied, "with more");
                check_mask(before, before_denied, "the one it was made from");
            }
            // From masks of exactly the required length, whose bits beyond the last row are
            // ignored.
            std::shared_ptr<std::uint32_t[]> masks(new std::uint32_t[blocks_of(rows)]());
            for (std::size_t row = 0; row < rows; ++row) {
                masks[row / 32] |= std::uint32_t{denied[row]} << row % 32;
            }
            if (rows % 32) masks[rows / 32] |= ~std::uint32_t{0} << rows % 32;
            const auto blocks =
                RowMask::from_blocks(rows, [&](std::size_t block) { return masks[block]; });
            check_mask(blocks, denied, "block by block");
            RowMask stored(masks, rows);
            check_mask(stored, denied, "stored");
            CHECK(stored.bytes() == 4 * blocks_of(rows), rows);
            // The caller may release the masks.
            masks.reset();
            const auto last = static_cast<Row>(rows - 1);
            denied[last] = true;
            check_mask(stored.denying({&last, 1}), denied, "stored, with more");
        }
    }
    // Pages whose rows are all allowed or all denied are not stored.
    const auto first = Row{0};
    const RowMask one_allowed = RowMask::denying_all(100 * page_rows).allowing({&first, 1});
    CHECK(one_allowed.bytes() == page_rows / 8 && one_allowed.allowed_rows() == 1,
          one_allowed.bytes());
    CHECK(RowMask::from_blocks(page_rows + 5, [](std::size_t) { return ~0u; }).bytes() == 0, "");
    CHECK(RowMask::from_blocks(page_rows + 5, [](std::size_t) { return 0u; }).bytes() == 0, "");
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
            if (kind != 5) check_many_lookups(rng, ids, by_id);
        }
    }
    // Damaged: rows that do not exist, and ids that are not in order.
    Checkpoint checkpoint = uninterrupted();
    const std::vector<Id> ids = {-5, Id{1} << 62, 3};
    for (const std::vector<Row>& by_id : {std::vector<Row>{9, 1, 2}, {0, 7, 2}, {2, 1, 0}}) {
        for (const Id id : {Id{0}, Id{3}, (Id{1} << 62) + ((Id{1} << 62) - 1)}) {
            CHECK(find_row(ids.data(), by_id.data(), 3, id) <= 3, id);
            const FoundRows found = find_rows(ids.data(), by_id.data(), 3, {&id, 1}, checkpoint);
            for (const Row row : found.rows) CHECK(row == 3 || ids[row] == id, id);
        }
    }
    std::vector<Row> by_id(3);
    sort_by_id(ids.data(), 3, by_id.data(), checkpoint);
    CHECK((by_id == std::vector<Row>{0, 2, 1}), "a negative id");
    for (int repeat = 0; repeat < 100; ++repeat) check_ids_below(rng, 1 + pick(rng, 31));
    const IdColumn counted(Id{1} << 40);
    CHECK(counted[5] == (Id{1} << 40) + 5 && *counted.place(5) == counted[5], "counted ids");
    CHECK(find_row(counted, nullptr, 10, (Id{1} << 40) + 9) == 9, "the row of a counted id");
    CHECK(find_row(counted, nullptr, 10, (Id{1} << 40) + 10) == 10, "beyond the last counted id");
}

}  // namespace bitweigh::test
