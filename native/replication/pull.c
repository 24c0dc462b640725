/* pull.c: see pull.h.
 *
 *   ANNOUNCE -> [waits: memory, messages that are held] -> prepared -> READs of a CHUNK into the puller's memory, a few
 *   at a time; the copier copies each from there into the extent; the last one compares the checksum ---> whole: PULLED
 *
 * Invariant: an extent is given up only when no job of the copier can write to it any more; a piece of memory is used
 * again only when no READ can write to it. A pull that is dropped meanwhile holds its key in the table until then, which
 * `backup.dropping` counts; and the shard, since it is counted in `held`. */
#include "pull.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "../base/hash.h"
#include "../dataplane/worker.h"
#include "../table/words.h"
#include "replication.h"
#include "uplink.h"

enum { CHUNK = 256 << 10, PIECES = 4, PULLS_MAX = 4096 };
static const uint64_t WAIT_NS = 1000000;

struct pull {
    fkv_list of_copy; /* backup.pulls */
    fkv_list queue;   /* puller.queue, until it is whole */
    shard *shard;
    backup_record r; /* prepared.handle 0: not yet */
    uint64_t hash;
    fkv_peer_announce from;
    fkv_record record;
    uint8_t *key;
    uint32_t posted, arrived, jobs; /* bytes asked for, bytes that came; jobs at the copier */
    bool dropped;                   /* atomic: the copier may pass it over */
    bool right;                     /* the copier's: the checksum is the owner's */
    bool whole;
    bool tells;      /* PULLED is still to be said, with `said` */
    fkv_status said; /* not OK: there is no room, and none is taken */
};

typedef struct piece {
    job job;
    puller *p;
    pull *of; /* NULL: free, unless a READ still writes to it */
    uint8_t *at;
    uint32_t offset, bytes;
    bool reading, last;
} piece;

struct puller {
    worker *w;
    fkv_list queue; /* pulls that are not whole, or not told */
    pull *now;
    uint8_t *memory;
    fab_mr *mr;
    uint32_t jobs;
    bool orphan;
    enum { ATTACHED_NONE, ATTACHED_ASKED, ATTACHED } state;
    uint64_t rkey; /* of what is attached, or asked for */
    piece piece[PIECES];
};

/* ---- a link's ---- */

puller *puller_make(worker *w, uint32_t place) {
    puller *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->w = w;
    list_init(&p->queue);
    p->memory = aligned_alloc(4096, (size_t)PIECES * CHUNK);
    if (!p->memory || fab_reg_local(w->d->domain[place], p->memory, (size_t)PIECES * CHUNK, &p->mr) != 0) {
        free(p->memory);
        free(p);
        return NULL;
    }
    for (int i = 0; i < PIECES; i++) p->piece[i] = (piece){ .p = p, .at = p->memory + (size_t)i * CHUNK };
    return p;
}

static void end_if_over(puller *p) {
    if (!p->orphan || p->jobs) return;
    fab_dereg(p->mr);
    free(p->memory);
    free(p);
}

