/* wire.h: the messages that travel by SEND between a client and an owner's data plane. Little-endian, packed by hand.
 *
 * A connection is made with fab_connect whose private data is a fkv_hello; the owner checks the version range and the
 * ticket and accepts with a fkv_welcome or rejects with one that carries the status. After that:
 *
 *   request  = fkv_request, key, then an inline value or a fkv_rendezvous
 *   reply    = fkv_reply, then op-specific bytes
 *
 * A reply names its request by `id`, which the client chooses; replies may come in any order. A request that gets a
 * reply gets its last message (the one without FKV_REPLY_MORE) once.
 *
 * Retries. Requests that change something carry `sequence`, which counts from 1 for one client on one shard: the owner
 * keeps the results of the last FKV_DEDUP_WINDOW sequences of each client on each shard and answers a repeated one from
 * memory, so that a retry, also over a new connection, is never a second write. A retry that comes while its first copy
 * is still being worked on is answered together with it. An older sequence than the window gets STALE_SEQUENCE. The
 * owner forgets a client that was silent for FKV_DEDUP_IDLE_MS, or earlier when it runs out of room for windows; so
 * that forgetting is never a second write either, a request that was sent before carries FKV_REQUEST_RETRY, is answered
 * STALE_SEQUENCE when its window may have been forgotten, and is never sent again after FKV_DEDUP_IDLE_MS / 2. Windows
 * do not go with a shard to its next owner, nor to the next start of this one: there a retry of what was sent before is
 * STALE_SEQUENCE.
 *
 * Leases. A LEASE reply lists the shards that it covers, each with its incarnation (fkv_lease_shard). It says: until
 * the time at which the client *sent* the request plus the nanoseconds granted, less the clocks' drift, what a READ
 * finds in the memory of these shards is the truth. A shard that is not listed, or listed with another incarnation than
 * the client knows, is not covered; what was granted for it before runs out by itself. A client therefore keeps one
 * deadline for each shard and moves it forward only. A shard that is being closed is not listed any more, and closes
 * when the last deadline that covers it has passed.
 *
 * Everything here is hostile until checked: wire_parse_request copies the fixed part out before it validates it.
 */
#ifndef FARKV_WIRE_H
#define FARKV_WIRE_H
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/hash.h"
#include "../base/status.h"
#include "ops.h"

enum {
    FKV_WIRE_VERSION_MIN = 1,
    FKV_WIRE_VERSION_MAX = 1,
    /* sequences remembered for one client on one shard; also the most changes it may have outstanding there */
    FKV_DEDUP_WINDOW = 1024,
    FKV_DEDUP_IDLE_MS = 600000,
    FKV_MESSAGE_MIN = 4096,        /* a peer that takes only smaller messages (fab_max_message) is refused */
    FKV_SCAN_REPLY_MAX = 12 << 10, /* bytes of entries in one message of a SCAN reply */
    FKV_SCAN_STEP_MAX = 256 << 10  /* bytes of entries in all messages of one SCAN reply */
};
#define FKV_TTL_MAX ((uint64_t)1 << 46) /* milliseconds; arrival plus this fits the 48 bits of an extent's expiry */

/* ---- connection ---- */
typedef struct fkv_ticket { /* made by any server's control plane for an authenticated client */
    uint64_t client;        /* random, not 0 */
    uint64_t expires_ms;    /* wall clock */
    /* tenant: which shards it may use, and by which rkeys; 0 is the default one */
    uint32_t tenant;
    uint32_t flags;  /* FKV_TICKET_* */
    uint8_t mac[16]; /* fkv_mac(cluster secret, the 24 bytes before) */
} fkv_ticket;
static_assert(sizeof(fkv_ticket) == 40, "fits the private data");
/* COPY: servers only, for FKV_REQUEST_SCAN_COPY */
enum { FKV_TICKET_READ = 1, FKV_TICKET_WRITE = 2, FKV_TICKET_COPY = 4 };
void fkv_ticket_make(const fkv_seed *secret, uint64_t client, uint64_t expires_ms, uint32_t tenant, uint32_t flags,
                     fkv_ticket *out);
/* Constant time in the code's bytes. now_ms is wall clock. */
bool fkv_ticket_ok(const fkv_seed *secret, const fkv_ticket *t, uint64_t now_ms);

typedef struct fkv_hello {
    uint32_t magic; /* FKV_HELLO_MAGIC */
    uint8_t version_min, version_max;
    uint16_t features;
    fkv_ticket ticket;
} fkv_hello;
static_assert(sizeof(fkv_hello) == 48, "at most FAB_PRIVATE_MAX");
enum { FKV_HELLO_MAGIC = 0x564b5246 }; /* "FRKV" */

typedef struct fkv_welcome {
    uint32_t magic;
    uint8_t version, status; /* status: fkv_status; OK when accepted */
    uint16_t features;
    uint64_t server_incarnation;
    uint32_t lease_ms;  /* how long a granted lease lasts */
    uint32_t drift_ppm; /* bound on the clocks' difference in rate */
    uint64_t wall_ms;   /* the owner's wall clock, for expiry */
} fkv_welcome;
static_assert(sizeof(fkv_welcome) == 32, "drawing");

