/* memory.c: segments: allocated, prefaulted, registered with every provider of the shard's worker, and all of that
 * undone. On the memory thread, since each of it may take many milliseconds and deregistration waits for READs under
 * way; but segments of huge pages that a table asks for while it grows are made on a thread of their own. The kernel
 * makes no huge page of shared memory before every CPU has emptied its lists of new pages, work that waits for a core
 * there like any other: 70 of 80 ms were seen to be this where both cores were busy. What other shards and the index
 * need meanwhile takes less than one, and must not queue behind it. */
#include "memory.h"
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include "../base/clock.h"

#define HUGE_WAIT_NS 5000000u
enum {
    HUGE_REST = 10, /* times that it waited */
    /* Segments to a memory file. Of the index nothing can be moved, so that what it gives back waits longer. */
    INDEX_PARTS = 8,
    HEAP_PARTS = 16,
    INDEX_LEAST = 256 << 10,
    HEAP_LEAST = 1 << 20
};

/* Pages are counted when they are about to be asked for and when they go back, both on the memory thread while the data
 * plane runs, and taken off again where there are none. Those of a retired segment go back with the last one of its
 * memory file (base/files.h); until then the next segments of the shard are made of them, and the bound says nothing
 * against it. A first segment is made whatever the count: a shard must be able to open when others have taken all, and
 * it is small. */
uint64_t memory_left(const dataplane *d) {
    uint64_t taken = __atomic_load_n(&d->memory_taken, __ATOMIC_RELAXED);
    if (d->c.memory_bytes == 0) return UINT64_MAX;
    return d->c.memory_bytes > taken ? d->c.memory_bytes - taken : 0;
}
static bool within_bound(const dataplane *d, size_t bytes) { return bytes <= memory_left(d); }
static void count_freed(dataplane *d, size_t bytes) { __atomic_fetch_sub(&d->memory_taken, bytes, __ATOMIC_RELAXED); }
static void count_taken(dataplane *d, size_t bytes) { __atomic_fetch_add(&d->memory_taken, bytes, __ATOMIC_RELAXED); }

/* NULL: no memory. Whoever calls it has counted `counted` bytes for it, which become those that it took. */
static segment *segment_make(worker *w, uint32_t shard, fkv_files *files, table_segment_kind kind, size_t bytes,
                             bool huge, uint64_t counted) {
    dataplane *d = w->d;
    segment *s = calloc(1, sizeof *s);
    if (!s) {
        count_freed(d, counted);
        return NULL;
    }
    static const int pages[] = { [DATAPLANE_HUGE_OFF] = 0,
                                 [DATAPLANE_HUGE_AUTO] = FKV_REGION_TRY_HUGE,
                                 [DATAPLANE_HUGE_REQUIRE] = FKV_REGION_NEED_HUGE };
    int flags = FKV_REGION_PREFAULT | (huge ? pages[d->c.huge_pages] : 0);
    uint64_t fresh;
    s->d = d;
    s->kind = kind;
    while (s->tag == 0) fkv_random(&s->tag, sizeof s->tag);
    int e = fkv_files_take(files, bytes, flags, &s->region, &fresh);
    count_taken(d, fresh);
    count_freed(d, counted);
    if (e == -EMFILE) __atomic_fetch_add(&d->descriptors_missed, 1, __ATOMIC_RELAXED);
    for (int i = 0; e == 0 && i < w->polled_count; i++) {
        uint32_t place = w->polled[i];
        /* mutation: tenants/regions-shared */
        e = fab_reg(d->domain[place], &s->region, dataplane_tenant_of(d, shard), &s->mr[place]);
        /* Its device is lost: nobody comes by it any more, and the others go on. */
        if (e == -ENODEV) e = 0; /* mutation: dataplane/lost-device-no-memory */
    }
    if (e == 0) return s;
    segment_free(s);
    return NULL;
}

/* The same with the count; the bound is not looked at. */
static segment *segment_make_counted(worker *w, uint32_t shard, fkv_files *files, table_segment_kind kind,
                                     size_t bytes) {
    uint64_t lack = fkv_files_lack(files, bytes);
    count_taken(w->d, lack);
    return segment_make(w, shard, files, kind, bytes, true, lack);
}

/* ---- a shard opens ---- */

