/* fetch.h: large values, brought from registered memory of a peer into memory of this process, while nobody waits.
 *
 * For: an owner, which fetches a value from its client (serve/transfer.c); a backup, which fetches one from its owner
 * (replication/pull.c). Not for: what the value is, where it comes from and what happens when it is there, which are
 * theirs. A value that lies in this process already may be copied in the same way.
 *
 *   fetch_source  a connection, with the regions of its peer that are attached
 *   fetch         one value on its way, from fetch_begin until `ended`
 *   fetch_pool    memory that READs bring pieces into, shared by the sources of one worker
 *
 * Threads: all belong to the worker's thread. `whole` alone runs on the copier's. */
#ifndef FARKV_BULK_FETCH_H
#define FARKV_BULK_FETCH_H
#include "../base/helper.h"
#include "../base/list.h"
#include "../base/status.h"
#include "../fabric/fabric.h"
#include "../wire/wire.h"

enum { FETCH_REGIONS = 4 }; /* of one peer that are attached at once */

typedef struct fetch fetch;
typedef struct fetch_pool fetch_pool;

typedef struct fetch_region {
    enum { FETCH_REGION_NONE, FETCH_REGION_ASKED, FETCH_REGION_READY } state;
    uint32_t users; /* fetches and READs */
    uint64_t rkey, addr, bytes, used;
} fetch_region;

typedef struct fetch_source {
    fab_conn *conn;
    uint32_t place;   /* fab_place */
    bool maps;        /* values are copied out of a mapping where the provider has one; then see fetch_source_end */
    uint32_t copying; /* jobs of the copier that read the peer's memory */
    fkv_list fetches;
    fetch_region region[FETCH_REGIONS];
} fetch_source;

/* What is done with a value. */
typedef struct fetch_use {
    void (*whole)(fetch *f); /* all bytes are there; on the copier's thread */
    void (*ended)(
        fetch *f); /* nothing reads or writes for it any more, and it may be freed; f->failed says what came of
                                it. Also called by the functions below. */
} fetch_use;

struct fetch {
    job job; /* of a value that is mapped here: one for all of it */
    fkv_list of_source;
    fkv_list turn; /* fetch_pool.turns, while there are READs to post */
    fetch_pool *pool;
    fetch_source *source; /* NULL: gone, or the value lies in this process */
    fetch_region *region;
    const fetch_use *use;
    fkv_rendezvous from;
    const uint8_t *direct; /* the value, where it is mapped here */
    uint8_t *to;
    uint32_t bytes, posted, arrived; /* all; asked for by READs; brought by them */
    uint32_t reads, jobs;            /* in flight; at the copier */
    bool attaching;
    bool done;         /* the copier has called `whole` */
    fkv_status failed; /* OK: not */
    bool cancelled;    /* atomic: the copier may stop */
};

/* Jobs go to the copier, and come back to the worker's box. NULL: no memory. */
fetch_pool *fetch_pool_make(helper *copier, mailbox *back);
/* READs into it over connections of that place are possible from now on. 0 or a negative errno; again: nothing. */
int fetch_pool_register(fetch_pool *p, fab_domain *d, uint32_t place);
uint32_t fetch_pool_jobs(const fetch_pool *p); /* at the copier; NULL: none */
void fetch_pool_free(fetch_pool *p);           /* there are no jobs; NULL: nothing */
/* Posts READs, of each fetch in turn: to be called in every turn of the worker that has any. */
void fetch_pool_step(fetch_pool *p);
bool fetch_pool_begun(const fetch_pool *p); /* it has something new to post; NULL: no */
/* A FAB_WC_READ of any of its sources. */
void fetch_pool_read(fetch_pool *p, const fab_wc *wc);

void fetch_source_init(fetch_source *s, fab_conn *conn, uint32_t place, bool maps);
/* A FAB_WC_ATTACH of its connection. */
void fetch_source_attached(fetch_source *s, const fab_wc *wc);
/* Its connection is to go: the copier is to stop reading the peer's memory. */
void fetch_source_hurry(fetch_source *s);
/* Its connection was freed, so no READ is in flight any more. While `copying` is not 0 that may not be. */
void fetch_source_end(fetch_pool *p, fetch_source *s);

/* Brings that many bytes to `to`, as readers of extents expect (table/words.h). An error: nothing was begun; BUSY: too
 * many regions of the peer are in use, or being attached. */
fkv_status fetch_begin(fetch *f, fetch_pool *p, fetch_source *s, const fkv_rendezvous *from, uint8_t *to,
                       uint32_t bytes, const fetch_use *use);
/* The same out of memory of this process, which stays until it has ended. */
void fetch_begin_here(fetch *f, fetch_pool *p, const uint8_t *from, uint8_t *to, uint32_t bytes, const fetch_use *use);
/* Ends as soon as nothing reads or writes for it; nothing when it fails already. */
void fetch_fail(fetch *f, fkv_status why);
/* The same without waiting for READs, which may then still read the peer's memory. */
void fetch_abandon(fetch *f, fkv_status why);

#endif
