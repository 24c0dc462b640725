/* dataplane_bulk_join_test.c: large values and copies that join: what takes effect before a copy has it is pulled from the
 * owner's table, unless its key was changed since; what has no number is pulled once the copy is waited for. */
#include "../../replication/bulk.h"
#include "../../replication/sender.h"
#include "../../dataplane/op.h"
#include "join_rig.h"
#include "large_values.h"

enum { SIZE = 1 << 20, FEW = 64 << 10 };

static memory value;
static rig_hold held;

static void owner_up(void) {
    up();
    raw_up(&c, &nodes[FIRST].r, CLIENT);
    memory_make(&value, &c, SIZE, 7);
}
static void end(void) {
    memory_free(&value);
    raw_down(&c);
    down();
    fkv_clock_restore();
    join_lease_ms = LEASE_MS;
}

/* The owner forgets a copy without a connection after a while. The copy stands still for as long as the puts take. */
static void do_wait_longer(worker *w, void *ctx) {
    shard *s = w->by_number[number];
    (void)ctx;
    for (int i = 0; i < REPLICA_PEERS; i++)
        if (s->repl.place[i].unlinked_ns) s->repl.place[i].unlinked_ns = w->now_ns;
}

static fkv_reply put_large(const char *key, uint32_t bytes) {
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    fkv_reply reply;
    do {
        fkv_rendezvous v;
        fkv_request q = large_put(&c, &value, key, bytes, &v);
        raw_ask(&c, &q, key, &v, sizeof v, &reply);
    } while (reply.status == FKV_SHARD_CLOSED && fkv_now_ns() < until);
    CHECK_EQ(reply.status, FKV_OK);
    rig_visit(&nodes[FIRST].r, do_wait_longer, NULL);
    return reply;
}
static void removed(const char *key) {
    fkv_request q = raw_request(&c, FKV_OP_DELETE, key);
    CHECK_EQ(raw_ask(&c, &q, key, NULL, 0, NULL), FKV_OK);
}
static void expect_large(const char *key, uint32_t bytes) {
    fkv_reply reply;
    uint8_t *found = raw_get(&c, key, &reply);
    CHECK(found && reply.value_bytes == bytes && memcmp(found, value.region.base, bytes) == 0);
    free(found);
}

/* The copy has its place in the log, and its worker stands still: what follows it gets from the backlog. */
static void joins_and_stands(void) {
    node_up(SECOND, 1);
    copy_begins(SECOND, FIRST);
    CHECK_EQ(rig_wait(&nodes[SECOND].caught_up), FKV_OK);
    rig_hold_up_by(&held, &nodes[SECOND].r, number);
    shard_copy_follow(nodes[SECOND].copy, rig_done, &nodes[SECOND].followed);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (copy_stats(FIRST).peers == 0) CHECK(fkv_now_ns() < until);
}
static void goes_on(void) {
    rig_let_go(&held);
    CHECK_EQ(rig_wait(&nodes[SECOND].followed), FKV_OK);
    node_stops_copying(SECOND);
}
static void comes_in_sync(uint32_t config) {
    uint64_t lsn;
    node_expects(FIRST, SECOND, DATAPLANE_COPY_JOINED);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_OK);
    CHECK_EQ(node_configures(FIRST, 1 << SECOND, config, 1), FKV_OK);
}
/* The owner dies, the copy is the next, and the client goes on there. */
static void next_owner(void) {
    uint64_t sequence = c.sequence[number];
    memory kept = value; /* registered with a domain that goes on */
    raw_hang_up(&c);
    node_dies(FIRST);
    fkv_clock_skip((int64_t)join_lease_ms * 1100000);
    fails_over(FIRST, SECOND, 0, 2);
    fkv_pass p = raw_pass(CLIENT, FKV_TICKET_READ | FKV_TICKET_WRITE);
    c.r = &nodes[SECOND].r;
    CHECK_EQ(raw_connect(&c, 0, &p), FKV_OK);
    c.sequence[number] = sequence;
    value = kept;
}

/* ---- at the owner ---- */

