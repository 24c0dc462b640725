/* dataplane_limits_test.c: what one client can do to the others and to the owner has bounds: connections that end while their
 * replies wait, replies that must come to an end, memory and time that are shared. */
#include "dataplane_rig.h"

static fab_provider provider;
static rig r;

static uint64_t blocked_clients(void) {
    dataplane_stats *s = rig_stats(&r);
    uint64_t n = s->group[0].blocked;
    free(s);
    return n;
}

/* ---- an end while replies wait ---- */

/* Its credits come back in the turn in which a message too short to be a request dooms it: whether they come before or after
 * that message depends on the provider and on how the two ends meet, hence many rounds. */
static void end_while_blocked(uint64_t number) {
    raw c;
    raw_up(&c, &r, number);
    c.keep = true;
    for (int i = 0; i < 60; i++) {
        fkv_request q = raw_request(&c, FKV_OP_GET, "big");
        if (raw_try(&c, &q, "big", NULL, 0) != 0) break;
    }
    for (int i = 0; i < 200 && !blocked_clients(); i++) raw_poll(&c);
    struct iovec v = { "too short", 8 };
    fab_send(c.conn, &v, 1);
    if (number & 1) fab_flush(c.cq);
    raw_release_kept(&c);
    for (int i = 0; i < 3; i++) raw_poll(&c);
    while (!c.gone && number % 3 == 0) raw_turn(&c, &c.gone);
    raw_down(&c);
}

TEST(credits_that_come_to_a_connection_that_is_ending_do_not_bring_it_back) {
    static const uint8_t value[12000];
    raw good;
    rig_init(&r, provider, NULL);
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    raw_up(&good, &r, 1);
    CHECK_EQ(raw_put(&good, "big", value, sizeof value), FKV_OK);
    for (uint64_t i = 0; i < 100; i++) end_while_blocked(100 + i);
    CHECK_EQ(raw_put(&good, "big", value, sizeof value), FKV_OK);
    raw_down(&good);
    rig_down(&r);
}

int main(int argc, char **argv) {
    static const fab_provider providers[] = { FAB_SHM, FAB_TCP, FAB_SIM };
    const char *only = getenv("FARKV_PROVIDER");
    alarm(300);
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++) {
        provider = providers[i];
        if (only && strcmp(only, fab_provider_name(provider)) != 0) continue;
        RUN(credits_that_come_to_a_connection_that_is_ending_do_not_bring_it_back);
    }
    return check_end(argc, argv);
}
