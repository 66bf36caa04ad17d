// The rows of a segment that a search may return: a bit for each row, in pages. Rows are denied
// because they were removed or because a filter excludes them. A copy shares the pages that it does
// not change, and pages whose rows are all allowed or all denied are not stored, so that denying
// one row of many millions, or allowing only one, writes a few kilobytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/types.h"

namespace bitweigh {

// A mask as a search reads it; if `pages` is null, it allows every row.
struct RowMaskView {
    // 16 KiB of masks, 131,072 rows: the list of the pages of a billion rows is itself about as
    // large as four pages.
    static constexpr std::size_t page_blocks = 4096;

    const std::uint32_t* const* pages = nullptr;  // Pages; null for one without denied rows.

    // The mask of the denied rows of a block.
    std::uint32_t denied_in(std::size_t block) const {
        if (pages == nullptr) return 0;
        const std::uint32_t* page = pages[block / page_blocks];
        return page ? page[block % page_blocks] : 0;
    }
    bool denies(Row row) const { return denied_in(row / block_rows) >> (row % block_rows) & 1; }
};

class RowMask {
public:
    // Allows all of `rows` rows.
    explicit RowMask(std::size_t rows) : rows_(rows), pages_(n_pages()), owned_(n_pages()) {}

    // Denies the rows whose bit is set in `stored`, which has a mask for each block.
    RowMask(std::shared_ptr<const std::uint32_t[]> stored, std::size_t rows) : RowMask(rows) {
        for (std::size_t block = 0; block < blocks_of(rows); ++block) {
            const std::uint32_t mask = stored[block] & existing(block);
            denied_rows_ += static_cast<std::size_t>(std::popcount(mask));
            if (mask) pages_[block / page_blocks] = &stored[block / page_blocks * page_blocks];
        }
        stored_ = std::move(stored);
    }

    static RowMask denying_all(std::size_t rows) {
        RowMask mask(rows);
        std::fill(mask.pages_.begin(), mask.pages_.end(), all_denied.data());
        mask.denied_rows_ = rows;
        return mask;
    }

    // Denies the rows in the masks that denied_in(block) returns; bits of rows that do not exist
    // are ignored.
    template <class DeniedIn>
    static RowMask from_blocks(std::size_t rows, DeniedIn denied_in) {
        RowMask mask(rows);
        for (std::size_t p = 0; p < mask.pages_.size(); ++p) {
            const std::size_t first = p * page_blocks;
            auto page = std::make_shared<Page>(mask.blocks_in(p));
            std::size_t denied = 0;
            for (std::size_t i = 0; i < page->size(); ++i) {
                (*page)[i] = denied_in(first + i) & mask.existing(first + i);
                denied += static_cast<std::size_t>(std::popcount((*page)[i]));
            }
            mask.denied_rows_ += denied;
            if (denied == mask.rows_in(p)) {
                mask.pages_[p] = all_denied.data();
            } else if (denied > 0) {
                mask.set_page(p, std::move(page));
            }
        }
        return mask;
    }

    // Return a copy that also denies, or allows, these rows; each must be less than rows().
    RowMask denying(std::span<const Row> more) const {
        return changed(more, [](std::uint32_t mask, std::uint32_t bit) { return mask | bit; });
    }
    RowMask allowing(std::span<const Row> more) const {
        return changed(more, [](std::uint32_t mask, std::uint32_t bit) { return mask & ~bit; });
    }

    std::size_t rows() const { return rows_; }
    std::size_t denied_rows() const { return denied_rows_; }
    std::size_t allowed_rows() const { return rows_ - denied_rows_; }
    RowMaskView view() const { return {pages_.data()}; }

    // Calls visit(row) for each allowed row, ascending.
    template <class Visit>
    void visit_allowed(Visit visit) const {
        for (std::size_t p = 0; p < pages_.size(); ++p) {
            const std::uint32_t* page = pages_[p];
            if (page == all_denied.data()) continue;
            for (std::size_t i = 0; i < blocks_in(p); ++i) {
                const std::size_t block = p * page_blocks + i;
                std::uint32_t left = existing(block) & ~(page ? page[i] : 0);
                for (; left != 0; left &= left - 1) {
                    const auto r = static_cast<std::size_t>(std::countr_zero(left));
                    visit(static_cast<Row>(block * block_rows + r));
                }
            }
        }
    }

    // The size of its pages, and of the stored masks that it reads.
    std::size_t bytes() const {
        std::size_t masks = stored_ ? blocks_of(rows_) : 0;
        for (const auto& page : owned_) masks += page ? page->size() : 0;
        return masks * sizeof(std::uint32_t);
    }

private:
    static constexpr std::size_t page_blocks = RowMaskView::page_blocks;
    using Page = std::vector<std::uint32_t>;

    static constexpr std::array<std::uint32_t, page_blocks> all_denied = [] {
        std::array<std::uint32_t, page_blocks> page{};
        page.fill(~std::uint32_t{0});
        return page;
    }();

    std::size_t n_pages() const { return (blocks_of(rows_) + page_blocks - 1) / page_blocks; }
    std::size_t blocks_in(std::size_t page) const {
        return std::min(page_blocks, blocks_of(rows_) - page * page_blocks);
    }
    std::size_t rows_in(std::size_t page) const {
        return std::min(page_blocks * block_rows, rows_ - page * page_blocks * block_rows);
    }
    // The mask of the rows of a block that exist.
    std::uint32_t existing(std::size_t block) const {
        const std::size_t rows_from = rows_ - block * block_rows;
        return rows_from >= block_rows ? ~std::uint32_t{0} : (std::uint32_t{1} << rows_from) - 1;
    }

    // Returns a copy in which change(mask, bit) replaces the mask of each row's block.
    template <class Change>
    RowMask changed(std::span<const Row> rows, Change change) const {
        RowMask copy = *this;
        std::vector<Page*> copied_pages(pages_.size());
        for (const Row row : rows) {
            const std::size_t block = row / block_rows;
            const std::size_t p = block / page_blocks;
            if (!copied_pages[p]) copied_pages[p] = copy.copy_page(p);
            std::uint32_t& mask = (*copied_pages[p])[block % page_blocks];
            const std::uint32_t after = change(mask, std::uint32_t{1} << (row % block_rows));
            if (after > mask) ++copy.denied_rows_;
            if (after < mask) --copy.denied_rows_;
            mask = after;
        }
        return copy;
    }
    Page* copy_page(std::size_t p) {
        auto page = std::make_shared<Page>(blocks_in(p));
        if (pages_[p]) std::copy_n(pages_[p], page->size(), page->begin());
        Page* copied = page.get();
        set_page(p, std::move(page));
        return copied;
    }
    void set_page(std::size_t p, std::shared_ptr<const Page> page) {
        pages_[p] = page->data();
        owned_[p] = std::move(page);
    }

    std::size_t rows_;
    std::size_t denied_rows_ = 0;
    std::vector<const std::uint32_t*> pages_;         // Null for a page without denied rows.
    std::vector<std::shared_ptr<const Page>> owned_;  // Null for pages in stored_ or not stored.
    std::shared_ptr<const std::uint32_t[]> stored_;   // Masks that pages_ may point into, or null.
};

}  // namespace bitweigh
