// Memory as large as the index that every query needs, and that none should have to clear.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

namespace bitweigh::paper {

// A query takes its Scratch out and gives it back as clean as it was. While it has it another
// query, of another thread or of a signal handler on the same one, gets new memory. A query that
// fails gives nothing back: what it left behind is not known.
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
    std::size_t n_;
    std::mutex mutex_;  // guards what follows
    std::unique_ptr<Scratch> spare_;
};

}  // namespace bitweigh::paper
