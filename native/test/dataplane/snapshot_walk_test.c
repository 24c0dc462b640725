/* snapshot_walk_test.c: a walk over a table that changes meanwhile: what is in the snapshot, and the changes since it began,
 * make the table as it is at the end. And one over what is remembered of clients. */
#include "snapshot_walk.h"

static void nothing(void) {}
static uint32_t most_changes;
static void change_some(void) {
    for (uint32_t n = any(most_changes + 1); n > 0; n--) {
        uint32_t i = any(8) ? any(FEW) : any(LARGE);
        change(i, any(3) != 0, any_bytes(i));
    }
    host_pass(h, any(2) * 2000000);
}
static uint32_t grown;
static void grow(void) {
    for (uint32_t n = 0; n < 1500 && grown < KEYS; n++, grown++) change(grown, true, 20);
    host_pass(h, 2000000);
}
static void shrink(void) {
    for (uint32_t n = 0; n < 1500 && grown > 200; n++) change(--grown, false, 0);
    host_pass(h, 1000000000);
}

/* A few buckets at a time: each step of a walk ends within a chain, and some of these are merged then. */
static void merge_some(void) {
    for (int n = 0; n < 4; n++) {
        h->now_ns += 40000000;
        h->wall_ms += 40;
        table_tick(h->t, h->now_ns, h->wall_ms, 100);
        host_serve(h);
    }
}

static void change_large(void) {
    for (uint32_t i = 0; i < LARGE; i++) change(i, true, any_bytes(i));
    host_pass(h, 2000000);
}

TEST(a_snapshot_and_the_changes_since_it_began_make_the_table) {
    uint64_t seed = check_seed();
    for (uint32_t n = 0; n < 9; n++) {
        up(seed + n, 256 << 20);
        for (uint32_t i = 0; i < FEW; i++)
            if (any(4)) change(i, true, any_bytes(i));
        most_changes = n % 3 == 0 ? 2 : 60;
        for (int again = 0; again < 3; again++) {
            walk_all(change_some);
            check_all();
        }
        down();
    }
    CHECK(cuts > 6 && larges > 90);
}

TEST(a_table_at_rest_is_given_once) {
    up(check_seed(), 256 << 20);
    uint32_t there = 0;
    for (uint32_t i = 0; i < FEW; i++)
        if (any(4)) change(i, true, any_bytes(i));
    host_drain(h);
    for (uint32_t i = 0; i < FEW; i++) there += now[i].there;
    walk_all(nothing);
    check_all();
    CHECK_EQ(entries, there);
    down();
}

TEST(growth_and_merges_leave_no_key_out) {
    uint64_t seed = check_seed(), merges = 0, splits = 0;
    for (uint32_t n = 0; n < 12; n++) {
        up(seed + n, 64 << 20);
        for (grown = 0; grown < 400; grown++) change(grown, true, 3000);
        walk_all(grow); /* so that there are more steps than with small values */
        check_all();
        table_stats t;
        table_get_stats(h->t, &t);
        splits += t.splits;
        while (grown < KEYS) grow();
        host_drain(h);
        walk_all(shrink);
        check_all();
        table_get_stats(h->t, &t);
        merges += t.merges;
        down();
    }
    CHECK(splits > 1000 && merges > 100);
}

TEST(chains_that_are_merged_while_they_are_given_leave_no_key_out) {
    enum { MOST = 6000, LEFT = 1500 };
    uint64_t seed = check_seed(), merges = 0;
    for (uint32_t n = 0; n < 24; n++) {
        table_stats t;
        up(seed + n, 64 << 20);
        for (uint32_t i = 0; i < MOST; i++) change(i, true, i % 4 == 0 ? 3000 : 20);
        host_drain(h);
        for (uint32_t i = 0; i < MOST; i++)
            if (i % 4 != 0) change(i, false, 0);
        table_get_stats(h->t, &t);
        uint64_t before = t.merges;
        walk_all(merge_some);
        check_all();
        table_get_stats(h->t, &t);
        merges += t.merges - before;
        CHECK_EQ(t.entries, LEFT);
        down();
    }
    CHECK(merges > 500);
}

