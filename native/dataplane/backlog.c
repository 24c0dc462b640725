/* backlog.c: see backlog.h. */
#include "backlog.h"
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "../wire/record.h"
#include "backup.h"
#include "feed.h"

enum { PIECE_ROOM = PEER_MESSAGE_MIN - sizeof(fkv_records) };

/* The record of a large value has one of its own. */
typedef struct piece {
    fkv_list link;
    uint64_t first, extents; /* extents: record_room of all */
    uint32_t count, bytes, room;
    uint8_t records[];
} piece;

backlog *backlog_begin(backlog_budget *of, uint64_t committed) {
    backlog *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    list_init(&b->pieces);
    b->of = of;
    b->end = committed;
    return b;
}

/* As it was allocated. */
static uint32_t taken_by(const piece *p) { return (uint32_t)sizeof *p + p->room; }

static void push(backlog *b, piece *p) {
    list_init(&p->link);
    list_push(&b->pieces, &p->link);
    b->taken += taken_by(p);
    __atomic_fetch_add(&b->of->taken, taken_by(p), __ATOMIC_RELAXED);
}

static void take_out(backlog *b, piece *p) {
    list_remove(&p->link);
    b->taken -= taken_by(p);
    __atomic_fetch_sub(&b->of->taken, taken_by(p), __ATOMIC_RELAXED);
}

static void drop_first(backlog *b) {
    piece *p = LIST_OF(b->pieces.next, piece, link);
    take_out(b, p);
    free(p);
}

/* What comes next has a piece of its own, or begins another one: this one, the last, gets no more. */
static void close_piece(backlog *b, piece *p) {
    take_out(b, p);
    piece *q = realloc(p, sizeof *p + p->bytes);
    if (q) q->room = q->bytes;
    push(b, q ? q : p);
}

void backlog_free(backlog *b) {
    if (!b) return;
    while (!list_empty(&b->pieces)) drop_first(b);
    free(b);
}

static piece *add_piece(backlog *b, uint32_t room) {
    piece *p = malloc(sizeof *p + room);
    if (!p) return NULL;
    *p = (piece){ .first = b->end + 1, .room = room };
    push(b, p);
    return p;
}

/* Where all have too much, each gives way as it grows. */
static uint32_t room_of(const backlog *b) {
    uint64_t taken = __atomic_load_n(&b->of->taken, __ATOMIC_RELAXED);
    bool full = taken > __atomic_load_n(&b->of->most, __ATOMIC_RELAXED);
    return full ? 0 : BACKLOG_ROOM;
}

bool backlog_note(backlog *b, uint64_t lsn, const fkv_record *r, const uint8_t *key, const uint8_t *value) {
    fkv_assert(lsn == b->end + 1);
    piece *last = list_empty(&b->pieces) ? NULL : LIST_OF(b->pieces.prev, piece, link);
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
    last->extents += record_room(r->kind != FKV_RECORD_DELETE, r->key_bytes, r->value_bytes);
    b->end++;
    /* What takes a message of its own stays: it may be the next that a copy needs. */
    while (b->taken > room_of(b) && b->pieces.next != b->pieces.prev) drop_first(b);
    return true;
}

uint64_t backlog_first(const backlog *b) {
    return list_empty(&b->pieces) ? b->end + 1 : LIST_OF(b->pieces.next, piece, link)->first;
}

void backlog_trim(backlog *b, uint64_t to) {
    while (!list_empty(&b->pieces)) {
        const piece *p = LIST_OF(b->pieces.next, piece, link);
        if (p->first + p->count - 1 > to) return;
        drop_first(b);
    }
}

/* The one that has this record; *at: its place there. */
static const piece *find(const backlog *b, uint64_t lsn, uint32_t *at, uint32_t *end) {
    const fkv_list *l = b->pieces.prev;
    fkv_assert(lsn >= backlog_first(b) && lsn <= b->end);
    while (LIST_OF(l, piece, link)->first > lsn) l = l->prev;
    const piece *p = LIST_OF(l, piece, link);
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
    uint64_t bytes = 0;
    fkv_record r;
    const uint8_t *key, *value;
    for (const fkv_list *l = b->pieces.next; l != &b->pieces; l = l->next) {
        const piece *p = LIST_OF(l, piece, link);
        uint64_t n = p->first;
        if (n > lsn) {
            bytes += p->extents;
            continue;
        }
        for (uint32_t at = 0; wire_next_record(p->records, p->bytes, &at, &r, &key, &value); n++)
            if (n > lsn) bytes += record_room(r.kind != FKV_RECORD_DELETE, r.key_bytes, r.value_bytes);
    }
    return bytes;
}
