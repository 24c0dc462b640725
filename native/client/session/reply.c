/* reply.c: messages that came from an owner: which request they answer, pieces put together, refusals turned into
 * retries. A message that breaks the protocol ends the connection; one that answers nothing is dropped. */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

enum { BODY_MAX = 16 << 20 }; /* of a reply in several messages that is not a value */

/* ---- replies in several messages ---- */

static bool append(request *r, const fkv_reply *reply, const uint8_t *body) {
    if (!r->body) r->body_bytes = 0; /* what the request's place counted for the one before it */
    uint64_t bytes = (uint64_t)r->body_bytes + reply->body_bytes;
    if (bytes > BODY_MAX) return false;
    if (bytes > r->body_room || !r->body) {
        uint64_t room = bytes * 2 < 4096 ? 4096 : bytes * 2;
        uint8_t *larger = realloc(r->body, room);
        if (!larger) return false;
        r->body = larger;
        r->body_room = (uint32_t)room;
    }
    if (reply->body_bytes) memcpy(r->body + r->body_bytes, body, reply->body_bytes);
    r->body_bytes = (uint32_t)bytes;
    return true;
}

/* A piece of a value goes to its place; body_bytes counts what has come. wire_parse_reply saw that it lies within the
 * value. */
static bool place(request *r, const fkv_reply *reply, const uint8_t *body) {
    if (!r->body) {
        r->body = malloc(reply->value_bytes ? reply->value_bytes : 1);
        if (!r->body) return false;
        r->body_room = reply->value_bytes;
        r->body_bytes = 0;
    }
    if (reply->value_bytes != r->body_room || reply->offset != r->body_bytes) return false;
    if (reply->body_bytes) memcpy(r->body + reply->offset, body, reply->body_bytes);
    r->body_bytes += reply->body_bytes;
    return true;
}

static void complete(session_owner *o, request *r, const fkv_reply *reply, const uint8_t *body) {
    bool value = fkv_op_answer(reply->op) == FKV_BODY_VALUE && reply->status == FKV_OK;
    if (!(reply->flags & FKV_REPLY_MORE) && !r->body) {
        if (value && (reply->offset || reply->body_bytes != reply->value_bytes)) {
            owner_drop(o, FKV_BAD_REQUEST);
            return;
        }
        /* The common case: one message. What is called may look at it, but not keep or change it. */
        request_finish(r, (fkv_status)reply->status, reply, (uint8_t *)(uintptr_t)body, reply->body_bytes, false);
        return;
    }
    bool good = value ? place(r, reply, body) : append(r, reply, body);
    bool last = !(reply->flags & FKV_REPLY_MORE);
    if (!good || (last && value && r->body_bytes != r->body_room)) {
        owner_drop(o, FKV_BAD_REQUEST);
        return;
    }
    if (!last) return;
    uint8_t *whole = r->body;
    r->body = NULL;
    request_finish(r, (fkv_status)reply->status, reply, whole, r->body_bytes, true);
}

/* ---- refusals ---- */

/* NOT_OWNER, SHARD_CLOSED, BUSY, UNDECIDED: not for ever, and all but BUSY not longer than absent.c allows. A change that
 * says RETRY may have had its effect when its first copy came, and one that is UNDECIDED may still have it, by the next
 * owner: either stays the same request. Any other had none. */
static void refused(session_owner *o, request *r, const fkv_reply *reply) {
    session *s = o->session;
    if (reply->status == FKV_NOT_OWNER) shard_not_owner(s, o, r->head.shard);
    if (fkv_op_is(r->head.op, FKV_ASIDE)) {
        request_finish(r, (fkv_status)reply->status, reply, NULL, 0, false);
        return;
    }
    bool without_effect = !(r->head.flags & FKV_REQUEST_RETRY) && reply->status != FKV_UNDECIDED;
    if (fkv_op_is(r->head.op, FKV_CHANGES) && without_effect) {
        r->sent_before = false;
        shard_leave_window(s, r);
    }
    if (reply->status != FKV_BUSY && absent_refused(s, r->head.shard)) {
        request_finish(r, fkv_op_is(r->head.op, FKV_CHANGES) && r->sent_before ? FKV_STALE_SEQUENCE : FKV_SHARD_CLOSED,
                       reply, NULL, 0, false);
        return;
    }
    free(r->body);
    r->body = NULL;
    request_delay(r, (fkv_status)reply->status);
}

static bool refusal(uint8_t status) {
    return status == FKV_NOT_OWNER || status == FKV_SHARD_CLOSED || status == FKV_BUSY || status == FKV_UNDECIDED;
}

/* One request less is at the owner, also if nobody here waits for it any more. */
static void count_reply(session_owner *o, const fkv_reply *reply) {
    if (reply->op >= FKV_OP_COUNT || fkv_op_is(reply->op, FKV_ASIDE) || reply->flags & FKV_REPLY_MORE ||
        o->at_owner == 0)
        return;
    if (o->at_owner-- >= o->quota) requests_wake(o);
}

static __attribute__((noinline, cold)) void note_answered(session_owner *o, const fkv_reply *reply, uint32_t bytes) {
    session_note(
        o->session, &o->peer,
        &(session_step){
            .type = SESSION_ANSWERED, .op = (fkv_op)reply->op, .status = (fkv_status)reply->status, .bytes = bytes });
}

void reply_received(session_owner *o, const void *message, uint32_t bytes) {
    session *s = o->session;
    fkv_reply reply;
    const uint8_t *body;
    if (wire_parse_reply(message, bytes, &reply, &body) != FKV_OK) {
        owner_drop(o, FKV_BAD_REQUEST);
        return;
    }
    count_reply(o, &reply);
    request *r = request_of(s, reply.id);
    if (!r || r->owner != o || (r->state != REQUEST_SENT && r->state != REQUEST_ABANDONED)) return;
    if (reply.op != r->head.op) {
        owner_drop(o, FKV_BAD_REQUEST);
        return;
    }
    if (__builtin_expect(s->config.traced, 0) && !(reply.flags & FKV_REPLY_MORE)) note_answered(o, &reply, bytes);
    if (r->state == REQUEST_ABANDONED) {
        if (reply.flags & FKV_REPLY_MORE) return;
        list_remove(&r->link);
        o->sent_count--;
        request_free(r);
        owner_answered(o);
        owner_want(o);
        return;
    }
    if (fkv_op_answer(reply.op) == FKV_BODY_LEASES && reply.status == FKV_OK) {
        lease_reply(o, r, &reply, body);
        if (reply.flags & FKV_REPLY_MORE) return;
        request_finish(r, FKV_OK, &reply, NULL, 0, false);
        return;
    }
    if (reply.layout_epoch && fkv_op_is(reply.op, FKV_OF_SHARD)) {
        s->hooks.shard_news(s->hooks.ctx, &o->peer, r->head.shard, reply.layout_epoch, reply.buckets);
    }
    if (refusal(reply.status)) {
        refused(o, r, &reply);
    } else {
        if (!fkv_op_is(reply.op, FKV_ASIDE)) shard_up(s, r->head.shard);
        complete(o, r, &reply, body);
    }
    owner_want(o);
}
