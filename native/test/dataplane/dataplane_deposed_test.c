/* dataplane_deposed_test.c: an owner that another one replaced without its doing becomes a copy, with what it has: when,
 * what becomes of changes that are under way, and with whom it goes on. */
#include "../../replication/backup.h"
#include "../../storage/shard.h"
#include "join_rig.h"
#include "large_values.h"

enum { LARGE = 1 << 20 };

static rig_call called;
static void steps_down(int s) {
    rig_call_init(&called);
    dataplane_step_down(plane(s), number, id_of(s), rig_done, &called);
}
/* Whose values the client has. */
static void has_stepped_down(void) {
    for (uint64_t since = fkv_now_ns(); !rig_is_done(&called); sched_yield()) {
        CHECK(check_in_time(since));
        raw_poll(&c);
    }
    CHECK_EQ(rig_wait(&called), FKV_OK);
}
/* The shard is this copy's, and the owner before joins with what it has. */
static void leads(int s, uint32_t others, uint32_t epoch, int before) {
    uint64_t id[NODES], joins[] = { id_of(before) };
    dataplane_copies k = copies_of(id, ids_of(others, id), epoch, 100 * epoch, 1);
    k.joining = 1;
    k.joining_id = joins;
    rig_call lead;
    rig_call_init(&lead);
    dataplane_lead_copy(plane(s), number, 1000 * epoch + (uint64_t)s, &k, rig_done, &lead);
    CHECK_EQ(rig_wait(&lead), FKV_OK);
    free(lead.result);
    nodes[s].epoch = epoch;
    node_serves(s);
}
static void joins_again(int s, int owner, uint32_t config) {
    uint64_t lsn;
    node_follows(s, owner);
    node_expects(owner, s, DATAPLANE_COPY_JOINED);
    CHECK_EQ(node_requires(owner, id_of(s), &lsn), FKV_OK);
    CHECK_EQ(node_configures(owner, 1u << s, config, 1), FKV_OK);
}

/* With a copy in sync, that stands. */
static void up_and_held(rig_hold *h) {
    char room[32];
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    for (int i = 0; i < 50; i++) CHECK_EQ(put(key_at(i, room), "before").status, FKV_OK);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    rig_hold_up_by(h, &nodes[SECOND].r, number);
}
static void all_is_there_after(int from, int to) {
    char room[32];
    raw_down(&c);
    fails_over(from, to, 0, 3);
    raw_up(&c, &nodes[to].r, CLIENT + 1);
    for (int i = 0; i < 50; i++) raw_expect(&c, key_at(i, room), "before");
    raw_expect(&c, "alpha", "three");
    raw_down(&c);
    down();
}

TEST(a_deposed_owner_keeps_what_it_has_prepared_and_goes_on_with_the_next_owner) {
    rig_hold h;
    up_and_held(&h);
    uint64_t waits = raw_put_begin(&c, "alpha", "two", 3);
    while (copy_stats(FIRST).prepared < 52) sched_yield();
    steps_down(FIRST);
    CHECK_EQ(rig_wait(&called), FKV_OK);
    CHECK_EQ(raw_end(&c, waits), FKV_UNDECIDED);
    dataplane_copy_stats s = copy_stats(FIRST);
    CHECK(!s.leads && s.prepared == 52 && s.committed == 51 && s.id == id_of(FIRST));
    raw_down(&c);
    rig_let_go(&h);
    leads(SECOND, 0, 2, FIRST);
    raw_up(&c, &nodes[SECOND].r, CLIENT + 1);
    CHECK_EQ(put("alpha", "three").status, FKV_OK);
    joins_again(FIRST, SECOND, 201);
    all_is_there_after(SECOND, FIRST);
}

static uint32_t pulled;
static void do_count(worker *w, void *ctx) {
    (void)ctx;
    pulled = w->by_number[number]->repl.bulk_count;
}

