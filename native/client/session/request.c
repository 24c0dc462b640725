/* request.c: the table of requests; the queues in which they wait; sending; what happens to them when a connection is
 * lost.
 *
 * A request waits in exactly one list: its owner's queue (`waiting`), the queue of shards without owner (`unrouted`),
 * or its shard's `parked`; or it is in its owner's `sent`. Ids carry the slot's generation, so that a late reply finds
 * nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../../base/assert.h"
#include "../../table/layout.h"
#include "internal.h"

enum { INDEX_BITS = 20, MESSAGE_DEFAULT = 16 << 10, DELAY_FIRST_MS = 1, DELAY_MAX_MS = 64 };
/* Places come into use so many at a time: untouched memory costs nothing, and a program may have many clients. */
enum { PLACES_AT_ONCE = 64 };
static const uint64_t MS = 1000000;

static void deadline_fired(timer_node *t) {
    request *r = LIST_OF(t, request, deadline);
    session *s = r->session;
    uint64_t later = session_put_off(s, &r->held_ns);
    if (later)
        timer_set(&s->timers, t, session_now(s) + later);
    else
        session_cancel(s, request_id(r), FKV_TIMEOUT);
}

static void delay_fired(timer_node *t) { request_queue(LIST_OF(t, request, delay), false); }

/* Each shard may need a LAYOUT and each owner a LEASE on top of what callers have under way. */
fkv_status request_table(session *s) {
    s->reserved = s->config.shards + 64;
    s->capacity = s->config.max_requests + s->reserved;
    s->table = calloc(s->capacity, sizeof *s->table);
    if (!s->table) return FKV_NO_MEMORY;
    s->free_count = s->capacity;
    return FKV_OK;
}

/* `free_count` says that there are. */
static void more_places(session *s) {
    uint32_t end = s->capacity - s->places < PLACES_AT_ONCE ? s->capacity : s->places + PLACES_AT_ONCE;
    for (; s->places < end; s->places++) {
        request *r = &s->table[s->places];
        r->session = s;
        r->index = s->places;
        r->generation = 1;
        list_init(&r->in_window);
        timer_init(&r->deadline, deadline_fired);
        timer_init(&r->delay, delay_fired);
        list_push(&s->free, &r->link);
    }
}

void request_table_free(session *s) { free(s->table); }

uint64_t request_id(const request *r) { return r->generation << INDEX_BITS | r->index; }

request *request_of(session *s, uint64_t id) {
    uint64_t index = id & ((1u << INDEX_BITS) - 1);
    if (index >= s->places) return NULL;
    request *r = &s->table[index];
    return r->state != REQUEST_FREE && request_id(r) == id ? r : NULL;
}

void request_free(request *r) {
    session *s = r->session;
    fkv_assert(s->free_count < s->capacity);
    if (r->message != r->room) free(r->message);
    if (r->memory) rendezvous_give(s->pool, r->memory, false);
    r->message = NULL;
    r->memory = NULL;
    r->state = REQUEST_FREE;
    r->generation++;
    list_push_front(&s->free, &r->link);
    s->free_count++;
}

/* ---- a new request ---- */

/* Whether a message of so many bytes is too long for the connection; every connection takes FKV_MESSAGE_MIN. */
static bool too_long(size_t bytes, const session_owner *o) {
    if (bytes <= FKV_MESSAGE_MIN) return false;
    return bytes > (o && o->state == OWNER_UP ? fab_max_message(o->conn) : MESSAGE_DEFAULT);
}

/* Moves the value, which lies behind the key in the message or at `value`, to registered memory. */
static fkv_status use_rendezvous(request *r, const uint8_t *value) {
    fkv_status s = rendezvous_take(r->session->pool, r->head.value_bytes, &r->memory);
    if (s != FKV_OK) return s;
    memcpy(r->memory->region.base, value, r->head.value_bytes);
    r->head.flags |= FKV_REQUEST_RENDEZVOUS;
    r->message_bytes = (uint32_t)(sizeof r->head + r->head.key_bytes + sizeof(fkv_rendezvous));
    return FKV_OK;
}

static bool may_rendezvous(uint8_t op) { return fkv_ops[op].flags & FKV_REQUEST_RENDEZVOUS; }

