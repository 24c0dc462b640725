/* sender.c: see sender.h.
 *
 * A record is made anew each time it is sent (uncommitted.h). What has been committed meanwhile is kept for copies that join
 * only (backlog.h). */
#include "sender.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "../dataplane/op.h"
#include "../dataplane/worker.h"
#include "backlog.h"
#include "backup.h"
#include "backup_link.h"
#include "bulk.h"
#include "copies.h"
#include "integrity.h"
#include "replicate.h"
#include "uncommitted.h"

static const uint64_t MS = 1000000;
/* Records that a copy may have been sent and not acknowledged, where its log may lag. With those that it may lag behind
 * when it is required, and one message more, they are fewer than its ring takes. */
enum { UNLOGGED_MOST = REPLICA_WINDOW / 2 };

static uint64_t bytes_behind(const shard *s, uint64_t lsn) {
    uint64_t bytes = s->repl.backlog ? backlog_room_behind(s->repl.backlog, lsn) : 0;
    lsn = max_u64(lsn, s->repl.owner.committed);
    const uint8_t *key, *value;
    for (uncommitted p = uncommitted_at(s, lsn + 1); p.lsn <= s->repl.owner.last; uncommitted_next(&p)) {
        fkv_record r = uncommitted_record(&p, &key, &value);
        bytes += record_room(r.kind != FKV_RECORD_DELETE, r.key_bytes, r.value_bytes);
    }
    return bytes;
}

/* ---- a copy comes ---- */

sender *sender_of(const shard *s, uint64_t id) {
    for (const fkv_list *l = s->repl.senders.next; l != &s->repl.senders; l = l->next)
        if (LIST_OF(l, sender, of_shard)->id == id) return LIST_OF(l, sender, of_shard);
    return NULL;
}

/* The last record that it has of this epoch's log, when it has dropped what the owner has not. False: it is no copy that
 * could go on from there. */
static bool agree(const shard *s, const fkv_peer_follow *m, uint64_t *prepared) {
    const replica_owner *o = &s->repl.owner;
    uint64_t first = s->repl.backlog ? backlog_first(s->repl.backlog) : o->committed + 1; /* that can be sent */
    /* mutation: links/owner-of-the-past */
    if (!replica_goes_on(o, m->id, m->epoch)) return false;
    *prepared = m->epoch < o->epoch ? min_u64(m->prepared, o->inherited) : m->prepared;
    return *prepared + 1 >= first && *prepared <= o->last; /* mutation: links/lacks-committed */
}

fkv_status sender_begin(worker *w, const fkv_peer_follow *m, sender **out, fkv_peer_follow_ok *answer) {
    shard *s = m->shard < w->d->c.shards ? w->by_number[m->shard] : NULL;
    uint64_t prepared;
    if (!s || s->state == SHARD_CLOSING) return FKV_NOT_OWNER;
    int i = replica_place(&s->repl.owner, m->id);
    if (i < 0 || !agree(s, m, &prepared)) return copies_refuse(s, m->id);
    sender *f = sender_of(s, m->id);
    if (f) sender_end(f);
    f = calloc(1, sizeof *f);
    if (!f) return FKV_NO_MEMORY;
    *f = (sender){ .shard = s,
                   .id = m->id,
                   .sent = prepared,
                   .base = s->repl.drawn_bytes - bytes_behind(s, prepared) - bulk_bytes(s),
                   .lease_ns = m->lease_ms * MS };
    s->repl.place[i].limit = f->base + min_u64(m->room, UINT64_MAX - f->base);
    bulk_sender_begins(s, (uint32_t)i);
    list_init(&f->of_link);
    list_push(&s->repl.senders, &f->of_shard);
    s->repl.place[i].unlinked_ns = 0;
    *answer = (fkv_peer_follow_ok){ .op = FKV_PEER_FOLLOW_OK,
                                    .shard = s->number,
                                    .epoch = s->repl.owner.epoch,
                                    .config = s->repl.owner.config,
                                    .last = s->repl.owner.inherited };
    *out = f;
    return FKV_OK;
}

void sender_end(sender *f) {
    int i = replica_place(&f->shard->repl.owner, f->id);
    if (i >= 0) f->shard->repl.place[i].unlinked_ns = f->shard->w->now_ns;
    list_remove(&f->of_shard);
    list_remove(&f->of_link);
    free(f);
}

/* ---- records, acknowledgements, beats ---- */

/* Whether the copy was sent a record whose value it still pulls, or as much as its log lags behind. What follows would
 * fill its messages, and keep other shards of the link waiting. */
static bool is_busy(const sender *f) {
    int i = replica_place(&f->shard->repl.owner, f->id);
    if (i < 0) return false;
    uint64_t acknowledged = f->shard->repl.owner.peer[i].prepared;
    bool pulls = f->sent >= f->pulls && acknowledged < f->pulls;
    return pulls || (f->shard->durable && f->sent > acknowledged + UNLOGGED_MOST);
}

/* The next record took effect here. One with a large value that is not the key's any more goes as its removal: what
 * replaced it follows, and the copy is nobody's choice before it has that. To retries it answers the same. */