static struct {
    uint64_t sent, last;
    uint32_t pulled; /* changes that have no number */
    uint32_t announced;
    uint32_t offers; /* of the first of them: to so many copies */
} seen;
static void do_look(worker *w, void *ctx) {
    const shard *s = w->by_number[number];
    (void)ctx;
    seen.sent = list_empty(&s->repl.senders) ? 0 : LIST_OF(s->repl.senders.next, sender, of_shard)->sent;
    seen.last = s->repl.owner.last;
    seen.pulled = seen.announced = seen.offers = 0;
    if (!list_empty(&s->repl.bulks))
        seen.offers = (uint32_t)__builtin_popcount(LIST_OF(s->repl.bulks.next, op, link)->announced);
    for (const fkv_list *l = s->repl.bulks.next; l != &s->repl.bulks; l = l->next, seen.pulled++)
        seen.announced += LIST_OF(l, op, link)->announced != 0;
}
/* The client is polled meanwhile: over tcp it answers READs of its memory itself. */
#define UNTIL(e)                                                         \
    do {                                                                 \
        uint64_t until_ = fkv_now_ns() + check_patience_ms() * 1000000u; \
        for (;;) {                                                       \
            rig_visit(&nodes[FIRST].r, do_look, NULL);                   \
            if (e) break;                                                \
            raw_poll(&c);                                                \
            CHECK(fkv_now_ns() < until_);                                \
        }                                                                \
    } while (0)

/* ---- */

TEST(large_values_that_took_effect_come_to_a_copy_that_joins) {
    char key[32];
    const uint32_t bytes[] = { FEW, SIZE, SIZE - 1, FEW + 1 };
    owner_up();
    joins_and_stands();
    for (uint32_t i = 0; i < 4; i++) put_large(key_at(i, key), bytes[i]);
    CHECK_EQ(put("alpha", "small").status, FKV_OK);
    goes_on();
    comes_in_sync(1);
    put_large(key_at(4, key), SIZE);
    next_owner();
    for (uint32_t i = 0; i < 4; i++) expect_large(key_at(i, key), bytes[i]);
    expect_large(key_at(4, key), SIZE);
    raw_expect(&c, "alpha", "small");
    end();
}

/* Nothing of them is kept at the owner; who asks again is told what was made. */
TEST(large_values_that_were_changed_since_are_none_at_a_copy_that_joins) {
    char key[32];
    owner_up();
    joins_and_stands();
    put_large(key_at(0, key), SIZE);
    put_large(key_at(0, key), FEW);
    put_large(key_at(1, key), SIZE);
    CHECK_EQ(put(key_at(1, key), "small").status, FKV_OK);
    put_large(key_at(2, key), SIZE);
    removed(key_at(2, key));
    fkv_reply made = put_large("alpha", SIZE);
    uint64_t sequence = c.sequence[number];
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    goes_on();
    comes_in_sync(1);
    next_owner();
    expect_large(key_at(0, key), FEW);
    raw_expect(&c, key_at(1, key), "small");
    CHECK_EQ(get(key_at(2, key)), FKV_NOT_FOUND);
    fkv_rendezvous v;
    fkv_request q = large_put(&c, &value, "alpha", SIZE, &v);
    c.sequence[number]--;
    q.sequence = sequence;
    q.flags |= FKV_REQUEST_RETRY;
    fkv_reply again;
    CHECK_EQ(raw_ask(&c, &q, "alpha", &v, sizeof v, &again), FKV_OK);
    CHECK_EQ(again.version, made.version);
    raw_expect(&c, "alpha", "one");
    end();
}

