/* lookup_group_test.c: GETs over mapped memory in groups (lookup_direct_group): where their values lie, above all when
 * some that were copied are dropped afterwards. The bytes of each value say which key they belong to. */
#include <stdio.h>
#include "client_kit.h"
#include "guest_steps.h"
#include "stops.h"
#include "truth.h"

enum { ROOM = 8192 };
static uint8_t got[ROOM];

static lookup_key key[LOOKUP_GROUP];
static char name[LOOKUP_GROUP][32];
static lookup_result result[LOOKUP_GROUP];
static size_t at[LOOKUP_GROUP];
static bool done[LOOKUP_GROUP];

static void up_in_place(void) {
    p = puppet_new();
    p->direct = true;
    guest_up(&c, p);
}

static void set_key(int i, const char *text) {
    snprintf(name[i], sizeof name[i], "%s", text);
    key[i] = kit_key(name[i]);
}
static void set_keys(int n, const char *const *text) {
    for (int i = 0; i < n; i++) set_key(i, text[i]);
}

/* The value of a key: its name, again and again. */
static const char *value_of(const char *text, size_t bytes) {
    static char value[ROOM + 1];
    size_t n = strlen(text);
    for (size_t i = 0; i < bytes; i++) value[i] = i % (n + 1) == n ? '|' : text[i % (n + 1)];
    value[bytes] = 0;
    return value;
}
static void put_sized(const char *text, size_t bytes, uint64_t life_ms) {
    table_op op = host_op(p->h, TABLE_PUT, text, strlen(text), value_of(text, bytes), bytes);
    if (life_ms) op.expiry_ms = p->h->wall_ms + life_ms;
    CHECK_EQ(host_do_patiently(p->h, &op, NULL), FKV_OK);
}

static size_t ask_group(lookup *l, int n, size_t room) {
    memset(got, '.', sizeof got);
    memset(result, 0, sizeof result);
    memset(at, 0xff, sizeof at);
    memset(done, 0, sizeof done);
    size_t used = lookup_direct_group(l, key, n, got, room, result, at, done);
    CHECK(used <= room);
    for (size_t i = room; i < sizeof got; i++) CHECK_EQ(got[i], '.');
    return used;
}

/* The values that were found lie side by side from 0 to `used`, each with the bytes of its key, and what did not fit
 * does not. Returns how many were found. */
static int expect_packed(int n, size_t room, size_t used) {
    static uint8_t taken[ROOM];
    size_t sum = 0;
    int found = 0;
    memset(taken, 0, sizeof taken);
    for (int i = 0; i < n; i++) {
        if (!done[i]) continue;
        if (result[i].status == FKV_BUFFER_TOO_SMALL) CHECK(result[i].value_bytes > room - used);
        if (result[i].status != FKV_OK) continue;
        size_t bytes = result[i].value_bytes;
        CHECK(at[i] <= used && bytes <= used - at[i]);
        CHECK(memcmp(got + at[i], value_of(name[i], bytes), bytes) == 0);
        for (size_t b = 0; b < bytes; b++) CHECK(!taken[at[i] + b]++);
        sum += bytes;
        found++;
    }
    CHECK_EQ(sum, used);
    return found;
}

TEST(a_group_is_answered_as_its_members_would_be) {
    up_in_place();
    char value[200], keys[LOOKUP_GROUP][32];
    size_t room = 700, used;
    for (int i = 0; i < LOOKUP_GROUP; i++) {
        snprintf(keys[i], 32, "group-%d", i);
        memset(value, 'a' + i, 100);
        value[100] = 0;
        if (i != 3) put(keys[i], value);
        key[i] = kit_key(keys[i]);
    }
    extent_of("group-5")->state = FKV_EXTENT_DEAD;
    used = lookup_direct_group(c.l, key, LOOKUP_GROUP, got, room, result, at, done);
    CHECK_EQ(used, 700);
    size_t next = 0;
    for (int i = 0; i < LOOKUP_GROUP; i++) {
        CHECK_EQ(done[i], i != 5);
        if (i == 5) continue;
        fkv_status should = i == 3 ? FKV_NOT_FOUND : next + 100 <= room ? FKV_OK : FKV_BUFFER_TOO_SMALL;
        CHECK_EQ(result[i].status, should);
        if (should == FKV_NOT_FOUND) continue;
        CHECK_EQ(result[i].value_bytes, 100);
        if (should != FKV_OK) continue;
        CHECK_EQ(at[i], next);
        for (int b = 0; b < 100; b++) CHECK_EQ(got[next + (size_t)b], 'a' + i);
        next += 100;
    }
    down();
}

