/* failover_history.c: see failover_history.h. */
#include "failover_history.h"
#include <stdlib.h>
#include <string.h>

uint32_t history_begin(history *h, asked_kind kind, int key, uint32_t bytes) {
    CHECK(h->count + 1 < HISTORY_ASKED);
    h->all[++h->count] = (asked){ .kind = kind, .key = key, .bytes = bytes };
    if (history_is_tail(key))
        history_tail_begin(h, &h->all[h->count]);
    else
        h->all[h->count].floor = h->floor[key];
    h->open++;
    return h->count;
}

/* Its number, then a pattern of it, so that a mixture of two values shows. */
void history_value(uint32_t number, uint32_t bytes, uint8_t *out) {
    CHECK(bytes >= sizeof number);
    memcpy(out, &number, sizeof number);
    for (uint32_t i = sizeof number; i < bytes; i++) out[i] = (uint8_t)(number * 31 + i * (1 + number % 5));
}

static void raise_floor(history *h, int key, history_floor to) {
    history_floor *f = &h->floor[key];
    if (to.version > f->version || (to.version == f->version && to.gone)) *f = to;
}

/* The request saw an entry of this version. */
static void saw(history *h, const asked *a, uint64_t version) {
    CHECK(a->floor.gone ? version > a->floor.version : version >= a->floor.version);
    raise_floor(h, a->key, (history_floor){ version, false });
}

/* The request saw no entry: some removal came behind what was known when it began. */
static void saw_nothing(history *h, const asked *a) {
    history_floor f = a->floor;
    bool why = f.gone || f.version == 0;
    for (uint32_t i = h->count; i > 0 && !why; i--) {
        const asked *r = &h->all[i];
        why = r->key == a->key && r->kind == ASKED_DELETE && r->end != ASKED_WITHOUT_EFFECT &&
              (r->version == 0 ? r->end != ASKED_DONE : r->version > f.version);
    }
    CHECK(why);
    raise_floor(h, a->key, (history_floor){ f.version, true });
}

static void made(history *h, asked *a, uint64_t version) {
    CHECK(a->version == 0 || a->version == version); /* a retry is no second write */
    CHECK(version > a->floor.version);
    a->version = version;
    raise_floor(h, a->key, (history_floor){ version, a->kind == ASKED_DELETE });
}

static void found(history *h, const asked *a, uint64_t version, const uint8_t *value, uint32_t bytes) {
    static uint8_t should[HISTORY_VALUE];
    uint32_t number;
    CHECK(bytes >= sizeof number);
    memcpy(&number, value, sizeof number);
    CHECK(number > 0 && number <= h->count);
    asked *by = &h->all[number];
    CHECK(bytes <= sizeof should && by->key == a->key && (by->kind == ASKED_PUT || by->kind == ASKED_CAS) &&
          by->bytes == bytes);
    history_value(number, bytes, should);
    CHECK(memcmp(value, should, bytes) == 0);
    CHECK(by->end != ASKED_WITHOUT_EFFECT);
    CHECK(by->version == 0 || by->version == version);
    by->version = version;
    saw(h, a, version);
}

void history_end(history *h, uint32_t number, fkv_status s, uint64_t version, const uint8_t *value, uint32_t bytes) {
    asked *a = &h->all[number];
    CHECK(a->end == ASKED_OPEN);
    h->open--;
    a->end = s == FKV_STALE_SEQUENCE ? ASKED_UNKNOWN : ASKED_WITHOUT_EFFECT;
    if (s == FKV_OK || s == FKV_NOT_FOUND || s == FKV_VERSION_MISMATCH) {
        a->end = ASKED_DONE;
        h->answered++;
    }
    h->unknown += a->end == ASKED_UNKNOWN;
    h->without_effect += a->end == ASKED_WITHOUT_EFFECT;
    if (history_is_tail(a->key))
        history_tail_end(h, number, s, version, value, bytes);
    else if (s == FKV_OK && a->kind == ASKED_GET)
        found(h, a, version, value, bytes);
    else if (s == FKV_OK)
        made(h, a, version);
    else if (s == FKV_NOT_FOUND || (s == FKV_VERSION_MISMATCH && version == 0))
        saw_nothing(h, a);
    else if (s == FKV_VERSION_MISMATCH)
        saw(h, a, version);
    else if (a->end == ASKED_WITHOUT_EFFECT)
        CHECK(a->version == 0);
    /* What changed nothing is no reason for anything. */
    if (s == FKV_NOT_FOUND || s == FKV_VERSION_MISMATCH) a->end = ASKED_WITHOUT_EFFECT;
}

static int by_version(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}
/* No two changes have the same version. */
void history_check(history *h) {
    static uint64_t versions[HISTORY_ASKED];
    uint32_t n = 0;
    history_tail_check(h);
    CHECK_EQ(h->open, 0);
    for (uint32_t i = 1; i <= h->count; i++)
        if (h->all[i].kind != ASKED_GET && h->all[i].version) versions[n++] = h->all[i].version;
    qsort(versions, n, sizeof *versions, by_version);
    for (uint32_t i = 1; i < n; i++) CHECK(versions[i] != versions[i - 1]);
}
