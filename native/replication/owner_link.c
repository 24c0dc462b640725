/* owner_link.c: see owner_link.h. What a message does to a copy is decided by backup.c; here is whether it arrives.
 *
 *   RESTS     until again_ns       ASKS      a hello without a ticket is out, for a challenge
 *   ANSWERS   the hello that answers it is out            UP   accepted
 *
 * A connection that is over is freed at the end of the turn (`over`): completions at hand may name it. Whatever is wrong
 * with a message or a record, the whole link begins anew: FOLLOW says where to go on. */
#include "owner_link.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/clock.h"
#include "../dataplane/worker.h"
#include "../wire/identity.h"
#include "addresses.h"
#include "failure_detector.h"
#include "integrity.h"
#include "pull.h"
#include "replication.h"
#include "role.h"
#include "sender.h"

static const uint64_t MS = 1000000;
enum { AGAIN_MS = 10, SILENT_LEASES = 4 };
enum { SOON = 20, REFUSED_MS = 100 }; /* so often it asks again within AGAIN_MS after STALE, then after REFUSED_MS */
enum { ACKS_A_MESSAGE = (PEER_MESSAGE_MIN - sizeof(fkv_peer_list)) / sizeof(fkv_peer_ack) };

typedef enum { RESTS, ASKS, ANSWERS, UP } owner_link_state;

/* A message that waits for memory, and those of its shard behind it. */
typedef struct held {
    fkv_list link;
    const void *data;
    fkv_peer_message m;
    backup_at at;
} held;

struct owner_link {
    connection head;
    fkv_list of_worker; /* worker.repl.owner_links */
    worker *w;
    uint64_t id; /* as a client of the owner's; random */
    uint32_t tenant;
    link_addresses addresses;
    owner_link_state state;
    bool over;
    fab_conn *conn;
    uint64_t again_ns; /* RESTS: when it dials; else when it gives up */
    uint64_t asked_ns; /* the owner's clock, as it came last */
    uint64_t heard_ns;
    uint64_t silent_ns; /* it is given up when nothing came for so long */
    fkv_challenge challenge;
    puller *puller; /* of this connection; NULL: no large value was announced */
    fkv_list copies;
    fkv_list owing, waiting; /* copies that have something to acknowledge; of which messages wait for memory */
    uint64_t follow_ns;      /* when the next FOLLOW is to be said */
    uint64_t watch_ns;       /* when the owner of a copy may have been silent for too long */
    struct {
        fkv_peer_list head;
        fkv_peer_ack item[ACKS_A_MESSAGE];
    } acks; /* being made */
};

/* ---- dialing ---- */

static void rest(owner_link *l, uint64_t ms) {
    l->state = RESTS;
    l->challenge.number = 0;
    l->again_ns = l->w->now_ns + ms * MS;
}

static void next_address(owner_link *l) {
    bool vain = false;
    rest(l, addresses_next(&l->addresses, &vain) ? 0 : AGAIN_MS);
    if (vain) suspect_owner_of(&l->copies);
}

static void dial(owner_link *l) {
    link_addresses *y = &l->addresses;
    fkv_pass pass = access_replica_pass(l->w->access, l->id, l->tenant);
    fkv_hello hello = fkv_hello_make(&pass, l->challenge.number ? &l->challenge : NULL);
    fab_identity who = fkv_pass_identity(&pass);
    fab_cq *cq = l->w->cq[addresses_place(y)];
    if (!cq && addresses_other_device(y, l->w)) cq = l->w->cq[addresses_place(y)];
    int e = cq ? fab_connect_as(cq, y->address[y->at].text, &who, &hello, sizeof hello, l, &l->conn) : -EOPNOTSUPP;
    if (e) {
        l->conn = NULL;
        next_address(l);
        return;
    }
    l->state = l->challenge.number ? ANSWERS : ASKS;
    l->again_ns = l->w->now_ns + addresses_attempt_ms(y) * MS;
}

/* ---- over ---- */

