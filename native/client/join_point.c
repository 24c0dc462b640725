/* join_point.c: see join_point.h. */
#include "join_point.h"
#include <stdlib.h>
#include <string.h>

fkv_status join_point_take(join_point *p, uint64_t copy, const fkv_scan_entry *e, const uint8_t *value) {
    if (e->kind == FKV_SCAN_JOIN_POINT) {
        fkv_join_point k;
        if (!value || e->value_bytes != sizeof k) return FKV_BAD_REQUEST;
        memcpy(&k, value, sizeof k);
        p->at = (dataplane_join){
            .id = copy, .lsn = k.lsn, .epoch = k.epoch, .doubt_ms = k.doubt_ms, .sequences = p->at.sequences
        };
        p->said = true;
        return FKV_OK;
    }
    if (e->kind != FKV_SCAN_SEQUENCES || !value || e->value_bytes % sizeof(fkv_join_sequence)) return FKV_BAD_REQUEST;
    uint32_t n = e->value_bytes / (uint32_t)sizeof(fkv_join_sequence);
    dataplane_sequence *more = realloc(p->sequence, (p->at.sequences + n) * sizeof *more);
    if (!more) return FKV_NO_MEMORY;
    p->sequence = more;
    for (uint32_t i = 0; i < n; i++) {
        fkv_join_sequence s;
        memcpy(&s, value + i * sizeof s, sizeof s);
        more[p->at.sequences++] = (dataplane_sequence){ .client = s.client, .sequence = s.sequence };
    }
    return FKV_OK;
}

/* The owner's answer to FOLLOW may come when the copy is gone. */
typedef struct answer {
    dataplane_done done;
    void *ctx;
    shard_copy_stats *stats; /* of malloc */
} answer;

static void followed(void *ctx, fkv_status s, void *result) {
    answer *a = ctx;
    free(result);
    if (s != FKV_OK) free(a->stats);
    a->done(a->ctx, s, s == FKV_OK ? a->stats : NULL);
    free(a);
}

void join_point_follow(const join_point *p, const shard_copy_config *c, const shard_copy_stats *stats,
                       dataplane_done done, void *ctx) {
    dataplane_owner_address *address = calloc(c->count + 1, sizeof *address);
    answer *a = malloc(sizeof *a);
    shard_copy_stats *copied = malloc(sizeof *copied);
    if (!address || !a || !copied) {
        free(address);
        free(a);
        free(copied);
        done(ctx, FKV_NO_MEMORY, NULL);
        return;
    }
    *a = (answer){ .done = done, .ctx = ctx, .stats = copied };
    *copied = *stats;
    for (uint32_t i = 0; i < c->count; i++)
        address[i] = (dataplane_owner_address){ c->addresses[i].provider, c->addresses[i].text,
                                                c->addresses[i].device };
    dataplane_join at = p->at;
    at.sequence = p->sequence;
    dataplane_follow_copy(c->to, c->shard, &at, address, c->count, followed, a);
    free(address);
}

void join_point_free(join_point *p) { free(p->sequence); }
