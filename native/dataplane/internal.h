/* internal.h: the objects of the data plane. Private to native/dataplane.
 *
 *   dataplane   one server's: configuration, fabric domains, groups, the three helper threads
 *   group       one data-plane thread: its completion queues, shards, clients, operations
 *   client      one connection
 *   op          one request in the owner's hands
 *   shard       one table with its segments
 *   transfer    a large value on its way from a client's memory into an extent
 *
 * Threads. A group and everything below it belongs to the group's thread; other threads reach it by jobs in its mailbox, and by
 * `dataplane.grant_until_ns` and `dataplane.lease_ms`. Before the thread starts and after it was joined, they belong to the thread that starts and stops.
 * A job that was posted belongs to the thread it was posted to.
 *
 * The stages of a change:
 *
 *   arrived -> [follows its first copy] -> [waits: key, memory] -> prepared -> [transfers] -> ready -> committed -> answered
 *
 * Everything that arrived in one turn of the loop is prepared, then everything that is ready is committed, then answered. `ready`
 * is where replication stands between the stages: a prepared op is put into the list when the in-sync backups hold it, which with
 * no backups is at once. Only a prepared op is in the table, so an op in any earlier stage can be dropped without a trace.
 */
#ifndef FARKV_DATAPLANE_INTERNAL_H
#define FARKV_DATAPLANE_INTERNAL_H
#include <pthread.h>
#include "../base/histogram.h"
#include "../base/list.h"
#include "../wire/wire.h"
#include "change_log.h"
#include "dataplane.h"
#include "dedup.h"
#include "worker.h"

enum {
    POLL_BATCH = 16,                   /* completions taken from one queue in one turn */
    POLL_BATCH_FREE = 8,
    OPS_A_SLAB = 64,
    KEY_QUEUE_BUCKETS = 256,
    KEY_QUEUE_MAX = 4096,              /* ops waiting for one key */
    KEPT_BYTES_MAX = 64 << 20,         /* copies of requests that wait and of SCAN replies not yet sent, of a group */
    ATTACHMENTS = 4,                   /* regions of one client that are attached at once */
    REPLY_SLICE = 64 << 10,            /* bytes of a long reply that go out at once */
    SCAN_CHAINS_A_TURN = 1024,         /* of a table's index that the SCANs of one turn walk */
    ANSWERED_MOST = 256,               /* latencies that one look at the clock serves */
    REPLIES_A_TURN = 256               /* short ones that one client gets in one turn of the loop */
};

typedef struct op op;
typedef struct client client;
typedef struct shard shard;
typedef struct group group;
typedef struct transfer transfer;
typedef struct key_queue key_queue;
typedef struct bounce_pool bounce_pool;

typedef struct segment {
    fkv_region region;
    job job;                           /* to be freed */
    dataplane *d;                      /* that counts it; NULL until it is whole */
    size_t counted;                    /* as how many bytes */
    table_segment_kind kind;
    uint32_t number, tag;
    fab_mr *mr[FAB_PROVIDER_COUNT];
    struct segment *next;              /* in shard.lingering */
    uint64_t free_at_ns;
} segment;

/* ---- dataplane ---- */

/* A call from another thread. Its job hops between threads; command_done ends it. */
typedef struct command {
    job job;
    dataplane *d;
    dataplane_done done;
    void *ctx;
    group *g;
    uint32_t number;                   /* of the shard */
    dataplane_shard open;
    segment *first_index, *first_heap;
    shard *failed;                     /* to be freed on the memory thread */
    dataplane_stats *stats;
    uint64_t sealed_for;
    fkv_list importing;                /* in shard.imports */
    const uint8_t *entries;
    uint32_t entries_bytes, entries_at;
    fkv_status status;
    void *result;
} command;
void command_done(command *c, fkv_status s, void *result);

/* command.c */
table_config table_config_of(const dataplane *d, const dataplane_shard *o, shard *s);

typedef enum { PLACE_NONE, PLACE_OPENING, PLACE_OPEN, PLACE_CLOSING } place_state;