/* `conn`: gets its messages back; NULL: it is over. */
static void drop_held(backup *b, fab_conn *conn) {
    list_remove(&b->waits);
    while (!list_empty(&b->held)) {
        held *h = LIST_OF(b->held.next, held, link);
        list_remove(&h->link);
        if (conn) fab_release(conn, h->data);
        free(h);
    }
}
/* The connection is of no use any more. */
static void give_up(owner_link *l) { l->over = true; }

/* After the connection, so that no READ writes any more. */
static void pulls_end(owner_link *l) {
    for (fkv_list *i = l->copies.next; i != &l->copies; i = i->next) pulls_drop(LIST_OF(i, backup, of_link));
    puller_free(l->puller);
    l->puller = NULL;
}

static void hang_up(owner_link *l) {
    if (l->conn) fab_disconnect(l->conn);
    l->conn = NULL;
    l->over = false;
    pulls_end(l);
    for (fkv_list *i = l->copies.next; i != &l->copies; i = i->next) {
        backup *b = LIST_OF(i, backup, of_link);
        b->led = false;
        b->follow_ns = 0;
        drop_held(b, NULL);
        list_remove(&b->owes);
    }
    l->follow_ns = 0;
}

static void free_owner_link(owner_link *l) {
    hang_up(l);
    list_remove(&l->of_worker);
    free(l);
}

/* ---- who follows over it ---- */

static owner_link *find(const worker *w, uint32_t tenant, const link_address *at, uint32_t count) {
    for (const fkv_list *i = w->repl.owner_links.next; i != &w->repl.owner_links; i = i->next) {
        owner_link *l = LIST_OF(i, owner_link, of_worker);
        if (l->tenant == tenant && addresses_same(&l->addresses, at, count)) return l;
    }
    return NULL;
}

static owner_link *make(worker *w, uint32_t tenant, const link_address *at, uint32_t count) {
    owner_link *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->head.kind = CONNECTION_OWNER_LINK;
    l->w = w;
    l->tenant = tenant;
    addresses_init(&l->addresses, at, count);
    fkv_random(&l->id, sizeof l->id);
    l->id |= 1; /* not 0 */
    list_init(&l->copies);
    list_init(&l->owing);
    list_init(&l->waiting);
    list_push(&w->repl.owner_links, &l->of_worker);
    return l;
}

bool owner_link_follow(backup *b, const link_address *at, uint32_t count) {
    worker *w = b->shard->w;
    uint32_t tenant = dataplane_tenant_of(w->d, b->shard->number);
    owner_link_leave(b);
    owner_link *l = find(w, tenant, at, count);
    if (!l && !(l = make(w, tenant, at, count))) return false;
    b->owner_link = l;
    b->follow_ns = l->follow_ns = l->watch_ns = 0;
    b->suspects = false;
    b->refusals = 0;
    b->doubt_ns = 0;
    b->followed_ns = w->now_ns;
    list_push(&l->copies, &b->of_link);
    l->silent_ns = max_u64(l->silent_ns, SILENT_LEASES * b->lease_ms * MS);
    return true;
}

static int send_message(owner_link *l, const void *message, uint32_t bytes) {
    struct iovec v = { (void *)(uintptr_t)message, bytes };
    return fab_send(l->conn, &v, 1);
}

void owner_link_leave(backup *b) {
    owner_link *l = b->owner_link;
    if (!l) return;
    pulls_drop(b);
    b->owner_link = NULL;
    list_remove(&b->of_link);
    list_remove(&b->owes);
    b->led = false;
    bool up = l->state == UP && !l->over;
    drop_held(b, up ? l->conn : NULL);
    fkv_peer_notice n = { .op = FKV_PEER_UNFOLLOW, .shard = b->shard->number, .epoch = b->place.epoch };
    if (up && send_message(l, &n, sizeof n) != 0) give_up(l);
}

/* ---- messages ---- */

static backup *copy_of(const owner_link *l, uint32_t number) {
    const shard *s = number < l->w->d->c.shards ? l->w->by_number[number] : NULL;
    return s && s->repl.copy && s->repl.copy->owner_link == l ? s->repl.copy : NULL;
}

