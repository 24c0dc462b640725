/* clock.h: the two clocks. Leases and time-outs use CLOCK_BOOTTIME, which counts the time a machine was suspended;
 * expiry uses wall-clock milliseconds.
 *
 * Tests may move both, for all threads of the process: by an offset, as if the machine had been suspended, or to a time
 * that only the test advances. Otherwise that costs one load of a word that never changes.
 */
#ifndef FARKV_BASE_CLOCK_H
#define FARKV_BASE_CLOCK_H
#include <stdint.h>
#include <time.h>

extern uint32_t fkv_clock_is_moved __attribute__((visibility("hidden")));
uint64_t fkv_clock_moved_ns(void);
uint64_t fkv_clock_moved_wall_ms(void);

static inline uint64_t fkv_now_ns(void) {
    if (__builtin_expect(__atomic_load_n(&fkv_clock_is_moved, __ATOMIC_RELAXED), 0)) return fkv_clock_moved_ns();
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static inline uint64_t fkv_wall_ms(void) {
    if (__builtin_expect(__atomic_load_n(&fkv_clock_is_moved, __ATOMIC_RELAXED), 0)) return fkv_clock_moved_wall_ms();
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

/* ---- for tests ---- */
void fkv_clock_skip(int64_t ns);     /* adds to both clocks, on top of earlier skips */
void fkv_clock_set(uint64_t now_ns); /* from now on fkv_now_ns() is this, and the wall clock goes with it; not 0 */
void fkv_clock_restore(void);        /* the real clocks again */
#endif
