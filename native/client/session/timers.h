/* timers.h: many deadlines, one clock: a timer wheel of one turn of 1024 slots of a millisecond.
 *
 * For: deadlines of operations (set and cleared a million times a second, fired hardly ever), back-off, renewal of
 * leases. Not for: anything finer than a millisecond. A timer never fires early; it fires when timers_run() is called
 * at or after its time. Setting and clearing are O(1). A deadline further away than one turn waits in the last slot
 * that can be reached and is moved on when its turn comes. Invariant: an armed timer is in the list of slot `slot`, and
 * bits says which slots are not empty.
 */
#ifndef FARKV_SESSION_TIMERS_H
#define FARKV_SESSION_TIMERS_H
#include <stdbool.h>
#include <stdint.h>
#include "../../base/list.h"

enum { TIMER_SLOTS = 1024 };

typedef struct timer_node {
    fkv_list link;
    uint64_t at_ms;
    uint32_t slot;
    bool armed;
    void (*fire)(struct timer_node *t); /* may set and clear any timer, this one too */
} timer_node;

typedef struct timers {
    uint64_t now_ms; /* all before and at this millisecond has fired */
    uint64_t bits[TIMER_SLOTS / 64];
    fkv_list slot[TIMER_SLOTS];
} timers;

void timers_init(timers *w, uint64_t now_ns);
void timer_init(timer_node *t, void (*fire)(timer_node *t));
void timer_set(timers *w, timer_node *t, uint64_t at_ns); /* moves it when it is armed */
void timer_take_out(timers *w, timer_node *t);            /* one that is armed */
static inline void timer_clear(timers *w, timer_node *t) {
    if (t->armed) timer_take_out(w, t);
}
void timers_run(timers *w, uint64_t now_ns);
/* When timers_run() should be called next: never later than the earliest timer is due. UINT64_MAX: no timer is armed.
 * */
uint64_t timers_next_ns(const timers *w);
#endif
