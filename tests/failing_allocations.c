/* Allocations that fail when a test says so: preloaded into a process, driven by it through ctypes.
 *
 * Only calls from watched code count, those of all threads. */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

enum { MOST_RANGES = 64 };
static struct { uintptr_t begin, end; } ranges[MOST_RANGES];
static int n_ranges;
static atomic_int armed, from_then_on;
static atomic_long counted, failing, failures;
static atomic_size_t sought;
static atomic_uintptr_t seeker;

/* Watch calls that return to [begin, end). */
int watch_calls_from(uintptr_t begin, uintptr_t end) {
    if (n_ranges == MOST_RANGES) return 0;
    ranges[n_ranges].begin = begin;
    ranges[n_ranges++].end = end;
    return 1;
}

/* Watch the call that asks for so many bytes next, once caller_was_seen() says that it came. */
void seek_caller_of(size_t size) {
    seeker = 0;
    sought = size;
}
int caller_was_seen(void) {
    sought = 0;
    return seeker != 0 && watch_calls_from(seeker, seeker + 1);
}

/* From now on the n-th allocation fails, counted from 1, and with `more` all later ones too. */
void fail_allocation(long n, int more) {
    counted = 0;
    failures = 0;
    failing = n;
    from_then_on = more;
    armed = 1;
}

/* Back to normal. */
void fail_no_more(void) { armed = 0; }
long allocations_counted(void) { return counted; }
long allocations_failed(void) { return failures; }

static int fails(const void* caller, size_t size) {
    const uintptr_t at = (uintptr_t)caller;
    if (sought != 0 && size == sought) seeker = at;
    if (!armed) return 0;
    for (int i = 0; i < n_ranges; ++i) {
        if (at < ranges[i].begin || at >= ranges[i].end) continue;
        const long number = atomic_fetch_add(&counted, 1) + 1;
        if (number != failing && !(from_then_on && number > failing)) return 0;
        ++failures;
        errno = ENOMEM;
        return 1;
    }
    return 0;
}

#define FAILS(size) fails(__builtin_return_address(0), size)

void* malloc(size_t size) { return FAILS(size) ? 0 : __libc_malloc(size); }
void* calloc(size_t n, size_t size) { return FAILS(n * size) ? 0 : __libc_calloc(n, size); }
void* realloc(void* old, size_t size) { return FAILS(size) ? 0 : __libc_realloc(old, size); }
void* memalign(size_t alignment, size_t size) {
    return FAILS(size) ? 0 : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
    return FAILS(size) ? 0 : __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
    if (FAILS(size)) return ENOMEM;
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}
