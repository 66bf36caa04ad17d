// The part of ScanQuery that scans lean rows: their codes are completed by keys.
#include <algorithm>
#include <bit>

#include "engine/scan/scan_query.h"

namespace bitweigh {

namespace {

// The number of blocks to list before they are scanned.
constexpr std::size_t lean_blocks_at_once = 256;

}  // namespace

void ScanQuery::scan_lean(const BlockRows& rows, LeanList& list, std::size_t first, std::size_t n,
                          Hit* hits) {
    std::size_t i = first;
    for (; i < first + n && !has_bound(); ++i) {
        score_lean(rows, list.places[i], list.places[i].rows);
        offer_scored();
    }
    if (i < first + n) {
        LeanTables& tables = lean_tables(rows);
        tables.lower_to(top_.worst());
        const std::size_t left = first + n - i;
        list.bases.resize(left);
        for (std::size_t j = 0; j < left; ++j) {
            list.bases[j] = tables.bounds().base_of(list.places[i + j].flip_sum);
        }
        const std::size_t found = kernel_.lean_listed(list.starts.data() + i, list.bases.data(),
                                                      left, tables.bounds().tables(), hits);
        for (std::size_t h = 0; h < found; ++h) {
            const LeanList::Place& place = list.places[i + hits[h].block];
            score_lean(rows, place, hits[h].rows & place.rows);
        }
        offer_scored();
        counters_.rows_scanned += left * block_rows;
    }
    bound_.lower_to(top_.worst());
}

void ScanQuery::scan_lean_blocks(const BlockRows& rows, std::size_t begin, std::size_t end) {
    const LeanRows& lean = *rows.lean;
    const LeanTables& tables = lean_tables(rows);
    lean_hits_.resize(lean_blocks_at_once);
    lean_list_.clear();
    const auto scan_listed = [&] {
        for (std::size_t i = 0; i < lean_list_.size(); i += lean_blocks_at_once) {
            const std::size_t n = std::min(lean_blocks_at_once, lean_list_.size() - i);
            scan_lean(rows, lean_list_, i, n, lean_hits_.data());
        }
        lean_list_.clear();
    };
    const std::size_t last = std::min(rows.rows, end * block_rows);
    std::size_t position = begin * block_rows;
    for (Key key = lean.key_at(position); position < last; ++key) {
        key = lean.next_key(key, position);
        // The last key has all rows that are left, also in a damaged file.
        const std::size_t key_end = key + 1 < lean.n_keys ? lean.starts[key + 1] : last;
        const std::size_t stop = std::min(key_end, last);
        const double flip_sum = tables.key_flips(key);
        // A code costs at least what its key does.
        if (!has_bound() || flip_sum <= costs_.flips_within(top_.worst())) {
            lean_list_.push_back(rows, position, stop, key, flip_sum);
        }
        position = stop;
        if (lean_list_.size() >= lean_blocks_at_once) scan_listed();
    }
    scan_listed();
}

LeanTables& ScanQuery::lean_tables(const BlockRows& rows) {
    const LeanCodes& codes = *rows.lean->codes;
    for (const auto& tables : lean_tables_) {
        if (&tables->codes() == &codes) return *tables;
    }
    return *lean_tables_.emplace_back(std::make_unique<LeanTables>(costs_, codes));
}

void ScanQuery::score_lean(const BlockRows& rows, const LeanList::Place& place,
                           std::uint32_t hit_rows) {
    if (n_scored_ + block_rows > scored_.size()) offer_scored();
    const LeanCodes& codes = *rows.lean->codes;
    const std::uint8_t* start = rows.blocks + place.block * codes.n_bytes() * block_rows;
    const CodeNumber key_part = codes.key_part(place.key);
    const double worst = top_.worst();
    std::uint32_t left = hit_rows & rows.rows_in(place.block);
    counters_.verified += static_cast<std::uint64_t>(std::popcount(left));
    for (; left != 0; left &= left - 1) {
        const auto r = static_cast<std::size_t>(std::countr_zero(left));
        const std::size_t position = place.block * block_rows + r;
        const double distance = costs_.distance(key_part | codes.rest_part(start, r));
        scored_[n_scored_] = {distance, &rows, static_cast<Row>(position)};
        n_scored_ += distance <= worst;
        if (rows.row_numbers) __builtin_prefetch(rows.row_numbers + position);
    }
}

}  // namespace bitweigh