/* Nothing of it has a number yet. */
TEST(a_large_value_that_copies_do_not_have_is_no_change_of_a_deposed_owner) {
    rig_hold h;
    memory large;
    up_and_held(&h);
    memory_make(&large, &c, LARGE, 1);
    uint64_t waits = large_put_begin(&c, &large, "alpha", LARGE);
    for (pulled = 0; pulled == 0; rig_visit(&nodes[FIRST].r, do_count, NULL)) raw_poll(&c);
    steps_down(FIRST);
    has_stepped_down();
    CHECK_EQ(raw_end(&c, waits), FKV_SHARD_CLOSED);
    CHECK_EQ(copy_stats(FIRST).prepared, 51);
    memory_free(&large);
    raw_down(&c);
    rig_let_go(&h);
    leads(SECOND, 0, 2, FIRST);
    raw_up(&c, &nodes[SECOND].r, CLIENT + 1);
    CHECK_EQ(put("alpha", "three").status, FKV_OK);
    joins_again(FIRST, SECOND, 201);
    all_is_there_after(SECOND, FIRST);
}

static uint64_t leases_ns;
static void do_look(worker *w, void *ctx) {
    (void)ctx;
    leases_ns = w->by_number[number]->lease_until_ns;
}

TEST(an_owner_is_a_copy_when_no_lease_is_left) {
    up();
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    fkv_request q = raw_request(&c, FKV_OP_LEASE, "");
    CHECK_EQ(raw_ask(&c, &q, "", NULL, 0, NULL), FKV_OK);
    rig_visit(&nodes[FIRST].r, do_look, NULL);
    CHECK(leases_ns > 0);
    steps_down(FIRST);
    CHECK_EQ(rig_wait(&called), FKV_OK);
    CHECK(fkv_now_ns() >= leases_ns);
    raw_down(&c);
    down();
}

/* Under the numbers of the epoch that it missed it could have another owner's records. */
TEST(a_deposed_owner_does_not_go_on_with_the_owner_after_the_next) {
    up();
    for (int s = SECOND; s <= THIRD; s++) node_up(s, 1);
    node_joins(SECOND, FIRST, 0, 1);
    node_joins(THIRD, FIRST, 1 << SECOND, 2);
    steps_down(FIRST);
    CHECK_EQ(rig_wait(&called), FKV_OK);
    CHECK_EQ(node_leads(SECOND, 1 << THIRD, 2, 200), FKV_OK);
    node_follows(THIRD, SECOND);
    node_serves(SECOND);
    node_dies(SECOND);
    leads(THIRD, 0, 3, FIRST);
    node_follows(FIRST, THIRD);
    node_expects(FIRST, FIRST, DATAPLANE_COPY_UNKNOWN);
    node_expects(THIRD, FIRST, DATAPLANE_COPY_REFUSED);
    down();
}

static void do_fill(worker *w, void *ctx) {
    (void)ctx;
    backup_fails(w->by_number[number]->repl.copy, FKV_TABLE_FULL);
}

/* It was in sync, so it could lead; what it had no room for may be removed since. */
TEST(a_copy_that_was_full_and_has_led_is_a_copy_like_any) {
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    raw_down(&c);
    rig_visit(&nodes[SECOND].r, do_fill, NULL);
    node_expects(SECOND, SECOND, DATAPLANE_COPY_FULL);
    fails_over(FIRST, SECOND, 0, 2);
    node_up(THIRD, 2);
    node_joins(THIRD, SECOND, 0, 201);
    steps_down(SECOND);
    CHECK_EQ(rig_wait(&called), FKV_OK);
    CHECK_EQ(copy_stats(SECOND).failed, FKV_OK);
    leads(THIRD, 0, 3, SECOND);
    joins_again(SECOND, THIRD, 301);
    raw_up(&c, &nodes[THIRD].r, CLIENT + 1);
    CHECK_EQ(put("alpha", "two").status, FKV_OK);
    raw_down(&c);
    fails_over(THIRD, SECOND, 0, 4);
    raw_up(&c, &nodes[SECOND].r, CLIENT + 2);
    raw_expect(&c, "alpha", "two");
    raw_down(&c);
    down();
}

static void tests(void) {
    RUN(a_deposed_owner_keeps_what_it_has_prepared_and_goes_on_with_the_next_owner);
    RUN(a_large_value_that_copies_do_not_have_is_no_change_of_a_deposed_owner);
    RUN(an_owner_is_a_copy_when_no_lease_is_left);
    RUN(a_deposed_owner_does_not_go_on_with_the_owner_after_the_next);
    RUN(a_copy_that_was_full_and_has_led_is_a_copy_like_any);
}
int main(int argc, char **argv) { return join_main(argc, argv, tests, NULL); }
