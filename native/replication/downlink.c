/* downlink.c: see downlink.h. What is sent is decided by feed.c; here is when, and over what. */
#include "downlink.h"
#include <errno.h>
#include <stdlib.h>
#include "../dataplane/worker.h"
#include "bulk.h"
#include "feed.h"
#include "replicate.h"

enum { BEATS_A_LEASE = 5, BEATS_A_MESSAGE = (PEER_MESSAGE_MIN - sizeof(fkv_peer_list)) / sizeof(fkv_peer_beat) };

static const uint64_t DIGEST_NS = 1000000000;

struct downlink {
    fkv_list of_worker; /* worker.downlinks */
    client *c;
    fkv_list feeds;
    bool blocked;      /* the peer gives no credits */
    uint64_t asked_ns; /* the latest that was sent */
    uint64_t beat_ns;  /* when a BEAT is due; UINT64_MAX: never */
    struct {
        fkv_peer_list head;
        fkv_peer_beat item[BEATS_A_MESSAGE];
    } beats;                           /* being made */
    uint8_t records[PEER_MESSAGE_MIN]; /* being made */
};

downlink *downlink_make(client *c) {
    downlink *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->c = c;
    l->beat_ns = UINT64_MAX;
    list_init(&l->feeds);
    list_push(&c->w->downlinks, &l->of_worker);
    return l;
}

fab_provider downlink_provider(const downlink *l) { return l->c->provider; }

void downlink_free(downlink *l) {
    if (!l) return;
    while (!list_empty(&l->feeds)) feed_end(LIST_OF(l->feeds.next, feed, of_link));
    list_remove(&l->of_worker);
    free(l);
}

/* ---- out ---- */

static int send_message(void *ctx, const void *message, uint32_t bytes) {
    downlink *l = ctx;
    if (l->blocked) return -EAGAIN;
    struct iovec v = { (void *)(uintptr_t)message, bytes };
    int e = fab_send(l->c->conn, &v, 1);
    l->blocked = e == -EAGAIN;
    return e;
}
static peer_out out_of(downlink *l) {
    return (peer_out){
        .send = send_message, .ctx = l, .buffer = l->records, .room = sizeof l->records, .place = l->c->place
    };
}

/* At once, or the link begins anew: a record of the same key may not overtake it. */
void downlink_forgets(feed *f, uint64_t version) {
    downlink *l = f->user;
    const shard *s = f->shard;
    fkv_peer_bulk m = { .op = FKV_PEER_FORGET, .shard = s->number, .epoch = s->replica.epoch, .version = version };
    if (send_message(l, &m, sizeof m) != 0) client_doom(l->c, FKV_END_NONE);
}

void downlinks_wake(shard *s) {
    if (list_empty(&s->feeding)) list_push(&s->w->feeding, &s->feeding);
}

/* -EAGAIN is no failure: credits wake it. */
static void check_sent(downlink *l, int e) {
    if (e != 0 && e != -EAGAIN) client_doom(l->c, FKV_END_NONE);
}

static int send_stale(downlink *l, uint32_t number) {
    fkv_peer_notice stale = { .op = FKV_PEER_STALE, .shard = number };
    return send_message(l, &stale, sizeof stale);
}

/* What the copy lacks is gone. It alone is told: the other shards of the link go on. Its feed stays until it was told: it
 * would wait for records for ever, and credits ask again. */
static int lost(downlink *l, feed *f) {
    int e = send_stale(l, f->shard->number);
    if (e == 0) feed_end(f);
    return e;
}

static void send_records(shard *s) {
    for (fkv_list *i = s->feeds.next, *after; i != &s->feeds; i = after) {
        after = i->next;
        feed *f = LIST_OF(i, feed, of_shard);
        downlink *l = f->user;
        if (l->blocked || l->c->doomed) continue;
        peer_out out = out_of(l);
        int e = feed_send(f, &out);
        l->asked_ns = max_u64(l->asked_ns, f->asked_ns);
        check_sent(l, e == -ESTALE ? lost(l, f) : e);
    }
}

static uint64_t beat_after(const feed *f) { return f->lease_ns / BEATS_A_LEASE; }

static void send_beats(downlink *l) {
    fkv_peer_list *head = &l->beats.head;
    uint32_t bytes = (uint32_t)(sizeof *head + head->count * sizeof l->beats.item[0]);
    if (head->count == 0) return;
    check_sent(l, send_message(l, &l->beats, bytes));
    l->asked_ns = max_u64(l->asked_ns, head->asked_ns);
    head->count = 0;
}

