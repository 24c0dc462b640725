/* wire.h: the messages that travel by SEND between a client and an owner's data plane. Little-endian, packed by hand.
 *
 * A connection is made with fab_connect whose private data is a fkv_hello; the owner checks the version range and the ticket
 * and accepts with a fkv_welcome or rejects with one that carries the status. After that:
 *
 *   request  = fkv_request, key, then an inline value or a fkv_rendezvous
 *   reply    = fkv_reply, then op-specific bytes
 *
 * A reply names its request by `id`, which the client chooses; replies may come in any order. Requests that change something
 * carry `sequence`: the owner keeps the last FKV_DEDUP_WINDOW sequences of each client and answers a repeated one from
 * memory, so that a retry, also over a new connection, is never a second write.
 * Everything here is hostile until checked: wire_parse_request copies the fixed part out before it validates it.
 */
#ifndef FARKV_WIRE_H
#define FARKV_WIRE_H
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/hash.h"
#include "../base/status.h"

enum {
    FKV_WIRE_VERSION_MIN = 1,
    FKV_WIRE_VERSION_MAX = 1,
    FKV_DEDUP_WINDOW = 1024,        /* sequences remembered for one client; also the most changes it may have outstanding */
    FKV_SCAN_REPLY_MAX = 12 << 10   /* bytes of entries in one SCAN reply */
};

/* ---- connection ---- */
typedef struct fkv_ticket {         /* made by any server's control plane for an authenticated client */
    uint64_t client;                /* random, not 0 */
    uint64_t expires_ms;            /* wall clock */
    uint32_t trust;                 /* trust domain: 0 for now (a namespace group later) */
    uint32_t flags;                 /* FKV_TICKET_* */
    uint8_t mac[16];                /* fkv_mac(cluster secret, the 24 bytes before) */
} fkv_ticket;
static_assert(sizeof(fkv_ticket) == 40, "fits the private data");
enum { FKV_TICKET_READ = 1, FKV_TICKET_WRITE = 2 };
void fkv_ticket_make(const fkv_seed *secret, uint64_t client, uint64_t expires_ms, uint32_t trust, uint32_t flags, fkv_ticket *out);
/* Constant time in the code's bytes. now_ms is wall clock. */
int fkv_ticket_ok(const fkv_seed *secret, const fkv_ticket *t, uint64_t now_ms);

typedef struct fkv_hello {
    uint32_t magic;                 /* FKV_HELLO_MAGIC */
    uint8_t version_min, version_max;
    uint16_t features;
    fkv_ticket ticket;
} fkv_hello;
static_assert(sizeof(fkv_hello) == 48, "at most FAB_PRIVATE_MAX");
enum { FKV_HELLO_MAGIC = 0x564b5246 };   /* "FRKV" */

typedef struct fkv_welcome {
    uint32_t magic;
    uint8_t version, status;        /* status: fkv_status; OK when accepted */
    uint16_t features;
    uint64_t server_incarnation;
    uint32_t lease_ms;              /* how long a granted lease lasts */
    uint32_t drift_ppm;             /* bound on the clocks' difference in rate */
    uint64_t wall_ms;               /* the owner's wall clock, for expiry */
} fkv_welcome;
static_assert(sizeof(fkv_welcome) == 32, "drawing");

/* ---- requests ---- */
typedef enum fkv_op {
    FKV_OP_LEASE = 1,   /* ask for or renew the lease of all shards of this connection's owner thread */
    FKV_OP_LAYOUT,      /* the segments of one shard; body of the reply: fkv_layout, then fkv_layout_segment[count] */
    FKV_OP_GET,         /* two-sided; reply body: value, in one or several messages (FKV_REPLY_MORE) */
    FKV_OP_PUT,
    FKV_OP_DELETE,
    FKV_OP_CAS,         /* like PUT, with `expected` */
    FKV_OP_CAS_DELETE,
    FKV_OP_SCAN,        /* `expected` = cursor, `value_bytes` = most entries; reply body: fkv_scan_entry + key [+ value], ... */
    FKV_OP_CANCEL       /* the client no longer waits for request `expected`; no reply */
} fkv_op;
enum {
    FKV_REQUEST_RENDEZVOUS = 1,     /* the value is a fkv_rendezvous, to be READ by the owner */
    FKV_REQUEST_SCAN_VALUES = 2     /* SCAN replies with values too, where they fit */
};

typedef struct fkv_request {
    uint8_t op, flags, codec, reserved;
    uint32_t shard;
    uint64_t id;
    uint64_t sequence;              /* changes: from 1, ascending for one client on one shard; else 0 */
    uint64_t expected;              /* CAS: version; SCAN: cursor */
    uint64_t expiry;                /* changes: time to live in milliseconds from arrival, 0 never */
    uint32_t value_bytes;
    uint32_t user_flags;
    uint16_t key_bytes, ns;
    uint32_t reserved2;
} fkv_request;
static_assert(sizeof(fkv_request) == 56, "drawing");

typedef struct fkv_rendezvous { uint64_t rkey, addr; } fkv_rendezvous;

/* ---- replies ---- */
enum { FKV_REPLY_MORE = 1 };        /* another message with this id follows */
typedef struct fkv_reply {
    uint8_t op, status, flags, codec;
    uint32_t shard;
    uint64_t id;
    uint64_t version;               /* changes, GET: the entry's version; VERSION_MISMATCH: the version there is;
                                       SCAN: next cursor; LEASE: the owner's wall clock in milliseconds */
    uint64_t expiry_ms;             /* GET: wall clock; LEASE: nanoseconds granted, counted from when the request was sent */
    uint32_t value_bytes;           /* of the whole value */
    uint32_t offset;                /* of this piece in it */
    uint32_t body_bytes;            /* of this message's body */
    uint32_t user_flags;
    uint32_t layout_epoch;          /* the shard's: a client that knows an older one asks for LAYOUT */
    uint32_t buckets;               /* the shard's, so that the client's idea of B follows */
} fkv_reply;
static_assert(sizeof(fkv_reply) == 56, "drawing");

typedef struct fkv_layout {
    uint64_t incarnation;           /* of the shard at this owner: 64 random bits */
    uint32_t layout_epoch, buckets;
    uint32_t epoch;                 /* ownership epoch */
    uint32_t count;                 /* segments in all */
    uint32_t first, here;           /* this message carries segments first .. first + here - 1 (FKV_REPLY_MORE: more follow) */
} fkv_layout;
static_assert(sizeof(fkv_layout) == 32, "drawing");
typedef struct fkv_layout_segment {
    uint8_t kind, reserved[3];      /* table_segment_kind */
    uint32_t segment, tag, reserved2;
    uint64_t bytes, rkey, addr;
} fkv_layout_segment;
static_assert(sizeof(fkv_layout_segment) == 40, "drawing");

typedef struct fkv_scan_entry {
    uint64_t version, expiry_ms;
    uint32_t value_bytes, user_flags;
    uint16_t key_bytes;
    uint8_t codec, has_value;
    uint32_t reserved;
} fkv_scan_entry;
static_assert(sizeof(fkv_scan_entry) == 32, "drawing");

/* Copies the fixed part and checks every length against `bytes`, the limits and the op. *key and *body point into the
 * message. Returns FKV_OK or FKV_BAD_REQUEST, KEY_INVALID, VALUE_TOO_LARGE. */
fkv_status wire_parse_request(const void *message, uint32_t bytes, fkv_request *r, const uint8_t **key, const uint8_t **body);
fkv_status wire_parse_reply(const void *message, uint32_t bytes, fkv_reply *r, const uint8_t **body);
#endif
