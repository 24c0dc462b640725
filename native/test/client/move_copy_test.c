/* move_copy_test.c: a shard is copied from one data plane to another, over each provider in turn, while it is read and
 * changed. */
#include "../../storage/change_log.h"
#include "move_rig.h"

static uint32_t bytes_of(uint32_t i) { return i == 7 ? 200000 : i % 600; }

/* Values that are not small are READ, the others come with the keys. */
TEST(a_copy_has_every_entry_with_its_version_flags_and_time_to_live) {
    move m;
    char key[24];
    enum { KEYS = 1500 };
    move_up(&m, 16 << 20);
    uint64_t version[KEYS];
    static uint8_t value[200000];
    memset(value, 'x', sizeof value);
    for (uint32_t i = 0; i < KEYS; i++) {
        answer a = { 0 };
        session_ask ask = { .op = FKV_OP_PUT,
                            .value = value,
                            .value_bytes = bytes_of(i),
                            .user_flags = i,
                            .codec = (uint8_t)(i % 3),
                            .ttl_ms = i % 10 == 1 ? 3600000 : 0 };
        kit_ask(&m.k, &ask, key_of(&m.k, i, key), 20000, &a);
        kit_until(&m.k, &a.done);
        CHECK_EQ(a.status, FKV_OK);
        version[i] = a.version;
    }
    CHECK_EQ(kit_delete(&m.k, key_of(&m.k, 3, key), 20000).status, FKV_OK);
    copy_begin(&m, FKV_TICKET_READ | FKV_TICKET_COPY);
    CHECK_EQ(wait_turning(&m, &m.caught_up), FKV_OK);
    shard_copy_stats stats = complete(&m);
    CHECK(stats.entries >= KEYS - 1 && stats.reads > KEYS / 10 && stats.reads < KEYS / 2);
    CHECK(stats.two_sided <= KEYS / 10);
    for (uint32_t i = 0; i < KEYS; i++) {
        answer a = kit_get(&m.k, key_of(&m.k, i, key), 20000);
        if (i == 3) {
            CHECK_EQ(a.status, FKV_NOT_FOUND);
            continue;
        }
        CHECK_EQ(a.status, FKV_OK);
        CHECK(a.version == version[i] && a.user_flags == i && a.codec == i % 3);
        CHECK_EQ(a.bytes, bytes_of(i));
        CHECK(memcmp(a.value, value, a.bytes) == 0);
        free(a.value);
    }
    /* Those with a time to live have it still: the table says how many can expire by sweeping them only; the owner's
     * own word is a SCAN. */
    answer a = { 0 };
    uint64_t id, cursor = 0;
    uint32_t ending = 0, seen = 0;
    do {
        a = (answer){ 0 };
        session_ask ask = { .op = FKV_OP_SCAN,
                            .shard = 0,
                            .value_bytes = 1000,
                            .expected = cursor,
                            .deadline_ns = kit_deadline(&m.k, 20000),
                            .done = kit_answered,
                            .user = &a };
        CHECK_EQ(session_request(m.k.s, &ask, &id), FKV_OK);
        kit_until(&m.k, &a.done);
        CHECK_EQ(a.status, FKV_OK);
        fkv_scan_entry e;
        const uint8_t *k, *v;
        for (uint32_t at = 0; wire_next_scan_entry(a.value, a.bytes, &at, &e, &k, &v); seen++)
            ending += e.expiry_ms != 0;
        free(a.value);
        cursor = a.version;
    } while (cursor);
    CHECK_EQ(seen, KEYS - 1);
    CHECK_EQ(ending, KEYS / 10);
    /* And a new version is above all that came along. */
    answer put = kit_put(&m.k, key_of(&m.k, 5, key), "new", 3, 20000);
    CHECK_EQ(put.status, FKV_OK);
    CHECK(put.version > version[KEYS - 1] && put.version >> 44 == 2);
    CHECK_EQ(kit_cas(&m.k, key_of(&m.k, 6, key), version[6], "swapped", 20000).status, FKV_OK);
    move_down(&m);
}

