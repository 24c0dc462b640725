/* lookup_direct_test.c: the GET over mapped memory: with the owner's steps and the time set by the test (puppet.h), and
 * beside a writer in another thread, over shm, for the sanitizers and for torn reads. */
#include <pthread.h>
#include <stdio.h>
#include "client_kit.h"
#include "guest_steps.h"
#include "stops.h"

static uint8_t got[16384];

static void up_in_place(void) {
    p = puppet_new();
    p->direct = true;
    guest_up(&c, p);
}

/* The status, or -1: not possible in place now. */
static int direct(const char *key, size_t room, lookup_result *r) {
    lookup_key k = kit_key(key);
    *r = (lookup_result){ 0 };
    if (!lookup_direct(c.l, &k, got, room, r)) return -1;
    got[r->status == FKV_OK ? r->value_bytes : 0] = 0;
    return (int)r->status;
}
static void expect(const char *key, const char *value) {
    lookup_result r;
    CHECK_EQ(direct(key, sizeof got - 1, &r), FKV_OK);
    CHECK(r.value_bytes == strlen(value) && memcmp(got, value, r.value_bytes) == 0);
}

TEST(hits_misses_and_sizes_are_answered_in_place) {
    up_in_place();
    lookup_result r;
    put("alpha", "some value");
    expect("alpha", "some value");
    CHECK_EQ(direct("beta", sizeof got, &r), FKV_NOT_FOUND);
    CHECK_EQ(direct("alpha", 9, &r), FKV_BUFFER_TOO_SMALL);
    CHECK_EQ(r.value_bytes, 10);
    CHECK_EQ(direct("alpha", 10, &r), FKV_OK);
    CHECK_EQ(host_delete(p->h, "alpha"), FKV_OK);
    CHECK_EQ(direct("alpha", sizeof got, &r), FKV_NOT_FOUND);
    CHECK_EQ(direct("", sizeof got, &r), -1);
    CHECK_EQ(p->reads_posted, 1); /* the one that made the layout known */
    down();
}

TEST(a_value_that_did_not_fit_counts_when_it_does_or_when_no_room_was_given) {
    up_in_place();
    lookup_result r;
    put("alpha", "some value");
    lookup_stats before = guest_stats(&c);
    CHECK_EQ(direct("alpha", 9, &r), FKV_BUFFER_TOO_SMALL);
    CHECK_EQ(guest_stats(&c).gets, before.gets);
    CHECK_EQ(direct("alpha", 10, &r), FKV_OK);
    CHECK_EQ(direct("alpha", 0, &r), FKV_BUFFER_TOO_SMALL); /* whether it is there */
    CHECK_EQ(direct("beta", 0, &r), FKV_NOT_FOUND);
    CHECK_EQ(guest_stats(&c).gets - before.gets, 3);
    CHECK_EQ(guest_stats(&c).hits - before.hits, 2);
    CHECK_EQ(guest_stats(&c).misses - before.misses, 1);
    down();
}

TEST(nothing_is_answered_in_place_after_the_lease_has_run_out) {
    up_in_place();
    lookup_result r;
    put("alpha", "old");
    expect("alpha", "old");
    cut_off(1);
    expect("alpha", "old");
    puppet_pass(p, 1);
    CHECK_EQ(direct("alpha", sizeof got, &r), -1);
    CHECK_EQ(direct("beta", sizeof got, &r), -1);
    CHECK_EQ(direct("alpha", 1, &r), -1);
    CHECK_EQ(guest_stats(&c).late, 3);
    lookup_key k[2] = { kit_key("alpha"), kit_key("beta") };
    lookup_result results[2];
    size_t at[2];
    bool done[2];
    lookup_direct_group(c.l, k, 2, got, sizeof got, results, at, done);
    CHECK(!done[0] && !done[1]);
    /* A restarted owner: the old memory is still mapped here, and must not be seen again. */
    puppet_restart(p, false);
    p->silent = false;
    put("alpha", "new");
    guest_expect(&c, "alpha", "new");
    guest_settle(&c);
    expect("alpha", "new");
    down();
}

TEST(a_loop_that_only_reads_keeps_its_lease) {
    up_in_place();
    put("alpha", "one");
    for (int i = 0; i < 20000; i++) {
        puppet_time(p, MS / 5);
        expect("alpha", "one");
    }
    CHECK(p->leases >= 7 && p->leases <= 12);
    down();
}

