// Long loops that Ctrl-C ends. They are cut into pieces, and a Checkpoint is notified between two
// pieces, so that the inner loops, which are measured, do not count.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/parallel.h"
#include "engine/types.h"

namespace bitweigh::paper {

// The bytes of a scan that work counts as towards the next interrupt check: it comes after a
// thousand buckets or 16,000 rows, which take a few milliseconds if nothing is cached.
inline constexpr std::size_t bucket_bytes = 4096;
inline constexpr std::size_t row_bytes = 256;
inline constexpr std::size_t comparison_bytes = 128;
// The amount of work in a piece.
inline constexpr std::size_t piece_rows = 1024;
inline constexpr std::size_t piece_buckets = 256;
inline constexpr std::size_t piece_rounds = 16;

// Not inlined: a check inside a measured loop takes registers from it, 10 % of PQTable's time.
[[gnu::noinline]] inline void count(Checkpoint& checkpoint, std::size_t bytes) {
    checkpoint.done(bytes);
}

// Calls visit(first, n) for pieces of n rows, from row `first` on, of `rows` in all.
template <class Visit>
void in_pieces(std::size_t rows, Checkpoint& checkpoint, const Visit& visit) {
    for (std::size_t first = 0; first < rows; first += piece_rows) {
        const std::size_t n = std::min(piece_rows, rows - first);
        visit(first, n);
        count(checkpoint, n * row_bytes);
    }
}

// Calls visit(row) for each row, and counts the rows.
template <class Visit>
[[gnu::noinline]] void for_many_rows(std::span<const Row> rows, Checkpoint& checkpoint,
                                     const Visit& visit) {
    in_pieces(rows.size(), checkpoint, [&](std::size_t first, std::size_t n) {
        for (Row row : rows.subspan(first, n)) visit(row);
    });
}

// The same, but rows are not counted if there is at most a piece of them, as in most buckets.
template <class Visit>
void for_each_row(std::span<const Row> rows, Checkpoint& checkpoint, const Visit& visit) {
    if (rows.size() > piece_rows) [[unlikely]] {
        for_many_rows(rows, checkpoint, visit);
        return;
    }
    for (Row row : rows) visit(row);
}

// Counts a round over `tables` tables; `rounds` is the number of rounds so far.
inline void count_round(std::uint64_t rounds, std::size_t tables, Checkpoint& checkpoint) {
    if (rounds % piece_rounds == 0) count(checkpoint, piece_rounds * tables * bucket_bytes);
}

// Calls sort(before), which sorts `size` elements. Comparisons are counted, which makes them slower
// by a half, only if sorting takes longer than Ctrl-C may wait.
template <class Before, class Sort>
void sort_checked(std::size_t size, Checkpoint& checkpoint, const Before& before,
                  const Sort& sort) {
    constexpr std::size_t max_unchecked = std::size_t{1} << 18;
    if (size <= max_unchecked) {
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