/* Every kind of change, before, during and after the pages: what the copy has in the end is what was answered last. */
TEST(what_changes_while_it_is_copied_comes_along) {
    move m;
    char key[24], value[32];
    enum { KEYS = 600, CHANGES = 6000 };
    move_up(&m, 16 << 20);
    static int present[KEYS]; /* 0: none, else the number of the change */
    static uint64_t version[KEYS];
    memset(present, 0, sizeof present);
    memset(version, 0, sizeof version);
    uint64_t seed = check_seed();
    for (int i = 1; i <= CHANGES; i++) {
        if (i == CHANGES / 4) copy_begin(&m, FKV_TICKET_READ | FKV_TICKET_COPY);
        uint32_t n = (uint32_t)(some(&seed) % KEYS);
        snprintf(value, sizeof value, "%d", i);
        key_of(&m.k, n, key);
        answer a;
        if (some(&seed) % 4 == 0) {
            a = kit_delete(&m.k, key, 20000);
            CHECK_EQ(a.status, present[n] ? FKV_OK : FKV_NOT_FOUND);
            present[n] = 0;
        } else {
            a = kit_put(&m.k, key, value, (uint32_t)strlen(value), 20000);
            CHECK_EQ(a.status, FKV_OK);
            CHECK(a.version > version[n]);
            present[n] = i;
            version[n] = a.version;
        }
    }
    CHECK_EQ(wait_turning(&m, &m.caught_up), FKV_OK);
    for (uint32_t n = 0; n < 20; n++) { /* and then */
        present[n] = 1000000 + (int)n;
        snprintf(value, sizeof value, "%d", present[n]);
        version[n] = kit_put(&m.k, key_of(&m.k, n, key), value, (uint32_t)strlen(value), 20000).version;
    }
    for (uint32_t n = 20; n < 40; n++) {
        kit_delete(&m.k, key_of(&m.k, n, key), 20000);
        present[n] = 0;
    }
    complete(&m);
    for (uint32_t n = 0; n < KEYS; n++) {
        answer a = kit_get(&m.k, key_of(&m.k, n, key), 20000);
        snprintf(value, sizeof value, "%d", present[n]);
        CHECK_EQ(a.status, present[n] ? FKV_OK : FKV_NOT_FOUND);
        if (!present[n]) continue;
        CHECK(a.version == version[n] && a.bytes == strlen(value) && memcmp(a.value, value, a.bytes) == 0);
        free(a.value);
    }
    move_down(&m);
}

/* Between its listing and the READ of its value an entry may end. What the copy had of its key before does not come
 * back by that. */
TEST(an_entry_that_ends_while_it_is_copied_leaves_nothing_older) {
    move m;
    char key[24];
    enum { KEYS = 1000 };
    static const uint8_t now[600] = "for now"; /* not so small that it comes with the key */
    move_up(&m, 16 << 20);
    for (uint32_t i = 0; i < KEYS; i++)
        CHECK_EQ(kit_put(&m.k, key_of(&m.k, i, key), "for good", 8, 20000).status, FKV_OK);
    copy_begin(&m, FKV_TICKET_READ | FKV_TICKET_COPY);
    CHECK_EQ(wait_turning(&m, &m.caught_up), FKV_OK);
    for (uint32_t i = 0; i < KEYS; i++) {
        answer a = { 0 };
        session_ask ask = { .op = FKV_OP_PUT, .value = now, .value_bytes = sizeof now, .ttl_ms = 1 };
        kit_ask(&m.k, &ask, key_of(&m.k, i, key), 20000, &a);
        kit_until(&m.k, &a.done);
        CHECK_EQ(a.status, FKV_OK);
    }
    complete(&m);
    for (uint32_t i = 0; i < KEYS; i++) {
        answer a;
        for (;;) {
            a = kit_get(&m.k, key_of(&m.k, i, key), 20000);
            if (a.status != FKV_OK || a.bytes != sizeof now) break; /* the last ones may not have ended yet */
            free(a.value);
        }
        CHECK_EQ(a.status, FKV_NOT_FOUND);
    }
    move_down(&m);
}

/* With "one" under a key of shard 0. */
static void move_up_with_one(move *m, char *key) {
    move_up(m, 4 << 20);
    key_of(&m->k, 1, key);
    CHECK_EQ(kit_put(&m->k, key, "one", 3, 20000).status, FKV_OK);
}

