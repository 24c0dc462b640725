/* transfer.c: large values. The request names memory of the client; the owner brings the value from there straight into the
 * extent that was prepared for it, which no reader accepts while it is PENDING.
 *
 *   attach the client's region -> shm:    the copier reads the client's memory through its mapping ------> seal -> ready
 *                                 others: READs of CHUNK bytes, a few at a time, into the extent ---> copier: seal -> ready
 *
 * What takes time in proportion to the value (copy, CRC) is done by the copier; the data-plane thread only posts READs and looks
 * at their ends, so small requests go on in between. The client may change its memory meanwhile: the CRC is computed from
 * the extent afterwards, and nothing is decided by what was read.
 * Invariant: an extent is aborted only when no READ and no job can write to it any more, and a connection is freed only when no
 * job reads its client's memory any more. */
#include <stdlib.h>
#include <string.h>
#include "../table/words.h"
#include "internal.h"

enum { CHUNK = 256 << 10, READS_OF_ONE = 2, READS_OF_ALL = 8, COPY_STEP = 1 << 20 };

typedef enum { ATTACHING, READING, COPYING } stage;

struct transfer {
    job job;
    fkv_list link;               /* group.transfers */
    op *op;
    client *client;
    attachment *region;          /* of the client */
    fkv_rendezvous from;
    uint8_t *to;
    const uint8_t *direct;       /* the value in the client's memory, where that is mapped here */
    fab_mr *local;
    stage stage;
    uint32_t bytes, posted, done, reads;
    fkv_status failed;           /* OK: not */
    bool cancelled;              /* atomic: the copier may stop */
    uint64_t deadline_ns;
};

bool transfer_admit(const client *c, uint32_t bytes) {
    uint64_t all = c->g->d->c.transfer_bytes, one = max_u64(all / 2, FKV_VALUE_MAX);
    return c->g->transfer_bytes + bytes <= all && c->transfer_bytes + bytes <= one;
}

/* ---- the end ---- */

static void end(transfer *t) {
    group *g = t->op->group;
    op *o = t->op;
    fkv_status s = t->failed;
    g->transfer_bytes -= t->bytes;
    if (t->client) {
        t->client->transfer_bytes -= t->bytes;
        t->region->users--;
        t->region->used_ns = g->now_ns;
    }
    g->feed_starved = true;
    o->transfer = NULL;
    list_remove(&t->link);
    free(t);
    if (s == FKV_OK) {
        g->stats.transfers++;
        change_ready(o);
    } else {
        change_abort(o, s);
    }
}

static void fail(transfer *t, fkv_status s) {
    if (t->failed == FKV_OK) t->failed = s;
    if (t->stage == COPYING) __atomic_store_n(&t->cancelled, true, __ATOMIC_RELAXED);
    else if (t->reads == 0) end(t);
}

bool transfer_fail(op *o, fkv_status s) {
    if (o->transfer->failed != FKV_OK) return false;
    fail(o->transfer, s);
    return true;
}

/* ---- the copier's part ---- */

static void copied(job *j) {
    transfer *t = (transfer *)j;
    t->op->group->copying--;
    if (t->direct) t->client->copying--;
    end(t);
}

static void copy_and_seal(job *j) {
    transfer *t = (transfer *)j;
    bool cancelled = false;
    for (uint32_t at = 0; t->direct && at < t->bytes && !cancelled; at += COPY_STEP) {
        uint32_t left = t->bytes - at;
        fkv_copy_in(t->to + at, t->direct + at, left < COPY_STEP ? left : COPY_STEP);
        cancelled = __atomic_load_n(&t->cancelled, __ATOMIC_RELAXED);
    }
    if (!cancelled) table_seal(t->op->shard->table, &t->op->prepared);
    t->job.run = copied;
    group_post(t->op->group, &t->job);
}

static void give_to_copier(transfer *t) {
    group *g = t->op->group;
    t->stage = COPYING;
    g->copying++;
    if (t->direct) t->client->copying++;
    t->job.run = copy_and_seal;
    worker_post(&g->d->copier, &t->job);
}

/* ---- attaching ---- */

static void attached(transfer *t) {
    const uint8_t *base = fab_direct(t->client->conn, t->from.rkey);
    t->stage = READING;
    if (!base) return;   /* transfers_step posts the READs */
    t->direct = base + (t->from.addr - t->from.region_addr);
    give_to_copier(t);
}

void transfer_attached(client *c, const fab_wc *wc) {
    attachment *a = &c->attached[wc->wr_id % ATTACHMENTS];
    if (c->doomed || a->state != ATTACH_ASKED) return;
    a->state = wc->status == FAB_SUCCESS ? ATTACH_READY : ATTACH_NONE;
    fkv_status s = wc->status == FAB_REM_ACCESS_ERR ? FKV_REMOTE_ACCESS : FKV_DISCONNECTED;
    for (fkv_list *l = c->g->transfers.next, *next; l != &c->g->transfers; l = next) {
        next = l->next;
        transfer *t = LIST_OF(l, transfer, link);
        if (t->client != c || t->region != a || t->stage != ATTACHING) continue;
        if (a->state == ATTACH_READY) attached(t);
        else fail(t, s);
    }
}

