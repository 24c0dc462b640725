/* places.c: the domains and queues of a session: one for each provider, and of verbs as many as there are RDMA devices.
 *
 * A domain's memory and completions are of one device: that of its first connection, until the device is lost and let
 * go. Only the connection manager knows over which one it routes to an address. So an address is tried in the domains in
 * turn; the one in which it was reached is tried first from then on. After a loss two domains may have the same device;
 * then one that has no domain left is not used (the next address is tried, tcp) until this one is lost as well.
 */
#include "internal.h"

enum { ATTEMPT_MS = 3000, HASTE_MS = 300 };

static void open_one(session *s, uint32_t place, fab_provider provider) {
    session_queue *q = &s->queue[place];
    fab_options o = { .provider = provider,
                      .op_timeout_ms = s->config.op_timeout_ms,
                      .log = s->config.log,
                      .log_ctx = s->config.log_ctx };
    if (q->domain) return;
    if (fab_open(&o, &q->domain) != 0)
        q->domain = NULL;
    else if (fab_cq_create(q->domain, &q->cq) != 0)
        q->cq = NULL;
    else
        s->open_cq[s->open_cqs++] = q->cq;
}

void places_open(session *s, const session_owner_config *c) {
    for (uint32_t i = 0; i < c->count; i++) {
        fab_provider p = c->addresses[i].provider;
        if ((unsigned)p >= FAB_PROVIDER_COUNT || s->queue[p].domain) continue;
        uint32_t devices = p == FAB_VERBS ? fab_rdma_routes() : 0;
        if (devices > SESSION_DEVICES) devices = SESSION_DEVICES;
        if (devices > s->devices) s->devices = devices;
        open_one(s, p, p);
        for (uint32_t d = 1; d < devices; d++) open_one(s, fab_place(p, d), p);
    }
}

bool places_other(session_owner *o) {
    uint32_t devices = o->session->devices;
    if (o->address[o->at].provider != FAB_VERBS || o->others + 1 >= devices) return false;
    o->others++;
    o->address[o->at].device = (o->address[o->at].device + 1) % devices;
    return true;
}

/* The device of an address may be lost, and then nobody refuses the connection. So while the owner has another device
 * to try, each soon makes way for the next, until all were tried: from then on they have their whole time, as the
 * connection manager, which sends again what was lost only seconds later, may need it. */
uint64_t places_attempt_ms(session_owner *o) {
    for (uint32_t i = o->at + 1; i < o->addresses && !o->patient; i++) {
        if (o->address[i].provider != o->address[o->at].provider || o->address[i].rail == o->address[o->at].rail)
            continue;
        o->hurried = true;
        return HASTE_MS; /* mutation: lookup/lost-device-dialed */
    }
    return ATTEMPT_MS;
}
