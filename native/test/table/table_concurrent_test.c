/* table_concurrent_test.c: one writer thread and two readers that know nothing but the bytes of layout.h.
 *
 * Every key has a counter of the operations on it: a PUT at even counts, a DELETE at odd ones (steady keys are only
 * PUT). Before an operation the writer stores `begun`, after it `done`; a value names its key and count and is a
 * pattern of both. A reader asserts after every GET, with done and the greatest count that any reader has returned
 * loaded before it and begun after it:
 *
 *     a value is whole, of this key, not older than done, not older than what was returned before, not newer than
 *     begun; a miss lies between a PUT and a later PUT: never of a steady key.
 *
 * Readers keep the last location of each key and often go there first; half of the extents they copy in place, half
 * they land and check by checksum, as a READ would. They keep the rule of fkv_get_life_ns(), scaled: what took longer
 * is discarded.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include "../../base/clock.h"
#include "index_steps.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { OPERATIONS = 40000, PHASES = 3 };
#else
enum { OPERATIONS = 400000, PHASES = 6 };
#endif
enum { INDEX_SEGMENTS = 256, HEAP_NUMBERS = 1 << 16, BUCKETS_MOST = 2048 };
enum { KEYS = 64, STEADY = 32, READERS = 2, VALUE_MOST = 3000, AGAIN_MOST = 100000 };
#define LIFE_NS       1000000u
#define QUARANTINE_NS (LIFE_NS * 6 / 5)

/* The index segments at some time, as a layout has them: it never changes. */
typedef struct layout {
    struct layout *before;
    uint32_t count;
    const host_segment *index[INDEX_SEGMENTS];
} layout;
typedef struct shared {
    host *h;
    /* of the host's segments; those below are what readers may look at: */
    int published;
    uint32_t layout_epoch;
    layout *layout;
    const host_segment *heap[HEAP_NUMBERS]; /* by number */
    uint32_t buckets;                       /* as a reply would tell */
    uint64_t begun[KEYS], done[KEYS], returned[KEYS];
    int finished;
} shared;
typedef struct reader {
    shared *s;
    uint64_t seed, gets, hits, misses, again, late, cached, steps, settling;
} reader;
typedef struct cached {
    const host_segment *segment;
    uint64_t word;
} cached;

static uint64_t load(const uint64_t *x) { return __atomic_load_n(x, __ATOMIC_SEQ_CST); }
static uint32_t any(uint64_t *seed, uint32_t below) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*seed >> 32) * below >> 32);
}
static size_t key_of(int i, char key[32]) {
    return (size_t)snprintf(key, 32, i % 3 ? "key-%d" : "a longer key, number %d", i);
}

/* ---- values ---- */
static uint32_t value_bytes(uint64_t key, uint64_t count) {
    uint32_t x = (uint32_t)(key * 77 + count) * 2654435761u;
    return 16 + (x >> 8) % (x >> 30 ? 200 : VALUE_MOST - 16);
}
static uint8_t pattern(uint64_t key, uint64_t count, uint32_t i) { return (uint8_t)(key * 131 + count * 29 + i * 7); }
static uint32_t make_value(uint8_t *out, uint64_t key, uint64_t count) {
    uint32_t n = value_bytes(key, count);
    memcpy(out, &key, 8);
    memcpy(out + 8, &count, 8);
    for (uint32_t i = 16; i < n; i++) out[i] = pattern(key, count, i);
    return n;
}
static uint64_t check_value(const uint8_t *v, uint32_t n, uint64_t expected_key) {
    uint64_t key, count;
    CHECK(n >= 16);
    memcpy(&key, v, 8);
    memcpy(&count, v + 8, 8);
    CHECK(key == expected_key);
    CHECK_EQ(n, value_bytes(key, count));
    for (uint32_t i = 16; i < n; i++) CHECK(v[i] == pattern(key, count, i));
    return count;
}

