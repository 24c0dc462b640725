/* pull.c: see pull.h.
 *
 *   VALUE_OFFER -> [waits: memory, messages that are held] -> prepared -> fetched into its extent; the copier compares the
 *   checksum ---> whole: VALUE_READ
 *
 * A pull that is dropped while it is fetched holds its key in the table until the copier has done with it, which
 * `backup.dropping` counts; and the shard, since it is counted in `held`. */
#include "pull.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "../base/hash.h"
#include "../dataplane/worker.h"
#include "replication.h"

enum { PULLS_MAX = 4096 };
static const uint64_t WAIT_NS = 1000000;

struct pull {
    fetch fetch;      /* while it is puller.now, or dropped */
    fkv_list of_copy; /* backup.pulls */
    fkv_list queue;   /* puller.queue, until it is told */
    puller *puller;
    shard *shard;
    backup_record r; /* prepared.handle 0: not yet */
    uint64_t hash;
    fkv_peer_value_offer from;
    fkv_record record;
    uint8_t *key;
    bool dropped;
    bool right; /* the copier's: the checksum is the owner's */
    bool whole;
    bool tells;      /* VALUE_READ is still to be said, with `said` */
    fkv_status said; /* not OK: there is no room, and none is taken */
};

struct puller {
    worker *w;
    fetch_source source;
    fkv_list queue; /* pulls that are not whole, or not told */
    pull *now;      /* being fetched */
    bool broken;
};

/* ---- a connection's ---- */

static bool may_read(worker *w, uint32_t place) {
    if (!w->repl.pulls) w->repl.pulls = fetch_pool_make(&w->d->copier, &w->box);
    return w->repl.pulls && fetch_pool_register(w->repl.pulls, w->d->domain[place], place) == 0;
}

puller *puller_make(worker *w, fab_conn *c, uint32_t place) {
    puller *p = may_read(w, place) ? calloc(1, sizeof *p) : NULL;
    if (!p) return NULL;
    p->w = w;
    /* Without a mapping, so that the connection can be freed at any time. */
    fetch_source_init(&p->source, c, place, false);
    list_init(&p->queue);
    return p;
}

void puller_free(puller *p) {
    if (!p) return;
    fkv_assert(list_empty(&p->queue) && !p->now);
    fetch_source_end(p->w->repl.pulls, &p->source);
    free(p);
}

bool puller_broken(const puller *p) { return p->broken; }

void puller_event(puller *p, const fab_wc *wc) {
    if (wc->opcode == FAB_WC_ATTACH)
        fetch_source_attached(&p->source, wc);
    else
        fetch_pool_read(p->w->repl.pulls, wc);
}

/* ---- the end of a pull ---- */

static void free_pull(pull *x) {
    list_remove(&x->of_copy);
    list_remove(&x->queue);
    free(x->key);
    free(x);
}

static void unprepare(pull *x) {
    shard *s = x->shard;
    if (!x->r.prepared.handle) return;
    table_abort(s->table, &x->r.prepared);
    s->held--;
    s->tick_ns = min_u64(s->tick_ns, s->w->now_ns);
    wait_key_free(s->w, x->hash);
}

/* READs that are under way bring nothing any more; the link does not wait for them. */
static void drop(pull *x) {
    backup *b = x->shard->repl.copy;
    puller *p = x->puller;
    if (x->r.prepared.handle) b->taken -= min_u64(b->taken, record_room(true, x->r.key_bytes, x->record.value_bytes));
    list_remove(&x->of_copy);
    list_remove(&x->queue);
    if (p->now == x) { /* mutation: bulk/dropped-while-fetched */
        p->now = NULL;
        x->dropped = true;
        b->dropping++;
        fetch_abandon(&x->fetch, FKV_ABORTED);
        return;
    }
    unprepare(x);
    free_pull(x);
}

static pull *find(const backup *b, uint64_t version) {
    for (const fkv_list *l = b->pulls.next; l != &b->pulls; l = l->next)
        if (LIST_OF(l, pull, of_copy)->record.version == version) return LIST_OF(l, pull, of_copy);
    return NULL;
}

void pull_forget(backup *b, uint64_t version) {
    pull *x = find(b, version);
    if (x) drop(x);
}

void pulls_drop(backup *b) {
    while (!list_empty(&b->pulls)) drop(LIST_OF(b->pulls.next, pull, of_copy));
}

/* ---- announced, prepared ---- */

backup_result pull_begin(puller *p, backup *b, const fkv_peer_message *m) {
    const uint8_t *key, *value;
    uint32_t at = 0, others = 0;
    fkv_record r;
    wire_next_record(m->body, m->bytes, &at, &r, &key, &value);
    if (find(b, r.version)) return BACKUP_TOOK; /* its change has a number meanwhile, and nobody waited for this copy */
    for (const fkv_list *l = b->pulls.next; l != &b->pulls; l = l->next) others++;
    pull *x = others < PULLS_MAX ? calloc(1, sizeof *x) : NULL;
    if (!x) return BACKUP_ANEW;
    x->record = r;
    x->key = malloc(r.key_bytes);
    if (!x->key) {
        free(x);
        return BACKUP_ANEW;
    }
    memcpy(x->key, key, r.key_bytes);
    x->puller = p;
    x->shard = b->shard;
    x->from = m->announce;
    list_push(&b->pulls, &x->of_copy);
    list_push(&p->queue, &x->queue);
    return BACKUP_TOOK;
}

