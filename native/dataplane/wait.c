/* wait.c: changes and reads that cannot go on yet, and where they wait.
 *
 * For its key: behind a change that is prepared. A key queue exists only while somebody waits for its key; ops leave it in order.
 * For memory: an op that has to wait for a segment, for the quarantine or for the room that large values share is starved. It
 * holds its key's queue, so that later changes of the key stay behind it; other keys go on.
 * Both have a deadline, after which the answer is BUSY. Queues that may move on are `woken` and looked at in the same turn,
 * never from inside what woke them. */
#include <stdlib.h>
#include "internal.h"

struct key_queue {
    key_queue *next;       /* of its bucket, or free */
    fkv_list woken;        /* in group.woken */
    uint64_t hash;
    fkv_list waiting;      /* ops in OP_WAITS_KEY */
    op *holder;            /* the op in OP_WAITS_MEMORY before them */
    uint32_t count;
    bool running;          /* being worked on: not freed meanwhile */
};

static key_queue *find(const group *g, uint64_t hash) {
    key_queue *q = g->key_queue[hash % KEY_QUEUE_BUCKETS];
    while (q && q->hash != hash) q = q->next;
    return q;
}

static key_queue *find_or_make(group *g, uint64_t hash) {
    key_queue *q = find(g, hash);
    if (q) return q;
    q = g->free_key_queues;
    if (q) g->free_key_queues = q->next;
    else if (!(q = malloc(sizeof *q))) return NULL;
    key_queue **bucket = &g->key_queue[hash % KEY_QUEUE_BUCKETS];
    *q = (key_queue){ .next = *bucket, .hash = hash };
    list_init(&q->woken);
    list_init(&q->waiting);
    *bucket = q;
    g->key_queues++;
    return q;
}

static void free_if_unused(group *g, key_queue *q) {
    if (q->running || q->holder || !list_empty(&q->waiting)) return;
    key_queue **at = &g->key_queue[q->hash % KEY_QUEUE_BUCKETS];
    while (*at != q) at = &(*at)->next;
    *at = q->next;
    list_remove(&q->woken);
    q->next = g->free_key_queues;
    g->free_key_queues = q;
    g->key_queues--;
}

void wait_free_queues(group *g) {
    for (key_queue *q = g->free_key_queues, *next; q; q = next) {
        next = q->next;
        free(q);
    }
    g->free_key_queues = NULL;
}

static void wake(group *g, key_queue *q) {
    if (!q->holder && list_empty(&q->woken)) list_push(&g->woken, &q->woken);
}

void wait_key_free(group *g, uint64_t hash) {
    key_queue *q = find(g, hash);
    if (q) wake(g, q);
}

/* An op that is tried again and has to wait again keeps its deadline. */
static void start_timer(op *o) {
    if (!list_empty(&o->timed)) return;
    o->deadline_ns = o->group->now_ns + (uint64_t)o->group->d->c.wait_ms * 1000000u;
    list_push(&o->group->timed, &o->timed);
}

static void no_place(op *o, key_queue *q) {
    group *g = o->group;
    op_answer(o, FKV_BUSY);
    if (q) free_if_unused(g, q);
}

static void wait_for_key(op *o, key_queue *q, bool first) {
    if (!q || q->count == KEY_QUEUE_MAX || !op_detach(o)) {
        no_place(o, q);
        return;
    }
    o->state = OP_WAITS_KEY;
    o->starved_ns = 0;
    o->queue = q;
    if (first) list_push_front(&q->waiting, &o->link);
    else list_push(&q->waiting, &o->link);
    q->count++;
    start_timer(o);
}

static void wait_for_memory(op *o, key_queue *q) {
    if (!q || !op_detach(o)) {
        no_place(o, q);
        return;
    }
    o->state = OP_WAITS_MEMORY;
    o->queue = q;
    q->holder = o;
    if (o->quarantined) o->shard->quarantined++;
    else if (o->starved_ns == 0) o->starved_ns = o->group->now_ns;
    list_push(&o->group->starved, &o->link);
    start_timer(o);
}

