/* copy_test.c: a shard is copied from one data plane to another, over each provider in turn, while it is read and
 * changed. */
#include "../../storage/change_log.h"
#include "copy_rig.h"

static uint32_t bytes_of(uint32_t i) { return i == 7 ? 200000 : i % 600; }

/* Values that are not small are READ, the others come with the keys. */
TEST(a_copy_has_every_entry_with_its_version_flags_and_time_to_live) {
    pair p;
    char key[24];
    enum { KEYS = 1500 };
    pair_up(&p, 16 << 20);
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
        kit_ask(&p.k, &ask, key_of(&p.k, i, key), 20000, &a);
        kit_until(&p.k, &a.done);
        CHECK_EQ(a.status, FKV_OK);
        version[i] = a.version;
    }
    CHECK_EQ(kit_delete(&p.k, key_of(&p.k, 3, key), 20000).status, FKV_OK);
    copy_begin(&p, FKV_TICKET_READ | FKV_TICKET_COPY);
    CHECK_EQ(wait_turning(&p, &p.caught_up), FKV_OK);
    shard_copy_stats stats = complete(&p);
    CHECK(stats.entries >= KEYS - 1 && stats.reads > KEYS / 10 && stats.reads < KEYS / 2);
    CHECK(stats.two_sided <= KEYS / 10);
    for (uint32_t i = 0; i < KEYS; i++) {
        answer a = kit_get(&p.k, key_of(&p.k, i, key), 20000);
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
                            .deadline_ns = kit_deadline(&p.k, 20000),
                            .done = kit_answered,
                            .user = &a };
        CHECK_EQ(session_request(p.k.s, &ask, &id), FKV_OK);
        kit_until(&p.k, &a.done);
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
    answer put = kit_put(&p.k, key_of(&p.k, 5, key), "new", 3, 20000);
    CHECK_EQ(put.status, FKV_OK);
    CHECK(put.version > version[KEYS - 1] && put.version >> 44 == 2);
    CHECK_EQ(kit_cas(&p.k, key_of(&p.k, 6, key), version[6], "swapped", 20000).status, FKV_OK);
    pair_down(&p);
}

/* Every kind of change, before, during and after the pages: what the copy has in the end is what was answered last. */
TEST(what_changes_while_it_is_copied_comes_along) {
    pair p;
    char key[24], value[32];
    enum { KEYS = 600, CHANGES = 6000 };
    pair_up(&p, 16 << 20);
    static int present[KEYS]; /* 0: none, else the number of the change */
    static uint64_t version[KEYS];
    memset(present, 0, sizeof present);
    memset(version, 0, sizeof version);
    uint64_t seed = check_seed();
    for (int i = 1; i <= CHANGES; i++) {
        if (i == CHANGES / 4) copy_begin(&p, FKV_TICKET_READ | FKV_TICKET_COPY);
        uint32_t n = (uint32_t)(some(&seed) % KEYS);
        snprintf(value, sizeof value, "%d", i);
        key_of(&p.k, n, key);
        answer a;
        if (some(&seed) % 4 == 0) {
            a = kit_delete(&p.k, key, 20000);
            CHECK_EQ(a.status, present[n] ? FKV_OK : FKV_NOT_FOUND);
            present[n] = 0;
        } else {
            a = kit_put(&p.k, key, value, (uint32_t)strlen(value), 20000);
            CHECK_EQ(a.status, FKV_OK);
            CHECK(a.version > version[n]);
            present[n] = i;
            version[n] = a.version;
        }
    }
    CHECK_EQ(wait_turning(&p, &p.caught_up), FKV_OK);
    for (uint32_t n = 0; n < 20; n++) { /* and then */
        present[n] = 1000000 + (int)n;
        snprintf(value, sizeof value, "%d", present[n]);
        version[n] = kit_put(&p.k, key_of(&p.k, n, key), value, (uint32_t)strlen(value), 20000).version;
    }
    for (uint32_t n = 20; n < 40; n++) {
        kit_delete(&p.k, key_of(&p.k, n, key), 20000);
        present[n] = 0;
    }
    complete(&p);
    for (uint32_t n = 0; n < KEYS; n++) {
        answer a = kit_get(&p.k, key_of(&p.k, n, key), 20000);
        snprintf(value, sizeof value, "%d", present[n]);
        CHECK_EQ(a.status, present[n] ? FKV_OK : FKV_NOT_FOUND);
        if (!present[n]) continue;
        CHECK(a.version == version[n] && a.bytes == strlen(value) && memcmp(a.value, value, a.bytes) == 0);
        free(a.value);
    }
    pair_down(&p);
}

/* Between its listing and the READ of its value an entry may end. What the copy had of its key before does not come
 * back by that. */
