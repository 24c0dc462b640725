/* pause.h: what a thread does in a loop that only looks again: it leaves the core's other thread, and the memory, alone
 * for a moment. */
#ifndef FARKV_BASE_PAUSE_H
#define FARKV_BASE_PAUSE_H

static inline void fkv_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
