/* lease.c: asks owners for leases, and keeps an upper bound of each owner's wall clock. Reports of GETs travel with it.
 *
 * A lease counts from before its request was sent, on a clock that counts suspension, and is shortened by the bound on
 * the two clocks' difference in rate: so it ends here before it ends at the owner. It is asked for by a reader that
 * finds none or less than half of one (session_renew), and by a timer at half its time when a reader relied on it
 * since; an idle client lets it run out.
 */
#include <string.h>
#include "internal.h"

enum { BATCH = 64 };
static const uint64_t SAMPLE_LIFE_NS = 10000000000u;

void lease_wall_sample(session_owner *o, uint64_t wall_ms, uint64_t sent_ns) {
    uint64_t now = session_now(o->session), rtt = now - sent_ns;
    bool better = o->wall_at_ns == 0 || rtt <= o->wall_rtt_ns * 2 || now - o->wall_at_ns > SAMPLE_LIFE_NS;
    if (!better) return;
    o->wall_at_ns = now;
    o->wall_rtt_ns = rtt;
    /* The owner read its clock after sent_ns, so at sent_ns it showed at most wall_ms. That may be any number. */
    o->peer.wall_offset_ms = wall_ms + 1 - sent_ns / 1000000u;
}

void lease_reply(session_owner *o, request *r, const fkv_reply *reply, const uint8_t *body) {
    session *s = o->session;
    uint64_t granted = reply->expiry_ms; /* nanoseconds in a LEASE reply */
    uint64_t most = (uint64_t)o->lease_ms_max * 1000000u;
    if (granted > most) granted = most;
    uint64_t drift = granted / 1000000u * o->drift_ppm;
    uint64_t until = r->sent_ns + (granted > drift ? granted - drift : 0), renew = r->sent_ns + granted / 2;
    lease_wall_sample(o, reply->version, r->sent_ns);
    timer_set(&s->timers, &o->renew, renew);
    uint32_t n = reply->body_bytes / (uint32_t)sizeof(fkv_lease_shard);
    for (uint32_t at = 0; at < n; at += BATCH) {
        fkv_lease_shard list[BATCH];
        uint32_t here = n - at < BATCH ? n - at : BATCH;
        memcpy(list, body + at * sizeof *list, here * sizeof *list);
        for (uint32_t i = 0; i < here; i++) {
            if (list[i].shard < s->config.shards && s->shard[list[i].shard].owner == o) shard_up(s, list[i].shard);
        }
        s->hooks.lease(s->hooks.ctx, &o->peer, list, here, until, renew);
    }
}

static void ended(void *user, session_answer *a) {
    session_owner *o = user;
    session *s = o->session;
    o->lease_id = 0;
    if (a->status != FKV_DISCONNECTED && a->status != FKV_CLOSED) s->hooks.lease_end(s->hooks.ctx, &o->peer, a->status);
}

bool session_renew(session *s, session_peer *p) {
    session_owner *o = (session_owner *)(void *)p;
    if (o->state != OWNER_UP) return false;
    if (o->lease_id) return true;
    p->used = false;
    uint64_t now = session_now(s);
    session_ask a = { .op = FKV_OP_LEASE, .deadline_ns = now + 1000000000u, .done = ended, .user = o };
    fkv_report report;
    if (o->takes & FKV_TAKES_REPORTS && s->hooks.report(s->hooks.ctx, &report)) {
        a.value = (const uint8_t *)&report;
        a.value_bytes = sizeof report;
    }
    if (request_start(s, &a, o, &o->lease_id) != FKV_OK) return false;
    s->stats.lease_renewals++;
    return true;
}

void lease_report_last(session *s) {
    /* Owners count nothing that their copiers report, and a shard that is handed over would wait for the end of the lease. */
    if (s->config.pass.ticket.flags & FKV_TICKET_SERVERS) return;
    fkv_report report;
    if (!s->hooks.report(s->hooks.ctx, &report)) return;
    fkv_request head = { .op = FKV_OP_LEASE, .value_bytes = sizeof report };
    const struct iovec message[] = { { &head, sizeof head }, { &report, sizeof report } };
    for (const fkv_list *l = s->owners.next; l != &s->owners; l = l->next) {
        const session_owner *o = LIST_OF(l, session_owner, link);
        if (o->state == OWNER_UP && o->takes & FKV_TAKES_REPORTS && fab_send(o->conn, message, 2) == 0) return;
    }
}

static void renew_fired(timer_node *t) {
    session_owner *o = LIST_OF(t, session_owner, renew);
    if (o->peer.used) session_renew(o->session, &o->peer);
}

void lease_init(session_owner *o) { timer_init(&o->renew, renew_fired); }

void lease_link_lost(session_owner *o) { timer_clear(&o->session->timers, &o->renew); }
