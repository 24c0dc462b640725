/* worker_visit.h: for tests of what happens on a worker's thread: a function of the test runs there. */
#ifndef FARKV_TEST_WORKER_VISIT_H
#define FARKV_TEST_WORKER_VISIT_H
#include "../../storage/shard.h"
#include "../../dataplane/worker.h"
#include "dataplane_rig.h"

typedef struct rig_visitor {
    job job;
    rig_call call;
    worker *w;
    void (*f)(worker *w, void *ctx);
    void *ctx;
} rig_visitor;

static inline void rig_visited(job *j) {
    rig_visitor *v = (rig_visitor *)j;
    v->f(v->w, v->ctx);
    rig_done(&v->call, FKV_OK, NULL);
}
/* On the thread of worker 0, as one of the jobs that its turn begins with. Returns when it has run. */
static inline void rig_visit(rig *r, void (*f)(worker *w, void *ctx), void *ctx) {
    rig_visitor v = { .job = { .run = rig_visited }, .w = r->d->worker[0], .f = f, .ctx = ctx };
    rig_call_init(&v.call);
    worker_post(v.w, &v.job);
    rig_wait(&v.call);
}

/* One bit of a value that is there changes by itself. */
typedef struct rig_damage {
    uint32_t shard;
    const char *key;
} rig_damage;
static inline void rig_flip(worker *w, void *ctx) {
    const rig_damage *at = ctx;
    table_entry e;
    size_t n = strlen(at->key);
    uint64_t hash = fkv_hash_key(&w->d->c.hash_seed, 0, at->key, (uint32_t)n);
    CHECK_EQ(table_committed(w->by_number[at->shard]->table, 0, at->key, (uint16_t)n, hash, &e), FKV_OK);
    *(uint8_t *)(uintptr_t)&e.value[0] ^= 1;
}
static inline void rig_damages(rig *r, uint32_t shard, const char *key) {
    rig_visit(r, rig_flip, &(rig_damage){ .shard = shard, .key = key });
}
#endif
