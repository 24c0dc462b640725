/* backup_link.c: see backup_link.h. What is sent is decided by sender.c; here is when, and over what. */
#include "backup_link.h"
#include <errno.h>
#include <stdlib.h>
#include "../dataplane/worker.h"
#include "bulk.h"
#include "replicate.h"
#include "sender.h"

enum {
    HEARTBEATS_A_LEASE = 5,
    HEARTBEATS_A_MESSAGE = (PEER_MESSAGE_MIN - sizeof(fkv_peer_list)) / sizeof(fkv_peer_heartbeat)
};

static const uint64_t DIGEST_NS = 1000000000;

struct backup_link {
    fkv_list of_worker; /* worker.repl.backup_links */
    client *c;
    fkv_list senders;
    bool blocked;      /* the peer gives no credits */
    uint64_t asked_ns; /* the latest that was sent */
    uint64_t beat_ns;  /* when a HEARTBEAT is due; UINT64_MAX: never */
    struct {
        fkv_peer_list head;
        fkv_peer_heartbeat item[HEARTBEATS_A_MESSAGE];
    } beats;                           /* being made */
    uint8_t records[PEER_MESSAGE_MIN]; /* being made */
};

backup_link *backup_link_make(client *c) {
    backup_link *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->c = c;
    l->beat_ns = UINT64_MAX;
    list_init(&l->senders);
    list_push(&c->w->repl.backup_links, &l->of_worker);
    return l;
}

fab_provider backup_link_provider(const backup_link *l) { return l->c->provider; }

void backup_link_free(backup_link *l) {
    if (!l) return;
    while (!list_empty(&l->senders)) sender_end(LIST_OF(l->senders.next, sender, of_link));
    list_remove(&l->of_worker);
    free(l);
}

/* ---- out ---- */

static int send_message(void *ctx, const void *message, uint32_t bytes) {
    backup_link *l = ctx;
    if (l->blocked) return -EAGAIN;
    struct iovec v = { (void *)(uintptr_t)message, bytes };
    int e = fab_send(l->c->conn, &v, 1);
    l->blocked = e == -EAGAIN;
    return e;
}
static peer_out out_of(backup_link *l) {
    return (peer_out){
        .send = send_message, .ctx = l, .buffer = l->records, .room = sizeof l->records, .place = l->c->place
    };
}

/* At once, or the link begins anew: a record of the same key may not overtake it. */
void backup_link_forgets(sender *f, uint64_t version) {
    backup_link *l = f->user;
    const shard *s = f->shard;
    fkv_peer_bulk m = {
        .op = FKV_PEER_VALUE_CANCEL, .shard = s->number, .epoch = s->repl.owner.epoch, .version = version
    };
    if (send_message(l, &m, sizeof m) != 0) client_doom(l->c, FKV_END_NONE);
}

void backup_links_wake(shard *s) {
    if (list_empty(&s->repl.unsent)) list_push(&s->w->repl.unsent, &s->repl.unsent);
}

/* -EAGAIN is no failure: credits wake it. */
static void check_sent(backup_link *l, int e) {
    if (e != 0 && e != -EAGAIN) client_doom(l->c, FKV_END_NONE);
}

static int send_stale(backup_link *l, uint32_t number) {
    fkv_peer_notice stale = { .op = FKV_PEER_STALE, .shard = number };
    return send_message(l, &stale, sizeof stale);
}

/* What the copy lacks is gone. It alone is told: the other shards of the link go on. Its sender stays until it was told: it
 * would wait for records for ever, and credits ask again. */
static int lost(backup_link *l, sender *f) {
    int e = send_stale(l, f->shard->number);
    if (e == 0) sender_end(f);
    return e;
}

static void send_records(shard *s) {
    for (fkv_list *i = s->repl.senders.next, *after; i != &s->repl.senders; i = after) {
        after = i->next;
        sender *f = LIST_OF(i, sender, of_shard);
        backup_link *l = f->user;
        if (l->blocked || l->c->doomed) continue;
        peer_out out = out_of(l);
        int e = sender_send(f, &out);
        l->asked_ns = max_u64(l->asked_ns, f->asked_ns);
        check_sent(l, e == -ESTALE ? lost(l, f) : e);
    }
}

static uint64_t beat_after(const sender *f) { return f->lease_ns / HEARTBEATS_A_LEASE; }

static void send_heartbeats(backup_link *l) {
    fkv_peer_list *head = &l->beats.head;
    uint32_t bytes = (uint32_t)(sizeof *head + head->count * sizeof l->beats.item[0]);
    if (head->count == 0) return;
    check_sent(l, send_message(l, &l->beats, bytes));
    l->asked_ns = max_u64(l->asked_ns, head->asked_ns);
    head->count = 0;
}