TEST(an_entry_that_ends_while_it_is_copied_leaves_nothing_older) {
    pair p;
    char key[24];
    enum { KEYS = 1000 };
    static const uint8_t now[600] = "for now"; /* not so small that it comes with the key */
    pair_up(&p, 16 << 20);
    for (uint32_t i = 0; i < KEYS; i++)
        CHECK_EQ(kit_put(&p.k, key_of(&p.k, i, key), "for good", 8, 20000).status, FKV_OK);
    copy_begin(&p, FKV_TICKET_READ | FKV_TICKET_COPY);
    CHECK_EQ(wait_turning(&p, &p.caught_up), FKV_OK);
    for (uint32_t i = 0; i < KEYS; i++) {
        answer a = { 0 };
        session_ask ask = { .op = FKV_OP_PUT, .value = now, .value_bytes = sizeof now, .ttl_ms = 1 };
        kit_ask(&p.k, &ask, key_of(&p.k, i, key), 20000, &a);
        kit_until(&p.k, &a.done);
        CHECK_EQ(a.status, FKV_OK);
    }
    complete(&p);
    for (uint32_t i = 0; i < KEYS; i++) {
        answer a;
        for (;;) {
            a = kit_get(&p.k, key_of(&p.k, i, key), 20000);
            if (a.status != FKV_OK || a.bytes != sizeof now) break; /* the last ones may not have ended yet */
            free(a.value);
        }
        CHECK_EQ(a.status, FKV_NOT_FOUND);
    }
    pair_down(&p);
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

/* The owner's log of changes holds so much; what changes beyond it while a page is taken over, for which `to` is held up, is
 * gone from it. */
TEST(more_changes_than_the_log_holds_make_the_copy_begin_anew_and_nothing_is_lost) {
    pair p;
    enum { KEYS = 64, CHANGES = CHANGE_LOG_ROOM / (FKV_KEY_MAX + 4) + KEYS };
    static char keys[KEYS][FKV_KEY_MAX + 1];
    char value[32];
    rig_hold h;
    pair_up(&p, 16 << 20);
    long_keys(&p.k, KEYS, keys);
    for (uint32_t i = 0; i < KEYS; i++) CHECK_EQ(kit_put(&p.k, keys[i], "before", 6, 20000).status, FKV_OK);
    rig_hold_up(&h, &p.to);
    copy_begin(&p, FKV_TICKET_READ | FKV_TICKET_COPY);
    /* The copy has its place in the log, and its first page waits for the table. */
    uint64_t begun = fkv_now_ns();
    for (dataplane_stats *s = NULL;; free(s)) {
        s = rig_stats(&p.from);
        bool asked = s->worker[0].requests[FKV_OP_SCAN] > 0;
        if (asked) {
            free(s);
            break;
        }
        kit_turn(&p.k);
        CHECK(check_in_time(begun));
    }
    for (uint32_t n = 0; n < CHANGES; n++) {
        snprintf(value, sizeof value, "%u", n);
        CHECK_EQ(kit_put(&p.k, keys[n % KEYS], value, (uint32_t)strlen(value), 20000).status, FKV_OK);
    }
    rig_let_go(&h);
    CHECK_EQ(wait_turning(&p, &p.caught_up), FKV_STALE_SEQUENCE);
    shard_copy_stop(p.copy);
    /* As the server does: a new table, a new copy. */
    rig_close(&p.to, 0);
    CHECK_EQ(rig_open_shard(&p.to, 0, 0, 16 << 20, NULL), FKV_OK);
    copy_begin(&p, FKV_TICKET_READ | FKV_TICKET_COPY);
    CHECK_EQ(wait_turning(&p, &p.caught_up), FKV_OK);
    complete(&p);
    for (uint32_t i = 0; i < KEYS; i++) {
        uint32_t last = (CHANGES - 1) - ((CHANGES - 1) % KEYS + KEYS - i) % KEYS;
        snprintf(value, sizeof value, "%u", last);
        kit_expect(&p.k, keys[i], value);
    }
    pair_down(&p);
}

TEST(a_ticket_of_a_client_does_not_copy) {
    pair p;
    pair_up(&p, 4 << 20);
    copy_begin(&p, FKV_TICKET_READ | FKV_TICKET_WRITE);
    CHECK_EQ(wait_turning(&p, &p.caught_up), FKV_UNAUTHORIZED);
    pair_down(&p);
}

static void all_of(fab_provider p) {
    provider = p;
    RUN(a_copy_has_every_entry_with_its_version_flags_and_time_to_live);
    RUN(what_changes_while_it_is_copied_comes_along);
    RUN(an_entry_that_ends_while_it_is_copied_leaves_nothing_older);
    RUN(more_changes_than_the_log_holds_make_the_copy_begin_anew_and_nothing_is_lost);
    RUN(a_ticket_of_a_client_does_not_copy);
}

int main(int argc, char **argv) {
    all_of(FAB_SHM);
    all_of(FAB_TCP);
    return check_end(argc, argv);
}
