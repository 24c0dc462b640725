/* backlog.c: see backlog.h. */
#include "backlog.h"
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "../wire/record.h"
#include "backup.h"
#include "sender.h"

enum { PIECE_ROOM = PEER_MESSAGE_MIN - sizeof(fkv_records) };

/* The record of a large value has one of its own. */
typedef struct piece {
    uint64_t first, before; /* before: record_room of all that was noted before these */
    uint32_t count, bytes, room;
    uint8_t records[];
} piece;

backlog *backlog_begin(backlog_budget *of, uint64_t committed) {
    backlog *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->of = of;
    b->end = committed;
    return b;
}

/* As it was allocated, with its place in the ring. */
static uint32_t taken_by(const piece *p) { return (uint32_t)(sizeof *p + sizeof p) + p->room; }

static void count_in(backlog *b, const piece *p) {
    b->taken += taken_by(p);
    __atomic_fetch_add(&b->of->taken, taken_by(p), __ATOMIC_RELAXED);
}

static void count_out(backlog *b, const piece *p) {
    b->taken -= taken_by(p);
    __atomic_fetch_sub(&b->of->taken, taken_by(p), __ATOMIC_RELAXED);
}

static piece **place(const backlog *b, uint32_t i) { return &b->piece[(b->at + i) & (b->room - 1)]; }
static piece *last_of(const backlog *b) { return b->count ? *place(b, b->count - 1) : NULL; }

static void drop_first(backlog *b) {
    piece *p = *place(b, 0);
    count_out(b, p);
    b->at++;
    b->count--;
    free(p);
}

/* What comes next has a piece of its own, or begins another one: this one, the last, gets no more. */
static void close_piece(backlog *b, piece *p) {
    count_out(b, p);
    piece *q = realloc(p, sizeof *p + p->bytes);
    if (q) q->room = q->bytes;
    *place(b, b->count - 1) = q ? q : p;
    count_in(b, last_of(b));
}

void backlog_free(backlog *b) {
    if (!b) return;
    while (b->count) drop_first(b);
    free(b->piece);
    free(b);
}

static bool ring_grows(backlog *b) {
    uint32_t room = b->room ? 2 * b->room : 16;
    piece **larger = malloc(room * sizeof(piece *));
    if (!larger) return false;
    for (uint32_t i = 0; i < b->count; i++) larger[i] = *place(b, i);
    free(b->piece);
    b->piece = larger;
    b->at = 0;
    b->room = room;
    return true;
}

static piece *add_piece(backlog *b, uint32_t room) {
    if (b->count == b->room && !ring_grows(b)) return NULL;
    piece *p = malloc(sizeof *p + room);
    if (!p) return NULL;
    *p = (piece){ .first = b->end + 1, .before = b->extents, .room = room };
    *place(b, b->count++) = p;
    count_in(b, p);
    return p;
}

/* Each gives way as it grows. */
static uint64_t room_of(const backlog *b) {
    uint64_t taken = __atomic_load_n(&b->of->taken, __ATOMIC_RELAXED);
    uint64_t most = __atomic_load_n(&b->of->most, __ATOMIC_RELAXED);
    return taken < most ? BACKLOG_PART * (most - taken) : 0;
}

bool backlog_note(backlog *b, uint64_t lsn, const fkv_record *r, const uint8_t *key, const uint8_t *value) {
    fkv_assert(lsn == b->end + 1);
    piece *last = last_of(b);
    bool large = r->kind == FKV_RECORD_BULK, fits = last && !large && last->count < UINT16_MAX;
    uint32_t n = fits ? wire_put_record(last->records + last->bytes, last->room - last->bytes, r, key, value) : 0;
    if (n == 0) {
        if (last) close_piece(b, last);
        last = add_piece(b, large ? (uint32_t)sizeof(fkv_record) + r->key_bytes : PIECE_ROOM);
        if (!last) return false;
        n = wire_put_record(last->records, last->room, r, key, value);
        fkv_assert(n > 0);
    }
    last->bytes += n;
    last->count++;
    b->extents += record_room(r->kind != FKV_RECORD_DELETE, r->key_bytes, r->value_bytes);
    b->end++;
    /* What takes a message of its own stays: it may be the next that a copy needs. */
    while (b->taken > room_of(b) && b->count > 1) drop_first(b);
    return true;
}

uint64_t backlog_first(const backlog *b) { return b->count ? (*place(b, 0))->first : b->end + 1; }

void backlog_trim(backlog *b, uint64_t to) {
    while (b->count) {
        const piece *p = *place(b, 0);
        if (p->first + p->count - 1 > to) return;
        drop_first(b);
    }
}

/* The one that has this record; *at: its place there. */
static const piece *find(const backlog *b, uint64_t lsn, uint32_t *at, uint32_t *end) {
    fkv_assert(lsn >= backlog_first(b) && lsn <= b->end);
    uint32_t i = 0;
    for (uint32_t after = b->count; after - i > 1;) {
        uint32_t middle = i + (after - i) / 2;
        if ((*place(b, middle))->first <= lsn)
            i = middle;
        else
            after = middle;
    }
    const piece *p = *place(b, i);
    fkv_record r;
    const uint8_t *key, *value;
    *at = *end = 0;
    for (uint64_t n = p->first; n <= lsn; n++) {
        *at = *end;
        fkv_assert(wire_next_record(p->records, p->bytes, end, &r, &key, &value));
    }
    return p;
}

bool backlog_is_large(const backlog *b, uint64_t lsn, fkv_record *r, const uint8_t **key) {
    uint32_t at, end;
    const piece *p = find(b, lsn, &at, &end);
    const uint8_t *value;
    return wire_next_record(p->records, p->bytes, &at, r, key, &value) && r->kind == FKV_RECORD_BULK;
}

uint32_t backlog_fill(const backlog *b, uint64_t from, uint8_t *to, uint32_t room, uint16_t *count) {
    uint32_t at, end;
    const piece *p = find(b, from, &at, &end);
    fkv_assert(room >= PIECE_ROOM);
    *count = (uint16_t)(p->first + p->count - from);
    memcpy(to, p->records + at, p->bytes - at);
    return p->bytes - at;
}

uint64_t backlog_room_behind(const backlog *b, uint64_t lsn) {
    uint32_t end, to;
    uint64_t next = max_u64(lsn + 1, backlog_first(b));
    if (next > b->end) return 0;
    const piece *p = find(b, next, &to, &end);
    uint64_t behind = b->extents - p->before;
    fkv_record r;
    const uint8_t *key, *value;
    for (uint32_t at = 0; at < to && wire_next_record(p->records, p->bytes, &at, &r, &key, &value);)
        behind -= record_room(r.kind != FKV_RECORD_DELETE, r.key_bytes, r.value_bytes);
    return behind;
}
