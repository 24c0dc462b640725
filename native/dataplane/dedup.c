/* dedup.c: see dedup.h.
 *
 * An entry is three words:   sequence 56 | status 8 ,  version (or, in progress, the operation) ,  value     0 = empty
 * The entry of sequence s is entry[s & mask]. Two sequences that meet in one entry are a whole ring apart, so the
 * window grows until the ring is FKV_DEDUP_WINDOW long; from then on the older one is overwritten and `forgotten` rises
 * to it. Invariant: a sequence above `forgotten` that is not in the ring was never begun, or was cancelled. */
#include "dedup.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/hash.h"
#include "../wire/wire.h"

enum { FIRST_ENTRIES = 64, IN_PROGRESS = 255, TABLE_FIRST = 64 };
static const uint64_t IDLE_NS = (uint64_t)FKV_DEDUP_IDLE_MS * 1000000u;

typedef struct entry {
    uint64_t tag, version, value;
} entry;
typedef struct window {
    uint64_t forgotten;
    uint32_t mask;
    entry e[];
} window;

struct dedup_client {
    fkv_list gone;
    dedup_client *next; /* in the table's chain */
    uint64_t id, left_ns;
    uint32_t pins, slots;
    uint8_t ended;    /* fkv_end of its last connection, until the next one is told */
    window **windows; /* by slot; NULL: this client has changed nothing there */
};

static uint64_t sequence_of(const entry *e) { return e->tag >> 8; }
static uint8_t status_of(const entry *e) { return (uint8_t)e->tag; }
static uint64_t tag_of(uint64_t sequence, uint8_t status) { return sequence << 8 | status; }
static uint64_t window_bytes(uint32_t mask) { return sizeof(window) + ((uint64_t)mask + 1) * sizeof(entry); }

int dedup_init(dedup *d, uint64_t bytes_max) {
    *d = (dedup){ .mask = TABLE_FIRST - 1, .bytes_max = bytes_max };
    list_init(&d->gone);
    d->table = calloc(TABLE_FIRST, sizeof *d->table);
    return d->table ? 0 : -ENOMEM;
}

static void drop_window(dedup *d, dedup_client *c, uint32_t slot) {
    if (!c->windows[slot]) return;
    d->bytes -= window_bytes(c->windows[slot]->mask);
    free(c->windows[slot]);
    c->windows[slot] = NULL;
}

static void drop_client(dedup *d, dedup_client *c) {
    for (uint32_t i = 0; i < c->slots; i++) drop_window(d, c, i);
    d->bytes -= sizeof *c + c->slots * sizeof *c->windows;
    dedup_client **at = &d->table[c->id & d->mask];
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    d->clients--;
    list_remove(&c->gone);
    free(c->windows);
    free(c);
}

void dedup_free(dedup *d) {
    if (!d->table) return;
    for (uint32_t i = 0; i <= d->mask; i++)
        while (d->table[i]) drop_client(d, d->table[i]);
    free(d->table);
    free(d->slot_doubt_ns);
    d->table = NULL;
    d->slot_doubt_ns = NULL;
}

static bool drop_longest_gone(dedup *d, uint64_t now_ns, bool early) {
    if (list_empty(&d->gone)) return false;
    dedup_client *c = LIST_OF(d->gone.next, dedup_client, gone);
    uint64_t due = c->left_ns + IDLE_NS;
    if (due > now_ns) {
        if (!early) return false;
        if (due > d->doubt_until_ns) d->doubt_until_ns = due;
    }
    drop_client(d, c);
    return true;
}

static bool take_bytes(dedup *d, uint64_t bytes, uint64_t now_ns) {
    while (d->bytes + bytes > d->bytes_max)
        if (!drop_longest_gone(d, now_ns, true)) return false;
    d->bytes += bytes;
    return true;
}

static void grow_table(dedup *d) {
    uint32_t mask = d->mask * 2 + 1;
    dedup_client **table = calloc((size_t)mask + 1, sizeof *table);
    if (!table) return; /* longer chains */
    for (uint32_t i = 0; i <= d->mask; i++) {
        for (dedup_client *c = d->table[i], *next; c; c = next) {
            next = c->next;
            c->next = table[c->id & mask];
            table[c->id & mask] = c;
        }
    }
    free(d->table);
    d->table = table;
    d->mask = mask;
}

