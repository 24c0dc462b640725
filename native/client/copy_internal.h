/* copy_internal.h: what the files of a copy share: copy.c asks and decides what is next, copy_page.c takes over what came.
 * Private to the two. */
#ifndef FARKV_CLIENT_COPY_INTERNAL_H
#define FARKV_CLIENT_COPY_INTERNAL_H
#include <pthread.h>
#include "../base/mailbox.h"
#include "copy.h"
#include "join_point.h"
#include "lookup/lookup.h"

enum { COPY_GETS = 256 }; /* values under way at once */
#define COPY_MS     ((uint64_t)1000000)
#define COPY_SECOND ((uint64_t)1000000000)

/* A value under way: of an entry of the page. */
typedef struct wanted {
    shard_copy *c;
    fkv_scan_entry entry;
    const uint8_t *key;
    struct wanted *next; /* free */
} wanted;

struct shard_copy {
    shard_copy_config config;
    session_address *addresses;
    char (*text)[256];
    pthread_t thread;
    mailbox wake;  /* its descriptor only */
    bool stopping; /* atomic */
    dataplane_done caught_up;
    void *caught_up_ctx;

    pthread_mutex_t lock; /* of the next six; and held while an import is told */
    dataplane_done done;
    void *done_ctx;
    bool joins; /* atomic: shard_copy_follow was called */
    shard_copy_waiter *waiters;
    bool ended;
    fkv_status status; /* how, once ended */

    /* The thread's own. */
    lookup *l;
    session *s;
    wanted places[COPY_GETS], *free;
    uint32_t under_way;
    fkv_status failed; /* the first thing that went wrong in a page */
    uint8_t *batch;    /* fkv_scan_entry, key, value, ... */
    size_t batch_bytes, batch_room, expected_bytes;
    uint64_t place; /* in the owner's log of changes */
    join_point join;
    bool *same; /* of the page's entries, where the table has a base: they are there */
    uint64_t *version;
    uint32_t page_room; /* of these two */
    bool answered;
    session_answer answer;
    uint8_t *body;
    bool imported; /* atomic */
    fkv_status import_status;
    shard_copy_stats stats;
};

static inline bool copy_stopping(const shard_copy *c) { return __atomic_load_n(&c->stopping, __ATOMIC_RELAXED); }

/* copy.c: one turn; sleeps when nothing happened, at most so long. */
void copy_turn(shard_copy *c, uint64_t most_ns);

/* copy_page.c */
/* Takes over what c->answer lists: all between these cursors, or what changed (from == to). `entries`: how many. */
fkv_status copy_take_page(shard_copy *c, uint64_t from, uint64_t to, uint32_t *entries);
void copy_got(void *ctx, lookup_get *g); /* lookup_config.done */

#endif