/* Invariant: their ranges follow each other and are all shards there are. */
typedef struct trust_domain {
    fkv_shard_range shards;
    uint32_t max_clients;
    uint32_t clients;                  /* atomic: connections in all groups */
} trust_domain;

struct dataplane {
    dataplane_config c;                /* defaults filled in */
    trust_domain trust[DATAPLANE_TRUSTS_MAX];   /* c.trusts of them, at least one */
    dataplane_listen *listen;          /* own copies */
    char (*bound)[256];                /* addresses as bound */
    uint64_t grant_until_ns;           /* atomic */
    uint32_t lease_ms;                 /* atomic: of the next grants */
    uint32_t clients;                  /* atomic: connections in all groups */
    fab_domain *domain[FAB_PROVIDER_COUNT];
    fab_listener **listener;           /* [c.listens] */
    group *group[DATAPLANE_GROUPS_MAX];
    worker memory;                     /* allocates, prefaults, registers, deregisters */
    worker huge;                       /* the same for segments of huge pages that tables ask for */
    uint64_t huge_after_ns;            /* of that thread: before then they are made of small ones all the same */
    fkv_pages pages;                   /* what a segment of whole huge pages was given at start */
    uint64_t memory_taken;             /* atomic: registered bytes of all shards, and what is being made */
    worker copier;                     /* copies and checksums large values */
    pthread_mutex_t lock;              /* of the fields below; never taken by a group's thread */
    pthread_cond_t stopped;
    enum { DP_CREATED, DP_RUNNING, DP_STOPPING, DP_STOPPED } state;
    struct { uint8_t state; uint8_t group; } *place;   /* [c.shards]: place_state */
};
uint32_t dataplane_trust_of(const dataplane *d, uint32_t shard);   /* the number of its trust domain */
/* Takes the lock: on the memory thread only. */
void dataplane_place(dataplane *d, uint32_t shard, place_state state);
void dataplane_unlisten(dataplane *d, uint32_t group);   /* by the thread that has the group */

/* ---- shard ---- */

/* Segments by the number that the table gave them. Invariant: at[top] and what follows is NULL, and the next number is at most
 * top + 1: a table counts upwards, from 0 or 1, and begins again only after 65,535. */
typedef struct segment_list {
    segment **at;
    uint32_t room, top;
} segment_list;

/* A segment that a table asked for. A table has at most three such questions open: index, heap, heap for a large extent. */
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
    fkv_list of_group;
    group *g;
    uint32_t number, epoch, slot;      /* slot: small number within the group, for dedup */
    uint64_t incarnation;
    enum { SHARD_OPEN, SHARD_SERVING, SHARD_PAUSED, SHARD_CLOSING } state;
    table *table;
    segment_list segments[2];          /* by kind - 1 */
    segment *lingering;                /* retired, and registered until no lease is left that does not tell of it */
    table_segment *list;               /* what the table says they are, as of list_epoch */
    uint32_t list_epoch;
    uint32_t notified_epoch;           /* the layout epoch that on_layout was called for */
    want wants[WANTS];
    uint32_t held;                     /* ops that are prepared in the table */
    uint32_t wanted;                   /* segments asked for and not yet come */
    uint32_t quarantined;              /* ops that wait for the quarantine */
    uint64_t memory_waits, memory_wait_max_ns;   /* of ops that waited for memory to be made */
    uint64_t lease_until_ns;           /* every lease that covers the shard has run out by then */
    uint64_t tick_ns;                  /* when table_tick is due; UINT64_MAX: nothing to do */
    bool touched;                      /* asked for something in this turn: table_tick comes first */
    command *closing, *pausing;
    uint64_t sealed_for;               /* not 0: takes no changes, for it is about to be another owner's, who has this copy */
    change_log log;                    /* of changed keys, while another server copies the shard */
    fkv_list imports;                  /* commands, in order: entries to be taken over; none once it is served */
};

/* ---- op ---- */

typedef enum op_state {
    OP_ARRIVED,       /* in no list, or in the batch at hand */
    OP_FOLLOWS,       /* behind the first copy of the same change */
    OP_WAITS_KEY,     /* in a key queue; timed */
    OP_WAITS_MEMORY,  /* in group.starved, and the holder of its key's queue; timed */
    OP_TRANSFERS,     /* prepared; its value is on its way */
    OP_READY,         /* prepared; in group.ready */
    OP_ANSWERS        /* in client.out: its reply, or the rest of it, is to be sent */
} op_state;