static void owe(owner_link *l, backup *b) {
    if (list_empty(&b->owes)) list_push(&l->owing, &b->owes);
}

void owner_link_owes(backup *b) {
    if (b->owner_link && b->led) owe(b->owner_link, b);
}

/* False: the message is kept. */
static bool take_records(owner_link *l, backup *b, const fkv_peer_message *m, backup_at *at) {
    backup_result r = backup_takes(b, m, at);
    if (at->records) owe(l, b);
    if (r == BACKUP_ANEW) give_up(l);
    return r != BACKUP_WAITS;
}

static bool hold(owner_link *l, backup *b, const void *data, const fkv_peer_message *m, const backup_at *at) {
    held *h = malloc(sizeof *h);
    if (!h) return false;
    *h = (held){ .data = data, .m = *m, .at = *at };
    list_push(&b->held, &h->link);
    if (list_empty(&b->waits)) list_push(&l->waiting, &b->waits);
    return true;
}

static void records(owner_link *l, const void *data, const fkv_peer_message *m) {
    backup *b = copy_of(l, m->records.shard);
    backup_at at = { 0 };
    l->asked_ns = max_u64(l->asked_ns, m->records.asked_ns);
    bool done = !b || !b->led || (list_empty(&b->held) && take_records(l, b, m, &at));
    if (done)
        fab_release(l->conn, data);
    else if (!hold(l, b, data, m, &at))
        give_up(l);
}

static void beat(owner_link *l, const fkv_peer_message *m) {
    l->asked_ns = max_u64(l->asked_ns, m->list.asked_ns);
    for (uint32_t i = 0; i < m->list.count; i++) {
        fkv_peer_heartbeat x = wire_peer_heartbeat(m, i);
        backup *b = copy_of(l, x.shard);
        if (!b || !b->led) continue;
        backup_on_commit_index(b, x.epoch, x.committed);
        integrity_compare(b, &x);
        owe(l, b);
    }
}

static void led(owner_link *l, const fkv_peer_follow_ok *t) {
    backup *b = copy_of(l, t->shard);
    if (!b || b->follow_ns != UINT64_MAX) return;
    pulls_drop(b); /* the owner will announce anew */
    b->led = backup_on_epoch(b, t) == BACKUP_TOOK;
    if (b->led) owe(l, b);
    if (b->led) b->refusals = 0;
    if (b->led || b->failed != FKV_OK) role_answered(b->shard, b->failed);
}

static void announced(owner_link *l, const fkv_peer_message *m) {
    backup *b = copy_of(l, m->announce.shard);
    if (!b || !b->led) return;
    if (!l->puller) l->puller = puller_make(l->w, l->conn, addresses_place(&l->addresses));
    if (m->announce.epoch != b->place.epoch || !l->puller || pull_begin(l->puller, b, m) != BACKUP_TOOK) give_up(l);
}

static void forgotten(owner_link *l, const fkv_peer_bulk *m) {
    backup *b = copy_of(l, m->shard);
    if (b && b->led && m->epoch == b->place.epoch) pull_forget(b, m->version);
}

static void follow_in(owner_link *l, backup *b, uint64_t ms) {
    b->led = false;
    b->follow_ns = l->w->now_ns + ms * MS;
    l->follow_ns = min_u64(l->follow_ns, b->follow_ns);
}

/* Whoever was made the owner a moment ago may not know yet, and then answers nobody until it has a lease of this copy. */
static void refused(owner_link *l, backup *b) {
    drop_held(b, l->conn); /* what came before is not of what it follows next */
    pulls_drop(b);
    follow_in(l, b, b->refusals < SOON ? min_u64(AGAIN_MS, UINT64_C(1) << b->refusals) : REFUSED_MS);
    if (b->refusals < SOON) b->refusals++;
    role_answered(b->shard, FKV_NOT_OWNER);
    backup_tell(b, DATAPLANE_COPY_UNKNOWN);
}

