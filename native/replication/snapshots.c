/* snapshots.c: see snapshots.h. */
#include "snapshots.h"
#include "../dataplane/command.h"
#include "../dataplane/worker.h"
#include "backup.h"
#include "durable.h"
#include "integrity.h"
#include "owner_link.h"
#include "recovery.h"

static const uint64_t MS = 1000000, STEP_NS = 250000, LOOK_NS = 20000000, RETRY_NS = 60000000000;

static snapshots *of_worker(const worker *w) { return &w->repl.log->snapshots; }

static void answer(fkv_list *commands, fkv_status status) {
    while (!list_empty(commands)) {
        command *c = LIST_OF(commands->next, command, importing);
        list_remove(&c->importing);
        command_done(c, status, NULL);
    }
}

/* ---- the log is given back ---- */

/* What is not open here is of a copy that is gone for ever. */
static bool is_covered(void *arg, const wal_reach *r) {
    const worker *w = arg;
    const shard *s = r->shard < w->d->c.shards ? w->by_number[r->shard] : NULL;
    /* mutation: snapshots/log-of-the-lost-given-back */
    if (!s || s->repl.logged_as != r->copy || s->state == SHARD_CLOSING) return !recovery_keeps(w, r->shard, r->copy);
    const shard_snapshot *p = &s->repl.snapshot;
    /* mutation: snapshots/log-given-back */
    return p->made && r->end - 1 <= p->has.committed && r->epoch <= p->has.epoch;
}

/* ---- begun and ended ---- */

/* What has its number as committed is in the table, and the beginning of the epoch is in the log. */
static bool may_begin(const shard *s) {
    bool is_sound = !s->repl.copy || s->repl.copy->leads || s->repl.copy->failed == FKV_OK;
    return is_sound && s->state != SHARD_CLOSING && list_empty(&s->repl.imports) && list_empty(&s->w->ready) &&
           durable_has_begun(s); /* mutation: snapshots/before-epoch */
}

static void begin(snapshots *x, shard *s) {
    shard_snapshot *p = &s->repl.snapshot;
    const snapshot_head h = { .copy = s->repl.logged_as,
                              .shard = s->number,
                              .epoch = durable_epoch(s),
                              .committed = durable_committed(s),
                              .buckets = table_buckets(s->table) };
    list_remove(&p->wanted);
    x->of = s;
    x->walks = true;
    x->holds = false;
    p->begun = (snapshot_mark){ .epoch = h.epoch, .committed = h.committed };
    list_take_all(&p->asking, &p->waiting);
    snapshot_begin(&x->writer, &h);
    walk_begin(&x->walk, s, &x->writer);
}

static void begin_next(snapshots *x) {
    for (fkv_list *l = x->wanted.next; l != &x->wanted; l = l->next) {
        shard *s = LIST_OF(l, shard, repl.snapshot.wanted);
        if (may_begin(s)) return begin(x, s);
    }
    x->next_ns = x->w->now_ns + LOOK_NS;
}

static void wants_one(shard *s) {
    fkv_list *l = &s->repl.snapshot.wanted;
    if (list_empty(l)) list_push(&of_worker(s->w)->wanted, l);
}

/* Whoever waits for the copy may rely on it now. */
static void saved(shard *s) {
    s->repl.snapshot.owed = false;
    s->attended = true;
    if (s->repl.copy) owner_link_owes(s->repl.copy);
}

static void made(snapshots *x, shard *s) {
    shard_snapshot *p = &s->repl.snapshot;
    p->made = true;
    p->error = 0;
    p->has = p->begun; /* mutation: snapshots/claims-its-end */
    x->trims = true;
    if (p->owed) saved(s);
    answer(&p->waiting, FKV_OK);
    if (!list_empty(&p->asking)) wants_one(s);
}

/* The one before is there, and the log that goes on behind it. */
static void failed(snapshots *x, shard *s, snapshot_outcome o, const disk_failure *f) {
    const dataplane_config *c = &x->w->d->c;
    if (c->on_snapshot_failed) c->on_snapshot_failed(c->ctx, s->number, f->operation, f->file, f->error);
    s->repl.snapshot.error = f->error;
    wants_one(s);
    answer(&s->repl.snapshot.waiting, o == SNAPSHOT_NO_SPACE ? FKV_TABLE_FULL : FKV_CORRUPT);
    x->next_ns = x->w->now_ns + RETRY_NS;
}

static void ended(void *owner, snapshot_outcome o, const disk_failure *f) {
    snapshots *x = owner;
    shard *s = x->of;
    x->of = NULL;
    x->walks = false;
    if (o == SNAPSHOT_UNCERTAIN) wal_fail(&x->w->repl.log->wal, f); /* names of the log's files lie there too */
    if (!s) return;
    if (o == SNAPSHOT_DONE)
        made(x, s);
    else
        failed(x, s, o, f);
}

static void room(void *owner) { ((snapshots *)owner)->next_ns = 0; }

/* ---- wanted ---- */

static void want_oldest(void *arg, const wal_reach *r) {
    worker *w = arg;
    shard *s = r->shard < w->d->c.shards ? w->by_number[r->shard] : NULL;
    if (!is_covered(w, r) && s && of_worker(w)->of != s) wants_one(s);
}

/* A log that is longer than the tables is given back from its oldest file on: by snapshots of whose records are there, be
 * they few. */
