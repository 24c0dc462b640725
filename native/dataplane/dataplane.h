/* dataplane.h: the owner's side of the data path: one thread per shard worker that polls, prepares, commits and
 * acknowledges, grants leases and answers two-sided requests, without ever entering JavaScript.
 *
 * For: server/ through native/node/server_binding.c, and C tests. Not for: decisions. Which shards are opened, when
 * they are served and closed, and what is told to clients about them, is decided by the caller.
 *
 * Life:   create -> start -> open_shard, serve_shard, close_shard, layout, stats -> stop -> destroy
 * A shard that is open answers SHARD_CLOSED until it is served; whether old leases on an earlier incarnation have run
 * out before that is the caller's to know. Threads: create, start, stop and destroy by one thread at a time (stop may
 * be called by several: all return when it is done); the rest by any thread, between start and stop. Calls that take a
 * `done` return at once; done is called once, on a thread of the data plane or of the caller, must not block, and owns
 * `result` (free it with free()).
 *
 * Memory that is bounded, for each worker: requests in the owner's hands, at most 2 * client_quota of a client and a
 * LAYOUT of each shard, 400 bytes each; messages not yet given back, by the provider's credits; copies of requests that wait and of replies not
 * yet sent, 64 MiB; remembered changes (deduplication), dedup_bytes; large values on their way, transfer_bytes, which
 * are counted in the shard's own memory, and 2 MiB through which they come.
 */
#ifndef FARKV_DATAPLANE_H
#define FARKV_DATAPLANE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/hash.h"
#include "../base/histogram.h"
#include "../base/status.h"
#include "../fabric/fabric.h"
#include "../log/disk.h"
#include "../table/table.h"
#include "../wire/wire.h"

typedef struct dataplane dataplane;

typedef struct dataplane_listen {
    fab_provider provider;
    uint32_t worker;
    const char *address; /* as fabric.h writes addresses */
    uint32_t device;     /* fab_place: one domain has what listens with the same; below FAB_DEVICES */
} dataplane_listen;

/* Of what pages tables' memory is (base/region.h). AUTO: huge ones for segments that are whole ones anyway and where
 * the system has them. REQUIRE: every segment is whole huge pages, the first ones too, which takes more memory of small
 * shards; start fails where the system has none. */
typedef enum { DATAPLANE_HUGE_OFF, DATAPLANE_HUGE_AUTO, DATAPLANE_HUGE_REQUIRE } dataplane_huge;

/* A tenant: clients that are to have nothing to do with those of others. It has shards of its own, in a row
 * behind those of the domains before it; its number is its place in the list, and what tickets carry. Requests of its
 * clients for other shards are answered UNAUTHORIZED, and the rkeys of its shards are of no use to other clients. */
typedef struct dataplane_tenant {
    uint32_t shards;
    uint32_t max_clients; /* its connections in all workers together; 0: no bound but the configuration's */
} dataplane_tenant;

/* What tickets are made with, and which of those that the cluster has had it is. */
typedef struct dataplane_secret {
    uint32_t number;
    fkv_seed seed;
} dataplane_secret;
/* Tickets that were made before then are not good any more: a client's, or those of a tenant's clients (client 0). */
typedef struct dataplane_revocation {
    uint64_t client, before_ms;
    uint32_t tenant;
} dataplane_revocation;
enum { DATAPLANE_SECRETS_MAX = 2, DATAPLANE_REVOCATIONS_MAX = 1024 };
typedef struct dataplane_access {
    uint32_t secrets, revocations;
    dataplane_secret secret[DATAPLANE_SECRETS_MAX];
    const dataplane_revocation *revoked;
} dataplane_access;

/* What an owner sees of a copy. JOINED: it follows, with little lag, and could be required. LATE: it is waited for and has
 * come no further for backup_slow_ms, or has had no connection for so long after its lease. BACK: it is not, any more.
 * UNLINKED: it is waited for and has had no connection for a moment; its server may have ended.
 * Told where the copy is: DAMAGED: it is not what its owner has, or its memory has changed by itself. UNKNOWN: its owner
 * does not know it, or has not kept what it lacks; said each time that it asks. REFUSED: the same, told at the owner.
 * FULL, where the copy is: it has no room for a change that its owner has, and acknowledges nothing any more. */
