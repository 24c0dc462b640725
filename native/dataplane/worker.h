/* worker.h: one data-plane thread, and the data plane that it is part of. Private to the data plane's folders.
 *
 *   dataplane   one server's: configuration, fabric domains, workers, helper threads
 *   worker      one data-plane thread: its completion queues, shards, clients, operations
 *   client      one connection (client.h)
 *   op          one request in the owner's hands (op.h)
 *   shard       one table with its segments (storage/shard.h)
 *   transfer    a change that fetches its large value (bulk/fetch.h) from a client's memory (serve/transfer.c)
 *
 * Threads. A worker and everything below it belongs to the worker's thread; other threads reach it by jobs in its
 * mailbox, and by `dataplane.grant_until_ns` and `table_memory`. Before the thread starts and after it was
 * joined, they belong to the thread that starts and stops. A job that was posted belongs to the thread it was posted
 * to.
 */
#ifndef FARKV_DATAPLANE_WORKER_H
#define FARKV_DATAPLANE_WORKER_H
#include <pthread.h>
#include "../base/helper.h"
#include "../base/histogram.h"
#include "../base/list.h"
#include "../base/poller.h"
#include "../bulk/fetch.h"
#include "../wire/wire.h"
#include "access.h"
#include "challenge.h"
#include "dataplane.h"
#include "dedup.h"

enum {
    POLL_BATCH = 16, /* completions taken from one queue in one turn */
    POLL_BATCH_FREE = 8,
    OPS_A_SLAB = 64,
    KEY_QUEUE_BUCKETS = 256,
    KEY_QUEUE_MAX = 4096,      /* ops waiting for one key */
    KEPT_BYTES_MAX = 64 << 20, /* copies of requests that wait and of SCAN replies not yet sent, of a worker */
    REPLY_SLICE = 64 << 10,    /* bytes of a long reply that go out at once */
    SCAN_CHAINS_A_TURN = 1024, /* of a table's index that the SCANs of one turn walk */
    ANSWERED_MOST = 256,       /* latencies that one look at the clock serves */
    REPLIES_A_TURN = 256       /* short ones that one client gets in one turn of the loop */
};

typedef struct op op;
typedef struct shard shard;
typedef struct worker worker;
typedef struct key_queue key_queue;
typedef struct worker_log worker_log;

/* ---- dataplane ---- */

/* Memory of all backlogs of one data plane (replication/backlog.h), and how much that may be. Any thread. */
typedef struct backlog_budget {
    uint64_t taken, most;
} backlog_budget;

typedef enum { PLACE_NONE, PLACE_OPENING, PLACE_OPEN, PLACE_CLOSING } place_state;

/* Invariant: their ranges follow each other and are all shards there are. */
typedef struct dp_tenant {
    fkv_shard_range shards;
    uint32_t max_clients;
    uint32_t clients; /* atomic: connections of all workers */
} dp_tenant;

struct dataplane {
    dataplane_config c;                      /* defaults filled in */
    dp_tenant tenant[DATAPLANE_TENANTS_MAX]; /* c.tenants of them, at least one */
    dataplane_listen *listen;                /* own copies */
    char (*bound)[256];                      /* addresses as bound */
    bool stepped;                            /* set by a test, which takes the turns (serve/loop.h) */
    uint64_t grant_until_ns;                 /* atomic */
    pthread_mutex_t keys_lock;               /* of `keys`, which transports' threads look at */
    struct access_rules *keys;
    uint64_t table_memory; /* atomic: dataplane_set_table_memory; 0: not called yet */
    uint32_t clients;      /* atomic: connections of all workers */
    fab_domain *domain[FAB_PLACES];
    fab_listener **listener; /* [c.listens] */
    worker *worker[DATAPLANE_WORKERS_MAX];
    helper memory;               /* allocates, prefaults, registers, deregisters */
    helper huge;                 /* the same for segments of huge pages that tables ask for */
    uint64_t huge_after_ns;      /* of that thread: before then they are made of small ones all the same */
    fkv_pages pages;             /* what a segment of whole huge pages was given at start */
    uint64_t memory_taken;       /* atomic: bytes of pages that all shards have, and what is being made */
    uint64_t descriptors_missed; /* atomic: segments not made for want of a descriptor */
    backlog_budget backlogs;
    helper copier;             /* copies and checksums large values */
    helper maker;              /* makes and removes files of the workers' logs */
    helper snapshots;          /* writes those of all workers */
    struct recovery *recovery; /* what start found on the disk */
    bool log_failed;           /* atomic: an operation of a log did */
    pthread_mutex_t lock;      /* of the fields below; never taken by a worker's thread */
    pthread_cond_t stopped;
    enum { DP_CREATED, DP_RUNNING, DP_STOPPING, DP_STOPPED } state;
    struct {
        uint8_t state;
        uint8_t worker;
    } * place; /* [c.shards]: place_state */
};
/* The number of a shard's tenant. */
static inline uint32_t dataplane_tenant_of(const dataplane *d, uint32_t shard) {
    uint32_t i = 0;
    while (!fkv_range_has(d->tenant[i].shards, shard)) i++;
    return i;
}

