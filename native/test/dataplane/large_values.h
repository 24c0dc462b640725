/* large_values.h: large values in the memory of a test's client, and PUTs by rendezvous. */
#ifndef FARKV_TEST_LARGE_VALUES_H
#define FARKV_TEST_LARGE_VALUES_H
#include "raw_client.h"

typedef struct memory {
    fkv_region region;
    fab_mr *mr;
} memory;

static inline void memory_make(memory *m, raw *of, size_t bytes, uint32_t seed) {
    CHECK_EQ(fkv_region_alloc("test", bytes, FKV_REGION_PREFAULT, &m->region), 0);
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
        uint32_t word = (uint32_t)i * 2654435761u + seed;
        memcpy(m->region.base + i, &word, 4);
    }
    CHECK_EQ(fab_reg(of->domain, &m->region, 0, &m->mr), 0);
}
static inline void memory_free(memory *m) {
    fab_dereg(m->mr);
    fkv_region_free(&m->region);
}
static inline fkv_request large_put(raw *from, const memory *m, const char *key, uint32_t bytes, fkv_rendezvous *v) {
    fkv_request q = raw_request(from, FKV_OP_PUT, key);
    q.flags = FKV_REQUEST_RENDEZVOUS;
    q.value_bytes = bytes;
    *v = (fkv_rendezvous){ .rkey = fab_mr_rkey(m->mr),
                           .addr = fab_mr_addr(m->mr),
                           .region_addr = fab_mr_addr(m->mr),
                           .region_bytes = m->region.bytes };
    return q;
}
static inline uint64_t large_put_begin(raw *from, const memory *m, const char *key, uint32_t bytes) {
    fkv_rendezvous v;
    fkv_request q = large_put(from, m, key, bytes, &v);
    return raw_send(from, &q, key, &v, sizeof v);
}
/* Whether the message that ends this request is here already. */
static inline bool is_here(raw *of, uint64_t id) {
    for (raw_message *m = of->first; m; m = m->next)
        if (m->reply.id == id && !(m->reply.flags & FKV_REPLY_MORE)) return true;
    return false;
}
#endif
