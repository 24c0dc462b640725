/* life.c: shards are served, get their background work, and go: the worker's side. They come by replication/open.c; memory
 * is made and freed elsewhere (storage/memory.c).
 *
 * A shard that is being closed answers nothing any more, its table is not touched any more, and it waits until every
 * lease that covers it has run out: until then what clients READ there is still the truth, since nobody else has the
 * shard yet. One that is paused is as quiet, and keeps what it has: its server ends, or it goes on. */
#include "life.h"
#include "../base/assert.h"
#include "../dataplane/client.h"
#include "../storage/memory.h"
#include "stages.h"
#include "stream.h"
#include "transfer.h"
#include "wait.h"

static const uint64_t MS = 1000000;
enum { BUSY_TICK_MS = 20, REST_TICK_MS = 100, STARVED_TICK_MS = 1, TICK_BUDGET = 64 };

void shard_limits(job *j) {
    worker *w = (worker *)(void *)((char *)j - offsetof(worker, limits));
    __atomic_store_n(&w->limiting, false, __ATOMIC_SEQ_CST);
    for (fkv_list *l = w->shards.next; l != &w->shards; l = l->next) shard_limit(LIST_OF(l, shard, of_worker));
}

/* ---- serve, describe ---- */

static fkv_status serve_now(shard *s) {
    command_end(&s->pausing, FKV_BUSY);
    repl_serves(s);
    s->state = SHARD_SERVING;
    shard_limit(s);
    return FKV_OK;
}

void shard_serve(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    fkv_status status = !s ? command_none(c)
                        /* mutation: links/served-while-following */
                        : s->state == SHARD_CLOSING || s->starting || repl_follows(s) ? FKV_BUSY
                                                                                      : FKV_OK;
    if (status == FKV_OK && s->state == SHARD_OPEN && !s->repl.copy) status = repl_begins(s);
    if (status == FKV_OK && !repl_may_serve(s)) { /* mutation: joins/leads-while-relied-on */
        s->starting = c;
        s->attended = true;
        return;
    }
    command_done(c, status == FKV_OK ? serve_now(s) : status, NULL);
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
    command_end(&s->pausing, FKV_BUSY);
    command_end(&s->starting, FKV_ABORTED);
    repl_closes(s);
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
    repl_pauses(s);
    if (s->state == SHARD_SERVING || s->state == SHARD_HANDING) s->state = SHARD_PAUSED;
    command_end(&s->starting, FKV_BUSY);
    s->pausing = c;
    s->attended = true;
    shard_refuses(s, FKV_SHARD_CLOSED);
    shard_stops(s);
}

/* What an owner inherited is nobody's op. */
static bool all_committed(const shard *s) { return !s->repl.backups || s->repl.owner.committed == s->repl.owner.last; }

static bool quiet(const worker *w, const shard *s) { return s->held == 0 && w->now_ns >= s->lease_until_ns; }

/* No op is about it any more: they were refused when it began to close, and the lists are empty. */
static void finish_close(worker *w, shard *s) {
    fkv_assert(s->closing && s->held == 0 && s->quarantined == 0);
    repl_closed(s);
    list_remove(&s->of_worker);
    w->by_number[s->number] = NULL;
    w->slot_taken[s->slot] = false;
    dedup_drop_slot(&w->dedup, s->slot);
    memory_close(s->closing, s);
}

/* ---- background work ---- */

/* What is looked at in each turn. Most shards have nothing of the kind. */
static __attribute__((noinline)) void attend(worker *w, shard *s) {
    if (s->pausing && quiet(w, s) && all_committed(s)) command_end(&s->pausing, FKV_OK);
    if (s->starting && repl_may_serve(s)) command_end(&s->starting, serve_now(s));
    if (s->changed.ring) change_log_rest(&s->changed, w->now_ns);
    bool again = repl_attend(s);
    s->attended = again || s->pausing || s->starting || s->changed.ring;
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
        bool ticks = s->touched || s->tick_ns <= w->now_ns;
        if (ticks) {
            bool more = table_tick(s->table, w->now_ns, w->wall_ms, TICK_BUDGET + 4 * w->batch_count);
            s->tick_ns = next_tick(w, s, more);
            if (!list_empty(&w->starved)) w->feed_starved = true;
        }
        if (s->repl.copy || ticks) repl_tick(s, ticks);
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
        at = min_u64(at, repl_shard_deadline(s));
        if (s->state != SHARD_CLOSING) at = min_u64(at, change_log_idle_ns(&s->changed));
        at = min_u64(at, s->state != SHARD_CLOSING ? s->tick_ns : waits ? UINT64_MAX : s->lease_until_ns);
    }
    return at;
}

void shards_end(worker *w) {
    while (!list_empty(&w->shards)) {
        shard *s = LIST_OF(w->shards.next, shard, of_worker);
        list_remove(&s->of_worker);
        if (s->closing) command_done(s->closing, FKV_CLOSED, NULL);
        command_end(&s->pausing, FKV_CLOSED);
        command_end(&s->starting, FKV_CLOSED);
        repl_end(s);
        shard_free(s);
    }
}
