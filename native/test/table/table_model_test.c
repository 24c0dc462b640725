/* table_model_test.c: random histories against a model too simple to be wrong: an array of keys, each absent or with a
 * version, a value and an expiry. Every answer of the table must be the model's; BUSY and TABLE_FULL must change
 * nothing. Changes are held prepared for a while, time passes, segments are refused at times, values run from nothing
 * to 300 KiB, and a reader that works on the bytes alone must see what the owner sees. table_check() walks everything
 * now and then.
 */
#include <stdio.h>
#include "../../table/internal.h"
#include "table_host.h"

enum { KEYS = 40000, HELD = 24, VALUE_ROOM = 300 << 10 };

typedef struct entry {
    bool present, prepared;
    uint64_t version, expiry_ms;
    uint32_t value_bytes, value_seed;
} entry;
typedef struct held {
    bool used;
    int key;
    entry after;
    table_prepared p;
    bool reserved;
} held;
typedef struct model {
    host *h;
    uint64_t random;
    int keys; /* of KEYS, how many this history uses */
    uint32_t value_most;
    bool expires, empties;
    bool breathes; /* buckets are merged whenever that is possible, however full they are */
    entry entry[KEYS];
    held held[HELD];
    uint8_t value[VALUE_ROOM];
    uint64_t counted[8];
} model;

static uint32_t any(model *m, uint32_t below) {
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((m->random >> 32) * below >> 32);
}
/* Keys of 1 to 1,024 bytes; the number stands at the end in base 64. */
static size_t key_of(int i, uint8_t key[FKV_KEY_MAX]) {
    size_t n = i % 97 == 0 ? (size_t)FKV_KEY_MAX - (size_t)(i % 64) : 3 + (size_t)(i % 31);
    memset(key, 'a' + i % 26, n);
    for (int k = 1; k <= 3; k++, i /= 64) key[n - (size_t)k] = (uint8_t)(i % 64);
    return n;
}
static void make_value(uint8_t *out, uint32_t seed, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) out[i] = (uint8_t)((seed + i) * 2654435761u >> 23);
}
static bool absent(const model *m, const entry *e) {
    return !e->present || (e->expiry_ms && e->expiry_ms <= m->h->wall_ms);
}

static void check_key(model *m, int i) {
    uint8_t key[FKV_KEY_MAX];
    size_t n = key_of(i, key);
    const entry *e = &m->entry[i];
    table_entry got;
    table_busy why = 0;
    fkv_status s = table_get(m->h->t, 0, key, n, host_hash(m->h, 0, key, n), &got, &why);
    if (e->prepared) {
        CHECK(s == FKV_BUSY && why == TABLE_BUSY_KEY);
        return;
    }
    if (absent(m, e)) {
        CHECK_EQ(s, FKV_NOT_FOUND);
        return;
    }
    CHECK_EQ(s, FKV_OK);
    CHECK(got.version == e->version && got.expiry_ms == e->expiry_ms && got.value_bytes == e->value_bytes);
    make_value(m->value, e->value_seed, e->value_bytes);
    CHECK(memcmp(got.value, m->value, e->value_bytes) == 0);
}
/* A reader that knows nothing but the segments. What is only prepared it must not see. */
static void check_reader(model *m, int i) {
    char key[FKV_KEY_MAX + 1] = { 0 };
    static uint8_t read[VALUE_ROOM];
    size_t n = key_of(i, (uint8_t *)key);
    if (memchr(key, 0, n)) return;
    const entry *e = &m->entry[i];
    fkv_found found;
    uint32_t buckets = 1 + any(m, any(m, 2) ? m->h->t->buckets_most : table_buckets(m->h->t));
    if (buckets < 512) buckets = 512;
    host_answer a = host_read(m->h, &buckets, key, read, sizeof read, &found);
    if (!e->present) {
        /* The slot of a chain that is being shortened has an old copy, which leads to the DEAD extent for a while. */
        if (a == HOST_AGAIN)
            CHECK(m->h->t->moving[bucket_of(m->h->t, host_hash(m->h, 0, key, n))] > 0);
        else
            CHECK_EQ(a, HOST_MISS);
        return;
    }
    if (a == HOST_MISS) {
        CHECK(absent(m, e)); /* swept */
        return;
    }
    CHECK(a == HOST_HIT && found.version == e->version && found.expiry_ms == e->expiry_ms &&
          found.value_bytes == e->value_bytes);
    make_value(m->value, e->value_seed, e->value_bytes);
    CHECK(memcmp(read, m->value, e->value_bytes) == 0);
}

