/* life.c: shards come, are served, get their background work, and go: the worker's side. Memory is made and freed
 * elsewhere (memory.c).
 *
 * A shard that is being closed answers nothing any more, its table is not touched any more, and it waits until every
 * lease that covers it has run out: until then what clients READ there is still the truth, since nobody else has the
 * shard yet. One that is paused is as quiet, and keeps what it has: it is another owner's soon, or goes on. */
#include "life.h"
#include <stdlib.h>
#include "../base/assert.h"
#include "client.h"
#include "import.h"
#include "memory.h"
#include "op.h"
#include "stream.h"
#include "transfer.h"
#include "wait.h"

static const uint64_t MS = 1000000;
enum { BUSY_TICK_MS = 20, REST_TICK_MS = 100, STARVED_TICK_MS = 1, TICK_BUDGET = 64 };

/* ---- open ---- */

/* There is one: a worker has at most as many shards as there are slots. */
static uint32_t free_slot(const worker *w) {
    uint32_t slot = 0;
    while (w->slot_taken[slot]) slot++;
    return slot;
}

static fkv_status make(worker *w, command *c, shard **out) {
    shard *s = *out = calloc(1, sizeof *s);
    if (!s) return FKV_NO_MEMORY;
    *s = (shard){ .w = w,
                  .number = c->number,
                  .epoch = c->open.epoch,
                  .slot = free_slot(w),
                  .incarnation = c->open.incarnation,
                  .tick_ns = UINT64_MAX };
    list_init(&s->of_worker);
    list_init(&s->imports);
    if (dedup_open_slot(&w->dedup, s->slot, s->epoch > DATAPLANE_EPOCH_FIRST, w->now_ns) != 0) return FKV_NO_MEMORY;
    table_config t = memory_table_config(w->d, &c->open, s);
    fkv_status status = table_create(&t, &s->table);
    if (status != FKV_OK) return status;
    table_tick(s->table, w->now_ns, w->wall_ms, 0);
    segment **first[] = { &c->first_index, &c->first_heap };
    for (int i = 0; i < 2; i++) {
        status = shard_add_segment(s, *first[i]);
        if (status != FKV_OK) return status;
        *first[i] = NULL; /* the shard's from here on */
    }
    s->notified_epoch = table_layout_epoch(s->table);
    return FKV_OK;
}

void shard_open(job *j) {
    command *c = (command *)j;
    worker *w = c->w;
    shard *s = NULL;
    c->status = w->stopping ? FKV_CLOSED : make(w, c, &s);
    if (c->status == FKV_OK && !(c->result = shard_describe(s))) c->status = FKV_NO_MEMORY;
    if (c->status == FKV_OK) {
        list_push(&w->shards, &s->of_worker);
        w->by_number[s->number] = s;
        w->slot_taken[s->slot] = true;
        s = NULL;
    }
    memory_opened(c, s);
}

/* ---- serve, describe ---- */

static shard *shard_of(command *c) { return c->w->stopping ? NULL : c->w->by_number[c->number]; }
static fkv_status none(const command *c) { return c->w->stopping ? FKV_CLOSED : FKV_NOT_OWNER; }

static void end_pause(shard *s, fkv_status status) {
    command *c = s->pausing;
    s->pausing = NULL;
    if (c) command_done(c, status, NULL);
}

void shard_serve(job *j) {
    command *c = (command *)j;
    shard *s = shard_of(c);
    fkv_status status = !s ? none(c) : s->state == SHARD_CLOSING ? FKV_BUSY : FKV_OK;
    /* Until now an earlier owner may have made changes, however long ago the shard was opened here. */
    if (status == FKV_OK && s->state == SHARD_OPEN) {
        status = dedup_open_slot(&c->w->dedup, s->slot, s->epoch > DATAPLANE_EPOCH_FIRST, c->w->now_ns) == 0
                     ? FKV_OK
                     : FKV_NO_MEMORY;
    }
    if (status == FKV_OK) {
        imports_end(s, FKV_BUSY);
        end_pause(s, FKV_BUSY);
        s->state = SHARD_SERVING;
    }
    command_done(c, status, NULL);
}

void shard_seal(job *j) {
    command *c = (command *)j;
    shard *s = shard_of(c);
    fkv_status status = !s ? none(c) : s->state == SHARD_CLOSING ? FKV_BUSY : FKV_OK;
    if (status == FKV_OK) s->sealed_for = c->sealed_for;
    command_done(c, status, NULL);
}

void shard_layout(job *j) {
    command *c = (command *)j;
    shard *s = shard_of(c);
    dataplane_layout *l = s ? shard_describe(s) : NULL;
    command_done(c, l ? FKV_OK : s ? FKV_NO_MEMORY : none(c), l);
}

/* ---- close ---- */

