/* owner.c: the connection to one owner: made, welcomed, lost, made again. session.h draws the states.
 *
 * Back-off. When every address has failed, the next round comes after 10 ms doubled with each round to 1 s, times 0.5
 * to 1.5 at random, so that the clients of a restarted server do not come back all at once. A connection that was lost
 * is made again after a random part of 20 ms; only one that lasted a second makes the count of failures start anew. A
 * refused ticket waits the longest time, or for session_set_pass.
 *
 * Removal. What is on its way to an owner that is named no more, because the map has given all of its shards to others,
 * is still answered by it: the next owner of a shard knows nothing of a change that was sent to this one, and could
 * only call it indeterminate. The connection stays for that, OWNER_LINGER_MS at most, for the owner may be dead. Where
 * the next owner does know, an owner that was only replaced answers within OWNER_MOVED_MS, or its connection goes; at once
 * when it had fallen silent. So one that stands still keeps nobody waiting.
 *
 * Challenge. An owner rejects a first connection with a challenge; the one that answers follows at once, to the same
 * address (wire.h).
 *
 * Dropping. A connection is freed only between batches of completions (session.dropping): what is left of the batch at
 * hand may name it.
 */
#include <stdlib.h>
#include <string.h>
#include "../../wire/identity.h"
#include "internal.h"

static const uint64_t MS = 1000000;
enum { BACKOFF_FIRST_MS = 10, BACKOFF_MAX_MS = 1000, AGAIN_MS = 20, LASTING_MS = 1000, ROUNDS = 3 };

double session_random(session *s) { /* xorshift64*; only for jitter */
    s->random ^= s->random >> 12;
    s->random ^= s->random << 25;
    s->random ^= s->random >> 27;
    return (double)(s->random * 2685821657736338717u >> 11) / 9007199254740992.0;
}

static void tell(session_owner *o, session_event_type type, fab_provider provider, fkv_status reason) {
    session *s = o->session;
    if (s->closing) return;
    s->hooks.event(s->hooks.ctx,
                   &(session_event){ .type = type, .owner = o->peer.owner, .provider = provider, .reason = reason });
}

static void tell_connected(session_owner *o, uint8_t ended) {
    session *s = o->session;
    s->hooks.event(s->hooks.ctx, &(session_event){ .type = SESSION_CONNECTED,
                                                   .owner = o->peer.owner,
                                                   .provider = o->peer.provider,
                                                   .ended = ended < FKV_END_COUNT ? (fkv_end)ended : FKV_END_NONE });
}

static bool wanted(const session_owner *o) { return o->routes > 0 && !o->gone && !o->session->closing; }

/* ---- making a connection ---- */

static void wait(session_owner *o, uint64_t ns) {
    o->state = OWNER_WAITING;
    timer_set(&o->session->timers, &o->timer, session_now(o->session) + ns);
}

static void back_off(session_owner *o, bool refused) {
    uint32_t doublings = o->failures < 8 ? o->failures : 8;
    uint64_t ms = (uint64_t)BACKOFF_FIRST_MS << doublings;
    if (ms > BACKOFF_MAX_MS || refused) ms = BACKOFF_MAX_MS;
    o->failures++;
    wait(o, (uint64_t)((double)(ms * MS) * (0.5 + session_random(o->session))));
}

static void begin_anew(session_owner *o) { o->challenge.number = o->challenged = o->others = 0; }

/* The same failure of an address is told once, but for a refused ticket, which somebody must do something about. */
static void address_failed(session_owner *o, fkv_status why) {
    fkv_status last = o->address[o->at].last;
    o->address[o->at].last = why;
    if (why != last || why == FKV_UNAUTHORIZED) tell(o, SESSION_REFUSED, o->address[o->at].provider, why);
    o->reason = why;
    o->at++;
    begin_anew(o);
}