TEST(an_expired_value_leaves_no_gap_and_costs_no_room) {
    up_in_place();
    put_sized("a", 8, 100);
    put_sized("b", 8, 0);
    put_sized("c", 8, 0);
    set_keys(4, (const char *const[]){ "a", "b", "c", "b" });
    CHECK_EQ(ask_group(c.l, 4, 32), 32);
    CHECK_EQ(expect_packed(4, 32, 32), 4);
    puppet_time(p, 101 * MS);
    for (size_t room = 32; room >= 24; room -= 8) {
        CHECK_EQ(ask_group(c.l, 4, room), 24);
        CHECK(done[0] && result[0].status == FKV_NOT_FOUND);
        CHECK_EQ(expect_packed(4, room, 24), 3);
    }
    CHECK_EQ(ask_group(c.l, 4, 23), 16);
    CHECK_EQ(expect_packed(4, 23, 16), 2);
    CHECK(done[3] && result[3].status == FKV_BUFFER_TOO_SMALL);
    down();
}

TEST(a_value_that_did_not_fit_beside_a_dropped_one_is_counted_as_one_get) {
    up_in_place();
    put_sized("a", 100, 100);
    put_sized("b", 100, 0);
    set_keys(2, (const char *const[]){ "a", "b" });
    puppet_time(p, 101 * MS);
    lookup_stats before = guest_stats(&c);
    CHECK_EQ(ask_group(c.l, 2, 100), 100);
    CHECK_EQ(expect_packed(2, 100, 100), 1);
    CHECK_EQ(guest_stats(&c).gets - before.gets, 2);
    CHECK_EQ(guest_stats(&c).hits - before.hits, 1);
    down();
}

TEST(a_group_after_the_lease_has_run_out_takes_no_room) {
    up_in_place();
    put_sized("a", 8, 0);
    put_sized("b", 8, 0);
    set_keys(2, (const char *const[]){ "a", "b" });
    cut_off(0);
    CHECK_EQ(ask_group(c.l, 2, 100), 0);
    CHECK(!done[0] && !done[1]);
    down();
}

static void time_passes(void) { puppet_time(p, FKV_GET_LIFE_NS + MS); }
static void time_passes_now_and_at_the_bucket(void) {
    time_passes();
    mprotect(stops[1].page, PAGE, PROT_NONE);
}
TEST(a_group_that_is_late_twice_takes_no_room) {
    up_in_place();
    put_sized("a", 8, 0);
    put_sized("b", 8, 0);
    set_keys(2, (const char *const[]){ "a", "b" });
    CHECK_EQ(ask_group(c.l, 2, 100), 16);
    const lookup_shard *sh = &c.l->shard[0];
    uint32_t bucket = fkv_bucket_of(fkv_hash_bucket_bits(lookup_hash(c.l, &key[0])), sh->buckets);
    stop_at(1, sh->index + (size_t)bucket * FKV_BUCKET_BYTES, time_passes);
    CHECK_EQ(mprotect(stops[1].page, PAGE, PROT_READ | PROT_WRITE), 0);
    stop_at(0, extent_of("a"), time_passes_now_and_at_the_bucket);
    CHECK_EQ(ask_group(c.l, 2, 100), 0);
    stops_end(2);
    CHECK(!done[0] && !done[1]);
    CHECK_EQ(ask_group(c.l, 2, 16), 16);
    CHECK_EQ(expect_packed(2, 16, 16), 2);
    down();
}

