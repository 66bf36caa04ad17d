// Keeps the K nearest entries offered so far.
//
// If K is small they are kept in order. Otherwise they are kept in a buffer that is larger than K:
// entries are appended, and when it is full the K nearest are selected and the rest dropped. That
// costs a few nanoseconds an entry where a heap costs a mispredicted branch for each level. Between
// two selections a histogram of the distances follows the K-th nearest down: every bin knows its
// largest distance, and the K-th nearest does not exceed that of the first bin up to which there
// are K entries.
//
// If a search may find a row more than once, the ids kept are hashed. Dropped rows need not be
// remembered: `worst` only falls, so a dropped row is beyond it when it is offered again.
//
// A bound may come from outside: a distance that the K-th nearest of the whole search is known not
// to exceed. `worst` is the smaller of the two, so it only falls.
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

#include "engine/parallel.h"
#include "engine/query/stoppable.h"
#include "engine/rows/id_column.h"
#include "engine/types.h"

namespace bitweigh {

// The k of a search for all rows within a bound.
inline constexpr std::size_t every_row = std::numeric_limits<std::size_t>::max() / 16;

// A hash set of ids, identified by the place where they are stored.
class SeenIds {
public:
    // Reserves room for this many ids; the set grows as needed. `checkpoint` may be null.
    explicit SeenIds(std::size_t capacity, Checkpoint* checkpoint = nullptr)
        : checkpoint_(checkpoint) {
        const std::size_t n_slots = std::bit_ceil(2 * capacity + 2);
        slots_.reserve(n_slots);
        while (slots_.size() < n_slots) {
            slots_.resize(std::min(n_slots, slots_.size() + stoppable_slots));
            if (in_steps(checkpoint_, n_slots)) checkpoint_->check();
        }
        shift_ = 64 - std::countr_zero(n_slots);
    }

    // Returns false if the id is already in the set.
    bool insert(IdPlace id) {
        if (!has_room(1)) grow();
        std::size_t slot = slot_of(id);
        for (; slots_[slot]; slot = (slot + 1) & (slots_.size() - 1)) {
            if (slots_[slot] == id) return false;
        }
        slots_[slot] = id;
        ++size_;
        return true;
    }
    // Whether this many more ids fit without growing.
    bool has_room(std::size_t more) const { return 2 * (size_ + more) < slots_.size(); }
    void clear() {
        std::fill(slots_.begin(), slots_.end(), IdPlace());
        size_ = 0;
    }

private:
    void grow() {
        SeenIds larger(slots_.size(), checkpoint_);
        visit_in_steps(slots_.size(), checkpoint_, [&](std::size_t i) {
            if (slots_[i]) larger.insert(slots_[i]);
        });
        *this = std::move(larger);
    }
    std::size_t slot_of(IdPlace id) const {
        return (id.number() / alignof(std::uint32_t) * 0x9e3779b97f4a7c15u) >> shift_;
    }

    static constexpr std::size_t stoppable_slots = std::size_t{1} << 16;

    Checkpoint* checkpoint_;
    std::vector<IdPlace> slots_;  // Power of two in size; less than half are in use.
    std::size_t size_ = 0;        // Number of ids in the set.
    int shift_;                   // Right shift that turns a 64-bit hash into a slot.
};

// An Entry has a `distance`, and nearer(a, b) orders two of them.
template <class Entry>
class TopK {
    // Up to this k entries are kept in order: as fast as a buffer, and `worst` is always up to
    // date.
    static constexpr std::size_t max_ordered_k = 16;
    // Limit of the room reserved for seen ids; beyond it the set grows.
    static constexpr std::size_t max_seen_at_first = 4096;

public:
    // k >= 1. `repeats`: the same row may be offered again; only if Entry is Candidate. With a
    // deadline, work on many entries is reported to the checkpoint.
    explicit TopK(std::size_t k, bool repeats = false, Checkpoint* checkpoint = nullptr)
        : k_(k),
          checkpoint_(checkpoint && checkpoint->has_deadline() ? checkpoint : nullptr),
          room_(k + std::max(k / 2, std::min<std::size_t>(7 * k, 2048))),
          full_(k + k / 2) {
        entries_.reserve(std::min<std::size_t>(k <= max_ordered_k ? k : full_, 1024));
        // Room for more ids than are kept: those of dropped entries need not be removed at once.
        if (repeats) {
            seen_.emplace(k <= max_ordered_k ? 0 : std::min(room_ + k, max_seen_at_first),
                          checkpoint_);
        }
        pause_ = next_pause();
    }