/* Tries the addresses from o->at on; after the last it waits. */
static void attempt(session_owner *o) {
    session *s = o->session;
    while (o->at < o->addresses) {
        fab_provider provider = o->address[o->at].provider;
        uint32_t place = fab_place(provider, o->address[o->at].device);
        session_queue *q = &s->queue[place];
        if (!q->cq && places_other(o)) continue;
        if (!q->cq) {
            address_failed(o, FKV_UNSUPPORTED);
            continue;
        }
        o->started_ns = session_now(s);
        o->state = OWNER_CONNECTING;
        o->shown = s->config.pass.ticket;
        fkv_hello hello = fkv_hello_make(&s->config.pass, o->challenge.number ? &o->challenge : NULL);
        fab_identity who = fkv_pass_identity(&s->config.pass);
        int e = fab_connect_as(q->cq, o->address[o->at].text, &who, &hello, sizeof hello, o, &o->conn);
        if (e == 0) {
            o->peer.provider = provider;
            o->peer.domain = q->domain;
            o->peer.place = place;
            o->peer.rail = o->address[o->at].rail;
            timer_set(&s->timers, &o->timer, o->started_ns + places_attempt_ms(o) * MS);
            return;
        }
        o->conn = NULL;
        address_failed(o, fkv_status_of_errno(e));
    }
    o->at = 0;
    if (!o->hurried) o->in_vain++;
    o->hurried = false;
    o->patient = true;
    absent_look(s);
    back_off(o, o->reason == FKV_UNAUTHORIZED || o->reason == FKV_VERSION_UNSUPPORTED);
}

void owner_want(session_owner *o) {
    if (o->gone) return; /* remove_owner sees to it */
    if (wanted(o)) {
        if (o->state != OWNER_IDLE) return;
        o->at = 0;
        begin_anew(o);
        attempt(o);
    } else if (o->state == OWNER_WAITING) {
        timer_clear(&o->session->timers, &o->timer);
        o->state = OWNER_IDLE;
    } else if ((o->state == OWNER_UP || o->state == OWNER_CONNECTING) && o->sent_count == 0) {
        owner_drop(o, FKV_CLOSED);
    }
}

/* Not dropped here: whoever calls this may go on with the owner. */
void owner_answered(session_owner *o) {
    if (o->gone && o->state == OWNER_UP && o->sent_count == 0) timer_set(&o->session->timers, &o->timer, 0);
}

/* Something was sent to it that the shard's owner of now could answer. */
static bool waits_in_vain(const session_owner *o) {
    for (const fkv_list *l = o->sent.next; l != &o->sent; l = l->next) {
        const request *r = LIST_OF(l, request, link);
        if (r->state == REQUEST_SENT && !r->pinned && o->session->shard[r->head.shard].owner != o) return true;
    }
    return false;
}

void owner_lost_shard(session_owner *o) {
    session *s = o->session;
    if (!s->replicated || o->gone || o->state != OWNER_UP || o->timer.armed) return;
    timer_set(&s->timers, &o->timer, o->silent ? 0 : session_now(s) + OWNER_MOVED_MS * MS);
}

static void timer_fired(timer_node *t) {
    session_owner *o = LIST_OF(t, session_owner, timer);
    if (o->state == OWNER_CONNECTING) {
        owner_drop(o, FKV_TIMEOUT);
    } else if (o->state == OWNER_UP && o->gone) { /* has answered or will not */
        owner_drop(o, FKV_CLOSED);
    } else if (o->state == OWNER_UP) {
        if (waits_in_vain(o)) owner_drop(o, FKV_TIMEOUT);
    } else if (o->state == OWNER_WAITING) {
        o->state = OWNER_IDLE;
        owner_want(o);
    }
}

static bool read_challenge(const fab_wc *wc, fkv_challenge *c) {
    if (wc->status != FAB_REM_ACCESS_ERR || wc->bytes < sizeof *c) return false;
    memcpy(c, wc->data, sizeof *c);
    return c->magic == FKV_CHALLENGE_MAGIC && c->number != 0;
}

static fkv_status welcome_status(const fab_wc *wc, fkv_welcome *w) {
    fkv_challenge c;
    /* One more than are answered: the owner has too many to remember what it asked. The ticket may be good. */
    if (read_challenge(wc, &c)) return FKV_BUSY;
    if (wc->status != FAB_SUCCESS && wc->status != FAB_REM_ACCESS_ERR) return fkv_status_of_wc(wc->status);
    if (wc->bytes < sizeof *w) return wc->status == FAB_SUCCESS ? FKV_BAD_REQUEST : fkv_status_of_wc(wc->status);
    memcpy(w, wc->data, sizeof *w);
    if (w->magic != FKV_WELCOME_MAGIC || w->status >= FKV_STATUS_COUNT) return FKV_BAD_REQUEST;
    if (wc->status != FAB_SUCCESS) return w->status == FKV_OK ? FKV_UNAUTHORIZED : (fkv_status)w->status;
    if (w->status != FKV_OK) return (fkv_status)w->status;
    if (w->version < FKV_WIRE_VERSION_MIN || w->version > FKV_WIRE_VERSION_MAX) return FKV_VERSION_UNSUPPORTED;
    return fab_max_message(wc->conn) < FKV_MESSAGE_MIN ? FKV_UNSUPPORTED : FKV_OK;
}