void puller_free(puller *p) {
    if (!p) return;
    fkv_assert(list_empty(&p->queue) && !p->now);
    p->orphan = true;
    end_if_over(p);
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

static void drop(puller *p, pull *x) {
    backup *b = x->shard->copy;
    if (p && p->now == x) p->now = NULL;
    if (x->r.prepared.handle) b->taken -= min_u64(b->taken, record_room(true, x->r.key_bytes, x->record.value_bytes));
    list_remove(&x->of_copy);
    list_remove(&x->queue);
    if (x->jobs) { /* mutation: bulk/freed-while-written */
        __atomic_store_n(&x->dropped, true, __ATOMIC_RELAXED);
        b->dropping++;
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

/* A piece that a READ writes to stays taken until the READ has ended. */
static void forget_pieces(puller *p, const pull *x) {
    for (int i = 0; p && i < PIECES; i++)
        if (p->piece[i].reading && p->piece[i].of == x) p->piece[i].of = NULL;
}

void pull_forget(backup *b, uint64_t version) {
    pull *x = find(b, version);
    if (!x) return;
    puller *p = uplink_puller(b->uplink);
    forget_pieces(p, x);
    drop(p, x);
}

void pulls_drop(backup *b) {
    puller *p = b->uplink ? uplink_puller(b->uplink) : NULL;
    while (!list_empty(&b->pulls)) {
        pull *x = LIST_OF(b->pulls.next, pull, of_copy);
        forget_pieces(p, x);
        drop(p, x);
    }
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
    backup *b = x->shard->copy;
    if (x->r.prepared.handle || x->said != FKV_OK) return;
    x->shard->touched = true;
    table_set_wall(x->shard->table, x->shard->w->wall_ms);
    backup_hears(b, x->from.epoch, x->from.committed); /* mutation: bulk/prepared-too-early */
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

/* ---- the copier's part ---- */

/* The owner's checksum is of its own extent, whose header differs from this one's in the segment's tag alone. */
static bool is_right(const pull *x) {
    const fkv_extent *e = x->r.prepared.extent;
    fkv_extent owners = *e;
    owners.tag = x->from.tag;
    uint32_t crc = fkv_crc32c(0, (const uint8_t *)&owners + 8, FKV_EXTENT_HEADER - 8);
    size_t bytes = (size_t)x->record.key_bytes + x->record.value_bytes;
    return fkv_crc32c(crc, (const uint8_t *)e + FKV_EXTENT_HEADER, bytes) == x->from.crc; /* mutation: bulk/checksum */
}

static void copied(job *j) {
    piece *q = (piece *)j;
    puller *p = q->p;
    pull *x = q->of;
    q->of = NULL;
    p->w->copying--;
    p->jobs--;
    x->jobs--;
    if (x->dropped && x->jobs == 0) {
        x->shard->copy->dropping--;
        unprepare(x);
        free_pull(x);
    } else if (q->last && !x->dropped) {
        x->whole = true;
        p->now = NULL;
        tell(x, FKV_OK);
    }
    end_if_over(p);
}

static void copy(job *j) {
    piece *q = (piece *)j;
    pull *x = q->of;
    if (!__atomic_load_n(&x->dropped, __ATOMIC_RELAXED)) {
        fkv_copy_in(x->r.prepared.value + q->offset, q->at, q->bytes);
        if (q->last) x->right = is_right(x);
        if (q->last && x->right) table_seal(x->shard->table, &x->r.prepared);
    }
    q->job.run = copied;
    worker_post(q->p->w, &q->job);
}

/* ---- READs ---- */

bool puller_event(puller *p, const fab_wc *wc) {
    if (wc->opcode == FAB_WC_ATTACH) {
        if (p->state == ATTACHED_ASKED) p->state = wc->status == FAB_SUCCESS ? ATTACHED : ATTACHED_NONE;
        return wc->status == FAB_SUCCESS;
    }
    if (wc->status != FAB_SUCCESS) return false;
    piece *q = &p->piece[wc->wr_id % PIECES];
    pull *x = q->of;
    q->reading = false;
    if (!x) return true; /* dropped meanwhile */
    x->arrived += q->bytes;
    q->last = x->arrived == x->record.value_bytes;
    q->job.run = copy;
    x->jobs++;
    p->jobs++;
    p->w->copying++;
    helper_post(&p->w->d->copier, &q->job);
    return true;
}

static bool is_attached(const puller *p, const pull *x) { return p->state == ATTACHED && p->rkey == x->from.rkey; }

static bool reads(const puller *p) {
    for (int i = 0; i < PIECES; i++)
        if (p->piece[i].reading) return true;
    return false;
}

/* The region of the owner's that the value lies in: one is attached at a time. A READ fails when its region goes, and
 * the connection with it: READs of what was forgotten end first. */
static bool attach(puller *p, fab_conn *c, const pull *x) {
    if (p->state == ATTACHED && p->rkey != x->from.rkey && !reads(p)) {
        fab_detach(c, p->rkey);
        p->state = ATTACHED_NONE;
    }
    if (p->state != ATTACHED_NONE) return true;
    p->rkey = x->from.rkey;
    int e = fab_attach(c, p->rkey, x->from.region_addr, x->from.region_bytes, 0);
    if (e == 0) p->state = ATTACHED_ASKED;
    return e == 0 || e == -EAGAIN || e == -EEXIST;
}

static bool post(puller *p, fab_conn *c, pull *x) {
    for (int i = 0; i < PIECES && x->posted < x->record.value_bytes; i++) {
        piece *q = &p->piece[i];
        if (q->of || q->reading) continue;
        uint32_t left = x->record.value_bytes - x->posted, n = left < CHUNK ? left : CHUNK;
        fab_read r = { .wr_id = (uint64_t)i,
                       .local = q->at,
                       .local_mr = p->mr,
                       .remote_addr = x->from.addr + x->posted,
                       .rkey = x->from.rkey,
                       .bytes = n };
        int taken = fab_post_reads(c, &r, 1);
        if (taken < 0) return false;
        if (taken == 0) return true;
        q->of = x;
        q->offset = x->posted;
        q->bytes = n;
        q->reading = true;
        q->last = false;
        x->posted += n;
    }
    return true;
}

/* ---- a turn ---- */

/* What has come, and what there is no room for. */
static bool say(pull *x, const pull_out *out) {
    if (x->whole && !x->right) return false; /* bytes changed on their way */
    fkv_peer_bulk m = { .op = FKV_PEER_PULLED,
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

bool puller_step(puller *p, fab_conn *c, const pull_out *out) {
    for (fkv_list *l = p->queue.next, *next; l != &p->queue; l = next) {
        next = l->next;
        pull *x = LIST_OF(l, pull, queue);
        backup *b = x->shard->copy;
        if (b->failed != FKV_OK) continue;
        if (list_empty(&b->held)) prepare(x);
        if (!p->now && x->r.prepared.handle && !x->whole) p->now = x;
        if (x->tells && !say(x, out)) return false;
    }
    if (!p->now) return true;
    if (!attach(p, c, p->now)) return false;
    return is_attached(p, p->now) ? post(p, c, p->now) : true;
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