typedef enum {
    DATAPLANE_COPY_JOINED,
    DATAPLANE_COPY_LATE,
    DATAPLANE_COPY_BACK,
    DATAPLANE_COPY_UNLINKED,
    DATAPLANE_COPY_DAMAGED,
    DATAPLANE_COPY_UNKNOWN,
    DATAPLANE_COPY_REFUSED,
    DATAPLANE_COPY_FULL
} dataplane_copy_event;

/* A copy here whose owner is gone: nobody listens at its addresses, or nothing was heard of it until the last lease that
 * it may have of this copy was over. A suspicion, told once; and once when the copy acknowledges again. */
typedef struct dataplane_suspicion {
    uint32_t shard;
    bool gone;
    uint64_t id, prepared; /* the last record that it has */
} dataplane_suspicion;

/* Where the records of durable shards go: each worker has a log there (native/log). */
typedef struct dataplane_log {
    disk *disk; /* the caller's until stop, used by several threads; NULL: no shard is durable */
    uint8_t cluster[16];
    uint64_t instance;
    /* 0: a change is answered, and acknowledged to its owner, when it is on the disk. Else when it is in the log's buffer
     * (docs/early-answers.md); what is there is on its way to the disk after so long, and a loss of power or of the
     * process loses it. */
    uint64_t sync_ns;
    /* Default 64 MiB, and WAL_BATCH_MAX, which is the most; each worker has two buffers. */
    uint32_t file_bytes, buffer_bytes;
    /* Snapshots are made when a worker's log has so many bytes, and more than its tables; default 256 MiB. */
    uint64_t snapshot_bytes;
    uint64_t snapshot_bytes_per_s; /* how fast each worker writes one; default 100,000,000 */
    uint32_t chunk_bytes;          /* a piece of it, of which each worker has two; default 1 MiB */
    /* As dataplane_shard.memory_bytes, of each that start finds and makes anew, within config.memory_bytes; 0: none is wanted. */
    uint64_t shard_memory_bytes;
    /* Whether that copy is wanted: asked by several threads of start, for each piece of the log. Of others nothing is
     * kept. */
    bool (*recovers)(void *ctx, uint32_t shard, uint64_t copy);
    /* So much of what is to be read was read by now; `all` is an estimate, which falls. False: give up, so start fails,
     * and the disk stays as it is. By several threads of start; must not block. May be NULL. */
    bool (*on_progress)(void *ctx, uint64_t bytes, uint64_t all);
    void *ctx;
} dataplane_log;

/* A copy that start has found. A whole one is open as a copy that follows nobody (dataplane_follow_owner,
 * dataplane_lead_copy); what it has prepared behind `committed` may have been acknowledged. One that is not whole is not
 * open. */
typedef struct dataplane_recovered {
    uint32_t shard, worker;
    uint64_t id;
    bool whole;
    char why[120];  /* it is not */
    uint32_t epoch; /* of a whole one */
    uint64_t prepared, committed;
} dataplane_recovered;

/* A client's connection that was ended by its owner, not by the client or the network. */
typedef struct dataplane_ended {
    uint64_t client; /* of its ticket */
    uint32_t worker;
    uint32_t requests; /* of it, in the owner's hands at that moment */
    fab_provider provider;
    fkv_end why; /* not NONE */
} dataplane_ended;

/* dataplane_slow.last, where it is no copy. NONE: nobody had to have it. LOG: the owner's log, of which the disk may not
 * have the end yet. CONFIG: the copies were others from then on. */
#define DATAPLANE_LAST_NONE   UINT64_C(0)
#define DATAPLANE_LAST_DISK   (UINT64_MAX - 2)
#define DATAPLANE_LAST_LOG    (UINT64_MAX - 1)
#define DATAPLANE_LAST_CONFIG UINT64_MAX
/* A request that was slow (dataplane_config.slow_ns). */
typedef struct dataplane_slow {
    uint64_t client; /* of its ticket; 0: its connection is gone */
    uint64_t hash;   /* of its key, under the cluster's seed; 0: it has none */
    uint64_t ns;     /* since it came */
    /* of a change: until it was prepared; then until all who had to have it had it; the last, a copy's id or LAST_* */
    uint64_t queued_ns, held_ns, last;
    uint32_t worker, shard;
    fkv_op op; /* as fkv_ops says where it is counted */
    fkv_status status;
} dataplane_slow;

