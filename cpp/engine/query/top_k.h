// The K nearest seen so far.
//
// A few are kept in order. More are kept in a buffer that is larger than K: entries are appended,
// and when it is full the K nearest are selected and the rest dropped. That costs a few nanoseconds
// an entry where a heap costs a mispredicted branch for each level. Between two selections a
// histogram of the distances follows the K-th nearest down: every bin knows the largest distance in
// it, so the largest in the first bin up to which there are K is a distance that the K-th does not
// exceed.
//
// Where a search may meet a row more than once, the ids kept are hashed. Nothing else is
// remembered: `worst` only falls, so a row that was seen before and dropped is beyond it when it
// comes again.
//
// A bound may be given from outside: a distance that the K-th best of the whole search is known
// not to exceed. `worst` is the smaller of the two, so it only falls.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/query/bucket_sort.h"
#include "engine/query/kth_smallest.h"
#include "engine/rows/id_column.h"
#include "engine/types.h"

namespace bitweigh {

// A k for everything within the bound, however many there are.
inline constexpr std::size_t every_row = std::numeric_limits<std::size_t>::max() / 16;

// Which ids were seen, by the place where they are stored.
class SeenIds {
public:
    // For `most` ids at first.
    explicit SeenIds(std::size_t most) : places_(std::bit_ceil(2 * most + 2)) {
        shift_ = 64 - std::countr_zero(places_.size());
    }

    // False if the id is there already.
    bool insert(IdPlace id) {
        if (!has_room(1)) grow();
        std::size_t at = place_of(id);
        for (; places_[at]; at = (at + 1) & (places_.size() - 1)) {
            if (places_[at] == id) return false;
        }
        places_[at] = id;
        ++size_;
        return true;
    }
    bool has_room(std::size_t more) const { return 2 * (size_ + more) < places_.size(); }
    void clear() {
        std::fill(places_.begin(), places_.end(), IdPlace());
        size_ = 0;
    }

private:
    void grow() {
        SeenIds larger(places_.size());
        for (const IdPlace& id : places_) {
            if (id) larger.insert(id);
        }
        *this = std::move(larger);
    }
    std::size_t place_of(IdPlace id) const {
        return (id.number() / alignof(std::uint32_t) * 0x9e3779b97f4a7c15u) >> shift_;
    }

    std::vector<IdPlace> places_;
    std::size_t size_ = 0;
    int shift_;
};

// An Entry has a `distance`, and nearer(a, b) orders two of them.
template <class Entry>
class TopK {
    // So many are kept in order: as fast as a buffer, and `worst` is never late.
    static constexpr std::size_t few = 16;
    // Room for the ids seen is made for so many; beyond that it grows.
    static constexpr std::size_t max_seen_at_first = 4096;

public:
    // k >= 1. `repeats`: the same row may be offered again; only for candidates.
    explicit TopK(std::size_t k, bool repeats = false)
        : k_(k), room_(k + std::max(k / 2, std::min<std::size_t>(7 * k, 2048))), full_(k + k / 2) {
        entries_.reserve(std::min<std::size_t>(k <= few ? k : full_, 1024));
        // Room for more than are kept: those that were dropped need not be taken out at once.
        if (repeats) seen_.emplace(k <= few ? 0 : std::min(room_ + k, max_seen_at_first));
    }

    // No row farther than this can be among the K nearest; equal ones can, by their id.
    double worst() const { return worst_; }

    std::size_t k() const { return k_; }
    std::size_t size() const { return entries_.size(); }
    // How often an entry came again.
    std::size_t repeats() const { return repeats_; }

    // The K-th nearest of those that came, or of those that came up to some time ago: what is not
    // nearer is not kept. Null while that is not known.
    const Entry* kth() const {
        if (k_ <= few) return entries_.size() == k_ ? &entries_.back() : nullptr;
        return selected_ ? &kth_ : nullptr;
    }

    void lower_bound_to(double bound) { worst_ = std::min(worst_, bound); }

    // To be called for entries within `worst`; keeps those that can be among the K nearest.
    void offer(const Entry& entry) {
        if (k_ <= few) {
            insert(entry);
            return;
        }
        if (selected_ && (entry.distance > worst_ || !nearer(entry, kth_))) return;
        if constexpr (std::is_same_v<Entry, Candidate>) {
            if (seen_ && !seen_->insert(entry.id)) {
                ++repeats_;
                return;
            }
        }
        entries_.push_back(entry);
        if (selected_) lower_by(entry.distance);
        if (entries_.size() >= full_ || bins_are_spent()) select();
    }

