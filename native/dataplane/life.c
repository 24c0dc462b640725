/* life.c: shards come, are served, get their background work, and go: the worker's side. Memory is made and freed
 * elsewhere (memory.c).
 *
 * A shard that is being closed answers nothing any more, its table is not touched any more, and it waits until every
 * lease that covers it has run out: until then what clients READ there is still the truth, since nobody else has the
 * shard yet. One that is paused is as quiet, and keeps what it has: it is another owner's soon, or goes on. */
#include "life.h"
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "base.h"
#include "client.h"
#include "copies.h"
#include "durable.h"
#include "handover.h"
#include "import.h"
#include "integrity.h"
#include "memory.h"
#include "op.h"
#include "rely.h"
#include "replicate.h"
#include "snapshots.h"
#include "stream.h"
#include "transfer.h"
#include "uplink.h"
#include "wait.h"

static const uint64_t MS = 1000000;
enum { BUSY_TICK_MS = 20, REST_TICK_MS = 100, STARVED_TICK_MS = 1, TICK_BUDGET = 64 };

/* ---- open ---- */

/* There is one: a worker has at most as many shards as there are slots. */
static uint32_t free_slot(const worker *w) {
    uint32_t slot = 0;
    while (w->slot_taken[slot]) slot++;
    return slot;
}

fkv_status shard_begins(shard *s, uint32_t epoch, uint64_t id) {
    s->epoch = epoch;
    s->incarnation = s->logged_as = id;
    s->replica = (replica_owner){ .epoch = epoch, .min_in_sync = 1, .in_sync = 1, .log = { .kept = s->durable } };
    for (int i = 0; i < REPLICA_PEERS; i++) copies_place(s, i, 0);
    s->logging = (shard_logging){ 0 };
    s->snapshot = (shard_snapshot){ 0 };
    list_init(&s->logging.behind);
    list_init(&s->snapshot.wanted);
    list_init(&s->snapshot.asking);
    list_init(&s->snapshot.waiting);
    bool had_owner = epoch > DATAPLANE_EPOCH_FIRST;
    return dedup_open_slot(&s->w->dedup, s->slot, had_owner, s->w->now_ns) == 0 ? FKV_OK : FKV_NO_MEMORY;
}

/* An owner may have what is said of all tables. What is made of another's table, or is a copy, may have all that its server
 * has: also of an owner that had more before that fell, copies can be made, and they take what its changes need. */
void shard_limit(shard *s) {
    const dataplane *d = s->w->d;
    uint64_t limit = __atomic_load_n(&d->table_memory, __ATOMIC_SEQ_CST);
    uint64_t all = d->c.memory_bytes ? d->c.memory_bytes : limit;
    if (limit == 0) return;
    table_set_memory(s->table, max_u64(s->state == SHARD_OPEN ? all : min_u64(limit, all), TABLE_MEMORY_MIN));
}

static fkv_status make(worker *w, command *c, shard **out) {
    shard *s = *out = calloc(1, sizeof *s);
    if (!s) return FKV_NO_MEMORY;
    *s = (shard){ .w = w,
                  .number = c->number,
                  .slot = free_slot(w),
                  .names = c->open.incarnation,
                  .durable = c->open.durable,
                  .tick_ns = UINT64_MAX };
    list_init(&s->of_worker);
    list_init(&s->unacked);
    list_init(&s->bulks);
    list_init(&s->feeds);
    list_init(&s->feeding);
    list_init(&s->imports);
    if (shard_begins(s, c->open.epoch, c->open.incarnation) != FKV_OK) return FKV_NO_MEMORY;
    for (int k = 0; k < 2; k++) {
        s->files[k] = c->files[k]; /* the shard's from here on */
        c->files[k] = NULL;
    }
    table_config t = memory_table_config(w->d, &c->open, s);
    fkv_status status = table_create(&t, &s->table);
    if (status != FKV_OK) return status;
    shard_limit(s);
    table_tick(s->table, w->now_ns, w->wall_ms, 0);
    segment **first[] = { &c->first_index, &c->first_heap };
    for (int i = 0; i < 2; i++) {
        status = shard_add_segment(s, *first[i]);
        if (status != FKV_OK) return status;
        *first[i] = NULL; /* the shard's from here on */
    }
    s->notified_epoch = table_layout_epoch(s->table);
    return FKV_OK;
}