TEST(what_is_in_the_middle_of_a_change_is_not_answered_in_place) {
    up_in_place();
    lookup_result r;
    put("alpha", "one");
    fkv_extent *e = extent_of("alpha");
    e->state = FKV_EXTENT_PENDING;
    CHECK_EQ(direct("alpha", sizeof got, &r), -1);
    e->state = FKV_EXTENT_DEAD;
    CHECK_EQ(direct("alpha", sizeof got, &r), -1);
    e->state = FKV_EXTENT_LIVE;
    expect("alpha", "one");
    e->tag ^= 1;
    CHECK_EQ(direct("alpha", sizeof got, &r), -1);
    e->tag ^= 1;
    expect("alpha", "one");
    down();
}

TEST(a_bucket_of_other_memory_is_not_a_miss) {
    up_in_place();
    lookup_result r;
    CHECK_EQ(direct("beta", sizeof got, &r), FKV_NOT_FOUND);
    lookup_shard *sh = &c.l->shard[0];
    lookup_key k = kit_key("beta");
    uint32_t bucket = fkv_bucket_of(fkv_hash_bucket_bits(lookup_hash(c.l, &k)), sh->buckets);
    fkv_bucket *b = (fkv_bucket *)(void *)(uintptr_t)(sh->index + (size_t)bucket * FKV_BUCKET_BYTES);
    b->word0 ^= 1;
    CHECK_EQ(direct("beta", sizeof got, &r), -1);
    down();
}

TEST(growth_and_chains_are_followed_in_place) {
    up_in_place();
    lookup_result r;
    grow();
    int later = 0;
    for (int i = 0; i < GROWN; i++) {
        while (direct(grown(i), sizeof got - 1, &r) != FKV_OK) {
            later++;
            guest_expect(&c, grown(i), grown(i)); /* learns of segments */
        }
        CHECK(strcmp((char *)got, grown(i)) == 0);
    }
    CHECK(later < 50);
    CHECK_EQ(p->gets, 0);
    static char chain[60][32];
    int n = 0;
    uint64_t first = 0;
    for (int i = 0; n < 60; i++) {
        snprintf(chain[n], 32, "chain-%d", i);
        uint64_t h = host_hash(p->h, 0, chain[n], strlen(chain[n]));
        if (n == 0) first = h;
        if (((h ^ first) & 0xffff) == 0) n++;
    }
    for (int i = 0; i < 59; i++) put(chain[i], chain[i]);
    for (int i = 0; i < 59; i++) expect(chain[i], chain[i]);
    CHECK_EQ(direct(chain[59], sizeof got, &r), FKV_NOT_FOUND);
    down();
}

TEST(an_expired_entry_is_a_miss_in_place) {
    up_in_place();
    lookup_result r;
    table_op op = host_op(p->h, TABLE_PUT, "brief", 5, "v", 1);
    op.expiry_ms = p->h->wall_ms + 100;
    CHECK_EQ(host_do_patiently(p->h, &op, NULL), FKV_OK);
    puppet_time(p, 98 * MS);
    expect("brief", "v");
    puppet_time(p, 3 * MS);
    CHECK_EQ(direct("brief", sizeof got, &r), FKV_NOT_FOUND);
    down();
}

TEST(a_lost_connection_takes_the_mapping_away) {
    up_in_place();
    lookup_result r;
    put("alpha", "one");
    expect("alpha", "one");
    puppet_break(p, FAB_SUCCESS);
    session_poll(c.s);
    CHECK_EQ(direct("alpha", sizeof got, &r), -1);
    while (direct("alpha", sizeof got, &r) != FKV_OK) {
        outcome o;
        guest_start(&c, "alpha", 100, &o);
        for (int i = 0; i < 40 && !o.done; i++) {
            puppet_pass(p, 5 * MS);
            guest_settle(&c);
        }
        CHECK(o.done);
    }
    down();
}

/* ---- a reader that is stopped on its way (stops.h) ---- */

/* Fills a value of three pages. */
static const char *long_value(char fill) {
    static char value[12001];
    memset(value, fill, 12000);
    return value;
}
static void expect_filled(const lookup_result *r, char fill) {
    CHECK_EQ(r->value_bytes, 12000);
    for (int i = 0; i < 12000; i++) CHECK_EQ(got[i], fill);
}