/* ---- worker ---- */

/* A request whose answer is with the transport: latency.c. */
typedef struct answered {
    uint64_t arrived_ns;
    uint8_t counted, tenant;
} answered;

/* What native/replication keeps of a worker. */
typedef struct worker_replication {
    fkv_list owner_links, backup_links; /* links to owners, and of backups */
    fkv_list unsent;                    /* shards of which backups were not sent everything */
    uint32_t expecting;                 /* shards with repl.expects */
    worker_log *log;                    /* NULL: no shard here is durable */
    fetch_pool *pulls; /* of owners' values, so that no client is in their way; NULL: none was announced yet */
} worker_replication;

struct worker {
    dataplane *d;
    uint32_t number, thread_id;
    pthread_t thread;
    bool has_thread;
    bool stopping; /* told to end: jobs do no more than free what they carry */
    job stop_job;
    mailbox box;
    int epoll;
    fab_cq *cq[FAB_PLACES];
    uint32_t polled[FAB_PLACES]; /* the places that have a queue here */
    int batch_of[FAB_PLACES];    /* completions taken from each in one turn */
    int polled_count;

    uint64_t now_ns, wall_ms; /* of this turn */
    poller poller;            /* whether to sleep when there is nothing to do */
    uint64_t lease_ns;

    shard **by_number; /* [shards of the cluster] */
    bool *slot_taken;  /* by shard.slot */
    fkv_list shards;
    fkv_list clients, doomed;
    fkv_list sending, blocked;
    worker_replication repl;
    dedup dedup;
    challenges challenges;
    access_rules *access;
    job limits;         /* shard_limits */
    bool limiting;      /* atomic: it is posted */
    uint64_t expiry_ms; /* wall clock: no client's ticket expires before; UINT64_MAX: there is none */

    op *free_ops;
    void *slabs;
    uint32_t op_count, op_max;
    uint64_t kept_bytes;
    op *batch[POLL_BATCH * FAB_PLACES];
    int batch_count;

    /* What is drained by run_all (serve/run.c), which says in which order. */
    fkv_list answering; /* ops in OP_ENDS */
    fkv_list runnable;  /* ops in OP_RUNNABLE */
    fkv_list woken;     /* key queues that may move on */
    fkv_list ready;     /* ops in OP_READY, in the order prepared */

    fkv_list starved;  /* ops in OP_WAITS_MEMORY */
    fkv_list timed;    /* waiting ops, the first deadline first */
    bool feed_starved; /* memory may have come: try them again */
    key_queue *key_queue[KEY_QUEUE_BUCKETS];
    key_queue *free_key_queues;
    uint32_t key_queues;

    fkv_list transfers; /* active, the first deadline first */
    uint64_t transfer_bytes;
    fetch_pool *fetches;  /* of clients' values */
    uint32_t scan_chains; /* that the SCANs of this turn may still walk */
    uint8_t *scratch;     /* FKV_SCAN_STEP_MAX bytes: a SCAN reply being made */
    uint8_t *made;        /* a hash being made (serve/derive_fields.c); NULL: none was yet */
    size_t made_room;

    /* Without its `refused_of`, `reports` and `latency`, which are made of the fields below (serve/calls.c). */
    dataplane_worker_stats stats;
    dataplane_tenant_stats tenant[DATAPLANE_TENANTS_MAX]; /* by number */
    answered answered[ANSWERED_MOST];                     /* in this turn, not yet in `latency` */
    uint32_t answered_count;
    fkv_histogram latency[FKV_OP_COUNT];
};

static inline void worker_post(worker *w, job *j) { mailbox_post(&w->box, j); }

static inline uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

#endif
