/* shard.h: one table with its segments, in the hands of one worker. Private to the data plane's folders. */
#ifndef FARKV_STORAGE_SHARD_H
#define FARKV_STORAGE_SHARD_H
#include "../base/files.h"
#include "../base/list.h"
#include "../base/mailbox.h"
#include "../dataplane/dataplane.h"
#include "../replication/rules/replica.h"
#include "../wire/wire.h"
#include "change_log.h"

typedef struct shard shard;
typedef struct worker worker;
typedef struct command command;
typedef struct backup backup;
typedef struct backlog backlog;

typedef struct segment {
    fkv_region region;
    job job;      /* to be freed */
    dataplane *d; /* that counts its pages */
    table_segment_kind kind;
    uint32_t number, tag;
    fab_mr *mr[FAB_PLACES]; /* NULL: nothing listens there, or the device was lost before */
    struct segment *next;   /* in shard.lingering */
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
    uint64_t counted;   /* bytes of pages that are counted for it */
    fkv_status refused; /* why there is no segment */
    bool beyond;        /* the shard may have no more */
    bool busy;
} want;
enum { WANTS = 4 };

/* What an owner keeps of a backup beside its account, at the same place (copies.c). */
typedef struct copy_place {
    uint64_t limit;       /* up to where, in shard.repl.drawn_bytes, it has room */
    uint64_t joined_at;   /* it has the records up to here, whether it has acknowledged them or not */
    uint64_t acked_ns;    /* when it last came further */
    uint64_t lagging_ns;  /* since when there is something that it has not acknowledged; 0: there is nothing */
    uint64_t unlinked_ns; /* since when it has had no connection; 0: it has one */
    uint64_t told_ns;     /* for how long it had had none when on_copy was last told so; 0: it was not */
    uint64_t silent_ns;   /* since when it has had a connection and given no lease; 0: it gives some */
    command *requiring;   /* is told when it may be proposed */
    bool joined, late;    /* on_copy was told so */
    bool eligible;        /* the metadata keeps it, so it is not forgotten however long it is away */
} copy_place;

/* How far the records of a durable shard were given to its worker's log (durable.c). */
typedef struct append_cursor {
    fkv_list behind;   /* in worker_log.behind, while something is to be appended */
    uint64_t lsn;      /* the last record */
    uint32_t value_at; /* bytes of the next record's value, where that is large */
    bool announced;    /* and that record, without its value, before them */
    bool begins;       /* the beginning of the epoch is to be appended first */
} append_cursor;

/* The snapshots of a durable shard (snapshots.c). */
typedef struct snapshot_mark {
    uint32_t epoch;
    uint64_t committed;
} snapshot_mark;
typedef struct shard_snapshot {
    fkv_list wanted;          /* in snapshots.wanted */
    fkv_list asking, waiting; /* commands: for the next one, for the one that is under way */
    bool made;                /* one is on the disk */
    int error;                /* a negative errno: of the last one, if that failed */
    bool owed;                /* none is, and the table has what is in no log: nobody may rely on this copy */
    snapshot_mark has;        /* it has all that the log has of these epochs up to there */
    snapshot_mark begun;      /* the same of the one that is under way */
} shard_snapshot;

/* What native/replication keeps of a shard. Elsewhere it is read only: whether changes have records, and how far they are. */
typedef struct shard_replication {
    uint64_t logged_as; /* the copy's id in log and snapshots: shard.incarnation at its opening, or what a base was kept
                            * as (base.h) */
    replica_owner owner;  /* its account of its backups */
    backup *copy;         /* its place in another owner's log; NULL: it is no copy */
    fkv_list unacked;     /* ops in OP_REPLICATES, by lsn */
    fkv_list bulks;       /* ops in OP_IS_PULLED */
    uint32_t bulk_count;  /* those, and those of `unacked` that were */
    fkv_list senders;     /* of backups that are connected */
    fkv_list unsent;      /* in worker.repl.unsent: some were not sent everything */
    uint64_t drawn_bytes; /* of extents of what came with the shard, of all records drawn here, and of `bulks` */
    copy_place place[REPLICA_PEERS];
    backlog *backlog; /* committed records that a copy may lack; NULL: none does */
    append_cursor appended;
    shard_snapshot snapshot;
    bool backups;           /* its changes have records: it is durable, knows copies, or needs more than there are */
    bool expects;           /* a connected copy joins, or may soon (copies.c): clients' leases are short */
    uint64_t lost_until_ns; /* a copy that was lost may be back until then; 0: none was */
    command *following;     /* a copy: is told when its owner has answered it */
    uint64_t following_until_ns;
    command *basing;                 /* is told when the table is a base (base.h) */
    command *stepping_down;          /* an owner: is told when it is a copy */
    command *relying;                /* is told when the disk has all that was answered (rely.h) */
    command *handing;                /* is told when the shard may be given to `heir` */
    uint64_t heir, handing_until_ns; /* id of its copy; then it is given up */
    uint64_t lease_most_ns;          /* longer leases are not granted of it; 0: no such bound */
    fkv_list imports;                /* commands, in order: entries to be taken over; none once it is served */
} shard_replication;