static fkv_status fill(request *r, const session_ask *a, session_owner *o) {
    bool valued = fkv_op_is(a->op, FKV_VALUED | FKV_RENEWS | FKV_REPORTS);
    r->head = (fkv_request){ .op = (uint8_t)a->op,
                             .flags = a->flags,
                             .codec = a->codec,
                             .shard = a->shard,
                             .expected = a->expected,
                             .expiry = a->ttl_ms,
                             .value_bytes = a->value_bytes,
                             .user_flags = a->user_flags,
                             .key_bytes = (uint16_t)a->key_bytes,
                             .space = a->space };
    size_t fixed = sizeof r->head + a->key_bytes;
    size_t bytes = fixed + (valued ? a->value_bytes : 0);
    bool large = too_long(bytes, o);
    if (large && !may_rendezvous(a->op)) return FKV_VALUE_TOO_LARGE;
    size_t room = large ? fixed + sizeof(fkv_rendezvous) : bytes;
    r->message = room <= sizeof r->room ? r->room : malloc(room);
    if (!r->message) return FKV_NO_MEMORY;
    if (a->key_bytes) memcpy(r->message + sizeof r->head, a->key, a->key_bytes);
    r->message_bytes = (uint32_t)bytes;
    if (large) return use_rendezvous(r, a->value);
    if (bytes > fixed) memcpy(r->message + fixed, a->value, a->value_bytes);
    return FKV_OK;
}

static bool is_too_large(uint16_t traits, uint32_t value_bytes) {
    return traits & FKV_CHANGES && (traits & FKV_DERIVES || value_bytes > FKV_VALUE_MAX);
}

fkv_status session_request(session *s, const session_ask *a, uint64_t *id) { return request_start(s, a, NULL, id); }

fkv_status request_start(session *s, const session_ask *a, session_owner *pinned, uint64_t *id) {
    if (a->shard >= s->config.shards) return FKV_BAD_REQUEST;
    if (a->key_bytes > FKV_KEY_MAX) return FKV_KEY_INVALID;
    uint16_t traits = fkv_op_traits(a->op);
    if (a->value_bytes > FKV_APPEND_MAX && is_too_large(traits, a->value_bytes)) return FKV_VALUE_TOO_LARGE;
    if (s->closing) return FKV_CLOSED;
    if (!(traits & FKV_ASIDE) && shard_absent(s, a->shard)) return FKV_SHARD_CLOSED;
    if (s->free_count <= (traits & FKV_ASIDE ? 0 : s->reserved)) return FKV_BUSY;
    if (list_empty(&s->free)) more_places(s);
    request *r = LIST_OF(s->free.next, request, link);
    list_remove(&r->link);
    s->free_count--;
    fkv_status status = fill(r, a, s->shard[a->shard].owner);
    if (status != FKV_OK) {
        request_free(r);
        return status;
    }
    r->pinned = pinned;
    r->sent_before = false;
    r->refusals = 0;
    r->why = FKV_TIMEOUT;
    r->first_sent_ns = r->sent_ns = 0;
    r->held_ns = s->held_ns;
    r->done = a->done;
    r->user = a->user;
    s->outstanding++;
    s->stats.requests++;
    if (traits & FKV_CHANGES) s->stats.changes++;
    timer_set(&s->timers, &r->deadline, a->deadline_ns);
    silent_watch(s);
    request_queue(r, traits & FKV_ASIDE);
    *id = request_id(r);
    return FKV_OK;
}

/* ---- queues ---- */

void request_queue(request *r, bool first) {
    session *s = r->session;
    session_owner *o = r->pinned ? r->pinned : s->shard[r->head.shard].owner;
    r->owner = o;
    r->state = REQUEST_WAITING;
    timer_clear(&s->timers, &r->delay);
    fkv_list *queue = o ? &o->waiting : &s->unrouted;
    if (first)
        list_push_front(queue, &r->link);
    else
        list_push(queue, &r->link);
    if (o) requests_wake(o);
    if (shard_absent(s, r->head.shard)) absent_look(s);
}

void requests_wake(session_owner *o) {
    if (o->state == OWNER_UP && !o->blocked && list_empty(&o->pushing)) list_push(&o->session->pushing, &o->pushing);
}

static void not_on_its_way(request *r) {
    r->owner->sent_count--;
    owner_answered(r->owner);
}

/* An owner that is full, or does not serve the shard yet, is asked again after a little more time each time. */
void request_delay(request *r, fkv_status why) {
    session *s = r->session;
    if (r->state == REQUEST_SENT) not_on_its_way(r);
    r->state = REQUEST_DELAYED;
    r->owner = NULL;
    r->why = why;
    uint64_t ms = r->refusals < 6 ? (uint64_t)DELAY_FIRST_MS << r->refusals : DELAY_MAX_MS;
    r->refusals++;
    uint64_t ns = (uint64_t)((double)(ms * MS) * (0.5 + session_random(s)));
    list_remove(&r->link);
    timer_set(&s->timers, &r->delay, session_now(s) + ns);
}