/* The connection is made once more, and answers. An owner's challenges do not grow old before they are answered, but
 * for one that is flooded: then another round may help. */
static bool is_challenged(session_owner *o, const fab_wc *wc) {
    fkv_challenge c;
    if (!read_challenge(wc, &c) || o->challenged == ROUNDS) return false;
    o->challenge = c;
    o->challenged++;
    return true;
}

static void connected(session_owner *o, const fab_wc *wc) {
    session *s = o->session;
    fkv_welcome w;
    bool elsewhere = wc->status == FAB_OTHER_DEVICE_ERR || wc->status == FAB_FATAL_ERR;
    if (is_challenged(o, wc) || (elsewhere && places_other(o))) {
        owner_drop(o, FKV_OK);
        return;
    }
    fkv_status status = welcome_status(wc, &w);
    if (status != FKV_OK) {
        owner_drop(o, status);
        return;
    }
    timer_clear(&s->timers, &o->timer);
    s->stats.connects++;
    o->state = OWNER_UP;
    o->was_up = true;
    o->challenged = 0;
    o->in_vain = 0;
    o->patient = o->hurried = false;
    o->up_ns = session_now(s);
    o->connected_to = w.server_incarnation;
    o->lease_ms_max = w.lease_ms;
    o->drift_ppm = w.drift_ppm;
    o->quota = w.quota ? w.quota : UINT32_MAX;
    o->takes = w.takes;
    o->at_owner = 0;
    o->wall_at_ns = 0;
    lease_wall_sample(o, w.wall_ms, o->started_ns);
    o->peer.conn = o->conn;
    o->peer.link++;
    o->address[o->at].last = FKV_OK;
    tell_connected(o, w.ended);
    renewal_look(o);
    requests_wake(o);
    s->hooks.up(s->hooks.ctx, &o->peer);
}

void owner_event(session_owner *o, const fab_wc *wc) {
    if (wc->opcode == FAB_WC_CONNECT)
        connected(o, wc);
    else if (o->state == OWNER_UP && wc->status == FAB_SUCCESS)
        owner_drop(o, FKV_DISCONNECTED);
    else
        owner_drop(o, fkv_status_of_wc(wc->status));
}

/* ---- losing one ---- */

void owner_drop(session_owner *o, fkv_status reason) {
    if (o->state != OWNER_UP && o->state != OWNER_CONNECTING) return;
    session *s = o->session;
    timer_clear(&s->timers, &o->timer);
    o->state = OWNER_DROPPING;
    o->reason = reason;
    list_remove(&o->pushing);
    list_push(&s->dropping, &o->dropping);
    if (!s->polling) owner_finish_drops(s);
}

static void free_addresses(session_owner *o) {
    for (uint32_t i = 0; i < o->addresses; i++) free(o->address[i].text);
    free(o->address);
    o->address = NULL;
    o->addresses = 0;
}

static void free_owner(session_owner *o) {
    session *s = o->session;
    s->hooks.gone(s->hooks.ctx, &o->peer);
    timer_clear(&s->timers, &o->timer);
    timer_clear(&s->timers, &o->renew);
    list_remove(&o->link);
    list_remove(&o->pushing);
    free_addresses(o);
    free(o);
}

static void lost(session_owner *o) {
    session *s = o->session;
    o->was_up = false;
    s->stats.disconnects++;
    for (uint32_t i = 0; i < s->config.shards; i++) {
        if (s->shard[i].owner == o) shard_down(s, i);
    }
    lease_link_lost(o);
    renewal_link_lost(o);
    s->hooks.down(s->hooks.ctx, &o->peer);
    requests_of_lost_link(o);
    tell(o, SESSION_DISCONNECTED, o->peer.provider, o->reason);
    if (session_now(s) - o->up_ns >= LASTING_MS * MS)
        o->failures = 0;
    else
        o->failures++;
    o->at = 0;
}

