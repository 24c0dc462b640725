/* integrity.c: see integrity.h.
 *
 * Two ways to find that a copy is no copy. The digests of owner and copy (table_digest) are compared where both have
 * applied the same records: that finds what a fault of farkv itself has left out, or made twice. And each entry's
 * checksum is computed again every few minutes: nobody reads a backup, so a bit that flips in its memory would be found
 * when it is the owner's, and then be too late. */
#include "integrity.h"
#include "../dataplane/worker.h"

/* 13 MB a second, of which each step takes some 30 us. */
enum { STEP_BYTES = 256 << 10, STEP_MS = 20 };
static const uint64_t MS = 1000000;

static void damaged(backup *b) {
    b->failed = FKV_CORRUPT; /* mutation: integrity/damaged-acknowledges */
    b->scrub_ns = UINT64_MAX;
    backup_tell(b, DATAPLANE_COPY_DAMAGED);
}

/* One bit says that it is there. */
static uint64_t as_sent(uint64_t digest) { return digest | 1; }

uint64_t integrity_digest(const shard *s) {
    /* What is ready has its number as committed, and is not in the table. */
    return list_empty(&s->w->ready) ? as_sent(table_digest(s->table)) : 0;
}

void integrity_compare(backup *b, const fkv_peer_heartbeat *x) {
    bool same_place = x->epoch == b->place.epoch && x->committed == b->applied;
    if (b->leads || b->failed != FKV_OK || !same_place || x->digest == 0) return;
    if (x->digest != as_sent(table_digest(b->shard->table))) damaged(b); /* mutation: integrity/digests */
}

void integrity_step(backup *b) {
    const worker *w = b->shard->w;
    if (w->now_ns < b->scrub_ns) return;
    switch (table_scrub(b->shard->table, STEP_BYTES)) {
    case TABLE_SCRUB_GOES_ON: b->scrub_ns = w->now_ns + STEP_MS * MS; break;
    case TABLE_SCRUB_WHOLE: b->scrub_ns = w->now_ns + w->d->c.scrub_ms * MS; break;
    case TABLE_SCRUB_DAMAGED: damaged(b); break; /* mutation: integrity/damage-in-memory */
    }
}
