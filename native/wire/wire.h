/* wire.h: the messages that travel by SEND between a client and an owner's data plane. Little-endian, packed by hand.
 *
 * A connection is made with fab_connect whose private data is a fkv_hello. It is made twice:
 *
 *   fkv_hello, challenge 0             ---->
 *                                      <----  rejected, with a fkv_challenge: a number and 16 bytes never used before
 *   fkv_hello, ticket, proof           ---->  checks the proof, the ticket, and that the challenge was not answered yet
 *                                      <----  accepted with a fkv_welcome, or rejected with one that has the status
 *
 * So a connection that has rights has shown its key, over any transport: before that there is no connection whose READs
 * would have to be refused. What was heard on the wire opens nothing: each challenge is answered once, by whoever has
 * the key, which does not travel here. After that:
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
 * STALE_SEQUENCE when its window may have been forgotten, and is never sent again after FKV_DEDUP_IDLE_MS / 2. A change
 * that is answered BUSY, NOT_OWNER or SHARD_CLOSED, and was sent once, had no effect and has none later. UNDECIDED says
 * that it may: its owner has sent it to a backup, which may be the next owner, and does not learn any more what became
 * of it. It is to be sent again under the same sequence, with FKV_REQUEST_RETRY, to whoever owns the shard then. Windows
 * go with a shard to a copy that becomes the next owner's, and to nobody who opens it empty, nor to the next start of
 * this owner: there a retry of what was sent before is STALE_SEQUENCE.
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
    FKV_APPEND_MAX = 8 << 10,      /* bytes of one APPEND, and of the fields of one request */
    FKV_MESSAGE_MIN = 4096,        /* a peer that takes only smaller messages (fab_max_message) is refused */
    FKV_SCAN_REPLY_MAX = 12 << 10, /* bytes of entries in one message of a SCAN reply */
    FKV_SCAN_STEP_MAX = 256 << 10  /* bytes of entries in all messages of one SCAN reply */
};
#define FKV_TTL_MAX      ((uint64_t)1 << 46) /* milliseconds; arrival plus this fits the 48 bits of an extent's expiry */

#define FKV_SEQUENCE_MAX (((uint64_t)1 << 56) - 1)

/* ---- connection ---- */
typedef struct fkv_ticket { /* made by any server's control plane for an authenticated client */
    uint64_t client;        /* random, not 0; given by a server, and the same for as long as the client can prove it */
    uint64_t expires_ms;    /* wall clock */
    uint32_t life_ms;       /* it was made so long before that */
    uint16_t tenant;        /* which shards it may use, and by which rkeys; 0 is the default one */
    uint8_t flags;          /* FKV_TICKET_* */
    uint8_t secret;         /* number of the secret that it was made with, modulo 256 */
} fkv_ticket;
static_assert(sizeof(fkv_ticket) == 24, "fits the private data");
/* COPY, REPLICA: servers only; for FKV_REQUEST_SCAN_COPY, and for links (peer.h), over which there are no requests */
enum {
    FKV_TICKET_READ = 1,
    FKV_TICKET_WRITE = 2,
    FKV_TICKET_COPY = 4,
    FKV_TICKET_REPLICA = 8,
    FKV_TICKET_SERVERS = FKV_TICKET_COPY | FKV_TICKET_REPLICA
};

/* A ticket as only those who know the secret can read it: its code, and itself encrypted. Who hears it on the wire
 * learns neither the client nor its tenant. */
enum { FKV_NAME_BYTES = 16 + sizeof(fkv_ticket) };
/* What the control plane gives a client: the ticket, which is no secret, and its key, which is one: the code of the
 * ticket under the cluster's secret. Owners compute it, so they need to be told of no client. And the name by which a
 * client says which key it has, before there is a connection that nobody can read. */
typedef struct fkv_pass {
    fkv_ticket ticket;
    fkv_seed key;
    uint8_t name[FKV_NAME_BYTES];
} fkv_pass;
static_assert(sizeof(fkv_pass) == 80, "as JavaScript has it");
void fkv_pass_make(const fkv_seed *secret, const fkv_ticket *t, fkv_pass *out);
/* Whether a client that shows this pass was given it; its time is not looked at. Constant time in the key's bytes. */
bool fkv_pass_ok(const fkv_seed *secret, const fkv_pass *p);
/* The key of a ticket. A pure function: what a transport calls that proves possession of a key by itself. */
fkv_seed fkv_ticket_key(const fkv_seed *secret, const fkv_ticket *t);

/* The ticket of that name; false: it was not made with this secret. */
bool fkv_ticket_named(const fkv_seed *secret, const uint8_t name[FKV_NAME_BYTES], fkv_ticket *out);

