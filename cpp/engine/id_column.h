// The ids of a segment by row, in 64 bits each, or in 32 where all of them fit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/types.h"

namespace bitweigh {

// Where an id is stored: an address, whose lowest bit says that the id has 32 bits. Two places are
// equal if they are the same; ids are distinct, so then and only then the ids are.
class IdPlace {
public:
    IdPlace() = default;
    explicit IdPlace(const Id* id) : place_(reinterpret_cast<std::uintptr_t>(id)) {}
    explicit IdPlace(const std::uint32_t* id) : place_(reinterpret_cast<std::uintptr_t>(id) | 1) {}

    // False for no place at all.
    explicit operator bool() const { return place_ != 0; }
    bool operator==(const IdPlace&) const = default;
    std::uint64_t number() const { return place_; }

    Id operator*() const {
        if (place_ & 1) return *reinterpret_cast<const std::uint32_t*>(place_ - 1);
        return *reinterpret_cast<const Id*>(place_);
    }
    void prefetch() const { __builtin_prefetch(reinterpret_cast<const void*>(place_)); }

private:
    std::uintptr_t place_ = 0;
};

class IdColumn {
public:
    // None: of rows whose ids are never asked for.
    IdColumn(std::nullptr_t = nullptr) {}
    IdColumn(const Id* ids) : wide_(ids) {}
    IdColumn(const std::uint32_t* ids) : narrow_(ids) {}

    IdPlace place(std::size_t row) const {
        return narrow_ ? IdPlace(narrow_ + row) : IdPlace(wide_ + row);
    }
    Id operator[](std::size_t row) const { return narrow_ ? Id{narrow_[row]} : wide_[row]; }

private:
    const Id* wide_ = nullptr;
    const std::uint32_t* narrow_ = nullptr;
};

// A neighbour whose id was not read yet: in a large segment each read is a cache miss, and only
// ties and the final answer need it.
struct Candidate {
    double distance;
    IdPlace id;
};

inline bool is_nearer(const Candidate& a, const Candidate& b) {
    return a.distance < b.distance || (a.distance == b.distance && *a.id < *b.id);
}

}  // namespace bitweigh
