/* worker_visit.h: for tests of what happens on a worker's thread: a function of the test runs there. */
#ifndef FARKV_TEST_WORKER_VISIT_H
#define FARKV_TEST_WORKER_VISIT_H
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
#endif
