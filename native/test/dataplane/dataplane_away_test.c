/* dataplane_away_test.c: copies that were in sync, are late, and come back with what they have, or are not known any more. */
#include <string.h>
#include "../../replication/backlog.h"
#include "../../replication/backup_link.h"
#include "../../replication/sender.h"
#include "../../serve/lease.h"
#include "../../storage/shard.h"
#include "join_rig.h"

/* As after a pause of its server: its connection is a new one, and what waited takes effect when it is in sync. */
TEST(a_copy_that_is_eligible_comes_back_with_what_it_has) {
    rig_hold h;
    uint64_t lsn, id[] = { id_of(SECOND) };
    join_slow_ms = 100;
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    CHECK_EQ(node_configures(FIRST, 1 << SECOND, 2, 2), FKV_OK);
    rig_hold_up_by(&h, &nodes[SECOND].r, number);
    uint64_t waits = raw_put_begin(&c, "alpha", "two", 3);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_LATE);
    dataplane_copies k = { .epoch = 1, .config = 3, .min_in_sync = 2, .eligible = 1, .eligible_id = id };
    rig_call called;
    rig_call_init(&called);
    dataplane_configure_copies(plane(FIRST), number, &k, rig_done, &called);
    CHECK_EQ(rig_wait(&called), FKV_OK);
    char room[32];
    CHECK_EQ(put(key_at(1, room), "refused").status, FKV_TOO_FEW_COPIES);
    rig_let_go(&h);
    node_follows(SECOND, SECOND); /* so that it has no connection */
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (copy_stats(FIRST).peer[0].linked != FAB_NONE) CHECK(fkv_now_ns() < until);
    fkv_clock_skip(11000000000); /* longer than a copy that joins may be away */
    CHECK_EQ(put(key_at(1, room), "refused").status, FKV_TOO_FEW_COPIES);
    CHECK_EQ(copy_stats(FIRST).peers, 1);
    node_follows(SECOND, FIRST);
    until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (copy_stats(FIRST).peer[0].linked == FAB_NONE) CHECK(fkv_now_ns() < until);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_JOINED); /* now, or when it was let go */
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_OK);
    CHECK_EQ(node_configures(FIRST, 1 << SECOND, 4, 2), FKV_OK);
    CHECK_EQ(raw_end(&c, waits), FKV_OK);
    CHECK_EQ(put(key_at(1, room), "three").status, FKV_OK);
    raw_expect(&c, "alpha", "two");
    raw_down(&c);
    down();
    join_slow_ms = 0;
}

/* SECOND is away, the metadata has taken it out and lets it join again; `changes` are made meanwhile. */
static void goes_away(uint64_t away_ns, int changes) {
    uint64_t id[] = { id_of(SECOND) };
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    CHECK_EQ(node_configures(FIRST, 1 << SECOND, 2, 1), FKV_OK);
    node_follows(SECOND, SECOND); /* so that it has no connection */
    node_expects(FIRST, SECOND, DATAPLANE_COPY_LATE);
    dataplane_copies k = { .epoch = 1, .config = 3, .min_in_sync = 1, .joining = 1, .joining_id = id };
    rig_call called;
    rig_call_init(&called);
    dataplane_configure_copies(plane(FIRST), number, &k, rig_done, &called);
    CHECK_EQ(rig_wait(&called), FKV_OK);
    char room[32];
    for (int i = 0; i < changes; i++) CHECK_EQ(put(key_at(i, room), "meanwhile").status, FKV_OK);
    CHECK_EQ(put("alpha", "two").status, FKV_OK);
    fkv_clock_skip(away_ns);
}

/* Its owner says so, and not what it followed in between. */
static void comes_back_unknown(void) {
    node *n = &nodes[SECOND];
    node_follows(SECOND, FIRST);
    pthread_mutex_lock(&n->lock);
    n->events = 0;
    pthread_mutex_unlock(&n->lock);
    node_expects(SECOND, SECOND, DATAPLANE_COPY_UNKNOWN);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_REFUSED);
    raw_down(&c);
    down();
    join_slow_ms = 0;
}

static uint64_t lagging_ns;
static void do_look(worker *w, void *ctx) {
    (void)ctx;
    lagging_ns = w->by_number[number]->repl.place[0].lagging_ns;
}

