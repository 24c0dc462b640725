/* fetch.c: see fetch.h.
 *
 *   attach the peer's region -> mapped here: the copier copies through the mapping ---------------> whole -> ended
 *                               else:        READs of a CHUNK into the pool's memory, a few at a time;
 *                                            the copier copies each from there ------------------> whole -> ended
 *
 * What takes time in proportion to the value (copy, CRC) is done by the copier; the worker only posts READs and looks at
 * their ends, so small requests go on in between. Nothing but the copier writes values into extents, word by word as
 * readers expect (words.h); a NIC or a socket would not. The peer may change its memory meanwhile: nothing is decided by
 * what was read before it is `whole`.
 *
 * Invariant: a fetch ends only when no job can write for it any more; a piece of memory is used again only when no READ
 * can write to it; a region is detached only when no READ is of it. */
#include "fetch.h"
#include <errno.h>
#include <stdlib.h>
#include "../base/assert.h"
#include "../table/words.h"

/* SPARE: that many pieces go only to sources that have none. */
enum { CHUNK = 256 << 10, PIECES = 16, PIECES_OF_SOURCE = 3, SPARE = 4, COPY_STEP = 1 << 20 };

/* A piece of the pool's memory and what is in it. */
typedef struct piece {
    job job;
    fetch *of;            /* NULL: free, unless a READ that was left behind still writes to it */
    fetch_source *source; /* NULL: gone */
    fetch_region *region; /* while a READ writes to it */
    uint8_t *at;
    uint32_t offset, bytes; /* in the value */
    bool reading;           /* a READ writes to it; else, while `of` is set, the copier reads it */
    bool last;              /* the value is complete with it */
    uint32_t generation;    /* of what it was used for: a completion of an earlier use is known by it */
} piece;

struct fetch_pool {
    helper *copier;
    mailbox *back;
    uint8_t *memory;
    fab_mr *mr[FAB_PLACES];
    uint32_t jobs;
    uint64_t uses;  /* of regions: the clock that says which was used last */
    fkv_list turns; /* fetches that READ, the next to be served first */
    bool begun;     /* one came since the last step */
    piece piece[PIECES];
};

/* ---- the pool ---- */

fetch_pool *fetch_pool_make(helper *copier, mailbox *back) {
    fetch_pool *p = calloc(1, sizeof *p);
    uint8_t *memory = aligned_alloc(4096, (size_t)PIECES * CHUNK); /* pages that are never used cost nothing */
    if (!p || !memory) {
        free(memory);
        free(p);
        return NULL;
    }
    *p = (fetch_pool){ .copier = copier, .back = back, .memory = memory };
    list_init(&p->turns);
    for (int i = 0; i < PIECES; i++) p->piece[i].at = memory + (size_t)i * CHUNK;
    return p;
}

int fetch_pool_register(fetch_pool *p, fab_domain *d, uint32_t place) {
    return p->mr[place] ? 0 : fab_reg_local(d, p->memory, (size_t)PIECES * CHUNK, &p->mr[place]);
}

uint32_t fetch_pool_jobs(const fetch_pool *p) { return p ? p->jobs : 0; }

void fetch_pool_free(fetch_pool *p) {
    if (!p) return;
    fkv_assert(p->jobs == 0);
    for (int i = 0; i < FAB_PLACES; i++) fab_dereg(p->mr[i]);
    free(p->memory);
    free(p);
}

/* ---- the end ---- */

static void leave(fetch_pool *p, fetch_region *r) {
    r->users--;
    r->used = ++p->uses;
}

static void end_if_quiet(fetch *f) {
    /* mutation: bulk/freed-while-written */
    if (f->reads || f->jobs) return;
    if (f->source) leave(f->pool, f->region);
    f->source = NULL;
    list_remove(&f->of_source);
    list_remove(&f->turn);
    f->use->ended(f);
}

static void stop(fetch *f, fkv_status why) {
    if (f->failed == FKV_OK) f->failed = why;
    list_remove(&f->turn);
    __atomic_store_n(&f->cancelled, true, __ATOMIC_RELAXED);
}

void fetch_fail(fetch *f, fkv_status why) {
    if (f->failed != FKV_OK) return;
    stop(f, why);
    end_if_quiet(f);
}

void fetch_abandon(fetch *f, fkv_status why) {
    for (int i = 0; i < PIECES; i++) {
        piece *q = &f->pool->piece[i];
        if (q->of != f || !q->reading) continue;
        q->of = NULL;
        f->reads--;
    }
    stop(f, why);
    end_if_quiet(f);
}

/* ---- the copier's part ---- */

static void job_back(fetch *f, bool done) {
    f->pool->jobs--;
    f->jobs--;
    f->done |= done;
    if (f->done || f->failed != FKV_OK) end_if_quiet(f);
}

static void copied_all(job *j) {
    fetch *f = (fetch *)j;
    if (f->source) f->source->copying--;
    job_back(f, true);
}