enum { FKV_PROOF_BYTES = 16, FKV_NONCE_BYTES = 16 };
/* Shows that whoever has made it has the key, once for each nonce and each `head`, which says what it is for. */
void fkv_prove(const fkv_seed *key, uint64_t head, const fkv_ticket *t, const uint8_t nonce[FKV_NONCE_BYTES],
               uint8_t proof[FKV_PROOF_BYTES]);
/* Constant time in the proof's bytes. */
bool fkv_proof_ok(const fkv_seed *key, uint64_t head, const fkv_ticket *t, const uint8_t nonce[FKV_NONCE_BYTES],
                  const uint8_t proof[FKV_PROOF_BYTES]);

typedef struct fkv_hello {
    uint16_t magic; /* FKV_HELLO_MAGIC */
    uint8_t version_min, version_max;
    uint32_t challenge; /* the one that is answered; 0: one is asked for, and the rest is zero */
    fkv_ticket ticket;
    uint8_t proof[FKV_PROOF_BYTES]; /* `head` is the first 8 bytes of this */
} fkv_hello;
static_assert(sizeof(fkv_hello) == 48, "at most FAB_PRIVATE_MAX");
enum { FKV_HELLO_MAGIC = 0x4b46 }; /* "FK" */
static inline uint64_t fkv_hello_head(const fkv_hello *h) {
    return h->magic | (uint64_t)h->version_min << 16 | (uint64_t)h->version_max << 24 | (uint64_t)h->challenge << 32;
}

typedef struct fkv_challenge {
    uint32_t magic;  /* FKV_CHALLENGE_MAGIC, which no welcome begins with */
    uint32_t number; /* not 0 */
    uint8_t nonce[FKV_NONCE_BYTES];
} fkv_challenge;
static_assert(sizeof(fkv_challenge) == 24, "drawing");
enum { FKV_CHALLENGE_MAGIC = 0x48434b46 }; /* "FKCH" */
/* The body of a RENEW: a connection ends when its ticket expires, and goes on under this one. */
typedef struct fkv_renewal {
    fkv_ticket ticket;
    uint8_t proof[FKV_PROOF_BYTES]; /* against the nonce of the challenge that the connection began with */
} fkv_renewal;
static_assert(sizeof(fkv_renewal) == 40, "drawing");
#define FKV_RENEWAL_HEAD ((uint64_t)0x574e4552) /* "RENW", which no hello begins with */

/* The hello that answers it; challenge NULL: the one that asks. */
fkv_hello fkv_hello_make(const fkv_pass *p, const fkv_challenge *challenge);

/* Why an owner ended a connection to a client: what its operator reads, and the client is told by its next welcome.
 * NONE: it did not, or has forgotten. */
typedef enum fkv_end {
    FKV_END_NONE,
    FKV_END_QUOTA,     /* more than twice as many requests as its quota were at the owner */
    FKV_END_STALL,     /* it took no replies */
    FKV_END_MALFORMED, /* a message was too short to be a request */
    FKV_END_SURPLUS,   /* it had too many connections to one worker */
    FKV_END_TICKET,    /* its ticket had expired or was revoked */
    FKV_END_COUNT
} fkv_end;
const char *fkv_end_name(fkv_end e); /* as EndReason in core/protocol/end-reason.ts has it; NONE: "" */

typedef struct fkv_welcome {
    uint32_t magic;          /* FKV_WELCOME_MAGIC */
    uint8_t version, status; /* status: fkv_status; OK when accepted */
    uint8_t ended;           /* fkv_end: why the owner ended the client's connection before this one */
    uint8_t reserved;
    uint64_t server_incarnation;
    uint32_t lease_ms;  /* how long a granted lease lasts */
    uint32_t drift_ppm; /* bound on the clocks' difference in rate */
    uint64_t wall_ms;   /* the owner's wall clock, for expiry */
    /* Requests of this connection, but those with the trait ASIDE, that may be at the owner: from their SEND to the last
     * message of their reply. 0: any number. */
    uint32_t quota;
    uint32_t takes; /* FKV_TAKES_* */
} fkv_welcome;
enum { FKV_TAKES_REPORTS = 1 }; /* a LEASE may have a fkv_report */
static_assert(sizeof(fkv_welcome) == 40, "at most FAB_PRIVATE_MAX");
enum { FKV_WELCOME_MAGIC = 0x564b5246 }; /* "FRKV" */

/* The value of a LEASE: what the client's GETs have done since its last LEASE, at whatever owner. An owner adds it to its
 * figures and relies on nothing of it. Sent at most once: what a broken connection takes with it is missing there. A
 * client that ends sends its last one with one more LEASE, of which it does not await the reply. */
