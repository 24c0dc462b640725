/* poller.h: what a thread does that looked for work and found none: looks again, lets others have its processor first,
 * or sleeps. Data-plane threads, tcp's responders and clients decide by it; docs/polling.md says why it is as it is.
 *
 *     found work  -->  WORKING  --- nothing --->  POLLING  --- POLL_WINDOW_NS without work, or
 *                         ^                        |   |        a yield that came back far too late --->  ASLEEP
 *                         +------- found work -----+   +--- looks, yields                                    |
 *                         +------------------------------------- found work ---------------------------------+
 *
 * A change passes several threads on its way, and each needs a processor: whoever waits for one (`chain`) yields soon, and
 * for longer.
 *
 * What it learns, without a setting:
 *
 *   waits that ended without work   make it sleep through the next ones at once (habit.h).
 *   yields that return late,        its peer has this processor as well, and they hand it to each other: it yields
 *   and then there is work          before each look, where it otherwise looks alone for POLL_ALONE_NS first.
 *   yields that return far too late somebody keeps it, and a thread that slept would have been preferred: no yields for
 *                                   POLL_BACK_OFF_TIMES as long.
 *
 * One thread uses a poller; its counts may be read by others. It reads no clock: each call says the time.
 */
#ifndef FARKV_BASE_POLLER_H
#define FARKV_BASE_POLLER_H
#include <stdbool.h>
#include <stdint.h>
#include "habit.h"

enum {
    POLL_WINDOW_NS = 50 * 1000,
    POLL_ALONE_NS = 25 * 1000, /* of it, without yielding */
    POLL_CHAIN_WINDOW_NS = 100 * 1000,
    POLL_CHAIN_ALONE_NS = 3 * 1000,
    POLL_ALWAYS_NS = 100 * 1000 * 1000, /* the window of POLLING_ALWAYS */
    POLL_YIELD_NS = 1000,
    POLL_LATE_NS = 4000,
    POLL_TOO_LATE_NS = 1000 * 1000,
    POLL_BACK_OFF_TIMES = 8, /* as long as the yield was away */
    POLL_AWAY_MAX_NS = 25 * 1000 * 1000,
    POLL_SHARED = 3,
    POLL_SLEPT = 64, /* waits on a shared processor, after much work, of which one is polled */
    POLL_MUCH = 8    /* requests that are much work */
};

typedef enum polling { POLLING_AUTO, POLLING_ALWAYS, POLLING_NEVER, POLLING_COUNT } polling;
const char *polling_name(polling how);

typedef enum poll_step { POLL_LOOK, POLL_YIELD, POLL_SLEEP } poll_step;

typedef struct poller_stats {
    uint64_t polled_ns;    /* spent without work, awake */
    uint64_t found, vain;  /* waits that were polled and ended with work; without */
    uint64_t yields, late; /* late: of them, those after which somebody else had had the processor */
    uint64_t sleeps;
    uint64_t back_offs;
    uint64_t lived_ns;
} poller_stats;

typedef struct poller {
    polling how;
    uint64_t begun_ns;
    enum { POLLER_WORKING, POLLER_POLLING, POLLER_ASLEEP } state;
    bool much;  /* the user: what was found latest was POLL_MUCH requests or more */
    bool chain; /* the user: what is waited for passes more threads than one other, such as a change on its way */
    uint32_t handed;
    bool yielded;        /* since the latest look */
    uint32_t shared;     /* so many yields that bring nothing until it does not yield before each look */
    habit habit;         /* of polling a wait */
    uint64_t since_ns;   /* this wait */
    uint64_t yielded_ns; /* latest */
    uint64_t backs_off_until;
    poller_stats stats;
} poller;

void poller_init(poller *p, polling how, uint64_t now_ns);
/* The thread looked, began to do so at `now_ns`, and there was nothing. */
poll_step poller_nothing(poller *p, uint64_t now_ns);
void poller_end_wait(poller *p, uint64_t now_ns);
/* There was something. */
static inline void poller_found(poller *p, uint64_t now_ns) {
    if (p->state != POLLER_WORKING) poller_end_wait(p, now_ns);
}
/* LOOK and YIELD, done; SLEEP is the caller's. */
void poller_step(poll_step step);
/* The thread goes to sleep. */
void poller_sleeps(poller *p);
poller_stats poller_get_stats(const poller *p, uint64_t now_ns); /* any thread */

#endif