struct op {
    fkv_list link;                     /* in the list that its state names */
    fkv_list of_client;                /* in client.ops */
    fkv_list timed;                    /* in group.timed, by arrival at it */
    op_state state;
    bool recorded;                     /* dedup knows it as the one in progress */
    bool streams;                      /* its reply is made from the table as it goes out; see stream.c */
    bool quarantined;                  /* counted in shard.quarantined */
    bool aside;                        /* counted in client.asides */
    bool fed;                          /* being tried again after it waited for memory */
    group *group;
    client *client;                    /* NULL when the connection has gone */
    shard *shard;
    dedup_client *memory;              /* held while `recorded` */
    op *leader, *followers;            /* OP_FOLLOWS: of whom; else: who wait for the same answer, by next_follower */
    op *next_follower;
    const void *message;               /* as received, not yet given back; key and body point into it */
    key_queue *queue;                  /* OP_WAITS_* */
    uint8_t *copy;                     /* own copy of key and body, once the message was given back */
    uint32_t kept_bytes;               /* of `copy` and `stream_bytes`, as counted in group.kept_bytes */
    const uint8_t *key, *body;
    uint64_t hash, arrived_ns, deadline_ns;
    uint64_t starved_ns;               /* since when it has waited for memory that is being made; 0: not */
    transfer *transfer;
    uint8_t *stream_bytes;             /* SCAN: the serialised entries still to be sent */
    uint64_t stream_checked_ns;        /* GET: the entry was in the table then */
    const uint8_t *stream_value;
    uint32_t stream_at, stream_end;
    table_prepared prepared;
    fkv_request request;
    fkv_reply reply;
};

/* ---- client ---- */

typedef struct attachment {
    enum { ATTACH_NONE, ATTACH_ASKED, ATTACH_READY } state;
    uint32_t users;                    /* transfers */
    uint64_t rkey, addr, bytes, used_ns;
} attachment;

struct client {
    fkv_list of_group;                 /* group.clients or .doomed */
    fkv_list sending;                  /* in group.sending while `out` is not empty and it is not blocked */
    fkv_list blocked;                  /* in group.blocked, longest first, while the peer gives no credits */
    fkv_list ops;
    fkv_list out;                      /* ops in OP_ANSWERS, in order */
    group *g;
    fab_conn *conn;
    fab_provider provider;
    trust_domain *trust;               /* of the ticket, as are flags */
    uint32_t flags;
    uint32_t op_count, asides;         /* asides: those of them that do not count against the quota */
    uint32_t copying;                  /* jobs of the copier that read this client's memory */
    uint64_t transfer_bytes;
    uint32_t max_message;
    bool doomed;                       /* to be ended at the end of this turn */
    bool is_blocked;
    uint64_t blocked_ns;
    dedup_client *memory;
    attachment attached[ATTACHMENTS];
};

/* ---- group ---- */

/* A request whose answer is with the transport: latency.c. */
typedef struct answered { uint64_t arrived_ns; uint8_t counted; } answered;

struct group {
    dataplane *d;
    uint32_t number, thread_id;
    pthread_t thread;
    bool has_thread;
    bool stopping;                     /* told to end: jobs do no more than free what they carry */
    job stop_job;
    mailbox box;
    int epoll;
    fab_cq *cq[FAB_PROVIDER_COUNT];
    fab_provider polled[FAB_PROVIDER_COUNT];    /* the providers that have a queue here */
    int batch_of[FAB_PROVIDER_COUNT];  /* completions taken from each in one turn */
    int polled_count;

    uint64_t now_ns, wall_ms;          /* of this turn */
    uint64_t busy_ns;                  /* when there was something to do last */
    uint64_t lease_ns;

    shard **by_number;                 /* [shards of the cluster] */
    bool *slot_taken;                 /* by shard.slot */
    fkv_list shards;
    fkv_list clients, doomed;
    fkv_list sending, blocked;
    dedup dedup;