static void copy_all(job *j) {
    fetch *f = (fetch *)j;
    bool cancelled = false;
    for (uint32_t at = 0; at < f->bytes && !cancelled; at += COPY_STEP) {
        uint32_t left = f->bytes - at;
        fkv_copy_in(f->to + at, f->direct + at, left < COPY_STEP ? left : COPY_STEP);
        cancelled = __atomic_load_n(&f->cancelled, __ATOMIC_RELAXED);
    }
    if (!cancelled) f->use->whole(f);
    j->run = copied_all;
    mailbox_post(f->pool->back, j);
}

static void copied_piece(job *j) {
    piece *q = (piece *)j;
    fetch *f = q->of;
    q->of = NULL;
    q->source = NULL;
    job_back(f, q->last);
}

static void copy_piece(job *j) {
    piece *q = (piece *)j;
    fetch *f = q->of;
    if (!__atomic_load_n(&f->cancelled, __ATOMIC_RELAXED)) {
        fkv_copy_in(f->to + q->offset, q->at, q->bytes);
        if (q->last) f->use->whole(f);
    }
    j->run = copied_piece;
    mailbox_post(f->pool->back, j);
}

static void give_to_copier(fetch *f, job *j, void (*run)(job *)) {
    f->pool->jobs++;
    f->jobs++;
    j->run = run;
    helper_post(f->pool->copier, j);
}

/* ---- a connection's regions ---- */

void fetch_source_init(fetch_source *s, fab_conn *conn, uint32_t place, bool maps) {
    *s = (fetch_source){ .conn = conn, .place = place, .maps = maps };
    list_init(&s->fetches);
}

static void is_attached(fetch *f) {
    const uint8_t *base = f->source->maps ? fab_direct(f->source->conn, f->from.rkey) : NULL;
    f->attaching = false;
    if (!base) {
        list_push(&f->pool->turns, &f->turn);
        f->pool->begun = true;
        return;
    }
    f->direct = base + (f->from.addr - f->region->addr);
    f->source->copying++;
    give_to_copier(f, &f->job, copy_all);
}

void fetch_source_attached(fetch_source *s, const fab_wc *wc) {
    fetch_region *r = &s->region[wc->wr_id % FETCH_REGIONS];
    if (r->state != FETCH_REGION_ASKED) return;
    r->state = wc->status == FAB_SUCCESS ? FETCH_REGION_READY : FETCH_REGION_NONE;
    fkv_status why = wc->status == FAB_REM_ACCESS_ERR ? FKV_REMOTE_ACCESS : FKV_DISCONNECTED;
    for (fkv_list *l = s->fetches.next, *next; l != &s->fetches; l = next) {
        next = l->next;
        fetch *f = LIST_OF(l, fetch, of_source);
        if (f->region != r || !f->attaching) continue;
        if (r->state == FETCH_REGION_READY)
            is_attached(f);
        else
            fetch_fail(f, why);
    }
}

/* The region as it is attached, or a free or long unused place for it; NULL: there is none. Of one rkey there is one
 * place. */
static fetch_region *region_for(fetch_source *s, const fkv_rendezvous *from) {
    fetch_region *place = NULL;
    for (int i = 0; i < FETCH_REGIONS; i++) {
        fetch_region *r = &s->region[i];
        bool same = r->state != FETCH_REGION_NONE && r->rkey == from->rkey;
        if (same && r->addr == from->region_addr && r->bytes == from->region_bytes) return r;
        /* mutation: bulk/detached-while-read */
        if (r->state == FETCH_REGION_ASKED || r->users) continue;
        if (same) {
            place = r;
            break;
        }
        if (!place || r->state == FETCH_REGION_NONE || (place->state != FETCH_REGION_NONE && r->used < place->used))
            place = r;
    }
    if (!place) return NULL;
    if (place->state == FETCH_REGION_READY) fab_detach(s->conn, place->rkey);
    *place = (fetch_region){ .rkey = from->rkey, .addr = from->region_addr, .bytes = from->region_bytes };
    return place;
}

static fkv_status status_of_attach(int e) {
    switch (-e) {
    case 0: return FKV_OK;
    case EAGAIN:
    case EEXIST: return FKV_BUSY; /* no place is free, or one of this rkey is still attached */
    case ENOMEM: return FKV_NO_MEMORY;
    default: return FKV_DISCONNECTED;
    }
}

static fkv_status attach(fetch_source *s, fetch_region *r) {
    if (r->state != FETCH_REGION_NONE) return FKV_OK;
    int e = fab_attach(s->conn, r->rkey, r->addr, r->bytes, (uint64_t)(r - s->region));
    if (e == 0) r->state = FETCH_REGION_ASKED;
    return status_of_attach(e);
}

/* ---- a fetch ---- */

static void init(fetch *f, fetch_pool *p, uint8_t *to, uint32_t bytes, const fetch_use *use) {
    *f = (fetch){ .pool = p, .use = use, .to = to, .bytes = bytes };
    list_init(&f->of_source);
    list_init(&f->turn);
}

