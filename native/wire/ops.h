/* ops.h: the operations: one table of what a request has, what it does, and what answers it, which every layer reads. A
 * new operation is a row here; then what it does at the owner (serve/request.c sends it on its way) and the call
 * that asks for it (node/client_calls.c).
 *
 * Invariant: a number, once released, is never given another meaning.
 *
 *   KEYED      has a key of 1 to FKV_KEY_MAX bytes
 *   PREFIXED   may have bytes in the place of a key: it is about the keys that begin with them
 *   CHANGES    changes its key's entry: has a sequence, so that a retry is known; needs FKV_TICKET_WRITE, and what does
 *              not change, FKV_TICKET_READ
 *   VALUED     carries a value, inline or by rendezvous
 *   EXPIRES    carries a time to live
 *   DERIVES    the owner makes the entry from the present one; the answer's `expiry_ms` is what came of it (wire.h)
 *   EXPECTS    `expected` says something: a version, a cursor, an id
 *   COUNTED    `value_bytes` is the number of wanted entries, at least 1
 *   OF_SHARD   is about the shard that it names; else about all that the connection's owner thread serves
 *   ASIDE      asked for by clients for themselves: their reads wait for it, so it does not count against a quota, and
 *              is not repeated
 *   RENEWS     its value is a fkv_renewal; allowed under any ticket
 *   FIELDS     its value is fields, at least one (fields.h), and its codec is theirs
 *   REPORTS    its value is a fkv_report, or there is none
 */
#ifndef FARKV_WIRE_OPS_H
#define FARKV_WIRE_OPS_H
#include <stdbool.h>
#include <stdint.h>

enum {
    FKV_REQUEST_RENDEZVOUS = 1,  /* the value is a fkv_rendezvous, to be READ by the owner */
    FKV_REQUEST_SCAN_VALUES = 2, /* SCAN replies with values too, where they fit; SCAN_COPY: small ones */
    FKV_REQUEST_RETRY = 4,       /* this change was sent before */
    FKV_REQUEST_SCAN_COPY = 8,   /* SCAN of every namespace, by a server that copies the shard */
    /* with SCAN_COPY: of the keys that were changed since a place in the shard's log of changes. `expected` = that
     * place, 0: the log begins now, if there is none, and nothing is listed; `version` of the last message = the next
     * place. An entry is what its key has by now; version 0: nothing. `user_flags` of the reply: FKV_CHANGED_*.
     * STALE_SEQUENCE: the log does not reach back so far */
    FKV_REQUEST_SCAN_CHANGED = 16,
    /* with SCAN_CHANGED: where the reply reaches the end of that log, the copy whose id is `expiry` joins there: it is
     * a backup from then on, and the reply has FKV_CHANGED_JOINED. BUSY: there are as many backups as there can be */
    FKV_REQUEST_SCAN_FROM_HERE = 32,
    FKV_REQUEST_SCAN_SPACES = 64, /* SCAN of every namespace, by a client; not with SCAN_COPY */
    FKV_REQUEST_KEEP_EXPIRY = 128 /* the present entry's expiry stays; `expiry` is 0 */
};

typedef enum fkv_op_trait {
    FKV_KEYED = 1,
    FKV_CHANGES = 2,
    FKV_VALUED = 4,
    FKV_EXPECTS = 8,
    FKV_COUNTED = 16,
    FKV_OF_SHARD = 32,
    FKV_ASIDE = 64,
    FKV_RENEWS = 128,
    FKV_EXPIRES = 256,
    FKV_DERIVES = 512,
    FKV_PREFIXED = 1024,
    FKV_FIELDS = 2048,
    FKV_REPORTS = 4096
} fkv_op_trait;

/* What a reply's body is. */
typedef enum fkv_op_body {
    FKV_BODY_NONE, /* there is none */
    /* fkv_lease_shard[]; with FKV_REPLY_MORE each message is a grant of its own for the shards it lists */
    FKV_BODY_LEASES,
    FKV_BODY_LAYOUT,  /* fkv_layout, then fkv_layout_segment[here] */
    FKV_BODY_VALUE,   /* the value, in one or several messages (FKV_REPLY_MORE) */
    FKV_BODY_ENTRIES, /* fkv_scan_entry + key [+ value], ..., whole entries in each message */
    FKV_BODY_NO_REPLY
} fkv_op_body;