dedup_client *dedup_enter(dedup *d, uint64_t client, uint64_t now_ns) {
    while (drop_longest_gone(d, now_ns, false)) {}
    dedup_client *c = d->table[client & d->mask];
    while (c && c->id != client) c = c->next;
    if (!c) {
        if (!take_bytes(d, sizeof *c, now_ns)) return NULL;
        c = calloc(1, sizeof *c);
        if (!c) {
            d->bytes -= sizeof *c;
            return NULL;
        }
        c->id = client;
        list_init(&c->gone);
        if (d->clients > d->mask) grow_table(d);
        c->next = d->table[client & d->mask];
        d->table[client & d->mask] = c;
        d->clients++;
    }
    list_remove(&c->gone);
    c->pins++;
    return c;
}

void dedup_hold(dedup_client *c) { c->pins++; }

uint64_t dedup_client_id(const dedup_client *c) { return c->id; }

uint32_t dedup_holders(const dedup_client *c) { return c->pins; }

void dedup_note_end(dedup_client *c, uint8_t why) { c->ended = why; }

uint8_t dedup_take_end(dedup_client *c) {
    uint8_t why = c->ended;
    c->ended = 0;
    return why;
}

void dedup_leave(dedup *d, dedup_client *c, uint64_t now_ns) {
    if (--c->pins) return;
    c->left_ns = now_ns;
    list_push(&d->gone, &c->gone);
}

static window *make_window(dedup *d, uint32_t entries, uint64_t now_ns) {
    if (!take_bytes(d, window_bytes(entries - 1), now_ns)) return NULL;
    window *w = calloc(1, window_bytes(entries - 1));
    if (w)
        w->mask = entries - 1;
    else
        d->bytes -= window_bytes(entries - 1);
    return w;
}

static window *first_window(dedup *d, dedup_client *c, uint32_t slot, uint64_t now_ns) {
    if (slot >= c->slots) {
        uint32_t slots = slot + 1;
        if (!take_bytes(d, (slots - c->slots) * sizeof *c->windows, now_ns)) return NULL;
        window **w = realloc(c->windows, slots * sizeof *w);
        if (!w) {
            d->bytes -= (slots - c->slots) * sizeof *c->windows;
            return NULL;
        }
        memset(w + c->slots, 0, (slots - c->slots) * sizeof *w);
        c->windows = w;
        c->slots = slots;
    }
    return c->windows[slot] = make_window(d, FIRST_ENTRIES, now_ns);
}

/* Twice the ring. Entries that did not meet in the old one do not meet in the new one. */
static bool grow_window(dedup *d, dedup_client *c, uint32_t slot, uint64_t now_ns) {
    window *old = c->windows[slot];
    if (old->mask + 1 >= FKV_DEDUP_WINDOW) return false;
    window *w = make_window(d, 2 * (old->mask + 1), now_ns);
    if (!w) return false;
    w->forgotten = old->forgotten;
    for (uint32_t i = 0; i <= old->mask; i++)
        if (old->e[i].tag) w->e[sequence_of(&old->e[i]) & w->mask] = old->e[i];
    drop_window(d, c, slot);
    c->windows[slot] = w;
    return true;
}

static bool in_doubt(const dedup *d, uint32_t slot, uint64_t now_ns) {
    return now_ns < d->doubt_until_ns || (slot < d->slots && now_ns < d->slot_doubt_ns[slot]);
}

/* Made at its first change that is seen here, where earlier ones may have been made: a client gives sequences in the order
 * in which it sends for the first time. */
static window *window_of(dedup *d, dedup_client *c, uint32_t slot, uint64_t sequence, uint64_t now_ns) {
    window *w = slot < c->slots ? c->windows[slot] : NULL;
    if (w) return w;
    w = first_window(d, c, slot, now_ns);
    if (w && in_doubt(d, slot, now_ns)) w->forgotten = sequence - 1; /* mutation: joins/first-change-vouches */
    return w;
}