/* Else what follows would fill its messages, and other shards of the link would wait. */
TEST(what_follows_a_large_value_waits_at_the_owner_until_the_copy_has_it) {
    uint64_t lsn;
    char key[32];
    join_lease_ms = 100 * 1000; /* as long as its worker stands still */
    owner_up();
    node_up(SECOND, 1);
    node_joined(SECOND, FIRST);
    rig_hold_up_by(&held, &nodes[SECOND].r, number);
    put_large(key_at(0, key), SIZE);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    rig_visit(&nodes[FIRST].r, do_look, NULL);
    CHECK(seen.last == 2 && seen.sent == 1);
    /* Now it is waited for, and lacks what took effect: that comes to it first. */
    rig_call required;
    rig_call_init(&required);
    dataplane_require_copy(plane(FIRST), number, id_of(SECOND), rig_done, &required);
    uint64_t id = large_put_begin(&c, &value, "alpha", SIZE);
    UNTIL(seen.pulled == 1);
    CHECK_EQ(seen.announced, 0);
    rig_let_go(&held);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    CHECK_EQ(rig_wait(&required), FKV_OK);
    lsn = *(uint64_t *)required.result;
    free(required.result);
    CHECK(lsn >= 2);
    CHECK_EQ(copy_stats(SECOND).failed, FKV_OK);
    CHECK_EQ(node_configures(FIRST, 1 << SECOND, 1, 1), FKV_OK);
    rig_visit(&nodes[FIRST].r, do_look, NULL);
    CHECK(seen.last == 3 && seen.pulled == 0);
    end();
}

/* Its addition was refused: what was announced to it takes effect at once, and its record comes later. */
TEST(a_copy_that_is_waited_for_no_more_gets_what_was_announced_to_it) {
    uint64_t lsn;
    char key[32];
    join_lease_ms = 100 * 1000; /* its worker stands still, and the owner goes on */
    owner_up();
    node_up(SECOND, 1);
    node_joined(SECOND, FIRST);
    CHECK_EQ(node_requires(FIRST, id_of(SECOND), &lsn), FKV_OK);
    rig_hold_up_by(&held, &nodes[SECOND].r, number);
    uint64_t first = large_put_begin(&c, &value, key_at(0, key), SIZE);
    UNTIL(seen.announced == 1);
    uint64_t second = large_put_begin(&c, &value, "alpha", SIZE);
    UNTIL(seen.announced == 2);
    CHECK_EQ(node_configures(FIRST, 0, 1, 1), FKV_OK);
    CHECK_EQ(raw_end(&c, first), FKV_OK);
    CHECK_EQ(raw_end(&c, second), FKV_OK);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    rig_let_go(&held);
    comes_in_sync(2);
    CHECK_EQ(copy_stats(SECOND).failed, FKV_OK);
    next_owner();
    expect_large(key_at(0, key), SIZE);
    raw_expect(&c, "alpha", "one");
    end();
}

/* Two copies, both waited for. */
static void two_copies_up(void) {
    uint64_t lsn;
    join_lease_ms = 100 * 1000; /* as long as a worker stands still */
    owner_up();
    for (int s = SECOND; s <= THIRD; s++) {
        node_up(s, 1);
        node_joined(s, FIRST);
        CHECK_EQ(node_requires(FIRST, id_of(s), &lsn), FKV_OK);
    }
}
static void do_send_to_second(worker *w, void *ctx) {
    *(uint64_t *)ctx = sender_of(w->by_number[number], id_of(SECOND))->sent;
}

TEST(what_follows_waits_though_the_copy_is_waited_for_no_more_while_it_pulls) {
    uint64_t sent;
    two_copies_up();
    rig_hold_up_by(&held, &nodes[SECOND].r, number);
    uint64_t id = large_put_begin(&c, &value, "alpha", SIZE);
    UNTIL(seen.offers == 2);
    CHECK_EQ(node_configures(FIRST, 1 << THIRD, 1, 1), FKV_OK);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    CHECK_EQ(put("alpha", "two").status, FKV_OK);
    rig_visit(&nodes[FIRST].r, do_send_to_second, &sent);
    CHECK_EQ(sent, 1);
    rig_let_go(&held);
    comes_in_sync(2);
    end();
}

static void do_refuse(worker *w, void *ctx) {
    shard *s = w->by_number[number];
    (void)ctx;
    op *o = LIST_OF(s->repl.bulks.next, op, link);
    bulk_pulled(sender_of(s, id_of(SECOND)), o->prepared.version, FKV_TABLE_FULL);
}

