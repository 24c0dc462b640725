/* shard.h: one table with its segments, in the hands of one worker. Private to native/dataplane. */
#ifndef FARKV_DATAPLANE_SHARD_H
#define FARKV_DATAPLANE_SHARD_H
#include "../base/list.h"
#include "../base/region.h"
#include "../wire/wire.h"
#include "change_log.h"
#include "dataplane.h"
#include "../base/mailbox.h"

typedef struct shard shard;
typedef struct worker worker;
typedef struct command command;

typedef struct segment {
    fkv_region region;
    job job;        /* to be freed */
    dataplane *d;   /* that counts it; NULL until it is whole */
    size_t counted; /* as how many bytes */
    table_segment_kind kind;
    uint32_t number, tag;
    fab_mr *mr[FAB_PROVIDER_COUNT];
    struct segment *next; /* in shard.lingering */
    uint64_t free_at_ns;
} segment;

/* Segments by the number that the table gave them. Invariant: at[top] and what follows is NULL, and the next number is
 * at most top + 1: a table counts upwards, from 0 or 1; heap segments begin again only after 65,535, and index segments
 * go from the end. */
typedef struct segment_list {
    segment **at;
    uint32_t room, top;
} segment_list;

/* A segment that a table asked for. A table has at most three such questions open: index, heap, heap for a large
 * extent. */
typedef struct want {
    job job;
    shard *shard;
    segment *segment;
    table_segment_kind kind;
    size_t bytes;
    bool busy;
} want;
enum { WANTS = 4 };

struct shard {
    fkv_list of_worker;
    worker *w;
    uint32_t number, epoch, slot; /* slot: small number within the worker, for dedup */
    uint64_t incarnation;
    enum { SHARD_OPEN, SHARD_SERVING, SHARD_PAUSED, SHARD_CLOSING } state;
    table *table;
    segment_list segments[2]; /* by kind - 1 */
    segment *lingering;       /* retired, and registered until no lease is left that does not tell of it */
    table_segment *list;      /* what the table says they are, as of list_epoch */
    uint32_t list_epoch;
    uint32_t notified_epoch; /* the layout epoch that on_layout was called for */
    want wants[WANTS];
    uint32_t held;                             /* ops that are prepared in the table */
    uint32_t wanted;                           /* segments asked for and not yet come */
    uint32_t quarantined;                      /* ops that wait for the quarantine */
    uint64_t memory_waits, memory_wait_max_ns; /* of ops that waited for memory to be made */
    uint64_t lease_until_ns;                   /* every lease that covers the shard has run out by then */
    uint64_t tick_ns;                          /* when table_tick is due; UINT64_MAX: nothing to do */
    bool touched;                              /* asked for something in this turn: table_tick comes first */
    command *closing, *pausing;
    /* not 0: takes no changes, for it is about to be another owner's, who has this copy */
    uint64_t sealed_for;
    change_log log;   /* of changed keys, while another server copies the shard */
    fkv_list imports; /* commands, in order: entries to be taken over; none once it is served */
};

fkv_status shard_add_segment(shard *s, segment *m);
segment *shard_take_segment(shard *s, table_segment_kind kind, uint32_t number); /* out of the shard */
uint32_t shard_segments(shard *s, fab_provider p, uint32_t first, fkv_layout_segment *out, uint32_t room);
dataplane_layout *shard_describe(shard *s); /* NULL: no memory */
/* Whether the owner may answer for the shard (NULL: not here) now; the lease of the owner itself counts. */
fkv_status shard_status(const worker *w, const shard *s);
void shard_free(shard *s); /* any thread, when nothing else knows it: table and segments too */
void segment_free(segment *s);

#endif