TEST(a_copy_that_was_away_comes_back_with_what_it_has) {
    uint64_t lsn;
    join_slow_ms = 100;
    goes_away(5000000000, 300);
    char room[32];
    CHECK_EQ(put(key_at(300, room), "three").status, FKV_OK);
    rig_visit(&nodes[FIRST].r, do_look, NULL);
    CHECK_EQ(lagging_ns, 0); /* else it would be late as soon as it is waited for */
    node_follows(SECOND, FIRST);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_JOINED);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_OK);
    CHECK_EQ(node_configures(FIRST, 1 << SECOND, 4, 1), FKV_OK);
    CHECK_EQ(put(key_at(301, room), "four").status, FKV_OK);
    raw_down(&c);
    node_dies(FIRST);
    CHECK_EQ(node_leads(SECOND, 0, 2, 5), FKV_OK);
    node_serves(SECOND);
    raw_up(&c, &nodes[SECOND].r, CLIENT);
    for (int i = 0; i < 300; i++) raw_expect(&c, key_at(i, room), "meanwhile");
    raw_expect(&c, "alpha", "two");
    raw_expect(&c, key_at(300, room), "three");
    raw_expect(&c, key_at(301, room), "four");
    raw_down(&c);
    down();
    join_slow_ms = 0;
}

static uint64_t granted_ns;
static void do_grant(worker *w, void *ctx) {
    (void)ctx;
    fkv_lease_shard list[RIG_SHARDS];
    uint32_t next;
    lease_grant(w, (fkv_shard_range){ .first = number, .count = 1 }, 0, list, RIG_SHARDS, &next, &granted_ns);
}

TEST(a_new_owner_grants_short_leases_since_the_one_before_may_come_back) {
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    node_dies(FIRST);
    CHECK_EQ(node_leads(SECOND, 0, 2, 2), FKV_OK);
    node_serves(SECOND);
    rig_visit(&nodes[SECOND].r, do_grant, NULL);
    CHECK(granted_ns > 0 && granted_ns <= 100000000);
    down();
}

/* Its owner may have held it back since it had joined. */
TEST(a_copy_that_is_away_again_is_not_required) {
    uint64_t lsn;
    join_slow_ms = 100;
    goes_away(0, 0);
    node_follows(SECOND, FIRST);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_JOINED);
    node_follows(SECOND, SECOND);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (copy_stats(FIRST).peer[0].linked != FAB_NONE) CHECK(fkv_now_ns() < until);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_BUSY);
    CHECK_EQ(put("alpha", "three").status, FKV_OK);
    raw_down(&c);
    down();
    join_slow_ms = 0;
}

TEST(a_copy_that_was_away_for_too_long_is_forgotten) {
    join_slow_ms = 100;
    goes_away(11000000000, 1);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (copy_stats(FIRST).peers != 0) CHECK(fkv_now_ns() < until);
    comes_back_unknown();
}

TEST(a_copy_that_lacks_what_was_not_kept_is_unknown) {
    join_slow_ms = 100;
    goes_away(0, 0);
    __atomic_store_n(&plane(FIRST)->backlogs.most, 0,
                     __ATOMIC_RELAXED); /* as if copies of other shards lacked as much */
    char room[32];
    for (int i = 0; i < 600; i++) CHECK_EQ(put(key_at(i, room), "more than one message has").status, FKV_OK);
    CHECK(__atomic_load_n(&plane(FIRST)->backlogs.taken, __ATOMIC_RELAXED) <= 32 << 10);
    comes_back_unknown();
}

/* The next owner has a record that it has not committed, and the other copy is away: once that is removed, the record
 * takes effect without it. */
TEST(a_copy_that_is_away_when_its_shard_comes_to_another_owner_lacks_what_that_commits) {
    uint64_t id[] = { id_of(THIRD) };
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    node_up(THIRD, 1);
    node_joins(THIRD, FIRST, 1 << SECOND, 2);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    uint64_t sequences = c.sequence[number];
    node_dies(FIRST); /* before it has said that this is committed */
    raw_down(&c);
    node_follows(THIRD, THIRD);
    CHECK_EQ(node_leads(SECOND, 1 << THIRD, 2, 200), FKV_OK);
    CHECK(copy_stats(SECOND).committed < copy_stats(SECOND).prepared);
    dataplane_copies k = { .epoch = 2, .config = 201, .min_in_sync = 1, .joining = 1, .joining_id = id };
    rig_call called;
    rig_call_init(&called);
    dataplane_configure_copies(plane(SECOND), number, &k, rig_done, &called);
    CHECK_EQ(rig_wait(&called), FKV_OK);
    node_serves(SECOND);
    raw_up(&c, &nodes[SECOND].r, CLIENT);
    c.sequence[number] = sequences;
    raw_expect(&c, "alpha", "one");
    CHECK_EQ(put("alpha", "two").status, FKV_OK);
    node_follows(THIRD, SECOND);
    node_expects(SECOND, THIRD, DATAPLANE_COPY_JOINED);
    raw_down(&c);
    down();
}

/* ---- two shards over one link ---- */