TEST(a_copy_that_had_no_room_while_nobody_waited_for_it_is_asked_again) {
    rig_hold other;
    two_copies_up();
    rig_hold_up_by(&held, &nodes[SECOND].r, number);
    rig_hold_up_by(&other, &nodes[THIRD].r, number);
    uint64_t id = large_put_begin(&c, &value, "alpha", SIZE);
    UNTIL(seen.offers == 2);
    CHECK_EQ(node_configures(FIRST, 1 << THIRD, 1, 1), FKV_OK);
    rig_visit(&nodes[FIRST].r, do_refuse, NULL);
    UNTIL(seen.offers == 1);
    rig_call required;
    rig_call_init(&required);
    dataplane_require_copy(plane(FIRST), number, id_of(SECOND), rig_done, &required);
    UNTIL(seen.offers == 2);
    rig_let_go(&held);
    rig_let_go(&other);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    CHECK_EQ(rig_wait(&required), FKV_OK);
    free(required.result);
    CHECK_EQ(node_configures(FIRST, 1 << SECOND | 1 << THIRD, 2, 1), FKV_OK);
    next_owner();
    expect_large("alpha", SIZE);
    end();
}

TEST(a_copy_without_room_for_what_took_effect_is_none) {
    owner_up();
    join_memory = SMALL_MEMORY;
    joins_and_stands();
    join_memory = JOIN_MEMORY;
    char key[32];
    for (uint32_t i = 0; i < 10; i++) put_large(key_at(i, key), SIZE);
    goes_on();
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (copy_stats(SECOND).failed == FKV_OK) CHECK(fkv_now_ns() < until);
    CHECK_EQ(copy_stats(SECOND).failed, FKV_TABLE_FULL);
    CHECK_EQ(put("alpha", "one").status, FKV_OK); /* nobody waits for it */
    end();
}

/* What the copy is spared takes none of the room that its owner thinks it has. */
TEST(a_copy_has_room_for_large_values_though_more_were_changed_since) {
    owner_up();
    join_memory = SMALL_MEMORY;
    joins_and_stands();
    join_memory = JOIN_MEMORY;
    for (uint32_t i = 0; i < 12; i++) put_large("alpha", SIZE);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    goes_on();
    comes_in_sync(1);
    put_large("alpha", SIZE);
    next_owner();
    expect_large("alpha", SIZE);
    end();
}

TEST(a_large_value_without_a_number_ends_when_there_are_too_few_copies) {
    join_lease_ms = 100 * 1000;
    owner_up();
    node_up(SECOND, 1);
    node_joins(SECOND, FIRST, 0, 1);
    CHECK_EQ(put("alpha", "one").status, FKV_OK);
    rig_hold_up_by(&held, &nodes[SECOND].r, number);
    uint64_t id = large_put_begin(&c, &value, "alpha", SIZE);
    UNTIL(seen.pulled == 1);
    CHECK_EQ(node_configures(FIRST, 0, 2, 2), FKV_OK);
    CHECK_EQ(raw_end(&c, id), FKV_TOO_FEW_COPIES);
    raw_expect(&c, "alpha", "one");
    rig_let_go(&held);
    end();
}

static void tests(void) {
    RUN(large_values_that_took_effect_come_to_a_copy_that_joins);
    RUN(large_values_that_were_changed_since_are_none_at_a_copy_that_joins);
    RUN(what_follows_a_large_value_waits_at_the_owner_until_the_copy_has_it);
    RUN(a_copy_that_is_waited_for_no_more_gets_what_was_announced_to_it);
    RUN(what_follows_waits_though_the_copy_is_waited_for_no_more_while_it_pulls);
    RUN(a_copy_that_had_no_room_while_nobody_waited_for_it_is_asked_again);
    RUN(a_copy_without_room_for_what_took_effect_is_none);
    RUN(a_copy_has_room_for_large_values_though_more_were_changed_since);
    RUN(a_large_value_without_a_number_ends_when_there_are_too_few_copies);
}

static void encrypted(void) { RUN(large_values_that_took_effect_come_to_a_copy_that_joins); }

int main(int argc, char **argv) { return join_main(argc, argv, tests, encrypted); }