/* The memory that the slot named belongs to another key when the extent is looked at. */
static const fkv_extent *left;
static void the_place_is_reused(void) {
    char key[32];
    put("alpha", "new");
    puppet_pass(p, 700 * MS);
    host_drain(p->h);
    for (int i = 0; i < 100 && memcmp((const uint8_t *)left + FKV_EXTENT_HEADER, "alpha", 5) == 0; i++) {
        snprintf(key, sizeof key, "o%04d", i);
        put(key, long_value('x'));
    }
    CHECK(memcmp((const uint8_t *)left + FKV_EXTENT_HEADER, "alpha", 5) != 0 && left->state == FKV_EXTENT_LIVE);
}
TEST(a_reader_that_is_held_up_before_the_extent_takes_what_is_true_then) {
    up_in_place();
    lookup_result r;
    put("alpha", long_value('a'));
    left = extent_of("alpha");
    uint64_t version = left->version;
    stop_at(0, left, the_place_is_reused);
    CHECK_EQ(direct("alpha", sizeof got, &r), FKV_OK);
    stops_end(1);
    CHECK(r.value_bytes == 3 && memcmp(got, "new", 3) == 0 && r.version > version);
    down();
}

/* An entry that evacuation moved away, and back after the place had been another's: version and state are again what
 * they were. */
static uint8_t own[PAGE];
static void it_moves_away(void) {
    puppet_pass(p, FKV_GET_LIFE_NS / 2 + MS);
    memcpy(own, stops[0].page, PAGE);
    memset(stops[0].page, 'x', PAGE);
}
static void it_comes_back(void) {
    puppet_pass(p, FKV_GET_LIFE_NS / 2 + MS);
    memcpy(stops[0].page, own, PAGE);
}
static void stop_in_copy(void) {
    const uint8_t *e = (const uint8_t *)extent_of("alpha");
    stop_at(1, e + 2 * PAGE, it_comes_back);
    stop_at(0, e + PAGE, it_moves_away);
}
TEST(a_reader_that_is_held_up_in_the_middle_of_a_copy_does_it_again) {
    up_in_place();
    lookup_result r;
    put("alpha", long_value('a'));
    put("beta", "short");
    expect("beta", "short");
    stop_in_copy();
    CHECK_EQ(direct("alpha", sizeof got, &r), FKV_OK);
    stops_end(2);
    expect_filled(&r, 'a');

    lookup_key k[2] = { kit_key("alpha"), kit_key("beta") };
    lookup_result results[2];
    size_t at[2];
    bool done[2];
    stop_in_copy();
    CHECK_EQ(lookup_direct_group(c.l, k, 2, got, sizeof got, results, at, done), 12005);
    stops_end(2);
    CHECK(done[0] && done[1]);
    expect_filled(&results[0], 'a');
    down();
}
static void time_passes(void) { puppet_time(p, FKV_GET_LIFE_NS + MS); }
static void time_passes_now_and_at_the_bucket(void) {
    time_passes();
    mprotect(stops[1].page, PAGE, PROT_NONE);
}
TEST(a_reader_that_is_held_up_each_time_answers_nothing_in_place) {
    up_in_place();
    lookup_result r;
    put("alpha", "one");
    expect("alpha", "one");
    const lookup_shard *sh = &c.l->shard[0];
    lookup_key k = kit_key("alpha");
    uint32_t bucket = fkv_bucket_of(fkv_hash_bucket_bits(lookup_hash(c.l, &k)), sh->buckets);
    stop_at(1, sh->index + (size_t)bucket * FKV_BUCKET_BYTES, time_passes);
    CHECK_EQ(mprotect(stops[1].page, PAGE, PROT_READ | PROT_WRITE), 0);
    stop_at(0, extent_of("alpha"), time_passes_now_and_at_the_bucket);
    CHECK_EQ(direct("alpha", sizeof got, &r), -1);
    stops_end(2);
    expect("alpha", "one");
    down();
}

/* ---- beside a writer ---- */

enum { COUNTERS = 16, VALUE_MOST = 2000 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CHANGES = 10000 };
#else
enum { CHANGES = 100000 };
#endif
typedef struct shared_counters {
    rig *r;
    uint64_t done[COUNTERS], begun[COUNTERS];
    int finished;
} shared_counters;

/* Each byte is a function of key and count, so that a mixture of two values shows. */
static uint32_t make_value(uint8_t *out, uint32_t key, uint64_t count) {
    uint32_t n = 8 + (uint32_t)((key * 7919 + count * 104729) % (VALUE_MOST - 8));
    memcpy(out, &count, 8);
    for (uint32_t i = 8; i < n; i++) out[i] = (uint8_t)(count * 31 + key + i);
    return n;
}
static uint64_t check_value(const uint8_t *value, uint32_t bytes, uint32_t key) {
    uint8_t should[VALUE_MOST];
    uint64_t count;
    CHECK(bytes >= 8);
    memcpy(&count, value, 8);
    CHECK_EQ(bytes, make_value(should, key, count));
    CHECK(memcmp(value, should, bytes) == 0);
    return count;
}