static void refuse(op *o, const shard *s) {
    if (o->shard != s) return;
    if (op_waits(o) && o->state != OP_FOLLOWS) { /* followers are answered with those that they follow */
        wait_remove(o);
        op_ends(o, FKV_SHARD_CLOSED);
    } else if (o->state == OP_ANSWERS && o->streams) {
        stream_fail(o, FKV_SHARD_CLOSED);
    } else if (o->state == OP_TRANSFERS) {
        transfer_fail(o, FKV_SHARD_CLOSED);
    }
}

static void refuse_all(fkv_list *clients, const shard *s) {
    for (fkv_list *l = clients->next; l != clients; l = l->next) {
        client *c = LIST_OF(l, client, of_worker);
        for (fkv_list *m = c->ops.next; m != &c->ops; m = m->next) refuse(LIST_OF(m, op, of_client), s);
    }
}

void shard_close(job *j) {
    command *c = (command *)j;
    shard *s = shard_of(c);
    if (!s || s->state == SHARD_CLOSING) {
        command_done(c, s ? FKV_BUSY : none(c), NULL);
        return;
    }
    s->state = SHARD_CLOSING;
    s->closing = c;
    end_pause(s, FKV_BUSY);
    imports_end(s, FKV_SHARD_CLOSED);
    refuse_all(&c->w->clients, s);
    refuse_all(&c->w->doomed, s);
}

void shard_pause(job *j) {
    command *c = (command *)j;
    shard *s = shard_of(c);
    if (!s || s->state == SHARD_CLOSING || s->pausing) {
        command_done(c, s ? FKV_BUSY : none(c), NULL);
        return;
    }
    if (s->state == SHARD_SERVING) s->state = SHARD_PAUSED;
    s->pausing = c;
    refuse_all(&c->w->clients, s);
    refuse_all(&c->w->doomed, s);
}

static bool quiet(const worker *w, const shard *s) { return s->held == 0 && w->now_ns >= s->lease_until_ns; }

/* No op is about it any more: they were refused when it began to close, and the lists are empty. */
static void finish_close(worker *w, shard *s) {
    fkv_assert(s->closing && s->held == 0 && s->quarantined == 0);
    list_remove(&s->of_worker);
    w->by_number[s->number] = NULL;
    w->slot_taken[s->slot] = false;
    dedup_drop_slot(&w->dedup, s->slot);
    memory_close(s->closing, s);
}

/* ---- background work ---- */

static uint64_t next_tick(worker *w, shard *s, bool more) {
    if (more) return w->now_ns;
    if (s->quarantined) return w->now_ns + STARVED_TICK_MS * MS;
    if (s->touched) {
        s->touched = false;
        return w->now_ns + BUSY_TICK_MS * MS;
    }
    bool resting = table_resting(s->table) && s->wanted == 0;
    return resting ? UINT64_MAX : w->now_ns + REST_TICK_MS * MS;
}

void shards_tick(worker *w) {
    for (fkv_list *l = w->shards.next, *next; l != &w->shards; l = next) {
        next = l->next;
        shard *s = LIST_OF(l, shard, of_worker);
        if (s->lingering) memory_free_lingering(s, w->now_ns);
        if (s->state == SHARD_CLOSING) {
            if (quiet(w, s) && s->wanted == 0) finish_close(w, s);
            continue;
        }
        if (s->pausing && quiet(w, s)) end_pause(s, FKV_OK);
        if (s->log.ring) change_log_rest(&s->log, w->now_ns);
        if (s->touched || s->tick_ns <= w->now_ns) {
            bool more = table_tick(s->table, w->now_ns, w->wall_ms, TICK_BUDGET + 4 * w->batch_count);
            s->tick_ns = next_tick(w, s, more);
            imports_continue(s);
            if (!list_empty(&w->starved)) w->feed_starved = true;
        }
        uint32_t epoch = table_layout_epoch(s->table);
        if (s->notified_epoch != epoch && memory_notify(s)) s->notified_epoch = epoch;
    }
}

uint64_t shards_deadline(const worker *w) {
    uint64_t at = UINT64_MAX;
    for (const fkv_list *l = w->shards.next; l != &w->shards; l = l->next) {
        const shard *s = LIST_OF(l, shard, of_worker);
        bool waits = s->held || s->wanted; /* what ends that also ends the sleep */
        for (const segment *r = s->lingering; r; r = r->next) at = min_u64(at, r->free_at_ns);
        if (s->pausing && !s->held) at = min_u64(at, s->lease_until_ns);
        if (s->state != SHARD_CLOSING) at = min_u64(at, change_log_idle_ns(&s->log));
        at = min_u64(at, s->state != SHARD_CLOSING ? s->tick_ns : waits ? UINT64_MAX : s->lease_until_ns);
    }
    return at;
}

void shards_end(worker *w) {
    while (!list_empty(&w->shards)) {
        shard *s = LIST_OF(w->shards.next, shard, of_worker);
        list_remove(&s->of_worker);
        if (s->closing) command_done(s->closing, FKV_CLOSED, NULL);
        if (s->pausing) command_done(s->pausing, FKV_CLOSED, NULL);
        imports_end(s, FKV_CLOSED);
        shard_free(s);
    }
}
