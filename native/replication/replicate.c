/* replicate.c: changes between prepare and commit, where a shard has backups.
 *
 * A change that is prepared draws the next number of the shard's log and waits in shard.repl.unacked, in that order, until
 * every required backup has acknowledged it; then it is ready, and run.c commits it. The rules are those of replica.h.
 * Its message was given back, its key and value lie in the table, so what waits costs an op and a prepared change.
 *
 * What was sent to a backup is never refused: its client would send it again as another change, and the backup, as the
 * next owner, could make this one too. When the shard is closed it ends as UNDECIDED. */
#include "replicate.h"
#include <string.h>
#include "../dataplane/latency.h"
#include "../dataplane/op.h"
#include "../dataplane/worker.h"
#include "backlog.h"
#include "backup.h"
#include "backup_link.h"
#include "bulk.h"
#include "copies.h"
#include "durable.h"
#include "owner_link.h"
#include "replication.h"
#include "sender.h"
#include "uncommitted.h"

/* ---- drawn ---- */

static bool has_message(const op *o) {
    return !op_writes(o) || bulk_fits_message(o->request.key_bytes, o->value_bytes);
}
static uint64_t room_of(const op *o) { return record_room(op_writes(o), o->request.key_bytes, o->value_bytes); }

/* At all: by copies that are enough, and have room. */
static fkv_status can_be_made(const op *o) {
    const shard *s = o->shard;
    uint64_t then = s->repl.drawn_bytes + room_of(o);
    if (!replica_enough(&s->repl.owner)) return FKV_TOO_FEW_COPIES;
    for (int i = 0; i < REPLICA_PEERS; i++)
        if (s->repl.owner.peer[i].standing >= REPLICA_REQUIRED && then > s->repl.place[i].limit) return FKV_TABLE_FULL;
    return FKV_OK;
}

fkv_status repl_admits(const op *o) {
    const replica_owner *r = &o->shard->repl.owner;
    if (replica_enough(r) && !replica_admits(r)) return FKV_BUSY;
    if (o->shard->durable && durable_admits(o->shard) != FKV_OK) return FKV_BUSY;
    if (!has_message(o) && bulk_admits(o) != FKV_OK) return FKV_BUSY;
    return can_be_made(o);
}

/* `last`: by what they are. */
static void take_ready(shard *s, uint64_t last);

static void draw(op *o) {
    shard *s = o->shard;
    o->lsn = replica_draw(&s->repl.owner);
    o->replicated = s->durable || replica_waits(&s->repl.owner);
    o->state = OP_REPLICATES;
    list_push(&s->repl.unacked, &o->link);
    backup_links_wake(s);
    if (s->durable) durable_more(s);
}

void repl_append(op *o) {
    o->prepared_ns = latency_now(o->worker);
    o->last = DATAPLANE_LAST_NONE;
    if (has_message(o)) {
        o->shard->repl.drawn_bytes += room_of(o);
        draw(o);
        if (!o->replicated) take_ready(o->shard, DATAPLANE_LAST_NONE); /* copies join, and nobody waits for them */
        return;
    }
    fkv_status status = can_be_made(o); /* while its value was on its way, others took the room, or copies went */
    if (status == FKV_OK) {
        bulk_begin(o);
        take_ready(o->shard, DATAPLANE_LAST_NONE);
    } else {
        op_ends(o, status);
    }
}

/* ---- acknowledged ---- */

/* For copies that join. */
static void note(shard *s, uint64_t lsn, const fkv_record *r, const uint8_t *key, const uint8_t *value) {
    if (!backlog_note(s->repl.backlog, lsn, r, key, value)) repl_gives_way(s);
}

static void note_own(shard *s, const op *o) {
    fkv_record r = uncommitted_describe(o);
    note(s, o->lsn, &r, o->key, o->prepared.value);
}

static void commit_inherited(shard *s, uint64_t to) {
    backup *b = s->repl.copy;
    for (uint64_t lsn; (lsn = b->applied + 1) <= min_u64(to, b->place.prepared); backup_commit(b, lsn)) {
        if (!s->repl.backlog) continue;
        const uint8_t *key, *value;
        uncommitted p = uncommitted_at(s, lsn);
        fkv_record r = uncommitted_record(&p, &key, &value);
        note(s, lsn, &r, key, value);
    }
}

/* Large values that every required copy has; false: none, or the window is full. */
static bool draw_bulks(shard *s) {
    bool drawn = false;
    for (op *o; !list_empty(&s->repl.bulks) && (o = bulk_next(s)); drawn = true) draw(o);
    return drawn;
}

