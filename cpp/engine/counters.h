// What a query's search did, in numbers. Counts depend on the number of threads; the answer does
// not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace bitweigh {

// Every counter, once: the struct, its sums, names and order follow from this list, and the fields
// of bitweigh.SearchStats must have the same names in the same order.
#define BITWEIGH_COUNTERS(COUNTER)                                                  \
    COUNTER(rows_scored_directly) /* without the kernel: small indexes, samples */  \
    COUNTER(rows_scanned)         /* by the kernel */                               \
    COUNTER(rows_scanned_wide)    /* of those, with 16-bit sums */                  \
    COUNTER(verified)             /* rows that the kernel let through */            \
    COUNTER(rescales)             /* tables quantised again: `worst` had halved */  \
    COUNTER(capped_entries)       /* table entries too large for their 8 bits */    \
    COUNTER(probes)               /* keys looked up */                              \
    COUNTER(empty_probes)         /* of those, without a row */                     \
    COUNTER(blocks_probed)        /* blocks that the kernel looked at for keys */   \
    COUNTER(rounds)               /* plans made */                                  \
    COUNTER(rewalks)              /* of a band walked before, to a higher limit */  \
    COUNTER(exhausted_bands)      /* bands without a key left: they end a search */ \
    COUNTER(duplicates)           /* rows met again while they were kept */         \
    COUNTER(fallbacks)            /* segments scanned after all */                  \
    COUNTER(predicted_ns)         /* ns of all probing, as first predicted */       \
    COUNTER(probe_spent_ns)       /* ns of the probing done, by estimates */        \
    COUNTER(scan_ns)              /* ns of a scan of the same, by estimates */      \
    COUNTER(nanoseconds)          /* by the clock; queries of a tile share theirs */

struct SearchCounters {
#define BITWEIGH_MEMBER(name) std::uint64_t name = 0;
    BITWEIGH_COUNTERS(BITWEIGH_MEMBER)
#undef BITWEIGH_MEMBER

    static constexpr const char* names[] = {
#define BITWEIGH_NAME(name) #name,
        BITWEIGH_COUNTERS(BITWEIGH_NAME)
#undef BITWEIGH_NAME
    };

    void add(const SearchCounters& other) {
#define BITWEIGH_ADD(name) name += other.name;
        BITWEIGH_COUNTERS(BITWEIGH_ADD)
#undef BITWEIGH_ADD
    }

    // Writes all of them, in the order of their names.
    void write(std::int64_t* counts) const {
#define BITWEIGH_WRITE(name) *counts++ = static_cast<std::int64_t>(name);
        BITWEIGH_COUNTERS(BITWEIGH_WRITE)
#undef BITWEIGH_WRITE
    }
};

inline constexpr std::size_t n_counters = std::size(SearchCounters::names);

}  // namespace bitweigh
