/* steps_test.c: the steps that a traced client keeps, over each provider. */
#include "../../client/session/steps.h"
#include "client_kit.h"

static fab_provider provider;
static rig r;
static kit k;

static void up(bool traced) {
    rig_init(&r, provider, NULL);
    rig_up(&r, RIG_SHARDS, 4 << 20);
    lookup_config c = kit_config(&k, 100);
    c.session.traced = traced;
    kit_create(&k, &r, &c);
    kit_set_owner(&k, r.config.server_incarnation);
    for (uint32_t i = 0; i < RIG_SHARDS; i++) kit_route(&k, i, 1);
}
static void down(void) {
    kit_down(&k);
    rig_down(&r);
}
/* The next step of this type and, of a message, operation; those before it are thrown away. */
static session_step next(session_step_type type, fkv_op op) {
    session_step x;
    do CHECK(session_next_step(k.s, &x));
    while (x.type != type || (type <= SESSION_ANSWERED && x.op != op));
    CHECK_EQ(x.provider, provider);
    CHECK_EQ(x.owner, 1);
    return x;
}

TEST(the_steps_of_a_put_and_a_get_come_in_their_order) {
    up(true);
    uint64_t before = fkv_now_ns();
    CHECK_EQ(kit_put(&k, "alpha", "one", 3, 5000).status, FKV_OK);
    session_step sent = next(SESSION_SENT, FKV_OP_PUT), answered = next(SESSION_ANSWERED, FKV_OP_PUT);
    CHECK_EQ(sent.bytes, sizeof(fkv_request) + 5 + 3);
    CHECK_EQ(answered.status, FKV_OK);
    CHECK(before <= sent.ns && sent.ns <= answered.ns && answered.ns <= fkv_now_ns());
    kit_expect(&k, "alpha", "one");
    session_step read = next(SESSION_READ, FKV_OP_GET), landed = next(SESSION_LANDED, FKV_OP_GET);
    CHECK_EQ(read.bytes, FKV_BUCKET_BYTES);
    CHECK_EQ(landed.status, FKV_OK);
    CHECK(landed.bytes >= read.bytes);
    CHECK(answered.ns <= read.ns && read.ns <= landed.ns);
    down();
}

TEST(the_latest_steps_are_kept_where_nobody_takes_them) {
    up(true);
    for (int i = 0; i < SESSION_STEPS; i++) CHECK_EQ(kit_put(&k, "alpha", "v", 1, 5000).status, FKV_OK);
    session_step x;
    uint32_t n = 0;
    uint64_t last = 0;
    for (; session_next_step(k.s, &x); n++, last = x.ns) CHECK(x.ns >= last);
    CHECK_EQ(n, SESSION_STEPS);
    CHECK(!session_next_step(k.s, &x));
    down();
}

TEST(a_client_that_is_not_traced_keeps_none) {
    up(false);
    CHECK_EQ(kit_put(&k, "alpha", "one", 3, 5000).status, FKV_OK);
    session_step x;
    CHECK(!session_next_step(k.s, &x));
    down();
}

static void all_of(fab_provider p) {
    provider = p;
    RUN(the_steps_of_a_put_and_a_get_come_in_their_order);
    RUN(the_latest_steps_are_kept_where_nobody_takes_them);
    RUN(a_client_that_is_not_traced_keeps_none);
}

int main(int argc, char **argv) {
    all_of(FAB_SHM);
    all_of(FAB_TCP);
    all_of(FAB_SIM);
    return check_end(argc, argv);
}
