/* run.c: the way of a request at its owner, from its arrival to its answer; a change reads from top to bottom:
 *
 *   run_arrived     what came in this turn is given its table's time, and is runnable
 *   run             goes by its kind; a change is recognised by dedup, or is new
 *   prepare         in the table; or it waits (wait.c), or its value is fetched first (transfer.c)
 *   op_prepared     its record has a number; where the shard has backups they are waited for (replicate.c)
 *   commit          ready: the old extent dies, the slot is stored, the new extent lives
 *   answer          remembered, told to those who follow, given to the transport (stream.c)
 *   run_all         the one function that drains the worker's lists, in order, until all are empty
 *
 * Prepare and commit are apart because replication stands between them (op_prepared in stages.h). Nothing below calls back
 * up here: whatever happens to an op elsewhere puts it on one of the lists. */
#include "run.h"
#include "../base/assert.h"
#include "../base/clock.h"
#include "../dataplane/client.h"
#include "../replication/replication.h"
#include "../storage/shard.h"
#include "../table/words.h"
#include "connection.h"
#include "derive.h"
#include "read.h"
#include "stages.h"
#include "stream.h"
#include "transfer.h"
#include "wait.h"

enum { COPIED_AT_ONCE = 64 << 10 };       /* of a present value, by the worker; more by the copier */
static const uint64_t TICK_NS = 10000000; /* a shard that was changed gets its background work this much later */

/* ---- recognised or new ---- */

static void follow(op *o, op *first) {
    if (op_detach(o))
        op_follow(o, first);
    else
        op_ends(o, FKV_BUSY);
}

/* True: it is new, and to be made. */
static bool is_new(op *o) {
    worker *w = o->worker;
    void *known = o;
    dedup_result result;
    if (o->request.expiry) o->request.expiry += w->wall_ms; /* from here on the time at which it ends */
    bool retry = o->request.flags & FKV_REQUEST_RETRY;
    switch (dedup_begin(&w->dedup, o->client->memory, o->shard->slot, o->request.sequence, retry, w->now_ns, &known,
                        &result)) {
    case DEDUP_NEW:
        o->recorded = true;
        o->memory = o->client->memory;
        dedup_hold(o->memory);
        return true;
    case DEDUP_DONE:
        w->stats.duplicates++;
        o->reply.version = result.version;
        o->reply.expiry_ms = result.value;
        op_ends(o, result.status);
        break;
    case DEDUP_IN_PROGRESS:
        w->stats.duplicates++;
        follow(o, known);
        break;
    case DEDUP_FORGOTTEN: op_ends(o, FKV_STALE_SEQUENCE); break;
    case DEDUP_NO_ROOM: op_ends(o, FKV_BUSY); break;
    }
    return false;
}

/* ---- prepared ---- */

static table_op_kind table_kind(uint8_t op) {
    if (fkv_op_is(op, FKV_EXPECTS)) return fkv_op_is(op, FKV_VALUED) ? TABLE_CAS : TABLE_CAS_DELETE;
    return fkv_op_is(op, FKV_VALUED) ? TABLE_PUT : TABLE_DELETE;
}

static attempt_result ended(op *o, fkv_status s) {
    op_ends(o, s);
    return ATTEMPT_DONE;
}

/* The present entry, and what is to be made of it. Nothing comes between this look and the table's prepare: it is one
 * thread, and a key that has a prepared change is waited for. HELD: *d is it. */
static attempt_result look(op *o, derived *d) {
    const fkv_request *r = &o->request;
    table_entry e;
    table_busy why;
    fkv_status s = table_get(o->shard->table, r->space, o->key, r->key_bytes, o->hash, &e, &why);
    if (s == FKV_BUSY) return ATTEMPT_KEY;
    /* mutation: derive/damaged-operand */
    if (s == FKV_OK && !table_is_whole(&e)) s = FKV_CORRUPT; /* what is made of it would have a good checksum */
    if (s != FKV_OK && s != FKV_NOT_FOUND) return ended(o, s);
    s = derive(o, s == FKV_OK ? &e : NULL, d);
    if (s != FKV_OK) {
        if (s == FKV_NOT_INTEGER) o->reply.expiry_ms = d->answer;
        return ended(o, s);
    }
    o->value_bytes = d->kept + d->tail_bytes;
    o->removes = d->removes;
    return ATTEMPT_HELD;
}
static void be_derived(table_op *t, const derived *d) {
    t->kind = d->removes ? TABLE_DELETE : TABLE_PUT;
    t->codec = d->codec;
    t->user_flags = d->user_flags;
    t->expiry_ms = d->expiry_ms;
    t->expected_version = 0;
    t->value = d->kept ? NULL : d->tail;
    t->value_bytes = d->kept + d->tail_bytes;
}
/* It is prepared. What is kept of a large value is copied by the copier, from the present extent, which stays as long as
 * the key is prepared. */