#define FKV_OF_KEY   (FKV_KEYED | FKV_OF_SHARD)
#define FKV_A_CHANGE (FKV_OF_KEY | FKV_CHANGES)
#define FKV_A_WALK   (FKV_OF_SHARD | FKV_EXPECTS | FKV_PREFIXED)
#define FKV_A_VALUE  (FKV_A_CHANGE | FKV_VALUED | FKV_EXPIRES)
#define FKV_A_HASH   (FKV_A_CHANGE | FKV_VALUED | FKV_DERIVES | FKV_FIELDS)
#define FKV_SCAN_FLAGS                                                                                         \
    (FKV_REQUEST_SCAN_VALUES | FKV_REQUEST_SCAN_COPY | FKV_REQUEST_SCAN_CHANGED | FKV_REQUEST_SCAN_FROM_HERE | \
     FKV_REQUEST_SCAN_SPACES)

/* number, C name, name in statistics, where it is counted, traits, flags that a request may have, body of the reply
 *
 * LEASE       asks for or renews the lease of all shards that this connection's owner thread serves
 * LAYOUT      asks for the segments of one shard
 * GET         two-sided
 * CAS         like PUT, with the version `expected`
 * SCAN        `expected` = cursor. A reply ends after the bucket chain in which the wanted entries are reached, so it
 *             may have more; `version` of the last message = next cursor, 0 at the end
 * TALLY       counts what a SCAN would list, as far as it gets in one turn: `expiry_ms` of the reply says how many, and
 *             `version` is the next cursor, 0 at the end
 * CANCEL      the client no longer waits for request `expected`. There is no reply to CANCEL; the cancelled request is
 *             answered as ever, with ABORTED when it had not yet taken effect and was dropped
 * RENEW       the connection goes on under another ticket of the same client. UNAUTHORIZED: that one is not good, and
 *             the connection ends when the one before does
 * INCREMENT   adds `expected`, a signed number, to a value that is one in decimal text; absent: 0. Answers the sum
 * APPEND      puts its value, at most FKV_APPEND_MAX bytes, behind the present one; absent: empty. Answers the length
 * TOUCH       the entry ends after this time to live, or never; nothing else of it changes but its version
 *             Of INCREMENT and APPEND the time to live and the codec are those of a new entry; a present one keeps its
 *             own. A present entry of another codec: WRONG_CODEC
 * SET_FIELDS  its fields are in the hash, in place of those of the same names; absent: empty. Answers how many are new.
 *             `expected` 1: only if the hash has none of them, else VERSION_MISMATCH
 * DELETE_FIELDS   takes the fields of its names out of the hash, and the last one with its entry. Answers how many;
 *             NOT_FOUND: none
 * INCREMENT_FIELD adds `expected` to the field of its only name, as INCREMENT does; absent: 0. Answers the sum;
 *             NOT_INTEGER answers 1 where the sum is none, else 0
 *             A hash keeps its time to live. A present entry that is no hash: WRONG_CODEC; one that would have more than
 *             FKV_FIELDS_MAX bytes: VALUE_TOO_LARGE */
