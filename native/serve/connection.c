/* connection.c: connections: asked for, accepted or refused, ended.
 *
 * A client is ended after the completions at hand were looked at (client_doom only marks it), because some may be its
 * own, and not before the copier has stopped reading its memory. */
#include "connection.h"
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "../base/clock.h"
#include "../dataplane/client.h"
#include "../replication/replication.h"
#include "../storage/shard.h"
#include "stages.h"
#include "transfer.h"
#include "wait.h"

/* Of one client to one worker. It uses one; one that has lost its connection comes again before the end of that is
 * noticed here. */
enum { CONNECTIONS_OF_ONE = 4 };

/* Whether it is a hello, and in a version that is known here. */
static fkv_status read_hello(const fab_wc *wc, fkv_hello *h, uint8_t *version) {
    if (wc->bytes < sizeof *h) return FKV_BAD_REQUEST;
    memcpy(h, wc->data, sizeof *h);
    if (h->magic != FKV_HELLO_MAGIC || h->version_min > h->version_max) return FKV_BAD_REQUEST;
    if (h->version_min > FKV_WIRE_VERSION_MAX || h->version_max < FKV_WIRE_VERSION_MIN) return FKV_VERSION_UNSUPPORTED;
    *version = h->version_max < FKV_WIRE_VERSION_MAX ? h->version_max : FKV_WIRE_VERSION_MAX;
    return FKV_OK;
}

/* The challenge is used up by the right answer only: its number can be guessed. */
static fkv_status check_proof(worker *w, const fkv_hello *h, const uint8_t nonce[FKV_NONCE_BYTES]) {
    const fkv_ticket *t = &h->ticket;
    /* mutation: access/no-proof */
    if (!access_proved(w->access, t, fkv_hello_head(h), nonce, h->proof)) return FKV_UNAUTHORIZED;
    challenge_answered(&w->challenges, h->challenge); /* mutation: access/challenge-twice */
    return t->tenant < w->d->c.tenants && access_good(w->access, t, fkv_wall_ms()) ? FKV_OK : FKV_UNAUTHORIZED;
}

static bool count_up(uint32_t *clients, uint32_t most) {
    if (__atomic_add_fetch(clients, 1, __ATOMIC_RELAXED) <= most) return true;
    __atomic_sub_fetch(clients, 1, __ATOMIC_RELAXED);
    return false;
}
/* A server that copies a shard is none of its domain's clients; a link takes no place at all: clients are not to keep a
 * shard from its backups. */
static uint32_t *places_of(dp_tenant *t, uint32_t flags, uint32_t *none) {
    return flags & FKV_TICKET_COPY ? none : &t->clients;
}
static void give_place(dataplane *d, dp_tenant *t, uint32_t flags) {
    uint32_t none = 1;
    if (flags & FKV_TICKET_REPLICA) return;
    __atomic_sub_fetch(places_of(t, flags, &none), 1, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&d->clients, 1, __ATOMIC_RELAXED);
}
static bool take_place(dataplane *d, dp_tenant *t, uint32_t flags) {
    uint32_t none = 0;
    if (flags & FKV_TICKET_REPLICA) return true;
    if (!count_up(&d->clients, d->c.max_clients)) return false;
    if (count_up(places_of(t, flags, &none), t->max_clients)) return true;
    __atomic_sub_fetch(&d->clients, 1, __ATOMIC_RELAXED);
    return false;
}

static void unmake(client *c) {
    repl_unlink(c);
    dedup_leave(&c->w->dedup, c->memory, c->w->now_ns);
    free(c);
}

static client *make(worker *w, uint32_t place, fab_conn *conn, const fkv_ticket *t,
                    const uint8_t nonce[FKV_NONCE_BYTES]) {
    client *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->memory = dedup_enter(&w->dedup, t->client, w->now_ns);
    if (!c->memory) {
        free(c);
        return NULL;
    }
    c->w = w;
    c->conn = conn;
    c->place = place;
    fetch_source_init(&c->source, conn, place, true);
    c->provider = fab_place_provider(place);
    c->tenant = &w->d->tenant[t->tenant];
    c->ticket = *t;
    memcpy(c->nonce, nonce, sizeof c->nonce);
    list_init(&c->of_worker);
    list_init(&c->sending);
    list_init(&c->blocked);
    list_init(&c->ops);
    list_init(&c->out);
    if (!(t->flags & FKV_TICKET_REPLICA)) return c; /* mutation: links/any-ticket */
    c->head.kind = CONNECTION_BACKUP_LINK;
    if (repl_link(c)) return c;
    unmake(c);
    return NULL;
}

