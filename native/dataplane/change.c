/* change.c: the stages of PUT, DELETE and compare-and-swap: recognised or new, prepared, committed, answered. internal.h draws
 * them. Prepare and commit are apart because replication stands between them. */
#include "../base/clock.h"
#include "internal.h"

static const uint64_t TICK_NS = 10000000;   /* a shard that was changed gets its background work this much later */

static void follow(op *o, op *first) {
    if (!op_detach(o)) {
        op_answer(o, FKV_BUSY);
        return;
    }
    o->state = OP_FOLLOWS;
    o->leader = first;
    o->next_follower = first->followers;
    first->followers = o;
}

void change_arrived(op *o) {
    group *g = o->group;
    void *known = o;
    fkv_status status = FKV_OK;
    uint64_t version = 0;
    if (o->request.expiry) o->request.expiry += g->wall_ms;   /* from here on the time at which it ends */
    bool retry = o->request.flags & FKV_REQUEST_RETRY;
    switch (dedup_begin(&g->dedup, o->client->memory, o->shard->slot, o->request.sequence, retry, g->now_ns, &known, &status,
                        &version)) {
    case DEDUP_NEW:
        o->recorded = true;
        o->memory = o->client->memory;
        dedup_hold(o->memory);
        wait_or_run(o);
        return;
    case DEDUP_DONE:
        g->stats.duplicates++;
        o->reply.version = version;
        op_answer(o, status);
        return;
    case DEDUP_IN_PROGRESS:
        g->stats.duplicates++;
        follow(o, known);
        return;
    case DEDUP_FORGOTTEN:
        op_answer(o, FKV_STALE_SEQUENCE);
        return;
    case DEDUP_NO_ROOM:
        op_answer(o, FKV_BUSY);
        return;
    }
}

static table_op_kind table_kind(uint8_t op) {
    if (fkv_op_is(op, FKV_EXPECTS)) return fkv_op_is(op, FKV_VALUED) ? TABLE_CAS : TABLE_CAS_DELETE;
    return fkv_op_is(op, FKV_VALUED) ? TABLE_PUT : TABLE_DELETE;
}

attempt_result change_attempt(op *o) {
    const fkv_request *r = &o->request;
    bool large = r->flags & FKV_REQUEST_RENDEZVOUS, fed = o->fed;
    o->fed = false;
    if (request_shard_status(o->group, o->shard) != FKV_OK) {
        op_answer(o, FKV_SHARD_CLOSED);
        return ATTEMPT_DONE;
    }
    /* After it was looked at what is remembered: what was done already is answered so. The client asks again, its next owner too. */
    if (o->shard->sealed_for) {
        op_answer(o, FKV_BUSY);
        return ATTEMPT_DONE;
    }
    /* While some wait for freed memory to come out of quarantine, nobody overtakes them. */
    if (!fed && o->shard->quarantined) {
        o->quarantined = true;
        return ATTEMPT_MEMORY;
    }
    if (large && !transfer_admit(o->client, r->value_bytes)) return ATTEMPT_MEMORY;
    table_op t = { .kind = table_kind(r->op), .ns = r->ns, .key_bytes = r->key_bytes, .codec = r->codec, .key = o->key,
                   .hash = o->hash, .value = large ? NULL : o->body, .value_bytes = r->value_bytes,
                   .user_flags = r->user_flags, .expiry_ms = r->expiry, .expected_version = r->expected };
    table_busy why = TABLE_BUSY_KEY;
    uint64_t present = 0;
    fkv_status s = table_prepare(o->shard->table, &t, &o->prepared, &present, &why);
    if (s == FKV_BUSY) {
        if (why == TABLE_BUSY_KEY) return ATTEMPT_KEY;
        o->quarantined = why == TABLE_BUSY_QUARANTINE;
        return ATTEMPT_MEMORY;
    }
    if (s != FKV_OK) {
        if (s == FKV_VERSION_MISMATCH) o->reply.version = present;
        op_answer(o, s);
        return ATTEMPT_DONE;
    }
    o->shard->held++;
    if (!large) {
        change_ready(o);
        return ATTEMPT_HELD;
    }
    s = transfer_begin(o);
    if (s == FKV_OK) return ATTEMPT_HELD;
    change_abort(o, s);
    return ATTEMPT_DONE;
}

void change_ready(op *o) {
    o->state = OP_READY;
    list_push(&o->group->ready, &o->link);
}

static void release_key(op *o) {
    o->shard->held--;
    if (o->group->key_queues) wait_key_free(o->group, o->hash);
}

void change_abort(op *o, fkv_status s) {
    table_abort(o->shard->table, &o->prepared);
    release_key(o);
    /* What went wrong is this copy's own trouble; a retry that follows it has its own connection and value. */
    op *heir = s == FKV_SHARD_CLOSED ? NULL : op_pass_on(o);
    op_answer(o, s);
    if (heir) wait_or_run(heir);
}

void changes_commit(group *g) {
    if (list_empty(&g->ready)) return;
    /* Read anew: between the turn's beginning and here this thread may have been paused. */
    uint64_t now = fkv_now_ns();
    bool late = now >= __atomic_load_n(&g->d->grant_until_ns, __ATOMIC_RELAXED);
    while (!list_empty(&g->ready)) {
        op *o = LIST_OF(g->ready.next, op, link);
        shard *s = o->shard;
        list_remove(&o->link);
        if (late) {   /* undone, not made and kept quiet about: a retry could be a second write over a newer value */
            change_abort(o, FKV_SHARD_CLOSED);
            continue;
        }
        table_commit(s->table, &o->prepared);
        change_log_note(&s->log, o->request.ns, o->key, o->request.key_bytes);
        s->tick_ns = min_u64(s->tick_ns, g->now_ns + TICK_NS);
        o->reply.version = o->prepared.version;
        release_key(o);
        op_answer(o, FKV_OK);
    }
}
