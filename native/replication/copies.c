/* copies.c: see copies.h.
 *
 *   a SCAN asks to join ---> JOINS      the backlog keeps what is committed until the copy has it
 *   it is caught up                     on_copy: joined
 *   copies_require -------> REQUIRED    changes and leases wait for it; done when replica_propose allows it
 *   (the metadata decides)  PROPOSED
 *   copies_configure -----> IN_SYNC, or JOINS again
 *
 * One that was in sync until the metadata took it away may join again with what it has: nothing is committed that it
 * lacks, and the backlog keeps what comes. A copy that joins and has no connection for JOIN_IDLE_NS is forgotten: its
 * server begins anew. But one that is eligible is kept: changes may be refused until it is back. */
#include "copies.h"
#include <stdlib.h>
#include <string.h>
#include "backlog.h"
#include "backup_link.h"
#include "replicate.h"
#include "replication.h"
#include "role.h"
#include "sender.h"

/* A copy without a connection for UNLINKED_NS may be gone: its server is looked for, and again each time that it has
 * been without for twice as long, since a process that ends closes its sockets one after the other. */
static const uint64_t MS = 1000000, JOIN_IDLE_NS = 10000000000u, UNLINKED_NS = 5000000;
/* A lost copy is expected back for LOST_NS. A server that copies the shard asks for changes at least each COPYING_NS. */
static const uint64_t LOST_NS = 30000000000u, COPYING_NS = 1000000000;
/* Records that a copy may lag behind when it is said to have joined, and when it is required: changes wait for them. It may
 * be required long after. */
enum { LITTLE = 256, REQUIRED_LAG = REPLICA_WINDOW / 2 };

static void tell(const shard *s, uint64_t id, dataplane_copy_event what) {
    const dataplane_config *c = &s->w->d->c;
    if (c->on_copy) c->on_copy(c->ctx, s->number, id, what);
}

fkv_status copies_refuse(const shard *s, uint64_t id) {
    if (!s->repl.copy || s->repl.copy->leads) tell(s, id, DATAPLANE_COPY_REFUSED);
    return FKV_NOT_OWNER;
}

/* ---- what they may lack ---- */

/* Frees what no copy needs any more. */
static void trim(shard *s) {
    uint64_t needed = UINT64_MAX, committed = s->repl.owner.committed;
    if (!s->repl.backlog) return;
    for (int i = 0; i < REPLICA_PEERS; i++) {
        const replica_peer *p = &s->repl.owner.peer[i];
        uint64_t has = max_u64(p->prepared, s->repl.place[i].joined_at);
        if (p->standing == REPLICA_JOINS || (p->standing > REPLICA_JOINS && has < committed))
            needed = min_u64(needed, has);
    }
    if (needed != UINT64_MAX) {
        backlog_trim(s->repl.backlog, needed);
        return;
    }
    backlog_free(s->repl.backlog);
    s->repl.backlog = NULL;
}

static void end_require(copy_place *p, fkv_status status, uint64_t *lsn) {
    command *c = p->requiring;
    p->requiring = NULL;
    if (c) command_done(c, status, lsn);
}

static void forget(shard *s, int i, uint64_t id) {
    sender *f = sender_of(s, id);
    if (f) backup_link_refuse(f);
    end_require(&s->repl.place[i], FKV_ABORTED, NULL);
    copies_place(s, i, 0);
}

void copies_place(shard *s, int place, uint64_t joined_at) {
    s->repl.place[place] = (copy_place){ .limit = UINT64_MAX, .joined_at = joined_at, .unlinked_ns = s->w->now_ns };
}

static void drop(shard *s, int i) {
    uint64_t id = s->repl.owner.peer[i].id;
    if (replica_drop(&s->repl.owner, id)) forget(s, i, id);
}

void repl_gives_way(shard *s) {
    for (int i = 0; i < REPLICA_PEERS; i++)
        if (s->repl.owner.peer[i].standing == REPLICA_JOINS) drop(s, i);
    backlog_free(s->repl.backlog);
    s->repl.backlog = NULL;
    replicate_count(s);
}

static bool keep_from_here(shard *s) {
    if (!s->repl.backlog) s->repl.backlog = backlog_begin(&s->w->d->backlogs, s->repl.owner.committed);
    return s->repl.backlog;
}