table_config memory_table_config(const dataplane *d, const dataplane_shard *o, shard *s) {
    return (table_config){ .shard = o->shard,
                           .epoch = o->epoch,
                           .seed = d->c.hash_seed,
                           .memory_bytes = o->memory_bytes,
                           .buckets = o->buckets,
                           .quarantine_ns = d->c.quarantine_ns,
                           .quarantine_bytes = d->c.quarantine_bytes,
                           .segment_grain = d->c.huge_pages == DATAPLANE_HUGE_REQUIRE ? FKV_HUGE_PAGE : 0,
                           .heap_files = s ? s->files[TABLE_HEAP - 1] : NULL,
                           .want_segment = memory_want,
                           .retire_segment = memory_retire,
                           .ctx = s };
}

void memory_open(job *j) {
    command *c = (command *)j;
    table_config t = memory_table_config(c->d, &c->open, NULL);
    if (!within_bound(c->d, table_first_index_bytes(&t))) t.buckets = 0;
    fkv_files *index = c->files[TABLE_INDEX - 1] = fkv_files_make("farkv-index", INDEX_PARTS, INDEX_LEAST);
    fkv_files *heap = c->files[TABLE_HEAP - 1] = fkv_files_make("farkv-heap", HEAP_PARTS, HEAP_LEAST);
    if (index && heap)
        c->first_index = segment_make_counted(c->w, c->number, index, TABLE_INDEX, table_first_index_bytes(&t));
    if (c->first_index)
        c->first_heap = segment_make_counted(c->w, c->number, heap, TABLE_HEAP, table_first_heap_bytes(&t));
    if (!c->first_heap) {
        c->status = FKV_NO_MEMORY;
        memory_opened(c, NULL);
        return;
    }
    c->job.run = c->opens;
    worker_post(c->w, &c->job);
}

static void opened(job *j) {
    command *c = (command *)j;
    if (c->failed) shard_free(c->failed);
    segment_free(c->first_index);
    segment_free(c->first_heap);
    for (int k = 0; k < 2; k++) fkv_files_leave(c->files[k]);
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
    helper_post(&c->d->memory, &c->job);
}

/* ---- a shard wants a segment ---- */

static void want_make(job *j);

static void want_answered(job *j) {
    want *asked = (want *)j;
    shard *s = asked->shard;
    worker *w = s->w;
    s->wanted--;
    asked->busy = false;
    if (w->stopping || s->state == SHARD_CLOSING) {
        if (asked->segment) memory_free_segment(w, asked->segment);
        return;
    }
    /* memory that is needed goes before what is only a courtesy */
    if (!asked->segment && memory_free_lingering(s, UINT64_MAX)) {
        asked->busy = true;
        s->wanted++;
        asked->job.run = want_make;
        helper_post(&w->d->memory, &asked->job);
        return;
    }
    if (!asked->segment || shard_add_segment(s, asked->segment) != FKV_OK) {
        if (asked->segment) memory_free_segment(w, asked->segment);
        table_segment_refused(s->table, asked->kind, asked->bytes, asked->refused);
    }
    s->tick_ns = w->now_ns;
    w->feed_starved = true;
}

/* segment NULL: there is none, for this reason. */
static void want_answer(want *asked, segment *s, fkv_status refused) {
    asked->segment = s;
    asked->refused = refused;
    asked->job.run = want_answered;
    worker_post(asked->shard->w, &asked->job);
}

/* While the kernel waits for other CPUs it holds the lock of the process's mappings: whoever maps or unmaps anything
 * then, be it the owner's malloc, waits too, and no thread of its own helps. So where a core was hard to come by, no
 * more is asked of it for a while, that this may be a small part of the time. Where huge pages are required there is no
 * choice. */
bool memory_huge_now(const dataplane *d, uint64_t now_ns) {
    return d->c.huge_pages == DATAPLANE_HUGE_REQUIRE || now_ns >= d->huge_after_ns;
}
void memory_huge_took(dataplane *d, uint64_t now_ns, uint64_t waited_ns) {
    if (waited_ns > HUGE_WAIT_NS) d->huge_after_ns = now_ns + HUGE_REST * waited_ns;
}

static uint64_t thread_ran_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static fkv_files *files_of(const want *asked) { return asked->shard->files[asked->kind - 1]; }

