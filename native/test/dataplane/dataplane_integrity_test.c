/* dataplane_integrity_test.c: a copy that is not what its owner has, or whose memory has changed by itself, says so and
 * acknowledges nothing any more; one that is what its owner has never does. */
#include "../../replication/integrity.h"
#include "links_rig.h"

/* Leases pass in real time here; a backup that a busy machine lets wait for one closes the shard. */
enum { BEAT_LEASE_MS = 1000 };
static uint32_t damaged; /* NEXT's copy */
static void on_copy(void *ctx, uint32_t shard, uint64_t copy, dataplane_copy_event what) {
    if (what != DATAPLANE_COPY_DAMAGED) return;
    CHECK(ctx == &servers[NEXT].r && shard == number && copy == id_of(NEXT));
    __atomic_add_fetch(&damaged, 1, __ATOMIC_SEQ_CST);
}
static uint32_t is_damaged(void) { return __atomic_load_n(&damaged, __ATOMIC_SEQ_CST); }

static void up_with(uint32_t scrub_ms) {
    damaged = 0;
    copies_lease_ms = BEAT_LEASE_MS;
    copies_event = on_copy;
    copies_scrub_ms = scrub_ms;
    up();
}
/* By then a lease of the copy has come that was asked for after now. */
static void beats_pass(uint32_t leases) {
    for (uint32_t i = 0; i < leases; i++) {
        uint64_t from = fkv_now_ns();
        UNTIL(OWNER, seen.right_ns > from + BEAT_LEASE_MS * UINT64_C(1040000));
    }
}

static void entry_at(const worker *w, uint32_t i, table_entry *out) {
    const char *key = key_at(i);
    uint64_t hash = fkv_hash_key(&w->d->c.hash_seed, 0, key, strlen(key));
    CHECK_EQ(table_committed(w->by_number[number]->table, 0, key, strlen(key), hash, out), FKV_OK);
}
static void do_flip(worker *w, void *ctx) {
    (void)ctx;
    table_entry e;
    entry_at(w, 7, &e);
    *(uint8_t *)(uintptr_t)&e.value[3] ^= 1;
}
static void do_remove(worker *w, void *ctx) {
    (void)ctx;
    const char *key = key_at(7);
    table_op op = { .kind = TABLE_DELETE,
                    .key = key,
                    .key_bytes = (uint16_t)strlen(key),
                    .hash = fkv_hash_key(&w->d->c.hash_seed, 0, key, strlen(key)) };
    table_prepared p;
    uint64_t present;
    table_busy why;
    CHECK_EQ(table_prepare(here(w)->table, &op, &p, &present, &why), FKV_OK);
    table_commit(here(w)->table, &p);
}
static void expect_damage(void) {
    UNTIL(NEXT, is_damaged());
    UNTIL(OWNER, seen.right_ns < fkv_now_ns());
    CHECK_EQ(is_damaged(), 1);
}

TEST(a_copy_that_lacks_an_entry_says_so) {
    up_with(0);
    for (uint32_t i = 0; i < 20; i++) CHECK_EQ(raw_put(&c, key_at(i), "a value", 7), FKV_OK);
    beats_pass(4);
    CHECK_EQ(is_damaged(), 0);
    visit_server(NEXT, do_remove, &(errand){ 0 });
    expect_damage();
    down();
}

TEST(a_bit_that_flips_in_a_copys_memory_is_found) {
    up_with(1);
    for (uint32_t i = 0; i < 20; i++) CHECK_EQ(raw_put(&c, key_at(i), "a value", 7), FKV_OK);
    beats_pass(4);
    CHECK_EQ(is_damaged(), 0);
    visit_server(NEXT, do_flip, &(errand){ 0 });
    expect_damage();
    down();
}

static void do_compare(worker *w, void *ctx) {
    const uint64_t *ahead = ctx;
    backup *b = here(w)->repl.copy;
    fkv_peer_heartbeat x = { .shard = number,
                             .epoch = b->place.epoch + (uint32_t)ahead[0],
                             .committed = b->applied + ahead[1],
                             .digest = ahead[2] };
    integrity_compare(b, &x);
}
TEST(a_digest_of_another_place_of_the_log_says_nothing) {
    static const uint64_t elsewhere[][3] = { { 1, 0, 5 }, { 0, 1, 5 }, { 0, 0, 0 } };
    up_with(0);
    CHECK_EQ(raw_put(&c, "alpha", "a value", 7), FKV_OK);
    UNTIL(NEXT, seen.committed == 1);
    for (int i = 0; i < 3; i++) rig_visit(&servers[NEXT].r, do_compare, (void *)(uintptr_t)elsewhere[i]);
    CHECK_EQ(is_damaged(), 0);
    rig_visit(&servers[NEXT].r, do_compare, (uint64_t[]){ 0, 0, 5 });
    CHECK_EQ(is_damaged(), 1);
    down();
}

/* Changes, removals and beats in all orders; the copy's memory is looked at all the time. */
TEST(a_copy_that_follows_is_never_called_damaged) {
    enum { ROUNDS = 40, EACH = 60 };
    uint64_t id[EACH];
    up_with(1);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < EACH; i++) {
            const char *key = key_at((round * 7 + i) % 100);
            fkv_request remove = raw_request(&c, FKV_OP_DELETE, key);
            id[i] = i % 3 ? raw_put_begin(&c, key, &round, sizeof round) : raw_send(&c, &remove, key, NULL, 0);
        }
        for (uint32_t i = 0; i < EACH; i++) {
            fkv_status s = raw_end(&c, id[i]);
            CHECK(s == FKV_OK || s == FKV_NOT_FOUND);
        }
        if (round % 4 == 0) beats_pass(1);
    }
    beats_pass(2);
    CHECK_EQ(is_damaged(), 0);
    down();
}

int main(int argc, char **argv) {
    RUN(a_copy_that_lacks_an_entry_says_so);
    RUN(a_bit_that_flips_in_a_copys_memory_is_found);
    RUN(a_digest_of_another_place_of_the_log_says_nothing);
    RUN(a_copy_that_follows_is_never_called_damaged);
    return check_end(argc, argv);
}
