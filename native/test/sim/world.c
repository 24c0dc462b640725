/* world.c: virtual time, the events that are to come, chance, and the trace. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "../../base/clock.h"
#include "private.h"

static const uint64_t beginning_ns = 1000000000u;

sim_world *sim_world_now;

sim_world *sim_world_create(uint64_t seed) {
    sim_world *w = calloc(1, sizeof *w);
    if (!w || sim_world_now) abort();
    sim_world_now = w;
    fab_bring("sim", &fab_sim_ops);
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE); /* what sim_after calls may call the fabric */
    pthread_mutex_init(&w->lock, &a);
    pthread_mutexattr_destroy(&a);
    w->now = beginning_ns;
    w->random = seed;
    w->faults = (sim_faults){ .delay_min_ns = 1000, .delay_max_ns = 3000 };
    w->trace = 0xcbf29ce484222325u;
    w->next_addr = 0x100000000u;
    list_init(&w->listeners);
    list_init(&w->mrs);
    list_init(&w->all);
    return w;
}

void sim_world_destroy(sim_world *w) {
    for (size_t i = 0; i < w->events; i++) w->heap[i].run(w->heap[i].arg, false);
    if (w->drives_clock) fkv_clock_restore();
    sim_world_now = NULL;
    pthread_mutex_destroy(&w->lock);
    free(w->heap);
    free(w->old_keys);
    free(w);
}

void sim_lock(sim_world *w) { pthread_mutex_lock(&w->lock); }
void sim_unlock(sim_world *w) { pthread_mutex_unlock(&w->lock); }

/* ---- chance: splitmix64, which every seed suits ---- */

uint64_t sim_random(sim_world *w) {
    uint64_t z = w->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t sim_dice(sim_world *w) {
    sim_lock(w);
    uint64_t drawn = sim_random(w);
    sim_unlock(w);
    return drawn;
}

/* A chance of 0 draws nothing: switching a fault off leaves the others' luck as it was. */
bool sim_chance(sim_world *w, uint32_t ppm) { return ppm && sim_random(w) % SIM_ALWAYS < ppm; }

uint64_t sim_between(sim_world *w, uint64_t least, uint64_t most) {
    return most <= least ? least : least + sim_random(w) % (most - least + 1);
}

/* ---- events ---- */

static bool earlier(const sim_event *a, const sim_event *b) {
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void swap(sim_event *a, sim_event *b) {
    sim_event t = *a;
    *a = *b;
    *b = t;
}

void sim_at(sim_world *w, uint64_t at, void (*run)(void *arg, bool live), void *arg) {
    if (w->events == w->room) {
        w->room = w->room ? w->room * 2 : 256;
        w->heap = realloc(w->heap, w->room * sizeof *w->heap);
        if (!w->heap) abort(); /* a simulation without memory proves nothing */
    }
    size_t i = w->events++;
    w->heap[i] = (sim_event){ .at = at < w->now ? w->now : at, .order = w->order++, .run = run, .arg = arg };
    for (; i > 0 && earlier(&w->heap[i], &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&w->heap[i], &w->heap[(i - 1) / 2]);
}

static sim_event take_first(sim_world *w) {
    sim_event first = w->heap[0];
    w->heap[0] = w->heap[--w->events];
    for (size_t i = 0;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < w->events; child++)
            if (earlier(&w->heap[child], &w->heap[least])) least = child;
        if (least == i) return first;
        swap(&w->heap[i], &w->heap[least]);
        i = least;
    }
}

static void move_to(sim_world *w, uint64_t at) {
    w->now = at;
    if (w->drives_clock) fkv_clock_set(at);
}

bool sim_advance(sim_world *w) {
    if (w->events == 0) return false;
    sim_event e = take_first(w);
    move_to(w, e.at);
    e.run(e.arg, true);
    return true;
}

bool sim_step(sim_world *w) {
    sim_lock(w);
    bool any = sim_advance(w);
    sim_unlock(w);
    return any;
}

void sim_run_until(sim_world *w, uint64_t until_ns) {
    sim_lock(w);
    while (w->events > 0 && w->heap[0].at <= until_ns) sim_advance(w);
    if (until_ns > w->now) move_to(w, until_ns);
    sim_unlock(w);
}

uint64_t sim_now(sim_world *w) {
    sim_lock(w);
    uint64_t now = w->now;
    sim_unlock(w);
    return now;
}

typedef struct call {
    void (*f)(void *ctx);
    void *ctx;
} call;

static void run_call(void *arg, bool live) {
    call *c = arg;
    if (live) c->f(c->ctx);
    free(c);
}

void sim_after(sim_world *w, uint64_t delay_ns, void (*f)(void *ctx), void *ctx) {
    call *c = malloc(sizeof *c);
    if (!c) abort();
    *c = (call){ f, ctx };
    sim_lock(w);
    sim_at(w, w->now + delay_ns, run_call, c);
    sim_unlock(w);
}

void sim_drive_clock(sim_world *w) {
    sim_lock(w);
    w->drives_clock = true;
    fkv_clock_set(w->now);
    sim_unlock(w);
}

/* ---- settings ---- */

void sim_set_auto_step(sim_world *w, bool on) {
    sim_lock(w);
    w->auto_step = on;
    sim_unlock(w);
}

void sim_set_faults(sim_world *w, const sim_faults *f) {
    sim_lock(w);
    w->faults = *f;
    sim_unlock(w);
}

void sim_reuse_keys(sim_world *w, bool on) {
    sim_lock(w);
    w->reuse_keys = on;
    sim_unlock(w);
}

/* ---- the trace ---- */

void sim_say(sim_world *w, const char *format, ...) {
    char text[256];
    int n = snprintf(text, sizeof text, "%llu ", (unsigned long long)w->now);
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    for (const char *p = text; *p; p++) w->trace = (w->trace ^ (uint8_t)*p) * 0x100000001b3u;
    w->trace = (w->trace ^ '\n') * 0x100000001b3u;
    if (w->trace_line) w->trace_line(w->trace_ctx, text);
}

sim_counts sim_count(sim_world *w) {
    sim_lock(w);
    sim_counts c = w->counts;
    sim_unlock(w);
    return c;
}

uint64_t sim_trace_hash(sim_world *w) {
    sim_lock(w);
    uint64_t hash = w->trace;
    sim_unlock(w);
    return hash;
}

void sim_set_trace(sim_world *w, void (*line)(void *ctx, const char *text), void *ctx) {
    sim_lock(w);
    w->trace_line = line;
    w->trace_ctx = ctx;
    sim_unlock(w);
}
