// Memory for blocks, aligned to cache lines or, if it is large, to huge pages, which save the scan
// most of its address translations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace bitweigh {

class BlockMemory {
public:
    explicit BlockMemory(std::size_t bytes) {
        constexpr std::size_t line = 64;
        constexpr std::size_t huge_page = std::size_t{2} << 20;
        const std::size_t alignment = bytes >= 2 * huge_page ? huge_page : line;
        // aligned_alloc needs a multiple of the alignment that is not 0.
        const std::size_t size = (bytes + alignment) / alignment * alignment;
        data_ = static_cast<std::uint8_t*>(std::aligned_alloc(alignment, size));
        if (!data_) throw std::bad_alloc();
#if defined(__linux__)
        if (alignment == huge_page) madvise(data_, size, MADV_HUGEPAGE);
#endif
    }
    BlockMemory(BlockMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
    BlockMemory& operator=(BlockMemory&&) = delete;
    ~BlockMemory() { std::free(data_); }

    std::uint8_t* data() { return data_; }

private:
    std::uint8_t* data_;
};

}  // namespace bitweigh