/* ---- a reader's GET ---- */
static const host_segment *heap_segment_of(const shared *s, uint32_t number) {
    return number < HEAP_NUMBERS ? __atomic_load_n(&s->heap[number], __ATOMIC_ACQUIRE) : NULL;
}
static const void *bucket_address(const layout *y, uint32_t number, uint32_t *tag) {
    for (uint32_t i = 0; i < y->count; i++) {
        const host_segment *g = y->index[i];
        *tag = g->tag;
        if (number < g->region.bytes / FKV_BUCKET_BYTES) return g->region.base + (size_t)number * FKV_BUCKET_BYTES;
        number -= (uint32_t)(g->region.bytes / FKV_BUCKET_BYTES);
    }
    return NULL;
}
/* As a READ, whose words have no order: word 0 last, as in place, or first. */
static void copy_bucket(reader *r, const void *at, fkv_bucket *b) {
    const fkv_bucket *shared = at;
    uint64_t word0 = __atomic_load_n(&shared->word0, __ATOMIC_ACQUIRE);
    fkv_bucket_copy(at, b);
    if (any(&r->seed, 2)) b->word0 = word0;
}
static fkv_read read_extent(const host_segment *g, uint64_t word, const char *key, size_t n, bool land, uint8_t *value,
                            fkv_found *found) {
    uint64_t offset;
    uint32_t bytes;
    if (!g) return FKV_READ_AGAIN;
    bool fits = fkv_location_range(fkv_slot_location(word), fkv_slot_class(word), g->region.bytes, &offset, &bytes);
    if (!fits) return FKV_READ_AGAIN;
    fkv_wanted want = { key, (uint16_t)n, 0, g->tag };
    if (!land) return fkv_extent_copy(g->region.base + offset, bytes, &want, value, VALUE_MOST, found);
    _Alignas(8) uint8_t landed[8192];
    CHECK(bytes <= sizeof landed);
    fkv_copy_shared(landed, g->region.base + offset, bytes);
    fkv_copy_shared_end();
    fkv_read r = fkv_extent_check(landed, bytes, &want, found);
    if (r == FKV_READ_OK) memcpy(value, landed + found->value_offset, found->value_bytes);
    return r;
}
/* One attempt through the index. */
static host_answer read_index(reader *r, uint32_t *buckets, const char *key, size_t n, uint64_t hash, uint8_t *value,
                              fkv_found *found, cached *keep) {
    const shared *s = r->s;
    const layout *y = __atomic_load_n(&s->layout, __ATOMIC_ACQUIRE);
    fkv_bucket b;
    bool saw_settling = false;
    for (int steps = 0;; steps++) {
        uint32_t tag, number = fkv_bucket_of(fkv_hash_bucket_bits(hash), *buckets);
        const void *at = bucket_address(y, number, &tag);
        if (!at || steps > FKV_BUCKET_STEPS) {
            *buckets = __atomic_load_n(&s->buckets, __ATOMIC_ACQUIRE);
            return HOST_AGAIN;
        }
        copy_bucket(r, at, &b);
        fkv_bucket_state state = fkv_bucket_check(&b, tag, number, fkv_hash_bucket_bits(hash), buckets);
        if (state == FKV_BUCKET_FOREIGN) { /* nothing was written there yet: *buckets is too high */
            CHECK_EQ(b.word0, 0);
            *buckets = __atomic_load_n(&s->buckets, __ATOMIC_ACQUIRE);
            return HOST_AGAIN;
        }
        if (state == FKV_BUCKET_HERE || (state == FKV_BUCKET_AGAIN && saw_settling)) break;
        saw_settling = state == FKV_BUCKET_AGAIN;
        r->settling += saw_settling;
        r->steps += !saw_settling;
    }
    for (int length = 1; length <= FKV_CHAIN_MAX; length++) {
        for (int i = -1; (i = fkv_bucket_find(&b, fkv_hash_fingerprint(hash), i + 1)) >= 0;) {
            const host_segment *g = heap_segment_of(s, fkv_location_segment(fkv_slot_location(b.slot[i])));
            fkv_read got = read_extent(g, b.slot[i], key, n, any(&r->seed, 2), value, found);
            if (got == FKV_READ_OTHER_KEY) continue;
            if (got != FKV_READ_OK) return HOST_AGAIN;
            *keep = (cached){ g, b.slot[i] };
            return HOST_HIT;
        }
        uint64_t next = fkv_bucket_overflow(b.word1);
        if (!next) return HOST_MISS;
        const host_segment *g = heap_segment_of(s, fkv_location_segment(next));
        if (!g) return HOST_AGAIN;
        fkv_bucket_copy(g->region.base + (size_t)fkv_location_unit(next) * FKV_UNIT, &b);
        if (!fkv_overflow_check(&b, g->tag)) return HOST_AGAIN;
    }
    return HOST_AGAIN;
}

