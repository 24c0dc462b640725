/* snapshot_items.c: see snapshot_items.h. */
#include "snapshot_items.h"
#include <string.h>

uint32_t item_entry_bytes(const table_entry *e) {
    return (uint32_t)sizeof(fkv_scan_entry) + e->key_bytes + (item_is_large(e) ? 0 : e->value_bytes);
}

void item_put_entry(uint8_t *to, const table_entry *e) {
    const fkv_scan_entry head = { .version = e->version,
                                  .expiry_ms = e->expiry_ms,
                                  .value_bytes = e->value_bytes,
                                  .user_flags = e->user_flags,
                                  .key_bytes = e->key_bytes,
                                  .codec = e->codec,
                                  .has_value = !item_is_large(e),
                                  .space = e->space };
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, e->key, e->key_bytes);
    if (head.has_value) memcpy(to + sizeof head + e->key_bytes, e->value, e->value_bytes);
}

void item_put_window(uint8_t *to, uint64_t client, uint64_t forgotten, const dedup_change *change, uint32_t changes) {
    const item_window w = { .client = client, .forgotten = forgotten, .changes = changes };
    memcpy(to, &w, sizeof w);
    for (uint32_t i = 0; i < changes; i++) {
        const dedup_change *c = &change[i];
        const item_change x = { .tag = c->sequence << 8 | (uint8_t)c->result.status,
                                .version = c->result.version,
                                .value = c->result.value };
        memcpy(to + sizeof w + i * sizeof x, &x, sizeof x);
    }
}

bool item_next_window(const uint8_t *items, uint32_t bytes, uint32_t *at, item_window *w,
                      dedup_change change[FKV_DEDUP_WINDOW]) {
    uint32_t left = bytes - *at;
    if (left < sizeof *w) return false;
    memcpy(w, items + *at, sizeof *w);
    if (w->client == 0 || w->forgotten > FKV_SEQUENCE_MAX || w->reserved) return false;
    if (w->changes > FKV_DEDUP_WINDOW || item_window_bytes(w->changes) > left) return false;
    for (uint32_t i = 0; i < w->changes; i++) {
        item_change x;
        memcpy(&x, items + *at + sizeof *w + i * sizeof x, sizeof x);
        dedup_result r = { .status = (fkv_status)(x.tag & 0xff), .version = x.version, .value = x.value };
        change[i] = (dedup_change){ .sequence = x.tag >> 8, .result = r };
        if (change[i].sequence == 0 || r.status >= FKV_STATUS_COUNT) return false;
    }
    *at += item_window_bytes(w->changes);
    return true;
}
