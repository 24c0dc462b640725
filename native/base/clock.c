/* clock.c: clocks that a test has moved; see clock.h. */
#include "clock.h"

static const uint64_t wall_base_ms = 1700000000000u; /* of clocks that were set: the wall clock at 0 */

uint32_t fkv_clock_is_moved;
static int64_t skipped_ns;
static uint64_t set_ns; /* 0: the real clock runs */

static uint64_t read_clock(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t skip(uint64_t ns) { return ns + (uint64_t)__atomic_load_n(&skipped_ns, __ATOMIC_RELAXED); }

uint64_t fkv_clock_moved_ns(void) {
    uint64_t set = __atomic_load_n(&set_ns, __ATOMIC_ACQUIRE);
    return skip(set ? set : read_clock(CLOCK_BOOTTIME));
}

uint64_t fkv_clock_moved_wall_ms(void) {
    uint64_t set = __atomic_load_n(&set_ns, __ATOMIC_ACQUIRE);
    return set ? wall_base_ms + skip(set) / 1000000u : skip(read_clock(CLOCK_REALTIME)) / 1000000u;
}

void fkv_clock_skip(int64_t ns) {
    __atomic_fetch_add(&skipped_ns, ns, __ATOMIC_RELAXED);
    __atomic_store_n(&fkv_clock_is_moved, 1, __ATOMIC_RELEASE);
}

void fkv_clock_set(uint64_t now_ns) {
    __atomic_store_n(&set_ns, now_ns, __ATOMIC_RELEASE);
    __atomic_store_n(&fkv_clock_is_moved, 1, __ATOMIC_RELEASE);
}

void fkv_clock_restore(void) {
    __atomic_store_n(&fkv_clock_is_moved, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&set_ns, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&skipped_ns, 0, __ATOMIC_RELEASE);
}