typedef struct dataplane_config {
    uint64_t server_incarnation;
    fkv_seed hash_seed;
    fkv_seed ticket_secret; /* number 0; until dataplane_set_access */
    uint32_t shards;        /* of the cluster; 1 to DATAPLANE_SHARDS_MAX */
    uint32_t workers;       /* threads; 1 to DATAPLANE_WORKERS_MAX */
    uint32_t lease_ms, drift_ppm;
    uint32_t max_clients; /* connections in all workers together */
    /* requests of one connection in the owner's hands: one more is answered BUSY, with twice as many it is ended */
    uint32_t client_quota;
    polling polling; /* of data-plane threads and of their transports' threads */
    dataplane_huge huge_pages;
    const dataplane_tenant *tenant; /* copied by create; their shards are all there are */
    uint32_t tenants;               /* 0: one domain, number 0, with all shards; at most DATAPLANE_TENANTS_MAX */
    const dataplane_listen *listen; /* copied by create */
    uint32_t listens;
    /* registered by all shards together, beside their first segments; 0: no bound but theirs */
    uint64_t memory_bytes;
    /* Limits with defaults, taken where 0 is given. */
    uint64_t quarantine_ns, quarantine_bytes; /* table.h */
    uint32_t regions_max; /* of one shard, over all places; default 8,192, of which the metadata takes no more */
    /* large values on their way at once, for each worker; default 256 MiB, at least one value's */
    uint64_t transfer_bytes;
    uint64_t dedup_bytes;      /* remembered changes, for each worker; default 64 MiB */
    uint32_t wait_ms;          /* how long a change waits for its key or for memory before BUSY; default 1,000 */
    uint32_t transfer_ms;      /* how long a large value may take from its request to its end; default 30,000 */
    uint32_t stall_ms;         /* a connection that takes no reply for so long is ended; default 5,000 */
    uint32_t replica_lease_ms; /* what each acknowledgement of a copy here is worth to its owner; default 250 */
    uint32_t backup_slow_ms; /* a copy that is waited for and acknowledges nothing for so long is late; default 1,000 */
    uint32_t scrub_ms;       /* between two looks at all memory of a copy; default 300,000 */
    /* Called on a helper thread after the segments of a shard changed; must not block. May be NULL. */
    void (*on_layout)(void *ctx, uint32_t shard, uint32_t layout_epoch);
    /* Called on the shard's data-plane thread, at its owner, about a copy of it; must not block. May be NULL. */
    void (*on_copy)(void *ctx, uint32_t shard, uint64_t copy, dataplane_copy_event what);
    /* The same, where the copy is. */
    void (*on_suspicion)(void *ctx, const dataplane_suspicion *o);
    /* Called on a data-plane thread, by each that listened there: the device is gone, and no client will come over this
     * device of this provider again in the life of this data plane. Must not block. May be NULL. */
    void (*on_unreachable)(void *ctx, fab_provider provider, uint32_t device);
    /* Called on a data-plane thread, which has ended a client's connection. Must not block. May be NULL. */
    void (*on_ended)(void *ctx, const dataplane_ended *e);
    /* Called on a data-plane thread for each request that took so long, if it was held over a turn of the thread; 1: for
     * each request; 0: for none. Must not block. May be NULL. */
    void (*on_slow)(void *ctx, const dataplane_slow *s);
    uint64_t slow_ns;
    /* fab_options.log of all transports: from any thread, as often as peers cause it. Must not block. May be NULL. */
    void (*on_fabric_log)(void *ctx, int level, const char *text);
    dataplane_log log;
    /* Called on a data-plane thread, once: an operation of its log failed, with a negative errno. From then on nothing
     * that would have to be in the log is acknowledged or takes effect, so the process is to end. May be NULL. */
    void (*on_log_failed)(void *ctx, const char *operation, const char *file, int error);
    /* The same, of a snapshot of the shard: nothing is lost, and it is tried again after a minute. */
    void (*on_snapshot_failed)(void *ctx, uint32_t shard, const char *operation, const char *file, int error);
    void *ctx;
} dataplane_config;
enum {
    DATAPLANE_SHARDS_MAX = 65536,
    DATAPLANE_WORKERS_MAX = 64,
    DATAPLANE_LISTENS_MAX = 512,
    DATAPLANE_TENANTS_MAX = 16,
    DATAPLANE_LEASE_MS_MAX = 3600000,
    DATAPLANE_DRIFT_PPM_MAX = 100000,
    DATAPLANE_CLIENTS_MAX = 65536,
    DATAPLANE_QUOTA_MAX = 65536,
    DATAPLANE_REPLICA_LEASE_MS_MIN = 50,
    DATAPLANE_COPIES_MAX = 4,  /* of a shard, beside its owner's */
    DATAPLANE_EPOCH_FIRST = 1, /* a shard that opens in this epoch has had no owner before */
    DATAPLANE_EPOCH_MAX = (1 << 20) - 1
};