fkv_status fetch_begin(fetch *f, fetch_pool *p, fetch_source *s, const fkv_rendezvous *from, uint8_t *to,
                       uint32_t bytes, const fetch_use *use) {
    fetch_region *r = region_for(s, from);
    fkv_status status = r ? attach(s, r) : FKV_BUSY;
    if (status != FKV_OK) return status;
    init(f, p, to, bytes, use);
    f->source = s;
    f->region = r;
    f->from = *from;
    f->attaching = true;
    r->users++;
    list_push(&s->fetches, &f->of_source);
    if (r->state == FETCH_REGION_READY) is_attached(f);
    return FKV_OK;
}

void fetch_begin_here(fetch *f, fetch_pool *p, const uint8_t *from, uint8_t *to, uint32_t bytes, const fetch_use *use) {
    init(f, p, to, bytes, use);
    f->direct = from;
    give_to_copier(f, &f->job, copy_all);
}

/* ---- READs ---- */

/* One that this source may have now; NULL: none. Few for each: peers that do not answer READs keep theirs until the
 * fabric gives up, and the others go on meanwhile. */
static piece *free_piece(fetch_pool *p, const fetch_source *s) {
    uint32_t free = 0, has = 0;
    piece *found = NULL;
    for (piece *q = p->piece; q < p->piece + PIECES; q++) {
        has += q->source == s;
        if (q->of || q->reading) continue; /* mutation: bulk/read-left-behind */
        free++;
        found = q;
    }
    return has == 0 || (has < PIECES_OF_SOURCE && free > SPARE) ? found : NULL;
}

/* The next piece of the value; false: not now. It may end the fetch. */
static bool post(fetch_pool *p, fetch *f, piece *q) {
    uint32_t left = f->bytes - f->posted, n = left < CHUNK ? left : CHUNK;
    q->generation++;
    fab_read r = { .wr_id = (uint64_t)q->generation * PIECES + (uint64_t)(q - p->piece),
                   .local = q->at,
                   .local_mr = p->mr[f->source->place],
                   .remote_addr = f->from.addr + f->posted,
                   .rkey = f->from.rkey,
                   .bytes = n };
    int taken = fab_post_reads(f->source->conn, &r, 1);
    if (taken < 0) fetch_fail(f, FKV_DISCONNECTED);
    if (taken <= 0) return false;
    q->of = f;
    q->source = f->source;
    q->region = f->region;
    q->region->users++;
    q->offset = f->posted;
    q->bytes = n;
    q->reading = true;
    q->last = false;
    f->posted += n;
    f->reads++;
    if (f->posted == f->bytes) list_remove(&f->turn);
    return true;
}

/* A failed READ may be reported twice; the second time its memory may be in use for another. */
void fetch_pool_read(fetch_pool *p, const fab_wc *wc) {
    piece *q = &p->piece[wc->wr_id % PIECES];
    fetch *f = q->of;
    if (!q->reading || (uint32_t)(wc->wr_id / PIECES) != q->generation) return;
    q->reading = false;
    leave(p, q->region);
    if (f) f->reads--;
    if (f && wc->status == FAB_SUCCESS && f->failed == FKV_OK) {
        f->arrived += q->bytes;
        q->last = f->arrived == f->bytes; /* the copier copies in the order given, so that this is the last one */
        give_to_copier(f, &q->job, copy_piece);
        return;
    }
    q->of = NULL;
    q->source = NULL;
    if (!f) return;
    stop(f, wc->status == FAB_REM_ACCESS_ERR ? FKV_REMOTE_ACCESS : FKV_DISCONNECTED);
    end_if_quiet(f);
}

/* A piece for each; false: none. */
static bool post_round(fetch_pool *p) {
    bool posted = false;
    fkv_list now, waits;
    list_take_all(&p->turns, &now);
    list_init(&waits);
    while (!list_empty(&now)) {
        fetch *f = LIST_OF(now.next, fetch, turn);
        piece *q = free_piece(p, f->source);
        list_remove(&f->turn);
        list_push(q ? &p->turns : &waits, &f->turn);
        posted |= q && post(p, f, q);
    }
    list_append(&waits, &p->turns); /* what got none is first the next time */
    list_append(&p->turns, &waits);
    return posted;
}

bool fetch_pool_begun(const fetch_pool *p) { return p && p->begun; }

void fetch_pool_step(fetch_pool *p) {
    p->begun = false;
    while (post_round(p)) {}
}

/* ---- the connection goes ---- */

void fetch_source_hurry(fetch_source *s) {
    for (fkv_list *l = s->fetches.next; l != &s->fetches; l = l->next) {
        fetch *f = LIST_OF(l, fetch, of_source);
        if (f->direct) stop(f, FKV_DISCONNECTED);
    }
}

void fetch_source_end(fetch_pool *p, fetch_source *s) {
    fkv_assert(s->copying == 0);
    for (int i = 0; i < PIECES; i++) {
        piece *q = &p->piece[i];
        if (q->source != s) continue;
        q->source = NULL;
        if (!q->reading) continue;
        q->reading = false;
        if (q->of) q->of->reads--;
        q->of = NULL;
    }
    while (!list_empty(&s->fetches)) {
        fetch *f = LIST_OF(s->fetches.next, fetch, of_source);
        list_remove(&f->of_source);
        f->source = NULL;
        stop(f, FKV_DISCONNECTED);
        end_if_quiet(f);
    }
}
