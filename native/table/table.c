/* table.c: the life of a table, and what it tells about itself. The drawing of the parts is in internal.h. */
#include "../base/assert.h"
#include "internal.h"

enum { QUARANTINE_NS_PER_BYTE = FKV_GET_LIFE_NS_PER_BYTE / 5 * 6 };

fkv_status table_create(const table_config *c, table **out) {
    if (c->memory_bytes < TABLE_MEMORY_MIN || c->epoch >= 1u << 20) return FKV_BAD_REQUEST;
    if (!c->want_segment || !c->retire_segment) return FKV_BAD_REQUEST;
    table *t = calloc(1, sizeof *t);
    if (!t) return FKV_NO_MEMORY;
    t->config = *c;
    if (!c->quarantine_ns) t->config.quarantine_ns = TABLE_QUARANTINE_NS;
    /* A queue serves a range of sizes, and waits as long as its largest needs. */
    static const uint64_t largest[DELAY_QUEUES] = { 64 << 10, 2 << 20,
                                                    FKV_EXTENT_HEADER + FKV_KEY_MAX + FKV_VALUE_MAX };
    for (int i = 0; i < DELAY_QUEUES; i++)
        t->delay[i].delay_ns = t->config.quarantine_ns + largest[i] * QUARANTINE_NS_PER_BYTE;
    t->expiry_floor_ms = t->pass_floor_ms = UINT64_MAX;
    table_span_shapes(t->shape, c->memory_bytes);
    *out = t;
    return FKV_OK;
}

void table_destroy(table *t) {
    if (!t) return;
    for (uint32_t n = 1; n < t->heap_room; n++) {
        if (!t->heap[n]) continue;
        free(t->heap[n]->span_of_block);
        free(t->heap[n]);
    }
    for (int i = 0; i < DELAY_QUEUES; i++) free(t->delay[i].items);
    free(t->heap);
    free(t->spans);
    free(t->index);
    free(t->directory);
    free(t->moving);
    free(t->prepared);
    free(t);
}

void table_set_epoch(table *t, uint32_t epoch) {
    fkv_assert(epoch > t->config.epoch && epoch < 1u << 20);
    t->config.epoch = epoch;
    t->sequence = 0;
}

void table_set_memory(table *t, uint64_t bytes) {
    fkv_assert(bytes >= TABLE_MEMORY_MIN);
    t->config.memory_bytes = bytes;
}

void table_set_read(table *t, bool read) { t->unread = !read; }

void table_get_stats(const table *t, table_stats *out) {
    uint64_t heap_used = 0;
    uint64_t private_bytes = sizeof *t + (uint64_t)t->grains_room * (sizeof *t->directory + GRAIN_BUCKETS) +
                             t->index_segments * sizeof *t->index + t->heap_room * sizeof *t->heap +
                             (uint64_t)t->span_room * sizeof *t->spans + t->prepared_room * sizeof *t->prepared;
    for (uint32_t n = 1; n < t->heap_room; n++) {
        const heap_segment *g = t->heap[n];
        if (!g) continue;
        heap_used += g->used_bytes;
        private_bytes += sizeof *g + (uint64_t)g->blocks * sizeof *g->span_of_block;
    }
    for (int i = 0; i < DELAY_QUEUES; i++) private_bytes += t->delay[i].capacity * sizeof *t->delay[i].items;
    *out = (table_stats){
        .entries = t->entries,
        .key_value_bytes = t->key_value_bytes,
        .index_bytes = t->index_bytes,
        .heap_bytes = t->heap_bytes,
        .memory_bytes = t->config.memory_bytes,
        .asked_bytes = asked(t),
        .live_extent_bytes = t->live_bytes,
        .prepared_bytes = t->prepared_bytes,
        .overflow_bytes = t->overflow_buckets * FKV_BUCKET_BYTES,
        .quarantine_bytes = t->quarantine_bytes,
        .slack_bytes = t->span_end_bytes,
        .free_bytes = t->heap_bytes - heap_used,
        .index_free_bytes = t->index_bytes - (uint64_t)t->buckets * FKV_BUCKET_BYTES,
        .buckets = t->buckets,
        .overflow_buckets = t->overflow_buckets,
        .longest_chain = t->longest_chain ? t->longest_chain : 1,
        .splits = t->splits,
        .merges = t->merges,
        .expired = t->expired,
        .prepared = t->prepared_count,
        .used_bytes = heap_used + (uint64_t)t->buckets * FKV_BUCKET_BYTES,
        .private_bytes = private_bytes,
        .moving = t->moving_now,
        .evacuated = t->evacuated,
    };
}
