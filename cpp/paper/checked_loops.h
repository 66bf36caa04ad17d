// Long loops that Ctrl-C ends: cut into pieces between which a Checkpoint is told what was done, so
// that the loops which are measured do not count.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/parallel.h"
#include "engine/types.h"

namespace bitweigh::paper {

// What work counts as towards the next look at Ctrl-C, in bytes of a scan: a look comes after a
// thousand buckets or 16,000 rows, which take a few milliseconds where nothing is cached.
inline constexpr std::size_t bucket_bytes = 4096;
inline constexpr std::size_t row_bytes = 256;
inline constexpr std::size_t comparison_bytes = 128;
// How much is done before it is counted.
inline constexpr std::size_t piece_rows = 1024;
inline constexpr std::size_t piece_buckets = 256;
inline constexpr std::size_t piece_rounds = 16;

// Out of line: a look inside of a loop that is measured takes registers from it, 10 % of PQTable's
// time.
[[gnu::noinline]] inline void count(Checkpoint& checkpoint, std::size_t bytes) {
    checkpoint.done(bytes);
}

// Calls visit(first, n) for pieces of n of so many rows.
template <class Visit>
void in_pieces(std::size_t rows, Checkpoint& checkpoint, const Visit& visit) {
    for (std::size_t first = 0; first < rows; first += piece_rows) {
        const std::size_t n = std::min(piece_rows, rows - first);
        visit(first, n);
        count(checkpoint, n * row_bytes);
    }
}

// Calls visit(row) for each, and counts them.
template <class Visit>
[[gnu::noinline]] void for_many_rows(std::span<const Row> rows, Checkpoint& checkpoint,
                                     const Visit& visit) {
    in_pieces(rows.size(), checkpoint, [&](std::size_t first, std::size_t n) {
        for (Row row : rows.subspan(first, n)) visit(row);
    });
}

// The same, but the few rows that most buckets have are not counted.
template <class Visit>
void for_each_row(std::span<const Row> rows, Checkpoint& checkpoint, const Visit& visit) {
    if (rows.size() > piece_rows) [[unlikely]] {
        for_many_rows(rows, checkpoint, visit);
        return;
    }
    for (Row row : rows) visit(row);
}

// To be called for each round over so many tables, with how many there were so far.
inline void count_round(std::uint64_t so_far, std::size_t tables, Checkpoint& checkpoint) {
    if (so_far % piece_rounds == 0) count(checkpoint, piece_rounds * tables * bucket_bytes);
}

// Sorts as `sort(before)` does. Comparisons are counted, which makes them slower by a half, only
// where there are so many that sorting takes longer than Ctrl-C may wait.
template <class Before, class Sort>
void sort_checked(std::size_t size, Checkpoint& checkpoint, const Before& before,
                  const Sort& sort) {
    constexpr std::size_t soon_sorted = std::size_t{1} << 18;
    if (size <= soon_sorted) {
        sort(before);
        checkpoint.done(size * row_bytes);
        return;
    }
    sort([&](const auto& a, const auto& b) {
        checkpoint.done(comparison_bytes);
        return before(a, b);
    });
}

}  // namespace bitweigh::paper
