/* responder.h: the owner's end of READs over tcp without sockets and threads, for driver.c: what a connection brought
 * is decoded and answered by tcp_serve into memory. The regions are those of a real table, under names, as a data plane
 * registers them.
 *
 * Not for: what taking bytes out of a socket and giving them back costs. Invariant: one thread; nothing here depends on
 * chance but the rkeys, of which there are so few that their places in the table of rkeys differ by an instruction or
 * two.
 */
#ifndef FARKV_BENCH_RESPONDER_H
#define FARKV_BENCH_RESPONDER_H
#include "../../native/serve/follow.h"
#include "../../native/fabric/tcp/tcp.h"
#include "../../native/test/table/table_host.h"

enum { RESPONDER_SEGMENTS = 64, RESPONDER_GROUP = 5, RESPONDER_TENANT = 3, RESPONDER_LARGEST = 512 };

typedef struct responder {
    host *h;
    fab_domain *domain;
    fab_mr *mr[RESPONDER_SEGMENTS]; /* as host.segments */
    tcp_cq cq;
    tcp_conn *conn;
    uint8_t *out;
    uint32_t number;
    uint64_t answered; /* bytes */
} responder;

static inline void responder_open(responder *r, host *h) {
    *r = (responder){ .h = h };
    CHECK(h->count <= RESPONDER_SEGMENTS);
    CHECK_EQ(fab_open(&(fab_options){ .provider = FAB_TCP, .follow = dataplane_follow }, &r->domain), 0);
    for (int i = 0; i < h->count; i++) {
        host_segment *s = &h->segments[i];
        CHECK_EQ(fab_reg(r->domain, &s->region, RESPONDER_TENANT, &r->mr[i]), 0);
        CHECK_EQ(fab_name(r->mr[i], RESPONDER_GROUP, s->kind == TABLE_HEAP ? s->number : FAB_NOWHERE), 0);
    }
    r->cq.io = (tcp_io){ .domain = (tcp_domain *)r->domain, .cq = &r->cq };
    r->conn = aligned_alloc(64, (sizeof *r->conn + 63) / 64 * 64);
    r->out = malloc(TCP_SCRATCH);
    CHECK(r->conn && r->out);
    memset(r->conn, 0, sizeof *r->conn);
    r->conn->head.cq = &r->cq.head;
    r->conn->io = &r->cq.io;
    r->conn->tenant = RESPONDER_TENANT;
    r->conn->requests = calloc(TCP_DEPTH, sizeof *r->conn->requests);
    CHECK(r->conn->requests);
}

static inline void responder_close(responder *r) {
    free(r->conn->requests);
    free(r->conn);
    free(r->out);
    for (int i = 0; i < r->h->count; i++) fab_dereg(r->mr[i]);
    fab_close(r->domain);
}

/* The request of a GET whose location is not known, as a client would send it: the key's bucket, and what that leads
 * to. */
static inline void responder_request(const responder *r, const void *key, size_t key_bytes,
                                     uint8_t bytes[TCP_FOLLOW_BYTES]) {
    uint64_t hash = host_hash(r->h, 0, key, key_bytes);
    uint32_t number = fkv_bucket_of(fkv_hash_bucket_bits(hash), table_buckets(r->h->t)), tag;
    const uint8_t *bucket = (const uint8_t *)host_bucket(r->h, number, &tag);
    int i = 0;
    while (r->h->segments[i].kind != TABLE_INDEX || r->h->segments[i].tag != tag) i++;
    uint64_t at = (uint64_t)(bucket - r->h->segments[i].region.base);
    CHECK_EQ(tcp_frame_encode(&(tcp_frame){ .type = TCP_FOLLOW,
                                            .argument = (uint64_t)RESPONDER_LARGEST << 32 | FKV_BUCKET_BYTES,
                                            .rkey = fab_mr_rkey(r->mr[i]),
                                            .addr = fab_mr_addr(r->mr[i]) + at,
                                            .follow = hash },
                              bytes),
             TCP_FOLLOW_BYTES);
}

static inline void responder_take(responder *r, const uint8_t bytes[TCP_FOLLOW_BYTES]) {
    tcp_frame f;
    CHECK_EQ(tcp_frame_decode(bytes, TCP_FOLLOW_BYTES, 1 << 20, &f), TCP_FOLLOW_BYTES);
    r->conn->requests[r->conn->serve_tail++ % TCP_DEPTH] = (tcp_request){ .rkey = f.rkey,
                                                                          .addr = f.addr,
                                                                          .number = r->number++,
                                                                          .bytes = (uint32_t)f.argument,
                                                                          .next_bytes = (uint32_t)(f.argument >> 32),
                                                                          .follow = f.follow };
}

/* Answers all that was asked, and sees that every answer brought an extent. */
static inline void responder_answer(responder *r, uint32_t asked) {
    size_t used = tcp_serve(r->conn, r->out, TCP_SCRATCH);
    CHECK(r->conn->serve_head == r->conn->serve_tail && !r->conn->nak);
    CHECK(used > asked * (2 * TCP_HEADER_BYTES + FKV_BUCKET_BYTES + 100u));
    r->answered += used;
}

#endif
