/* transfer.c: large values. The request names memory of the client; the owner brings the value from there into the
 * extent that was prepared for it, which no reader accepts while it is PENDING.
 *
 *   attach the client's region -> shm:    the copier copies from the client's memory through its mapping ---> seal ->
 *                                         ready
 *                                 others: READs of a CHUNK into bounce memory, a few at a time;
 *                                         the copier copies each from there into the extent ---------------> seal ->
 *                                         ready
 *
 * What takes time in proportion to the value (copy, CRC) is done by the copier; the data-plane thread only posts READs
 * and looks at their ends, so small requests go on in between. Nothing but the copier writes values into extents, word
 * by word as readers expect (words.h); a NIC or a socket would not. The client may change its memory meanwhile: the CRC
 * is computed from the extent afterwards, and nothing is decided by what was read. Invariant: an extent is aborted only
 * when no job can write to it any more, bounce memory is used again only when no READ can write to it, and a connection
 * is freed only when no job reads its client's memory any more. */
#include "transfer.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "../dataplane/client.h"
#include "../dataplane/worker.h"
#include "../storage/shard.h"
#include "../table/words.h"

enum { CHUNK = 256 << 10, BOUNCES = 16, PIECES_OF_CLIENT = 3, COPY_STEP = 1 << 20 };

typedef enum { ATTACHING, MOVING } stage;

struct transfer {
    job job;       /* of a value that is mapped here: one for all of it */
    fkv_list link; /* worker.transfers */
    fkv_list turn; /* bounce_pool.turns, while there are READs to post */
    op *op;
    client *client;     /* NULL: gone, or it has no part in this: the value comes from the table */
    client *payer;      /* whose part of the room for large values it takes; NULL: gone */
    attachment *region; /* of the client */
    fkv_rendezvous from;
    uint8_t *to;
    const uint8_t *direct; /* the value in the client's memory, where that is mapped here; or in the table's */
    stage stage;
    uint32_t bytes, posted, arrived; /* of the value: all; asked for by READs; brought by them */
    uint32_t reads, jobs;            /* in flight; at the copier */
    bool sealed;
    fkv_status failed; /* OK: not */
    bool cancelled;    /* atomic: the copier may stop */
    uint64_t deadline_ns;
};

/* A piece of bounce memory and what is in it. */
typedef struct bounce {
    job job;
    transfer *t; /* NULL: free */
    uint8_t *at;
    uint32_t offset, bytes; /* in the value */
    bool reading;           /* a READ writes to it; else, while t is set, the copier reads it */
    bool last;              /* the value is complete with it */
    uint32_t generation;    /* of what it was used for: a completion of an earlier use is known by it */
} bounce;

struct bounce_pool {
    uint8_t *memory;
    fab_mr *mr[FAB_PLACES];
    fkv_list turns; /* transfers that READ, the next to be served first */
    bounce piece[BOUNCES];
};

fkv_status transfer_pool_create(bounce_pool **out) {
    bounce_pool *p = *out = calloc(1, sizeof *p);
    if (!p) return FKV_NO_MEMORY;
    list_init(&p->turns);
    p->memory = aligned_alloc(4096, (size_t)BOUNCES * CHUNK); /* pages that are never used cost nothing */
    for (int i = 0; i < BOUNCES; i++) p->piece[i].at = p->memory + (size_t)i * CHUNK;
    return p->memory ? FKV_OK : FKV_NO_MEMORY;
}
int transfer_pool_register(bounce_pool *p, fab_domain *d, uint32_t place) {
    return fab_reg_local(d, p->memory, (size_t)BOUNCES * CHUNK, &p->mr[place]);
}
void transfer_pool_free(bounce_pool *p) {
    if (!p) return;
    for (int i = 0; i < FAB_PLACES; i++) fab_dereg(p->mr[i]);
    free(p->memory);
    free(p);
}

bool transfer_admit(const client *c, uint32_t bytes) {
    uint64_t all = c->w->d->c.transfer_bytes, one = max_u64(all / 2, FKV_VALUE_MAX);
    return c->w->transfer_bytes + bytes <= all && c->transfer_bytes + bytes <= one;
}

/* ---- the end ---- */