/* A bit of a value that is there changes by itself. */
static void damage(uint32_t i) {
    char key[32];
    int n = host_number_key(key, sizeof key, (int)i);
    table_entry e;
    CHECK_EQ(host_get(h, key, (size_t)n, &e), FKV_OK);
    ((uint8_t *)(uintptr_t)e.value)[any(e.value_bytes)] ^= (uint8_t)(1 << any(8));
    now[i].crc = fkv_crc32c(0, e.value, e.value_bytes);
    now[i].damaged = true;
}
/* When a part of a large value was given. */
static uint32_t moves; /* of such a value */
static void move_some(void) {
    table_entry e;
    int budget = 1000000;
    if (k.value_at == 0 || k.value_bytes == 0) return;
    host_add(h, TABLE_HEAP, 1 << 20);
    if (table_evacuate_start(h->t)) table_evacuate_step(h->t, &budget);
    moves += table_committed(h->t, k.space, k.key, k.key_bytes, k.hash, &e) == FKV_OK &&
             table_checksum_begin(&e) != k.begun;
    host_pass(h, 2000000);
}

/* Else it would come back from the disk with a good checksum. */
TEST(what_is_damaged_in_memory_is_said_to_be_so_in_a_snapshot) {
    enum { SMALL = 200, SPARSE = 64 };
    uint64_t seed = check_seed();
    for (uint32_t n = 0; n < 8 || moves < 3; n++) {
        up(seed + n, 256 << 20);
        for (uint32_t i = 0; i < LARGE + SMALL; i++) change(i, true, any_bytes(i) + 1);
        /* large ones, in segments that are hardly used: these are emptied meanwhile */
        host_add(h, TABLE_HEAP, 8 << 20);
        for (uint32_t i = FEW - SPARSE; i < FEW; i++) change(i, true, 100000);
        for (uint32_t i = FEW - SPARSE; i < FEW; i++)
            if (i % 6) change(i, false, 0);
        host_drain(h);
        for (uint32_t i = 0; i < LARGE + SMALL; i++)
            if (any(i < LARGE ? 3 : 20) == 0) damage(i);
        walk_all(n % 2 ? move_some : nothing);
        check_all();
        down();
    }
}

TEST(keys_that_are_changed_again_and_again_do_not_hold_up_a_walk) {
    up(check_seed(), 256 << 20);
    for (uint32_t i = 0; i < LARGE; i++) change(i, true, any_bytes(i));
    most_changes = 0;
    CHECK(walk_all(change_some) < 500);
    for (int n = 0; n < 5; n++) {
        uint32_t before = larges;
        CHECK(walk_all(change_large) < 500);
        check_all();
        CHECK(larges - before <= LARGE);
    }
    down();
}
/* ---- clients ---- */

static uint64_t used[CLIENTS], at_begin[CLIENTS], told[CLIENTS];
static uint32_t clients;

static dedup_result result_of(uint32_t client, uint64_t sequence) {
    return (dedup_result){ .status = sequence % 5 ? FKV_OK : FKV_NOT_FOUND,
                           .version = client * 1000003 + sequence,
                           .value = sequence * 7 };
}
static uint64_t spread = 0x9e3779b97f4a7c15u; /* of their ids */
static uint64_t id_of(uint32_t i) { return (uint64_t)(i + 1) * spread; }
static void use(uint32_t i) {
    uint64_t client = id_of(i), sequence = ++used[i];
    dedup_result r = result_of(i, sequence);
    dedup_note(&w.dedup, client, 0, sequence, &r, h->now_ns);
}
static void take_windows(const uint8_t *items, uint32_t bytes) {
    static dedup_change change[FKV_DEDUP_WINDOW];
    item_window x;
    uint32_t at = 0;
    while (item_next_window(items, bytes, &at, &x, change)) {
        uint32_t i = 0;
        if (x.client >> 32 && spread == 1 << 20) continue; /* another one */
        while (id_of(i) != x.client) CHECK(++i < CLIENTS);
        CHECK(x.forgotten <= used[i]);
        uint64_t below = x.forgotten;
        for (uint32_t k = 0; k < x.changes; k++) {
            dedup_result r = result_of(i, change[k].sequence);
            CHECK(change[k].result.status == r.status && change[k].result.version == r.version &&
                  change[k].result.value == r.value && change[k].sequence <= used[i]);
            below += change[k].sequence > x.forgotten;
        }
        if (told[i] < below) told[i] = below; /* all up to there: none is missing between */
    }
    CHECK_EQ(at, bytes);
}
static void use_some(void) {
    for (uint32_t n = any(200); n > 0; n--) use(any(clients));
    if (clients < CLIENTS) clients += any(8);
    if (clients > CLIENTS) clients = CLIENTS;
    for (uint32_t n = 0; n < 30; n++) change(any(FEW), true, 3000);
}