    // Forgets all but the first n entries that came; only with every_row as k, which keeps their
    // order.
    void keep_first(std::size_t n) { entries_.resize(n); }

    // The K nearest in rising order, or all if fewer came; leaves this empty.
    std::vector<Neighbour> take_sorted() {
        if (entries_.size() > k_) {
            const auto too_far = [this](const Entry& entry) { return entry.distance > worst_; };
            entries_.erase(std::remove_if(entries_.begin(), entries_.end(), too_far),
                           entries_.end());
            // A few too many are dropped faster after sorting.
            if (entries_.size() > k_ + k_ / 4) select();
        }
        // Each id is read once, and not for every comparison of two equal distances.
        std::vector<Neighbour> sorted;
        sorted.reserve(entries_.size());
        for (const Entry& entry : entries_) sorted.push_back(neighbour_of(entry));
        entries_ = {};
        bucket_sort_by_distance(sorted, nearer);
        if (sorted.size() > k_) sorted.resize(k_);
        return sorted;
    }

private:
    void insert(const Entry& entry) {
        std::size_t at = entries_.size();
        if constexpr (std::is_same_v<Entry, Candidate>) {
            const auto same = [&](const Entry& kept) { return kept.id == entry.id; };
            if (seen_ && std::any_of(entries_.begin(), entries_.end(), same)) {
                ++repeats_;
                return;
            }
        }
        if (at == k_ && !nearer(entry, entries_.back())) return;
        if (at < k_) {
            entries_.push_back(entry);
        } else {
            --at;
        }
        for (; at > 0 && nearer(entry, entries_[at - 1]); --at) entries_[at] = entries_[at - 1];
        entries_[at] = entry;
        if (entries_.size() == k_) worst_ = std::min(worst_, entries_.back().distance);
    }

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
            if (seen_ && !seen_->has_room(room_ - k_ + 1)) {
                seen_->clear();
                for (const Entry& entry : entries_) seen_->insert(entry.id);
            }
        }
        kth_ = *std::max_element(entries_.begin(), entries_.end(), nearer);
        selected_ = true;
        full_ = room_;
        worst_ = std::min(worst_, last);
        count_all(last);
    }

    // Counts an entry that was appended.
    void lower_by(double distance) {
        count(distance);
        if (up_to_kth_ - bins_[kth_bin_].entries < k_) return;
        while (up_to_kth_ - bins_[kth_bin_].entries >= k_) {
            up_to_kth_ -= bins_[kth_bin_].entries;
            --kth_bin_;
        }
        worst_ = std::min(worst_, bins_[kth_bin_].largest);
    }

    // The K nearest all came to lie in the first bin: it has nothing more to tell.
    bool bins_are_spent() const { return selected_ && kth_bin_ == 0 && up_to_kth_ >= k_ + k_ / 2; }

    void count_all(double last) {
        bins_.fill({0, -padding_distance});
        nearest_ = last;
        for (const Entry& entry : entries_) nearest_ = std::min(nearest_, entry.distance);
        // The cap keeps it finite where the distances are equal, or almost.
        bins_per_distance_ = std::min(static_cast<double>(bins_.size()) / (last - nearest_),
                                      std::numeric_limits<double>::max());
        up_to_kth_ = 0;
        for (const Entry& entry : entries_) count(entry.distance);
        kth_bin_ = bin_of(last);
    }

    void count(double distance) {
        Bin& bin = bins_[bin_of(distance)];
        ++bin.entries;
        bin.largest = std::max(bin.largest, distance);
        ++up_to_kth_;
    }

    // Rises with the distance: what is within the largest of a bin is not in a higher bin.
    std::size_t bin_of(double distance) const {
        const double at = (distance - nearest_) * bins_per_distance_;
        if (!(at > 0.0)) return 0;  // also NaN, which infinite distances would make
        return static_cast<std::size_t>(std::min(at, static_cast<double>(bins_.size() - 1)));
    }

    std::size_t k_;
    std::size_t room_;
    std::size_t full_;  // entries at which the next selection comes; the first bound cannot wait
    double worst_ = padding_distance;
    bool selected_ = false;
    Entry kth_{};  // the K-th nearest at the last selection
    std::vector<Entry> entries_;
    std::vector<double> distances_;  // scratch of select()
    struct Bin {
        std::size_t entries;
        double largest;
    };
    std::array<Bin, 128> bins_;
    double nearest_ = 0.0;
    double bins_per_distance_ = 0.0;
    std::size_t kth_bin_ = 0;    // the first with K entries up to it
    std::size_t up_to_kth_ = 0;  // entries in it and below
    std::optional<SeenIds> seen_;
    std::size_t repeats_ = 0;
};

}  // namespace bitweigh