/* OK, or BAD_REQUEST for a configuration outside the limits above, or NO_MEMORY. */
fkv_status dataplane_create(const dataplane_config *c, dataplane **out);
/* Opens the providers, listens, opens the logs, starts the threads. On failure everything is as after create, and `why`
 * has a sentence. CORRUPT: a log is damaged, or lacks a file; DATA_DIR: it cannot be gone on with for another reason. */
fkv_status dataplane_start(dataplane *d, char *why, size_t why_room);
/* After start: the copies that it has found, and how many. The data plane's. */
const dataplane_recovered *dataplane_get_recovered(const dataplane *d, uint32_t *count);
/* After start: what of this worker's log was cut off, as a sentence; "": nothing. The data plane's. */
const char *dataplane_get_torn(const dataplane *d, uint32_t worker);
/* The i-th listener's address as really bound, i < config.listens; after start. */
const char *dataplane_address(const dataplane *d, uint32_t i);
/* Ends everything that start and open_shard began: fails what is pending with CLOSED, disconnects, joins, deregisters,
 * unmaps. Blocks for as long as that takes. Idempotent. */
void dataplane_stop(dataplane *d);
/* After stop: whether the disk has all that was answered. */
bool dataplane_is_synced(const dataplane *d);
/* Stops if need be, and frees. */
void dataplane_destroy(dataplane *d);

typedef void (*dataplane_done)(void *ctx, fkv_status s, void *result);

typedef struct dataplane_region {
    fab_provider provider;
    table_segment_kind kind;
    uint32_t device, segment, tag;
    uint64_t bytes, addr, rkey;
} dataplane_region;
typedef struct dataplane_layout {
    uint32_t shard, epoch;
    uint64_t incarnation;
    uint32_t layout_epoch, buckets;
    uint32_t count;
    dataplane_region region[];
} dataplane_layout;

typedef struct dataplane_shard {
    uint32_t shard, worker, epoch; /* epoch: at most DATAPLANE_EPOCH_MAX */
    uint64_t incarnation;
    uint64_t memory_bytes;
    uint32_t buckets; /* that the index has from the first (table.h); 0: few */
    bool durable;     /* changes are answered when they are in the log, too */
} dataplane_shard;

/* Result: dataplane_layout. BUSY when the shard is open already, BAD_REQUEST for a shard or worker that does not exist,
 * for too little memory, or for a durable shard without a log, NO_MEMORY. The memory is allocated, prefaulted and
 * registered off the data-plane thread. */
void dataplane_open_shard(dataplane *d, const dataplane_shard *s, dataplane_done done, void *ctx);
/* Grants leases and answers, from now on; a copy that leads when nobody can rely on an earlier owner any more and all
 * copies in sync have what came with it, which takes a lease and longer. NOT_OWNER when it is not open; BUSY for a copy
 * that follows, and when it is to be served already; ABORTED when it is closed before that. */
void dataplane_serve_shard(dataplane *d, uint32_t shard, dataplane_done done, void *ctx);
/* A durable shard's copy is gone for ever with that: its snapshot is removed, and its records in the log are not kept.
 * Stops answering at once; is done when every lease that covers the shard has run out, no large value is being written,
 * and the memory is deregistered and freed. NOT_OWNER when it is not open; BUSY when it is being closed. */
void dataplane_close_shard(dataplane *d, uint32_t shard, dataplane_done done, void *ctx);
/* The copy, which start has found not to be whole, is not wanted any more: all that is on the disk of it may go. NOT_FOUND:
 * there is none. One that is whole is closed for that. */
void dataplane_discard_copy(dataplane *d, uint32_t shard, uint64_t copy, dataplane_done done, void *ctx);
/* A snapshot of the shard, which is durable, is made that has all that has taken effect by now. Of one that was opened and
 * never served, too: from then on it comes back. UNSUPPORTED: it is not durable; TABLE_FULL: the disk has no space; CORRUPT: the disk failed (on_snapshot_failed); ABORTED: the shard is closed
 * before. */
