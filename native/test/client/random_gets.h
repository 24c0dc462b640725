/* random_gets.h: what the random tests of GETs share, whatever the fabric: an owner's table that changes and grows, and
 * GETs under way whose answers are judged by what was true (truth.h). The seed of the truth decides. */
#ifndef FARKV_TEST_RANDOM_GETS_H
#define FARKV_TEST_RANDOM_GETS_H
#include <stdio.h>
#include "../table/index_steps.h"
#include "truth.h"

enum { RANDOM_GETS = 16 };

typedef struct random_get {
    bool busy;
    int key;
    uint64_t started; /* step of the truth */
    char name[64];    /* the key as text */
} random_get;

/* One that was free and has a key now, for the caller to start; -1: all are under way. */
static inline int random_get_begin(truth *t, random_get *gets) {
    for (int i = 0; i < RANDOM_GETS; i++) {
        if (gets[i].busy) continue;
        gets[i] = (random_get){ .busy = true, .key = (int)truth_any(t, TRUTH_KEYS), .started = t->step };
        truth_key(gets[i].key, gets[i].name);
        return i;
    }
    return -1;
}
/* How one ended. True: with an answer. */
static inline bool random_get_end(const truth *t, random_get *g, fkv_status s, const char *value, uint32_t bytes) {
    g->busy = false;
    if (s == FKV_OK || s == FKV_NOT_FOUND) {
        truth_judge(t, g->key, g->started, s, value, bytes);
        return true;
    }
    CHECK(s == FKV_TIMEOUT || s == FKV_DISCONNECTED || s == FKV_SHARD_CLOSED || s == FKV_CLOSED);
    return false;
}

/* The owner deletes or puts one of the keys. */
static inline void random_change(truth *t, host *h) {
    char name[64], value[TRUTH_VALUE_MOST];
    int key = (int)truth_any(t, TRUTH_KEYS);
    table_busy why;
    truth_key(key, name);
    t->step++;
    bool deletes = truth_any(t, 4) == 0;
    uint32_t bytes = deletes ? 0 : truth_value(value, ++t->next_value);
    table_op op = host_op(h, deletes ? TABLE_DELETE : TABLE_PUT, name, strlen(name), deletes ? NULL : value, bytes);
    if (host_do(h, &op, NULL, &why) == FKV_OK) truth_note(t, key, deletes ? 0 : t->next_value);
}
/* A thousand entries more that nobody asks for. */
static inline void random_grow(host *h) {
    static uint32_t more;
    char name[64];
    table_busy why;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "more-%u", more++);
        table_op op = host_op(h, TABLE_PUT, name, strlen(name), name, strlen(name));
        host_do(h, &op, NULL, &why);
    }
}
/* The index gets larger or smaller, however many entries there are; segments of it come and go. */
static inline void random_breathe(truth *t, host *h) { index_breathe(h, truth_any(t, 1u << 31), 400, 2048); }
#endif
