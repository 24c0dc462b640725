/* renewal.c: shows owners the next ticket. An owner ends a connection when its ticket expires, so the session is given
 * another long before (session_set_pass) and shows it over each connection. An owner that refuses it is asked again: one
 * that is behind in the metadata may not know the secret yet. */
#include <string.h>
#include "internal.h"

enum { AGAIN_MS = 1000, WAIT_MS = 5000 };

static void ended(void *user, session_answer *a) {
    session_owner *o = user;
    o->renewal_id = 0;
    if (a->status == FKV_OK || a->status == FKV_DISCONNECTED || a->status == FKV_CLOSED) {
        if (a->status == FKV_OK) renewal_look(o);
        return;
    }
    o->shown = (fkv_ticket){ 0 };
    timer_set(&o->session->timers, &o->show_again, session_now(o->session) + AGAIN_MS * 1000000ull);
}

void renewal_look(session_owner *o) {
    session *s = o->session;
    const fkv_pass *p = &s->config.pass;
    fkv_renewal r = { .ticket = p->ticket };
    if (o->state != OWNER_UP || o->renewal_id || memcmp(&o->shown, &p->ticket, sizeof o->shown) == 0) return;
    fkv_prove(&p->key, FKV_RENEWAL_HEAD, &r.ticket, o->challenge.nonce, r.proof);
    session_ask a = { .op = FKV_OP_RENEW,
                      .value = (const uint8_t *)&r,
                      .value_bytes = sizeof r,
                      .deadline_ns = session_now(s) + WAIT_MS * 1000000ull,
                      .done = ended,
                      .user = o };
    if (request_start(s, &a, o, &o->renewal_id) == FKV_OK)
        o->shown = p->ticket;
    else
        timer_set(&s->timers, &o->show_again, session_now(s) + AGAIN_MS * 1000000ull);
}

static void again(timer_node *t) { renewal_look(LIST_OF(t, session_owner, show_again)); }

void renewal_init(session_owner *o) { timer_init(&o->show_again, again); }

void renewal_link_lost(session_owner *o) { timer_clear(&o->session->timers, &o->show_again); }