TEST(a_sealed_shard_is_read_and_not_changed_and_goes_on_when_it_is_not_to_move_after_all) {
    move m;
    char key[24];
    move_up_with_one(&m, key);
    seal(&m.from, 0, COPY);
    answer a;
    kit_put_begin(&m.k, key, "two", 3, 60000, &a);
    for (int i = 0; i < 20; i++) kit_expect(&m.k, key, "one");
    CHECK(!a.done);
    dataplane_stats *s = rig_stats(&m.from);
    while (s->worker[0].refused[FKV_BUSY] == 0) {
        kit_turn(&m.k);
        free(s);
        s = rig_stats(&m.from);
    }
    free(s);
    CHECK(!a.done);
    seal(&m.from, 0, 0);
    kit_until(&m.k, &a.done);
    CHECK_EQ(a.status, FKV_OK);
    kit_expect(&m.k, key, "two");
    move_down(&m);
}

/* The i-th key of shard 0, as long as keys may be: a change of it takes the most of the log. */
static void long_keys(kit *k, uint32_t count, char (*room)[FKV_KEY_MAX + 1]) {
    for (uint32_t n = 0, i = 0; i < count; n++) {
        memset(room[i], 'k', FKV_KEY_MAX);
        room[i][FKV_KEY_MAX] = 0;
        char number[16];
        memcpy(room[i], number, (size_t)snprintf(number, sizeof number, "%u.", n));
        lookup_key key = kit_key(room[i]);
        i += lookup_shard_of(k->l, &key) == 0;
    }
}

/* The old owner's log holds so much; what changes beyond it while a page is taken over, for which `to` is held up, is
 * gone from it. */
TEST(more_changes_than_the_log_holds_make_the_copy_begin_anew_and_nothing_is_lost) {
    move m;
    enum { KEYS = 64, CHANGES = CHANGE_LOG_ROOM / (FKV_KEY_MAX + 4) + KEYS };
    static char keys[KEYS][FKV_KEY_MAX + 1];
    char value[32];
    rig_hold h;
    move_up(&m, 16 << 20);
    long_keys(&m.k, KEYS, keys);
    for (uint32_t i = 0; i < KEYS; i++) CHECK_EQ(kit_put(&m.k, keys[i], "before", 6, 20000).status, FKV_OK);
    rig_hold_up(&h, &m.to);
    copy_begin(&m, FKV_TICKET_READ | FKV_TICKET_COPY);
    /* The copy has its place in the log, and its first page waits for the table. */
    uint64_t begun = fkv_now_ns();
    for (dataplane_stats *s = NULL;; free(s)) {
        s = rig_stats(&m.from);
        bool asked = s->worker[0].requests[FKV_OP_SCAN] > 0;
        if (asked) {
            free(s);
            break;
        }
        kit_turn(&m.k);
        CHECK(check_in_time(begun));
    }
    for (uint32_t n = 0; n < CHANGES; n++) {
        snprintf(value, sizeof value, "%u", n);
        CHECK_EQ(kit_put(&m.k, keys[n % KEYS], value, (uint32_t)strlen(value), 20000).status, FKV_OK);
    }
    rig_let_go(&h);
    CHECK_EQ(wait_turning(&m, &m.caught_up), FKV_STALE_SEQUENCE);
    shard_copy_stop(m.copy);
    /* As the server does: a new table, a new copy. */
    rig_close(&m.to, 0);
    CHECK_EQ(rig_open_shard(&m.to, 0, 0, 16 << 20, NULL), FKV_OK);
    copy_begin(&m, FKV_TICKET_READ | FKV_TICKET_COPY);
    CHECK_EQ(wait_turning(&m, &m.caught_up), FKV_OK);
    complete(&m);
    for (uint32_t i = 0; i < KEYS; i++) {
        uint32_t last = (CHANGES - 1) - ((CHANGES - 1) % KEYS + KEYS - i) % KEYS;
        snprintf(value, sizeof value, "%u", last);
        kit_expect(&m.k, keys[i], value);
    }
    move_down(&m);
}

/* The owner has not heard yet that the move for which it was sealed was called off, and planned anew; when it does, it
 * takes changes again for a while. */
