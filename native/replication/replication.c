/* replication.c: a worker's turn, and a shard's life, as replication has a part in them; see replication.h. What is one
 * file's alone is there: changes in replicate.c, copies that join in copies.c, the log in durable.c. */
#include "replication.h"
#include "../dataplane/worker.h"
#include "backlog.h"
#include "backup.h"
#include "backup_link.h"
#include "base.h"
#include "copies.h"
#include "durable.h"
#include "handover.h"
#include "import.h"
#include "integrity.h"
#include "owner_link.h"
#include "rely.h"
#include "replicate.h"
#include "snapshots.h"

/* ---- a worker's turn ---- */

bool repl_link(client *c) { return (c->link = backup_link_make(c)) != NULL; }
void repl_unlink(client *c) { backup_link_free(c->link); }

void repl_event(worker *w, connection *of, const fab_wc *wc) {
    if (of->kind == CONNECTION_OWNER_LINK) {
        owner_link_event(w, (owner_link *)(void *)of, wc);
        return;
    }
    client *c = (client *)(void *)of;
    if (wc->opcode == FAB_WC_RECV && !c->doomed)
        backup_link_received(w, c, wc);
    else if (wc->opcode == FAB_WC_SEND_READY)
        backup_link_credits(c);
    else if (wc->opcode == FAB_WC_DISCONNECT)
        client_doom(c, FKV_END_NONE);
}

void repl_send(worker *w) {
    if (!list_empty(&w->repl.owner_links)) owner_links_step(w);
    if (!list_empty(&w->repl.backup_links)) backup_links_send(w);
}

uint64_t repl_deadline(const worker *w) {
    return min_u64(min_u64(owner_links_deadline(w), backup_links_deadline(w)), durable_deadline(w));
}

/* ---- a shard's life ---- */

fkv_status repl_begins(shard *s) {
    worker *w = s->w;
    imports_end(s, FKV_BUSY);
    if (dedup_open_slot(&w->dedup, s->slot, s->epoch > DATAPLANE_EPOCH_FIRST, w->now_ns) != 0) return FKV_NO_MEMORY;
    if (s->repl.snapshot.owed) {
        /* What was taken over counts as a record: without the snapshot the log that goes on behind it is no copy's. */
        s->repl.owner.last = s->repl.owner.committed = s->repl.appended.lsn = 1;
        snapshots_owe(s);
    }
    if (s->durable) durable_begins(s); /* mutation: durable/lone-epoch-unlogged */
    return FKV_OK;
}

bool repl_follows(const shard *s) { return backup_follows(s); }

/* mutation: durable/served-before-snapshot */
bool repl_may_serve(const shard *s) { return replicate_may_serve(s) && !s->repl.snapshot.owed; }

void repl_serves(shard *s) {
    imports_end(s, FKV_BUSY);
    command_end(&s->repl.stepping_down, FKV_BUSY);
    handover_end(s, FKV_BUSY);
}

void repl_pauses(shard *s) { handover_end(s, FKV_BUSY); }

void repl_closes(shard *s) {
    command_end(&s->repl.following, FKV_ABORTED);
    command_end(&s->repl.basing, FKV_ABORTED);
    command_end(&s->repl.stepping_down, FKV_ABORTED);
    rely_end(s, FKV_ABORTED);
    handover_end(s, FKV_ABORTED);
    copies_end(s, FKV_ABORTED);
    imports_end(s, FKV_SHARD_CLOSED);
    snapshots_end(s);
    repl_undecided(s);
    if (s->repl.copy) owner_link_leave(s->repl.copy);
}

void repl_closed(shard *s) { copies_expect_none(s); }

bool repl_attend(shard *s) {
    if (s->repl.following && s->w->now_ns >= s->repl.following_until_ns) command_end(&s->repl.following, FKV_TIMEOUT);
    if (s->repl.handing) handover_watch(s);
    if (s->repl.stepping_down) handover_watch_step_down(s);
    if (s->repl.relying) rely_watch(s);
    if (s->repl.basing) base_watch(s);
    if (s->repl.backups)
        copies_watch(s);
    else
        copies_expect(s);
    return s->repl.following || s->repl.handing || s->repl.stepping_down || s->repl.basing || s->repl.relying ||
           s->repl.backups || s->repl.expects;
}

void repl_tick(shard *s, bool ticked) {
    if (s->repl.copy) integrity_step(s->repl.copy);
    if (ticked) imports_continue(s);
}

uint64_t repl_shard_deadline(const shard *s) {
    uint64_t at = UINT64_MAX, now = s->w->now_ns;
    if (s->state == SHARD_CLOSING) return at;
    if (s->starting && !s->repl.snapshot.owed) at = min_u64(at, max_u64(s->repl.copy->place.granted_until_ns, now + 1));
    if (s->repl.following) at = min_u64(at, s->repl.following_until_ns);
    if (s->repl.copy) at = min_u64(at, s->repl.copy->scrub_ns);
    if (s->repl.handing) at = min_u64(at, handover_deadline(s));
    if (s->repl.stepping_down) at = min_u64(at, handover_step_down_deadline(s));
    if (s->repl.backups) at = min_u64(at, copies_deadline(s));
    return at;
}

void repl_end(shard *s) {
    command_end(&s->repl.following, FKV_CLOSED);
    command_end(&s->repl.basing, FKV_CLOSED);
    command_end(&s->repl.handing, FKV_CLOSED);
    command_end(&s->repl.stepping_down, FKV_CLOSED);
    rely_end(s, FKV_CLOSED);
    copies_end(s, FKV_CLOSED);
    snapshots_leave(s, FKV_CLOSED);
    imports_end(s, FKV_CLOSED);
    durable_end(s); /* a start that failed has begun an epoch, say */
}

void shard_free_copy(shard *s) {
    backup_free(s->repl.copy);
    backlog_free(s->repl.backlog);
}