void shard_open(job *j) {
    command *c = (command *)j;
    worker *w = c->w;
    shard *s = NULL;
    c->status = w->stopping ? FKV_CLOSED : make(w, c, &s);
    if (c->status == FKV_OK && !(c->result = shard_describe(s))) c->status = FKV_NO_MEMORY;
    if (c->status == FKV_OK) {
        list_push(&w->shards, &s->of_worker);
        w->by_number[s->number] = s;
        w->slot_taken[s->slot] = true;
        replicate_count(s);
        s = NULL;
    }
    memory_opened(c, s);
}

void shard_limits(job *j) {
    worker *w = (worker *)(void *)((char *)j - offsetof(worker, limits));
    __atomic_store_n(&w->limiting, false, __ATOMIC_SEQ_CST);
    for (fkv_list *l = w->shards.next; l != &w->shards; l = l->next) shard_limit(LIST_OF(l, shard, of_worker));
}

/* ---- serve, describe ---- */

/* What the shard's server waits for. */
static void end_call(command **of, fkv_status status) {
    command *c = *of;
    *of = NULL;
    if (c) command_done(c, status, NULL);
}

/* A shard that is no copy, and was not served yet. Until now an earlier owner may have made changes, however long ago the
 * shard was opened here. */
static fkv_status begin_epoch(shard *s) {
    worker *w = s->w;
    imports_end(s, FKV_BUSY);
    if (dedup_open_slot(&w->dedup, s->slot, s->epoch > DATAPLANE_EPOCH_FIRST, w->now_ns) != 0) return FKV_NO_MEMORY;
    if (s->snapshot.owed) {
        /* What was taken over counts as a record: without the snapshot the log that goes on behind it is no copy's. */
        s->replica.last = s->replica.committed = s->logging.appended = 1;
        snapshots_owe(s);
    }
    if (s->durable) durable_begins(s); /* mutation: durable/lone-epoch-unlogged */
    return FKV_OK;
}

static fkv_status serve_now(shard *s) {
    imports_end(s, FKV_BUSY);
    end_call(&s->pausing, FKV_BUSY);
    end_call(&s->stepping_down, FKV_BUSY);
    handover_end(s, FKV_BUSY);
    s->state = SHARD_SERVING;
    shard_limit(s);
    return FKV_OK;
}

/* mutation: durable/served-before-snapshot */
static bool may_serve(const shard *s) { return replicate_may_serve(s) && !s->snapshot.owed; }

void shard_serve(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    fkv_status status = !s ? command_none(c)
                        /* mutation: links/served-while-following */
                        : s->state == SHARD_CLOSING || s->starting || (s->copy && !s->copy->leads) ? FKV_BUSY
                                                                                                   : FKV_OK;
    if (status == FKV_OK && s->state == SHARD_OPEN && !s->copy) status = begin_epoch(s);
    if (status == FKV_OK && !may_serve(s)) { /* mutation: joins/leads-while-relied-on */
        s->starting = c;
        s->attended = true;
        return;
    }
    command_done(c, status == FKV_OK ? serve_now(s) : status, NULL);
}

void shard_seal(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    fkv_status status = !s ? command_none(c) : s->state == SHARD_CLOSING ? FKV_BUSY : FKV_OK;
    if (status == FKV_OK) s->sealed_for = c->sealed_for;
    command_done(c, status, NULL);
}

void shard_layout(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    dataplane_layout *l = s ? shard_describe(s) : NULL;
    command_done(c, l ? FKV_OK : s ? FKV_NO_MEMORY : command_none(c), l);
}

/* ---- close ---- */

