/* guest_steps.h: one client of one puppet (puppet.h) for a test program, time that passes, and the steps of one GET carried out by
 * hand. For tests of native/session and native/lookup that need one exact interleaving. */
#ifndef FARKV_TEST_GUEST_STEPS_H
#define FARKV_TEST_GUEST_STEPS_H
#include <stdio.h>
#include "puppet.h"
#include "../lookup/lookup_internal.h"

static const uint64_t MS = 1000000;

static puppet *p;
static guest c;

static inline void up(void) {
    p = puppet_new();
    guest_up(&c, p);
}
static inline void down(void) { guest_down(&c); }

static inline void put(const char *key, const char *value) { CHECK_EQ(host_put(p->h, key, value), FKV_OK); }

/* The extent of a key in the owner's memory. */
static inline fkv_extent *extent_of(const char *key) {
    table_entry e;
    CHECK_EQ(host_get(p->h, key, strlen(key), &e), FKV_OK);
    return (fkv_extent *)(void *)(uintptr_t)(e.key - FKV_EXTENT_HEADER);
}

/* Time passes in small steps, with turns of the loop, until it is done or `ms` are over. */
static inline void pass(uint64_t ms, const bool *until) {
    for (uint64_t i = 0; i < ms && !(until && *until); i++) {
        puppet_pass(p, MS);
        guest_settle(&c);
    }
}

/* Starts a GET whose READs are carried out by hand; its first is posted. */
static inline void begin(const char *key, outcome *o) {
    p->by_hand = true;
    guest_start(&c, key, 900, o);
    guest_settle(&c);
}
/* Completes the READ that was posted first; the next one may be posted after. */
static inline void one_read(void) {
    CHECK(puppet_first(p) != NULL);
    puppet_complete(p, puppet_first(p));
    guest_settle(&c);
}
/* The rest goes by itself. */
static inline void finish(outcome *o) {
    p->by_hand = false;
    guest_settle(&c);
    CHECK(o->done);
}
static inline void finish_with(outcome *o, const char *value) {
    finish(o);
    CHECK_EQ(o->status, FKV_OK);
    CHECK(strcmp(o->value, value) == 0);
}

#endif