/* Of the shards that nothing was sent of lately; of each once a second, for its digest. */
static void beat(worker *w, backup_link *l) {
    fkv_peer_list *head = &l->beats.head;
    *head = (fkv_peer_list){ .op = FKV_PEER_HEARTBEAT, .asked_ns = w->now_ns };
    l->beat_ns = UINT64_MAX;
    for (const fkv_list *i = l->senders.next; i != &l->senders; i = i->next) {
        sender *f = LIST_OF(i, sender, of_link);
        l->beat_ns = min_u64(l->beat_ns, w->now_ns + beat_after(f));
        bool recent = w->now_ns - f->asked_ns < beat_after(f) / 2;
        if (recent && w->now_ns - f->digest_ns < DIGEST_NS) continue;
        f->digest_ns = w->now_ns;
        l->beats.item[head->count++] = sender_heartbeat(f);
        if (head->count == HEARTBEATS_A_MESSAGE) send_heartbeats(l);
    }
    send_heartbeats(l);
}

void backup_links_send(worker *w) {
    while (!list_empty(&w->repl.unsent)) {
        shard *s = LIST_OF(w->repl.unsent.next, shard, repl.unsent);
        list_remove(&s->repl.unsent);
        send_records(s);
    }
    for (fkv_list *i = w->repl.backup_links.next; i != &w->repl.backup_links; i = i->next) {
        backup_link *l = LIST_OF(i, backup_link, of_worker);
        if (l->beat_ns <= w->now_ns && !l->blocked && !l->c->doomed) beat(w, l);
    }
}

uint64_t backup_links_deadline(const worker *w) {
    uint64_t at = UINT64_MAX;
    for (const fkv_list *i = w->repl.backup_links.next; i != &w->repl.backup_links; i = i->next) {
        const backup_link *l = LIST_OF(i, backup_link, of_worker);
        if (!l->blocked && !l->c->doomed) at = min_u64(at, l->beat_ns);
    }
    return at;
}

void backup_link_credits(client *c) {
    backup_link *l = c->link;
    l->blocked = false;
    for (const fkv_list *i = l->senders.next; i != &l->senders; i = i->next)
        backup_links_wake(LIST_OF(i, sender, of_link)->shard);
}

/* ---- in ---- */

/* Of this link; NULL: it has ended. */
static sender *sender_here(worker *w, backup_link *l, uint32_t number) {
    const shard *s = number < w->d->c.shards ? w->by_number[number] : NULL;
    if (!s) return NULL;
    for (const fkv_list *i = s->repl.senders.next; i != &s->repl.senders; i = i->next)
        if (LIST_OF(i, sender, of_shard)->user == l) return LIST_OF(i, sender, of_shard);
    return NULL;
}

/* Without credits it is not said: what the copy sends next has no answer. */
void backup_link_refuse(sender *f) {
    backup_link *l = f->user;
    if (l && !l->c->doomed) check_sent(l, send_stale(l, f->shard->number));
    sender_end(f);
}

/* The answer goes out at once, or the link begins anew: records may not overtake it. */
static bool followed(worker *w, backup_link *l, const fkv_peer_follow *m) {
    sender *f;
    fkv_peer_follow_ok follow_ok;
    bool mine = fkv_range_has(l->c->tenant->shards, m->shard);
    fkv_status s = mine ? sender_begin(w, m, &f, &follow_ok) : FKV_NOT_OWNER;
    if (s == FKV_NO_MEMORY) return false;
    if (s != FKV_OK) return send_stale(l, m->shard) == 0;
    f->user = l;
    list_push(&l->senders, &f->of_link);
    l->beat_ns = w->now_ns; /* the first lease */
    backup_links_wake(f->shard);
    return send_message(l, &follow_ok, sizeof follow_ok) == 0;
}

static bool acknowledged(worker *w, backup_link *l, const fkv_peer_message *m) {
    if (m->list.asked_ns > l->asked_ns) return false; /* mutation: links/lease-from-the-future */
    for (uint32_t i = 0; i < m->list.count; i++) {
        fkv_peer_ack a = wire_peer_ack(m, i);
        sender *f = sender_here(w, l, a.shard);
        if (f && !sender_acked(f, &a, m->list.asked_ns)) return false;
    }
    return true;
}

static void pulled(worker *w, backup_link *l, const fkv_peer_bulk *m) {
    sender *f = sender_here(w, l, m->shard);
    if (!f || f->shard->repl.owner.epoch != m->epoch) return;
    bulk_pulled(f, m->version, (fkv_status)m->status);
    replicate_pulled(f->shard);
}

static bool take(worker *w, backup_link *l, const fkv_peer_message *m) {
    sender *f;
    switch (m->op) {
    case FKV_PEER_FOLLOW: return followed(w, l, &m->follow);
    case FKV_PEER_ACKS: return acknowledged(w, l, m);
    case FKV_PEER_UNFOLLOW:
        f = sender_here(w, l, m->notice.shard);
        if (f) sender_end(f);
        return true;
    case FKV_PEER_VALUE_READ: pulled(w, l, &m->bulk); return true;
    default: return false; /* an owner's */
    }
}

void backup_link_received(worker *w, client *c, const fab_wc *wc) {
    fkv_peer_message m;
    if (wire_parse_peer(wc->data, wc->bytes, &m) != FKV_OK || !take(w, c->link, &m)) {
        w->stats.refused[FKV_BAD_REQUEST]++;
        client_doom(c, FKV_END_MALFORMED);
        return;
    }
    fab_release(c->conn, wc->data);
}
