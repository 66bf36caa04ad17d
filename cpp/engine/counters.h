// Counters of the work done for one query. They depend on the number of threads; the answer does
// not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace bitweigh {

// The list of counters, from which the struct, its sums, names and order are generated. The fields
// of bitweigh.SearchStats must have the same names in the same order.
#define BITWEIGH_COUNTERS(COUNTER)                                                              \
    COUNTER(rows_scored_directly) /* Rows scored without the kernel: small indexes, samples. */ \
    COUNTER(rows_scanned)         /* Rows scanned by the kernel. */                             \
    COUNTER(rows_scanned_wide)    /* Rows scanned with 16-bit sums, part of rows_scanned. */    \
    COUNTER(verified)             /* Rows that the kernel let through. */                       \
    COUNTER(rescales)             /* Times the tables were requantised: `worst` had halved. */  \
    COUNTER(capped_entries)       /* Table entries capped at their maximum. */                  \
    COUNTER(probes)               /* Keys looked up. */                                         \
    COUNTER(empty_probes)         /* Keys looked up that had no rows. */                        \
    COUNTER(blocks_probed)        /* Blocks read for keys. */                                   \
    COUNTER(rounds)               /* Rounds planned. */                                         \
    COUNTER(rewalks)              /* Walks of a band to a higher limit than before. */          \
    COUNTER(exhausted_bands)      /* Bands with no key left, which ends a search. */            \
    COUNTER(duplicates)           /* Rows found again while they were kept. */                  \
    COUNTER(fallbacks)            /* Segments scanned after probing was abandoned. */           \
    COUNTER(predicted_ns)         /* Time of all probing, predicted first or when given up. */  \
    COUNTER(probe_spent_ns)       /* Time of the probing done, as estimated. */                 \
    COUNTER(scan_ns)              /* Time of scanning the probed segments, as estimated. */     \
    COUNTER(nanoseconds)          /* Time by the clock, divided evenly among queries of a tile. */

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

    // Writes the n_counters values in the order of `names`.
    void write(std::int64_t* counts) const {
#define BITWEIGH_WRITE(name) *counts++ = static_cast<std::int64_t>(name);
        BITWEIGH_COUNTERS(BITWEIGH_WRITE)
#undef BITWEIGH_WRITE
    }
};

inline constexpr std::size_t n_counters = std::size(SearchCounters::names);

}  // namespace bitweigh