static int send_committed(sender *f, fkv_records *head, const peer_out *out) {
    const shard *s = f->shard;
    uint8_t *body = out->buffer + sizeof *head;
    uint32_t room = out->room - (uint32_t)sizeof *head, bytes;
    uint64_t not_taken = 0;
    fkv_record r;
    const uint8_t *key;
    bool there = true, large = backlog_is_large(s->repl.backlog, head->first, &r, &key);
    int e = large ? bulk_announce_committed(f, out, &r, key, &there) : 0;
    if (e) return e;
    if (there) {
        if (large) f->pulls = head->first;
        bytes = backlog_fill(s->repl.backlog, head->first, body, room, &head->count);
    } else {
        not_taken = record_room(true, r.key_bytes, r.value_bytes);
        r.kind = FKV_RECORD_DELETE;
        r.codec = 0;
        r.value_bytes = r.user_flags = 0;
        r.expiry_ms = 0;
        bytes = wire_put_record(body, room, &r, key, NULL);
        head->count = 1;
    }
    memcpy(out->buffer, head, sizeof *head);
    e = out->send(out->ctx, out->buffer, (uint32_t)sizeof *head + bytes);
    if (e == 0) f->base += not_taken;
    return e;
}

/* Where the value of the next record lies, if that is large and the copy does not know. */
static int announce_next(sender *f, const uncommitted *p, const peer_out *out) {
    const uint8_t *key, *value;
    fkv_record r = uncommitted_record(p, &key, &value);
    if (r.kind != FKV_RECORD_BULK) return 0;
    backup *b = p->s->repl.copy;
    uint8_t before = p->of ? p->of->announced : backup_record_at(b, p->lsn)->announced, announced = before;
    int e = bulk_announce(f, out, uncommitted_prepared(p), r, key, &announced);
    int i = replica_place(&p->s->repl.owner, f->id);
    bool has = p->of && i >= 0 && p->of->pulled >> i & 1;
    if (e == 0 && !has) f->pulls = p->lsn; /* mutation: bulk/pulls-unseen */
    if (announced == before) return e;
    if (p->of)
        p->of->announced = announced;
    else
        backup_record_announced(b, p->lsn, 0xff, announced);
    return e;
}

static int send_prepared(sender *f, uncommitted *p, fkv_records *head, const peer_out *out) {
    int e = announce_next(f, p, out);
    if (e) return e;
    uint32_t bytes = uncommitted_fill(p, out->buffer + sizeof *head, out->room - (uint32_t)sizeof *head, &head->count);
    fkv_assert(head->count > 0);
    memcpy(out->buffer, head, sizeof *head);
    return out->send(out->ctx, out->buffer, (uint32_t)sizeof *head + bytes);
}

/* What has no number is announced last: of a key, what took effect before is at the copy by then. */
int sender_send(sender *f, const peer_out *out) {
    const shard *s = f->shard;
    const replica_owner *r = &s->repl.owner;
    /* mutation: joins/backlog-not-kept */
    bool kept = s->repl.backlog && f->sent + 1 >= backlog_first(s->repl.backlog);
    if (f->sent < r->committed && !kept) return -ESTALE; /* nobody waited for it, and what it lacks is gone */
    uncommitted p = uncommitted_at(s, max_u64(f->sent, r->committed) + 1);
    while (f->sent < r->last && !is_busy(f)) {
        fkv_records head = { .op = FKV_PEER_RECORDS,
                             .shard = s->number,
                             .epoch = r->epoch,
                             .config = r->config,
                             .first = f->sent + 1,
                             .committed = r->committed,
                             .asked_ns = s->w->now_ns };
        int e = f->sent < r->committed ? send_committed(f, &head, out) : send_prepared(f, &p, &head, out);
        if (e) return e;
        f->sent += head.count;
        f->asked_ns = head.asked_ns;
    }
    return f->sent < r->committed || list_empty(&s->repl.bulks) ? 0 : bulk_announce_all(f, out);
}

bool sender_acked(sender *f, const fkv_peer_ack *a, uint64_t asked_ns) {
    shard *s = f->shard;
    int i = replica_place(&s->repl.owner, f->id);
    bool busy = is_busy(f);
    if (i < 0 || a->prepared > f->sent) return false; /* mutation: links/unsent-acknowledged */
    uint64_t lease = asked_ns ? replica_lease_end(asked_ns, f->lease_ns, s->w->d->c.drift_ppm) : 0;
    if (!replicate_acked(s, f->id, &(replica_ack){ .epoch = a->epoch, .prepared = a->prepared }, lease)) return false;
    s->repl.place[i].limit = f->base + min_u64(a->limit, UINT64_MAX - f->base);
    if (busy && !is_busy(f)) backup_links_wake(s);
    return true;
}

fkv_peer_heartbeat sender_heartbeat(sender *f) {
    const shard *s = f->shard;
    f->asked_ns = s->w->now_ns;
    return (fkv_peer_heartbeat){ .shard = s->number,
                                 .epoch = s->repl.owner.epoch,
                                 .committed = s->repl.owner.committed,
                                 .digest = integrity_digest(s) };
}
