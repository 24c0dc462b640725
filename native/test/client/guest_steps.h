/* guest_steps.h: one client (guest.h) of one puppet for a test program, time that passes, and the steps of one GET
 * carried out by hand. For tests of native/client/session and native/client/lookup that need one exact interleaving. */
#ifndef FARKV_TEST_GUEST_STEPS_H
#define FARKV_TEST_GUEST_STEPS_H
#include <stdio.h>
#include "guest.h"
#include "../../client/lookup/internal.h"

static const uint64_t MS = 1000000;

static puppet *p;
static guest c;

static inline void up(void) {
    p = puppet_new();
    guest_up(&c, p);
}
/* With these of the session's limits, where they are not 0. */
static inline void up_with(const session_config *limits) {
    p = puppet_new();
    lookup_config config = guest_config(&c, p);
    if (limits->max_requests) config.session.max_requests = limits->max_requests;
    config.session.unavailable_ms = limits->unavailable_ms;
    guest_open(&c, p, &config);
    guest_connect(&c);
    guest_get(&c, "x");
}
static inline void down(void) { guest_down(&c); }

static inline void put(const char *key, const char *value) { CHECK_EQ(host_put(p->h, key, value), FKV_OK); }
/* The client knows where it lies. */
static inline void put_and_get(const char *key, const char *value) {
    put(key, value);
    guest_expect(&c, key, value);
}

/* Keys in such a number that the table grows to over twice its buckets, in new segments, of which the client has not
 * heard. */
enum { GROWN = 12000 };
static inline const char *grown(int i) {
    static char key[32];
    snprintf(key, sizeof key, "grow-%d", i);
    return key;
}
static inline void grow(void) {
    uint32_t buckets = table_buckets(p->h->t);
    for (int i = 0; i < GROWN; i++) {
        const char *key = grown(i);
        table_op op = host_op(p->h, TABLE_PUT, key, strlen(key), key, strlen(key));
        CHECK_EQ(host_do_patiently(p->h, &op, NULL), FKV_OK);
        if (i % 100 == 0) host_pass(p->h, MS);
    }
    host_drain(p->h);
    CHECK(table_buckets(p->h->t) > 2 * buckets);
}

/* The extent of a key in the owner's memory. */
static inline fkv_extent *extent_of(const char *key) {
    table_entry e;
    CHECK_EQ(host_get(p->h, key, strlen(key), &e), FKV_OK);
    return (fkv_extent *)(void *)(uintptr_t)(e.key - FKV_EXTENT_HEADER);
}

/* Where it lies in a segment of its table. */
static inline size_t offset_of(const fkv_extent *e) {
    return (size_t)((const uint8_t *)e - p->h->segments[1].region.base);
}
/* Puts an extent's bytes at that place in another table, whole and under the tag that is right there. */
static inline void imitate(host *h, const fkv_extent *e, size_t offset) {
    fkv_extent *there = (fkv_extent *)(void *)(h->segments[1].region.base + offset);
    memcpy(there, e, 128);
    there->tag = h->segments[1].tag;
    there->crc = fkv_extent_crc(there, there->key_bytes, there->value_bytes);
}

/* The owner falls silent, and then is asked for `n` changes of one key. */
static inline void ask_in_vain(outcome *o, int n) {
    p->silent = true;
    for (int i = 0; i < n; i++) guest_ask(&c, FKV_OP_PUT, "alpha", "v", 60000, &o[i]);
    guest_settle(&c);
}

/* The owner is cut off, and its lease runs for so long still. */
static inline void cut_off(uint64_t left_ns) {
    p->silent = true;
    puppet_pass(p, c.l->shard[0].lease_until - p->now_ns - left_ns);
}

/* Time passes in small steps, with turns of the loop, until it is done or `ms` are over. */
static inline void pass(uint64_t ms, const bool *until) {
    for (uint64_t i = 0; i < ms && !(until && *until); i++) {
        puppet_pass(p, MS);
        guest_settle(&c);
    }
}

/* A PUT of a large value to an owner that answers nothing, until its caller has given up: the value's memory stays lent. */
static inline void lend_in_vain(outcome *o) {
    char *value = malloc(40001);
    memset(value, 'v', 40000), value[40000] = 0;
    p->silent = true;
    guest_ask(&c, FKV_OP_PUT, "alpha", value, 50, o);
    free(value);
    pass(100, &o->done);
    CHECK(o->done && o->status == FKV_STALE_SEQUENCE);
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
