/* stops.h: a reader of mapped memory that is stopped on its way: pages are protected, and the first load from each of
 * them is where the reader stands still while something happens. For tests of lookup_direct. */
#ifndef FARKV_TEST_STOPS_H
#define FARKV_TEST_STOPS_H
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "../check.h"

enum { PAGE = 4096, STOPS = 2 };
typedef struct stop {
    uint8_t *page;
    void (*meanwhile)(void);
} stop;
static stop stops[STOPS];
static int stopped;

static inline void on_stop(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)context;
    uint8_t *page = (uint8_t *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1));
    if (stopped == STOPS || page != stops[stopped].page) abort();
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
    stops[stopped++].meanwhile();
}
static inline void stop_at(int number, const void *where, void (*meanwhile)(void)) {
    struct sigaction action = { .sa_sigaction = on_stop, .sa_flags = SA_SIGINFO };
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    stops[number] = (stop){ (uint8_t *)((uintptr_t)where & ~(uintptr_t)(PAGE - 1)), meanwhile };
    stopped = 0;
    CHECK_EQ(mprotect(stops[number].page, PAGE, PROT_NONE), 0);
}
static inline void stops_end(int many) {
    signal(SIGSEGV, SIG_DFL);
    CHECK_EQ(stopped, many);
}

#endif