/* Over shm and several shards, the lease of one of which is over. */
TEST(values_of_a_shard_whose_lease_is_over_leave_no_gap) {
    rig r;
    kit k;
    rig_init(&r, FAB_SHM, NULL);
    rig_up(&r, RIG_SHARDS, 8 << 20);
    kit_up(&k, &r, 100);
    for (int i = 0; i < LOOKUP_GROUP; i++) {
        char text[32];
        snprintf(text, sizeof text, "key-%d", i);
        set_key(i, text);
        CHECK_EQ(kit_put(&k, text, value_of(text, 10 + (size_t)i), 10 + (uint32_t)i, 10000).status, FKV_OK);
        kit_expect(&k, text, value_of(text, 10 + (size_t)i));
    }
    for (uint32_t over = 0; over < RIG_SHARDS; over++) {
        size_t stay = 0;
        int members = 0;
        for (int i = 0; i < LOOKUP_GROUP; i++) {
            if (lookup_shard_of(k.l, &key[i]) == over) continue;
            stay += 10 + (size_t)i;
            members++;
        }
        bool asked = false;
        while (!asked) {
            /* Until this machine lets the group end in time, and the leases of the others run. */
            for (int i = 0; i < LOOKUP_GROUP; i++) kit_expect(&k, name[i], value_of(name[i], 10 + (size_t)i));
            lookup_shard *sh = &k.l->shard[over];
            uint64_t until = sh->lease_until;
            sh->lease_until = 0;
            size_t used = ask_group(k.l, LOOKUP_GROUP, stay);
            sh->lease_until = until;
            int found = expect_packed(LOOKUP_GROUP, stay, used);
            for (int i = 0; i < LOOKUP_GROUP; i++) CHECK(!done[i] || lookup_shard_of(k.l, &key[i]) != over);
            asked = found == members;
            if (asked) CHECK_EQ(used, stay);
        }
    }
    kit_down(&k);
    rig_down(&r);
}

/* Groups of any keys in any room: some are not there, some have expired, some are being changed, some come twice, some
 * have no bytes. */
TEST(whatever_is_dropped_values_lie_side_by_side_and_what_does_not_fit_does_not) {
    enum { KEYS = 40, ROUNDS = 3000 };
    static truth any; /* for its random numbers alone */
    char text[32];
    int found = 0, dropped = 0, short_of = 0;
    up_in_place();
    any.seed = check_seed();
    for (int round = 0; round < ROUNDS; round++) {
        snprintf(text, sizeof text, "k%u", truth_any(&any, KEYS));
        fkv_extent *changing = NULL;
        put_sized(text, truth_any(&any, 4) == 0 ? 0 : truth_any(&any, 120),
                  truth_any(&any, 3) == 0 ? 1 + truth_any(&any, 40) : 0);
        if (truth_any(&any, 4) == 0) {
            changing = extent_of(text);
            changing->state = FKV_EXTENT_PENDING;
        }
        puppet_time(p, truth_any(&any, 10) * MS); /* the client's alone: the owner does not sweep */
        int n = 1 + (int)truth_any(&any, LOOKUP_GROUP);
        for (int i = 0; i < n; i++) {
            snprintf(text, sizeof text, "k%u", truth_any(&any, KEYS));
            set_key(i, text);
        }
        size_t room = truth_any(&any, 1200), used = ask_group(c.l, n, room);
        found += expect_packed(n, room, used);
        for (int i = 0; i < n; i++) {
            dropped += done[i] && result[i].status == FKV_NOT_FOUND;
            short_of += done[i] && result[i].status == FKV_BUFFER_TOO_SMALL;
        }
        if (changing) changing->state = FKV_EXTENT_LIVE;
        if (round % 20 == 0) puppet_pass(p, 700 * MS);
        /* learns of segments, and has a lease again */
        for (int i = 0; i < n; i++)
            if (!done[i]) guest_get(&c, name[i]);
    }
    CHECK(found > ROUNDS && dropped > ROUNDS / 4 && short_of > ROUNDS / 10);
    down();
}

int main(int argc, char **argv) {
    RUN(a_group_is_answered_as_its_members_would_be);
    RUN(an_expired_value_leaves_no_gap_and_costs_no_room);
    RUN(a_value_that_did_not_fit_beside_a_dropped_one_is_counted_as_one_get);
    RUN(a_group_after_the_lease_has_run_out_takes_no_room);
    RUN(a_group_that_is_late_twice_takes_no_room);
    RUN(values_of_a_shard_whose_lease_is_over_leave_no_gap);
    RUN(whatever_is_dropped_values_lie_side_by_side_and_what_does_not_fit_does_not);
    return check_end(argc, argv);
}