#define FKV_CAS_FLAGS (FKV_REQUEST_RENDEZVOUS | FKV_REQUEST_RETRY | FKV_REQUEST_KEEP_EXPIRY)
#define FKV_OP_LIST(X)                                                                                       \
    X(1, LEASE, "lease", LEASE, FKV_ASIDE | FKV_REPORTS, 0, FKV_BODY_LEASES)                                 \
    X(2, LAYOUT, "layout", LAYOUT, FKV_ASIDE | FKV_OF_SHARD, 0, FKV_BODY_LAYOUT)                             \
    X(3, GET, "get", GET, FKV_OF_KEY, 0, FKV_BODY_VALUE)                                                     \
    X(4, PUT, "put", PUT, FKV_A_VALUE, FKV_REQUEST_RENDEZVOUS | FKV_REQUEST_RETRY, FKV_BODY_NONE)            \
    X(5, DELETE, "delete", DELETE, FKV_A_CHANGE, FKV_REQUEST_RETRY, FKV_BODY_NONE)                           \
    X(6, CAS, "cas", CAS, FKV_A_VALUE | FKV_EXPECTS, FKV_CAS_FLAGS, FKV_BODY_NONE)                           \
    X(7, CAS_DELETE, "cas", CAS, FKV_A_CHANGE | FKV_EXPECTS, FKV_REQUEST_RETRY, FKV_BODY_NONE)               \
    X(8, SCAN, "scan", SCAN, FKV_A_WALK | FKV_COUNTED, FKV_SCAN_FLAGS, FKV_BODY_ENTRIES)                     \
    X(9, CANCEL, "cancel", CANCEL, FKV_OF_SHARD | FKV_EXPECTS, 0, FKV_BODY_NO_REPLY)                         \
    X(10, RENEW, "lease", LEASE, FKV_ASIDE | FKV_RENEWS, 0, FKV_BODY_NONE)                                   \
    X(11, INCREMENT, "increment", INCREMENT, FKV_A_CHANGE | FKV_EXPECTS | FKV_EXPIRES | FKV_DERIVES,         \
      FKV_REQUEST_RETRY, FKV_BODY_NONE)                                                                      \
    X(12, APPEND, "append", APPEND, FKV_A_VALUE | FKV_DERIVES, FKV_REQUEST_RETRY, FKV_BODY_NONE)             \
    X(13, TOUCH, "touch", TOUCH, FKV_A_CHANGE | FKV_EXPIRES | FKV_DERIVES, FKV_REQUEST_RETRY, FKV_BODY_NONE) \
    X(14, TALLY, "scan", SCAN, FKV_A_WALK, 0, FKV_BODY_NONE)                                                 \
    X(15, SET_FIELDS, "fields", SET_FIELDS, FKV_A_HASH | FKV_EXPECTS, FKV_REQUEST_RETRY, FKV_BODY_NONE)      \
    X(16, DELETE_FIELDS, "fields", SET_FIELDS, FKV_A_HASH, FKV_REQUEST_RETRY, FKV_BODY_NONE)                 \
    X(17, INCREMENT_FIELD, "fields", SET_FIELDS, FKV_A_HASH | FKV_EXPECTS, FKV_REQUEST_RETRY, FKV_BODY_NONE)

typedef enum fkv_op {
#define X(number, NAME, name, counted, traits, flags, body) FKV_OP_##NAME = number,
    FKV_OP_LIST(X)
#undef X
        FKV_OP_COUNT /* arrays by operation have so many places, of which the first stays empty */
} fkv_op;

typedef struct fkv_op_row {
    const char *name;
    uint8_t counted, flags, body; /* fkv_op, FKV_REQUEST_*, fkv_op_body */
    uint16_t traits;              /* fkv_op_trait */
} fkv_op_row;
extern const fkv_op_row fkv_ops[FKV_OP_COUNT];

/* `op` is one of the list: what comes from a message is checked first (wire_parse_request). */
static inline uint16_t fkv_op_traits(uint8_t op) { return fkv_ops[op].traits; }
static inline bool fkv_op_is(uint8_t op, fkv_op_trait trait) { return fkv_op_traits(op) & trait; }
/* What it leaves, if anything, is an entry: its record has a value. */
static inline bool fkv_op_writes(uint8_t op) { return fkv_op_traits(op) & (FKV_VALUED | FKV_DERIVES); }
/* Whether it has a place of its own in statistics. */
static inline bool fkv_op_reported(uint8_t op) {
    return fkv_ops[op].counted == op && fkv_ops[op].body != FKV_BODY_NO_REPLY;
}
static inline fkv_op_body fkv_op_answer(uint8_t op) { return (fkv_op_body)fkv_ops[op].body; }

#endif
