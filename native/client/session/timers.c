/* timers.c: the wheel that timers.h describes. */
#include "timers.h"

static const uint64_t MS = 1000000;

void timers_init(timers *w, uint64_t now_ns) {
    *w = (timers){ .now_ms = now_ns / MS };
    for (int i = 0; i < TIMER_SLOTS; i++) list_init(&w->slot[i]);
}

void timer_init(timer_node *t, void (*fire)(timer_node *t)) {
    *t = (timer_node){ .fire = fire };
    list_init(&t->link);
}

static void place(timers *w, timer_node *t) {
    uint64_t at = t->at_ms;
    if (at <= w->now_ms) at = w->now_ms + 1;
    if (at > w->now_ms + TIMER_SLOTS - 1) at = w->now_ms + TIMER_SLOTS - 1;
    t->slot = (uint32_t)(at % TIMER_SLOTS);
    list_push(&w->slot[t->slot], &t->link);
    w->bits[t->slot / 64] |= 1ull << t->slot % 64;
}

void timer_take_out(timers *w, timer_node *t) {
    t->armed = false;
    list_remove(&t->link);
    if (list_empty(&w->slot[t->slot])) w->bits[t->slot / 64] &= ~(1ull << t->slot % 64);
}

void timer_set(timers *w, timer_node *t, uint64_t at_ns) {
    timer_clear(w, t);
    t->at_ms = at_ns / MS + (at_ns % MS != 0);
    t->armed = true;
    place(w, t);
}

/* Fires or moves on what is in one slot. Timers stay armed in a list of their own meanwhile, so that one may clear
 * another. */
static void run_slot(timers *w, uint32_t slot, uint64_t now_ms) {
    fkv_list due;
    list_take_all(&w->slot[slot], &due);
    w->bits[slot / 64] &= ~(1ull << slot % 64);
    while (!list_empty(&due)) {
        timer_node *t = LIST_OF(due.next, timer_node, link);
        list_remove(&t->link);
        if (t->at_ms > now_ms) {
            place(w, t);
        } else {
            t->armed = false;
            t->fire(t);
        }
    }
}

/* The first slot that is not empty, as a distance of 1 to TIMER_SLOTS from now_ms; 0: none. */
static uint32_t next_distance(const timers *w) {
    uint32_t start = (uint32_t)((w->now_ms + 1) % TIMER_SLOTS);
    for (uint32_t word = 0; word <= TIMER_SLOTS / 64; word++) {
        uint32_t at = (start / 64 + word) % (TIMER_SLOTS / 64);
        uint64_t bits = w->bits[at];
        if (word == 0) bits &= ~0ull << start % 64;
        if (word == TIMER_SLOTS / 64) bits &= ~(~0ull << start % 64);
        if (bits) {
            uint32_t slot = at * 64 + (uint32_t)__builtin_ctzll(bits);
            return (slot + TIMER_SLOTS - start) % TIMER_SLOTS + 1;
        }
    }
    return 0;
}

void timers_run(timers *w, uint64_t now_ns) {
    uint64_t now_ms = now_ns / MS;
    while (w->now_ms < now_ms) {
        uint32_t distance = next_distance(w);
        if (distance == 0 || w->now_ms + distance > now_ms) {
            w->now_ms = now_ms;
            return;
        }
        w->now_ms += distance;
        run_slot(w, (uint32_t)(w->now_ms % TIMER_SLOTS), now_ms);
    }
}

uint64_t timers_next_ns(const timers *w) {
    uint32_t distance = next_distance(w);
    return distance ? (w->now_ms + distance) * MS : UINT64_MAX;
}