static fkv_status make_derived(op *o, const derived *d) {
    o->reply.expiry_ms = d->answer;
    if (!d->kept) return FKV_OK;
    fkv_copy_in(o->prepared.value + d->kept, d->tail, d->tail_bytes);
    if (d->kept > COPIED_AT_ONCE) return transfer_keep(o, d->present, d->kept);
    fkv_copy_in(o->prepared.value, d->present, d->kept);
    table_seal(o->shard->table, &o->prepared);
    return FKV_OK;
}

static attempt_result prepare(op *o) {
    const fkv_request *r = &o->request;
    bool large = r->flags & FKV_REQUEST_RENDEZVOUS, derives = fkv_op_is(r->op, FKV_DERIVES), fed = o->fed;
    derived d;
    o->fed = false;
    if (shard_hands(o->shard)) return ATTEMPT_MEMORY;
    if (shard_status(o->worker, o->shard) != FKV_OK) return ended(o, FKV_SHARD_CLOSED);
    o->value_bytes = r->value_bytes;
    if (derives) {
        attempt_result looked = look(o, &d);
        if (looked != ATTEMPT_HELD) return looked;
    }
    if (o->shard->repl.backups) {
        fkv_status admitted = repl_admits(o);
        if (admitted == FKV_BUSY) return ATTEMPT_MEMORY;
        if (admitted != FKV_OK) return ended(o, admitted);
    }
    /* While some wait for freed memory to come out of quarantine, nobody overtakes them. */
    if (!fed && o->shard->quarantined) {
        o->quarantined = true;
        return ATTEMPT_MEMORY;
    }
    if (large && !transfer_admit(o->client, r->value_bytes)) return ATTEMPT_MEMORY;
    if (derives && d.kept > COPIED_AT_ONCE && !transfer_admit(o->client, d.kept)) return ATTEMPT_MEMORY;
    table_op t = { .kind = table_kind(r->op),
                   .space = r->space,
                   .key_bytes = r->key_bytes,
                   .codec = r->codec,
                   .keeps_expiry = r->flags & FKV_REQUEST_KEEP_EXPIRY,
                   .key = o->key,
                   .hash = o->hash,
                   .value = large ? NULL : o->body,
                   .value_bytes = r->value_bytes,
                   .user_flags = r->user_flags,
                   .expiry_ms = r->expiry,
                   .expected_version = r->expected };
    if (derives) be_derived(&t, &d);
    table_busy why = TABLE_BUSY_KEY;
    uint64_t present = 0;
    fkv_status s = table_prepare(o->shard->table, &t, &o->prepared, &present, &why);
    if (s == FKV_BUSY) {
        if (why == TABLE_BUSY_KEY) return ATTEMPT_KEY;
        o->quarantined = why == TABLE_BUSY_QUARANTINE;
        return ATTEMPT_MEMORY;
    }
    if (s == FKV_VERSION_MISMATCH) o->reply.version = present;
    if (s != FKV_OK) return ended(o, s);
    o->held = true;
    o->shard->held++;
    list_remove(&o->timed);
    s = large ? transfer_begin(o) : derives ? make_derived(o, &d) : FKV_OK;
    if (s != FKV_OK) {
        op_fails_alone(o, s);
        return ATTEMPT_DONE;
    }
    op_release(o);
    if (!o->transfer) op_prepared(o);
    return ATTEMPT_HELD;
}

static attempt_result attempt(op *o) { return fkv_op_is(o->request.op, FKV_CHANGES) ? prepare(o) : read_attempt(o); }

/* For the first time. Reads pass those that only wait for memory; a change passes nothing that is before it on its key.
 * */
static void attempt_first(op *o) {
    bool behind = fkv_op_is(o->request.op, FKV_CHANGES) && wait_somebody(o->worker, o->hash);
    attempt_result r = behind ? ATTEMPT_KEY : attempt(o);
    if (r == ATTEMPT_KEY)
        wait_for_key(o, false);
    else if (r == ATTEMPT_MEMORY)
        wait_for_memory(o);
}