/* The sequence's place in the ring, which grows while another one has it and there is room. */
static entry *place_of(dedup *d, dedup_client *c, uint32_t slot, uint64_t sequence, uint64_t now_ns) {
    for (;;) {
        entry *e = &c->windows[slot]->e[sequence & c->windows[slot]->mask];
        if (!e->tag || sequence_of(e) == sequence || !grow_window(d, c, slot, now_ns)) return e;
    }
}

static void forget_to(window *w, uint64_t sequence) {
    if (sequence > w->forgotten) w->forgotten = sequence;
}
/* What has the place gives way. */
static void overwrite(window *w, const entry *e) {
    if (e->tag) forget_to(w, sequence_of(e));
}

dedup_answer dedup_begin(dedup *d, dedup_client *c, uint32_t slot, uint64_t sequence, bool retry, uint64_t now_ns,
                         void **op, dedup_result *result) {
    window *w = slot < c->slots ? c->windows[slot] : NULL;
    if (!w) {
        if (retry && in_doubt(d, slot, now_ns)) return DEDUP_FORGOTTEN;
        w = window_of(d, c, slot, sequence, now_ns);
        if (!w) return DEDUP_NO_ROOM;
    }
    entry *e = &w->e[sequence & w->mask];
    if (sequence_of(e) == sequence) { /* mutation: dataplane/retry-made-again */
        if (status_of(e) == IN_PROGRESS) {
            *op = (void *)(uintptr_t)e->version;
            return DEDUP_IN_PROGRESS;
        }
        *result = (dedup_result){ (fkv_status)status_of(e), e->version, e->value };
        return DEDUP_DONE;
    }
    if (sequence <= w->forgotten) return DEDUP_FORGOTTEN;
    if (e->tag) {
        e = place_of(d, c, slot, sequence, now_ns);
        if (sequence_of(e) > sequence) return DEDUP_FORGOTTEN;
        if (e->tag && status_of(e) == IN_PROGRESS) return DEDUP_NO_ROOM;
        overwrite(c->windows[slot], e);
    }
    e->tag = tag_of(sequence, IN_PROGRESS);
    e->version = (uint64_t)(uintptr_t)*op;
    return DEDUP_NEW;
}

/* The entry of a sequence that is in progress. It is there: entries in progress are never overwritten. */
static entry *in_progress(dedup_client *c, uint32_t slot, uint64_t sequence) {
    window *w = c->windows[slot];
    return &w->e[sequence & w->mask];
}
void dedup_finish(dedup_client *c, uint32_t slot, uint64_t sequence, const dedup_result *r) {
    *in_progress(c, slot, sequence) = (entry){ tag_of(sequence, (uint8_t)r->status), r->version, r->value };
}
void dedup_cancel(dedup_client *c, uint32_t slot, uint64_t sequence) {
    *in_progress(c, slot, sequence) = (entry){ 0, 0, 0 };
}
void dedup_hand_over(dedup_client *c, uint32_t slot, uint64_t sequence, void *op) {
    in_progress(c, slot, sequence)->version = (uint64_t)(uintptr_t)op;
}

/* ---- what another owner did ---- */

/* The window of a client that need not be connected here; NULL: no room, and that is remembered. */
static dedup_client *enter_window(dedup *d, uint64_t client, uint32_t slot, uint64_t sequence, uint64_t now_ns) {
    dedup_client *c = dedup_enter(d, client, now_ns);
    if (c && window_of(d, c, slot, sequence, now_ns)) return c;
    if (c) dedup_leave(d, c, now_ns);
    d->doubt_until_ns = now_ns + IDLE_NS;
    return NULL;
}

void dedup_note(dedup *d, uint64_t client, uint32_t slot, uint64_t sequence, const dedup_result *r, uint64_t now_ns) {
    dedup_client *c = enter_window(d, client, slot, sequence, now_ns);
    if (!c) return;
    entry *e = place_of(d, c, slot, sequence, now_ns);
    window *w = c->windows[slot];
    if (sequence_of(e) > sequence) {
        /* A later one has its place, and there is no room for a longer ring now: there may be when it is asked for. */
        forget_to(w, sequence); /* mutation: replication/dropped-unnoted */
    } else if (sequence > w->forgotten) {
        if (sequence_of(e) != sequence) overwrite(w, e);
        *e = (entry){ tag_of(sequence, (uint8_t)r->status), r->version, r->value };
    }
    dedup_leave(d, c, now_ns);
}

