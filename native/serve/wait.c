/* wait.c: changes and reads that cannot go on yet, and where they wait.
 *
 * For its key: behind a change that is prepared. A key queue exists only while somebody waits for its key; ops leave it
 * in order. For memory: an op that has to wait for a segment, for the quarantine or for the room that large values
 * share is starved. It holds its key's queue, so that later changes of the key stay behind it; other keys go on. Both
 * have a deadline, after which the answer is BUSY. Queues that may move on are `woken`; run.c tries those who wait
 * there in the same turn. Invariant: a queue has somebody who waits, a holder, or is being run. */
#include "wait.h"
#include "../base/assert.h"
#include <stdlib.h>
#include "../dataplane/worker.h"
#include "../replication/replication.h"
#include "../storage/shard.h"

struct key_queue {
    key_queue *next; /* of its bucket, or free */
    fkv_list woken;  /* in worker.woken */
    uint64_t hash;
    fkv_list waiting; /* ops in OP_WAITS_KEY */
    op *holder;       /* the op in OP_WAITS_MEMORY before them */
    uint32_t count;
    bool running; /* between wait_begin and wait_end: not freed meanwhile */
};

static key_queue *find(const worker *w, uint64_t hash) {
    key_queue *q = w->key_queue[hash % KEY_QUEUE_BUCKETS];
    while (q && q->hash != hash) q = q->next;
    return q;
}

static key_queue *find_or_make(worker *w, uint64_t hash) {
    key_queue *q = find(w, hash);
    if (q) return q;
    q = w->free_key_queues;
    if (q)
        w->free_key_queues = q->next;
    else if (!(q = malloc(sizeof *q)))
        return NULL;
    key_queue **bucket = &w->key_queue[hash % KEY_QUEUE_BUCKETS];
    *q = (key_queue){ .next = *bucket, .hash = hash };
    list_init(&q->woken);
    list_init(&q->waiting);
    *bucket = q;
    w->key_queues++;
    return q;
}

static void free_if_unused(worker *w, key_queue *q) {
    if (q->running || q->holder || !list_empty(&q->waiting)) return;
    fkv_assert(q->count == 0);
    key_queue **at = &w->key_queue[q->hash % KEY_QUEUE_BUCKETS];
    while (*at != q) at = &(*at)->next;
    *at = q->next;
    list_remove(&q->woken);
    q->next = w->free_key_queues;
    w->free_key_queues = q;
    w->key_queues--;
}

void wait_free_queues(worker *w) {
    for (key_queue *q = w->free_key_queues, *next; q; q = next) {
        next = q->next;
        free(q);
    }
    w->free_key_queues = NULL;
}

static void wake(worker *w, key_queue *q) {
    if (!q->holder && list_empty(&q->woken)) list_push(&w->woken, &q->woken);
}

bool wait_somebody(const worker *w, uint64_t hash) { return w->key_queues && find(w, hash); }

void wait_key_free(worker *w, uint64_t hash) {
    key_queue *q = w->key_queues ? find(w, hash) : NULL;
    if (q) wake(w, q);
}

/* ---- in ---- */

/* An op that is tried again and has to wait again keeps its deadline. */
static void start_timer(op *o) {
    if (!list_empty(&o->timed)) return;
    o->deadline_ns = o->worker->now_ns + (uint64_t)o->worker->d->c.wait_ms * 1000000u;
    list_push(&o->worker->timed, &o->timed);
}

static void no_place(op *o, key_queue *q) {
    op_ends(o, FKV_BUSY);
    if (q) free_if_unused(o->worker, q);
}

void wait_for_key(op *o, bool first) {
    key_queue *q = find_or_make(o->worker, o->hash);
    if (!q || q->count == KEY_QUEUE_MAX || !op_detach(o)) {
        no_place(o, q);
        return;
    }
    o->state = OP_WAITS_KEY;
    o->starved_ns = 0;
    o->queue = q;
    if (first)
        list_push_front(&q->waiting, &o->link);
    else
        list_push(&q->waiting, &o->link);
    q->count++;
    start_timer(o);
}

void wait_for_memory(op *o) {
    key_queue *q = find_or_make(o->worker, o->hash);
    if (!q || !op_detach(o)) {
        no_place(o, q);
        return;
    }
    fkv_assert(!q->holder);
    o->state = OP_WAITS_MEMORY;
    o->queue = q;
    q->holder = o;
    if (o->quarantined)
        o->shard->quarantined++;
    else if (o->starved_ns == 0 && !shard_hands(o->shard))
        o->starved_ns = o->worker->now_ns;
    list_push(&o->worker->starved, &o->link);
    start_timer(o);
}

/* ---- out ---- */

/* Out of its list, but its time goes on. */
static key_queue *leave(op *o) {
    key_queue *q = o->queue;
    list_remove(&o->link);
    if (o->state == OP_WAITS_MEMORY) {
        fkv_assert(q->holder == o);
        q->holder = NULL;
        if (o->quarantined) o->shard->quarantined--;
        o->quarantined = false;
    } else {
        q->count--;
    }
    o->state = OP_ARRIVED;
    o->queue = NULL;
    return q;
}

void wait_remove(op *o) {
    worker *w = o->worker;
    if (o->state == OP_FOLLOWS) {
        op_unfollow(o);
        return;
    }
    if (o->state == OP_RUNNABLE) {
        list_remove(&o->link);
        o->state = OP_ARRIVED;
        return;
    }
    key_queue *q = leave(o);
    list_remove(&o->timed);
    wake(w, q);
    free_if_unused(w, q);
}

key_queue *wait_begin(worker *w) {
    key_queue *q = LIST_OF(w->woken.next, key_queue, woken);
    list_remove(&q->woken);
    q->running = true;
    return q;
}

op *wait_next(key_queue *q) {
    if (q->holder || list_empty(&q->waiting)) return NULL;
    op *o = LIST_OF(q->waiting.next, op, link);
    leave(o);
    return o;
}

key_queue *wait_begin_starved(op *o) {
    key_queue *q = leave(o);
    q->running = true;
    return q;
}

void wait_end(worker *w, key_queue *q, bool goes_on) {
    q->running = false;
    if (goes_on) wake(w, q);
    free_if_unused(w, q);
}

/* What waited for the quarantine first and for a segment then counts from then. */
void wait_over(worker *w, shard *s, uint64_t starved_ns) {
    if (starved_ns == 0) return;
    s->memory_waits++;
    s->memory_wait_max_ns = max_u64(s->memory_wait_max_ns, w->now_ns - starved_ns);
}

void wait_expire(worker *w) {
    while (!list_empty(&w->timed)) {
        op *o = LIST_OF(w->timed.next, op, timed);
        if (o->deadline_ns > w->now_ns) break;
        wait_over(w, o->shard, o->starved_ns);
        bool full = o->state == OP_WAITS_MEMORY && repl_disk_full(o->shard);
        wait_remove(o);
        op_ends(o, full ? FKV_TABLE_FULL : FKV_BUSY);
    }
}