/* No one client takes the places of others. */
static void end_surplus(worker *w, const client *c) {
    client *oldest = NULL;
    uint32_t n = 0;
    if (dedup_holders(c->memory) <= CONNECTIONS_OF_ONE) return;
    for (fkv_list *l = w->clients.next; l != &w->clients; l = l->next) {
        client *o = LIST_OF(l, client, of_worker);
        if (o->memory != c->memory) continue;
        if (!oldest) oldest = o;
        n++;
    }
    if (n > CONNECTIONS_OF_ONE) client_doom(oldest, FKV_END_SURPLUS);
}

static void refuse(worker *w, fab_conn *conn, fkv_welcome *welcome, fkv_status s) {
    w->stats.refused[s]++;
    welcome->status = (uint8_t)s;
    fab_reject(conn, welcome, sizeof *welcome);
}

/* A server that has just started does not know which shards are its own: it must not tell their copies that it knows
 * none of them. With its first lease it knows. */
static bool knows_copies(const dataplane *d) { return __atomic_load_n(&d->grant_until_ns, __ATOMIC_RELAXED) != 0; }

/* One who has proved who it is. */
static void admit(worker *w, uint32_t place, fab_conn *conn, const fkv_ticket *t, const uint8_t nonce[FKV_NONCE_BYTES],
                  fkv_welcome *welcome) {
    dataplane *d = w->d;
    dp_tenant *tenant = &d->tenant[t->tenant];
    bool is_early = t->flags & FKV_TICKET_REPLICA && !knows_copies(d);
    if (is_early || !take_place(d, tenant, t->flags)) {
        refuse(w, conn, welcome, FKV_BUSY);
        return;
    }
    client *c = make(w, place, conn, t, nonce);
    if (!c) {
        give_place(d, tenant, t->flags);
        refuse(w, conn, welcome, FKV_NO_MEMORY);
        return;
    }
    fab_set_user(conn, c);
    welcome->ended = dedup_take_end(c->memory);
    /* mutation: tenants/connections-shared */
    if (fab_accept(conn, t->tenant, welcome, sizeof *welcome) != 0 || fab_max_message(conn) < FKV_MESSAGE_MIN) {
        fab_disconnect(conn);
        unmake(c);
        give_place(d, tenant, t->flags);
        return;
    }
    c->max_message = fab_max_message(conn);
    if (c->link) fab_attend(conn);
    list_push(&w->clients, &c->of_worker);
    w->stats.clients++;
    w->stats.clients_over[c->provider]++;
    w->expiry_ms = min_u64(w->expiry_ms, t->expires_ms);
    end_surplus(w, c);
}

void client_ask(worker *w, uint32_t place, const fab_wc *wc) {
    fkv_hello h;
    uint8_t nonce[FKV_NONCE_BYTES];
    fkv_welcome welcome = { .magic = FKV_WELCOME_MAGIC,
                            .version = FKV_WIRE_VERSION_MAX,
                            .server_incarnation = w->d->c.server_incarnation,
                            .lease_ms = w->d->c.lease_ms,
                            .drift_ppm = w->d->c.drift_ppm,
                            .wall_ms = fkv_wall_ms(),
                            .quota = w->d->c.client_quota,
                            .takes = FKV_TAKES_REPORTS };
    fkv_status s = read_hello(wc, &h, &welcome.version);
    if (s == FKV_OK && !challenge_find(&w->challenges, h.challenge, nonce)) {
        fkv_challenge fresh = challenge_make(&w->challenges);
        fab_reject(wc->conn, &fresh, sizeof fresh);
        return;
    }
    if (s == FKV_OK) s = check_proof(w, &h, nonce);
    if (s != FKV_OK)
        refuse(w, wc->conn, &welcome, s);
    else
        admit(w, place, wc->conn, &h.ticket, nonce, &welcome);
}

/* ---- for how long ---- */

/* Another ticket of the same client, for the same shards; what is for servers is no client's to get or lose. */
static bool is_like(const fkv_ticket *a, const fkv_ticket *b) {
    return a->client == b->client && a->tenant == b->tenant && !((a->flags ^ b->flags) & FKV_TICKET_SERVERS);
}