/* Of the shards that nothing was sent of lately; of each once a second, for its digest. */
static void beat(worker *w, downlink *l) {
    fkv_peer_list *head = &l->beats.head;
    *head = (fkv_peer_list){ .op = FKV_PEER_BEAT, .asked_ns = w->now_ns };
    l->beat_ns = UINT64_MAX;
    for (const fkv_list *i = l->feeds.next; i != &l->feeds; i = i->next) {
        feed *f = LIST_OF(i, feed, of_link);
        l->beat_ns = min_u64(l->beat_ns, w->now_ns + beat_after(f));
        bool recent = w->now_ns - f->asked_ns < beat_after(f) / 2;
        if (recent && w->now_ns - f->digest_ns < DIGEST_NS) continue;
        f->digest_ns = w->now_ns;
        l->beats.item[head->count++] = feed_beat(f);
        if (head->count == BEATS_A_MESSAGE) send_beats(l);
    }
    send_beats(l);
}

void downlinks_send(worker *w) {
    while (!list_empty(&w->feeding)) {
        shard *s = LIST_OF(w->feeding.next, shard, feeding);
        list_remove(&s->feeding);
        send_records(s);
    }
    for (fkv_list *i = w->downlinks.next; i != &w->downlinks; i = i->next) {
        downlink *l = LIST_OF(i, downlink, of_worker);
        if (l->beat_ns <= w->now_ns && !l->blocked && !l->c->doomed) beat(w, l);
    }
}

uint64_t downlinks_deadline(const worker *w) {
    uint64_t at = UINT64_MAX;
    for (const fkv_list *i = w->downlinks.next; i != &w->downlinks; i = i->next) {
        const downlink *l = LIST_OF(i, downlink, of_worker);
        if (!l->blocked && !l->c->doomed) at = min_u64(at, l->beat_ns);
    }
    return at;
}

void downlink_credits(client *c) {
    downlink *l = c->link;
    l->blocked = false;
    for (const fkv_list *i = l->feeds.next; i != &l->feeds; i = i->next)
        downlinks_wake(LIST_OF(i, feed, of_link)->shard);
}

/* ---- in ---- */

/* Of this link; NULL: it has ended. */
static feed *feed_here(worker *w, downlink *l, uint32_t number) {
    const shard *s = number < w->d->c.shards ? w->by_number[number] : NULL;
    if (!s) return NULL;
    for (const fkv_list *i = s->feeds.next; i != &s->feeds; i = i->next)
        if (LIST_OF(i, feed, of_shard)->user == l) return LIST_OF(i, feed, of_shard);
    return NULL;
}

/* Without credits it is not said: what the copy sends next has no answer. */
void downlink_refuse(feed *f) {
    downlink *l = f->user;
    if (l && !l->c->doomed) check_sent(l, send_stale(l, f->shard->number));
    feed_end(f);
}

/* The answer goes out at once, or the link begins anew: records may not overtake it. */
static bool followed(worker *w, downlink *l, const fkv_peer_follow *m) {
    feed *f;
    fkv_peer_takeover takeover;
    bool mine = fkv_range_has(l->c->tenant->shards, m->shard);
    fkv_status s = mine ? feed_begin(w, m, &f, &takeover) : FKV_NOT_OWNER;
    if (s == FKV_NO_MEMORY) return false;
    if (s != FKV_OK) return send_stale(l, m->shard) == 0;
    f->user = l;
    list_push(&l->feeds, &f->of_link);
    l->beat_ns = w->now_ns; /* the first lease */
    downlinks_wake(f->shard);
    return send_message(l, &takeover, sizeof takeover) == 0;
}

static bool acknowledged(worker *w, downlink *l, const fkv_peer_message *m) {
    if (m->list.asked_ns > l->asked_ns) return false; /* mutation: links/lease-from-the-future */
    for (uint32_t i = 0; i < m->list.count; i++) {
        fkv_peer_ack a = wire_peer_ack(m, i);
        feed *f = feed_here(w, l, a.shard);
        if (f && !feed_acked(f, &a, m->list.asked_ns)) return false;
    }
    return true;
}

static void pulled(worker *w, downlink *l, const fkv_peer_bulk *m) {
    feed *f = feed_here(w, l, m->shard);
    if (!f || f->shard->replica.epoch != m->epoch) return;
    bulk_pulled(f, m->version, (fkv_status)m->status);
    replicate_pulled(f->shard);
}

static bool take(worker *w, downlink *l, const fkv_peer_message *m) {
    feed *f;
    switch (m->op) {
    case FKV_PEER_FOLLOW: return followed(w, l, &m->follow);
    case FKV_PEER_ACKS: return acknowledged(w, l, m);
    case FKV_PEER_UNFOLLOW:
        f = feed_here(w, l, m->notice.shard);
        if (f) feed_end(f);
        return true;
    case FKV_PEER_PULLED: pulled(w, l, &m->bulk); return true;
    default: return false; /* an owner's */
    }
}

void downlink_received(worker *w, client *c, const fab_wc *wc) {
    fkv_peer_message m;
    if (wire_parse_peer(wc->data, wc->bytes, &m) != FKV_OK || !take(w, c->link, &m)) {
        w->stats.refused[FKV_BAD_REQUEST]++;
        client_doom(c, FKV_END_MALFORMED);
        return;
    }
    fab_release(c->conn, wc->data);
}