TEST(a_seal_for_another_copy_does_not_end_this_one) {
    move m;
    char key[24];
    move_up_with_one(&m, key);
    seal(&m.from, 0, OTHER_COPY);
    copy_begin(&m, FKV_TICKET_READ | FKV_TICKET_COPY);
    CHECK_EQ(wait_turning(&m, &m.caught_up), FKV_OK);
    shard_copy_finish(m.copy, rig_done, &m.done);
    uint64_t asked = 0;
    for (uint64_t until = UINT64_MAX; asked < until;) { /* it has looked for the end, more than once */
        dataplane_stats *s = rig_stats(&m.from);
        asked = s->worker[0].requests[FKV_OP_SCAN];
        free(s);
        if (until == UINT64_MAX) until = asked + 4;
        CHECK(!rig_is_done(&m.done));
        kit_turn(&m.k);
    }
    seal(&m.from, 0, 0);
    CHECK_EQ(kit_put(&m.k, key, "two", 3, 20000).status, FKV_OK);
    handed_over(&m);
    kit_expect(&m.k, key, "two");
    move_down(&m);
}

/* Its copy was lost at the last moment. */
TEST(a_paused_shard_answers_nothing_is_left_alone_when_its_leases_are_over_and_goes_on_with_all_it_had) {
    move m;
    char key[24];
    move_up(&m, 4 << 20);
    key_of(&m.k, 1, key);
    answer put = kit_put(&m.k, key, "one", 3, 20000), get;
    CHECK_EQ(put.status, FKV_OK);
    seal(&m.from, 0, COPY);
    kit_expect(&m.k, key, "one"); /* under a lease */
    rig_call paused;
    rig_call_init(&paused);
    dataplane_pause_shard(m.from.d, 0, rig_done, &paused);
    CHECK_EQ(rig_wait(&paused), FKV_OK);
    kit_get_begin(&m.k, key, 60000, &get);
    dataplane_stats *s = rig_stats(&m.from);
    CHECK(!s->shard[0].serving);
    while (s->worker[0].refused[FKV_SHARD_CLOSED] == 0 && !get.done) {
        kit_turn(&m.k);
        free(s);
        s = rig_stats(&m.from);
    }
    free(s);
    CHECK(!get.done); /* nor by a READ: no lease is left */
    rig_serve(&m.from, 0);
    seal(&m.from, 0, 0);
    kit_until(&m.k, &get.done);
    CHECK_EQ(get.status, FKV_OK);
    CHECK_EQ(get.version, put.version);
    free(get.value);
    CHECK_EQ(kit_put(&m.k, key, "two", 3, 20000).status, FKV_OK);
    kit_expect(&m.k, key, "two");
    rig_call_init(&paused);
    dataplane_pause_shard(m.from.d, 0, rig_done, &paused);
    rig_close(&m.from, 0);
    rig_wait(&paused);
    move_down(&m);
}

TEST(a_ticket_of_a_client_does_not_copy) {
    move m;
    move_up(&m, 4 << 20);
    copy_begin(&m, FKV_TICKET_READ | FKV_TICKET_WRITE);
    CHECK_EQ(wait_turning(&m, &m.caught_up), FKV_UNAUTHORIZED);
    move_down(&m);
}

static void all_of(fab_provider p) {
    provider = p;
    RUN(a_copy_has_every_entry_with_its_version_flags_and_time_to_live);
    RUN(what_changes_while_it_is_copied_comes_along);
    RUN(an_entry_that_ends_while_it_is_copied_leaves_nothing_older);
    RUN(a_seal_for_another_copy_does_not_end_this_one);
    RUN(a_sealed_shard_is_read_and_not_changed_and_goes_on_when_it_is_not_to_move_after_all);
    RUN(more_changes_than_the_log_holds_make_the_copy_begin_anew_and_nothing_is_lost);
    RUN(a_paused_shard_answers_nothing_is_left_alone_when_its_leases_are_over_and_goes_on_with_all_it_had);
    RUN(a_ticket_of_a_client_does_not_copy);
}

int main(int argc, char **argv) {
    all_of(FAB_SHM);
    all_of(FAB_TCP);
    return check_end(argc, argv);
}
