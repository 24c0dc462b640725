/* poller.c: see poller.h. */
#include "poller.h"
#include <sched.h>
#include "pause.h"

const char *polling_name(polling how) {
    static const char *const names[] = {
        [POLLING_AUTO] = "auto", [POLLING_ALWAYS] = "always", [POLLING_NEVER] = "never"
    };
    return names[how];
}

void poller_init(poller *p, polling how, uint64_t now_ns) { *p = (poller){ .how = how, .begun_ns = now_ns }; }

/* By this thread alone; others read it. */
static void count(uint64_t *of, uint64_t more) { __atomic_store_n(of, *of + more, __ATOMIC_RELAXED); }

/* Of the yield that was before this look, how late it came back. False: far too late. */
static bool judge_yield(poller *p, uint64_t now_ns, bool found) {
    uint64_t away = now_ns - p->yielded_ns;
    bool late = away >= POLL_LATE_NS;
    p->yielded = false;
    if (late) count(&p->stats.late, 1);
    if (late && found && away < POLL_TOO_LATE_NS)
        p->shared = POLL_SHARED;
    else if (p->shared)
        p->shared--;
    if (away < POLL_TOO_LATE_NS || p->how != POLLING_AUTO) return true;
    p->shared = 0;
    p->backs_off_until = now_ns + POLL_BACK_OFF_TIMES * (away < POLL_AWAY_MAX_NS ? away : POLL_AWAY_MAX_NS);
    count(&p->stats.back_offs, 1);
    return false;
}

static bool begin_wait(poller *p, uint64_t now_ns) {
    p->since_ns = p->yielded_ns = now_ns;
    if (p->how == POLLING_ALWAYS) return true;
    if (p->how == POLLING_NEVER) return false;
    /* On a shared processor a wake-up hands it over at once, and beside much work that is all it costs. */
    if (p->much && p->shared && ++p->handed % POLL_SLEPT) return false;
    return habit_tries(&p->habit);
}

static poll_step give_up(poller *p, uint64_t now_ns) {
    p->state = POLLER_ASLEEP;
    count(&p->stats.polled_ns, now_ns - p->since_ns);
    count(&p->stats.vain, 1);
    habit_in_vain(&p->habit);
    return POLL_SLEEP;
}

poll_step poller_nothing(poller *p, uint64_t now_ns) {
    if (p->state == POLLER_ASLEEP) return POLL_SLEEP;
    if (p->state == POLLER_WORKING) {
        p->state = begin_wait(p, now_ns) ? POLLER_POLLING : POLLER_ASLEEP;
        if (p->state == POLLER_ASLEEP) return POLL_SLEEP;
    } else if (p->yielded && !judge_yield(p, now_ns, false)) {
        return give_up(p, now_ns);
    }
    uint64_t waited = now_ns - p->since_ns;
    uint64_t window = p->chain ? POLL_CHAIN_WINDOW_NS : POLL_WINDOW_NS;
    if (waited >= (p->how == POLLING_ALWAYS ? POLL_ALWAYS_NS : window)) return give_up(p, now_ns);
    if (!p->shared) {
        if (waited < (p->chain ? POLL_CHAIN_ALONE_NS : POLL_ALONE_NS)) return POLL_LOOK;
        if (now_ns < p->backs_off_until) return give_up(p, now_ns);
        if (now_ns - p->yielded_ns < POLL_YIELD_NS) return POLL_LOOK;
    }
    p->yielded = true;
    p->yielded_ns = now_ns;
    count(&p->stats.yields, 1);
    return POLL_YIELD;
}

void poller_end_wait(poller *p, uint64_t now_ns) {
    if (p->state == POLLER_POLLING) {
        count(&p->stats.polled_ns, now_ns - p->since_ns);
        count(&p->stats.found, 1);
        habit_helped(&p->habit);
        if (p->yielded) judge_yield(p, now_ns, true);
    }
    p->state = POLLER_WORKING;
}

void poller_step(poll_step step) {
    if (step == POLL_YIELD)
        sched_yield();
    else
        fkv_pause();
}

void poller_sleeps(poller *p) { count(&p->stats.sleeps, 1); }

poller_stats poller_get_stats(const poller *p, uint64_t now_ns) {
    poller_stats out;
    const uint64_t *from = (const uint64_t *)&p->stats;
    for (unsigned i = 0; i < sizeof out / sizeof *from; i++)
        ((uint64_t *)&out)[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    out.lived_ns = now_ns - p->begun_ns;
    return out;
}
