// Scratch memory that grows with the index, which queries reuse so that none has to clear all of
// it.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

namespace bitweigh::paper {

// A query takes a Scratch and gives it back clean. Meanwhile another query, on another thread or in
// a signal handler on the same one, gets new memory. A query that fails gives nothing back, since
// the state of its Scratch is unknown.
template <class Scratch>
class SpareScratch {
public:
    // For queries over n rows; Scratch(n) is clean.
    explicit SpareScratch(std::size_t n) : n_(n), spare_(std::make_unique<Scratch>(n)) {}

    std::unique_ptr<Scratch> take() {
        {
            const std::lock_guard lock(mutex_);
            if (spare_) return std::move(spare_);
        }
        return std::make_unique<Scratch>(n_);
    }
    void give_back(std::unique_ptr<Scratch> scratch) {
        const std::lock_guard lock(mutex_);
        std::swap(spare_, scratch);
    }

private:
    std::size_t n_;     // Number of rows.
    std::mutex mutex_;  // Guard of spare_.
    std::unique_ptr<Scratch> spare_;
};

}  // namespace bitweigh::paper
