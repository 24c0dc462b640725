/* ops.h: the operations: one table of what a request has, what it does, and what answers it, which every layer reads. A
 * new operation is a row here; then what it does at the owner (dataplane/request.c sends it on its way) and the call
 * that asks for it (node/client_calls.c).
 *
 * Invariant: a number, once released, is never given another meaning.
 *
 *   KEYED      has a key of 1 to FKV_KEY_MAX bytes
 *   CHANGES    changes its key's entry: has a sequence, so that a retry is known; needs FKV_TICKET_WRITE, and what does
 *              not change, FKV_TICKET_READ
 *   VALUED     carries a value, inline or by rendezvous, and a time to live
 *   EXPECTS    `expected` says something: a version, a cursor, an id
 *   COUNTED    `value_bytes` is the number of wanted entries, at least 1
 *   OF_SHARD   is about the shard that it names; else about all that the connection's owner thread serves
 *   ASIDE      asked for by clients for themselves: their reads wait for it, so it does not count against a quota, and
 *              is not repeated
 *   RENEWS     its value is a fkv_renewal; allowed under any ticket
 */
#ifndef FARKV_WIRE_OPS_H
#define FARKV_WIRE_OPS_H
#include <stdbool.h>
#include <stdint.h>

enum {
    FKV_REQUEST_RENDEZVOUS = 1,  /* the value is a fkv_rendezvous, to be READ by the owner */
    FKV_REQUEST_SCAN_VALUES = 2, /* SCAN replies with values too, where they fit */
    FKV_REQUEST_RETRY = 4,       /* this change was sent before */
    FKV_REQUEST_SCAN_COPY = 8,   /* SCAN of every namespace, by the server that the shard moves to */
    /* with SCAN_COPY: of the keys that were changed since a place in the shard's log of changes. `expected` = that
     * place, 0: the log begins now, if there is none, and nothing is listed; `version` of the last message = the next
     * place. An entry is what its key has by now; version 0: nothing. `user_flags` of the reply: FKV_CHANGED_*.
     * STALE_SEQUENCE: the log does not reach back so far */
    FKV_REQUEST_SCAN_CHANGED = 16,
    /* with SCAN_CHANGED: where the reply reaches the end of that log, the copy whose id is `expiry` joins there: it is
     * a backup from then on, and the reply has FKV_CHANGED_JOINED. BUSY: there are as many backups as there can be */
    FKV_REQUEST_SCAN_FROM_HERE = 32,
    FKV_REQUEST_SCAN_SPACES = 64 /* SCAN of every namespace, by a client; not with SCAN_COPY */
};

typedef enum fkv_op_trait {
    FKV_KEYED = 1,
    FKV_CHANGES = 2,
    FKV_VALUED = 4,
    FKV_EXPECTS = 8,
    FKV_COUNTED = 16,
    FKV_OF_SHARD = 32,
    FKV_ASIDE = 64,
    FKV_RENEWS = 128
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
 * CANCEL      the client no longer waits for request `expected`. There is no reply to CANCEL; the cancelled request is
 *             answered as ever, with ABORTED when it had not yet taken effect and was dropped
 * RENEW       the connection goes on under another ticket of the same client. UNAUTHORIZED: that one is not good, and
 *             the connection ends when the one before does */
#define FKV_OP_LIST(X)                                                                                          \
    X(1, LEASE, "lease", LEASE, FKV_ASIDE, 0, FKV_BODY_LEASES)                                                  \
    X(2, LAYOUT, "layout", LAYOUT, FKV_ASIDE | FKV_OF_SHARD, 0, FKV_BODY_LAYOUT)                                \
    X(3, GET, "get", GET, FKV_OF_KEY, 0, FKV_BODY_VALUE)                                                        \
    X(4, PUT, "put", PUT, FKV_A_CHANGE | FKV_VALUED, FKV_REQUEST_RENDEZVOUS | FKV_REQUEST_RETRY, FKV_BODY_NONE) \
    X(5, DELETE, "delete", DELETE, FKV_A_CHANGE, FKV_REQUEST_RETRY, FKV_BODY_NONE)                              \
    X(6, CAS, "cas", CAS, FKV_A_CHANGE | FKV_VALUED | FKV_EXPECTS, FKV_REQUEST_RENDEZVOUS | FKV_REQUEST_RETRY,  \
      FKV_BODY_NONE)                                                                                            \
    X(7, CAS_DELETE, "cas", CAS, FKV_A_CHANGE | FKV_EXPECTS, FKV_REQUEST_RETRY, FKV_BODY_NONE)                  \
    X(8, SCAN, "scan", SCAN, FKV_OF_SHARD | FKV_EXPECTS | FKV_COUNTED, FKV_SCAN_FLAGS, FKV_BODY_ENTRIES)        \
    X(9, CANCEL, "cancel", CANCEL, FKV_OF_SHARD | FKV_EXPECTS, 0, FKV_BODY_NO_REPLY)                            \
    X(10, RENEW, "lease", LEASE, FKV_ASIDE | FKV_RENEWS, 0, FKV_BODY_NONE)

typedef enum fkv_op {
#define X(number, NAME, name, counted, traits, flags, body) FKV_OP_##NAME = number,
    FKV_OP_LIST(X)
#undef X
        FKV_OP_COUNT /* arrays by operation have so many places, of which the first stays empty */
} fkv_op;

typedef struct fkv_op_row {
    const char *name;
    uint8_t counted, traits, flags, body; /* fkv_op, fkv_op_trait, FKV_REQUEST_*, fkv_op_body */
} fkv_op_row;
extern const fkv_op_row fkv_ops[FKV_OP_COUNT];

/* `op` is one of the list: what comes from a message is checked first (wire_parse_request). */
static inline uint8_t fkv_op_traits(uint8_t op) { return fkv_ops[op].traits; }
static inline bool fkv_op_is(uint8_t op, fkv_op_trait trait) { return fkv_op_traits(op) & trait; }
/* Whether it has a place of its own in statistics. */
static inline bool fkv_op_reported(uint8_t op) {
    return fkv_ops[op].counted == op && fkv_ops[op].body != FKV_BODY_NO_REPLY;
}
static inline fkv_op_body fkv_op_answer(uint8_t op) { return (fkv_op_body)fkv_ops[op].body; }

#endif
