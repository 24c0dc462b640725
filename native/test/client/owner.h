/* owner.h: what an owner's data plane would answer, from a table of table_host.h: for tests whose fabric is not a
 * thread's. No deduplication, no waiting, values in one message only. */
#ifndef FARKV_TEST_OWNER_H
#define FARKV_TEST_OWNER_H
#include "../../wire/wire.h"
#include "../table/table_host.h"

enum { OWNER_SEGMENTS = 256, OWNER_MESSAGE = 16 << 10 };

typedef struct owner_key {
    uint64_t rkey, addr;
} owner_key;
typedef struct owner_life {
    uint32_t shard, epoch;
    uint64_t incarnation, lease_ns;
    bool grants; /* LEASE replies list the shard */
    /* How the fabric names a segment. */
    owner_key (*key_of)(void *ctx, const table_segment *s);
    void *ctx;
} owner_life;

static inline uint32_t owner_layout(host *h, const owner_life *o, uint8_t *out) {
    table_segment s[OWNER_SEGMENTS];
    int n = table_segments(h->t, s, OWNER_SEGMENTS);
    CHECK(n <= OWNER_SEGMENTS);
    fkv_layout head = { .incarnation = o->incarnation,
                        .layout_epoch = table_layout_epoch(h->t),
                        .buckets = table_buckets(h->t),
                        .epoch = o->epoch,
                        .count = (uint32_t)n,
                        .here = (uint32_t)n };
    memcpy(out, &head, sizeof head);
    for (int i = 0; i < n; i++) {
        owner_key k = o->key_of(o->ctx, &s[i]);
        fkv_layout_segment g = { .kind = (uint8_t)s[i].kind,
                                 .segment = s[i].segment,
                                 .tag = s[i].tag,
                                 .bytes = s[i].bytes,
                                 .rkey = k.rkey,
                                 .addr = k.addr };
        memcpy(out + sizeof head + (size_t)i * sizeof g, &g, sizeof g);
    }
    return (uint32_t)(sizeof head + (size_t)n * sizeof(fkv_layout_segment));
}
static inline fkv_status owner_change(host *h, const fkv_request *q, const uint8_t *key, const uint8_t *body,
                                      uint64_t *version) {
    static const table_op_kind kinds[] = { [FKV_OP_PUT] = TABLE_PUT,
                                           [FKV_OP_DELETE] = TABLE_DELETE,
                                           [FKV_OP_CAS] = TABLE_CAS,
                                           [FKV_OP_CAS_DELETE] = TABLE_CAS_DELETE };
    table_op op = host_op(h, kinds[q->op], key, q->key_bytes, body, q->value_bytes);
    op.expected_version = q->expected;
    return host_do_patiently(h, &op, version);
}
/* The reply's bytes in `out` (OWNER_MESSAGE of room); 0: there is none. */
static inline uint32_t owner_answer(host *h, const owner_life *o, const fkv_request *q, const uint8_t *key,
                                    const uint8_t *body, uint8_t *out) {
    fkv_reply r = { .op = q->op, .shard = q->shard, .id = q->id };
    uint8_t *to = out + sizeof r;
    if (q->op == FKV_OP_CANCEL) return 0;
    if (q->op == FKV_OP_LEASE) {
        fkv_lease_shard s = { .shard = o->shard,
                              .layout_epoch = table_layout_epoch(h->t),
                              .incarnation = o->incarnation };
        r.version = h->wall_ms;
        r.expiry_ms = o->lease_ns;
        r.body_bytes = o->grants ? sizeof s : 0;
        memcpy(to, &s, r.body_bytes);
    } else if (q->op == FKV_OP_LAYOUT) {
        r.layout_epoch = table_layout_epoch(h->t);
        r.buckets = table_buckets(h->t);
        r.body_bytes = owner_layout(h, o, to);
    } else if (q->op == FKV_OP_GET) {
        table_entry e;
        fkv_status s = host_get(h, key, q->key_bytes, &e);
        r.status = (uint8_t)s;
        if (s == FKV_OK) {
            CHECK(sizeof r + e.value_bytes <= OWNER_MESSAGE);
            r.version = e.version;
            r.value_bytes = r.body_bytes = e.value_bytes;
            r.user_flags = e.user_flags;
            r.codec = e.codec;
            memcpy(to, e.value, e.value_bytes);
        }
    } else {
        r.status = (uint8_t)owner_change(h, q, key, body, &r.version);
    }
    memcpy(out, &r, sizeof r);
    return (uint32_t)sizeof r + r.body_bytes;
}
#endif