fkv_status client_renew(client *c, const uint8_t *body) {
    worker *w = c->w;
    fkv_renewal r;
    memcpy(&r, body, sizeof r);
    /* mutation: access/renewed-as-another */
    if (!is_like(&r.ticket, &c->ticket) || !access_good(w->access, &r.ticket, w->wall_ms)) return FKV_UNAUTHORIZED;
    /* mutation: access/renewal-unproved */
    if (!access_proved(w->access, &r.ticket, FKV_RENEWAL_HEAD, c->nonce, r.proof)) return FKV_UNAUTHORIZED;
    /* An earlier one, said again, takes nothing away. */
    if (r.ticket.expires_ms < c->ticket.expires_ms) return FKV_OK;
    c->ticket = r.ticket;
    w->expiry_ms = min_u64(w->expiry_ms, r.ticket.expires_ms);
    return FKV_OK;
}

void clients_expire(worker *w) {
    w->expiry_ms = UINT64_MAX;
    for (fkv_list *l = w->clients.next, *next; l != &w->clients; l = next) {
        next = l->next;
        client *c = LIST_OF(l, client, of_worker);
        if (access_good(w->access, &c->ticket, w->wall_ms))
            w->expiry_ms = min_u64(w->expiry_ms, c->ticket.expires_ms);
        else
            client_doom(c, FKV_END_TICKET);
    }
}

/* By the time of the turn; the wall clock may have been set meanwhile, so it is looked at now and then. */
uint64_t clients_deadline(const worker *w) {
    static const uint64_t LOOK_MS = 10000;
    if (w->expiry_ms == UINT64_MAX) return UINT64_MAX;
    uint64_t left = w->expiry_ms > w->wall_ms ? w->expiry_ms - w->wall_ms : 0;
    return w->now_ns + min_u64(left, LOOK_MS) * 1000000u;
}

void clients_judge(job *j) {
    access_rules *a = (access_rules *)(void *)((char *)j - offsetof(access_rules, job));
    worker *w = a->w;
    free(w->access);
    w->access = a;
    /* Over shm, who was let in until now may have mapped memory files, and is to see no later segment in them. */
    for (fkv_list *l = w->shards.next; l != &w->shards; l = l->next) {
        shard *s = LIST_OF(l, shard, of_worker);
        for (int k = 0; k < 2; k++) fkv_files_renew(s->files[k]); /* mutation: access/revoked-maps-on */
    }
    w->wall_ms = fkv_wall_ms();
    clients_expire(w);
}

/* What it asked for and what has not taken effect is dropped; what is prepared goes on without it. Followers go first:
 * none of this client is to take another's place. */
static void end_ops(client *c) {
    for (fkv_list *l = c->ops.next, *next; l != &c->ops; l = next) {
        next = l->next;
        op *o = LIST_OF(l, op, of_client);
        if (o->state != OP_FOLLOWS) continue;
        wait_remove(o);
        op_lose_client(o);
        op_free(o);
    }
    while (!list_empty(&c->ops)) {
        op *o = LIST_OF(c->ops.next, op, of_client);
        if (op_waits(o))
            wait_remove(o);
        else if (o->state == OP_ANSWERS)
            list_remove(&o->link);
        op_lose_client(o);
        if (o->state == OP_TRANSFERS)
            transfer_orphan(o);
        else if (o->state != OP_IS_PULLED && o->state != OP_REPLICATES && o->state != OP_READY && o->state != OP_ENDS)
            op_abandon(o);
    }
    fetch_source_end(c->w->fetches, &c->source);
}

void clients_reap(worker *w) {
    for (fkv_list *l = w->doomed.next, *next; l != &w->doomed; l = next) {
        next = l->next;
        client *c = LIST_OF(l, client, of_worker);
        if (c->source.copying) {
            fetch_source_hurry(&c->source);
            continue;
        }
        fab_disconnect(c->conn);
        end_ops(c);
        fkv_assert(c->op_count == 0 && c->asides == 0 && list_empty(&c->out));
        list_remove(&c->sending);
        list_remove(&c->blocked);
        list_remove(&c->of_worker);
        w->stats.clients--;
        w->stats.clients_over[c->provider]--;
        give_place(w->d, c->tenant, c->ticket.flags);
        unmake(c);
    }
}

bool clients_to_reap(const worker *w) {
    const fkv_list *l = w->doomed.next;
    while (l != &w->doomed && LIST_OF(l, client, of_worker)->source.copying) l = l->next;
    return l != &w->doomed;
}
