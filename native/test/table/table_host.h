/* table_host.h: a table with its memory, for tests: what the data plane does for a table, without threads.
 *
 * Segments come from anonymous memory when host_serve() is called, which host_put and the like do after every call, and
 * stay mapped when they are retired, as a reader's mapping would. Or, in a host that was opened with memory files, heap
 * segments are parts of those and go back at once.
 */
#ifndef FARKV_TEST_TABLE_HOST_H
#define FARKV_TEST_TABLE_HOST_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../check.h"
#include "../../table/reader.h"
#include "../../table/table.h"
#include "../../table/words.h"

/* As many as there may be maps in a process. Memory that is free for two seconds of the test's time goes back and comes
 * again, so that how many there are in all rests with the machine where a test takes its time from the clock. */
enum { HOST_SEGMENTS = 1 << 16 };
typedef struct host_segment {
    table_segment_kind kind;
    uint32_t number, tag;
    fkv_region region;
    bool retired;
} host_segment;
typedef struct host {
    table *t;
    table_config config;
    uint64_t now_ns, wall_ms;
    struct {
        table_segment_kind kind;
        size_t bytes;
    } asked[8];
    int asks;
    bool refuse;
    fkv_files *files; /* of the heap; NULL: none */
    host_segment segments[HOST_SEGMENTS];
    int count, retired, index_retired; /* retired: of the heap */
} host;

static inline void host_want(void *ctx, table_segment_kind kind, size_t bytes) {
    host *h = ctx;
    CHECK(h->asks < 8);
    h->asked[h->asks].kind = kind;
    h->asked[h->asks++].bytes = bytes;
}
static inline void host_retire(void *ctx, table_segment_kind kind, uint32_t number) {
    host *h = ctx;
    for (int i = h->count - 1; i >= 0; i--) {
        if (h->segments[i].kind != kind || h->segments[i].number != number || h->segments[i].retired) continue;
        h->segments[i].retired = true;
        if (h->segments[i].region.file) fkv_files_give(&h->segments[i].region);
        *(kind == TABLE_HEAP ? &h->retired : &h->index_retired) += 1;
        return;
    }
    CHECK(!"an unknown segment was retired");
}
static inline void host_add(host *h, table_segment_kind kind, size_t bytes) {
    CHECK(h->count < HOST_SEGMENTS);
    host_segment *s = &h->segments[h->count];
    uint32_t tag = 0x10000000u + (uint32_t)h->count;
    *s = (host_segment){ .kind = kind, .tag = tag };
    if (h->files && kind == TABLE_HEAP) {
        uint64_t fresh;
        CHECK_EQ(fkv_files_take(h->files, bytes, 0, &s->region, &fresh), 0);
    } else {
        void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(base != MAP_FAILED);
        s->region = (fkv_region){ .fd = -1, .base = base, .bytes = bytes };
    }
    CHECK_EQ(table_add_segment(h->t, kind, &s->region, tag, &s->number), FKV_OK);
    h->count++;
}
static inline void host_serve(host *h) {
    while (h->asks > 0) {
        h->asks--;
        if (h->refuse)
            table_segment_refused(h->t, h->asked[h->asks].kind, h->asked[h->asks].bytes, FKV_TABLE_FULL);
        else
            host_add(h, h->asked[h->asks].kind, h->asked[h->asks].bytes);
    }
}
static inline host *host_open_any(uint64_t memory_bytes, uint64_t quarantine_ns, uint64_t quarantine_bytes,
                                  uint32_t buckets, fkv_files *files) {
    host *h = calloc(1, sizeof *h);
    h->files = files;
    h->config = (table_config){ .shard = 3,
                                .epoch = 7,
                                .seed = { 11, 13 },
                                .memory_bytes = memory_bytes,
                                .buckets = buckets,
                                .quarantine_ns = quarantine_ns,
                                .quarantine_bytes = quarantine_bytes,
                                .heap_files = files,
                                .want_segment = host_want,
                                .retire_segment = host_retire,
                                .ctx = h };
    h->now_ns = 1000000000;
    h->wall_ms = 1700000000000;
    CHECK_EQ(table_create(&h->config, &h->t), FKV_OK);
    host_add(h, TABLE_INDEX, table_first_index_bytes(&h->config));
    host_add(h, TABLE_HEAP, table_first_heap_bytes(&h->config));
    table_tick(h->t, h->now_ns, h->wall_ms, 1000);
    host_serve(h);
    return h;
}
static inline host *host_open_wide(uint64_t memory_bytes, uint64_t quarantine_ns, uint64_t quarantine_bytes,
                                   uint32_t buckets) {
    return host_open_any(memory_bytes, quarantine_ns, quarantine_bytes, buckets, NULL);
}
static inline host *host_open_files(uint64_t memory_bytes, uint64_t quarantine_bytes, uint32_t parts, uint64_t least) {
    fkv_files *files = fkv_files_make("farkv-test", parts, least);
    CHECK(files != NULL);
    return host_open_any(memory_bytes, 0, quarantine_bytes, 0, files);
}
static inline host *host_open(uint64_t memory_bytes, uint64_t quarantine_ns, uint64_t quarantine_bytes) {
    return host_open_wide(memory_bytes, quarantine_ns, quarantine_bytes, 0);
}
static inline void host_close(host *h) {
    table_destroy(h->t);
    for (int i = 0; i < h->count; i++) {
        host_segment *s = &h->segments[i];
        if (s->region.file)
            fkv_files_give(&s->region);
        else if (s->region.base)
            munmap(s->region.base, s->region.bytes);
    }
    fkv_files_leave(h->files);
    free(h);
}
static inline void host_check(host *h) {
    const char *wrong = table_check(h->t);
    if (wrong) check_failed(__FILE__, __LINE__, wrong);
}
/* Lets time pass, then ticks until there is no more to do. */
static inline void host_pass(host *h, uint64_t ns) {
    h->now_ns += ns;
    h->wall_ms += ns / 1000000;
    do host_serve(h);
    while (table_tick(h->t, h->now_ns, h->wall_ms, 1000));
    host_serve(h);
}
/* Longer than anything stays in quarantine. */
static inline void host_drain(host *h) {
    for (int i = 0; i < 6; i++) host_pass(h, 3000000000u);
}

