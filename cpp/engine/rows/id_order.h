// The rows of a segment in ascending id, sorted when they are first asked for.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

#include "engine/parallel.h"
#include "engine/rows/id_column.h"
#include "engine/rows/id_lookup.h"
#include "engine/types.h"

namespace bitweigh {

// Any number of threads may ask; one of them sorts while the others wait.
class IdOrder {
public:
    IdOrder(IdColumn ids, std::size_t n_rows) : ids_(ids), n_rows_(n_rows) {}

    const Row* rows(Checkpoint& checkpoint) const {
        if (const Row* sorted = sorted_.load(std::memory_order_acquire)) return sorted;
        const std::lock_guard lock(sorting_);
        if (!rows_) {
            auto sorted = std::make_unique_for_overwrite<Row[]>(n_rows_);
            sort_by_id(ids_, n_rows_, sorted.get(), checkpoint);
            rows_ = std::move(sorted);
            sorted_.store(rows_.get(), std::memory_order_release);
        }
        return rows_.get();
    }
    // The memory that it takes now.
    std::size_t bytes() const { return sorted_.load() ? n_rows_ * sizeof(Row) : 0; }

private:
    IdColumn ids_;
    std::size_t n_rows_;
    mutable std::mutex sorting_;
    mutable std::unique_ptr<Row[]> rows_;
    mutable std::atomic<const Row*> sorted_ = nullptr;
};

}  // namespace bitweigh