void dataplane_snapshot(dataplane *d, uint32_t shard, dataplane_done done, void *ctx);
/* result: dataplane_layout */
void dataplane_get_layout(dataplane *d, uint32_t shard, dataplane_done done, void *ctx);

/* The shard answers nothing and grants nothing; done when every lease that covers it has run out and nothing that was
 * prepared is left. All that is in it stays, and is served again by dataplane_serve_shard. NOT_OWNER when it is not open;
 * BUSY when it is being closed, or is served or closed before that. */
void dataplane_pause_shard(dataplane *d, uint32_t shard, dataplane_done done, void *ctx);

/* ---- a shard that is copied (native/client/copy.h) ---- */
/* Before the shard is served, or a copy: takes entries over, with their versions. `entries` is whole fkv_scan_entry as in a
 * SCAN reply, each with its value and namespace; one of version 0 takes its key away. One of a version that is not
 * above the present one is passed over. The bytes stay the caller's and must stay as they are until done. TABLE_FULL
 * and the like: what came before has been taken over. BUSY when the shard is served. Of a durable shard it is on the disk
 * before the shard is served, or its copy joined. */
void dataplane_import(dataplane *d, uint32_t shard, const uint8_t *entries, uint32_t bytes, dataplane_done done,
                      void *ctx);

/* ---- a copy that begins with what is there (docs/rejoin.md) ---- */
/* The copy is none any more: nothing counts of what it has prepared and not committed, and nothing is on the disk of it.
 * What it has committed stays in the table, as the base of the next copy, of this id. Also of a table that entries were
 * being taken over into. The metadata has the copy no more, or under another name. BUSY: the shard is served, leads, or
 * entries are being taken over; CORRUPT: the copy is damaged; NOT_OWNER: it is not open; ABORTED: it is closed. */
void dataplane_keep_base(dataplane *d, uint32_t shard, uint64_t id, dataplane_done done, void *ctx);
/* What the owner has listed in one turn: all keys from cursor to cursor of SCAN, or some (from == to). */
typedef struct dataplane_page {
    const uint8_t *entries; /* whole fkv_scan_entry, without values; as for dataplane_import the caller's until done */
    uint32_t bytes, count;
    uint64_t from, to; /* the end is 1 << 32 */
    bool *same;        /* of each entry: it is here with this version, and its value need not be brought */
    uint64_t *version; /* room for as many, the data plane's until done */
} dataplane_page;
/* Before the shard is served, or a copy: what is here from cursor to cursor and not listed in this version goes. In order
 * with imports, and refused as they are. */
void dataplane_compare(dataplane *d, uint32_t shard, const dataplane_page *p, dataplane_done done, void *ctx);

/* ---- copies of shards (docs/replication.md) ---- */
typedef struct dataplane_sequence {
    uint64_t client, sequence;
} dataplane_sequence;
typedef struct dataplane_owner_address {
    fab_provider provider;
    const char *text;
    uint32_t device; /* of the owner's, by its own numbers */
} dataplane_owner_address;
/* Where a copy joined its owner's log. */
typedef struct dataplane_join {
    uint64_t id; /* of the copy */
    uint64_t lsn;
    uint32_t epoch, doubt_ms;           /* as in fkv_join_point */
    const dataplane_sequence *sequence; /* that clients have used by then */
    uint32_t sequences;
} dataplane_join;
/* The shard, which is open, has been copied up to there, and is a backup from now on that follows the owner's thread
 * which listens at these addresses, the best first. Done when that has answered the first time. BUSY: it is served, a
 * copy, or entries are being taken over; NOT_OWNER: the owner does not know the copy; TIMEOUT: it is not reached, and is
 * dialed on; ABORTED: the shard is closed, or led, before that. All is copied. */
void dataplane_follow_copy(dataplane *d, uint32_t shard, const dataplane_join *at,
                           const dataplane_owner_address *address, uint32_t addresses, dataplane_done done, void *ctx);
/* Its owner listens there now. NOT_OWNER: it is no copy; BUSY: it leads, or is being closed. */
void dataplane_follow_owner(dataplane *d, uint32_t shard, const dataplane_owner_address *address, uint32_t addresses,
                            dataplane_done done, void *ctx);

