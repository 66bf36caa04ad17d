// Rows that a search may not return, because they were removed or because a filter leaves them out:
// a bit for each row, in pages. A copy shares the pages that it does not change, so that denying
// one row more of many millions copies some kilobytes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/types.h"

namespace bitweigh {

// What a search reads of them; empty where every row may be returned.
struct DeniedPages {
    // 16 KiB of masks, 131,072 rows: the list of a billion rows' pages is about as long as a page.
    static constexpr std::size_t page_blocks = 4096;

    const std::uint32_t* const* pages = nullptr;  // null for a page without a denied row

    // A bit for each row of a block.
    std::uint32_t in(std::size_t block) const {
        if (pages == nullptr) return 0;
        const std::uint32_t* page = pages[block / page_blocks];
        return page ? page[block % page_blocks] : 0;
    }
    bool has(Row row) const { return in(row / block_rows) >> (row % block_rows) & 1; }
};

class DeniedRows {
public:
    // None of `rows`.
    explicit DeniedRows(std::size_t rows) : rows_(rows), pages_(n_pages()), owned_(n_pages()) {}
    // Those of `masks`, a bit for each of `rows` by blocks of 32; they must outlive this and its
    // copies.
    DeniedRows(const std::uint32_t* masks, std::size_t rows) : DeniedRows(rows) {
        for (std::size_t block = 0; block < blocks_of(rows); ++block) {
            const std::uint32_t mask = masks[block] & existing(block);
            count_ += static_cast<std::size_t>(std::popcount(mask));
            if (mask) pages_[block / page_blocks] = masks + block / page_blocks * page_blocks;
        }
    }

    // A copy that denies these as well; each must be less than rows().
    DeniedRows with(const Row* more, std::size_t n) const {
        DeniedRows copy = *this;
        std::vector<Page*> fresh(pages_.size());
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t block = more[i] / block_rows;
            const std::size_t number = block / page_blocks;
            if (!fresh[number]) fresh[number] = copy.make_own(number);
            std::uint32_t& mask = (*fresh[number])[block % page_blocks];
            const std::uint32_t bit = std::uint32_t{1} << (more[i] % block_rows);
            copy.count_ += !(mask & bit);
            mask |= bit;
        }
        return copy;
    }

    std::size_t rows() const { return rows_; }
    std::size_t count() const { return count_; }
    DeniedPages view() const { return {pages_.data()}; }
    // Of the pages that are not of the masks it was made from.
    std::size_t bytes() const {
        const auto is_owned = [](const auto& page) { return page != nullptr; };
        return sizeof(Page) *
               static_cast<std::size_t>(std::count_if(owned_.begin(), owned_.end(), is_owned));
    }

private:
    static constexpr std::size_t page_blocks = DeniedPages::page_blocks;
    using Page = std::vector<std::uint32_t>;

    std::size_t n_pages() const { return (blocks_of(rows_) + page_blocks - 1) / page_blocks; }
    std::uint32_t existing(std::size_t block) const {
        const std::size_t left = rows_ - block * block_rows;
        return left >= block_rows ? ~std::uint32_t{0} : (std::uint32_t{1} << left) - 1;
    }
    Page* make_own(std::size_t number) {
        const std::size_t first = number * page_blocks;
        const std::size_t size = std::min(page_blocks, blocks_of(rows_) - first);
        auto page = std::make_shared<Page>(size);
        if (pages_[number]) std::copy_n(pages_[number], size, page->begin());
        pages_[number] = page->data();
        owned_[number] = page;
        return page.get();
    }

    std::size_t rows_;
    std::size_t count_ = 0;
    std::vector<const std::uint32_t*> pages_;
    std::vector<std::shared_ptr<const Page>> owned_;  // null where a page is empty or not ours
};

}  // namespace bitweigh