/* Once more, when it has just left its queue. */
static attempt_result attempt_again(op *o) {
    attempt_result r = attempt(o);
    if (r == ATTEMPT_KEY)
        wait_for_key(o, true);
    else if (r == ATTEMPT_MEMORY)
        wait_for_memory(o);
    return r;
}

/* Those that wait for a key whose change has ended, in order, until one of them holds it. */
static void run_woken(worker *w) {
    key_queue *q = wait_begin(w);
    attempt_result r = ATTEMPT_DONE;
    for (op *o; r == ATTEMPT_DONE && (o = wait_next(q));) r = attempt_again(o);
    wait_end(w, q, false);
}

void run_starved(worker *w) {
    if (!w->feed_starved) return;
    w->feed_starved = false;
    fkv_list hungry;
    list_take_all(&w->starved, &hungry);
    while (!list_empty(&hungry)) {
        op *o = LIST_OF(hungry.next, op, link);
        key_queue *q = wait_begin_starved(o);
        o->fed = true;
        uint64_t since_ns = o->starved_ns;
        attempt_result r = attempt_again(o);
        if (r != ATTEMPT_MEMORY) wait_over(w, o->shard, since_ns);
        wait_end(w, q, r == ATTEMPT_DONE);
    }
}

static void commit_ready(worker *w);

/* A copy joins behind what has taken effect: nothing may have its number and not be in the table. It is told of that by
 * what is remembered, and no record of it follows. */
static void settle(worker *w) {
    commit_ready(w); /* mutation: joins/joins-behind-uncommitted */
    run_answers(w);  /* mutation: joins/joins-behind-unremembered */
}

static void run_scan(op *o) {
    if (o->request.flags & FKV_REQUEST_SCAN_FROM_HERE) settle(o->worker);
    o->request.flags &FKV_REQUEST_SCAN_CHANGED ? read_changed(o) : read_scan(o);
}

/* By its kind. One whose client is to be ended ends with it. */
static void run(op *o) {
    if (o->client->doomed) return;
    switch ((fkv_op)o->request.op) {
    case FKV_OP_LEASE: read_leases(o); break;
    case FKV_OP_LAYOUT: read_layout(o); break;
    case FKV_OP_SCAN: run_scan(o); break;
    case FKV_OP_TALLY: read_tally(o); break;
    case FKV_OP_GET: attempt_first(o); break;
    case FKV_OP_RENEW: op_ends(o, client_renew(o->client, o->body)); break;
    default:
        if (o->recorded || is_new(o)) attempt_first(o);
        break;
    }
}

void run_arrived(worker *w) {
    if (w->batch_count == 0) return;
    /* Read anew: this thread may have been paused between the turn's beginning and the poll, and what came meanwhile,
     * when the shards were somebody else's, must not be answered by a lease that ran when the turn began. */
    w->now_ns = fkv_now_ns(); /* mutation: dataplane/answered-after-pause */
    for (int i = 0; i < w->batch_count; i++) {
        op *o = w->batch[i];
        op_runs(o);
        if (!o->shard) continue;
        /* A table that rests was told the time long ago. */
        table_set_wall(o->shard->table, w->wall_ms);
        if (w->batch_count > 1 && o->request.key_bytes) table_prefetch(o->shard->table, o->hash, 1);
    }
    w->batch_count = 0;
}

/* ---- committed ---- */

static void release_key(op *o) {
    fkv_assert(o->shard->held > 0);
    o->held = false;
    o->shard->held--;
    wait_key_free(o->worker, o->hash);
}

void op_let_go(op *o) {
    release_key(o);
    op_ends(o, FKV_UNDECIDED);
}

static void undo(op *o) {
    table_abort(o->shard->table, &o->prepared);
    release_key(o);
}

static void commit(op *o) {
    shard *s = o->shard;
    /* first, for the key lies in the table's memory */
    /* mutation: dataplane/change-unnoted */
    if (s->changed.ring) change_log_note(&s->changed, o->request.space, o->key, o->request.key_bytes);
    table_commit(s->table, &o->prepared);
    s->tick_ns = min_u64(s->tick_ns, o->worker->now_ns + TICK_NS);
    o->reply.version = o->prepared.version;
    release_key(o);
    op_ends(o, FKV_OK);
}

