/* shard.c: what a shard has: its segments by number, as clients are told of them, and whether it may be answered for.
 * It comes by replication/open.c, and goes by serve/life.c; its memory is made in memory.c. */
#include "shard.h"
#include "../base/assert.h"
#include <stdlib.h>
#include <string.h>
#include "../dataplane/worker.h"

static const segment *find_segment(const shard *s, const table_segment *t) {
    return s->segments[t->kind - 1].at[t->segment];
}

/* The table's list, as of its present layout epoch; NULL: no memory. */
static const table_segment *list_segments(shard *s, uint32_t *count) {
    uint32_t epoch = table_layout_epoch(s->table);
    *count = (uint32_t)table_segments(s->table, NULL, 0);
    if (s->list && s->list_epoch == epoch) return s->list;
    table_segment *list = realloc(s->list, (*count + 1) * sizeof *list);
    if (!list) return NULL;
    table_segments(s->table, list, (int)*count);
    s->list = list;
    s->list_epoch = epoch;
    return list;
}

uint32_t shard_segments(shard *s, uint32_t place, uint32_t first, fkv_layout_segment *out, uint32_t room) {
    uint32_t count, n = 0;
    const table_segment *list = list_segments(s, &count);
    for (uint32_t i = first; list && i < count && n < room; i++, n++) {
        const fab_mr *mr = find_segment(s, &list[i])->mr[place];
        out[n] = (fkv_layout_segment){ .kind = (uint8_t)list[i].kind,
                                       .segment = list[i].segment,
                                       .tag = list[i].tag,
                                       .bytes = list[i].bytes,
                                       .rkey = mr ? fab_mr_rkey(mr) : 0,
                                       .addr = mr ? fab_mr_addr(mr) : 0 };
    }
    return n;
}

dataplane_layout *shard_describe(shard *s) {
    uint32_t count;
    const table_segment *list = list_segments(s, &count);
    const worker *w = s->w;
    size_t bytes = sizeof(dataplane_layout) + (size_t)count * (size_t)w->polled_count * sizeof(dataplane_region);
    dataplane_layout *l = list ? calloc(1, bytes) : NULL;
    if (!l) return NULL;
    l->shard = s->number;
    l->epoch = s->epoch;
    l->incarnation = s->incarnation;
    l->layout_epoch = table_layout_epoch(s->table);
    l->buckets = table_buckets(s->table);
    for (int k = 0; k < w->polled_count; k++) {
        for (uint32_t i = 0; i < count; i++) {
            uint32_t place = w->polled[k];
            const fab_mr *mr = find_segment(s, &list[i])->mr[place];
            if (!mr) continue; /* its device was lost before */
            l->region[l->count++] = (dataplane_region){ .provider = fab_place_provider(place),
                                                        .device = fab_place_device(place),
                                                        .kind = list[i].kind,
                                                        .segment = list[i].segment,
                                                        .tag = list[i].tag,
                                                        .bytes = list[i].bytes,
                                                        .addr = fab_mr_addr(mr),
                                                        .rkey = fab_mr_rkey(mr) };
        }
    }
    return l;
}

static uint64_t own_right(const worker *w) { return __atomic_load_n(&w->d->grant_until_ns, __ATOMIC_RELAXED); }
static fkv_status status_of(bool right) { return right ? FKV_OK : FKV_SHARD_CLOSED; }

uint64_t shard_right(const worker *w, const shard *s) {
    /* mutation: replication/answers-without-backups */
    return s->repl.backups ? replica_right(&s->repl.owner, own_right(w)) : own_right(w);
}

/* Not inlined: a shard without backups is to pay for no more than the question whether it has some. */
static __attribute__((noinline)) fkv_status status_with_backups(const worker *w, const shard *s) {
    return status_of(w->now_ns < shard_right(w, s));
}

fkv_status shard_status(const worker *w, const shard *s) {
    if (!s) return FKV_NOT_OWNER;
    if (s->state != SHARD_SERVING) return FKV_SHARD_CLOSED;
    if (s->repl.backups) return status_with_backups(w, s);
    return status_of(w->now_ns < own_right(w));
}

fkv_status shard_copy_status(const worker *w, const shard *s) {
    return s && shard_is_new(s) ? status_of(w->now_ns < own_right(w)) : shard_status(w, s);
}

fkv_status shard_add_segment(shard *s, segment *m) {
    segment_list *list = &s->segments[m->kind - 1];
    if (list->room < list->top + 2) {
        uint32_t room = 2 * list->room + 16;
        segment **at = realloc(list->at, room * sizeof *at);
        if (!at) return FKV_NO_MEMORY;
        memset(at + list->room, 0, (room - list->room) * sizeof *at);
        list->at = at;
        list->room = room;
    }
    fkv_status status = table_add_segment(s->table, m->kind, &m->region, m->tag, &m->number);
    if (status != FKV_OK) return status;
    /* Slots name heap segments by number; no slot leads to the index. Without a name, for want of memory, it is READ under
     * its own rkey: the table has it by now, so it cannot be refused. */
    for (int p = 0; p < FAB_PLACES; p++)
        if (m->mr[p]) (void)fab_name(m->mr[p], s->names, m->kind == TABLE_HEAP ? m->number : FAB_NOWHERE);
    list->at[m->number] = m;
    if (m->number >= list->top) list->top = m->number + 1;
    return FKV_OK;
}

segment *shard_take_segment(shard *s, table_segment_kind kind, uint32_t number) {
    segment *m = s->segments[kind - 1].at[number];
    s->segments[kind - 1].at[number] = NULL;
    return m;
}

/* An owner may have what is said of all tables. What is made of another's table, or is a copy, may have all that its server
 * has: also of an owner that had more before that fell, copies can be made, and they take what its changes need. */
void shard_limit(shard *s) {
    const dataplane *d = s->w->d;
    uint64_t limit = __atomic_load_n(&d->table_memory, __ATOMIC_SEQ_CST);
    uint64_t all = d->c.memory_bytes ? d->c.memory_bytes : limit;
    if (limit == 0) return;
    table_set_memory(s->table, max_u64(s->state == SHARD_OPEN ? all : min_u64(limit, all), TABLE_MEMORY_MIN));
}

void segment_free(segment *s) {
    if (!s) return;
    for (int p = 0; p < FAB_PLACES; p++) fab_dereg(s->mr[p]);
    __atomic_fetch_sub(&s->d->memory_taken, fkv_files_give(&s->region), __ATOMIC_RELAXED);
    free(s);
}

void shard_free(shard *s) {
    fkv_assert(s->held == 0 && s->wanted == 0 && list_empty(&s->repl.unacked) && list_empty(&s->repl.bulks));
    fkv_assert(list_empty(&s->repl.appended.behind));
    shard_free_copy(s);
    if (s->table) table_destroy(s->table);
    for (int k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < s->segments[k].top; i++) segment_free(s->segments[k].at[i]);
        free(s->segments[k].at);
    }
    while (s->lingering) {
        segment *m = s->lingering;
        s->lingering = m->next;
        segment_free(m);
    }
    for (int k = 0; k < 2; k++) fkv_files_leave(s->files[k]);
    change_log_free(&s->changed);
    free(s->list);
    free(s);
}
