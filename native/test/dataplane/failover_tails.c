/* failover_tails.c: of failover_history.h, the list that is appended to, and the counter and the field that are incremented. Each piece of
 * the list is the number of the request that appended it, so whoever reads it says which changes it has, and in which
 * order. It is checked of each answer:
 *   the list begins as every other that was read, and has nothing twice, and nothing that had no effect
 *   no two changes are told the same length or the same sum
 *   nothing is shorter or less than what was known when the request began
 * and in the end that each acknowledged increment is in the sum, and others at most once. */
#include "failover_history.h"
#include <stdlib.h>
#include <string.h>
#include "../../wire/fields.h"

bool history_is_tail(int key) { return key >= HISTORY_KEYS; }

static history_tail *tail_of(history *h, const asked *a) { return &h->tail[a->key - HISTORY_KEYS]; }

void history_tail_begin(const history *h, asked *a) {
    a->floor = (history_floor){ .version = h->tail[a->key - HISTORY_KEYS].known };
}

/* The n-th of the list, or the sum n, is this change's. */
static void is_of(history_tail *t, uint64_t n, uint32_t number) {
    CHECK(n > 0 && n < HISTORY_ASKED);
    CHECK(t->by[n] == 0 || t->by[n] == number);
    CHECK(t->place[number] == 0 || t->place[number] == n);
    t->by[n] = number;
    t->place[number] = (uint32_t)n;
}
static void know(history_tail *t, const asked *a, uint64_t n) {
    CHECK(n >= a->floor.version);
    if (n > t->known) t->known = n;
}

static void list_found(history *h, const asked *a, const uint8_t *value, uint32_t bytes) {
    CHECK(bytes % sizeof(uint32_t) == 0);
    for (uint32_t i = 0; i < bytes / sizeof(uint32_t); i++) {
        uint32_t number;
        memcpy(&number, value + i * sizeof number, sizeof number);
        CHECK(number > 0 && number <= h->count);
        CHECK(h->all[number].kind == ASKED_APPEND && h->all[number].end != ASKED_WITHOUT_EFFECT);
        is_of(tail_of(h, a), i + 1, number);
    }
    know(tail_of(h, a), a, bytes / sizeof(uint32_t));
}

static void sum_found(history *h, const asked *a, const uint8_t *value, uint32_t bytes) {
    char text[24] = "";
    fkv_field f;
    uint32_t at = 0;
    if (a->key == HISTORY_HASH) {
        CHECK(fkv_next_field(value, bytes, &at, &f) && at == bytes && f.name_bytes == 1);
        value = f.value;
        bytes = f.value_bytes;
    }
    CHECK(bytes < sizeof text);
    memcpy(text, value, bytes);
    know(tail_of(h, a), a, strtoull(text, NULL, 10));
}

void history_tail_end(history *h, uint32_t number, fkv_status s, uint64_t version, const uint8_t *value,
                      uint32_t bytes) {
    asked *a = &h->all[number];
    uint64_t result;
    CHECK(s != FKV_NOT_INTEGER && s != FKV_WRONG_CODEC && s != FKV_VALUE_TOO_LARGE);
    if (a->end == ASKED_WITHOUT_EFFECT) CHECK_EQ(tail_of(h, a)->place[number], 0);
    if (s == FKV_NOT_FOUND) {
        CHECK_EQ(a->floor.version, 0);
        a->end = ASKED_WITHOUT_EFFECT;
    }
    if (s != FKV_OK) return;
    if (a->kind != ASKED_GET) a->version = version;
    switch (a->kind) {
    case ASKED_GET: (a->key == HISTORY_LIST ? list_found : sum_found)(h, a, value, bytes); break;
    case ASKED_APPEND:
    case ASKED_INCREMENT:
    case ASKED_INCREMENT_FIELD:
        CHECK_EQ(bytes, sizeof result);
        memcpy(&result, value, sizeof result);
        if (a->kind == ASKED_APPEND) {
            CHECK_EQ(result % sizeof(uint32_t), 0);
            result /= sizeof(uint32_t);
        }
        CHECK(result > a->floor.version);
        is_of(tail_of(h, a), result, number);
        know(tail_of(h, a), a, result);
        break;
    default: break;
    }
}

static void sum_check(const history *h, int key, asked_kind kind) {
    uint32_t acknowledged = 0, unknown = 0;
    for (uint32_t i = 1; i <= h->count; i++) {
        acknowledged += h->all[i].kind == kind && h->all[i].end == ASKED_DONE;
        unknown += h->all[i].kind == kind && h->all[i].end == ASKED_UNKNOWN;
    }
    uint64_t sum = h->tail[key - HISTORY_KEYS].known;
    CHECK(sum >= acknowledged && sum <= acknowledged + unknown);
}
void history_tail_check(history *h) {
    sum_check(h, HISTORY_COUNTER, ASKED_INCREMENT);
    sum_check(h, HISTORY_HASH, ASKED_INCREMENT_FIELD);
}
