/* life.c: shards come, are served, get their background work, and go: the group's side. Memory is made and freed elsewhere
 * (memory.c).
 *
 * A shard that is being closed answers nothing any more, its table is not touched any more, and it waits until every lease that
 * covers it has run out: until then what clients READ there is still the truth, since nobody else has the shard yet. One that is paused is as quiet,
 * and keeps what it has: it is another owner's soon, or goes on. */
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

/* There is one: a group has at most as many shards as there are slots. */
static uint32_t free_slot(const group *g) {
    uint32_t slot = 0;
    while (g->slot_taken[slot]) slot++;
    return slot;
}

static fkv_status make(group *g, command *c, shard **out) {
    shard *s = *out = calloc(1, sizeof *s);
    if (!s) return FKV_NO_MEMORY;
    *s = (shard){ .g = g, .number = c->number, .epoch = c->open.epoch, .slot = free_slot(g), .incarnation = c->open.incarnation,
                  .tick_ns = UINT64_MAX };
    list_init(&s->of_group);
    list_init(&s->imports);
    if (dedup_open_slot(&g->dedup, s->slot, s->epoch > DATAPLANE_EPOCH_FIRST, g->now_ns) != 0) return FKV_NO_MEMORY;
    table_config t = memory_table_config(g->d, &c->open, s);
    fkv_status status = table_create(&t, &s->table);
    if (status != FKV_OK) return status;
    table_tick(s->table, g->now_ns, g->wall_ms, 0);
    segment **first[] = { &c->first_index, &c->first_heap };
    for (int i = 0; i < 2; i++) {
        status = shard_add_segment(s, *first[i]);
        if (status != FKV_OK) return status;
        *first[i] = NULL;   /* the shard's from here on */
    }
    s->notified_epoch = table_layout_epoch(s->table);
    return FKV_OK;
}

void shard_open(job *j) {
    command *c = (command *)j;
    group *g = c->g;
    shard *s = NULL;
    c->status = g->stopping ? FKV_CLOSED : make(g, c, &s);
    if (c->status == FKV_OK && !(c->result = shard_describe(s))) c->status = FKV_NO_MEMORY;
    if (c->status == FKV_OK) {
        list_push(&g->shards, &s->of_group);
        g->by_number[s->number] = s;
        g->slot_taken[s->slot] = true;
        s = NULL;
    }
    memory_opened(c, s);
}

/* ---- serve, describe ---- */

static shard *shard_of(command *c) { return c->g->stopping ? NULL : c->g->by_number[c->number]; }
static fkv_status none(const command *c) { return c->g->stopping ? FKV_CLOSED : FKV_NOT_OWNER; }

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
        status = dedup_open_slot(&c->g->dedup, s->slot, s->epoch > DATAPLANE_EPOCH_FIRST, c->g->now_ns) == 0 ? FKV_OK : FKV_NO_MEMORY;
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
    if (op_waits(o) && o->state != OP_FOLLOWS) {   /* followers are answered with those that they follow */
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
        client *c = LIST_OF(l, client, of_group);
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
    refuse_all(&c->g->clients, s);
    refuse_all(&c->g->doomed, s);
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
    refuse_all(&c->g->clients, s);
    refuse_all(&c->g->doomed, s);
}

static bool quiet(const group *g, const shard *s) { return s->held == 0 && g->now_ns >= s->lease_until_ns; }

static void finish_close(group *g, shard *s) {
    list_remove(&s->of_group);
    g->by_number[s->number] = NULL;
    g->slot_taken[s->slot] = false;
    dedup_drop_slot(&g->dedup, s->slot);
    memory_close(s->closing, s);
}

/* ---- background work ---- */

static uint64_t next_tick(group *g, shard *s, bool more) {
    if (more) return g->now_ns;
    if (s->quarantined) return g->now_ns + STARVED_TICK_MS * MS;
    if (s->touched) {
        s->touched = false;
        return g->now_ns + BUSY_TICK_MS * MS;
    }
    bool resting = table_resting(s->table) && s->wanted == 0;
    return resting ? UINT64_MAX : g->now_ns + REST_TICK_MS * MS;
}

void shards_tick(group *g) {
    for (fkv_list *l = g->shards.next, *next; l != &g->shards; l = next) {
        next = l->next;
        shard *s = LIST_OF(l, shard, of_group);
        if (s->lingering) memory_free_lingering(s, g->now_ns);
        if (s->state == SHARD_CLOSING) {
            if (quiet(g, s) && s->wanted == 0) finish_close(g, s);
            continue;
        }
        if (s->pausing && quiet(g, s)) end_pause(s, FKV_OK);
        if (s->log.ring) change_log_rest(&s->log, g->now_ns);
        if (s->touched || s->tick_ns <= g->now_ns) {
            bool more = table_tick(s->table, g->now_ns, g->wall_ms, TICK_BUDGET + 4 * g->batch_count);
            s->tick_ns = next_tick(g, s, more);
            imports_continue(s);
            if (!list_empty(&g->starved)) g->feed_starved = true;
        }
        uint32_t epoch = table_layout_epoch(s->table);
        if (s->notified_epoch != epoch && memory_notify(s)) s->notified_epoch = epoch;
    }
}

uint64_t shards_deadline(const group *g) {
    uint64_t at = UINT64_MAX;
    for (const fkv_list *l = g->shards.next; l != &g->shards; l = l->next) {
        const shard *s = LIST_OF(l, shard, of_group);
        bool waits = s->held || s->wanted;   /* what ends that also ends the sleep */
        for (const segment *r = s->lingering; r; r = r->next) at = min_u64(at, r->free_at_ns);
        if (s->pausing && !s->held) at = min_u64(at, s->lease_until_ns);
        if (s->state != SHARD_CLOSING) at = min_u64(at, change_log_idle_ns(&s->log));
        at = min_u64(at, s->state != SHARD_CLOSING ? s->tick_ns : waits ? UINT64_MAX : s->lease_until_ns);
    }
    return at;
}

void shards_end(group *g) {
    while (!list_empty(&g->shards)) {
        shard *s = LIST_OF(g->shards.next, shard, of_group);
        list_remove(&s->of_group);
        if (s->closing) command_done(s->closing, FKV_CLOSED, NULL);
        if (s->pausing) command_done(s->pausing, FKV_CLOSED, NULL);
        imports_end(s, FKV_CLOSED);
        shard_free(s);
    }
}