struct shard {
    fkv_list of_worker;
    worker *w;
    uint32_t number, epoch, slot; /* slot: small number within the worker, for dedup */
    uint64_t incarnation;
    uint64_t names; /* group of the names of its memory (fab_name): the incarnation that it was opened with */
    enum { SHARD_OPEN, SHARD_SERVING, SHARD_HANDING, SHARD_PAUSED, SHARD_CLOSING } state; /* HANDING: handover.h */
    bool durable; /* its records are to be in the log */
    table *table;
    segment_list segments[2]; /* by kind - 1 */
    fkv_files *files[2];      /* that they are parts of */
    segment *lingering;       /* retired, and registered until no lease is left that does not tell of it */
    table_segment *list;      /* what the table says they are, as of list_epoch */
    uint32_t list_epoch;
    uint32_t notified_epoch; /* the layout epoch that on_layout was called for */
    want wants[WANTS];
    shard_replication repl;
    change_log changed;   /* keys, while another server copies the shard */
    bool attended;        /* something of it is to be looked at in each turn (life.c, repl_attend) */
    uint32_t held;        /* ops that are prepared in the table */
    uint32_t wanted;      /* segments asked for and not yet come */
    uint32_t quarantined; /* ops that wait for the quarantine */
    uint64_t memory_waits, memory_wait_max_ns; /* of ops that waited for memory to be made */
    uint64_t lease_until_ns;                   /* every lease that covers the shard has run out by then */
    uint64_t tick_ns;                          /* when table_tick is due; UINT64_MAX: nothing to do */
    bool touched;                              /* asked for something in this turn: table_tick comes first */
    command *closing, *pausing, *starting;     /* starting: to be served, when that is allowed */
};

fkv_status shard_add_segment(shard *s, segment *m);
segment *shard_take_segment(shard *s, table_segment_kind kind, uint32_t number); /* out of the shard */
uint32_t shard_segments(shard *s, uint32_t place, uint32_t first, fkv_layout_segment *out, uint32_t room);
dataplane_layout *shard_describe(shard *s); /* NULL: no memory */
/* Until when the owner may answer for the shard, grant leases of it and be relied on: until the end of its own lease, and
 * of those of the backups that it needs. */
uint64_t shard_right(const worker *w, const shard *s);
/* Whether the owner may answer for the shard (NULL: not here) now. */
fkv_status shard_status(const worker *w, const shard *s);
/* Opened empty, and never served. */
static inline bool shard_is_new(const shard *s) { return s->state == SHARD_OPEN && !s->repl.copy; }
/* The same towards a server that makes a copy of it. That of a new shard is made before it is served, so that its values
 * are on two servers from the first. */
fkv_status shard_copy_status(const worker *w, const shard *s);
/* It is about to be another owner's, and changes wait for that. */
static inline bool shard_hands(const shard *s) { return s && s->state == SHARD_HANDING; }
void shard_limit(shard *s); /* its table has the limit of its role */
/* native/replication has this, the one thing that storage asks of it: frees the shard's place in another owner's log, and its
 * backlog. Any thread. */
void shard_free_copy(shard *s);
void shard_free(shard *s); /* any thread, when nothing else knows it: table and segments too */
void segment_free(segment *s);

#endif
