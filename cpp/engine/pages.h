// Pages of files that segments are mapped from: a search tells what it is about to read of them, so
// that many are read at a time, or counted.
#pragma once

#include <atomic>
#include <cstddef>

namespace bitweigh {

// Told what a search is about to read. The engine makes no system calls: others implement it.
class PageReader {
public:
    virtual ~PageReader() = default;
    // The bytes may be read soon; there is at least one. Must not wait for them.
    virtual void will_read(const void* first, std::size_t bytes) = 0;
    // Whether this thread has waited for a page of a file since it last asked. Takes a microsecond.
    virtual bool has_waited() = 0;
};

// The mapped arrays of a segment, shared by all searches of it. A page that is not in memory takes
// a hundred microseconds or more to arrive, and as long again for each further one unless several
// are asked for at once. Asking takes longer than reading what is in memory, so searches ask only
// while the last one found that it had to wait.
struct MappedPages {
    explicit MappedPages(PageReader& reader_in) : reader(reader_in) {}

    PageReader& reader;
    std::atomic<bool> cold = true;  // Whether pages are probably not in memory.
};

}  // namespace bitweigh