    op *free_ops;
    void *slabs;
    uint32_t op_count, op_max;
    uint64_t kept_bytes;
    op *batch[POLL_BATCH * FAB_PROVIDER_COUNT];
    int batch_count;

    fkv_list ready;                    /* ops in OP_READY, in the order prepared */
    fkv_list starved;                  /* ops in OP_WAITS_MEMORY */
    fkv_list timed;                    /* waiting ops, the first deadline first */
    fkv_list woken;                    /* key queues that may move on */
    bool feed_starved;                 /* memory may have come: try them again */
    key_queue *key_queue[KEY_QUEUE_BUCKETS];
    key_queue *free_key_queues;
    uint32_t key_queues;

    fkv_list transfers;                /* active, the first deadline first */
    uint64_t transfer_bytes;
    bounce_pool *bounces;
    uint32_t copying;                  /* jobs at the copier */
    uint32_t scan_chains;              /* that the SCANs of this turn may still walk */
    uint8_t *scratch;                  /* FKV_SCAN_STEP_MAX bytes: a SCAN reply being made */

    dataplane_group_stats stats;
    answered answered[ANSWERED_MOST];  /* in this turn, not yet in `latency` */
    uint32_t answered_count;
    fkv_histogram latency[FKV_OP_COUNT];
};

/* group.c: all but group_post by the thread that starts and stops */
int group_create(dataplane *d, uint32_t number, group **out);   /* group_free also what has failed half-way */
int group_add_provider(group *g, fab_provider p);
int group_start(group *g);
void group_join(group *g);             /* tells it to stop, and waits; jobs that come later are for group_drain */
void group_free_shards(group *g);
void group_free(group *g);
static inline void group_post(group *g, job *j) { mailbox_post(&g->box, j); }
static inline int group_drain(group *g) { return mailbox_run(&g->box); }

/* client.c */
void client_ask(group *g, fab_provider p, const fab_wc *wc);   /* FAB_WC_ACCEPT */
void client_doom(client *c);           /* ends it at the end of this turn */
void clients_reap(group *g);
bool clients_to_reap(const group *g);

/* op.c */
op *op_new(client *c);                 /* NULL: none left */
void op_free(op *o);                   /* gives its message back; it is in no list, dedup does not know it, nobody follows it */
bool op_detach(op *o);                 /* copies key and body, gives the message back; false: no room */
uint8_t *op_keep(op *o, size_t bytes); /* memory that is counted for the op, to be freed with it; NULL: no room */
void op_answer(op *o, fkv_status s);   /* finished: records, answers it and its followers. In no list; not held by the table */
op *op_pass_on(op *o);                 /* the first follower takes its place in dedup, and is to be run; NULL: it has none */
void op_abandon(op *o);                /* its client has gone before it took effect: passed on, or forgotten; freed */
void ops_free_slabs(group *g);

/* request.c */
void request_received(group *g, client *c, const fab_wc *wc);
/* Whether the owner may answer for the shard (NULL: not here) now; the lease of the owner itself counts. */
fkv_status request_shard_status(const group *g, const shard *s);
void request_run(op *o);               /* arrived: to wherever its kind goes */

/* latency.c */
void latency_answered(const op *o);    /* the last of its answer was handed to the transport */
void latencies_settle(group *g);       /* at the end of a turn */
void latencies_get(const group *g, dataplane_latency out[FKV_OP_COUNT]);

/* change.c */
typedef enum { ATTEMPT_DONE, ATTEMPT_HELD, ATTEMPT_KEY, ATTEMPT_MEMORY } attempt_result;
void change_arrived(op *o);
attempt_result change_attempt(op *o);  /* DONE: answered; HELD: prepared; KEY, MEMORY: has to wait for that */
void change_ready(op *o);              /* a prepared change may be committed */
void change_abort(op *o, fkv_status s);/* a prepared change is undone and answered so; its client may have gone */
void changes_commit(group *g);

