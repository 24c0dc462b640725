/* copy_page.c: a page of entries that the owner listed comes into the table: with the values that came along, or that
 * are READ here, and but for what the table has already.
 *
 * Invariant: what is lent to the table, and the page while values of it are under way, stay until they are given back. */
#include <stdlib.h>
#include <string.h>
#include "copy_internal.h"

enum { BATCH_BYTES = 4 << 20 }; /* of entries that are given to the table at once, beyond one */

/* ---- values ---- */

static bool append(shard_copy *c, const fkv_scan_entry *e, const uint8_t *key, const uint8_t *value) {
    size_t bytes = sizeof *e + e->key_bytes + (value ? e->value_bytes : 0);
    if (c->batch_bytes + bytes > c->batch_room) {
        size_t room = 2 * (c->batch_bytes + bytes);
        uint8_t *larger = realloc(c->batch, room);
        if (!larger) return false;
        c->batch = larger;
        c->batch_room = room;
    }
    uint8_t *to = c->batch + c->batch_bytes;
    fkv_scan_entry head = *e;
    head.has_value = value ? FKV_SCAN_VALUE_PLAIN : FKV_SCAN_VALUE_NONE;
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof *e, key, e->key_bytes);
    if (value && e->value_bytes) memcpy(to + sizeof *e + e->key_bytes, value, e->value_bytes);
    c->batch_bytes += bytes;
    return true;
}

void copy_got(void *ctx, lookup_get *g) {
    (void)ctx;
    wanted *w = lookup_user(g);
    shard_copy *c = w->c;
    const lookup_result *r = lookup_result_of(g);
    /* Under another version it was changed after it was listed, and is in the log behind that. One that is gone was
     * deleted, which is in the log too, or has ended, which is not: what was taken over of its key before goes, or it
     * would be back. */
    if (r->status == FKV_OK && r->version == w->entry.version) {
        w->entry.value_bytes = r->value_bytes;
        if (!append(c, &w->entry, w->key, lookup_value(g)) && c->failed == FKV_OK) c->failed = FKV_NO_MEMORY;
    } else if (r->status == FKV_NOT_FOUND) {
        w->entry.version = w->entry.expiry_ms = 0;
        /* mutation: dataplane/ended-stays */
        if (!append(c, &w->entry, w->key, NULL) && c->failed == FKV_OK) c->failed = FKV_NO_MEMORY;
    } else if (r->status != FKV_OK && c->failed == FKV_OK) {
        c->failed = r->status;
    }
    lookup_release(g);
    w->next = c->free;
    c->free = w;
    c->under_way--;
}

static void settle(shard_copy *c, uint32_t most) {
    while (c->under_way > most && !copy_stopping(c)) copy_turn(c, COPY_SECOND);
}

/* ---- the table ---- */

