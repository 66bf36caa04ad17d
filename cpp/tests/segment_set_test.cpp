// Tests sets of segments against lists of rows: lookups, removals and filters.
#include "engine/rows/segment_set.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/rows/bits.h"
#include "engine/rows/id_lookup.h"
#include "engine/tuning.h"
#include "tests/banded_segment.h"
#include "tests/check.h"

namespace bitweigh::test {

namespace {

constexpr std::size_t n_bits = 8;

// A set, and the ids of each of its segments by row: -1 for rows removed or filtered out.
struct Model {
    std::vector<SegmentSet::Member> members;
    std::vector<std::vector<Id>> ids;

    std::optional<RowLocation> find(Id id) const {
        for (std::size_t s = 0; s < ids.size(); ++s) {
            const auto at = std::find(ids[s].begin(), ids[s].end(), id);
            if (id >= 0 && at != ids[s].end()) {
                return RowLocation{s, static_cast<Row>(at - ids[s].begin())};
            }
        }
        return std::nullopt;
    }
    Model without(const std::set<Id>& gone) const {
        Model remaining = *this;
        for (auto& rows : remaining.ids) {
            for (Id& id : rows) id = gone.contains(id) ? -1 : id;
        }
        return remaining;
    }
    std::set<Id> all_ids() const {
        std::set<Id> all;
        for (const auto& rows : ids) all.insert(rows.begin(), rows.end());
        all.erase(-1);
        return all;
    }
};

// Segments with every way to store ids; no id is in two of them.
Model draw_model(Rng& rng, std::size_t n_segments, std::size_t max_rows) {
    Model model;
    Id next = static_cast<Id>(pick(rng, 40));
    for (std::size_t s = 0; s < n_segments; ++s) {
        const std::size_t rows = 1 + pick(rng, max_rows - 1);
        const bool counted = pick(rng, 2) == 0;
        const Id step = counted ? 1 : 1 + static_cast<Id>(pick(rng, 2));
        if (pick(rng, 4) == 0) next += Id{1} << 33;
        std::vector<Id> ids(rows);
        for (Id& id : ids) next = (id = next) + step;
        if (!counted && pick(rng, 2)) std::shuffle(ids.begin(), ids.end(), rng);
        std::vector<std::uint8_t> codes(rows);
        for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(rng());
        Layout layout;
        if (pick(rng, 1)) layout = draw_layout(rng, n_bits, 2, 4);
        const auto arrays = std::make_shared<const BandedSegment>(
            codes, ids, n_bits, BitOrder::little, std::move(layout), true, counted);
        model.members.push_back({shared_view(arrays), nullptr});
        model.ids.push_back(arrays->ids());
    }
    return model;
}

// Ids of the model, and other ids.
std::vector<Id> draw_ids(Rng& rng, const Model& model, std::size_t n) {
    const std::set<Id> all = model.all_ids();
    const std::vector<Id> known(all.begin(), all.end());
    std::vector<Id> drawn(n);
    for (Id& id : drawn) {
        id = known.empty() || pick(rng, 3) == 0 ? static_cast<Id>(pick(rng, 3000))
                                                : known[pick(rng, known.size() - 1)];
    }
    return drawn;
}

// Whether exactly the rows of the model are allowed, by every member of the set that shows it.
bool is_right(std::span<const Segment> segments, const Model& model) {
    if (segments.size() != model.ids.size()) return false;
    bool right = true;
    for (std::size_t s = 0; s < model.ids.size(); ++s) {
        const Segment& view = segments[s];
        std::size_t denied = 0;
        for (std::size_t row = 0; row < model.ids[s].size(); ++row) {
            const bool is_denied = model.ids[s][row] < 0;
            denied += is_denied;
            right &= view.mask.denies(static_cast<Row>(row)) == is_denied;
            right &=
                view.rows_in(row / block_rows) >> row % block_rows & 1 ? !is_denied : is_denied;
            for (const Band& band : view.bands) {
                right &= band.rows.mask.denies(static_cast<Row>(row)) == is_denied;
            }
        }
        right &= view.denied_rows == denied && view.rows == model.ids[s].size();
        right &= view.bands.size() == model.members[s].segment->bands.size();
    }
    return right;
}
bool is_right(const SegmentSet& set, const Model& model) {
    return is_right(set.segments(), model);
}

// Whether a filtered set has exactly the rows of the model: those of segments with few, copied into
// the first segment with their codes; the others in their segments, by a mask.
bool is_filtered_right(const SegmentSet& set, const Model& model) {
    std::map<Id, std::uint8_t> few;  // Code of each row that should be copied, by id.
    Model masked;
    for (std::size_t s = 0; s < model.ids.size(); ++s) {
        const Segment& segment = *model.members[s].segment;
        const auto allowed = model.ids[s].size() -
                             static_cast<std::size_t>(std::ranges::count(model.ids[s], Id{-1}));
        if (allowed * gathered_filter_ratio > segment.rows) {
            masked.members.push_back(model.members[s]);
            masked.ids.push_back(model.ids[s]);
            continue;
        }
        for (Row row = 0; row < segment.rows; ++row) {
            if (model.ids[s][row] >= 0)
                unpack_rows(segment.blocks, 1, &row, 1, &few[model.ids[s][row]]);
        }
    }
    if (set.has_gathered_rows() != !few.empty()) return false;
    if (few.empty()) return is_right(set.segments(), masked);
    const Segment& gathered = set.segments()[0];
    bool right = gathered.rows == few.size() && gathered.bands.empty() && !gathered.mask.pages;
    for (Row row = 0; row < gathered.rows; ++row) {
        std::uint8_t code;
        unpack_rows(gathered.blocks, 1, &row, 1, &code);
        const auto expected = few.find(gathered.ids[row]);
        right &= expected != few.end() && expected->second == code;
        right &= find_row(gathered.ids, gathered.by_id, gathered.rows, gathered.ids[row]) == row;
    }
    return right && is_right(set.segments().subspan(1), masked);
}

void check_lookups(Rng& rng, const SegmentSet& set, const Model& model) {
    Checkpoint checkpoint = uninterrupted();
    for (const Id id : draw_ids(rng, model, 30)) {
        const std::optional<RowLocation> expected = model.find(id);
        const std::optional<RowLocation> found = set.find(id, checkpoint);
        CHECK(found.has_value() == expected.has_value(), id);
        CHECK(!found || (found->segment == expected->segment && found->row == expected->row), id);
    }
}

// The same in a filtered set, whose rows may be in other places.
void check_filtered_lookups(Rng& rng, const SegmentSet& set, const Model& model) {
    Checkpoint checkpoint = uninterrupted();
    const std::vector<Id> ids = sorted_distinct(draw_ids(rng, model, pick(rng, 300)));
    const std::vector<RowLocation> all = set.find_ascending(ids, checkpoint);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const std::optional<RowLocation> found = set.find(ids[i], checkpoint);
        CHECK(found.has_value() == model.find(ids[i]).has_value(), ids[i]);
        CHECK(!found || set.segments()[found->segment].ids[found->row] == ids[i], ids[i]);
        CHECK(found ? all[i].segment == found->segment && all[i].row == found->row
                    : all[i].segment == SegmentSet::no_segment,
              ids[i]);
    }
}

// The model after a removal of ids, some of which it may not have.
Model check_removal(Rng& rng, const SegmentSet& set, const Model& model) {
    const std::vector<Id> ids = draw_ids(rng, model, pick(rng, 20));
    Checkpoint checkpoint = uninterrupted();
    Removal removal = set.remove(ids, checkpoint);
    Model remaining = model.without({ids.begin(), ids.end()});
    std::optional<std::size_t> missing;
    for (std::size_t i = ids.size(); i-- > 0;) {
        if (!model.find(ids[i])) missing = i;
    }
    CHECK(removal.missing == missing, "the first id that is missing");
    std::vector<std::size_t> changed;
    for (Removal::Change& change : removal.changes) {
        changed.push_back(change.segment);
        remaining.members[change.segment].mask =
            std::make_shared<const RowMask>(std::move(change.mask));
    }
    std::vector<std::size_t> expected;
    for (std::size_t s = 0; s < model.ids.size(); ++s) {
        if (remaining.ids[s] != model.ids[s]) expected.push_back(s);
    }
    CHECK(changed == expected, "segments that change");
    CHECK(is_right(SegmentSet(remaining.members), remaining), "remaining rows");
    CHECK(is_right(set, model), "the set it was made from");
    return remaining;
}

void check_filter(Rng& rng, const SegmentSet& set, const Model& model) {
    const bool deny = pick(rng, 1) == 1;
    const FilterKind kind = deny ? FilterKind::deny : FilterKind::allow;
    const std::set<Id> all = model.all_ids();
    std::set<Id> named;
    Checkpoint checkpoint = uninterrupted();
    const auto filtered = [&]() -> SegmentSet {
        if (pick(rng, 1)) {
            const std::size_t n = pick(rng, 1) ? pick(rng, 3) : pick(rng, 2 * all.size());
            const std::vector<Id> ids = draw_ids(rng, model, n);
            named.insert(ids.begin(), ids.end());
            return set.filtered_by_ids(ids, kind, 1, checkpoint);
        }
        // Flags often end within a block. The bytes beyond them are set, so that reading them would
        // show.
        const auto some_id = static_cast<std::size_t>(draw_ids(rng, model, 1)[0]);
        const std::size_t n_flags = std::min<std::size_t>(some_id, 2500);
        std::vector<std::uint8_t> flags(n_flags + block_rows, 1);
        const std::size_t one_in = pick(rng, 1) ? 2 : 300;
        for (std::size_t id = 0; id < n_flags; ++id) {
            // Any byte but 0 is a flag.
            flags[id] = pick(rng, one_in - 1) ? 0 : static_cast<std::uint8_t>(1 + pick(rng, 254));
            if (flags[id]) named.insert(static_cast<Id>(id));
        }
        return set.filtered_by_flags({flags.data(), n_flags}, kind, 1, checkpoint);
    }();
    std::set<Id> gone;
    for (const Id id : all) {
        if (named.contains(id) == deny) gone.insert(id);
    }
    const Model remaining = model.without(gone);
    CHECK(is_filtered_right(filtered, remaining), (deny ? "deny " : "allow ")
                                                      << named.size() << " ids");
    CHECK(is_right(set, model), "the set it was made from");
    check_filtered_lookups(rng, filtered, remaining);
}

void test_random_lives() {
    Rng rng(3);
    for (std::size_t repeat = 0; repeat < 150; ++repeat) {
        Model model = draw_model(rng, pick(rng, 4), repeat % 3 ? 80 : 700);
        for (std::size_t step = 0; step < 4; ++step) {
            SegmentSet set(model.members);
            CHECK(is_right(set, model), model.ids.size() << " segments");
            check_lookups(rng, set, model);
            check_filter(rng, set, model);
            const SegmentSet moved = std::move(set);
            model = check_removal(rng, moved, model);
        }
    }
}

void test_masks_must_fit_their_segments() {
    Rng rng(4);
    Model model = draw_model(rng, 1, 50);
    model.members[0].mask = std::make_shared<const RowMask>(model.ids[0].size() + 1);
    bool refused = false;
    try {
        const SegmentSet set(model.members);
    } catch (const std::invalid_argument&) {
        refused = true;
    }
    CHECK(refused, "a mask of too many rows");
}

// In a segment of many rows a few ids cost what they name: copies of their rows, or a few pages.
void test_filters_by_ids_store_what_they_name() {
    constexpr std::size_t rows = 40 * RowMaskView::page_blocks * block_rows;
    std::vector<std::uint8_t> codes(rows);
    for (std::size_t row = 0; row < rows; ++row) codes[row] = static_cast<std::uint8_t>(row);
    Segment segment{};
    segment.blocks = codes.data();  // with counted ids and one byte a row: blocks are rows
    segment.rows = rows;
    const SegmentSet set({{std::make_shared<const Segment>(segment), nullptr}});
    Checkpoint checkpoint = uninterrupted();
    const std::vector<Id> ids = {5, rows - 1, rows, 7, -3, 5};
    const SegmentSet allowed = set.filtered_by_ids(ids, FilterKind::allow, 1, checkpoint);
    CHECK(allowed.segments().size() == 1 && allowed.segments()[0].rows == 3, "");
    CHECK(allowed.filter_bytes() == block_rows + 3 * sizeof(Id), allowed.filter_bytes());
    const SegmentSet denied = set.filtered_by_ids(ids, FilterKind::deny, 1, checkpoint);
    const Segment& view = denied.segments()[0];
    CHECK(view.denied_rows == 3 && !denied.has_gathered_rows(), view.denied_rows);
    CHECK(denied.filter_bytes() == 2 * RowMaskView::page_blocks * sizeof(std::uint32_t),
          denied.filter_bytes());
    CHECK(set.filter_bytes() == 0, "");
    CHECK(set.filtered_by_ids({}, FilterKind::allow, 1, checkpoint).segments().empty(), "");
}

}  // namespace

void test_segment_sets() {
    test_random_lives();
    test_masks_must_fit_their_segments();
    test_filters_by_ids_store_what_they_name();
}

}  // namespace bitweigh::test
