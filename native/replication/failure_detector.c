/* failure_detector.c: see failure_detector.h. */
#include "failure_detector.h"
#include "../dataplane/worker.h"
#include "durable.h"

enum { DOUBTS_A_LEASE = 4 };
static const uint64_t MS = 1000000;

static void tell(backup *b, bool gone) {
    const dataplane_config *c = &b->shard->w->d->c;
    if (b->suspects == gone || b->failed != FKV_OK) return;
    b->suspects = gone;
    if (gone && b->shard->durable) durable_hurry(b->shard->w); /* it may be the only copy soon */
    dataplane_suspicion o = { .shard = b->shard->number, .gone = gone, .id = b->id, .prepared = b->place.prepared };
    if (c->on_suspicion) c->on_suspicion(c->ctx, &o);
}

void suspect_owner_of(const fkv_list *copies) {
    for (const fkv_list *i = copies->next; i != copies; i = i->next) tell(LIST_OF(i, backup, of_link), true);
}

void unsuspect_owner(backup *b) { tell(b, false); }

/* A thread that stood still itself has not looked: so an owner whose lease is over is in doubt for a part of a lease,
 * with at least one look at what has come, before it counts as silent. Returns when to look again. */
static uint64_t watch(backup *b, uint64_t heard_ns, uint64_t now) {
    uint64_t lease = b->lease_ms * MS;
    uint64_t over = max_u64(b->place.granted_until_ns, max_u64(heard_ns, b->followed_ns) + lease);
    if (b->suspects || now < over)
        b->doubt_ns = 0;
    else if (b->doubt_ns == 0)
        b->doubt_ns = now + lease / DOUBTS_A_LEASE;
    else if (now >= b->doubt_ns)
        tell(b, true);
    if (b->suspects) return now + lease;
    return b->doubt_ns ? b->doubt_ns : over;
}

uint64_t watch_owner_of(const fkv_list *copies, uint64_t heard_ns, uint64_t now_ns) {
    uint64_t at = UINT64_MAX;
    for (const fkv_list *i = copies->next; i != copies; i = i->next)
        at = min_u64(at, watch(LIST_OF(i, backup, of_link), heard_ns, now_ns));
    return at;
}
