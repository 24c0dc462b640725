/* silent.c: owners that are connected and say nothing, as one that stands still, or whose network is cut. TCP notices
 * neither for minutes.
 *
 * While requests are under way, a timer looks: from whom nothing at all has come since its last look, and whose oldest
 * request is SILENT_MS old, is *silent*, and the layer above is told once. That is a suspicion: a change may wait for
 * memory or for copies for longer. Nothing is dropped for it.
 */
#include "internal.h"

static const uint64_t MS = 1000000;
enum { LOOK_MS = 50, SILENT_MS = 100 };

static bool waits_for_long(const session_owner *o, uint64_t now) {
    if (o->state != OWNER_UP || list_empty(&o->sent)) return false;
    return now - LIST_OF(o->sent.next, request, link)->sent_ns >= SILENT_MS * MS;
}

static void look(session *s, session_owner *o, uint64_t now) {
    bool heard = o->heard, was_silent = o->silent;
    o->heard = false;
    o->silent = !heard && waits_for_long(o, now);
    if (!o->silent || was_silent) return;
    s->hooks.event(s->hooks.ctx,
                   &(session_event){ .type = SESSION_SILENT, .owner = o->peer.owner, .provider = o->peer.provider });
}

static void watch_fired(timer_node *t) {
    session *s = LIST_OF(t, session, watch);
    uint64_t now = session_now(s);
    if (s->outstanding) timer_set(&s->timers, &s->watch, now + LOOK_MS * MS);
    for (fkv_list *l = s->owners.next, *next; l != &s->owners; l = next) {
        next = l->next;
        look(s, LIST_OF(l, session_owner, link), now);
    }
}

void silent_init(session *s) { timer_init(&s->watch, watch_fired); }

void silent_watch(session *s) {
    if (!s->watch.armed) timer_set(&s->timers, &s->watch, session_now(s) + LOOK_MS * MS);
}