void dedup_forget(dedup *d, uint64_t client, uint32_t slot, uint64_t sequence, uint64_t now_ns) {
    dedup_client *c = enter_window(d, client, slot, sequence, now_ns);
    if (!c) return;
    forget_to(c->windows[slot], sequence);
    dedup_leave(d, c, now_ns);
}

/* Not of what is in progress: it comes as a record, or has no effect. */
static uint64_t highest(const window *w) {
    uint64_t sequence = w->forgotten;
    for (uint32_t i = 0; i <= w->mask; i++)
        if (w->e[i].tag && status_of(&w->e[i]) != IN_PROGRESS && sequence_of(&w->e[i]) > sequence)
            sequence = sequence_of(&w->e[i]);
    return sequence;
}

void dedup_each(const dedup *d, uint32_t slot, void (*f)(void *ctx, uint64_t client, uint64_t sequence), void *ctx) {
    for (uint32_t i = 0; i <= d->mask; i++) {
        for (const dedup_client *c = d->table[i]; c; c = c->next) {
            const window *w = slot < c->slots ? c->windows[slot] : NULL;
            uint64_t sequence = w ? highest(w) : 0;
            if (sequence) f(ctx, c->id, sequence);
        }
    }
}

static void give_window(const dedup_client *c, const window *w, dedup_window f, void *ctx) {
    dedup_change change[FKV_DEDUP_WINDOW];
    uint32_t changes = 0;
    for (uint32_t i = 0; i <= w->mask; i++) {
        const entry *e = &w->e[i];
        if (!e->tag || status_of(e) == IN_PROGRESS) continue;
        dedup_result r = { .status = (fkv_status)status_of(e), .version = e->version, .value = e->value };
        change[changes++] = (dedup_change){ .sequence = sequence_of(e), .result = r };
    }
    if (changes || w->forgotten) f(ctx, c->id, w->forgotten, change, changes);
}

/* Chain by chain, in the order of reversed bits: the table of clients becomes longer, never shorter. */
void dedup_scan(const dedup *d, uint32_t slot, uint64_t *cursor, dedup_window f, void *ctx) {
    uint32_t number = fkv_reversed_bits((uint32_t)*cursor) & d->mask;
    uint64_t next = (uint64_t)fkv_reversed_bits(number) + ((uint64_t)1 << 32) / ((uint64_t)d->mask + 1);
    *cursor = next >> 32 ? 0 : next;
    for (const dedup_client *c = d->table[number]; c; c = c->next)
        if (slot < c->slots && c->windows[slot]) give_window(c, c->windows[slot], f, ctx);
}

uint64_t dedup_doubt_ns(const dedup *d, uint32_t slot) {
    uint64_t of_slot = slot < d->slots ? d->slot_doubt_ns[slot] : 0;
    return of_slot > d->doubt_until_ns ? of_slot : d->doubt_until_ns;
}

void dedup_doubt(dedup *d, uint32_t slot, uint64_t until_ns) {
    if (until_ns > d->slot_doubt_ns[slot]) d->slot_doubt_ns[slot] = until_ns;
}

int dedup_open_slot(dedup *d, uint32_t slot, bool had_owner, uint64_t now_ns) {
    if (slot >= d->slots) {
        uint64_t *doubt = realloc(d->slot_doubt_ns, (slot + 1) * sizeof *doubt);
        if (!doubt) return -ENOMEM;
        memset(doubt + d->slots, 0, (slot + 1 - d->slots) * sizeof *doubt);
        d->slot_doubt_ns = doubt;
        d->slots = slot + 1;
    }
    /* mutation: dataplane/retry-at-next-owner */
    d->slot_doubt_ns[slot] = had_owner ? now_ns + IDLE_NS : 0; /* clients send nothing again after half of it */
    return 0;
}

void dedup_drop_slot(dedup *d, uint32_t slot) {
    for (uint32_t i = 0; i <= d->mask; i++) {
        for (dedup_client *c = d->table[i]; c; c = c->next)
            if (slot < c->slots) drop_window(d, c, slot);
    }
}
