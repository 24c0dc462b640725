/* connection.c: connections: asked for, accepted or refused, ended.
 *
 * A client is ended after the completions at hand were looked at (client_doom only marks it), because some may be its
 * own, and not before the copier has stopped reading its memory. */
#include "connection.h"
#include <stdlib.h>
#include <string.h>
#include "../base/assert.h"
#include "../base/clock.h"
#include "client.h"
#include "op.h"
#include "transfer.h"
#include "wait.h"

/* Of one client to one worker. It uses one; one that has lost its connection comes again before the end of that is
 * noticed here. */
enum { CONNECTIONS_OF_ONE = 4 };

static fkv_status check_hello(const dataplane *d, const fab_wc *wc, fkv_hello *h, uint8_t *version) {
    if (wc->bytes < sizeof *h) return FKV_BAD_REQUEST;
    memcpy(h, wc->data, sizeof *h);
    if (h->magic != FKV_HELLO_MAGIC || h->version_min > h->version_max) return FKV_BAD_REQUEST;
    if (h->version_min > FKV_WIRE_VERSION_MAX || h->version_max < FKV_WIRE_VERSION_MIN) return FKV_VERSION_UNSUPPORTED;
    *version = h->version_max < FKV_WIRE_VERSION_MAX ? h->version_max : FKV_WIRE_VERSION_MAX;
    if (!fkv_ticket_ok(&d->c.ticket_secret, &h->ticket, fkv_wall_ms())) return FKV_UNAUTHORIZED;
    return h->ticket.tenant < d->c.tenants ? FKV_OK : FKV_UNAUTHORIZED;
}

static bool count_up(uint32_t *clients, uint32_t most) {
    if (__atomic_add_fetch(clients, 1, __ATOMIC_RELAXED) <= most) return true;
    __atomic_sub_fetch(clients, 1, __ATOMIC_RELAXED);
    return false;
}
/* A server that copies a shard is none of its domain's clients. */
static uint32_t *places_of(dp_tenant *t, uint32_t flags, uint32_t *none) {
    return flags & FKV_TICKET_COPY ? none : &t->clients;
}
static void give_place(dataplane *d, dp_tenant *t, uint32_t flags) {
    uint32_t none = 1;
    __atomic_sub_fetch(places_of(t, flags, &none), 1, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&d->clients, 1, __ATOMIC_RELAXED);
}
static bool take_place(dataplane *d, dp_tenant *t, uint32_t flags) {
    uint32_t none = 0;
    if (!count_up(&d->clients, d->c.max_clients)) return false;
    if (count_up(places_of(t, flags, &none), t->max_clients)) return true;
    __atomic_sub_fetch(&d->clients, 1, __ATOMIC_RELAXED);
    return false;
}

static client *make(worker *w, fab_provider p, fab_conn *conn, const fkv_ticket *t) {
    client *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->memory = dedup_enter(&w->dedup, t->client, w->now_ns);
    if (!c->memory) {
        free(c);
        return NULL;
    }
    c->w = w;
    c->conn = conn;
    c->provider = p;
    c->tenant = &w->d->tenant[t->tenant];
    c->flags = t->flags;
    list_init(&c->of_worker);
    list_init(&c->sending);
    list_init(&c->blocked);
    list_init(&c->ops);
    list_init(&c->out);
    return c;
}

static void unmake(client *c) {
    dedup_leave(&c->w->dedup, c->memory, c->w->now_ns);
    free(c);
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
    if (n > CONNECTIONS_OF_ONE) client_doom(oldest);
}

void client_ask(worker *w, fab_provider p, const fab_wc *wc) {
    dataplane *d = w->d;
    fkv_hello h;
    uint8_t version = FKV_WIRE_VERSION_MAX;
    client *c = NULL;
    fkv_status s = check_hello(d, wc, &h, &version);
    dp_tenant *tenant = s == FKV_OK ? &d->tenant[h.ticket.tenant] : NULL;
    if (tenant && !take_place(d, tenant, h.ticket.flags))
        s = FKV_BUSY;
    else if (s == FKV_OK && !(c = make(w, p, wc->conn, &h.ticket))) {
        give_place(d, tenant, h.ticket.flags);
        s = FKV_NO_MEMORY;
    }
    fkv_welcome welcome = { .magic = FKV_HELLO_MAGIC,
                            .version = version,
                            .status = (uint8_t)s,
                            .server_incarnation = d->c.server_incarnation,
                            .lease_ms = d->c.lease_ms,
                            .drift_ppm = d->c.drift_ppm,
                            .wall_ms = fkv_wall_ms() };
    if (!c) {
        w->stats.refused[s]++;
        fab_reject(wc->conn, &welcome, sizeof welcome);
        return;
    }
    fab_set_user(wc->conn, c);
    if (fab_accept(wc->conn, h.ticket.tenant, &welcome, sizeof welcome) != 0 ||
        fab_max_message(wc->conn) < FKV_MESSAGE_MIN) {
        fab_disconnect(wc->conn);
        unmake(c);
        give_place(d, tenant, h.ticket.flags);
        return;
    }
    c->max_message = fab_max_message(wc->conn);
    list_push(&w->clients, &c->of_worker);
    w->stats.clients++;
    end_surplus(w, c);
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
        else if (o->state != OP_READY && o->state != OP_ENDS)
            op_abandon(o);
    }
}

void clients_reap(worker *w) {
    for (fkv_list *l = w->doomed.next, *next; l != &w->doomed; l = next) {
        next = l->next;
        client *c = LIST_OF(l, client, of_worker);
        if (c->copying) {
            transfers_hurry(c);
            continue;
        }
        fab_disconnect(c->conn);
        end_ops(c);
        fkv_assert(c->op_count == 0 && c->asides == 0 && list_empty(&c->out));
        list_remove(&c->sending);
        list_remove(&c->blocked);
        list_remove(&c->of_worker);
        w->stats.clients--;
        give_place(w->d, c->tenant, c->flags);
        unmake(c);
    }
}

bool clients_to_reap(const worker *w) {
    const fkv_list *l = w->doomed.next;
    while (l != &w->doomed && LIST_OF(l, client, of_worker)->copying) l = l->next;
    return l != &w->doomed;
}