TEST(what_clients_have_done_before_it_began_is_in_a_snapshot) {
    uint64_t seed = check_seed();
    for (uint32_t n = 0; n < 10; n++) {
        up(seed + n, 256 << 20);
        memset(used, 0, sizeof used);
        clients = 20 + any(100);
        for (uint32_t i = 0; i < 40000; i++) use(any(4) ? any(clients) : any(3));
        for (uint32_t i = 0; i < 200; i++) change(i + LARGE, true, 3000);
        memcpy(at_begin, used, sizeof used);
        memset(told, 0, sizeof told);
        CHECK(walk_all(use_some) > 3);
        for (uint32_t i = 0; i < CLIENTS; i++) CHECK(told[i] >= at_begin[i]);
        CHECK(used[0] > FKV_DEDUP_WINDOW);
        down();
    }
}

/* Then each chain is another one, with its clients in the other order. */
static void others_come(void) {
    static uint64_t others;
    const dedup_result r = { .status = FKV_OK, .version = 1 };
    for (uint32_t n = any(60); n > 0; n--) dedup_note(&w.dedup, ++others << 32 | 3, 0, 1, &r, h->now_ns);
}
TEST(clients_of_a_chain_that_is_split_meanwhile_are_in_a_snapshot) {
    uint64_t seed = check_seed();
    spread = 1 << 20; /* all in one chain */
    for (uint32_t n = 0; n < 20; n++) {
        up(seed + n, 64 << 20);
        memset(used, 0, sizeof used);
        for (uint32_t i = 0; i < 30; i++)
            for (uint32_t k = 0; k < 300; k++) use(i);
        memcpy(at_begin, used, sizeof used);
        memset(told, 0, sizeof told);
        CHECK(walk_all(others_come) > 1);
        for (uint32_t i = 0; i < CLIENTS; i++) CHECK(told[i] >= at_begin[i]);
        down();
    }
}

/* The odd ones were silent for as long as a client is remembered. */
static void some_are_forgotten(void) {
    const dedup_result r = { .status = FKV_OK, .version = 1 };
    if (any(2) == 0) return;
    h->now_ns += FKV_DEDUP_IDLE_MS * (uint64_t)1000000 / 2 + 1;
    dedup_note(&w.dedup, (uint64_t)1 << 32 | 3, 0, 1, &r, h->now_ns);
    h->now_ns -= FKV_DEDUP_IDLE_MS * (uint64_t)1000000 / 2 + 1;
}
TEST(clients_behind_one_that_is_forgotten_meanwhile_are_in_a_snapshot) {
    uint64_t seed = check_seed();
    spread = 1 << 20;
    for (uint32_t n = 0; n < 20; n++) {
        up(seed + n, 64 << 20);
        memset(used, 0, sizeof used);
        for (uint32_t i = 0; i < 30; i++)
            for (uint32_t k = 200 + any(200); k > 0; k--) use(i);
        h->now_ns += FKV_DEDUP_IDLE_MS * (uint64_t)1000000 / 2;
        for (uint32_t i = 0; i < 30; i += 2) use(i);
        memcpy(at_begin, used, sizeof used);
        memset(told, 0, sizeof told);
        CHECK(walk_all(some_are_forgotten) > 1);
        for (uint32_t i = 0; i < 30; i += 2) CHECK(told[i] >= at_begin[i]);
        down();
    }
}

int main(int argc, char **argv) {
    RUN(a_snapshot_and_the_changes_since_it_began_make_the_table);
    RUN(what_is_damaged_in_memory_is_said_to_be_so_in_a_snapshot);
    RUN(a_table_at_rest_is_given_once);
    RUN(growth_and_merges_leave_no_key_out);
    RUN(chains_that_are_merged_while_they_are_given_leave_no_key_out);
    RUN(keys_that_are_changed_again_and_again_do_not_hold_up_a_walk);
    RUN(what_clients_have_done_before_it_began_is_in_a_snapshot);
    RUN(clients_of_a_chain_that_is_split_meanwhile_are_in_a_snapshot);
    RUN(clients_behind_one_that_is_forgotten_meanwhile_are_in_a_snapshot);
    return check_end(argc, argv);
}