static void refuse(op *o, fkv_status why) {
    if (!op_waits(o) || o->state == OP_FOLLOWS) return; /* followers are answered with those that they follow */
    wait_remove(o);
    op_ends(o, why);
}
static void cut_short(op *o, fkv_status why) {
    if (o->state == OP_ANSWERS && o->streams)
        stream_fail(o, why);
    else if (o->state == OP_TRANSFERS)
        transfer_fail(o, why);
}

static void of_clients(fkv_list *clients, const shard *s, void (*f)(op *o, fkv_status why), fkv_status why) {
    for (fkv_list *l = clients->next; l != clients; l = l->next) {
        client *c = LIST_OF(l, client, of_worker);
        for (fkv_list *m = c->ops.next; m != &c->ops; m = m->next) {
            op *o = LIST_OF(m, op, of_client);
            if (o->shard == s) f(o, why);
        }
    }
}
static void of_all(shard *s, void (*f)(op *o, fkv_status why), fkv_status why) {
    of_clients(&s->w->clients, s, f, why);
    of_clients(&s->w->doomed, s, f, why);
}
void shard_stops(shard *s) { of_all(s, cut_short, FKV_SHARD_CLOSED); }
void shard_refuses(shard *s, fkv_status why) { of_all(s, refuse, why); }

void shard_close(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    if (!s || s->state == SHARD_CLOSING) {
        command_done(c, s ? FKV_BUSY : command_none(c), NULL);
        return;
    }
    s->state = SHARD_CLOSING;
    s->closing = c;
    end_call(&s->pausing, FKV_BUSY);
    end_call(&s->starting, FKV_ABORTED);
    end_call(&s->following, FKV_ABORTED);
    end_call(&s->basing, FKV_ABORTED);
    end_call(&s->stepping_down, FKV_ABORTED);
    rely_end(s, FKV_ABORTED);
    handover_end(s, FKV_ABORTED);
    copies_end(s, FKV_ABORTED);
    imports_end(s, FKV_SHARD_CLOSED);
    snapshots_end(s);
    replicate_end(s);
    if (s->copy) uplink_leave(s->copy);
    shard_refuses(s, FKV_SHARD_CLOSED);
    shard_stops(s);
}

void shard_pause(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    if (!s || s->state == SHARD_CLOSING || s->pausing) {
        command_done(c, s ? FKV_BUSY : command_none(c), NULL);
        return;
    }
    handover_end(s, FKV_BUSY);
    if (s->state == SHARD_SERVING || s->state == SHARD_HANDING) s->state = SHARD_PAUSED;
    end_call(&s->starting, FKV_BUSY);
    s->pausing = c;
    s->attended = true;
    shard_refuses(s, FKV_SHARD_CLOSED);
    shard_stops(s);
}

/* What an owner inherited is nobody's op. */
static bool all_committed(const shard *s) { return !s->backups || s->replica.committed == s->replica.last; }

static bool quiet(const worker *w, const shard *s) { return s->held == 0 && w->now_ns >= s->lease_until_ns; }

/* No op is about it any more: they were refused when it began to close, and the lists are empty. */
static void finish_close(worker *w, shard *s) {
    fkv_assert(s->closing && s->held == 0 && s->quarantined == 0);
    copies_expect_none(s);
    list_remove(&s->of_worker);
    w->by_number[s->number] = NULL;
    w->slot_taken[s->slot] = false;
    dedup_drop_slot(&w->dedup, s->slot);
    memory_close(s->closing, s);
}

/* ---- background work ---- */

/* What is looked at in each turn. Most shards have nothing of the kind. */
static __attribute__((noinline)) void attend(worker *w, shard *s) {
    if (s->pausing && quiet(w, s) && all_committed(s)) end_call(&s->pausing, FKV_OK);
    if (s->starting && may_serve(s)) end_call(&s->starting, serve_now(s));
    if (s->following && w->now_ns >= s->following_until_ns) end_call(&s->following, FKV_TIMEOUT);
    if (s->log.ring) change_log_rest(&s->log, w->now_ns);
    if (s->handing) handover_watch(s);
    if (s->stepping_down) handover_watch_step_down(s);
    if (s->relying) rely_watch(s);
    if (s->basing) base_watch(s);
    if (s->backups)
        copies_watch(s);
    else
        copies_expect(s);
    s->attended = s->pausing || s->starting || s->following || s->handing || s->stepping_down || s->basing ||
                  s->relying || s->log.ring || s->backups || s->expects;
}