static void finish_drop(session_owner *o) {
    session *s = o->session;
    bool was_up = o->was_up, own_wish = o->retry_now;
    fab_disconnect(o->conn);
    o->conn = o->peer.conn = NULL;
    o->retry_now = false;
    o->state = OWNER_IDLE;
    if (was_up)
        lost(o);
    else if (wanted(o) && !own_wish && o->reason != FKV_OK)
        address_failed(o, o->reason);
    if (o->gone) {
        free_owner(o);
        return;
    }
    if (!wanted(o) || o->state != OWNER_IDLE) return;
    if (own_wish) o->at = 0;
    if (was_up || own_wish) begin_anew(o);
    if (!was_up || own_wish)
        attempt(o);
    else if (o->failures > 1)
        back_off(o, false);
    else
        wait(o, (uint64_t)(session_random(s) * AGAIN_MS * (double)MS));
}

void owner_finish_drops(session *s) {
    while (!list_empty(&s->dropping)) {
        session_owner *o = LIST_OF(s->dropping.next, session_owner, dropping);
        list_remove(&o->dropping);
        finish_drop(o);
    }
}

/* ---- the list of owners ---- */

session_owner *owner_find(session *s, uint32_t number) {
    for (fkv_list *l = s->owners.next; l != &s->owners; l = l->next) {
        session_owner *o = LIST_OF(l, session_owner, link);
        if (o->peer.owner == number && !o->gone) return o;
    }
    return NULL;
}

static uint32_t rail_of(const session_address *a) { return fab_place(a->provider, a->device); }

static bool same_addresses(const session_owner *o, const session_owner_config *c) {
    if (o->addresses != c->count) return false;
    for (uint32_t i = 0; i < c->count; i++) {
        if (o->address[i].rail != rail_of(&c->addresses[i]) || strcmp(o->address[i].text, c->addresses[i].text))
            return false;
    }
    return true;
}

/* Sets the addresses. o->at follows the one that was in use; it is at the end when that one is not named any more. */
static fkv_status set_addresses(session_owner *o, const session_owner_config *c) {
    session_owner next = { .address = calloc(c->count ? c->count : 1, sizeof *o->address) };
    uint32_t at = c->count;
    if (!next.address) return FKV_NO_MEMORY;
    for (uint32_t i = 0; i < c->count; i++) {
        next.address[i].provider = c->addresses[i].provider;
        next.address[i].rail = rail_of(&c->addresses[i]);
        next.address[i].text = strdup(c->addresses[i].text);
        next.addresses++;
        for (uint32_t k = 0; k < o->addresses; k++) {
            if (o->address[k].rail == next.address[i].rail && strcmp(o->address[k].text, c->addresses[i].text) == 0)
                next.address[i].device = o->address[k].device;
        }
        if (!next.address[i].text) {
            free_addresses(&next);
            return FKV_NO_MEMORY;
        }
        if (o->at < o->addresses && o->address[o->at].rail == next.address[i].rail &&
            strcmp(o->address[o->at].text, next.address[i].text) == 0 && at == c->count)
            at = i;
    }
    free_addresses(o);
    o->address = next.address;
    o->addresses = next.addresses;
    o->at = at;
    return FKV_OK;
}

static session_owner *make_owner(session *s, const session_owner_config *c) {
    session_owner *o = calloc(1, sizeof *o);
    if (!o) return NULL;
    o->session = s;
    o->peer.owner = c->owner;
    o->incarnation = c->incarnation;
    timer_init(&o->timer, timer_fired);
    lease_init(o);
    renewal_init(o);
    list_init(&o->dropping);
    list_init(&o->pushing);
    list_init(&o->waiting);
    list_init(&o->sent);
    list_init(&o->link);
    list_init(&o->peer.window.waiting);
    if (set_addresses(o, c) == FKV_OK) return o;
    free(o);
    return NULL;
}

static void remove_owner(session_owner *o) {
    session *s = o->session;
    o->gone = true;
    for (uint32_t i = 0; i < s->config.shards && o->routes; i++) {
        if (s->shard[i].owner == o) session_route(s, i, -1);
    }
    timer_clear(&s->timers, &o->timer);
    if (o->state == OWNER_WAITING) o->state = OWNER_IDLE;
    if (o->state == OWNER_IDLE)
        free_owner(o);
    else if (o->state == OWNER_UP && o->sent_count > 0 && !(s->replicated && o->silent))
        timer_set(&s->timers, &o->timer, session_now(s) + (s->replicated ? OWNER_MOVED_MS : OWNER_LINGER_MS) * MS);
    else
        owner_drop(o, FKV_CLOSED);
}