typedef struct dataplane_copies {
    uint32_t epoch, config, min_in_sync;
    uint32_t in_sync, eligible, joining; /* of each at most DATAPLANE_COPIES_MAX; in_sync: beside the own one */
    const uint64_t *id, *eligible_id, *joining_id;
    bool alone; /* the policy wants no copy beside the owner's: that one answers early without another, too */
    /* The owner before has handed the shard over in this epoch: it need not be waited for. For dataplane_lead_copy. */
    bool handed;
} dataplane_copies;
/* The copy is the owner's table from now on; it is not served. Result: dataplane_layout. NOT_OWNER: it is no copy; BUSY:
 * it leads already, or is being closed; BAD_REQUEST: of an epoch that is not above the owner's that it has followed. */
void dataplane_lead_copy(dataplane *d, uint32_t shard, uint64_t incarnation, const dataplane_copies *c,
                         dataplane_done done, void *ctx);
/* The owner has applied this config. The same one again is OK. NOT_OWNER: of another epoch, or the shard is a copy;
 * BAD_REQUEST: an earlier one, or it names a copy that is unknown here. */
void dataplane_configure_copies(dataplane *d, uint32_t shard, const dataplane_copies *c, dataplane_done done,
                                void *ctx);
/* A copy that has joined (on_copy) is waited for from now on. Done when the metadata may be asked for it. Result:
 * uint64_t, what is committed then. Of one that is required this ends the call before; of one that the metadata may be
 * asked for already it is done at once. NOT_OWNER: it is unknown; BUSY: it has not joined yet, lags too far behind, has
 * no link, or is in sync; ABORTED: it was required again, left, is in sync, or the shard is being closed. */
void dataplane_require_copy(dataplane *d, uint32_t shard, uint64_t id, dataplane_done done, void *ctx);
/* It is not wanted, OK too where it is unknown. BUSY: the metadata was asked for it, and only configure lets it go. */
void dataplane_drop_copy(dataplane *d, uint32_t shard, uint64_t id, dataplane_done done, void *ctx);

/* From now on, in the config that the owner has now, it answers only what is on its own disk. Done when all that it has
 * answered is: then the metadata may be asked to take a copy away in that config. NOT_OWNER: it is none; BUSY: the shard is
 * being closed, or this was asked for and is not done; ABORTED: it closes, or steps down. */
void dataplane_rely_on_disk(dataplane *d, uint32_t shard, dataplane_done done, void *ctx);

/* The owner gives the shard to this copy in sync (docs/handover.md): its leases get short; then it grants and answers
 * nothing, and changes wait. Done when every lease is over, and all is committed and at the copy: then the metadata may be
 * asked. It goes on by dataplane_serve_shard, or as a copy. NOT_OWNER: it is not open, or the copy is not in sync (any
 * more); BUSY: it is not served, or served, paused or handed over again before that; TIMEOUT. After these two, and after
 * NOT_OWNER, it is served as before. */
void dataplane_hand_over(dataplane *d, uint32_t shard, uint64_t copy, dataplane_done done, void *ctx);
/* What was handed over, or is another owner's without that, is a copy from now on, with all that is in it, under this id if
 * it had none; it follows nobody yet. Done when no lease is left. What waits is answered NOT_OWNER, what has a record
 * UNDECIDED. BUSY: it is not served. */
void dataplane_step_down(dataplane *d, uint32_t shard, uint64_t id, dataplane_done done, void *ctx);

/* The owner's own lease from the metadata group, as CLOCK_BOOTTIME nanoseconds: no lease is granted beyond it, and
 * after it requests are answered SHARD_CLOSED and changes not yet acknowledged STALE_SEQUENCE. UINT64_MAX, as at first:
 * no end; 0: it has had none yet, and other servers' copies are not answered either. */
void dataplane_set_grant_until(dataplane *d, uint64_t boot_ns);

/* Which tickets are good, from soon after; connections whose tickets are not good any more are ended then. Copied. OK,
 * BAD_REQUEST, NO_MEMORY, or CLOSED while it does not run. */
fkv_status dataplane_set_access(dataplane *d, const dataplane_access *a);

/* What each owner's table may register from soon after, at least TABLE_MEMORY_MIN: those that are open, and those that
 * are opened later, whatever they are opened with. Copies may have config.memory_bytes (storage/shard.c). */
void dataplane_set_table_memory(dataplane *d, uint64_t bytes);

/* From the turn in which a request came to the end of the one that handed the last of its answer to the transport. Of
 * requests that were answered, not refused. */
