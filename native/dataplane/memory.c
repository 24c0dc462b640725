/* memory.c: segments: allocated, prefaulted, registered with every provider of the shard's group, and all of that undone. On the
 * memory thread, since each of it may take many milliseconds and deregistration waits for READs under way. */
#include <stdlib.h>
#include "internal.h"

/* What is registered is counted when it is made and when it is freed, both on this thread while the data plane runs. A first segment is
 * made whatever the count: a shard must be able to open when others have taken all, and it is small. */
static bool within_bound(const dataplane *d, size_t bytes) { return d->c.memory_bytes == 0 || d->memory_taken + bytes <= d->c.memory_bytes; }

/* NULL: no memory. */
static segment *segment_make(group *g, uint32_t shard, table_segment_kind kind, size_t bytes) {
    segment *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    static const int pages[] = { [DATAPLANE_HUGE_OFF] = 0, [DATAPLANE_HUGE_AUTO] = FKV_REGION_TRY_HUGE,
                                 [DATAPLANE_HUGE_REQUIRE] = FKV_REGION_NEED_HUGE };
    int flags = FKV_REGION_PREFAULT | pages[g->d->c.huge_pages];
    s->kind = kind;
    while (s->tag == 0) fkv_random(&s->tag, sizeof s->tag);
    int e = fkv_region_alloc(kind == TABLE_INDEX ? "farkv-index" : "farkv-heap", bytes, flags, &s->region);
    for (int i = 0; e == 0 && i < g->polled_count; i++) {
        fab_provider p = g->polled[i];
        e = fab_reg(g->d->domain[p], &s->region, dataplane_trust_of(g->d, shard), &s->mr[p]);
    }
    if (e != 0) {
        segment_free(s);
        return NULL;
    }
    s->d = g->d;
    g->d->memory_taken += bytes;
    return s;
}

void segment_free(segment *s) {
    if (!s) return;
    if (s->d) s->d->memory_taken -= s->region.bytes;
    for (int p = 0; p < PROVIDERS; p++) fab_dereg(s->mr[p]);
    fkv_region_free(&s->region);
    free(s);
}

/* ---- a shard opens ---- */

void memory_open(job *j) {
    command *c = (command *)j;
    table_config t = table_config_of(c->d, &c->open, NULL);
    c->first_index = segment_make(c->g, c->number, TABLE_INDEX, table_first_index_bytes(&t));
    c->first_heap = c->first_index ? segment_make(c->g, c->number, TABLE_HEAP, table_first_heap_bytes(&t)) : NULL;
    if (!c->first_heap) {
        c->status = FKV_NO_MEMORY;
        memory_opened(c, NULL);
        return;
    }
    c->job.run = shard_open;
    group_post(c->g, &c->job);
}

static void opened(job *j) {
    command *c = (command *)j;
    if (c->failed) shard_free(c->failed);
    segment_free(c->first_index);
    segment_free(c->first_heap);
    dataplane_place(c->d, c->number, c->status == FKV_OK ? PLACE_OPEN : PLACE_NONE);
    if (c->status != FKV_OK) {
        free(c->result);
        c->result = NULL;
    }
    command_done(c, c->status, c->result);
}

void memory_opened(command *c, shard *failed) {
    c->failed = failed;
    c->job.run = opened;
    worker_post(&c->d->memory, &c->job);
}

/* ---- a shard wants a segment ---- */

static void want_make(job *j);

static void want_answered(job *j) {
    want *w = (want *)j;
    shard *s = w->shard;
    group *g = s->g;
    s->wanted--;
    w->busy = false;
    if (g->stopping || s->state == SHARD_CLOSING) {
        if (w->segment) memory_free_segment(g, w->segment);
        return;
    }
    if (!w->segment && memory_free_lingering(s, UINT64_MAX)) {   /* memory that is needed goes before what is only a courtesy */
        w->busy = true;
        s->wanted++;
        w->job.run = want_make;
        worker_post(&g->d->memory, &w->job);
        return;
    }
    if (!w->segment || shard_add_segment(s, w->segment) != FKV_OK) {
        if (w->segment) memory_free_segment(g, w->segment);
        table_segment_refused(s->table, w->kind, w->bytes);
    }
    s->tick_ns = g->now_ns;
    g->feed_starved = true;
}

static void want_make(job *j) {
    want *w = (want *)j;
    group *g = w->shard->g;
    w->segment = within_bound(g->d, w->bytes) ? segment_make(g, w->shard->number, w->kind, w->bytes) : NULL;
    w->job.run = want_answered;
    group_post(w->shard->g, &w->job);
}

void memory_want(void *ctx, table_segment_kind kind, size_t bytes) {
    shard *s = ctx;
    want *w = s->wants;
    while (w->busy) w++;   /* there are as many as the table can have asked for */
    *w = (want){ .job.run = want_make, .shard = s, .busy = true, .kind = kind, .bytes = bytes };
    s->wanted++;
    worker_post(&s->g->d->memory, &w->job);
}

/* ---- and gives them back ---- */

static void free_job(job *j) { segment_free((segment *)(void *)((char *)j - offsetof(segment, job))); }

void memory_free_segment(group *g, segment *s) {
    s->job.run = free_job;
    worker_post(&g->d->memory, &s->job);
}

/* Readers go straight to where an entry lay when they saw it last (native/lookup/locations.h), and a READ of what is not registered any
 * more ends a connection. A lease tells of the layout that was when it was granted, and a reader that knows of a newer one does not do
 * so: therefore what is retired stays registered until the leases that were granted before have run out, and what was READ under them
 * has come. Nothing that is right rests on it. */
void memory_retire(void *ctx, uint32_t number) {
    shard *s = ctx;
    segment *g = shard_take_segment(s, number);
    if (s->lease_until_ns <= s->g->now_ns) {
        memory_free_segment(s->g, g);
        return;
    }
    g->free_at_ns = s->lease_until_ns + FKV_GET_LIFE_NS;
    g->next = s->lingering;
    s->lingering = g;
}

bool memory_free_lingering(shard *s, uint64_t now) {
    bool any = false;
    for (segment **at = &s->lingering; *at;) {
        segment *g = *at;
        if (g->free_at_ns > now) {
            at = &g->next;
            continue;
        }
        *at = g->next;
        memory_free_segment(s->g, g);
        any = true;
    }
    return any;
}

static void close_job(job *j) {
    command *c = (command *)j;
    shard_free(c->failed);
    dataplane_place(c->d, c->number, PLACE_NONE);
    command_done(c, c->status, NULL);
}

void memory_close(command *c, shard *s) {
    c->failed = s;
    c->status = FKV_OK;
    c->job.run = close_job;
    worker_post(&c->d->memory, &c->job);
}

/* ---- and others are told ---- */

typedef struct notice {
    job job;
    dataplane *d;
    uint32_t shard, layout_epoch;
} notice;

static void notice_job(job *j) {
    notice *n = (notice *)j;
    if (n->d->c.on_layout) n->d->c.on_layout(n->d->c.ctx, n->shard, n->layout_epoch);
    free(n);
}

bool memory_notify(const shard *s) {
    notice *n = malloc(sizeof *n);
    if (!n) return false;
    *n = (notice){ { NULL, notice_job }, s->g->d, s->number, table_layout_epoch(s->table) };
    worker_post(&s->g->d->memory, &n->job);
    return true;
}