static void imported(void *ctx, fkv_status s, void *result) {
    (void)result;
    shard_copy *c = ctx;
    pthread_mutex_lock(&c->lock);
    c->import_status = s;
    __atomic_store_n(&c->imported, true, __ATOMIC_RELEASE);
    mailbox_wake(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

/* What was lent to the table, which it may take memory for. */
static fkv_status given_back(shard_copy *c) {
    while (!__atomic_load_n(&c->imported, __ATOMIC_ACQUIRE)) copy_turn(c, COPY_SECOND);
    /* It may be seen before the owner's thread has rung: not before that is over may this thread end, and the
     * descriptor with it. */
    pthread_mutex_lock(&c->lock);
    pthread_mutex_unlock(&c->lock);
    return c->import_status;
}

/* Waits for the values under way, and gives all that came to the table. Does not return before the table has done with
 * it. */
static fkv_status hand_over(shard_copy *c) {
    settle(c, 0);
    if (copy_stopping(c)) return FKV_ABORTED;
    if (c->failed != FKV_OK || c->batch_bytes == 0) return c->failed;
    __atomic_store_n(&c->imported, false, __ATOMIC_RELAXED);
    dataplane_import(c->config.to, c->config.shard, c->batch, (uint32_t)c->batch_bytes, imported, c);
    fkv_status s = given_back(c);
    c->stats.bytes += c->batch_bytes;
    c->batch_bytes = c->expected_bytes = 0;
    return s;
}

/* Which of the listed entries the table has already. All keys between the cursors are listed; what else the table has
 * there goes. */
static fkv_status compare(shard_copy *c, uint64_t from, uint64_t to) {
    fkv_scan_entry e;
    const uint8_t *key, *value;
    uint32_t count = 0, bytes = c->answer.body_bytes;
    if (!c->config.base) return FKV_OK;
    for (uint32_t at = 0; wire_next_scan_entry(c->body, bytes, &at, &e, &key, &value);) count++;
    if (count == 0 && from == to) return FKV_OK;
    if (count > c->page_room) {
        free(c->same);
        free(c->version);
        c->page_room = 0;
        c->same = malloc(count * sizeof *c->same);
        c->version = malloc(count * sizeof *c->version);
        if (!c->same || !c->version) return FKV_NO_MEMORY;
        c->page_room = count;
    }
    dataplane_page page = { .entries = c->body,
                            .bytes = bytes,
                            .count = count,
                            .from = from,
                            .to = to,
                            .same = c->same,
                            .version = c->version };
    __atomic_store_n(&c->imported, false, __ATOMIC_RELAXED);
    dataplane_compare(c->config.to, c->config.shard, &page, imported, c);
    return given_back(c);
}

/* ---- a page ---- */

/* `value`: NULL, where it did not come along. */
static fkv_status want(shard_copy *c, const fkv_scan_entry *e, const uint8_t *key, const uint8_t *value) {
    if (c->expected_bytes + e->value_bytes > BATCH_BYTES && c->expected_bytes) {
        fkv_status s = hand_over(c);
        if (s != FKV_OK) return s;
    }
    c->expected_bytes += sizeof *e + e->key_bytes + e->value_bytes;
    c->stats.entries++;
    if (e->version == 0) return append(c, e, key, NULL) ? FKV_OK : FKV_NO_MEMORY;
    if (wire_scan_value_whole(e, key, value)) return append(c, e, key, value) ? FKV_OK : FKV_NO_MEMORY;
    settle(c, COPY_GETS - 1);
    if (copy_stopping(c)) return FKV_ABORTED;
    wanted *w = c->free;
    lookup_key k = { .bytes = key, .count = e->key_bytes, .space = e->space };
    lookup_get *g;
    uint64_t now = session_now(c->s);
    *w = (wanted){ .c = c, .entry = *e, .key = key, .next = w->next };
    c->free = w->next;
    c->under_way++;
    fkv_status s = lookup_start(c->l, &k, now, now + COPY_ASK_MS * COPY_MS, w, &g);
    if (s == FKV_OK) return FKV_OK;
    w->next = c->free;
    c->free = w;
    c->under_way--;
    return s;
}

fkv_status copy_take_page(shard_copy *c, uint64_t from, uint64_t to, uint32_t *entries) {
    fkv_scan_entry e;
    const uint8_t *key, *value;
    fkv_status s = compare(c, from, to);
    bool said = c->answer.reply.user_flags & FKV_CHANGED_JOINED;
    *entries = 0;
    for (uint32_t at = 0, i = 0;
         s == FKV_OK && wire_next_scan_entry(c->body, c->answer.body_bytes, &at, &e, &key, &value); i++) {
        if (said && e.kind != FKV_SCAN_ENTRY) {
            s = join_point_take(&c->join, c->config.copy, &e, value);
            continue;
        }
        ++*entries;
        if (c->config.base && c->same[i])
            c->stats.kept++;
        else
            s = want(c, &e, key, value);
    }
    /* mutation: joins/records-before-last-page */
    if (s == FKV_OK) s = hand_over(c);
    if (s != FKV_OK) settle(c, 0); /* those under way name keys in the page */
    if (c->under_way == 0) {
        free(c->body);
        c->body = NULL;
    }
    return s;
}