fkv_status repl_join(shard *s, uint64_t id) {
    int i = replica_place(&s->repl.owner, id);
    if (i >= 0 && s->repl.owner.peer[i].standing != REPLICA_JOINS) return FKV_BAD_REQUEST;
    if (i >= 0) drop(s, i); /* it has asked before, and did not get the answer */
    bool joined = keep_from_here(s) && replica_join(&s->repl.owner, id);
    fkv_status status = joined ? FKV_OK : s->repl.backlog ? FKV_BUSY : FKV_NO_MEMORY;
    if (joined) copies_place(s, replica_place(&s->repl.owner, id), s->repl.owner.committed);
    trim(s);
    replicate_changed(s);
    return status;
}

void copies_came_further(shard *s, int place) {
    s->repl.place[place].acked_ns = s->w->now_ns;
    trim(s);
}

/* ---- a config ---- */

/* Nothing is known of any until it follows. Who joins may lack what is committed from here on. The owner before is one
 * copy less, unless nobody wants another. */
void copies_led(shard *s, const replica_config *c) {
    s->repl.lost_until_ns = c->alone ? 0 : s->w->now_ns + LOST_NS;
    for (int i = 0; i < REPLICA_PEERS; i++) {
        const replica_peer *p = &s->repl.owner.peer[i];
        bool joins = p->standing == REPLICA_JOINS;
        copies_place(s, i, joins ? s->repl.owner.committed : 0);
        s->repl.place[i].eligible = joins && replica_is_eligible(c, p->id);
        if (joins && !keep_from_here(s)) drop(s, i);
    }
}

static bool is_lost(const copy_place *p) { return p->late || p->unlinked_ns || p->silent_ns; }

void copies_configured(shard *s, const replica_config *c) {
    replica_peer before[REPLICA_PEERS];
    memcpy(before, s->repl.owner.peer, sizeof before);
    replica_configure(&s->repl.owner, c);
    for (int i = 0; i < REPLICA_PEERS; i++) {
        uint32_t now = s->repl.owner.peer[i].standing;
        bool was_in_sync = before[i].standing == REPLICA_IN_SYNC, is_in_sync = now == REPLICA_IN_SYNC;
        if (was_in_sync && !is_in_sync && is_lost(&s->repl.place[i]) && !c->alone)
            s->repl.lost_until_ns = s->w->now_ns + LOST_NS;
        if (is_in_sync && !was_in_sync) s->repl.lost_until_ns = 0;
        if (before[i].standing != REPLICA_NONE && now == REPLICA_NONE) forget(s, i, before[i].id);
        if (now == REPLICA_IN_SYNC && s->repl.place[i].requiring) end_require(&s->repl.place[i], FKV_ABORTED, NULL);
        s->repl.place[i].eligible = now != REPLICA_NONE && replica_is_eligible(c, before[i].id);
        if (before[i].standing <= REPLICA_REQUIRED || now != REPLICA_JOINS) continue;
        s->repl.place[i].joined = s->repl.place[i].late = false;
        s->repl.place[i].joined_at = before[i].prepared;
        if (!keep_from_here(s)) drop(s, i);
    }
    trim(s);
}

void copies_configure(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    const replica_config *k = &c->lead->config;
    fkv_status status = !s                                          ? command_none(c)
                        : s->state == SHARD_CLOSING                 ? FKV_BUSY
                        : backup_follows(s) || k->epoch != s->epoch ? FKV_NOT_OWNER
                        : k->config < s->repl.owner.config          ? FKV_BAD_REQUEST
                                                                    : FKV_OK;
    /* Only this owner adds copies: one that it does not know would not be waited for. */
    for (uint32_t i = 0; status == FKV_OK && i < k->peers; i++)
        if (replica_place(&s->repl.owner, k->id[i]) < 0) status = FKV_BAD_REQUEST;
    if (status == FKV_OK && k->config > s->repl.owner.config) replicate_configure(s, k);
    command_done(c, status, NULL);
}

/* ---- required, and not wanted ---- */

static void try_to_propose(shard *s, int i) {
    const replica_peer *p = &s->repl.owner.peer[i];
    if (p->standing != REPLICA_PROPOSED && !replica_propose(&s->repl.owner, p->id, s->w->now_ns)) return;
    uint64_t *lsn = malloc(sizeof *lsn);
    if (lsn) *lsn = s->repl.owner.committed;
    end_require(&s->repl.place[i], lsn ? FKV_OK : FKV_NO_MEMORY, lsn);
}

