/* clock.h: the two clocks. Leases and time-outs use CLOCK_BOOTTIME, which counts the time a machine was suspended;
 * expiry uses wall-clock milliseconds. */
#ifndef FARKV_BASE_CLOCK_H
#define FARKV_BASE_CLOCK_H
#include <stdint.h>
#include <time.h>

static inline uint64_t fkv_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static inline uint64_t fkv_wall_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}
#endif