static void commit_ready(worker *w) {
    /* Read anew: between the turn's beginning and here this thread may have been paused. */
    /* mutation: dataplane/late-change */
    bool late = fkv_now_ns() >= __atomic_load_n(&w->d->grant_until_ns, __ATOMIC_RELAXED);
    while (!list_empty(&w->ready)) {
        op *o = LIST_OF(w->ready.next, op, link);
        list_remove(&o->link);
        fkv_assert(o->held && o->state == OP_READY);
        /* Undone, not made and kept quiet about: a retry could be a second write over a newer value. One that backups
         * have is made however late: it lies in the log of every owner that may follow. */
        /* mutation: replication/late-undone */
        if (late && !o->replicated) {
            if (o->shard->repl.backups) repl_gives_way(o->shard); /* there is no record of that number */
            op_ends(o, FKV_SHARD_CLOSED);
        } else {
            commit(o);
        }
    }
}

/* ---- answered ---- */

/* The statuses that are a change's result; after any other it was not made, and a retry makes it anew. */
static bool is_result(fkv_status s) { return s == FKV_OK || s == FKV_NOT_FOUND || s == FKV_VERSION_MISMATCH; }

/* After these a client sends the same change again. */
static bool is_tried_again(fkv_status s) {
    return s == FKV_BUSY || s == FKV_SHARD_CLOSED || s == FKV_NOT_OWNER || s == FKV_DISCONNECTED || s == FKV_UNDECIDED;
}

/* A change that failed is forgotten, unless another copy of it may still come, which is not to be made after its client
 * was told that it failed. */
static bool is_remembered(const op *o, fkv_status s) {
    bool copies = (o->request.flags & FKV_REQUEST_RETRY) || o->followers;
    return is_result(s) || (copies && !is_tried_again(s));
}

/* The change may be lost with all copies, and others may have seen that it is. It is remembered, and its client asks
 * again. */
static bool is_too_late(const op *o, fkv_status s) {
    const shard *of = o->shard;
    if (!of || !of->durable || !is_result(s) || !fkv_op_is(o->request.op, FKV_CHANGES)) return false;
    return o->worker->d->c.log.sync_ns > 0 && fkv_now_ns() >= shard_right(o->worker, of);
}

static void answer_followers(op *o, fkv_status s) {
    for (op *f = o->followers, *next; f; f = next) {
        next = f->next_follower;
        f->leader = f->next_follower = NULL;
        f->reply.version = o->reply.version;
        f->reply.expiry_ms = o->reply.expiry_ms;
        op_ends(f, s);
    }
    o->followers = NULL;
}

/* Not inlined: run_answers is called for every message, mostly for nothing. */
static __attribute__((noinline)) void answer(op *o) {
    fkv_status s = o->status;
    if (o->held) undo(o);
    if (is_remembered(o, s))
        op_remember(o, s);
    else
        op_forget(o);
    answer_followers(o, s);
    if (is_too_late(o, s)) s = FKV_UNDECIDED; /* mutation: early/answered-without-right */
    if (!is_result(s)) op_refused(o, s);
    if (!o->client) {
        op_free(o);
        return;
    }
    if (o->shard) {
        o->reply.layout_epoch = table_layout_epoch(o->shard->table);
        o->reply.buckets = table_buckets(o->shard->table);
    }
    if (!o->streams) o->shard = NULL; /* it may be freed before the reply is sent */
    o->reply.status = (uint8_t)s;
    reply_send(o);
}

/* ---- all of it ---- */

/* Takes the first of a list. */
static op *take(fkv_list *l) {
    op *o = LIST_OF(l->next, op, link);
    list_remove(&o->link);
    o->state = OP_ARRIVED;
    return o;
}

bool run_pending(const worker *w) {
    return !list_empty(&w->answering) || !list_empty(&w->runnable) || !list_empty(&w->woken) || !list_empty(&w->ready);
}

void run_answers(worker *w) {
    while (!list_empty(&w->answering)) answer(take(&w->answering));
}

/* Answers first: what one holds (a SCAN's entries lie in the worker's scratch memory) is free for the next. What is
 * ready comes last, so that everything that arrived together is prepared before the first of it is committed. */
void run_all(worker *w) {
    for (;;) {
        run_answers(w);
        if (!list_empty(&w->runnable))
            run(take(&w->runnable));
        else if (!list_empty(&w->woken))
            run_woken(w);
        else if (!list_empty(&w->ready))
            commit_ready(w);
        else
            return;
    }
}
