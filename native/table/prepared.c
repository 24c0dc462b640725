/* prepared.c: the set of prepared changes: by key, so that nothing else touches a key that has one, and by handle. */
#include "../base/assert.h"
#include "internal.h"
#include "reader.h"

static uint32_t *head_of(table *t, uint64_t hash) { return &t->prepared_head[(hash ^ hash >> 32) % PREPARED_HEADS]; }

/* The key is compared as shared memory: a value that another thread is writing shares a word with the key's end. */
prepared *table_prepared_find(const table *t, uint64_t hash, uint16_t space, const void *key, size_t key_bytes) {
    for (uint32_t i = *head_of((table *)(uintptr_t)t, hash); i; i = t->prepared[i - 1].next) {
        prepared *p = &t->prepared[i - 1];
        if (p->hash == hash && p->keyed->key_bytes == key_bytes &&
            fkv_extent_namespace(p->keyed->expiry_space) == space &&
            fkv_shared_equal(extent_key(p->keyed), key, key_bytes))
            return p;
    }
    return NULL;
}

prepared *table_prepared_add(table *t, uint64_t hash, uint64_t *handle) {
    if (!t->free_prepared) {
        uint32_t room = t->prepared_room ? 2 * t->prepared_room : 64;
        prepared *more = realloc(t->prepared, room * sizeof *more);
        if (!more) return NULL;
        t->prepared = more;
        for (uint32_t i = room; i > t->prepared_room; i--) {
            more[i - 1] = (prepared){ .next = t->free_prepared };
            t->free_prepared = i;
        }
        t->prepared_room = room;
    }
    uint32_t i = t->free_prepared, *head = head_of(t, hash);
    prepared *p = &t->prepared[i - 1];
    t->free_prepared = p->next;
    *p = (prepared){ .next = *head, .generation = p->generation + 1, .hash = hash };
    *head = i;
    t->prepared_count++;
    *handle = (uint64_t)p->generation << 32 | i;
    return p;
}

/* A handle that is not of a prepared change is a broken invariant of the caller's. */
prepared *table_prepared_get(table *t, uint64_t handle) {
    uint32_t i = (uint32_t)handle;
    fkv_assert(i >= 1 && i <= t->prepared_room);
    prepared *p = &t->prepared[i - 1];
    fkv_assert(p->generation == (uint32_t)(handle >> 32) && p->keyed);
    return p;
}

void table_prepared_remove(table *t, prepared *p) {
    uint32_t i = (uint32_t)(p - t->prepared) + 1, *link = head_of(t, p->hash);
    while (*link != i) link = &t->prepared[*link - 1].next;
    *link = p->next;
    p->next = t->free_prepared;
    p->keyed = NULL;
    t->free_prepared = i;
    fkv_assert(t->prepared_count > 0);
    t->prepared_count--;
}
