// Which rows of a segment a search may return: a bit for each row, in pages. Rows are denied
// because they were removed or because a filter leaves them out. A copy shares the pages that it
// does not change, and pages whose rows are all alike are not stored, so that denying one row of
// many millions, or allowing only one, writes some kilobytes.
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

// A mask as a search reads it; without pages it allows every row.
struct RowMaskView {
    // 16 KiB of masks, 131,072 rows: the list of a billion rows' pages is about as long as a page.
    static constexpr std::size_t page_blocks = 4096;

    const std::uint32_t* const* pages = nullptr;  // null for a page without a denied row

    // The denied rows of a block, a bit for each.
    std::uint32_t denied_in(std::size_t block) const {
        if (pages == nullptr) return 0;
        const std::uint32_t* page = pages[block / page_blocks];
        return page ? page[block % page_blocks] : 0;
    }
    bool denies(Row row) const { return denied_in(row / block_rows) >> (row % block_rows) & 1; }
};

class RowMask {
public:
    // Allows each of `rows`.
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

    // Denies the rows that denied_in(block) returns, a bit for each; those of rows that do not
    // exist mean nothing.
    template <class DeniedIn>
    static RowMask from_blocks(std::size_t rows, DeniedIn denied_in) {
        RowMask mask(rows);
        for (std::size_t number = 0; number < mask.pages_.size(); ++number) {
            const std::size_t first = number * page_blocks;
            auto page = std::make_shared<Page>(mask.blocks_in(number));
            std::size_t denied = 0;
            for (std::size_t i = 0; i < page->size(); ++i) {
                (*page)[i] = denied_in(first + i) & mask.existing(first + i);
                denied += static_cast<std::size_t>(std::popcount((*page)[i]));
            }
            mask.denied_rows_ += denied;
            if (denied == mask.rows_in(number)) {
                mask.pages_[number] = all_denied.data();
            } else if (denied > 0) {
                mask.own(number, std::move(page));
            }
        }
        return mask;
    }

    // Copies that deny, or allow, these rows as well; each must be less than rows().
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

    // The blocks that have an allowed row, ascending.
    std::vector<std::uint32_t> allowed_blocks() const {
        std::vector<std::uint32_t> blocks;
        for (std::size_t number = 0; number < pages_.size(); ++number) {
            const std::uint32_t* page = pages_[number];
            if (page == all_denied.data()) continue;
            for (std::size_t i = 0; i < blocks_in(number); ++i) {
                const std::uint32_t allowed = page ? ~page[i] : ~std::uint32_t{0};
                const std::size_t block = number * page_blocks + i;
                if (allowed && (allowed & existing(block))) {
                    blocks.push_back(static_cast<std::uint32_t>(block));
                }
            }
        }
        return blocks;
    }

    // Bytes of its pages, and of the stored masks that it reads.
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
    std::uint32_t existing(std::size_t block) const {
        const std::size_t left = rows_ - block * block_rows;
        return left >= block_rows ? ~std::uint32_t{0} : (std::uint32_t{1} << left) - 1;
    }

    // A copy in which the mask of each row's block is change(mask, bit of the row).
    template <class Change>
    RowMask changed(std::span<const Row> rows, Change change) const {
        RowMask copy = *this;
        std::vector<Page*> fresh(pages_.size());
        for (const Row row : rows) {
            const std::size_t block = row / block_rows;
            const std::size_t number = block / page_blocks;
            if (!fresh[number]) fresh[number] = copy.copy_page(number);
            std::uint32_t& mask = (*fresh[number])[block % page_blocks];
            const std::uint32_t after = change(mask, std::uint32_t{1} << (row % block_rows));
            if (after > mask) ++copy.denied_rows_;
            if (after < mask) --copy.denied_rows_;
            mask = after;
        }
        return copy;
    }
    Page* copy_page(std::size_t number) {
        auto page = std::make_shared<Page>(blocks_in(number));
        if (pages_[number]) std::copy_n(pages_[number], page->size(), page->begin());
        Page* copied = page.get();
        own(number, std::move(page));
        return copied;
    }
    void own(std::size_t number, std::shared_ptr<const Page> page) {
        pages_[number] = page->data();
        owned_[number] = std::move(page);
    }

    std::size_t rows_;
    std::size_t denied_rows_ = 0;
    std::vector<const std::uint32_t*> pages_;
    std::vector<std::shared_ptr<const Page>> owned_;  // null where a page is not stored here
    std::shared_ptr<const std::uint32_t[]> stored_;   // kept for the pages that lie in it
};

}  // namespace bitweigh