static void judge(shared *s, uint64_t key, bool hit, uint64_t count, uint64_t done, uint64_t returned, uint64_t begun) {
    if (hit) {
        CHECK(count >= done);
        CHECK(count >= returned);
        CHECK(count <= begun);
        for (uint64_t now = load(&s->returned[key]); now < count;)
            if (__atomic_compare_exchange_n(&s->returned[key], &now, count, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                break;
        return;
    }
    /* Absent at some moment of the GET: as it began, or after a DELETE that had begun before it ended. */
    uint64_t from = done > returned ? done : returned;
    CHECK(key >= STEADY);
    CHECK(from % 2 == 1 || begun > from);
}

static void *read_all(void *arg) {
    reader *r = arg;
    shared *s = r->s;
    uint32_t buckets = 512;
    cached cache[KEYS] = { { NULL, 0 } };
    uint8_t value[VALUE_MOST];
    while (!__atomic_load_n(&s->finished, __ATOMIC_ACQUIRE)) {
        int i = (int)any(&r->seed, KEYS);
        char key[32];
        size_t n = key_of(i, key);
        uint64_t hash = host_hash(s->h, 0, key, n);
        if (any(&r->seed, 50) == 0) buckets = __atomic_load_n(&s->buckets, __ATOMIC_ACQUIRE);
        if (any(&r->seed, 8) == 0) buckets = 512 + any(&r->seed, BUCKETS_MOST);
        uint64_t done = load(&s->done[i]), returned = load(&s->returned[i]);
        for (int tries = 0; tries < AGAIN_MOST; tries++) {
            uint64_t start = fkv_now_ns();
            fkv_found found = { 0 };
            host_answer a = HOST_AGAIN;
            if (tries == 0 && cache[i].segment && any(&r->seed, 4)) {
                fkv_read got = read_extent(cache[i].segment, cache[i].word, key, n, any(&r->seed, 2), value, &found);
                if (got == FKV_READ_OK) {
                    a = HOST_HIT;
                    r->cached++;
                }
            }
            if (a == HOST_AGAIN) a = read_index(r, &buckets, key, n, hash, value, &found, &cache[i]);
            uint64_t took = fkv_now_ns() - start;
            if (took > LIFE_NS) {
                r->late++;
                continue;
            }
            if (a == HOST_AGAIN) {
                r->again++;
                continue;
            }
            uint64_t begun = load(&s->begun[i]);
            uint64_t count = a == HOST_HIT ? check_value(value, found.value_bytes, (uint64_t)i) : 0;
            judge(s, (uint64_t)i, a == HOST_HIT, count, done, returned, begun);
            r->gets++;
            r->hits += a == HOST_HIT;
            r->misses += a == HOST_MISS;
            break;
        }
    }
    return NULL;
}

/* ---- the writer ---- */
static void publish_layout(shared *s) {
    layout *y = calloc(1, sizeof *y);
    const host_segment *g;
    for (; (g = host_segment_of(s->h, TABLE_INDEX, y->count)) != NULL; y->count++) {
        CHECK(y->count < INDEX_SEGMENTS);
        y->index[y->count] = g;
    }
    y->before = s->layout;
    __atomic_store_n(&s->layout, y, __ATOMIC_RELEASE);
}
static void turn(shared *s) {
    host *h = s->h;
    h->now_ns = fkv_now_ns();
    table_tick(h->t, h->now_ns, h->wall_ms, 200);
    host_serve(h);
    for (; s->published < h->count; s->published++) {
        const host_segment *g = &h->segments[s->published];
        if (g->kind == TABLE_HEAP) __atomic_store_n(&s->heap[g->number], g, __ATOMIC_RELEASE);
    }
    if (s->layout_epoch != table_layout_epoch(h->t)) publish_layout(s);
    s->layout_epoch = table_layout_epoch(h->t);
    __atomic_store_n(&s->buckets, table_buckets(h->t), __ATOMIC_RELEASE);
}
static fkv_status attempt(shared *s, const table_op *op, uint64_t *seed) {
    table_prepared p;
    uint64_t present;
    table_busy why;
    fkv_status status = table_prepare(s->h->t, op, &p, &present, &why);
    if (status != FKV_OK) {
        turn(s);
        return status;
    }
    if (any(seed, 64) == 0) {
        for (int i = 0; i < 3; i++) turn(s);
        if (any(seed, 4) == 0) {
            table_abort(s->h->t, &p);
            return FKV_ABORTED;
        }
    }
    table_commit(s->h->t, &p);
    return FKV_OK;
}
static void insist(shared *s, const table_op *op, uint64_t *seed) {
    fkv_status status;
    while ((status = attempt(s, op, seed)) == FKV_BUSY || status == FKV_ABORTED) sched_yield();
    CHECK_EQ(status, FKV_OK);
}
static void change(shared *s, int i, uint64_t *seed) {
    char key[32];
    uint8_t value[VALUE_MOST];
    size_t n = key_of(i, key);
    uint64_t count = s->done[i] + (i < STEADY ? 2 : 1);
    table_op op = host_op(s->h, count % 2 ? TABLE_DELETE : TABLE_PUT, key, n, value,
                          make_value(value, (uint64_t)i, count));
    __atomic_store_n(&s->begun[i], count, __ATOMIC_SEQ_CST);
    insist(s, &op, seed);
    __atomic_store_n(&s->done[i], count, __ATOMIC_SEQ_CST);
}
/* Filler entries make the table grow, or fill it. False when it is full. */
static bool fill(shared *s, int number, uint64_t *seed, uint32_t bytes) {
    char key[32];
    uint8_t value[VALUE_MOST] = { 0 };
    int n = snprintf(key, sizeof key, "filler %d", number);
    table_op op = host_op(s->h, TABLE_PUT, key, (size_t)n, value, bytes);
    fkv_status status;
    while ((status = attempt(s, &op, seed)) == FKV_BUSY || status == FKV_ABORTED) sched_yield();
    CHECK(status == FKV_OK || status == FKV_TABLE_FULL);
    return status == FKV_OK;
}
static void empty(shared *s, int number, uint64_t *seed) {
    char key[32];
    int n = snprintf(key, sizeof key, "filler %d", number);
    table_op op = host_op(s->h, TABLE_DELETE, key, (size_t)n, NULL, 0);
    insist(s, &op, seed);
}

static shared *begin(uint64_t memory, pthread_t threads[READERS], reader readers[READERS]) {
    shared *s = calloc(1, sizeof *s);
    s->h = host_open(memory, QUARANTINE_NS, 0);
    uint64_t seed = check_seed();
    turn(s);
    for (int i = STEADY; i < KEYS; i++) s->begun[i] = s->done[i] = 1;
    for (int i = 0; i < STEADY; i++) change(s, i, &seed);
    for (int i = 0; i < READERS; i++) {
        readers[i] = (reader){ .s = s, .seed = check_seed() + 1 + (uint64_t)i };
        CHECK_EQ(pthread_create(&threads[i], NULL, read_all, &readers[i]), 0);
    }
    return s;
}
static void end(shared *s, pthread_t threads[READERS], reader readers[READERS]) {
    typedef unsigned long long number;
    __atomic_store_n(&s->finished, 1, __ATOMIC_RELEASE);
    table_stats stats;
    table_get_stats(s->h->t, &stats);
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        const reader *r = &readers[i];
        printf("# reader: %llu gets, %llu by cached location, %llu misses, %llu again, %llu late, %llu sent on, %llu "
               "settling\n",
               (number)r->gets, (number)r->cached, (number)r->misses, (number)r->again, (number)r->late,
               (number)r->steps, (number)r->settling);
        CHECK(r->gets > 0);
    }
    printf("# writer: %llu entries, %llu splits, %llu merges, longest chain %llu, %llu moved, %d and %d segments "
           "retired\n",
           (number)stats.entries, (number)stats.splits, (number)stats.merges, (number)stats.longest_chain,
           (number)stats.evacuated, s->h->retired, s->h->index_retired);
    host_check(s->h);
    host_close(s->h);
    for (layout *y = s->layout, *before; y; y = before) {
        before = y->before;
        free(y);
    }
    free(s);
}

TEST(readers_see_every_value_whole_and_in_order_while_the_table_grows) {
    pthread_t threads[READERS];
    reader readers[READERS];
    shared *s = begin(64 << 20, threads, readers);
    uint64_t seed = check_seed();
    for (int i = 0; i < OPERATIONS; i++) {
        change(s, (int)any(&seed, KEYS), &seed);
        if (i % 4 == 0) fill(s, i, &seed, 8);
        if (i % 16 == 0) turn(s);
    }
    end(s, threads, readers);
}
/* Fills most of a small table with entries of one size, deletes nine of ten, and goes on with another size, for which
 * only emptied segments have memory. */
TEST(readers_see_every_value_whole_and_in_order_while_segments_are_emptied) {
    pthread_t threads[READERS];
    reader readers[READERS];
    shared *s = begin(6 << 20, threads, readers);
    uint64_t seed = check_seed();
    static const uint32_t bytes[] = { 100, 1500, 400 };
    int first = 0;
    for (int phase = 0; phase < PHASES; phase++) {
        int n = 0, most = (3 << 20) / (int)(bytes[phase % 3] + 64);
        for (; n < most && fill(s, first + n, &seed, bytes[phase % 3]); n++) {
            change(s, (int)any(&seed, KEYS), &seed);
            if (n % 16 == 0) turn(s);
        }
        for (int i = 0; i < n; i++) {
            if (i % 10) empty(s, first + i, &seed);
            if (i % 4 == 0) change(s, (int)any(&seed, KEYS), &seed);
            if (i % 16 == 0) turn(s);
        }
        first += n;
    }
    table_stats stats;
    table_get_stats(s->h->t, &stats);
    CHECK(stats.evacuated > 0 && s->h->retired > 0);
    end(s, threads, readers);
}

/* Buckets are split and merged in turns, however full they are; index segments come and go. */
TEST(readers_see_every_value_whole_and_in_order_while_buckets_are_split_and_merged) {
    pthread_t threads[READERS];
    reader readers[READERS];
    shared *s = begin(64 << 20, threads, readers);
    uint64_t seed = check_seed();
    for (int i = 0; i < OPERATIONS / 4; i++) {
        change(s, (int)any(&seed, KEYS), &seed);
        if (i % 4 != 0) continue;
        index_breathe(s->h, any(&seed, 1u << 31), 200, BUCKETS_MOST);
        turn(s);
    }
    CHECK(s->h->index_retired > 0);
    end(s, threads, readers);
    CHECK(readers[0].steps > 0 && readers[0].settling > 0);
}

/* ---- a value that arrives off the owner's thread ---- */
typedef struct arrival {
    host *h;
    table_prepared p;
    uint64_t key, count;
    uint32_t cut;
} arrival;
static void *arrive(void *arg) {
    arrival *a = arg;
    uint8_t value[VALUE_MOST];
    uint32_t n = make_value(value, a->key, a->count);
    fkv_copy_in(a->p.value, value, a->cut);
    fkv_copy_in(a->p.value + a->cut, value + a->cut, n - a->cut);
    table_seal(a->h->t, &a->p);
    return NULL;
}
/* The value shares a word with the end of the key; meanwhile the owner compares the key, and splits read it. */
TEST(a_reserved_value_is_written_by_another_thread_while_the_owner_goes_on) {
    host *h = host_open(16 << 20, 0, 0);
    uint64_t seed = check_seed();
    table_busy why;
    table_entry e;
    for (uint64_t i = 0; i < 300; i++) {
        char key[32];
        size_t n = (size_t)snprintf(key, sizeof key, "arrives %d", (int)i);
        table_op op = host_op(h, TABLE_PUT, key, n, NULL, value_bytes(i, 2));
        arrival a = { .h = h, .key = i, .count = 2, .cut = any(&seed, 16) };
        uint64_t present;
        fkv_status s;
        while ((s = table_prepare(h->t, &op, &a.p, &present, &why)) == FKV_BUSY) host_serve(h);
        CHECK_EQ(s, FKV_OK);
        pthread_t worker;
        CHECK_EQ(pthread_create(&worker, NULL, arrive, &a), 0);
        CHECK(host_get(h, key, n, &e) == FKV_BUSY);
        for (int k = 0; k < 40; k++) {
            char other[32];
            snprintf(other, sizeof other, "%d of %d", k, (int)i);
            CHECK_EQ(host_put(h, other, "beside"), FKV_OK);
        }
        pthread_join(worker, NULL);
        table_commit(h->t, &a.p);
        CHECK_EQ(host_get(h, key, n, &e), FKV_OK);
        CHECK_EQ(check_value(e.value, e.value_bytes, i), 2);
    }
    table_stats stats;
    table_get_stats(h->t, &stats);
    CHECK(stats.splits > 500);
    host_check(h);
    host_close(h);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("# seed %llu\n", (unsigned long long)check_seed());
    RUN(readers_see_every_value_whole_and_in_order_while_the_table_grows);
    RUN(readers_see_every_value_whole_and_in_order_while_segments_are_emptied);
    RUN(readers_see_every_value_whole_and_in_order_while_buckets_are_split_and_merged);
    RUN(a_reserved_value_is_written_by_another_thread_while_the_owner_goes_on);
    return check_end(argc, argv);
}
