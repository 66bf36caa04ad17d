// The K nearest met so far, kept in a buffer that is a little larger than K.
//
// Entries are appended; when the buffer is full, the K nearest are selected and the rest dropped.
// That costs a few nanoseconds an entry where a heap costs a mispredicted branch for each level.
// The price is a `worst` that falls a little later, and so a few more entries. Room for half of K
// more measured best from K = 10 to 1000; K itself is as fast, a quarter 5-10 % slower.
//
// Where a search may meet a row more than once, the ids kept are hashed. Nothing else is remembered:
// `worst` only falls, so a row that was met before and dropped is beyond it when it comes again.
//
// A bound may be given from outside: a distance that the K-th best of the whole search is known
// not to exceed. `worst` is the smaller of the two, so it only falls.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/kth_smallest.h"
#include "engine/types.h"

namespace bitweigh {

// Which of a few ids were met, by the place where they are stored.
class MetIds {
public:
    // For at most `most` ids at a time.
    explicit MetIds(std::size_t most) : places_(std::bit_ceil(2 * most + 2)) {
        shift_ = 64 - std::countr_zero(places_.size());
    }

    // False if the id is there already.
    bool insert(const Id* id) {
        std::size_t at = place_of(id);
        for (; places_[at] != nullptr; at = (at + 1) & (places_.size() - 1)) {
            if (places_[at] == id) return false;
        }
        places_[at] = id;
        return true;
    }
    void clear() { std::fill(places_.begin(), places_.end(), nullptr); }

private:
    std::size_t place_of(const Id* id) const {
        const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(id));
        return (address / alignof(Id) * 0x9e3779b97f4a7c15u) >> shift_;
    }

    std::vector<const Id*> places_;
    int shift_;
};

// An Entry has a `distance`, and nearer(a, b) orders two of them.
template <class Entry>
class TopK {
public:
    // k >= 1. `repeats`: the same row may be offered again; only for candidates.
    explicit TopK(std::size_t k, bool repeats = false) : k_(k), room_(k + k / 2) {
        if (repeats) met_.emplace(room_);
    }

    // No row farther than this can be among the K nearest; equal ones can, by their id.
    double worst() const { return worst_; }

    std::size_t size() const { return entries_.size(); }
    // How often an entry came that was kept already.
    std::size_t repeats() const { return repeats_; }

    void lower_bound_to(double bound) { worst_ = std::min(worst_, bound); }

    // To be called for entries within `worst`; keeps those that can be among the K nearest.
    void offer(const Entry& entry) {
        if (selected_ && !nearer(entry, kth_)) return;
        if constexpr (std::is_same_v<Entry, Candidate>) {
            if (met_ && !met_->insert(entry.id)) {
                ++repeats_;
                return;
            }
        }
        entries_.push_back(entry);
        if (entries_.size() >= room_) select();
    }

    // The K nearest in rising order, or all if fewer came; leaves this empty.
    std::vector<Entry> take_sorted() {
        if (entries_.size() > k_) select();
        std::sort(entries_.begin(), entries_.end(), nearer);
        return std::exchange(entries_, {});
    }

private:
    void select() {
        distances_.clear();
        for (const Entry& entry : entries_) distances_.push_back(entry.distance);
        const double last = kth_smallest(distances_.data(), distances_.size(), k_);
        std::size_t kept = 0;
        for (const Entry& entry : entries_) {
            const bool keep = entry.distance <= last;
            entries_[kept] = entry;
            kept += keep;
        }
        entries_.resize(kept);
        if (kept > k_) {  // ties for the last places: the ids decide
            const auto kth = entries_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
            std::nth_element(entries_.begin(), kth, entries_.end(), nearer);
            entries_.resize(k_);
        }
        if constexpr (std::is_same_v<Entry, Candidate>) {
            if (met_) {
                met_->clear();
                for (const Entry& entry : entries_) met_->insert(entry.id);
            }
        }
        kth_ = *std::max_element(entries_.begin(), entries_.end(), nearer);
        selected_ = true;
        worst_ = std::min(worst_, last);
    }

    std::size_t k_;
    std::size_t room_;
    double worst_ = padding_distance;
    bool selected_ = false;
    Entry kth_{};  // the K-th nearest at the last selection
    std::vector<Entry> entries_;
    std::vector<double> distances_;  // scratch of select()
    std::optional<MetIds> met_;
    std::size_t repeats_ = 0;
};

}  // namespace bitweigh
