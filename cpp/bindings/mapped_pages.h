// Pages of mapped files, by system calls: reading them ahead, and counting them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/pages.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <sys/resource.h>
#endif

namespace bitweigh {

// What a page is on most systems, and what explanations count. Where the system's pages are larger,
// its calls fail for most addresses, and then nothing is read ahead.
inline constexpr std::uintptr_t page_bytes = 4096;

struct PageRange {
    std::uintptr_t first;  // Address of the first page.
    std::size_t bytes;     // A multiple of page_bytes.
};

inline PageRange pages_of(const void* first, std::size_t bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(first);
    const std::uintptr_t begin = address / page_bytes * page_bytes;
    const std::uintptr_t end = (address + bytes - 1) / page_bytes * page_bytes + page_bytes;
    return {begin, end - begin};
}

// Makes the system start reading pages of files that are not in memory.
class ReadAhead : public PageReader {
public:
    void will_read([[maybe_unused]] const void* first,
                   [[maybe_unused]] std::size_t bytes) override {
#if defined(__linux__)
        const PageRange pages = pages_of(first, bytes);
        madvise(reinterpret_cast<void*>(pages.first), pages.bytes, MADV_WILLNEED);
#endif
    }
    bool has_faulted() override {
        thread_local std::uint64_t known = 0;
        const std::uint64_t faults = usage().faults;
        return std::exchange(known, faults) < faults;
    }
    std::uint64_t waits() override { return usage().waits; }

private:
    struct Usage {
        std::uint64_t faults;
        std::uint64_t waits;
    };
    // What this thread has done so far; takes 0.3 us.
    static Usage usage() {
#if defined(__linux__)
        rusage used{};
        if (getrusage(RUSAGE_THREAD, &used) == 0) {
            return {static_cast<std::uint64_t>(used.ru_majflt),
                    static_cast<std::uint64_t>(used.ru_nvcsw)};
        }
#endif
        return {0, 0};
    }
};

// Counts the pages that one search reads, each once, and those that were not in memory before.
class PageCounter : public PageReader {
public:
    void will_read(const void* first, std::size_t bytes) override {
        // What is read from beginning to end, the system reads ahead by itself.
        constexpr std::size_t max_read_ahead = std::size_t{1} << 20;
        const PageRange range = pages_of(first, bytes);
        const std::vector<unsigned char> resident = residency(range);
        for (std::size_t i = 0; i < resident.size(); ++i) {
            if (!pages_.insert(range.first + i * page_bytes).second) continue;
            missing_ += (resident[i] & 1) == 0;
        }
        if (bytes <= max_read_ahead) ahead_.will_read(first, bytes);
    }
    bool has_faulted() override { return ahead_.has_faulted(); }
    std::uint64_t waits() override { return ahead_.waits(); }
    std::size_t pages() const { return pages_.size(); }
    std::size_t missing() const { return missing_; }

private:
    // Whether each page is in memory; all of them where the system does not tell.
    static std::vector<unsigned char> residency(PageRange range) {
        std::vector<unsigned char> resident(range.bytes / page_bytes, 1);
#if defined(__linux__)
        if (mincore(reinterpret_cast<void*>(range.first), range.bytes, resident.data()) != 0) {
            resident.assign(resident.size(), 1);
        }
#endif
        return resident;
    }

    ReadAhead ahead_;
    std::unordered_set<std::uintptr_t> pages_;
    std::size_t missing_ = 0;
};

}  // namespace bitweigh