/* On the thread that makes huge pages; the bytes are counted already. */
static void want_make_huge(job *j) {
    want *asked = (want *)j;
    worker *w = asked->shard->w;
    uint64_t begin_ns = fkv_now_ns(), ran_ns = thread_ran_ns();
    bool huge = memory_huge_now(w->d, begin_ns);
    segment *s = segment_make(w, asked->shard->number, files_of(asked), asked->kind, asked->bytes, huge,
                              asked->counted);
    uint64_t end_ns = fkv_now_ns(), took_ns = end_ns - begin_ns;
    ran_ns = thread_ran_ns() - ran_ns;
    if (huge) memory_huge_took(w->d, end_ns, took_ns > ran_ns ? took_ns - ran_ns : 0);
    want_answer(asked, s, FKV_NO_MEMORY);
}

static bool of_huge_pages(const dataplane *d, size_t bytes) {
    return d->pages != FKV_PAGES_SMALL && bytes % FKV_HUGE_PAGE == 0;
}

/* On the memory thread, behind what was to be freed before. */
static void want_make(job *j) {
    want *asked = (want *)j;
    dataplane *d = asked->shard->w->d;
    asked->counted = fkv_files_lack(files_of(asked), asked->bytes);
    if (asked->beyond || !within_bound(d, asked->counted)) {
        want_answer(asked, NULL, FKV_TABLE_FULL);
    } else if (of_huge_pages(d, asked->bytes)) {
        count_taken(d, asked->counted);
        asked->job.run = want_make_huge;
        helper_post(&d->huge, &asked->job);
    } else {
        segment *s = segment_make_counted(asked->shard->w, asked->shard->number, files_of(asked), asked->kind,
                                          asked->bytes);
        want_answer(asked, s, FKV_NO_MEMORY);
    }
}

/* An entry of the metadata with more could not be read. */
static bool beyond_regions(const shard *s) {
    uint32_t segments = (uint32_t)table_segments(s->table, NULL, 0) + s->wanted + 1;
    return segments * (uint32_t)s->w->polled_count > s->w->d->c.regions_max; /* mutation: dataplane/regions-unbounded */
}

void memory_want(void *ctx, table_segment_kind kind, size_t bytes) {
    shard *s = ctx;
    want *asked = s->wants;
    while (asked->busy) asked++; /* there are as many as the table can have asked for */
    *asked = (want){ .job.run = want_make, .shard = s, .busy = true, .kind = kind, .bytes = bytes };
    asked->beyond = beyond_regions(s);
    s->wanted++;
    helper_post(&s->w->d->memory, &asked->job);
}

/* ---- and gives them back ---- */

static void free_job(job *j) { segment_free((segment *)(void *)((char *)j - offsetof(segment, job))); }

void memory_free_segment(worker *w, segment *s) {
    s->job.run = free_job;
    helper_post(&w->d->memory, &s->job);
}

/* Readers go straight to where an entry lay when they saw it last (native/client/lookup/locations.h), or to a bucket
 * that was merged, and a READ of what is not registered any more ends a connection. A lease tells of the layout that
 * was when it was granted, and a reader that knows of a newer one does so only under an earlier lease: therefore what
 * is retired stays registered until the leases that were granted before have run out, and what was READ under them has
 * come. Nothing that is right rests on it. */
void memory_retire(void *ctx, table_segment_kind kind, uint32_t number) {
    shard *s = ctx;
    segment *m = shard_take_segment(s, kind, number);
    if (s->lease_until_ns <= s->w->now_ns) { /* mutation: dataplane/retired-at-once */
        memory_free_segment(s->w, m);
        return;
    }
    m->free_at_ns = s->lease_until_ns + FKV_GET_LIFE_NS;
    m->next = s->lingering;
    s->lingering = m;
}

bool memory_free_lingering(shard *s, uint64_t now) {
    bool any = false;
    for (segment **at = &s->lingering; *at;) {
        segment *m = *at;
        if (m->free_at_ns > now) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        memory_free_segment(s->w, m);
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
    helper_post(&c->d->memory, &c->job);
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
    *n = (notice){ { NULL, notice_job }, s->w->d, s->number, table_layout_epoch(s->table) };
    helper_post(&s->w->d->memory, &n->job);
    return true;
}
