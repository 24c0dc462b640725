/* op.h: one request in the owner's hands: what it is, and in which stage. How it comes into the next: serve/stages.h.
 *
 * The stages of a change:
 *
 *   arrived -> [follows its first copy] -> [waits: key, memory] -> prepared -> [transfers] -> [is pulled] -> [replicates] -> ready ->
 *   committed -> answered
 *
 * Everything that arrived in one turn of the loop is prepared, then everything that is ready is committed, then
 * answered. Nothing calls back: whatever happens to an op puts it on one of the worker's lists by a function of serve/stages.h, and
 * run.c drains them. Replication stands before `ready`: where a shard has backups, an op comes there when they hold its
 * record (replicate.c), else at once. Invariants: only an op that is `held` is in the table, so one in any earlier stage
 * can be dropped without a trace; one that replicates is never undone while its shard may go on.
 */
#ifndef FARKV_DATAPLANE_OP_H
#define FARKV_DATAPLANE_OP_H
#include "../base/list.h"
#include "../table/table.h"
#include "../wire/wire.h"
#include "dedup.h"

typedef struct op op;
typedef struct client client;
typedef struct shard shard;
typedef struct worker worker;
typedef struct transfer transfer;
typedef struct key_queue key_queue;

typedef enum op_state {
    OP_ARRIVED,      /* in no list: in the batch at hand, or being worked on */
    OP_RUNNABLE,     /* in worker.runnable: to be tried */
    OP_FOLLOWS,      /* behind the first copy of the same change */
    OP_WAITS_KEY,    /* in a key queue; timed */
    OP_WAITS_MEMORY, /* in worker.starved, and the holder of its key's queue; timed */
    OP_TRANSFERS,    /* held; its value is on its way */
    OP_IS_PULLED,    /* held; in shard.repl.bulks: backups are to have its large value first */
    OP_REPLICATES,   /* held; in shard.repl.unacked: backups are to have its record first */
    OP_READY,        /* held; in worker.ready */
    OP_ENDS,         /* in worker.answering: its outcome is known */
    OP_ANSWERS       /* in client.out: its reply, or the rest of it, is to be sent */
} op_state;

struct op {
    fkv_list link;      /* in the list that its state names */
    fkv_list of_client; /* in client.ops */
    fkv_list timed;     /* in worker.timed, by arrival at it */
    op_state state;
    bool recorded;     /* dedup knows it as the one in progress */
    bool streams;      /* its reply is made from the table as it goes out; see stream.c */
    bool quarantined;  /* counted in shard.quarantined */
    bool aside;        /* counted in client.asides */
    bool fed;          /* being tried again after it waited for memory */
    bool held;         /* prepared in the table, and not committed: counted in shard.held */
    bool replicated;   /* backups may have its record */
    bool removes;      /* it derives, and no entry is what it leaves */
    uint8_t tenant;    /* of its client, which may have gone */
    fkv_status status; /* OP_ENDS: its outcome */
    worker *worker;
    client *client; /* NULL when the connection has gone */
    shard *shard;
    dedup_client *memory;   /* held while `recorded` */
    op *leader, *followers; /* OP_FOLLOWS: of whom; else: who wait for the same answer, by next_follower */
    op *next_follower;
    const void *message; /* as received, until it is given back; key and body point into it */
    key_queue *queue;    /* OP_WAITS_* */
    uint8_t *copy;       /* own copy of key and body, where the message was given back before it is held */
    uint32_t kept_bytes; /* of `copy` and `stream_bytes`, as counted in worker.kept_bytes */
    const uint8_t *key, *body;
    uint64_t hash, arrived_ns, deadline_ns;
    uint64_t starved_ns; /* since when it has waited for memory that is being made; 0: not */
    /* It was prepared, and all who had to have its record had it; both are set once it is ready. prepared_ns 0: it had no
     * record. */
    uint64_t prepared_ns, ready_ns;
    uint64_t last; /* of them (dataplane_slow) */
    transfer *transfer;
    uint8_t *stream_bytes;      /* SCAN: the serialised entries still to be sent */
    uint64_t stream_checked_ns; /* GET: the entry was in the table then */
    const uint8_t *stream_value;
    uint32_t stream_at, stream_end;
    uint32_t value_bytes; /* a change, once it is admitted: of the value that it leaves */
    table_prepared prepared;
    uint64_t lsn;              /* of its record, once it is prepared; where it is pulled, once it was */
    uint8_t announced, pulled; /* OP_IS_PULLED, and after that: to which backups, by which; see bulk.c */
    fkv_request request;
    fkv_reply reply;
};

/* Whether it waits for something and has not taken effect. */
static inline bool op_waits(const op *o) { return o->state >= OP_RUNNABLE && o->state <= OP_WAITS_MEMORY; }

/* Whether it leaves an entry. */
static inline bool op_writes(const op *o) { return fkv_op_writes(o->request.op) && !o->removes; }

#endif