static void tell(pull *x, fkv_status s) {
    x->tells = true;
    x->said = s;
}

/* In the order of messages: what came before it is prepared. */
static void prepare(pull *x) {
    backup *b = x->shard->repl.copy;
    if (x->r.prepared.handle || x->said != FKV_OK) return;
    x->shard->touched = true;
    table_set_wall(x->shard->table, x->shard->w->wall_ms);
    backup_on_commit_index(b, x->from.epoch, x->from.committed); /* mutation: bulk/prepared-too-early */
    fkv_status s = backup_prepares(b, &x->record, x->key, &x->r, &x->hash);
    switch (s) {
    case FKV_OK:
        b->taken += record_room(true, x->record.key_bytes, x->record.value_bytes);
        x->shard->held++;
        break;
    case FKV_BUSY: x->shard->tick_ns = min_u64(x->shard->tick_ns, x->shard->w->now_ns + WAIT_NS); break;
    case FKV_TABLE_FULL: tell(x, FKV_TABLE_FULL); break;
    default: backup_fails(b, s); break;
    }
}

/* ---- fetched ---- */

/* The owner's checksum is of its own extent, whose header differs from this one's in the segment's tag alone. */
static bool is_right(const pull *x) {
    const fkv_extent *e = x->r.prepared.extent;
    fkv_extent owners = *e;
    owners.tag = x->from.tag;
    uint32_t crc = fkv_crc32c(0, (const uint8_t *)&owners + 8, FKV_EXTENT_HEADER - 8);
    size_t bytes = (size_t)x->record.key_bytes + x->record.value_bytes;
    return fkv_crc32c(crc, (const uint8_t *)e + FKV_EXTENT_HEADER, bytes) == x->from.crc; /* mutation: bulk/checksum */
}

static void check(fetch *f) {
    pull *x = (pull *)f;
    x->right = is_right(x);
    if (x->right) table_seal(x->shard->table, &x->r.prepared);
}

static void ended(fetch *f) {
    pull *x = (pull *)f;
    if (x->dropped) {
        x->shard->repl.copy->dropping--;
        unprepare(x);
        free_pull(x);
        return;
    }
    x->puller->now = NULL;
    x->whole = f->failed == FKV_OK;
    x->puller->broken = !x->whole;
    if (x->whole) tell(x, FKV_OK);
}

/* BUSY: later. */
static fkv_status begin(puller *p, pull *x) {
    static const fetch_use USE = { .whole = check, .ended = ended };
    const fkv_peer_value_offer *a = &x->from;
    fkv_rendezvous from = { a->rkey, a->addr, a->region_addr, a->region_bytes };
    fkv_status s = fetch_begin(&x->fetch, p->w->repl.pulls, &p->source, &from, x->r.prepared.value,
                               x->record.value_bytes, &USE);
    if (s == FKV_OK) p->now = x;
    if (s == FKV_BUSY) x->shard->tick_ns = min_u64(x->shard->tick_ns, p->w->now_ns + WAIT_NS);
    return s;
}

/* ---- a turn ---- */

/* What has come, and what there is no room for. */
static bool say(pull *x, const pull_out *out) {
    if (x->whole && !x->right) return false; /* bytes changed on their way */
    fkv_peer_bulk m = { .op = FKV_PEER_VALUE_READ,
                        .status = (uint8_t)x->said,
                        .shard = x->shard->number,
                        .epoch = x->from.epoch,
                        .version = x->record.version };
    int e = out->send(out->ctx, &m, sizeof m);
    if (e == -EAGAIN) return true;
    x->tells = false;
    list_remove(&x->queue);
    return e == 0;
}

bool puller_step(puller *p, const pull_out *out) {
    fkv_status began = FKV_OK;
    if (p->broken) return false;
    for (fkv_list *l = p->queue.next, *next; l != &p->queue; l = next) {
        next = l->next;
        pull *x = LIST_OF(l, pull, queue);
        backup *b = x->shard->repl.copy;
        if (b->failed != FKV_OK) continue;
        if (list_empty(&b->held)) prepare(x);
        if (!p->now && x->r.prepared.handle && !x->whole && began != FKV_BUSY) began = begin(p, x);
        if (began != FKV_OK && began != FKV_BUSY) return false;
        if (x->tells && !say(x, out)) return false;
    }
    return true;
}

/* ---- its record ---- */

backup_result pull_take(backup *b, uint64_t version, backup_record *out) {
    pull *x = find(b, version);
    if (!x) return BACKUP_ANEW;
    prepare(x); /* all that came before it was taken */
    if (b->failed != FKV_OK) return BACKUP_FAILED;
    if (x->said != FKV_OK) return backup_fails(b, x->said); /* it has a number: it can not be refused */
    /* mutation: bulk/half-a-value */
    if (!x->whole || !x->right) return BACKUP_WAITS;
    *out = x->r;
    x->shard->held--;
    free_pull(x);
    return BACKUP_TOOK;
}