/* The client's region as an attachment: the one there is, or a free or long unused place for it. */
static attachment *attachment_for(client *c, const fkv_rendezvous *r) {
    attachment *place = NULL;
    for (int i = 0; i < ATTACHMENTS; i++) {
        attachment *a = &c->attached[i];
        if (a->state != ATTACH_NONE && a->rkey == r->rkey && a->addr == r->region_addr && a->bytes == r->region_bytes) return a;
        if (a->state == ATTACH_ASKED || a->users) continue;
        if (!place || a->state == ATTACH_NONE || (place->state != ATTACH_NONE && a->used_ns < place->used_ns)) place = a;
    }
    if (!place) return NULL;
    if (place->state == ATTACH_READY) fab_detach(c->conn, place->rkey);
    *place = (attachment){ .rkey = r->rkey, .addr = r->region_addr, .bytes = r->region_bytes };
    return place;
}

static fab_mr *local_mr(const op *o, fab_provider p) {
    for (const segment *s = o->shard->segments; s; s = s->next) {
        if (o->prepared.value >= s->region.base && o->prepared.value < s->region.base + s->region.bytes) return s->local[p];
    }
    return NULL;
}

fkv_status transfer_begin(op *o) {
    client *c = o->client;
    group *g = o->group;
    transfer *t = calloc(1, sizeof *t);
    if (!t || !op_detach(o)) {
        free(t);
        return FKV_NO_MEMORY;
    }
    memcpy(&t->from, o->body, sizeof t->from);
    t->region = attachment_for(c, &t->from);
    int e = 0;
    if (t->region && t->region->state == ATTACH_NONE) {
        e = fab_attach(c->conn, t->from.rkey, t->from.region_addr, t->from.region_bytes, (uint64_t)(t->region - c->attached));
        if (e == 0) t->region->state = ATTACH_ASKED;
    }
    if (!t->region || e) {
        free(t);
        return e ? FKV_DISCONNECTED : FKV_BUSY;
    }
    t->op = o;
    t->client = c;
    t->to = o->prepared.value;
    t->bytes = o->request.value_bytes;
    t->local = local_mr(o, c->provider);
    t->deadline_ns = g->now_ns + (uint64_t)g->d->c.transfer_ms * 1000000u;
    t->region->users++;
    g->transfer_bytes += t->bytes;
    c->transfer_bytes += t->bytes;
    o->transfer = t;
    o->state = OP_TRANSFERS;
    list_push(&g->transfers, &t->link);
    if (t->region->state == ATTACH_READY) attached(t);
    return FKV_OK;
}

/* ---- READs ---- */

static void post(group *g, transfer *t) {
    uint32_t left = t->bytes - t->posted, n = left < CHUNK ? left : CHUNK;
    fab_read r = { .wr_id = (uint64_t)(uintptr_t)t, .local = t->to + t->posted, .local_mr = t->local,
                   .remote_addr = t->from.addr + t->posted, .rkey = t->from.rkey, .bytes = n };
    int taken = fab_post_reads(t->client->conn, &r, 1);
    if (taken < 0) fail(t, FKV_DISCONNECTED);
    if (taken <= 0) return;
    t->posted += n;
    t->reads++;
    g->transfer_reads++;
}

void transfer_read_done(group *g, const fab_wc *wc) {
    transfer *t = (transfer *)(uintptr_t)wc->wr_id;
    t->reads--;
    g->transfer_reads--;
    if (wc->status != FAB_SUCCESS && t->failed == FKV_OK) {
        t->failed = wc->status == FAB_REM_ACCESS_ERR ? FKV_REMOTE_ACCESS : FKV_DISCONNECTED;
    }
    if (t->reads) return;
    if (t->failed) end(t);
    else if (t->posted == t->bytes) give_to_copier(t);
}

void transfers_step(group *g) {
    for (fkv_list *l = g->transfers.next, *next; l != &g->transfers; l = next) {
        next = l->next;
        transfer *t = LIST_OF(l, transfer, link);
        bool late = t->deadline_ns <= g->now_ns;
        if (late && t->failed == FKV_OK) fail(t, FKV_TIMEOUT);
        else if (!late && t->stage == READING && !t->failed && t->posted < t->bytes && t->reads < READS_OF_ONE &&
                 g->transfer_reads < READS_OF_ALL) post(g, t);
    }
}

uint64_t transfers_deadline(const group *g) {
    for (fkv_list *l = g->transfers.next; l != &g->transfers; l = l->next) {
        const transfer *t = LIST_OF(l, transfer, link);
        if (t->failed == FKV_OK) return t->deadline_ns;
    }
    return UINT64_MAX;
}

/* ---- the client is going ---- */

void transfers_hurry(client *c) {
    for (fkv_list *l = c->g->transfers.next; l != &c->g->transfers; l = l->next) {
        transfer *t = LIST_OF(l, transfer, link);
        if (t->client != c || t->stage != COPYING) continue;
        if (t->failed == FKV_OK) t->failed = FKV_DISCONNECTED;
        __atomic_store_n(&t->cancelled, true, __ATOMIC_RELAXED);
    }
}

void transfer_orphan(op *o) {
    transfer *t = o->transfer;
    if (t->failed == FKV_OK) t->failed = FKV_DISCONNECTED;
    if (t->stage != COPYING) {
        o->group->transfer_reads -= t->reads;
        t->reads = 0;
        end(t);
        return;
    }
    __atomic_store_n(&t->cancelled, true, __ATOMIC_RELAXED);
    t->client = NULL;   /* its memory is not read any more, only the extent is worked on */
}