/* Of what the owner sends SECOND. Each connection has a nonce of its own. */
static struct {
    bool fed, lacks; /* lacks: what is gone */
    uint8_t nonce[FKV_NONCE_BYTES];
} link_of;
static void do_look_at_link(worker *w, void *ctx) {
    const shard *s = w->by_number[number];
    (void)ctx;
    link_of.fed = !list_empty(&s->repl.senders);
    if (!link_of.fed) return;
    const sender *f = LIST_OF(s->repl.senders.next, sender, of_shard);
    link_of.lacks = s->repl.backlog && f->sent + 1 < backlog_first(s->repl.backlog);
    for (const fkv_list *l = w->clients.next; l != &w->clients; l = l->next) {
        const client *x = LIST_OF(l, client, of_worker);
        if (x->link == f->user) memcpy(link_of.nonce, x->nonce, sizeof link_of.nonce);
    }
}
static void look_at_link(void) { rig_visit(&nodes[FIRST].r, do_look_at_link, NULL); }

static void shard_joins_too(uint32_t other) {
    number = other;
    for (int s = FIRST; s <= SECOND; s++) {
        CHECK_EQ(rig_open_shard(&nodes[s].r, number, 0, join_memory, NULL), FKV_OK);
        nodes[s].incarnation = 1000 + number;
    }
    node_serves(FIRST);
    node_joins(SECOND, FIRST, 0, 1);
}

/* The copy's server stands still for so long that the owner keeps no more for one shard. */
TEST(a_copy_that_lacks_what_is_gone_is_told_alone_and_joins_again_while_its_link_goes_on) {
    rig_hold h;
    uint64_t id[] = { id_of(SECOND) };
    const uint32_t stale = number, well = (number + 1) % RIG_SHARDS;
    static uint8_t value[12000];
    char key[32], other[32];
    join_lease_ms = 100 * 1000; /* as long as it stands still */
    up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    shard_joins_too(well);
    key_at(0, other);
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    CHECK_EQ(put(other, "one").status, FKV_OK);
    look_at_link();
    CHECK(link_of.fed);
    uint8_t nonce[FKV_NONCE_BYTES];
    memcpy(nonce, link_of.nonce, sizeof nonce);

    number = stale;
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    for (int i = 0; i < 10; i++) CHECK_EQ(put(key_at(i, key), "stays").status, FKV_OK);
    dataplane_copies k = { .epoch = 1, .config = 2, .min_in_sync = 1, .joining = 1, .joining_id = id };
    rig_call called;
    rig_call_init(&called);
    dataplane_configure_copies(plane(FIRST), number, &k, rig_done, &called);
    CHECK_EQ(rig_wait(&called), FKV_OK);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_JOINED); /* as it was: it lacks nothing yet */
    uint64_t most = __atomic_exchange_n(&plane(FIRST)->backlogs.most, 0, __ATOMIC_RELAXED);
    rig_hold_up_by(&h, &nodes[SECOND].r, number);
    uint64_t waits = raw_put_begin(&c, other, "two", 3);
    for (link_of.lacks = false; !link_of.lacks; look_at_link())
        CHECK_EQ(raw_put(&c, "alpha", value, sizeof value), FKV_OK);
    rig_let_go(&h);
    node_expects(SECOND, SECOND, DATAPLANE_COPY_UNKNOWN);
    node_expects(FIRST, SECOND, DATAPLANE_COPY_REFUSED);
    CHECK_EQ(raw_end(&c, waits), FKV_OK);
    number = well;
    look_at_link();
    CHECK(link_of.fed && memcmp(link_of.nonce, nonce, sizeof nonce) == 0);

    number = stale;
    __atomic_store_n(&plane(FIRST)->backlogs.most, most, __ATOMIC_RELAXED);
    for (int s = FIRST; s <= SECOND; s++) nodes[s].incarnation = 1000 + number;
    CHECK_EQ(node_configures(FIRST, 0, 3, 1), FKV_OK);
    CHECK_EQ(node_keeps_base(SECOND), FKV_OK);
    node_joins(SECOND, FIRST, 0, 4);
    CHECK(nodes[SECOND].copied.kept >= 10);
    CHECK_EQ(put("alpha", "two").status, FKV_OK);
    number = well;
    CHECK_EQ(put(other, "three").status, FKV_OK);
    look_at_link();
    CHECK(link_of.fed && memcmp(link_of.nonce, nonce, sizeof nonce) == 0);
    raw_down(&c);
    down();
    number = stale;
    join_lease_ms = LEASE_MS;
}

static void tests(void) {
    RUN(a_copy_that_is_eligible_comes_back_with_what_it_has);
    RUN(a_copy_that_was_away_comes_back_with_what_it_has);
    RUN(a_new_owner_grants_short_leases_since_the_one_before_may_come_back);
    RUN(a_copy_that_is_away_again_is_not_required);
    RUN(a_copy_that_was_away_for_too_long_is_forgotten);
    RUN(a_copy_that_lacks_what_was_not_kept_is_unknown);
    RUN(a_copy_that_is_away_when_its_shard_comes_to_another_owner_lacks_what_that_commits);
    RUN(a_copy_that_lacks_what_is_gone_is_told_alone_and_joins_again_while_its_link_goes_on);
}

int main(int argc, char **argv) { return join_main(argc, argv, tests, NULL); }