static void look_at_log(snapshots *x) {
    const wal *g = &x->w->repl.log->wal;
    uint64_t kept = wal_kept_bytes(g), live = 0;
    x->files = wal_kept_files(g);
    for (const fkv_list *l = x->w->shards.next; l != &x->w->shards; l = l->next) {
        table_stats t;
        if (!LIST_OF(l, const shard, of_worker)->durable) continue;
        table_get_stats(LIST_OF(l, const shard, of_worker)->table, &t);
        live += t.live_extent_bytes;
    }
    uint64_t most = max_u64(x->w->d->c.log.snapshot_bytes, live);
    wal_may_keep(&x->w->repl.log->wal, most);
    if (kept > most) wal_oldest(g, want_oldest, x->w);
}

void snapshots_ask(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    if (!s || s->state == SHARD_CLOSING || !s->durable) {
        command_done(c, !s ? command_none(c) : s->durable ? FKV_BUSY : FKV_UNSUPPORTED, NULL);
        return;
    }
    /* A new one, which is to be on the disk before it is served: its epoch begins with that. */
    if (s->state == SHARD_OPEN && !s->repl.copy && !s->repl.snapshot.owed && !durable_has_begun(s)) durable_begins(s);
    list_push(&s->repl.snapshot.asking, &c->importing);
    if (of_worker(s->w)->of != s) wants_one(s);
}

void snapshots_owe(shard *s) {
    s->repl.snapshot.owed = true;
    wants_one(s);
}

/* ---- turns ---- */

static void finish(snapshots *x) {
    shard *s = x->of;
    uint64_t now = x->w->now_ns, doubt = dedup_doubt_ns(&x->w->dedup, s->slot);
    x->foot = (snapshot_foot){ .last = durable_committed(s),
                               .epoch = durable_epoch(s),
                               .digest = integrity_digest(s),
                               .doubt_ms = doubt > now ? (uint32_t)((doubt - now + MS - 1) / MS) : 0 };
    x->holds = true;
    durable_hurry(x->w);
}

/* What the walk saw may be in the log's buffer alone. A snapshot that were ahead of the log would be no copy. */
static void let_go(snapshots *x) {
    if (!durable_reaches(x->of, x->foot.last)) {
        x->next_ns = x->w->now_ns + STEP_NS;
        return;
    }
    x->walks = x->holds = false;
    snapshot_finish(&x->writer, &x->foot);
}

static void go_on(snapshots *x) {
    if (x->holds) {
        let_go(x);
        return;
    }
    walk_result r = walk_step(&x->walk, x->w->now_ns);
    x->next_ns = x->w->now_ns + STEP_NS;
    if (r == WALK_WAITS) x->next_ns = snapshot_due_ns(&x->writer, x->w->now_ns);
    if (r == WALK_IS_OVER && list_empty(&x->w->ready)) {
        finish(x);
        let_go(x);
    }
}

void snapshots_step(snapshots *x) {
    if (x->trims) {
        x->trims = false;
        wal_trim(&x->w->repl.log->wal, is_covered, x->w);
        look_at_log(x);
    }
    if (x->files != wal_kept_files(&x->w->repl.log->wal)) look_at_log(x);
    if (x->w->now_ns < x->next_ns) return;
    if (x->walks)
        go_on(x);
    else if (snapshot_is_idle(&x->writer) && !list_empty(&x->wanted))
        begin_next(x);
}

uint64_t snapshots_deadline(const snapshots *x) {
    bool waits = snapshot_is_idle(&x->writer) && !list_empty(&x->wanted);
    return x->trims ? 0 : x->walks || waits ? x->next_ns : UINT64_MAX;
}

/* ---- life ---- */

int snapshots_open(snapshots *x, worker *w) {
    const dataplane_log *c = &w->d->c.log;
    *x = (snapshots){ .w = w, .trims = true }; /* of copies that are not wanted */
    list_init(&x->wanted);
    snapshot_config k = { .disk = c->disk,
                          .of = durable_identity(w->d, w->number),
                          .chunk_bytes = c->chunk_bytes,
                          .bytes_per_s = c->snapshot_bytes_per_s,
                          .writer = &w->d->snapshots,
                          .home = &w->box,
                          .owner = x,
                          .room = room,
                          .ended = ended };
    int e = snapshot_open(&x->writer, &k);
    x->open = e == 0;
    return e;
}

void snapshots_stop(snapshots *x) {
    if (x->open) snapshot_stop(&x->writer);
}
void snapshots_free(snapshots *x) {
    if (x->open) snapshot_free(&x->writer);
}

void snapshots_leave(shard *s, fkv_status why) {
    snapshots *x = s->durable ? of_worker(s->w) : NULL;
    list_remove(&s->repl.snapshot.wanted);
    answer(&s->repl.snapshot.asking, why);
    answer(&s->repl.snapshot.waiting, why);
    if (!x || x->of != s) return;
    x->of = NULL;
    x->walks = false;
}

/* One that is about to get its name gets it before it is removed. */
void snapshots_end(shard *s) {
    if (!s->durable) return;
    snapshots *x = of_worker(s->w);
    if (x->of == s) snapshot_drop(&x->writer);
    snapshots_leave(s, FKV_ABORTED);
    snapshot_remove(&x->writer, s->number, s->repl.logged_as);
    x->trims = true;
}
