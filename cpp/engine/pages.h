// Pages of files that segments are mapped from: a search tells what it is about to read of them, so
// that many are read at a time, or counted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace bitweigh {

// Told what a search is about to read. The engine makes no system calls: others implement it.
class PageReader {
public:
    virtual ~PageReader() = default;
    // The bytes may be read soon; there is at least one. Must not wait for them.
    virtual void will_read(const void* first, std::size_t bytes) = 0;
    // Whether this thread has touched a page that had to be read from a disk, since it last asked.
    virtual bool has_faulted() = 0;
    // How often this thread has waited for anything. Being kept from running by others is no wait.
    virtual std::uint64_t waits() = 0;
};

// The mapped arrays of a segment, shared by all searches of it. A page that is not in memory takes
// 50 microseconds or more to arrive, and as long again for each further one unless several
// are asked for at once. Asking takes longer than reading what is in memory, so searches ask only
// until one of them never had to wait, and again after one that did. Time alone would not tell: on
// a busy machine a search takes long for other reasons.
struct MappedPages {
    explicit MappedPages(PageReader& reader_in) : reader(reader_in) {}

    PageReader& reader;
    std::atomic<bool> cold = true;  // Whether pages are probably not in memory.
};

}  // namespace bitweigh
