/* handover.c: see handover.h. Everything is on the worker's own thread; the link goes on as ever, so the heir gets its
 * last records, and gives leases, while clients wait. */
#include "handover.h"
#include "../base/assert.h"
#include "backup.h"
#include "bulk.h"
#include "copies.h"
#include "rely.h"
#include "replicate.h"
#include "replication.h"

/* Leases of the shard while the long ones run out; then, for as long as those take, still shorter ones: clients wait for
 * what is left of the last. For all that time they would be renewed too often. */
static const uint64_t SHORT_NS = 20000000, LAST_NS = 4000000;
static const uint64_t PATIENCE_NS = 2000000000;
enum { LITTLE = 256 }; /* records that the heir may lag behind when clients begin to wait */

static const replica_peer *heir_of(const shard *s) {
    int i = replica_place(&s->repl.owner, s->repl.heir);
    const replica_peer *p = i < 0 ? NULL : &s->repl.owner.peer[i];
    return p && p->standing == REPLICA_IN_SYNC ? p : NULL;
}

void handover_begin(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    fkv_status status = !s ? command_none(c) : s->state != SHARD_SERVING || s->repl.handing ? FKV_BUSY : FKV_OK;
    if (status == FKV_OK) {
        s->repl.heir = c->copy;
        if (!heir_of(s)) status = FKV_NOT_OWNER;
    }
    if (status != FKV_OK) {
        command_done(c, status, NULL);
        return;
    }
    s->repl.handing = c;
    s->repl.handing_until_ns = c->w->now_ns + PATIENCE_NS;
    s->repl.lease_most_ns = SHORT_NS;
    s->attended = true;
}

void handover_end(shard *s, fkv_status why) {
    s->repl.lease_most_ns = 0;
    if (s->state == SHARD_HANDING) s->w->feed_starved = true; /* what waits is tried again */
    command_end(&s->repl.handing, why);
}

/* None is left that is longer than those that are granted now, by a clock that was read at another time. */
static uint64_t longest_rest(const shard *s) { return s->repl.lease_most_ns + 2000000; }
static bool leases_are_short(const shard *s) { return s->lease_until_ns <= s->w->now_ns + longest_rest(s); }

/* It lacks nothing that was ever answered or READ, and nothing else is on its way. */
static bool has_all(const shard *s, const replica_peer *heir) {
    const replica_owner *o = &s->repl.owner;
    /* mutation: replication/handed-over-to-lacking */
    return s->held == 0 && o->committed == o->last && heir->prepared == o->last;
}

void handover_watch(shard *s) {
    const replica_peer *heir = heir_of(s);
    if (!heir || s->w->now_ns >= s->repl.handing_until_ns) {
        fkv_status why = heir ? FKV_TIMEOUT : FKV_NOT_OWNER;
        handover_end(s, why);
        s->state = SHARD_SERVING;
        return;
    }
    if (s->state == SHARD_SERVING) {
        if (!leases_are_short(s) || s->repl.owner.last - heir->prepared > LITTLE) return;
        if (s->repl.lease_most_ns > LAST_NS) {
            s->repl.lease_most_ns = LAST_NS;
            return;
        }
        s->state = SHARD_HANDING;
        shard_stops(s);
    }
    /* mutation: replication/handed-over-under-leases */
    if (!has_all(s, heir) || s->w->now_ns < s->lease_until_ns) return; /* else nobody relies on the shard here */
    command *c = s->repl.handing;
    s->repl.handing = NULL; /* the rest is its server's: to be served again, or a copy */
    command_done(c, FKV_OK, NULL);
}

uint64_t handover_deadline(const shard *s) {
    const replica_peer *heir = heir_of(s);
    uint64_t at = s->lease_until_ns, after = s->w->now_ns + 1;
    if (s->state == SHARD_SERVING)
        at = at > longest_rest(s) ? at - longest_rest(s) : 0;
    else if (heir && !has_all(s, heir))
        at = s->repl.handing_until_ns; /* what comes of the heir ends the sleep */
    return min_u64(s->repl.handing_until_ns, max_u64(at, after));
}

/* ---- the owner becomes a copy ---- */

/* What it remembers of clients stays, and so does what it has prepared: the next owner says what becomes of that. */
static fkv_status become_copy(shard *s, uint64_t id) {
    replica_owner *o = &s->repl.owner;
    worker *w = s->w;
    replica_backup place = replica_copied(s->epoch, o->inherited);
    bool is_new = !s->repl.copy;
    if (is_new && !backup_new(s, id, w->d->c.replica_lease_ms, &place)) return FKV_NO_MEMORY;
    if (!backup_steps_down(s->repl.copy, o)) {
        if (is_new) { /* it stays the owner: with a copy that does not lead it would be none */
            backup_free(s->repl.copy);
            s->repl.copy = NULL;
        }
        return FKV_NO_MEMORY;
    }
    fkv_assert(list_empty(&s->repl.bulks));
    copies_end(s, FKV_ABORTED);
    rely_end(s, FKV_ABORTED);
    replicate_step_down(s);
    fkv_assert(s->held == 0);
    change_log_free(&s->changed);
    *o = (replica_owner){ .epoch = s->epoch, .min_in_sync = 1, .in_sync = 1 };
    for (int i = 0; i < REPLICA_PEERS; i++) copies_place(s, i, 0);
    copies_expect_none(s);
    s->repl.backups = s->durable;
    s->repl.drawn_bytes = s->repl.lease_most_ns = 0;
    s->state = SHARD_OPEN;
    shard_limit(s);
    return FKV_OK;
}

/* Nobody relies on it as the owner, and nothing is held in the table but what has a record that is not committed. */
static bool may_become_copy(const shard *s) {
    /* mutation: replication/deposed-under-leases */
    return s->held == s->repl.owner.last - s->repl.owner.committed && s->w->now_ns >= s->lease_until_ns;
}

void handover_step_down(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    bool is_owner = s && (s->state == SHARD_SERVING || s->state == SHARD_HANDING);
    if (!is_owner) {
        command_done(c, s ? FKV_BUSY : command_none(c), NULL);
        return;
    }
    handover_end(s, FKV_ABORTED);
    s->state = SHARD_PAUSED;
    s->repl.stepping_down = c;
    s->attended = true;
    bulks_end(s, FKV_SHARD_CLOSED);
    shard_refuses(s, FKV_NOT_OWNER);
    shard_stops(s);
}

void handover_watch_step_down(shard *s) {
    if (!may_become_copy(s)) return;
    command *c = s->repl.stepping_down;
    s->repl.stepping_down = NULL;
    command_done(c, become_copy(s, c->copy), NULL);
}

uint64_t handover_step_down_deadline(const shard *s) {
    bool rests = s->held == s->repl.owner.last - s->repl.owner.committed; /* what ends the rest also ends the sleep */
    return rests ? max_u64(s->lease_until_ns, s->w->now_ns + 1) : UINT64_MAX;
}