static inline uint64_t host_hash(const host *h, uint16_t space, const void *key, size_t n) {
    return fkv_hash_key(&h->config.seed, space, key, n);
}
static inline table_op host_op(const host *h, table_op_kind kind, const void *key, size_t key_bytes, const void *value,
                               size_t value_bytes) {
    return (table_op){ .kind = kind,
                       .key = key,
                       .key_bytes = (uint16_t)key_bytes,
                       .hash = host_hash(h, 0, key, key_bytes),
                       .value = value,
                       .value_bytes = (uint32_t)value_bytes };
}
/* Prepares and commits. */
static inline fkv_status host_do(host *h, const table_op *op, uint64_t *version, table_busy *why) {
    table_prepared p;
    uint64_t present;
    fkv_status s = table_prepare(h->t, op, &p, &present, why);
    if (version) *version = s == FKV_OK ? p.version : present;
    if (s == FKV_OK) table_commit(h->t, &p);
    host_serve(h);
    return s;
}
/* Tries again, while time passes, as a client that is pushed back does. */
static inline fkv_status host_do_patiently(host *h, const table_op *op, uint64_t *version) {
    table_busy why;
    fkv_status s;
    for (int i = 0; (s = host_do(h, op, version, &why)) == FKV_BUSY && i < 10000; i++) host_pass(h, 20000000);
    return s;
}
static inline fkv_status host_put(host *h, const char *key, const char *value) {
    table_op op = host_op(h, TABLE_PUT, key, strlen(key), value, strlen(value));
    table_busy why;
    return host_do(h, &op, NULL, &why);
}
static inline fkv_status host_delete(host *h, const char *key) {
    table_op op = host_op(h, TABLE_DELETE, key, strlen(key), NULL, 0);
    table_busy why;
    return host_do(h, &op, NULL, &why);
}
static inline fkv_status host_get(host *h, const void *key, size_t n, table_entry *e) {
    table_busy why;
    return table_get(h->t, 0, key, n, host_hash(h, 0, key, n), e, &why);
}
static inline bool host_has(host *h, const char *key, const char *value) {
    table_entry e;
    if (host_get(h, key, strlen(key), &e) != FKV_OK) return false;
    return e.value_bytes == strlen(value) && memcmp(e.value, value, e.value_bytes) == 0;
}
/* Numbered keys of 16 bytes, with values of a given length that follow from the number. */
static inline int host_number_key(char *key, size_t room, int i) { return snprintf(key, room, "user%012d", i); }
static inline fkv_status host_put_number(host *h, int i, size_t value_bytes) {
    char key[32], value[4096];
    int n = host_number_key(key, sizeof key, i);
    for (size_t k = 0; k < value_bytes; k++) value[k] = (char)(i * 31 + (int)k);
    table_op op = host_op(h, TABLE_PUT, key, (size_t)n, value, value_bytes);
    return host_do_patiently(h, &op, NULL);
}
static inline bool host_has_number(host *h, int i, size_t value_bytes) {
    char key[32];
    int n = host_number_key(key, sizeof key, i);
    table_entry e;
    if (host_get(h, key, (size_t)n, &e) != FKV_OK || e.value_bytes != value_bytes) return false;
    for (size_t k = 0; k < value_bytes; k++)
        if (e.value[k] != (uint8_t)(i * 31 + (int)k)) return false;
    return true;
}
static inline const host_segment *host_segment_of(const host *h, table_segment_kind kind, uint32_t number) {
    for (int i = h->count - 1; i >= 0; i--)
        if (h->segments[i].kind == kind && h->segments[i].number == number &&
            !(kind == TABLE_INDEX && h->segments[i].retired))
            return &h->segments[i];
    return NULL;
}
/* How many buckets the index segments have room for. */
static inline uint32_t host_capacity(const host *h) {
    uint64_t bytes = 0;
    const host_segment *s;
    for (uint32_t i = 0; (s = host_segment_of(h, TABLE_INDEX, i)) != NULL; i++) bytes += s->region.bytes;
    return (uint32_t)(bytes / FKV_BUCKET_BYTES);
}
/* Where bucket `number` lies, as a reader computes it from the segments. */
static inline const fkv_bucket *host_bucket(const host *h, uint32_t number, uint32_t *tag) {
    for (uint32_t i = 0;; i++) {
        const host_segment *s = host_segment_of(h, TABLE_INDEX, i);
        CHECK(s != NULL);
        uint32_t here = (uint32_t)(s->region.bytes / FKV_BUCKET_BYTES);
        *tag = s->tag;
        if (number < here)
            return (const fkv_bucket *)(const void *)(s->region.base + (size_t)number * FKV_BUCKET_BYTES);
        number -= here;
    }
}