static void commit_ready(shard *s, uint64_t last) {
    uint64_t committed = replica_commit(&s->repl.owner);
    if (s->repl.copy) commit_inherited(s, committed);
    while (!list_empty(&s->repl.unacked)) {
        op *o = LIST_OF(s->repl.unacked.next, op, link);
        if (o->lsn > committed) break;
        list_remove(&o->link);
        if (!has_message(o)) bulk_over(o);
        if (s->repl.backlog) note_own(s, o);
        o->ready_ns = latency_now(s->w);
        o->last = last;
        o->state = OP_READY;
        list_push(&s->w->ready, &o->link);
        s->w->feed_starved = true; /* there is room in the window */
    }
}

/* Room in the window goes to large values first: small changes that wait for it are fed later in the turn, and would
 * take all of it each time. */
static void take_ready(shard *s, uint64_t last) {
    draw_bulks(s);
    do { commit_ready(s, last); } while (draw_bulks(s)); /* mutation: bulk/window-full */
}

void replicate_pulled(shard *s) { take_ready(s, DATAPLANE_LAST_NONE); }
void replicate_logged(shard *s) { take_ready(s, s->w->d->c.log.sync_ns ? DATAPLANE_LAST_LOG : DATAPLANE_LAST_DISK); }

void replicate_count(shard *s) {
    s->repl.backups = s->durable || replica_waits(&s->repl.owner);
    for (int i = 0; i < REPLICA_PEERS; i++) s->repl.backups |= s->repl.owner.peer[i].standing != REPLICA_NONE;
    if (!s->repl.backups) copies_expect(s);
    s->attended |= s->repl.backups || s->repl.expects;
}

void replicate_changed(shard *s) {
    replicate_count(s);
    if (s->durable) durable_counts_anew(s); /* mutation: early/removal-keeps-buffer */
    if (!replica_enough(&s->repl.owner)) bulks_end(s, FKV_TOO_FEW_COPIES);
    backup_links_wake(s); /* to who is waited for from now on, values are announced that have no numbers */
    take_ready(s, DATAPLANE_LAST_CONFIG);
}

bool replicate_acked(shard *s, uint64_t id, const replica_ack *a, uint64_t lease_ns) {
    int place = replica_place(&s->repl.owner, id);
    uint64_t before = place < 0 ? 0 : s->repl.owner.peer[place].prepared;
    if (!replica_acked(&s->repl.owner, id, a, lease_ns)) return false;
    take_ready(s, id);
    if (s->repl.owner.peer[place].prepared > before) copies_came_further(s, place);
    return true;
}

void replicate_lead(shard *s, const replica_config *c) {
    backup *b = s->repl.copy;
    owner_link_leave(b);
    if (c->epoch != s->epoch) table_set_epoch(s->table, c->epoch);
    s->epoch = c->epoch;
    replica_lead(&s->repl.owner, &b->place, c);
    b->leads = true;
    /* mutation: durable/owner-epoch-unlogged */
    if (s->durable) durable_begins(s);
    backup_commit(b, s->repl.owner.committed); /* what was handed over is, all of it */
    b->scrub_ns = UINT64_MAX;                  /* readers see to that */
    s->repl.drawn_bytes = 0;
    for (uint64_t lsn = b->applied + 1; lsn <= b->place.prepared; lsn++) {
        const backup_record *r = backup_record_at(b, lsn);
        const fkv_extent *e = r->prepared.extent;
        s->repl.drawn_bytes += record_room(e != NULL, r->key_bytes, e ? e->value_bytes : 0);
    }
    copies_led(s, c);
    replicate_changed(s);
}

void replicate_configure(shard *s, const replica_config *c) {
    copies_configured(s, c);
    replicate_changed(s);
}

bool replicate_may_serve(const shard *s) {
    return !s->repl.copy ||
           (s->repl.copy->leads && replica_took_over(&s->repl.owner, &s->repl.copy->place, s->w->now_ns));
}

void repl_undecided(shard *s) {
    list_remove(&s->repl.unsent);
    durable_end(s);
    bulks_end(s, FKV_SHARD_CLOSED); /* copies are told to forget them */
    while (!list_empty(&s->repl.senders)) sender_end(LIST_OF(s->repl.senders.next, sender, of_shard));
    backlog_free(s->repl.backlog);
    s->repl.backlog = NULL;
    while (!list_empty(&s->repl.unacked)) {
        op *o = LIST_OF(s->repl.unacked.next, op, link);
        list_remove(&o->link);
        if (!has_message(o)) bulk_over(o);
        op_ends(o, FKV_UNDECIDED); /* mutation: replication/no-effect-claimed */
    }
}

void replicate_step_down(shard *s) {
    while (!list_empty(&s->repl.unacked)) {
        op *o = LIST_OF(s->repl.unacked.next, op, link);
        fkv_record r = uncommitted_describe(o);
        list_remove(&o->link);
        if (!has_message(o)) bulk_over(o);
        backup_keeps(s->repl.copy, o->lsn, &r, &o->prepared);
        op_let_go(o);
    }
    repl_undecided(s);
}