static void finish(model *m, held *x, bool commit) {
    if (x->reserved) {
        make_value(m->value, x->after.value_seed, x->after.value_bytes);
        fkv_copy_in(x->p.value, m->value, x->after.value_bytes);
        table_seal(m->h->t, &x->p);
    }
    if (commit) {
        table_commit(m->h->t, &x->p);
        m->entry[x->key] = x->after;
    } else {
        table_abort(m->h->t, &x->p);
        m->entry[x->key].prepared = false;
    }
    x->used = false;
}

static fkv_status expected_status(const model *m, const table_op *op, const entry *e, uint64_t *present) {
    *present = absent(m, e) ? 0 : e->version;
    switch (op->kind) {
    case TABLE_PUT: return FKV_OK;
    case TABLE_DELETE: return *present ? FKV_OK : FKV_NOT_FOUND;
    case TABLE_CAS: return *present == op->expected_version ? FKV_OK : FKV_VERSION_MISMATCH;
    default: return *present != op->expected_version ? FKV_VERSION_MISMATCH : *present ? FKV_OK : FKV_NOT_FOUND;
    }
}

static void change(model *m) {
    int i = (int)any(m, (uint32_t)m->keys);
    uint8_t key[FKV_KEY_MAX];
    size_t n = key_of(i, key);
    entry *e = &m->entry[i];
    table_op_kind kinds[] = { TABLE_PUT, TABLE_PUT, TABLE_PUT, TABLE_PUT, TABLE_DELETE, TABLE_CAS, TABLE_CAS_DELETE };
    table_op_kind kind = m->empties && any(m, 3) ? TABLE_DELETE : kinds[any(m, 7)];
    table_op op = host_op(m->h, kind, key, n, m->value, any(m, any(m, 4) ? 200 : m->value_most));
    entry after = { .present = op.kind == TABLE_PUT || op.kind == TABLE_CAS,
                    .value_bytes = op.value_bytes,
                    .value_seed = any(m, 1u << 31) };
    if (m->expires && any(m, 3) == 0) op.expiry_ms = after.expiry_ms = m->h->wall_ms + 1 + any(m, 20000);
    op.expected_version = any(m, 3) ? (absent(m, e) ? 0 : e->version) : any(m, 2) * 12345;
    if (op.kind == TABLE_CAS && any(m, 2)) {
        op.keeps_expiry = true;
        if (!absent(m, e)) after.expiry_ms = e->expiry_ms;
    }
    bool reserved = any(m, 4) == 0;
    make_value(m->value, after.value_seed, after.value_bytes);
    if (reserved) op.value = NULL;

    held *x = NULL;
    for (int k = 0; k < HELD && !x; k++)
        if (!m->held[k].used) x = &m->held[k];
    table_prepared p;
    table_busy why = 0;
    uint64_t present, expected_present;
    fkv_status s = table_prepare(m->h->t, &op, &p, &present, &why),
               expected = expected_status(m, &op, e, &expected_present);
    m->counted[s == FKV_OK ? 0 : s == FKV_BUSY ? (int)why : s == FKV_TABLE_FULL ? 4 : 5]++;
    if (e->prepared) {
        CHECK(s == FKV_BUSY && why == TABLE_BUSY_KEY);
    } else if (s != FKV_OK || expected != FKV_OK) {
        bool pushed_back = (s == FKV_BUSY && why != TABLE_BUSY_KEY) || (s == FKV_TABLE_FULL && after.present);
        CHECK(s == expected || (expected == FKV_OK && pushed_back));
        CHECK_EQ(present, expected_present);
    } else {
        after.version = p.version;
        CHECK(p.version > e->version);
        *x = (held){ .used = true, .key = i, .after = after, .p = p, .reserved = reserved && after.present };
        e->prepared = true;
        if (any(m, 8) || x == &m->held[HELD - 1]) finish(m, x, any(m, 20) != 0);
    }
    host_serve(m->h);
}

static void count_scanned(void *ctx, const table_entry *e) {
    (void)e;
    ++*(int *)ctx;
}
static void check_scan(model *m) {
    int scanned = 0, expected = 0;
    uint64_t cursor = 0;
    do table_scan(m->h->t, 0, &cursor, count_scanned, &scanned);
    while (cursor);
    for (int i = 0; i < m->keys; i++) expected += !absent(m, &m->entry[i]);
    CHECK_EQ(scanned, expected);
}

static void merge_some(model *m) {
    uint32_t least = (uint32_t)(table_first_index_bytes(&m->h->config) / FKV_BUCKET_BYTES);
    for (uint32_t n = any(m, 30); n > 0 && table_buckets(m->h->t) > least; n--)
        if (!table_merge(m->h->t)) break;
}