/* An owner that is named again. If the incarnation changed, the connection leads to the previous process: drop it,
 * unless it already reached the new incarnation. Keep it if its address is still listed. */
static fkv_status update_owner(session_owner *o, const session_owner_config *c) {
    bool moved = !same_addresses(o, c), changed = o->incarnation != c->incarnation;
    o->incarnation = c->incarnation;
    if (moved && o->state == OWNER_DROPPING) o->retry_now = true; /* o->at is about the old list */
    if (moved && set_addresses(o, c) != FKV_OK) return FKV_NO_MEMORY;
    if ((!changed && !moved) || o->state == OWNER_DROPPING) return FKV_OK;
    o->failures = 0;
    o->in_vain = 0; /* not at these addresses, or not this incarnation */
    o->patient = o->hurried = false;
    bool gone = (o->state == OWNER_UP || o->state == OWNER_CONNECTING) && o->at == o->addresses;
    if (gone || (o->state == OWNER_UP && changed && o->connected_to != o->incarnation)) {
        o->retry_now = true;
        owner_drop(o, FKV_DISCONNECTED);
    } else if (o->state == OWNER_WAITING) {
        timer_set(&o->session->timers, &o->timer, 0);
    }
    return FKV_OK;
}

fkv_status session_set_owners(session *s, const session_owner_config *owners, uint32_t n) {
    for (fkv_list *l = s->owners.next, *next; l != &s->owners; l = next) {
        next = l->next;
        session_owner *o = LIST_OF(l, session_owner, link);
        if (o->gone) continue;
        uint32_t i = 0;
        while (i < n && owners[i].owner != o->peer.owner) i++;
        if (i == n) {
            remove_owner(o);
            continue;
        }
        places_open(s, &owners[i]);
        if (update_owner(o, &owners[i]) != FKV_OK) return FKV_NO_MEMORY;
    }
    for (uint32_t i = 0; i < n; i++) {
        places_open(s, &owners[i]);
        if (owner_find(s, owners[i].owner)) continue;
        session_owner *o = make_owner(s, &owners[i]);
        if (!o) return FKV_NO_MEMORY;
        list_push(&s->owners, &o->link);
    }
    return FKV_OK;
}

/* What was sent in another client's name cannot be recognised as sent before, and must not be sent again; what would be
 * sent over the connections that there are would be the other's. */
static void change_client(session *s) {
    for (uint32_t i = 0; i < s->places; i++) {
        request *r = &s->table[i];
        bool open = r->state != REQUEST_FREE && r->state != REQUEST_ABANDONED;
        /* mutation: access/resent-as-another */
        if (open && r->sent_before && fkv_op_is(r->head.op, FKV_CHANGES)) request_give_up(r, FKV_DISCONNECTED);
    }
    for (fkv_list *l = s->owners.next, *next; l != &s->owners; l = next) {
        next = l->next;
        session_owner *o = LIST_OF(l, session_owner, link);
        /* One that is being made shows the other's pass. */
        if (o->state != OWNER_UP && o->state != OWNER_CONNECTING) continue; /* mutation: access/connects-as-another */
        o->retry_now = true;
        owner_drop(o, FKV_DISCONNECTED);
    }
}

void session_set_pass(session *s, const fkv_pass *p) {
    bool other = p->ticket.client != s->config.pass.ticket.client;
    s->config.pass = *p;
    if (other) change_client(s);
    for (fkv_list *l = s->owners.next; l != &s->owners; l = l->next) {
        session_owner *o = LIST_OF(l, session_owner, link);
        if (o->state == OWNER_WAITING && o->reason == FKV_UNAUTHORIZED) timer_set(&s->timers, &o->timer, 0);
        renewal_look(o);
    }
}

void owner_free_all(session *s) {
    while (!list_empty(&s->owners)) {
        session_owner *o = LIST_OF(s->owners.next, session_owner, link);
        o->gone = true;
        owner_drop(o, FKV_CLOSED);
        if (s->owners.next == &o->link) free_owner(o);
    }
}
