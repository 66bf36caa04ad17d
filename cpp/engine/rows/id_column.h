// The ids of a segment by row: stored in 64 bits each, or in 32 if all of them fit, or not stored
// but counted up from the first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "engine/rows/bits.h"
#include "engine/types.h"

namespace bitweigh {

// Counted ids are less than this, so that an IdPlace can hold them beside its two flag bits.
inline constexpr Id counted_ids_end = Id{1} << 61;
static_assert(sizeof(std::uintptr_t) == sizeof(Id));

// The place where an id is stored: its address, with the lowest bit set if the id has 32 bits; or,
// with the next bit set, the id itself. Ids are distinct, so two places are equal if and only if
// the ids are.
class IdPlace {
public:
    IdPlace() = default;
    explicit IdPlace(const Id* id) : place_(reinterpret_cast<std::uintptr_t>(id)) {}
    explicit IdPlace(const std::uint32_t* id) : place_(reinterpret_cast<std::uintptr_t>(id) | 1) {}
    // The place of an id that is not stored and less than counted_ids_end.
    static IdPlace of_counted(Id id) {
        IdPlace place;
        place.place_ = static_cast<std::uintptr_t>(id) << 2 | 2;
        return place;
    }

    // False if there is no id.
    explicit operator bool() const { return place_ != 0; }
    bool operator==(const IdPlace&) const = default;
    std::uint64_t number() const { return place_; }

    Id operator*() const {
        if (place_ & 1) return *reinterpret_cast<const std::uint32_t*>(place_ - 1);
        if (place_ & 2) return static_cast<Id>(place_ >> 2);
        return *reinterpret_cast<const Id*>(place_);
    }
    // Where the id is stored; null if it is not.
    const void* address() const {
        return place_ & 2 ? nullptr : reinterpret_cast<const void*>(place_ & ~std::uintptr_t{1});
    }
    void prefetch() const { __builtin_prefetch(reinterpret_cast<const void*>(place_)); }

private:
    std::uintptr_t place_ = 0;
};

class IdColumn {
public:
    // Counted ids: each is one more than the last, and all are less than counted_ids_end.
    IdColumn() = default;
    explicit IdColumn(Id first) : first_(first) {}
    // Stored ids, which must outlive this.
    IdColumn(const Id* ids) : wide_(ids) {}
    IdColumn(const std::uint32_t* ids) : narrow_(ids) {}

    IdPlace place(std::size_t row) const {
        if (narrow_) return IdPlace(narrow_ + row);
        return wide_ ? IdPlace(wide_ + row) : IdPlace::of_counted(first_ + static_cast<Id>(row));
    }
    Id operator[](std::size_t row) const {
        if (narrow_) return Id{narrow_[row]};
        return wide_ ? wide_[row] : first_ + static_cast<Id>(row);
    }
    bool is_counted() const { return !narrow_ && !wide_; }

    // A mask of those of n <= 32 rows, from `first` on, that have an id less than `end` >= 0.
    std::uint32_t below(std::size_t first, std::size_t n, Id end) const {
        if (narrow_) {
            constexpr Id max_narrow = std::numeric_limits<std::uint32_t>::max();
            if (end > max_narrow) return first_bits(n);
            return below(narrow_ + first, n, static_cast<std::uint32_t>(end));
        }
        if (wide_) return below(wide_ + first, n, end);
        const Id ids_below = end - (first_ + static_cast<Id>(first));
        return first_bits(
            static_cast<std::size_t>(std::clamp(ids_below, Id{0}, static_cast<Id>(n))));
    }

private:
    static std::uint32_t first_bits(std::size_t n) {
        return static_cast<std::uint32_t>((std::uint64_t{1} << n) - 1);
    }
    template <class Stored>
    static std::uint32_t below(const Stored* ids, std::size_t n, Stored end) {
        std::uint8_t not_below[block_rows];
        if (n == block_rows) {
            // A loop of known length, which the compiler vectorises.
            for (std::size_t i = 0; i < block_rows; ++i) not_below[i] = !(ids[i] < end);
        } else {
            for (std::size_t i = 0; i < block_rows; ++i) not_below[i] = !(i < n && ids[i] < end);
        }
        return zero_bytes(not_below);
    }

    Id first_ = 0;                           // First of the counted ids.
    const Id* wide_ = nullptr;               // Ids stored in 64 bits, or null.
    const std::uint32_t* narrow_ = nullptr;  // Ids stored in 32 bits, or null.
};

// A neighbour whose id has not been read yet: in a large segment each read is a cache miss, and
// only ties and the final answer need it.
struct Candidate {
    double distance;
    IdPlace id;
};

inline Neighbour neighbour_of(const Candidate& candidate) {
    return {candidate.distance, *candidate.id};
}

inline bool is_nearer(const Candidate& a, const Candidate& b) {
    return a.distance < b.distance || (a.distance == b.distance && *a.id < *b.id);
}

}  // namespace bitweigh