static void received(owner_link *l, const fab_wc *wc) {
    fkv_peer_message m;
    backup *b;
    l->heard_ns = l->w->now_ns;
    if (wire_parse_peer(wc->data, wc->bytes, &m) != FKV_OK) {
        give_up(l);
        return;
    }
    switch (m.op) {
    case FKV_PEER_RECORDS: records(l, wc->data, &m); return;
    case FKV_PEER_FOLLOW_OK: led(l, &m.follow_ok); break;
    case FKV_PEER_HEARTBEAT: beat(l, &m); break;
    case FKV_PEER_VALUE_OFFER: announced(l, &m); break;
    case FKV_PEER_VALUE_CANCEL: forgotten(l, &m.bulk); break;
    case FKV_PEER_STALE:
        b = copy_of(l, m.notice.shard);
        if (b) refused(l, b);
        break;
    default: give_up(l); return;
    }
    fab_release(l->conn, wc->data);
}

static void connected(owner_link *l, const fab_wc *wc) {
    fkv_challenge c = { 0 };
    if (wc->status == FAB_SUCCESS) {
        l->state = UP;
        addresses_up(&l->addresses);
        l->heard_ns = l->w->now_ns;
        l->asked_ns = 0;
        if (fab_max_message(l->conn) < PEER_MESSAGE_MIN) give_up(l);
        return;
    }
    l->addresses.answered |= wc->status == FAB_REM_ACCESS_ERR;
    if (l->state == ASKS && wc->bytes >= sizeof c) memcpy(&c, wc->data, sizeof c);
    bool challenged = c.magic == FKV_CHALLENGE_MAGIC && c.number != 0;
    bool elsewhere = wc->status == FAB_OTHER_DEVICE_ERR || wc->status == FAB_FATAL_ERR;
    if (challenged) {
        rest(l, 0);
        l->challenge = c;
    } else if (elsewhere && addresses_other_device(&l->addresses, l->w)) {
        rest(l, 0);
    } else {
        next_address(l);
    }
    give_up(l);
}

void owner_link_event(worker *w, owner_link *l, const fab_wc *wc) {
    (void)w;
    if (l->over || wc->conn != l->conn) return;
    switch (wc->opcode) {
    case FAB_WC_CONNECT: connected(l, wc); break;
    case FAB_WC_RECV: received(l, wc); break;
    case FAB_WC_DISCONNECT: give_up(l); break;
    case FAB_WC_READ:
    case FAB_WC_ATTACH:
        if (l->puller) puller_event(l->puller, wc);
        break;
    default: break;
    }
}

/* ---- a turn ---- */

static void go_on(owner_link *l, backup *b) {
    while (!list_empty(&b->held)) {
        held *h = LIST_OF(b->held.next, held, link);
        if (!take_records(l, b, &h->m, &h->at) || l->over) return;
        list_remove(&h->link);
        fab_release(l->conn, h->data);
        free(h);
    }
    list_remove(&b->waits);
}

static void follow(owner_link *l, backup *b) {
    fkv_peer_follow f = backup_follow(b);
    int e = send_message(l, &f, sizeof f);
    if (e == 0)
        b->follow_ns = UINT64_MAX; /* is on its way */
    else if (e == -EAGAIN)
        follow_in(l, b, AGAIN_MS);
    else
        give_up(l);
}

static void follow_all(owner_link *l) {
    l->follow_ns = UINT64_MAX;
    for (fkv_list *i = l->copies.next; i != &l->copies && !l->over; i = i->next) {
        backup *b = LIST_OF(i, backup, of_link);
        if (b->follow_ns <= l->w->now_ns) follow(l, b);
        l->follow_ns = min_u64(l->follow_ns, b->follow_ns);
    }
}

/* Whose owner has no lease of it does not wait for it. */
/* mutation: durable/lease-before-snapshot */
static bool gives_leases(const backup *b) { return !b->shard->repl.snapshot.owed; }