typedef struct fkv_report {
    uint32_t hits, misses, reads, followed; /* followed: of `reads`, those that brought the extent too */
    uint32_t torn, late, foreign,
        two_sided; /* READs that failed a check, by which; GETs that the owner was asked for */
    uint64_t read_bytes;
} fkv_report;
static_assert(sizeof(fkv_report) == 40, "drawing");

/* ---- requests ---- */
enum {
    FKV_CHANGED_ALL = 1, /* there was no more to list */
    /* the copy has joined: behind the entries are those of FKV_SCAN_JOIN_POINT and FKV_SCAN_SEQUENCES. 2 had another
     * meaning and is free no more */
    FKV_CHANGED_JOINED = 4
};

typedef struct fkv_request {
    uint8_t op, flags, codec, reserved;
    uint32_t shard;
    uint64_t id;
    /* changes: from 1, one more with each change of one client on one shard; at most FKV_SEQUENCE_MAX; else 0 */
    uint64_t sequence;
    uint64_t expected; /* CAS: version; SCAN, TALLY: cursor */
    /* EXPIRES: time to live in milliseconds from arrival, <= FKV_TTL_MAX, 0 never; SCAN_FROM_HERE: id of the copy, not
     * 0; else 0 */
    uint64_t expiry;
    uint32_t value_bytes;
    uint32_t user_flags;
    uint16_t key_bytes, space;
    uint32_t reserved2;
} fkv_request;
static_assert(sizeof(fkv_request) == 56, "drawing");

/* The value lies in the client's registered memory, at addr under rkey; region_* is that memory as a whole, for
 * fab_attach, and of which every page must be there (shm). It must stay as it is until the reply has come or the
 * connection is gone. */
typedef struct fkv_rendezvous {
    uint64_t rkey, addr, region_addr, region_bytes;
} fkv_rendezvous;
static_assert(sizeof(fkv_rendezvous) == 32, "drawing");
/* The largest value and as much again: an owner maps four such regions of a client at most. */
#define FKV_RENDEZVOUS_REGION_MAX ((uint64_t)128 << 20)

/* ---- replies ---- */
enum { FKV_REPLY_MORE = 1 }; /* another message with this id follows */
typedef struct fkv_reply {
    uint8_t op, status, flags, codec;
    uint32_t shard;
    uint64_t id;
    /* changes, GET: the entry's version; VERSION_MISMATCH: the version there is; SCAN, TALLY: next cursor; LEASE: the owner's
     * wall clock in milliseconds */
    uint64_t version;
    /* GET: wall clock; LEASE: nanoseconds granted, counted from when the request was sent; changes that derive: what
     * they answer beside the version, which a retry is answered again (ops.h); TALLY: how many; else 0 */
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
    uint8_t codec, has_value; /* FKV_SCAN_VALUE_* */
    uint16_t space;           /* SCAN_COPY, SCAN_SPACES; else 0 */
    uint16_t kind;            /* FKV_SCAN_*; 0 but in a reply with FKV_CHANGED_JOINED */
} fkv_scan_entry;
static_assert(sizeof(fkv_scan_entry) == 32, "drawing");

/* Whether a value follows. CHECKED: to a server that copies (SCAN_COPY), and a CRC32C behind it of this
 * entry, its key and its value. */
enum { FKV_SCAN_VALUE_NONE, FKV_SCAN_VALUE_PLAIN, FKV_SCAN_VALUE_CHECKED };
enum { FKV_SCAN_CHECK_BYTES = 4 };

/* Entries that are not of the table: their value is what is said, their key is one byte without a meaning. A copy joins:
 * JOIN_POINT is a fkv_join_point, once; SEQUENCES are fkv_join_sequence[], any number of times: of each client, the
 * highest sequence of which no more is known than that it was used. */
enum { FKV_SCAN_ENTRY, FKV_SCAN_JOIN_POINT, FKV_SCAN_SEQUENCES };
typedef struct fkv_join_point {
    uint64_t lsn;   /* the listed entries have all records up to here, and the link brings what follows */
    uint32_t epoch; /* of the owner */
    /* for so long a retry of a client that is not in SEQUENCES may be of a change that was made */
    uint32_t doubt_ms;
} fkv_join_point;
static_assert(sizeof(fkv_join_point) == 16, "drawing");
typedef struct fkv_join_sequence {
    uint64_t client, sequence;
} fkv_join_sequence;
static_assert(sizeof(fkv_join_sequence) == 16, "drawing");

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
/* Writes at `to`, behind e, key and value, what says how they were; and whether they are, where it says so. */
void wire_put_scan_check(uint8_t *to, const fkv_scan_entry *e, const uint8_t *key, const uint8_t *value);
bool wire_scan_value_whole(const fkv_scan_entry *e, const uint8_t *key, const uint8_t *value);
#endif
