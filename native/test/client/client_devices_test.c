/* client_devices_test.c: an owner that listens on two devices, and clients that reach one or both, over each provider: to
 * each device belong a domain of its own, and rkeys that count only over its connections. */
#include "client_kit.h"
#include "../../dataplane/worker.h"

static fab_provider provider;
static rig r;
static dataplane_layout *layout[RIG_SHARDS];
static const uint32_t DEVICE[2] = { 0, 3 };
enum { KEYS = 40 };

static void up(void) {
    rig_init(&r, provider, NULL);
    for (int i = 0; i < 2; i++) r.listen[i].worker = 0;
    for (int i = 0; i < 2; i++) r.listen[i].device = DEVICE[i];
    r.config.listens = 2;
    rig_start(&r);
    for (uint32_t s = 0; s < RIG_SHARDS; s++) {
        CHECK_EQ(rig_open_shard(&r, s, 0, 16 << 20, &layout[s]), FKV_OK);
        rig_serve(&r, s);
    }
}
static void down(void) {
    for (uint32_t s = 0; s < RIG_SHARDS; s++) free(layout[s]);
    rig_down(&r);
}

/* A client that knows the owner's listeners `first` to `last`, and where shards lie. */
static void client_up(kit *k, uint64_t number, uint32_t first, uint32_t last) {
    lookup_config c = kit_config(k, number);
    kit_create(k, &r, &c);
    session_address a[2];
    for (uint32_t i = first; i <= last; i++)
        a[i - first] = (session_address){ provider, dataplane_address(r.d, i), DEVICE[i] };
    session_owner_config o = {
        .owner = 1, .incarnation = r.config.server_incarnation, .addresses = a, .count = last - first + 1
    };
    CHECK_EQ(session_set_owners(k->s, &o, 1), FKV_OK);
    for (uint32_t s = 0; s < RIG_SHARDS; s++) kit_route_with_layout(k, s, layout[s]);
}

static const char *key_of(uint32_t i) {
    static char key[16];
    snprintf(key, sizeof key, "key%u", i);
    return key;
}
static void put_all(kit *k, uint32_t keys, const char *value) {
    for (uint32_t i = 0; i < keys; i++)
        CHECK_EQ(kit_put(k, key_of(i), value, (uint32_t)strlen(value), 10000).status, FKV_OK);
}
static void expect_all(kit *k, uint32_t keys, const char *value) {
    for (uint32_t i = 0; i < keys; i++) kit_expect(k, key_of(i), value);
}
static uint32_t rail_of(kit *k) { return session_peer_of(k->s, 0)->rail; }
static uint32_t regions_of(const dataplane_layout *y, uint32_t device) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < y->count; i++) n += y->region[i].provider == provider && y->region[i].device == device;
    return n;
}

TEST(each_device_has_regions_of_its_own) {
    up();
    for (uint32_t s = 0; s < RIG_SHARDS; s++) {
        CHECK(regions_of(layout[s], DEVICE[0]) > 0);
        CHECK_EQ(regions_of(layout[s], DEVICE[0]), regions_of(layout[s], DEVICE[1]));
        CHECK_EQ(regions_of(layout[s], DEVICE[0]) * 2, layout[s]->count);
    }
    down();
}

/* By what the metadata says, and by what the owner answers once the table has grown. */
TEST(a_client_reads_by_the_rkeys_of_the_device_that_it_reaches) {
    static char large[4000];
    memset(large, 'v', sizeof large - 1);
    up();
    for (uint32_t i = 0; i < 2; i++) {
        kit k;
        client_up(&k, 100 + i, i, i);
        put_all(&k, KEYS, "one");
        expect_all(&k, KEYS, "one");
        CHECK_EQ(rail_of(&k), fab_place(provider, DEVICE[i]));
        put_all(&k, 1000, large);
        expect_all(&k, 1000, large);
        lookup_stats s = kit_stats(&k);
        CHECK(s.two_sided <= s.late);
        /* an rkey of the other device would have ended the connection */
        CHECK(provider == FAB_SIM || (k.connected == 1 && k.disconnected == 0));
        kit_down(&k);
    }
    down();
}

TEST(a_client_that_reaches_both_takes_the_first) {
    kit k;
    up();
    client_up(&k, 100, 0, 1);
    put_all(&k, KEYS, "one");
    CHECK_EQ(rail_of(&k), fab_place(provider, DEVICE[0]));
    kit_down(&k);
    down();
}

TEST(when_a_device_is_lost_its_clients_and_the_owner_go_on_over_the_other) {
    static char large[4000];
    memset(large, 'v', sizeof large - 1);
    kit k;
    up();
    client_up(&k, 100, 0, 1);
    put_all(&k, KEYS, "one");
    expect_all(&k, KEYS, "one");
    CHECK_EQ(rail_of(&k), fab_place(provider, DEVICE[0]));
    sim_lose_device(r.d->domain[fab_place(provider, DEVICE[0])]);
    expect_all(&k, KEYS, "one");
    CHECK_EQ(rail_of(&k), fab_place(provider, DEVICE[1]));
    /* No READ went to the other with an rkey of the one that was lost: each ends its connection. */
    CHECK_EQ(k.disconnected, 1);
    CHECK_EQ(kit_stats(&k).foreign, 0);
    put_all(&k, 2000, large); /* into segments that only the other one has */
    expect_all(&k, 2000, large);
    rig_close(&r, 0);
    free(layout[0]);
    CHECK_EQ(rig_open_shard(&r, 0, 0, 16 << 20, &layout[0]), FKV_OK);
    CHECK_EQ(regions_of(layout[0], DEVICE[0]), 0);
    CHECK(regions_of(layout[0], DEVICE[1]) > 0);
    kit_down(&k);
    down();
}

TEST(a_device_has_a_number_below_the_most) {
    rig_init(&r, provider, NULL);
    r.listen[0].device = FAB_DEVICES;
    CHECK_EQ(dataplane_create(&r.config, &r.d), FKV_BAD_REQUEST);
    rig_end_world(&r);
}

static void tests(void) {
    RUN(each_device_has_regions_of_its_own);
    RUN(a_client_reads_by_the_rkeys_of_the_device_that_it_reaches);
    RUN(a_client_that_reaches_both_takes_the_first);
    RUN(a_device_has_a_number_below_the_most);
    if (provider == FAB_SIM) RUN(when_a_device_is_lost_its_clients_and_the_owner_go_on_over_the_other);
}

int main(int argc, char **argv) { return rig_main(argc, argv, &provider, tests); }