/* ---- sending ---- */

static fkv_status prepare_message(request *r, session_owner *o) {
    if (!r->memory && too_long(r->message_bytes, o)) {
        if (!may_rendezvous(r->head.op))
            return fkv_op_is(r->head.op, FKV_VALUED) ? FKV_VALUE_TOO_LARGE : FKV_BAD_REQUEST;
        fkv_status s = use_rendezvous(r, r->message + sizeof r->head + r->head.key_bytes);
        if (s != FKV_OK) return s;
    }
    if (r->memory) {
        fab_mr *mr;
        if (rendezvous_register(r->memory, &o->peer, &mr) != 0) return FKV_NO_MEMORY;
        fkv_rendezvous v = { .rkey = fab_mr_rkey(mr),
                             .addr = fab_mr_addr(mr),
                             .region_addr = fab_mr_addr(mr),
                             .region_bytes = r->memory->region.bytes };
        memcpy(r->message + sizeof r->head + r->head.key_bytes, &v, sizeof v);
    }
    r->head.id = request_id(r);
    /* mutation: lookup/retry-unmarked */
    if (r->sent_before && fkv_op_is(r->head.op, FKV_CHANGES)) r->head.flags |= FKV_REQUEST_RETRY;
    memcpy(r->message, &r->head, sizeof r->head);
    return FKV_OK;
}

static __attribute__((noinline, cold)) void note_sent(session_owner *o, const request *r) {
    session_note(o->session, &o->peer,
                 &(session_step){ .type = SESSION_SENT, .op = (fkv_op)r->head.op, .bytes = r->message_bytes });
}

/* Returns 0, -EAGAIN, or another errno when the connection takes no more. Ends the request when it cannot be sent at
 * all. */
static int send_one(session_owner *o, request *r, uint64_t now) {
    bool forgotten = now - r->first_sent_ns > (uint64_t)FKV_DEDUP_IDLE_MS / 2 * MS; /* by its owner, it may be */
    if (r->sent_before && forgotten && fkv_op_is(r->head.op, FKV_CHANGES)) { /* mutation: lookup/resent-too-late */
        request_finish(r, FKV_STALE_SEQUENCE, NULL, NULL, 0, false);
        return 0;
    }
    fkv_status s = prepare_message(r, o);
    if (s != FKV_OK) {
        request_give_up(r, s);
        return 0;
    }
    struct iovec v = { .iov_base = r->message, .iov_len = r->message_bytes };
    int e = fab_send(o->conn, &v, 1);
    if (e) return e;
    if (__builtin_expect(o->session->config.traced, 0)) note_sent(o, r);
    if (r->sent_before)
        o->session->stats.resent++;
    else
        r->first_sent_ns = now;
    if (!fkv_op_is(r->head.op, FKV_ASIDE)) o->at_owner++;
    r->sent_before = true;
    r->sent_ns = now;
    r->state = REQUEST_SENT;
    list_remove(&r->link);
    list_push(&o->sent, &r->link);
    o->sent_count++;
    return 0;
}

void requests_push(session_owner *o) {
    session *s = o->session;
    list_remove(&o->pushing);
    if (o->state != OWNER_UP || o->blocked || list_empty(&o->waiting)) return;
    uint64_t now = session_now(s); /* before the first SEND: a lease counts from here */
    while (o->state == OWNER_UP && !list_empty(&o->waiting)) {
        request *r = LIST_OF(o->waiting.next, request, link);
        /* What is sent aside waits in front, and does not count. The next reply lets the others go on. */
        if (o->at_owner >= o->quota && !fkv_op_is(r->head.op, FKV_ASIDE)) return;
        if (fkv_op_is(r->head.op, FKV_CHANGES) && !shard_open_window(&s->shard[r->head.shard], r)) {
            list_remove(&r->link);
            r->owner = NULL;
            list_push(&s->shard[r->head.shard].parked, &r->link);
            continue;
        }
        int e = send_one(o, r, now);
        if (e == -EAGAIN) o->blocked = true;
        if (e) return; /* not EAGAIN: the connection is in error, and its end is on the way */
    }
}

/* ---- the end of a request ---- */