static void end(transfer *t) {
    worker *w = t->op->worker;
    op *o = t->op;
    fkv_status s = t->failed;
    /* nothing writes to the extent any more */
    fkv_assert(t->reads == 0 && t->jobs == 0 && o->held && o->transfer == t);
    w->transfer_bytes -= t->bytes;
    if (t->payer) t->payer->transfer_bytes -= t->bytes;
    if (t->client) {
        t->region->users--;
        t->region->used_ns = w->now_ns;
    }
    w->feed_starved = true;
    o->transfer = NULL;
    list_remove(&t->link);
    list_remove(&t->turn);
    free(t);
    if (s == FKV_OK) {
        w->stats.transfers++;
        op_prepared(o);
    } else if (s == FKV_SHARD_CLOSED) {
        op_ends(o, s);
    } else {
        op_fails_alone(o, s); /* a retry that follows it has its own connection and value */
    }
}

static bool is_quiet(const transfer *t) { return t->reads == 0 && t->jobs == 0; }

static void fail(transfer *t, fkv_status s) {
    if (t->failed == FKV_OK) t->failed = s;
    __atomic_store_n(&t->cancelled, true, __ATOMIC_RELAXED);
    if (is_quiet(t)) end(t);
}

void transfer_fail(op *o, fkv_status s) {
    if (o->transfer->failed == FKV_OK) fail(o->transfer, s);
}

/* ---- the copier's part ---- */

static void job_back(transfer *t, bool sealed) {
    t->op->worker->copying--;
    t->jobs--;
    t->sealed |= sealed;
    if (is_quiet(t) && (t->sealed || t->failed != FKV_OK)) end(t);
}

static void copied_all(job *j) {
    transfer *t = (transfer *)j;
    if (t->client) t->client->copying--;
    job_back(t, true);
}

static void copy_all(job *j) {
    transfer *t = (transfer *)j;
    bool cancelled = false;
    for (uint32_t at = 0; at < t->bytes && !cancelled; at += COPY_STEP) {
        uint32_t left = t->bytes - at;
        fkv_copy_in(t->to + at, t->direct + at, left < COPY_STEP ? left : COPY_STEP);
        cancelled = __atomic_load_n(&t->cancelled, __ATOMIC_RELAXED);
    }
    if (!cancelled) table_seal(t->op->shard->table, &t->op->prepared);
    t->job.run = copied_all;
    worker_post(t->op->worker, &t->job);
}

static void copied_piece(job *j) {
    bounce *b = (bounce *)j;
    transfer *t = b->t;
    b->t = NULL;
    job_back(t, b->last);
}

static void copy_piece(job *j) {
    bounce *b = (bounce *)j;
    transfer *t = b->t;
    if (!__atomic_load_n(&t->cancelled, __ATOMIC_RELAXED)) {
        fkv_copy_in(t->to + b->offset, b->at, b->bytes);
        if (b->last) table_seal(t->op->shard->table, &t->op->prepared);
    }
    b->job.run = copied_piece;
    worker_post(t->op->worker, &b->job);
}

static void give_to_copier(transfer *t, job *j, void (*run)(job *)) {
    worker *w = t->op->worker;
    w->copying++;
    t->jobs++;
    j->run = run;
    helper_post(&w->d->copier, j);
}

/* ---- attaching ---- */

static void attached(transfer *t) {
    const uint8_t *base = fab_direct(t->client->conn, t->from.rkey);
    t->stage = MOVING;
    if (!base) {
        list_push(&t->op->worker->bounces->turns, &t->turn);
        return;
    }
    t->direct = base + (t->from.addr - t->from.region_addr);
    t->client->copying++;
    give_to_copier(t, &t->job, copy_all);
}

void transfer_attached(client *c, const fab_wc *wc) {
    attachment *a = &c->attached[wc->wr_id % ATTACHMENTS];
    if (c->doomed || a->state != ATTACH_ASKED) return;
    a->state = wc->status == FAB_SUCCESS ? ATTACH_READY : ATTACH_NONE;
    fkv_status s = wc->status == FAB_REM_ACCESS_ERR ? FKV_REMOTE_ACCESS : FKV_DISCONNECTED;
    for (fkv_list *l = c->w->transfers.next, *next; l != &c->w->transfers; l = next) {
        next = l->next;
        transfer *t = LIST_OF(l, transfer, link);
        if (t->client != c || t->region != a || t->stage != ATTACHING) continue;
        if (a->state == ATTACH_READY)
            attached(t);
        else
            fail(t, s);
    }
}