/* In an earlier config, and the one of now waits for it too. */
static bool is_required_already(const shard *s, int i) {
    uint32_t standing = s->repl.owner.peer[i].standing;
    return standing == REPLICA_REQUIRED || standing == REPLICA_PROPOSED;
}

static fkv_status require(shard *s, uint64_t id, command *c) {
    int i = replica_place(&s->repl.owner, id);
    if (s->state == SHARD_CLOSING) return FKV_BUSY;
    if (i < 0) return FKV_NOT_OWNER;
    if (is_required_already(s, i)) { /* mutation: joins/required-once */
        end_require(&s->repl.place[i], FKV_ABORTED, NULL);
        s->repl.place[i].requiring = c;
        try_to_propose(s, i);
        return FKV_OK;
    }
    bool lags = s->repl.owner.last - s->repl.owner.peer[i].prepared > REQUIRED_LAG;
    bool follows = s->repl.place[i].joined && !s->repl.place[i].unlinked_ns && !lags;
    /* mutation: joins/required-under-old-leases */
    if (!follows || !replica_require(&s->repl.owner, id, s->lease_until_ns)) return FKV_BUSY;
    s->repl.place[i].requiring = c;
    replicate_changed(s);
    return FKV_OK;
}
void copies_require(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    fkv_status status = s ? require(s, c->copy, c) : command_none(c);
    if (status != FKV_OK) command_done(c, status, NULL);
}

static fkv_status drop_wanted(shard *s, uint64_t id) {
    int i = replica_place(&s->repl.owner, id);
    if (s->state == SHARD_CLOSING) return FKV_BUSY;
    if (i < 0) return FKV_OK;
    if (!replica_drop(&s->repl.owner, id)) return FKV_BUSY;
    forget(s, i, id);
    trim(s);
    replicate_changed(s);
    return FKV_OK;
}
void copies_drop(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    command_done(c, s ? drop_wanted(s, c->copy) : command_none(c), NULL);
}

void copies_end(shard *s, fkv_status why) {
    for (int i = 0; i < REPLICA_PEERS; i++) end_require(&s->repl.place[i], why, NULL);
}

/* ---- how they do ---- */

/* When it is late, if nothing comes of it until then. Without a connection: for so long after its lease, by which it
 * may still have an owner that it knows. */
static uint64_t late_at(const shard *s, int i) {
    const copy_place *p = &s->repl.place[i];
    uint64_t slow = s->w->d->c.backup_slow_ms * MS;
    if (p->unlinked_ns) return max_u64(p->unlinked_ns, s->repl.owner.peer[i].lease_ns) + slow;
    uint64_t since = p->lagging_ns ? max_u64(p->lagging_ns, p->acked_ns) : UINT64_MAX;
    /* Nobody reads without its lease, so that is noticed without a change too. */
    if (p->silent_ns) since = min_u64(since, p->silent_ns);
    return since == UINT64_MAX ? UINT64_MAX : since + slow;
}

static uint64_t next_unlinked(const copy_place *p) { return p->unlinked_ns + max_u64(UNLINKED_NS, 2 * p->told_ns); }

static void watch_required(shard *s, int i) {
    copy_place *p = &s->repl.place[i];
    uint64_t id = s->repl.owner.peer[i].id, now = s->w->now_ns;
    bool late = now >= late_at(s, i);
    if (!p->unlinked_ns) {
        p->told_ns = 0;
    } else if (now >= next_unlinked(p)) {
        tell(s, id, DATAPLANE_COPY_UNLINKED);
        p->told_ns = now - p->unlinked_ns;
    }
    if (late && !p->late) tell(s, id, DATAPLANE_COPY_LATE);
    /* One that has made a connection has not acknowledged yet. */
    bool back = p->late && !late && !p->unlinked_ns && s->repl.owner.peer[i].lease_ns > now;
    if (back) tell(s, id, DATAPLANE_COPY_BACK);
    p->late = (p->late || late) && !back;
}

static void watch_joining(shard *s, int i) {
    copy_place *p = &s->repl.place[i];
    const replica_peer *peer = &s->repl.owner.peer[i];
    uint64_t now = s->w->now_ns;
    if (p->unlinked_ns && !p->eligible && now - p->unlinked_ns >= JOIN_IDLE_NS) {
        drop(s, i);
        trim(s);
        replicate_changed(s);
    } else if (!p->joined && !p->unlinked_ns && peer->lease_ns > now && s->repl.owner.last - peer->prepared <= LITTLE) {
        p->joined = true;
        tell(s, peer->id, DATAPLANE_COPY_JOINED);
    }
}