void request_finish(request *r, fkv_status status, const fkv_reply *reply, uint8_t *body, uint32_t body_bytes,
                    bool body_owned) {
    session *s = r->session;
    session_answer a = { .id = request_id(r),
                         .status = status,
                         .replied = reply != NULL,
                         .body = body,
                         .body_bytes = body_bytes,
                         .body_owned = body_owned };
    if (reply) a.reply = *reply;
    bool answered_once = reply && !(r->head.flags & FKV_REQUEST_RETRY) && r->state == REQUEST_SENT;
    bool keep = r->state == REQUEST_SENT && !reply && r->memory && s->closing == false && r->owner->state == OWNER_UP;
    timer_clear(&s->timers, &r->deadline);
    timer_clear(&s->timers, &r->delay);
    if (r->state == REQUEST_SENT && !keep) not_on_its_way(r);
    if (keep)
        r->state = REQUEST_ABANDONED;
    else
        list_remove(&r->link);
    if (r->body && r->body != body) free(r->body);
    r->body = NULL;
    if (r->memory && answered_once) {
        rendezvous_give(s->pool, r->memory, true);
        r->memory = NULL;
    }
    fkv_assert(s->outstanding > 0);
    s->outstanding--;
    session_done *done = r->done;
    void *user = r->user;
    shard_leave_window(s, r);
    if (!keep) request_free(r);
    if (done) done(user, &a);
    if (a.body_owned) free(a.body);
}

uint8_t *session_take_body(session_answer *a) {
    uint8_t *taken = a->body;
    if (!a->body_owned) {
        taken = malloc(a->body_bytes ? a->body_bytes : 1);
        if (taken && a->body_bytes) memcpy(taken, a->body, a->body_bytes);
    }
    a->body_owned = false;
    return taken;
}

/* What a request that has no answer ends with. A change of which a copy may have reached an owner ends as
 * indeterminate, whatever the reason: ABORTED or CLOSED would say that it had no effect. */
static fkv_status reason_of_end(const request *r, fkv_status why) {
    /* mutation: lookup/sent-without-effect */
    if (r->sent_before && fkv_op_is(r->head.op, FKV_CHANGES)) return FKV_STALE_SEQUENCE;
    if (why != FKV_TIMEOUT) return why;
    const session_owner *o = r->session->shard[r->head.shard].owner;
    /* came after any refusal */
    if (r->state != REQUEST_SENT && (!o || o->state != OWNER_UP)) return FKV_SHARD_CLOSED;
    /* how it was refused last */
    if (r->why != FKV_TIMEOUT) return r->why == FKV_NOT_OWNER ? FKV_SHARD_CLOSED : r->why;
    return why;
}

void request_give_up(request *r, fkv_status why) { request_finish(r, reason_of_end(r, why), NULL, NULL, 0, false); }

void session_cancel(session *s, uint64_t id, fkv_status why) {
    request *r = request_of(s, id);
    if (!r || r->state == REQUEST_ABANDONED) return;
    session_owner *o = r->state == REQUEST_SENT ? r->owner : NULL;
    /* An owner that READs a value must be let finish: its answer says when the memory is free again. */
    if (o && o->state == OWNER_UP && !fkv_op_is(r->head.op, FKV_ASIDE) && !r->memory) {
        fkv_request cancel = { .op = FKV_OP_CANCEL, .shard = r->head.shard, .expected = id };
        struct iovec v = { .iov_base = &cancel, .iov_len = sizeof cancel };
        (void)fab_send(o->conn, &v, 1); /* only a courtesy: lost when there is no credit */
    }
    request_give_up(r, why);
}

void requests_of_lost_link(session_owner *o) {
    o->blocked = false;
    while (!list_empty(&o->sent)) {
        request *r = LIST_OF(o->sent.prev, request, link); /* from the last, so that the first is in front again */
        if (r->state == REQUEST_ABANDONED) {
            list_remove(&r->link);
            o->sent_count--;
            request_free(r);
        } else if (fkv_op_is(r->head.op, FKV_ASIDE)) {
            request_finish(r, FKV_DISCONNECTED, NULL, NULL, 0, false);
        } else {
            free(r->body);
            r->body = NULL;
            list_remove(&r->link);
            o->sent_count--;
            request_queue(r, true);
        }
    }
    for (fkv_list *l = o->waiting.next, *next; l != &o->waiting; l = next) {
        next = l->next;
        request *r = LIST_OF(l, request, link);
        if (!fkv_op_is(r->head.op, FKV_ASIDE)) continue;
        request_finish(r, FKV_DISCONNECTED, NULL, NULL, 0, false);
        next = o->waiting.next; /* what was called may have changed the list */
    }
}