/* wait.c */
void wait_or_run(op *o);               /* a change or a GET, now or behind what is before it */
void wait_key_free(group *g, uint64_t hash);   /* a change of the key has ended */
void wait_remove(op *o);               /* out of whatever it waits in */
void wait_run_woken(group *g);
void wait_feed(group *g);              /* tries the starved again, fails those whose time is up */
void wait_free_queues(group *g);

/* read.c */
attempt_result read_attempt(op *o);    /* GET */
void read_scan(op *o);
void read_changed(op *o);               /* SCAN of the log of changes */
void read_layout(op *o);

/* stream.c */
void reply_send(op *o);                /* o->reply is set: now, or when credits are there */
void stream_start(op *o, uint32_t end);/* the reply is made as it goes out, from 0 to `end` of what its kind counts */
void stream_fail(op *o, fkv_status s); /* in OP_ANSWERS: the rest is not sent, but this */
uint32_t stream_body_max(const client *c);
bool replies_continue(group *g);       /* one slice for each client that has something to send; true: there is more to send */
void reply_credits(client *c);         /* FAB_WC_SEND_READY */
uint64_t replies_deadline(const group *g);

/* lease.c: grants a lease for the served shards of `range` from its place `at` on, at most `room` of them. Returns how many; *next is
 * the place from which to go on; *granted_ns is 0 when the owner's own lease is over. */
uint32_t lease_grant(group *g, fkv_shard_range range, uint32_t at, fkv_lease_shard *out, uint32_t room, uint32_t *next, uint64_t *granted_ns);

/* transfer.c */
fkv_status transfer_pool_create(bounce_pool **out);   /* transfer_pool_free also what has failed */
int transfer_pool_register(bounce_pool *p, fab_domain *d);
void transfer_pool_free(bounce_pool *p);
bool transfer_admit(const client *c, uint32_t bytes);   /* whether there is room for one more of this size */
fkv_status transfer_begin(op *o);      /* prepared -> OP_TRANSFERS; an error: nothing was begun */
void transfer_attached(client *c, const fab_wc *wc);
void transfer_read_done(group *g, const fab_wc *wc);
bool transfer_fail(op *o, fkv_status s);   /* aborts it as soon as nothing writes its extent; false: it is failing already */
void transfers_step(group *g);
uint64_t transfers_deadline(const group *g);
void transfers_hurry(client *c);       /* the copier is to stop reading this client's memory */
void transfer_orphan(op *o);           /* its connection was freed: no READ is in flight any more */

/* shard.c: the first three are jobs of commands, on the group's thread */
void shard_open(job *j);
void shard_serve(job *j);
void shard_close(job *j);
void shard_layout(job *j);
void shard_seal(job *j);
void shard_pause(job *j);
fkv_status shard_add_segment(shard *s, segment *g);
segment *shard_take_segment(shard *s, uint32_t number);   /* a heap segment, out of the shard */
uint32_t shard_segments(shard *s, fab_provider p, uint32_t first, fkv_layout_segment *out, uint32_t room);
void shards_tick(group *g);
uint64_t shards_deadline(const group *g);
void shard_free(shard *s);             /* any thread, when nothing else knows it: table and segments too */

/* import.c: what moves: the job of dataplane_import and its end; the others are read_scan's */
void import_begin(job *j);
void imports_continue(shard *s);
void imports_end(shard *s, fkv_status why);

/* memory.c */
void memory_open(job *j);              /* of a command, on the memory thread: the first segments */
void memory_opened(command *c, shard *failed);
void memory_want(void *shard, table_segment_kind kind, size_t bytes);   /* table_config.want_segment */
void memory_retire(void *shard, uint32_t segment);                      /* table_config.retire_segment */
void memory_free_segment(group *g, segment *s);
bool memory_free_lingering(shard *s, uint64_t now);   /* those whose time has come; true: there was one */
bool memory_huge_now(const dataplane *d, uint64_t now_ns);                        /* whether to ask the kernel for huge pages */
void memory_huge_took(dataplane *d, uint64_t now_ns, uint64_t waited_ns);         /* it did not run for so long while it made some */
void memory_close(command *c, shard *s);   /* frees the shard, then ends the command */
bool memory_notify(const shard *s);    /* on_layout; false: no memory, try again */
void segment_free(segment *s);

static inline uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline void fkv_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