typedef enum { HOST_HIT, HOST_MISS, HOST_AGAIN } host_answer;
/* One attempt of a reader's GET over the bytes of layout.h, starting from a given copy of the primary bucket. */
static inline host_answer host_read_from(const host *h, fkv_bucket b, const char *key, void *value, size_t room,
                                         fkv_found *found) {
    uint16_t fp = fkv_hash_fingerprint(host_hash(h, 0, key, strlen(key)));
    for (int length = 1; length <= FKV_CHAIN_MAX; length++) {
        for (int i = -1; (i = fkv_bucket_find(&b, fp, i + 1)) >= 0;) {
            const host_segment *s = host_segment_of(h, TABLE_HEAP, fkv_location_segment(fkv_slot_location(b.slot[i])));
            uint64_t offset;
            uint32_t bytes;
            CHECK(s != NULL);
            CHECK(fkv_location_range(fkv_slot_location(b.slot[i]), fkv_slot_class(b.slot[i]), s->region.bytes, &offset,
                                     &bytes));
            fkv_wanted want = { key, (uint16_t)strlen(key), 0, s->tag };
            fkv_read landed = fkv_extent_check(s->region.base + offset, bytes, &want, found);
            fkv_read copied = fkv_extent_copy(s->region.base + offset, bytes, &want, value, room, found);
            CHECK_EQ(landed, copied);
            if (copied == FKV_READ_OK) return HOST_HIT;
            if (copied != FKV_READ_OTHER_KEY) return HOST_AGAIN;
        }
        uint64_t next = fkv_bucket_overflow(b.word1);
        if (!next) return HOST_MISS;
        const host_segment *s = host_segment_of(h, TABLE_HEAP, fkv_location_segment(next));
        fkv_bucket_copy(s->region.base + (size_t)fkv_location_unit(next) * FKV_UNIT, &b);
        if (!fkv_overflow_check(&b, s->tag)) return HOST_AGAIN;
    }
    return HOST_AGAIN;
}
/* A reader's GET that knows `*buckets` buckets. Where there is no room for them it asks the owner how many there are.
 * */
static inline host_answer host_read(const host *h, uint32_t *buckets, const char *key, void *value, size_t room,
                                    fkv_found *found) {
    uint32_t bits = fkv_hash_bucket_bits(host_hash(h, 0, key, strlen(key)));
    bool saw_settling = false;
    for (int steps = 0;; steps++) {
        CHECK(steps <= FKV_BUCKET_STEPS);
        if (*buckets > host_capacity(h)) *buckets = table_buckets(h->t);
        uint32_t number = fkv_bucket_of(bits, *buckets), tag;
        fkv_bucket b;
        fkv_bucket_copy(host_bucket(h, number, &tag), &b);
        fkv_bucket_state s = fkv_bucket_check(&b, tag, number, bits, buckets);
        /* memory that was not used yet: *buckets is too high */
        if (s == FKV_BUCKET_FOREIGN && b.word0 == 0)
            *buckets = table_buckets(h->t);
        else
            CHECK(s != FKV_BUCKET_FOREIGN);
        if (s == FKV_BUCKET_HERE || (s == FKV_BUCKET_AGAIN && saw_settling))
            return host_read_from(h, b, key, value, room, found);
        saw_settling = s == FKV_BUCKET_AGAIN;
    }
}
#endif