void wait_or_run(op *o) {
    group *g = o->group;
    bool read = !fkv_op_is(o->request.op, FKV_CHANGES);
    /* Reads pass those that only wait for memory; a change passes nothing that is before it on its key. */
    key_queue *q = g->key_queues && !read ? find(g, o->hash) : NULL;
    attempt_result r = q ? ATTEMPT_KEY : read ? read_attempt(o) : change_attempt(o);
    if (r == ATTEMPT_KEY) wait_for_key(o, q ? q : find_or_make(g, o->hash), false);
    else if (r == ATTEMPT_MEMORY) wait_for_memory(o, find_or_make(g, o->hash));
}

/* Out of its list, but its time goes on. */
static key_queue *leave(op *o) {
    key_queue *q = o->queue;
    list_remove(&o->link);
    if (o->state == OP_WAITS_MEMORY) {
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

static void unfollow(op *o) {
    op **at = &o->leader->followers;
    while (*at != o) at = &(*at)->next_follower;
    *at = o->next_follower;
    o->leader = o->next_follower = NULL;
    o->state = OP_ARRIVED;
}

void wait_remove(op *o) {
    group *g = o->group;
    if (o->state == OP_FOLLOWS) {
        unfollow(o);
        return;
    }
    key_queue *q = leave(o);
    list_remove(&o->timed);
    wake(g, q);
    free_if_unused(g, q);
}

/* One more try of an op that has just left q. */
static attempt_result try_again(op *o, key_queue *q) {
    attempt_result r = fkv_op_is(o->request.op, FKV_CHANGES) ? change_attempt(o) : read_attempt(o);
    if (r == ATTEMPT_KEY) wait_for_key(o, q, true);
    else if (r == ATTEMPT_MEMORY) wait_for_memory(o, q);
    else if (r == ATTEMPT_HELD) list_remove(&o->timed);
    return r;
}

/* Those that wait for a key whose change has ended, in order, until one of them holds it. */
static void run_queue(group *g, key_queue *q) {
    list_remove(&q->woken);
    attempt_result r = ATTEMPT_DONE;
    while (r == ATTEMPT_DONE && !q->holder && !list_empty(&q->waiting)) {
        op *o = LIST_OF(q->waiting.next, op, link);
        leave(o);
        q->running = true;
        r = try_again(o, q);
        q->running = false;
    }
    free_if_unused(g, q);
}

void wait_run_woken(group *g) {
    while (!list_empty(&g->woken)) run_queue(g, LIST_OF(g->woken.next, key_queue, woken));
}

/* What waited for the quarantine first and for a segment then counts from then. */
static void note_wait(const group *g, shard *s, uint64_t since_ns) {
    if (since_ns == 0) return;
    s->memory_waits++;
    s->memory_wait_max_ns = max_u64(s->memory_wait_max_ns, g->now_ns - since_ns);
}

static void feed_starved(group *g) {
    fkv_list hungry;
    list_take_all(&g->starved, &hungry);
    while (!list_empty(&hungry)) {
        op *o = LIST_OF(hungry.next, op, link);
        key_queue *q = leave(o);
        q->running = true;
        o->fed = true;
        shard *s = o->shard;
        uint64_t since_ns = o->starved_ns;
        attempt_result r = try_again(o, q);    /* which may free it */
        if (r != ATTEMPT_MEMORY) note_wait(g, s, since_ns);
        if (r == ATTEMPT_DONE) wake(g, q);
        q->running = false;
        free_if_unused(g, q);
    }
}

void wait_feed(group *g) {
    if (g->feed_starved) {
        g->feed_starved = false;
        feed_starved(g);
    }
    while (!list_empty(&g->timed)) {
        op *o = LIST_OF(g->timed.next, op, timed);
        if (o->deadline_ns > g->now_ns) break;
        note_wait(g, o->shard, o->starved_ns);
        wait_remove(o);
        op_answer(o, FKV_BUSY);
    }
}
