#include "paper/substring_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "paper/checked_loops.h"

namespace bitweigh::paper {

Key key_of(const std::uint8_t* code, const Substring& substring, BitOrder order) {
    Key key = 0;
    for (std::size_t j = 0; j < substring.bits; ++j) {
        const std::size_t i = substring.first + j;
        key |= static_cast<Key>((code[i / 8] & bit_mask(i, order)) != 0) << j;
    }
    return key;
}

SubstringTable::SubstringTable(const Codes& codes, const Substring& substring,
                               Checkpoint& checkpoint)
    : substring_(substring) {
    // The directory has an entry for every key if there are at most four keys per row.
    const std::size_t row_bits = static_cast<std::size_t>(std::bit_width(codes.n)) + 1;
    const std::size_t directory_bits = std::min(substring.bits, std::max<std::size_t>(row_bits, 8));
    low_bits_ = substring.bits - directory_bits;

    std::vector<Key> keys(codes.n);
    in_pieces(codes.n, checkpoint, [&](std::size_t first, std::size_t n) {
        for (std::size_t i = first; i < first + n; ++i) {
            keys[i] = key_of(codes.row(i), substring, codes.order);
        }
    });
    // Counting sort by the leading bits keeps the rows of a directory entry in ascending order.
    starts_.assign((std::size_t{1} << directory_bits) + 1, 0);
    in_pieces(codes.n, checkpoint, [&](std::size_t first, std::size_t n) {
        for (std::size_t i = first; i < first + n; ++i) ++starts_[(keys[i] >> low_bits_) + 1];
    });
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    rows_.resize(codes.n);
    std::vector<std::uint32_t> next(starts_.begin(), starts_.end() - 1);
    in_pieces(codes.n, checkpoint, [&](std::size_t first, std::size_t n) {
        for (std::size_t i = first; i < first + n; ++i) {
            rows_[next[keys[i] >> low_bits_]++] = static_cast<Row>(i);
        }
    });
    if (low_bits_ == 0) return;
    const auto by_key = [&](Row a, Row b) { return keys[a] < keys[b]; };
    for (std::size_t entry = 0; entry + 1 < starts_.size(); ++entry) {
        const std::span<Row> rows(rows_.data() + starts_[entry],
                                  starts_[entry + 1] - starts_[entry]);
        sort_checked(rows.size(), checkpoint, by_key, [&](const auto& before) {
            std::stable_sort(rows.begin(), rows.end(), before);
        });
    }
    keys_.reserve(codes.n);
    for_each_row(rows_, checkpoint, [&](Row row) { keys_.push_back(keys[row]); });
}

std::span<const Row> SubstringTable::bucket(Key key) const {
    std::size_t begin = starts_[key >> low_bits_];
    std::size_t end = starts_[(key >> low_bits_) + 1];
    if (low_bits_ != 0) {
        const auto [first, last] =
            std::equal_range(keys_.begin() + static_cast<std::ptrdiff_t>(begin),
                             keys_.begin() + static_cast<std::ptrdiff_t>(end), key);
        begin = static_cast<std::size_t>(first - keys_.begin());
        end = static_cast<std::size_t>(last - keys_.begin());
    }
    return {rows_.data() + begin, end - begin};
}

std::size_t substrings_by_rule(std::size_t n_bits, std::size_t n) {
    const double bits_per_key = std::log2(static_cast<double>(std::max<std::size_t>(n, 2)));
    const auto by_rule =
        static_cast<std::size_t>(std::lround(static_cast<double>(n_bits) / bits_per_key));
    const std::size_t min_substrings = (n_bits + max_key_bits - 1) / max_key_bits;
    return std::min(n_bits, std::max(by_rule, min_substrings));
}

std::vector<SubstringTable> split_tables(const Codes& codes, std::size_t m,
                                         Checkpoint& checkpoint) {
    std::vector<SubstringTable> tables;
    tables.reserve(m);
    std::size_t first = 0;
    for (std::size_t t = 0; t < m; ++t) {
        const std::size_t bits = codes.n_bits / m + (t < codes.n_bits % m ? 1 : 0);
        tables.emplace_back(codes, Substring{first, bits}, checkpoint);
        first += bits;
    }
    return tables;
}

}  // namespace bitweigh::paper