/* The client's region as an attachment: the one there is, or a free or long unused place for it. */
static attachment *attachment_for(client *c, const fkv_rendezvous *r) {
    attachment *place = NULL;
    for (int i = 0; i < ATTACHMENTS; i++) {
        attachment *a = &c->attached[i];
        if (a->state != ATTACH_NONE && a->rkey == r->rkey && a->addr == r->region_addr && a->bytes == r->region_bytes)
            return a;
        if (a->state == ATTACH_ASKED || a->users) continue;
        if (!place || a->state == ATTACH_NONE || (place->state != ATTACH_NONE && a->used_ns < place->used_ns))
            place = a;
    }
    if (!place) return NULL;
    if (place->state == ATTACH_READY) fab_detach(c->conn, place->rkey);
    *place = (attachment){ .rkey = r->rkey, .addr = r->region_addr, .bytes = r->region_bytes };
    return place;
}

static fkv_status status_of_attach(int e) {
    switch (-e) {
    case EAGAIN:
    case EEXIST: return FKV_BUSY; /* no place is free, or one of this rkey is still attached */
    case ENOMEM: return FKV_NO_MEMORY;
    default: return FKV_DISCONNECTED;
    }
}

fkv_status transfer_begin(op *o) {
    client *c = o->client;
    worker *w = o->worker;
    transfer *t = calloc(1, sizeof *t);
    if (!t) return FKV_BUSY;
    memcpy(&t->from, o->body, sizeof t->from);
    t->region = attachment_for(c, &t->from);
    int e = 0;
    if (t->region && t->region->state == ATTACH_NONE) {
        e = fab_attach(c->conn, t->from.rkey, t->from.region_addr, t->from.region_bytes,
                       (uint64_t)(t->region - c->attached));
        if (e == 0) t->region->state = ATTACH_ASKED;
    }
    if (!t->region || e) {
        free(t);
        return e ? status_of_attach(e) : FKV_BUSY;
    }
    list_init(&t->turn);
    t->op = o;
    t->client = t->payer = c;
    t->to = o->prepared.value;
    t->bytes = o->request.value_bytes;
    t->deadline_ns = w->now_ns + (uint64_t)w->d->c.transfer_ms * 1000000u;
    t->region->users++;
    w->transfer_bytes += t->bytes;
    c->transfer_bytes += t->bytes;
    o->transfer = t;
    o->state = OP_TRANSFERS;
    list_push(&w->transfers, &t->link);
    if (t->region->state == ATTACH_READY) attached(t);
    return FKV_OK;
}

/* The present extent stays as it is until the change is committed or aborted, and neither comes before the job is back.
 * The memory that it reads is the table's, so it may end without its client; but that one's room is taken. */
fkv_status transfer_keep(op *o, const uint8_t *present, uint32_t bytes) {
    worker *w = o->worker;
    transfer *t = calloc(1, sizeof *t);
    if (!t) return FKV_BUSY;
    list_init(&t->turn);
    t->op = o;
    t->to = o->prepared.value;
    t->direct = present;
    t->bytes = bytes;
    t->stage = MOVING;
    t->deadline_ns = w->now_ns + (uint64_t)w->d->c.transfer_ms * 1000000u;
    t->payer = o->client;
    w->transfer_bytes += bytes;
    t->payer->transfer_bytes += bytes;
    o->transfer = t;
    o->state = OP_TRANSFERS;
    list_push(&w->transfers, &t->link);
    give_to_copier(t, &t->job, copy_all);
    return FKV_OK;
}

/* ---- READs ---- */

static bounce *free_bounce(worker *w) {
    for (int i = 0; i < BOUNCES; i++)
        if (!w->bounces->piece[i].t) return &w->bounces->piece[i];
    return NULL;
}

static uint32_t pieces_of(const worker *w, const client *c) {
    uint32_t n = 0;
    for (int i = 0; i < BOUNCES; i++) n += w->bounces->piece[i].t && w->bounces->piece[i].t->client == c;
    return n;
}