static void *write_counters(void *arg) {
    shared_counters *s = arg;
    enum { WINDOW = 8 };
    raw w;
    raw_up(&w, s->r, 200);
    uint64_t id[WINDOW] = { 0 }, count[WINDOW];
    uint32_t key[WINDOW];
    for (uint64_t i = 1; i <= CHANGES + WINDOW; i++) {
        uint32_t at = i % WINDOW;
        if (id[at]) {
            CHECK_EQ(raw_end(&w, id[at]), FKV_OK);
            __atomic_store_n(&s->done[key[at]], count[at], __ATOMIC_SEQ_CST);
            id[at] = 0;
        }
        if (i > CHANGES) continue;
        uint8_t value[VALUE_MOST];
        char name[16];
        key[at] = (uint32_t)(i % COUNTERS);
        count[at] = i;
        snprintf(name, sizeof name, "counter-%u", key[at]);
        __atomic_store_n(&s->begun[key[at]], i, __ATOMIC_SEQ_CST);
        id[at] = raw_put_begin(&w, name, value, make_value(value, key[at], i));
    }
    raw_down(&w);
    __atomic_store_n(&s->finished, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

TEST(values_read_in_place_beside_a_writer_are_whole_and_never_go_back) {
    rig r;
    kit k;
    shared_counters s = { .r = &r };
    rig_init(&r, FAB_SHM, NULL);
    rig_up(&r, RIG_SHARDS, 8 << 20);
    kit_up(&k, &r, 100);
    pthread_t writer;
    uint64_t last[COUNTERS] = { 0 }, in_place = 0, gets = 0;
    CHECK(pthread_create(&writer, NULL, write_counters, &s) == 0);
    while (!__atomic_load_n(&s.finished, __ATOMIC_SEQ_CST)) {
        for (uint32_t i = 0; i < COUNTERS; i++, gets++) {
            char name[16];
            uint8_t value[VALUE_MOST];
            lookup_result result;
            snprintf(name, sizeof name, "counter-%u", i);
            lookup_key key = kit_key(name);
            uint64_t done = __atomic_load_n(&s.done[i], __ATOMIC_SEQ_CST), count = 0;
            if (lookup_direct(k.l, &key, value, sizeof value, &result)) {
                in_place++;
                CHECK(result.status == FKV_OK || (result.status == FKV_NOT_FOUND && done == 0));
                if (result.status == FKV_OK) count = check_value(value, result.value_bytes, i);
            } else {
                answer a = kit_get(&k, name, 20000);
                CHECK(a.status == FKV_OK || (a.status == FKV_NOT_FOUND && done == 0));
                if (a.status == FKV_OK) count = check_value(a.value, a.bytes, i);
                free(a.value);
            }
            CHECK(count >= done);
            CHECK(count >= last[i]);
            CHECK(count <= __atomic_load_n(&s.begun[i], __ATOMIC_SEQ_CST));
            last[i] = count;
        }
    }
    pthread_join(writer, NULL);
    CHECK(in_place > gets / 2);
    kit_down(&k);
    rig_down(&r);
}

int main(int argc, char **argv) {
    RUN(hits_misses_and_sizes_are_answered_in_place);
    RUN(a_value_that_did_not_fit_counts_when_it_does_or_when_no_room_was_given);
    RUN(nothing_is_answered_in_place_after_the_lease_has_run_out);
    RUN(a_loop_that_only_reads_keeps_its_lease);
    RUN(what_is_in_the_middle_of_a_change_is_not_answered_in_place);
    RUN(a_bucket_of_other_memory_is_not_a_miss);
    RUN(growth_and_chains_are_followed_in_place);
    RUN(an_expired_entry_is_a_miss_in_place);
    RUN(a_lost_connection_takes_the_mapping_away);
    RUN(a_reader_that_is_held_up_before_the_extent_takes_what_is_true_then);
    RUN(a_reader_that_is_held_up_in_the_middle_of_a_copy_does_it_again);
    RUN(a_reader_that_is_held_up_each_time_answers_nothing_in_place);
    RUN(values_read_in_place_beside_a_writer_are_whole_and_never_go_back);
    return check_end(argc, argv);
}