    // No row farther than this can be among the K nearest; a row at this distance can, by its id.
    double worst() const { return worst_; }

    std::size_t k() const { return k_; }
    std::size_t size() const { return entries_.size(); }
    // The number of entries offered while they were already kept.
    std::size_t repeats() const { return repeats_; }

    // The K-th nearest entry at the last selection, or of all entries if K is small: an entry that
    // is not nearer is not kept. Null while there is none.
    const Entry* kth() const {
        if (k_ <= max_ordered_k) return entries_.size() == k_ ? &entries_.back() : nullptr;
        return selected_ ? &kth_ : nullptr;
    }

    void lower_bound_to(double bound) { worst_ = std::min(worst_, bound); }

    // Keeps the entry if it can be among the K nearest; it must be within `worst`.
    void offer(const Entry& entry) {
        if (k_ <= max_ordered_k) {
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
        if (entries_.size() >= pause_ || bins_are_spent()) pause();
    }

    // Calls visit(entry) for all entries kept, and some that may yet be dropped.
    template <class Visit>
    void visit_kept(const Visit& visit) const {
        for (const Entry& entry : entries_) visit(entry);
    }

    // Drops all but the first n entries offered; only if k is every_row, which keeps their order.
    void keep_first(std::size_t n) { entries_.resize(n); }

    // Returns the K nearest in ascending order, or all if there are fewer; leaves this empty.
    std::vector<Neighbour> take_sorted() {
        if (entries_.size() > k_) {
            keep_within(worst_);
            // If there are only a few too many, it is faster to drop them after sorting.
            if (entries_.size() > k_ + k_ / 4) select();
        }
        // Reads each id once, not for every comparison of two equal distances.
        std::vector<Neighbour> sorted;
        sorted.reserve(entries_.size());
        each([&](const Entry& entry) { sorted.push_back(neighbour_of(entry)); });
        entries_ = {};
        sort_by_distance(sorted, checkpoint_);
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

    // Calls visit(entry) for all entries; with a deadline, in steps.
    template <class Visit>
    void each(const Visit& visit) {
        visit_in_steps(entries_.size(), checkpoint_, [&](std::size_t i) { visit(entries_[i]); });
    }

    // Drops the entries that are farther than this.
    void keep_within(double distance) {
        std::size_t kept = 0;
        each([&](const Entry& entry) {
            const bool keep = entry.distance <= distance;
            entries_[kept] = entry;
            kept += keep;
        });
        entries_.resize(kept);
    }

    // The number of entries at which to select or, with a deadline, to grow in steps.
    std::size_t next_pause() const {
        return checkpoint_ ? std::min(full_, std::max(stoppable_entries, entries_.capacity()))
                           : full_;
    }

    void pause() {
        if (entries_.size() >= full_ || bins_are_spent()) {
            select();
        } else if (entries_.size() == entries_.capacity()) {
            std::vector<Entry> larger;
            larger.reserve(2 * entries_.size());
            each([&](const Entry& entry) { larger.push_back(entry); });
            entries_ = std::move(larger);
        }
        pause_ = next_pause();
    }

    void select() {
        distances_.clear();
        distances_.reserve(entries_.size());
        each([&](const Entry& entry) { distances_.push_back(entry.distance); });
        const double last = kth_smallest(distances_.data(), distances_.size(), k_, checkpoint_);
        keep_within(last);
        if (entries_.size() > k_) {  // ties at the K-th distance: the ids decide
            const auto kth = entries_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
            with_order(nearer, checkpoint_, entries_.size(), [&](const auto& order) {
                std::nth_element(entries_.begin(), kth, entries_.end(), order);
            });
            entries_.resize(k_);
        }
        if constexpr (std::is_same_v<Entry, Candidate>) {
            if (seen_ && !seen_->has_room(room_ - k_ + 1)) {
                seen_->clear();
                each([&](const Entry& entry) { seen_->insert(entry.id); });
            }
        }
        with_order(nearer, checkpoint_, entries_.size(), [&](const auto& order) {
            kth_ = *std::max_element(entries_.begin(), entries_.end(), order);
        });
        selected_ = true;
        full_ = room_;
        worst_ = std::min(worst_, last);
        count_all(last);
    }

    // Counts an appended entry in the histogram and lowers `worst` accordingly.
    void lower_by(double distance) {
        count(distance);
        if (up_to_kth_ - bins_[kth_bin_].entries < k_) return;
        while (up_to_kth_ - bins_[kth_bin_].entries >= k_) {
            up_to_kth_ -= bins_[kth_bin_].entries;
            --kth_bin_;
        }
        worst_ = std::min(worst_, bins_[kth_bin_].largest);
    }

    // Whether the K nearest are all in the first bin, so that the histogram cannot lower `worst`.
    bool bins_are_spent() const { return selected_ && kth_bin_ == 0 && up_to_kth_ >= k_ + k_ / 2; }

    void count_all(double last) {
        bins_.fill({0, -padding_distance});
        nearest_ = last;
        each([&](const Entry& entry) { nearest_ = std::min(nearest_, entry.distance); });
        // The cap keeps it finite where the distances are equal, or almost equal.
        bins_per_distance_ = std::min(static_cast<double>(bins_.size()) / (last - nearest_),
                                      std::numeric_limits<double>::max());
        up_to_kth_ = 0;
        each([&](const Entry& entry) { count(entry.distance); });
        kth_bin_ = bin_of(last);
    }

    void count(double distance) {
        Bin& bin = bins_[bin_of(distance)];
        ++bin.entries;
        bin.largest = std::max(bin.largest, distance);
        ++up_to_kth_;
    }

    // Monotonic: a distance up to the largest in a bin is not in a higher bin.
    std::size_t bin_of(double distance) const {
        const double bin = (distance - nearest_) * bins_per_distance_;
        if (!(bin > 0.0)) return 0;  // also NaN, which infinite distances would give
        return static_cast<std::size_t>(std::min(bin, static_cast<double>(bins_.size() - 1)));
    }

    std::size_t k_;
    Checkpoint* checkpoint_;  // Null without a deadline.
    std::size_t room_;        // Size of the full buffer.
    std::size_t full_;   // Entries at which the next selection is due; earlier for the first bound.
    std::size_t pause_;  // Entries at which pause() is due, at most full_.
    double worst_ = padding_distance;
    bool selected_ = false;  // Whether there was a selection.
    Entry kth_{};            // K-th nearest entry at the last selection.
    std::vector<Entry> entries_;
    std::vector<double> distances_;  // Scratch of select().
    struct Bin {
        std::size_t entries;
        double largest;  // Largest distance in the bin; -inf if it is empty.
    };
    std::array<Bin, 128> bins_;
    double nearest_ = 0.0;  // Smallest distance at the last selection, where the bins begin.
    double bins_per_distance_ = 0.0;
    std::size_t kth_bin_ = 0;      // First bin up to which there are K entries.
    std::size_t up_to_kth_ = 0;    // Number of entries in the bins up to kth_bin_.
    std::optional<SeenIds> seen_;  // Ids of kept and of some dropped entries; set if rows repeat.
    std::size_t repeats_ = 0;
};

}  // namespace bitweigh