static void history(uint64_t seed, int steps, uint64_t memory, uint64_t quarantine_ns, uint64_t quarantine_bytes,
                    int keys, uint32_t value_most, bool expires, bool breathes) {
    model *m = calloc(1, sizeof *m);
    *m = (model){ .h = host_open(memory, quarantine_ns, quarantine_bytes),
                  .random = seed,
                  .keys = keys,
                  .value_most = value_most,
                  .expires = expires,
                  .breathes = breathes };
    for (int step = 0; step < steps; step++) {
        change(m);
        check_key(m, (int)any(m, (uint32_t)keys));
        check_reader(m, (int)any(m, (uint32_t)keys));
        held *x = &m->held[any(m, HELD)];
        if (x->used && any(m, 3) == 0) finish(m, x, any(m, 3) != 0);
        if (any(m, 20) == 0) {
            m->h->now_ns += any(m, 100000000);
            m->h->wall_ms += any(m, 100);
            table_tick(m->h->t, m->h->now_ns, m->h->wall_ms, (int)any(m, 200));
        }
        if (breathes && any(m, 4) == 0) merge_some(m);
        if (breathes && step % 6000 == 5999) {
            m->empties = !m->empties;
            host_drain(m->h);
        }
        if (any(m, 2000) == 0) m->h->refuse = !m->h->refuse;
        if (any(m, 3000) == 0) host_drain(m->h);
        if (step % 1500 == 0) {
            host_check(m->h);
            check_scan(m);
        }
    }
    for (int k = 0; k < HELD; k++)
        if (m->held[k].used) finish(m, &m->held[k], any(m, 2));
    host_drain(m->h);
    host_check(m->h);
    check_scan(m);
    for (int i = 0; i < keys; i++) check_key(m, i);
    table_stats s;
    table_get_stats(m->h->t, &s);
    typedef unsigned long long number;
    const uint64_t *c = m->counted;
    printf("# %d steps: ok %llu, full %llu, refused %llu, busy: key %llu quarantine %llu segment %llu\n", steps,
           (number)c[0], (number)c[4], (number)c[5], (number)c[TABLE_BUSY_KEY], (number)c[TABLE_BUSY_QUARANTINE],
           (number)c[TABLE_BUSY_SEGMENT]);
    printf(
        "#   %llu entries, %llu splits, %llu merges, %llu expired, %llu moved, %d segments retired, %d of the index\n",
        (number)s.entries, (number)s.splits, (number)s.merges, (number)s.expired, (number)s.evacuated, m->h->retired,
        m->h->index_retired);
    CHECK(!breathes || s.merges > 1000);
    host_close(m->h);
    free(m);
}

static const uint64_t MIB = 1 << 20;
TEST(a_roomy_table_agrees_with_the_model) { history(check_seed(), 60000, 64 * MIB, 0, 0, 6000, 3000, false, false); }
TEST(a_growing_table_agrees_with_the_model) {
    history(check_seed() + 1, 120000, 64 * MIB, 30000000, 0, KEYS, 100, true, false);
}
TEST(a_table_with_expiry_agrees_with_the_model) {
    history(check_seed() + 2, 60000, 16 * MIB, 50000000, 0, 6000, 3000, true, false);
}
TEST(a_crowded_table_agrees_with_the_model) {
    history(check_seed() + 3, 60000, 4 * MIB, 20000000, 0, 6000, 6000, true, false);
}
TEST(a_table_of_large_values_agrees_with_the_model) {
    history(check_seed() + 4, 15000, 24 * MIB, 20000000, 0, 400, VALUE_ROOM, true, false);
}
TEST(a_table_with_little_quarantine_agrees_with_the_model) {
    history(check_seed() + 5, 40000, 4 * MIB, 1, 32 << 10, 1500, 2000, false, false);
}
TEST(a_table_whose_buckets_are_split_and_merged_all_the_time_agrees_with_the_model) {
    history(check_seed() + 7, 72000, 16 * MIB, 20000000, 0, 12000, 200, false, true);
}
TEST(a_table_of_few_hot_keys_agrees_with_the_model) {
    history(check_seed() + 6, 40000, 8 * MIB, 1, 0, 40, 30000, true, false);
}

int main(int argc, char **argv) {
    printf("# seed %llu\n", (unsigned long long)check_seed());
    RUN(a_roomy_table_agrees_with_the_model);
    RUN(a_growing_table_agrees_with_the_model);
    RUN(a_table_with_expiry_agrees_with_the_model);
    RUN(a_crowded_table_agrees_with_the_model);
    RUN(a_table_of_large_values_agrees_with_the_model);
    RUN(a_table_with_little_quarantine_agrees_with_the_model);
    RUN(a_table_whose_buckets_are_split_and_merged_all_the_time_agrees_with_the_model);
    RUN(a_table_of_few_hot_keys_agrees_with_the_model);
    return check_end(argc, argv);
}