/* Of as many as one message takes. False: the rest is said later, with what is true then. */
static bool acknowledge(owner_link *l) {
    fkv_peer_list *head = &l->acks.head;
    uint64_t now = fkv_now_ns(); /* not that of the turn: what is answered came after it began */
    uint32_t asked = 0;
    bool leases = gives_leases(LIST_OF(l->owing.next, backup, owes));
    *head = (fkv_peer_list){ .op = FKV_PEER_ACKS, .asked_ns = leases ? l->asked_ns : 0 };
    for (const fkv_list *i = l->owing.next; i != &l->owing && head->count < ACKS_A_MESSAGE; i = i->next, asked++) {
        if (gives_leases(LIST_OF(i, backup, owes)) != leases) break;
        if (backup_acknowledges(LIST_OF(i, backup, owes), now, &l->acks.item[head->count])) {
            unsuspect_owner(LIST_OF(i, backup, owes));
            head->count++;
        }
    }
    uint32_t bytes = (uint32_t)(sizeof *head + head->count * sizeof l->acks.item[0]);
    int e = head->count ? send_message(l, &l->acks, bytes) : 0;
    if (e == -EAGAIN) return false;
    if (e) give_up(l);
    for (fkv_list *i = l->owing.next, *after; asked; asked--, i = after) {
        after = i->next;
        list_remove(i);
    }
    return !l->over;
}

static int send_of(void *ctx, const void *message, uint32_t bytes) { return send_message(ctx, message, bytes); }

static void step_up(owner_link *l) {
    if (l->follow_ns <= l->w->now_ns) follow_all(l);
    for (fkv_list *i = l->waiting.next, *after; i != &l->waiting && !l->over; i = after) {
        after = i->next;
        go_on(l, LIST_OF(i, backup, waits));
    }
    if (l->puller && !l->over && !puller_step(l->puller, &(pull_out){ send_of, l })) give_up(l);
    while (!l->over && !list_empty(&l->owing) && acknowledge(l)) {}
    if (l->w->now_ns - l->heard_ns > l->silent_ns) give_up(l);
}

void owner_links_step(worker *w) {
    for (fkv_list *i = w->repl.owner_links.next, *after; i != &w->repl.owner_links; i = after) {
        after = i->next;
        owner_link *l = LIST_OF(i, owner_link, of_worker);
        if (list_empty(&l->copies)) {
            free_owner_link(l);
            continue;
        }
        if (l->state == UP && !l->over) step_up(l);
        if (l->watch_ns <= w->now_ns) l->watch_ns = watch_owner_of(&l->copies, l->heard_ns, w->now_ns);
        if ((l->state == ASKS || l->state == ANSWERS) && l->again_ns <= w->now_ns && !l->over) {
            next_address(l);
            give_up(l);
        }
        if (l->over) {
            hang_up(l);
            if (l->state == UP) addresses_lost(&l->addresses);
            if (l->state != RESTS) rest(l, AGAIN_MS);
        }
        if (l->state == RESTS && l->again_ns <= w->now_ns) dial(l);
    }
    if (w->repl.pulls) fetch_pool_step(w->repl.pulls);
}

uint64_t owner_links_deadline(const worker *w) {
    uint64_t at = UINT64_MAX;
    for (const fkv_list *i = w->repl.owner_links.next; i != &w->repl.owner_links; i = i->next) {
        const owner_link *l = LIST_OF(i, owner_link, of_worker);
        if (l->over || (l->puller && puller_broken(l->puller))) return 0;
        at = min_u64(at, l->watch_ns);
        if (l->state != UP) {
            at = min_u64(at, l->again_ns);
            continue;
        }
        at = min_u64(at, min_u64(l->heard_ns + l->silent_ns + 1, l->follow_ns));
    }
    return at;
}

void repl_leave(worker *w) {
    while (!list_empty(&w->repl.owner_links)) {
        owner_link *l = LIST_OF(w->repl.owner_links.next, owner_link, of_worker);
        hang_up(l);
        while (!list_empty(&l->copies)) {
            backup *b = LIST_OF(l->copies.next, backup, of_link);
            b->owner_link = NULL;
            list_remove(&b->of_link);
        }
        free_owner_link(l);
    }
}