typedef struct dataplane_latency {
    uint64_t count, p50_ns, p99_ns, max_ns, sum_ns;
    uint64_t below[FKV_HISTOGRAM_BOUNDS]; /* fkv_histogram_octaves */
} dataplane_latency;

/* Of a worker's write-ahead log, since the start. */
typedef struct dataplane_log_stats {
    uint64_t bytes;         /* that a start would read */
    uint32_t free_files;    /* without records, made for the future */
    bool disk_full;         /* there is no space for another file, and changes are refused */
    dataplane_latency sync; /* of a batch: to be written and synced */
    uint64_t records;       /* in those batches */
} dataplane_log_stats;

/* One-sided GETs, which owners do not see: the sums of what clients report (fkv_report). */
typedef struct dataplane_reports {
    uint64_t hits, misses, reads, read_bytes, followed, torn, late, foreign, two_sided;
} dataplane_reports;

/* Of the requests and reports of one tenant's clients. A request for another tenant's shard counts for the tenant of
 * the client that sent it. */
typedef struct dataplane_tenant_stats {
    uint64_t answered[FKV_OP_COUNT]; /* the requests that `latency` counts, and as fkv_ops says where each is counted */
    uint64_t refused_of[FKV_OP_COUNT][FKV_STATUS_COUNT];
    dataplane_reports reports;
} dataplane_tenant_stats;

typedef struct dataplane_worker_stats {
    uint32_t worker, thread_id, clients;
    uint32_t blocked;                   /* clients that take no replies at present */
    uint64_t requests[FKV_OP_COUNT];    /* as fkv_ops says where each is counted */
    uint64_t refused[FKV_STATUS_COUNT]; /* requests and connections answered with an error, by its status */
    uint64_t duplicates;                /* changes answered from memory */
    dataplane_latency latency[FKV_OP_COUNT];
    uint64_t transfers; /* large values taken in */
    poller_stats polling;
    poller_stats responder_polling; /* of the thread that serves READs, where the provider has one */
    bool has_responder;
    uint64_t reads_served; /* READs of peers, by this process, where the provider counts them */
    bool has_log;
    dataplane_log_stats log;
    uint64_t refused_of[FKV_OP_COUNT][FKV_STATUS_COUNT]; /* of `refused`, where the operation is known */
    uint32_t clients_over[FAB_PROVIDER_COUNT];
    dataplane_reports reports;
} dataplane_worker_stats;
/* replica.h says what the numbers are. */
typedef struct dataplane_copy_stats {
    bool known; /* it is a copy, or has some */
    bool leads; /* or was opened as the owner's */
    bool follows;
    fkv_status failed;
    uint64_t id, prepared, committed;
    uint32_t epoch, config, peers;
    struct {
        uint64_t id, prepared, lease_left_ns;
        uint32_t standing;   /* replica_standing */
        fab_provider linked; /* FAB_NONE: has no connection */
    } peer[DATAPLANE_COPIES_MAX];
} dataplane_copy_stats;
typedef struct dataplane_shard_stats {
    uint32_t shard, worker;
    bool serving;
    /* of the registered bytes, by what they are backed with; the sum is the table's */
    uint64_t page_bytes[FKV_PAGES_KINDS];
    uint64_t retired_bytes; /* registered beside them: of segments that clients may know under their leases */
    /* not registered any more, and kept by the system until the last segment of their memory file is retired */
    uint64_t held_bytes;
    /* changes that came before the memory they needed was made, and the longest that one waited */
    uint64_t memory_waits, memory_wait_max_ns;
    table_stats table;
    dataplane_copy_stats copy;
    int snapshot_error; /* a negative errno: the last one failed, and it is tried again; 0: it did not */
} dataplane_shard_stats;
typedef struct dataplane_stats {
    fkv_pages pages;             /* what the system gives to segments of whole huge pages; found at start */
    uint64_t descriptors_missed; /* segments that were not made for want of a descriptor */
    uint32_t workers, shards, tenants;
    dataplane_tenant_stats tenant[DATAPLANE_TENANTS_MAX]; /* sums over all workers */
    dataplane_worker_stats worker[DATAPLANE_WORKERS_MAX];
    dataplane_shard_stats shard[];
} dataplane_stats;
void dataplane_get_stats(dataplane *d, dataplane_done done, void *ctx); /* result: dataplane_stats */

#endif