static void set_expected(shard *s, bool expected) {
    s->w->repl.expecting += (uint32_t)expected - (uint32_t)s->repl.expects;
    s->repl.expects = expected;
}

/* When a copy will join: clients' leases are short by then, so it does not wait for long ones. */
static bool may_join_soon(const shard *s) {
    uint64_t now = s->w->now_ns;
    return now < s->repl.lost_until_ns || (s->changed.ring && now < s->changed.asked_ns + COPYING_NS);
}

void copies_expect(shard *s) { set_expected(s, may_join_soon(s)); }

void copies_expect_none(shard *s) {
    s->repl.lost_until_ns = 0;
    set_expected(s, false);
}

void copies_watch(shard *s) {
    uint64_t now = s->w->now_ns;
    bool joins = false;
    for (int i = 0; i < REPLICA_PEERS; i++) {
        const replica_peer *peer = &s->repl.owner.peer[i];
        copy_place *p = &s->repl.place[i];
        if (peer->standing == REPLICA_NONE) continue;
        bool waited = peer->standing > REPLICA_JOINS; /* else no time counts: nobody waits for it yet */
        p->lagging_ns = !waited || peer->prepared >= s->repl.owner.last ? 0 : p->lagging_ns ? p->lagging_ns : now;
        p->silent_ns = !waited || p->unlinked_ns || peer->lease_ns > now ? 0 : p->silent_ns ? p->silent_ns : now;
        if (p->requiring) try_to_propose(s, i);
        if (peer->standing == REPLICA_JOINS)
            watch_joining(s, i);
        else
            watch_required(s, i);
        joins |= peer->standing == REPLICA_JOINS && !p->unlinked_ns;
    }
    set_expected(s, joins || may_join_soon(s));
}

uint64_t copies_deadline(const shard *s) {
    uint64_t at = UINT64_MAX, after = s->w->now_ns + 1;
    for (int i = 0; i < REPLICA_PEERS; i++) {
        const replica_peer *peer = &s->repl.owner.peer[i];
        const copy_place *p = &s->repl.place[i];
        if (peer->standing == REPLICA_NONE) continue;
        if (p->requiring) at = min_u64(at, max_u64(peer->settled_ns, after));
        if (peer->standing == REPLICA_JOINS && p->unlinked_ns && !p->eligible)
            at = min_u64(at, p->unlinked_ns + JOIN_IDLE_NS);
        if (peer->standing <= REPLICA_JOINS || p->late) continue;
        at = min_u64(at, late_at(s, i));
        if (p->unlinked_ns) at = min_u64(at, next_unlinked(p));
        if (!p->unlinked_ns && !p->silent_ns) at = min_u64(at, max_u64(peer->lease_ns, after));
    }
    return at;
}

void repl_shard_stats(const shard *s, dataplane_copy_stats *out) {
    const backup *b = s->repl.copy;
    const replica_owner *o = &s->repl.owner;
    bool leads = !b || b->leads;
    *out = (dataplane_copy_stats){ .known = b || s->repl.backups,
                                   .leads = leads,
                                   .follows = b && b->led,
                                   .failed = b ? b->failed : FKV_OK,
                                   .id = b ? b->id : 0,
                                   .epoch = leads ? o->epoch : b->place.epoch,
                                   .config = leads ? o->config : 0,
                                   .prepared = leads ? o->last : b->place.prepared,
                                   .committed = leads ? o->committed : b->place.committed };
    for (int i = 0; i < REPLICA_PEERS; i++) {
        const replica_peer *p = &o->peer[i];
        const sender *f = p->standing ? sender_of(s, p->id) : NULL;
        if (p->standing == REPLICA_NONE) continue;
        out->peer[out->peers].id = p->id;
        out->peer[out->peers].prepared = p->prepared;
        out->peer[out->peers].lease_left_ns = p->lease_ns > s->w->now_ns ? p->lease_ns - s->w->now_ns : 0;
        out->peer[out->peers].standing = p->standing;
        out->peer[out->peers++].linked = f && f->user ? backup_link_provider(f->user) : FAB_NONE;
    }
}