/* ---- requests ---- */
enum {
    FKV_CHANGED_ALL = 1, /* there was no more to list */
    /* and there will be no more, for the copy that `expiry_ms` of the reply names: the shard takes no changes
     * (dataplane_seal_shard) */
    FKV_CHANGED_SEALED = 2
};

typedef struct fkv_request {
    uint8_t op, flags, codec, reserved;
    uint32_t shard;
    uint64_t id;
    /* changes: from 1, one more with each change of one client on one shard; at most 2^56 - 1; else 0 */
    uint64_t sequence;
    uint64_t expected; /* CAS: version; SCAN: cursor */
    /* PUT, CAS: time to live in milliseconds from arrival, <= FKV_TTL_MAX, 0 never; else 0 */
    uint64_t expiry;
    uint32_t value_bytes;
    uint32_t user_flags;
    uint16_t key_bytes, ns;
    uint32_t reserved2;
} fkv_request;
static_assert(sizeof(fkv_request) == 56, "drawing");

/* The value lies in the client's registered memory, at addr under rkey; region_* is that memory as a whole, for
 * fab_attach. It must stay as it is until the reply has come or the connection is gone. */
typedef struct fkv_rendezvous {
    uint64_t rkey, addr, region_addr, region_bytes;
} fkv_rendezvous;
static_assert(sizeof(fkv_rendezvous) == 32, "drawing");
#define FKV_RENDEZVOUS_REGION_MAX ((uint64_t)1 << 30)

/* ---- replies ---- */
enum { FKV_REPLY_MORE = 1 }; /* another message with this id follows */
typedef struct fkv_reply {
    uint8_t op, status, flags, codec;
    uint32_t shard;
    uint64_t id;
    /* changes, GET: the entry's version; VERSION_MISMATCH: the version there is; SCAN: next cursor; LEASE: the owner's
     * wall clock in milliseconds */
    uint64_t version;
    /* GET: wall clock; LEASE: nanoseconds granted, counted from when the request was sent */
    uint64_t expiry_ms;
    uint32_t value_bytes; /* of the whole value */
    uint32_t offset;      /* of this piece in it */
    uint32_t body_bytes;  /* of this message's body */
    uint32_t user_flags;
    uint32_t layout_epoch; /* the shard's: a client that knows an older one asks for LAYOUT */
    uint32_t buckets;      /* the shard's, so that the client's idea of B follows */
} fkv_reply;
static_assert(sizeof(fkv_reply) == 56, "drawing");

typedef struct fkv_lease_shard {
    uint32_t shard, layout_epoch;
    uint64_t incarnation; /* fkv_layout.incarnation */
} fkv_lease_shard;
static_assert(sizeof(fkv_lease_shard) == 16, "drawing");

typedef struct fkv_layout {
    uint64_t incarnation; /* of the shard at this owner: 64 random bits */
    uint32_t layout_epoch, buckets;
    uint32_t epoch; /* ownership epoch */
    uint32_t count; /* segments in all */
    /* this message carries segments first .. first + here - 1 (FKV_REPLY_MORE: more follow) */
    uint32_t first, here;
} fkv_layout;
static_assert(sizeof(fkv_layout) == 32, "drawing");
typedef struct fkv_layout_segment {
    uint8_t kind, reserved[3]; /* table_segment_kind */
    uint32_t segment, tag, reserved2;
    uint64_t bytes, rkey, addr;
} fkv_layout_segment;
static_assert(sizeof(fkv_layout_segment) == 40, "drawing");

typedef struct fkv_scan_entry {
    uint64_t version, expiry_ms;
    uint32_t value_bytes, user_flags;
    uint16_t key_bytes;
    uint8_t codec, has_value;
    uint16_t ns; /* SCAN_COPY; else 0 */
    uint16_t reserved;
} fkv_scan_entry;
static_assert(sizeof(fkv_scan_entry) == 32, "drawing");

/* Copies the fixed part and checks every length against `bytes`, the limits and the op. *key and *body point into the
 * message. Returns FKV_OK or FKV_BAD_REQUEST, KEY_INVALID, VALUE_TOO_LARGE. *r is the copy whenever bytes >=
 * sizeof(fkv_request), so that an error can be answered under the request's id; else it is zero. */
fkv_status wire_parse_request(const void *message, uint32_t bytes, fkv_request *r, const uint8_t **key,
                              const uint8_t **body);
/* FKV_OK or FKV_BAD_REQUEST. What follows from r->op and r->body_bytes can be relied on: a LEASE body is whole
 * fkv_lease_shards, a LAYOUT body holds as many segments as it says, a SCAN body is whole entries, a GET's piece lies
 * within its value. */
fkv_status wire_parse_reply(const void *message, uint32_t bytes, fkv_reply *r, const uint8_t **body);
/* Reads the entry at *at (start with 0) of a SCAN body and moves *at behind it. False at the end, and when what is left
 * is no entry (then *at is less than body_bytes). *value is NULL when the entry came without its value. */
bool wire_next_scan_entry(const uint8_t *body, uint32_t body_bytes, uint32_t *at, fkv_scan_entry *e,
                          const uint8_t **key, const uint8_t **value);
#endif