/* The next piece of the value. It may end the transfer. */
static void post(worker *w, transfer *t, bounce *b) {
    uint32_t left = t->bytes - t->posted, n = left < CHUNK ? left : CHUNK;
    b->generation++;
    fab_read r = { .wr_id = (uint64_t)b->generation * BOUNCES + (uint64_t)(b - w->bounces->piece),
                   .local = b->at,
                   .local_mr = w->bounces->mr[t->client->place],
                   .remote_addr = t->from.addr + t->posted,
                   .rkey = t->from.rkey,
                   .bytes = n };
    int taken = fab_post_reads(t->client->conn, &r, 1);
    if (taken < 0) fail(t, FKV_DISCONNECTED);
    if (taken <= 0) return;
    b->t = t;
    b->offset = t->posted;
    b->bytes = n;
    b->reading = true;
    t->posted += n;
    t->reads++;
    if (t->posted == t->bytes) list_remove(&t->turn);
}

/* A failed READ may be reported twice; the second time its bounce memory may be in use for another. */
void transfer_read_done(worker *w, const fab_wc *wc) {
    bounce *b = &w->bounces->piece[wc->wr_id % BOUNCES];
    transfer *t = b->t;
    if (!b->reading || (uint32_t)(wc->wr_id / BOUNCES) != b->generation) return;
    b->reading = false;
    t->reads--;
    if (wc->status == FAB_SUCCESS && t->failed == FKV_OK) {
        t->arrived += b->bytes;
        b->last = t->arrived == t->bytes; /* the copier copies in the order given, so that this is the last one */
        give_to_copier(t, &b->job, copy_piece);
        return;
    }
    b->t = NULL;
    fail(t, wc->status == FAB_REM_ACCESS_ERR ? FKV_REMOTE_ACCESS : FKV_DISCONNECTED);
}

/* A piece for each in turn while there is bounce memory, and a few for one client: clients that do not answer READs
 * keep theirs until the fabric gives up, and the others go on meanwhile. */
static void post_in_turn(worker *w) {
    fkv_list now;
    bounce *b;
    list_take_all(&w->bounces->turns, &now);
    while (!list_empty(&now) && (b = free_bounce(w))) {
        transfer *t = LIST_OF(now.next, transfer, turn);
        list_remove(&t->turn);
        if (t->failed != FKV_OK) continue;
        list_push(&w->bounces->turns, &t->turn);
        if (pieces_of(w, t->client) < PIECES_OF_CLIENT) post(w, t, b);
    }
    while (!list_empty(&now)) { /* not reached: first the next time */
        fkv_list *l = now.prev;
        list_remove(l);
        list_push_front(&w->bounces->turns, l);
    }
}

void transfers_step(worker *w) {
    for (fkv_list *l = w->transfers.next, *next; l != &w->transfers; l = next) {
        next = l->next;
        transfer *t = LIST_OF(l, transfer, link);
        if (t->failed != FKV_OK) continue;
        if (t->deadline_ns <= w->now_ns) fail(t, FKV_TIMEOUT);
    }
    post_in_turn(w);
}

uint64_t transfers_deadline(const worker *w) {
    for (fkv_list *l = w->transfers.next; l != &w->transfers; l = l->next) {
        const transfer *t = LIST_OF(l, transfer, link);
        if (t->failed == FKV_OK) return t->deadline_ns;
    }
    return UINT64_MAX;
}

/* ---- the client is going ---- */

void transfers_hurry(client *c) {
    for (fkv_list *l = c->w->transfers.next; l != &c->w->transfers; l = l->next) {
        transfer *t = LIST_OF(l, transfer, link);
        if (t->client != c || !t->direct) continue;
        if (t->failed == FKV_OK) t->failed = FKV_DISCONNECTED;
        __atomic_store_n(&t->cancelled, true, __ATOMIC_RELAXED);
    }
}

void transfer_orphan(op *o) {
    transfer *t = o->transfer;
    bounce_pool *p = o->worker->bounces;
    for (int i = 0; i < BOUNCES; i++) {
        bounce *b = &p->piece[i];
        if (b->t != t || !b->reading) continue;
        b->reading = false;
        b->t = NULL;
        t->reads--;
    }
    t->client = t->payer = NULL;
    fail(t, FKV_DISCONNECTED);
}