static uint64_t next_tick(worker *w, shard *s, bool more) {
    if (more) return w->now_ns;
    if (s->quarantined) return w->now_ns + STARVED_TICK_MS * MS;
    if (s->touched) {
        s->touched = false;
        return w->now_ns + BUSY_TICK_MS * MS;
    }
    bool resting = table_resting(s->table) && s->wanted == 0;
    return resting ? UINT64_MAX : w->now_ns + REST_TICK_MS * MS;
}

void shards_tick(worker *w) {
    for (fkv_list *l = w->shards.next, *next; l != &w->shards; l = next) {
        next = l->next;
        shard *s = LIST_OF(l, shard, of_worker);
        if (s->lingering) memory_free_lingering(s, w->now_ns);
        if (s->state == SHARD_CLOSING) {
            if (quiet(w, s) && s->wanted == 0) finish_close(w, s);
            continue;
        }
        if (s->attended) attend(w, s);
        if (s->copy) integrity_step(s->copy);
        if (s->touched || s->tick_ns <= w->now_ns) {
            bool more = table_tick(s->table, w->now_ns, w->wall_ms, TICK_BUDGET + 4 * w->batch_count);
            s->tick_ns = next_tick(w, s, more);
            imports_continue(s);
            if (!list_empty(&w->starved)) w->feed_starved = true;
        }
        uint32_t epoch = table_layout_epoch(s->table);
        if (s->notified_epoch != epoch && memory_notify(s)) s->notified_epoch = epoch;
    }
}

uint64_t shards_deadline(const worker *w) {
    uint64_t at = UINT64_MAX;
    for (const fkv_list *l = w->shards.next; l != &w->shards; l = l->next) {
        const shard *s = LIST_OF(l, shard, of_worker);
        bool waits = s->held || s->wanted; /* what ends that also ends the sleep */
        for (const segment *r = s->lingering; r; r = r->next) at = min_u64(at, r->free_at_ns);
        if (s->pausing && !s->held) at = min_u64(at, max_u64(s->lease_until_ns, w->now_ns + 1));
        if (s->starting && !s->snapshot.owed) at = min_u64(at, max_u64(s->copy->place.granted_until_ns, w->now_ns + 1));
        if (s->following) at = min_u64(at, s->following_until_ns);
        if (s->copy && s->state != SHARD_CLOSING) at = min_u64(at, s->copy->scrub_ns);
        if (s->handing && s->state != SHARD_CLOSING) at = min_u64(at, handover_deadline(s));
        if (s->stepping_down) at = min_u64(at, handover_step_down_deadline(s));
        if (s->backups && s->state != SHARD_CLOSING) at = min_u64(at, copies_deadline(s));
        if (s->state != SHARD_CLOSING) at = min_u64(at, change_log_idle_ns(&s->log));
        at = min_u64(at, s->state != SHARD_CLOSING ? s->tick_ns : waits ? UINT64_MAX : s->lease_until_ns);
    }
    return at;
}

void shards_end(worker *w) {
    while (!list_empty(&w->shards)) {
        shard *s = LIST_OF(w->shards.next, shard, of_worker);
        list_remove(&s->of_worker);
        if (s->closing) command_done(s->closing, FKV_CLOSED, NULL);
        end_call(&s->pausing, FKV_CLOSED);
        end_call(&s->starting, FKV_CLOSED);
        end_call(&s->following, FKV_CLOSED);
        end_call(&s->basing, FKV_CLOSED);
        end_call(&s->handing, FKV_CLOSED);
        end_call(&s->stepping_down, FKV_CLOSED);
        rely_end(s, FKV_CLOSED);
        copies_end(s, FKV_CLOSED);
        snapshots_leave(s, FKV_CLOSED);
        imports_end(s, FKV_CLOSED);
        durable_end(s); /* a start that failed has begun an epoch, say */
        shard_free(s);
    }
}
