/* dataplane_bulk_test.c: values that fit no message of a link, over each provider. Backups pull them before their change
 * has a number: small changes do not wait, and what is cut off, full or deposed meanwhile loses nothing. */
#include "../../replication/bulk.h"
#include "../../dataplane/op.h"
#include "../../table/words.h"
#include "large_values.h"
#include "links_rig.h"

#ifdef __SANITIZE_THREAD__
enum { BIG = 4 << 20 };
#else
enum { BIG = FKV_VALUE_MAX };
#endif
enum { SOME = 3 << 20, SMALL_CHANGES = 200 };
static const uint64_t ROOM = 400u << 20;

static memory value;

/* ---- a copier stands still: a backup's, so that no value is pulled to its end ---- */

typedef struct stop_copier {
    job job;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool go, gone;
} stop_copier;
static void wait_here(job *j) {
    stop_copier *s = (stop_copier *)j;
    pthread_mutex_lock(&s->lock);
    while (!s->go) pthread_cond_wait(&s->cond, &s->lock);
    s->gone = true;
    pthread_cond_broadcast(&s->cond);
    pthread_mutex_unlock(&s->lock);
}
static stop_copier stops[2];
static void copier_stands(int s) {
    stops[s] = (stop_copier){ .job.run = wait_here,
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .cond = PTHREAD_COND_INITIALIZER };
    helper_post(&servers[s].r.d->copier, &stops[s].job);
}
static void copier_goes_on(int s) {
    stop_copier *stop = &stops[s];
    pthread_mutex_lock(&stop->lock);
    stop->go = true;
    pthread_cond_broadcast(&stop->cond);
    while (!stop->gone) pthread_cond_wait(&stop->cond, &stop->lock);
    pthread_mutex_unlock(&stop->lock);
}

/* ---- */

static struct {
    bool pulls;     /* the owner has a value that is not everywhere */
    uint32_t comes; /* jobs of pulls at the copier, or waiting for it */
    uint64_t last;
    uint64_t dialed;            /* how often the owner was */
    bool announced;             /* the copy knows of values without records */
    bool dropped;               /* ... and has some that it was told to forget */
    uint32_t held, waits, told; /* changes that the owner has prepared; without numbers; of those, announced */
} bulk;
static void do_look_at_bulk(worker *w, void *ctx) {
    (void)ctx;
    bulk.pulls = !list_empty(&here(w)->repl.bulks);
    bulk.comes = fetch_pool_jobs(w->repl.pulls);
    bulk.last = here(w)->repl.owner.last;
    bulk.dialed = w->challenges.next;
    bulk.announced = !list_empty(&here(w)->repl.copy->pulls);
    bulk.dropped = here(w)->repl.copy->dropping > 0;
    bulk.held = here(w)->held;
    bulk.waits = bulk.told = 0;
    for (const fkv_list *l = here(w)->repl.bulks.next; l != &here(w)->repl.bulks; l = l->next, bulk.waits++)
        bulk.told += LIST_OF(l, op, link)->announced != 0;
}
/* The client is polled meanwhile: over tcp it answers READs of its memory itself. */
#define UNTIL_BULK(server, e)                                            \
    do {                                                                 \
        uint64_t until_ = fkv_now_ns() + check_patience_ms() * 1000000u; \
        for (;;) {                                                       \
            visit_server(server, do_look_at_bulk, &(errand){ 0 });       \
            if (e) break;                                                \
            raw_poll(&c);                                                \
            CHECK(fkv_now_ns() < until_);                                \
        }                                                                \
    } while (0)

static void up_with(uint64_t room_of_next, uint32_t bytes) {
    server_up(OWNER, ROOM);
    server_up(NEXT, room_of_next);
    server_leads(OWNER, BOTH, 1);
    follow(OWNER, NEXT);
    server_serves_soon(OWNER);
    UNTIL(OWNER, seen.right_ns > fkv_now_ns());
    raw_up(&c, &servers[OWNER].r, CLIENT);
    memory_make(&value, &c, bytes, 7);
}
static void down_with(void) {
    memory_free(&value);
    down();
}
static void expect_value(const char *key, uint32_t bytes) {
    fkv_reply reply;
    uint8_t *found = raw_get(&c, key, &reply);
    CHECK(found && reply.value_bytes == bytes && memcmp(found, value.region.base, bytes) == 0);
    free(found);
}
/* The owner dies, the backup is the next, and the client goes on there. */
static void next_owner(void) {
    uint64_t sequence = c.sequence[number];
    memory kept = value; /* registered with a domain that goes on */
    raw_hang_up(&c);
    server_dies(OWNER);
    server_leads(NEXT, 1 << NEXT, 2);
    leases_end();
    CHECK(server_serves(NEXT));
    fkv_pass p = raw_pass(CLIENT, FKV_TICKET_READ | FKV_TICKET_WRITE);
    c.r = &servers[NEXT].r;
    CHECK_EQ(raw_connect(&c, 0, &p), FKV_OK);
    c.sequence[number] = sequence;
    value = kept;
}

TEST(small_changes_do_not_wait_for_a_large_value) {
    up_with(ROOM, BIG);
    copier_stands(NEXT);
    uint64_t id = large_put_begin(&c, &value, "alpha", BIG);
    UNTIL_BULK(NEXT, bulk.comes > 0);
    for (uint32_t i = 0; i < SMALL_CHANGES; i++) CHECK_EQ(raw_put(&c, key_at(i), &i, sizeof i), FKV_OK);
    CHECK(!is_here(&c, id));
    copier_goes_on(NEXT);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    UNTIL_BULK(OWNER, bulk.last == SMALL_CHANGES + 1);
    expect_value("alpha", BIG);
    next_owner();
    expect_value("alpha", BIG);
    down_with();
}

/* Whoever follows dials over a device that it has: none of these is the first. */
static void each_on_its_device(int s, rig *of) { of->listen[0].device = (uint32_t)s + 1; }

TEST(values_of_all_sizes_come_to_the_next_owner) {
    uint32_t most = PEER_MESSAGE_MIN - (uint32_t)(sizeof(fkv_records) + sizeof(fkv_record));
    const uint32_t bytes[] = { most - 20, most, most + 1, 70000, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, SOME };
    enum { N = sizeof bytes / sizeof *bytes };
    uint64_t id[N];
    up_with(ROOM, SOME);
    for (uint32_t i = 0; i < N; i++) id[i] = large_put_begin(&c, &value, key_at(i), bytes[i]);
    for (uint32_t i = 0; i < N; i++) CHECK_EQ(raw_end(&c, id[i]), FKV_OK);
    next_owner();
    for (uint32_t i = 0; i < N; i++) expect_value(key_at(i), bytes[i]);
    down_with();
}

/* While it is READ, when it lies in the pool, when it is there; and again and again. */
TEST(a_value_whose_link_is_cut_is_pulled_again) {
    enum { ROUNDS = 6 };
    up_with(ROOM, SOME);
    for (int i = 0; i < ROUNDS; i++) {
        copier_stands(NEXT);
        uint64_t id = large_put_begin(&c, &value, "alpha", SOME - (uint32_t)i);
        UNTIL_BULK(OWNER, bulk.pulls);
        if (i % 2) UNTIL_BULK(NEXT, bulk.comes > 0);
        visit_server(OWNER, do_cut, &(errand){ 0 });
        copier_goes_on(NEXT);
        if (i % 3) visit_server(OWNER, do_cut, &(errand){ 0 });
        CHECK_EQ(raw_end(&c, id), FKV_OK);
        visit_server(OWNER, do_cut, &(errand){ 0 });
        uint64_t records = (uint64_t)i + 1;
        UNTIL(NEXT, seen.prepared == records);
    }
    next_owner();
    expect_value("alpha", SOME - ROUNDS + 1);
    down_with();
}

/* One bit of what backups READ is another for a while. */
static void do_spoil(worker *w, void *ctx) {
    op *o = LIST_OF(here(w)->repl.bulks.next, op, link);
    uint8_t other = o->prepared.value[SOME / 2] ^ 1;
    fkv_copy_in(o->prepared.value + SOME / 2, &other, 1);
    do_cut(w, ctx);
}
TEST(bytes_that_changed_on_their_way_are_pulled_again) {
    up_with(ROOM, SOME);
    copier_stands(NEXT);
    uint64_t id = large_put_begin(&c, &value, "alpha", SOME);
    UNTIL_BULK(OWNER, bulk.pulls);
    visit_server(OWNER, do_spoil, &(errand){ 0 });
    UNTIL_BULK(OWNER, true);
    uint64_t before = bulk.dialed;
    copier_goes_on(NEXT);
    UNTIL_BULK(OWNER, bulk.dialed > before + 2); /* the cut, and each time that the checksum is wrong */
    visit_server(OWNER, do_spoil, &(errand){ 0 });
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    next_owner();
    expect_value("alpha", SOME);
    down_with();
}

/* As if another copy had said so. */
static void do_refuse(worker *w, void *ctx) {
    const op *o = LIST_OF(here(w)->repl.bulks.next, op, link);
    (void)ctx;
    bulk_pulled(LIST_OF(here(w)->repl.senders.next, sender, of_shard), o->prepared.version, FKV_TABLE_FULL);
}
TEST(a_change_waits_for_the_extent_of_a_value_that_was_forgotten) {
    up_with(ROOM, SOME);
    copier_stands(NEXT);
    uint64_t id = large_put_begin(&c, &value, "alpha", SOME);
    UNTIL_BULK(NEXT, bulk.comes > 0);
    visit_server(OWNER, do_refuse, &(errand){ 0 });
    CHECK_EQ(raw_end(&c, id), FKV_TABLE_FULL);
    id = raw_put_begin(&c, "alpha", "after", 5);
    UNTIL(NEXT, seen.waits);
    copier_goes_on(NEXT);
    UNTIL(NEXT, seen.prepared == 1);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    next_owner();
    raw_expect(&c, "alpha", "after");
    down_with();
}

TEST(a_value_waits_for_the_room_of_one_that_was_forgotten) {
    enum { MORE_THAN_HALF = 5 << 20 };
    copies_lease_ms = FKV_PEER_LEASE_MS_MAX; /* no beats: the owner knows the room that there was at first */
    up_with(8 << 20, MORE_THAN_HALF);
    copier_stands(NEXT);
    uint64_t id = large_put_begin(&c, &value, "alpha", MORE_THAN_HALF);
    UNTIL_BULK(NEXT, bulk.comes > 0);
    visit_server(OWNER, do_refuse, &(errand){ 0 });
    CHECK_EQ(raw_end(&c, id), FKV_TABLE_FULL);
    id = large_put_begin(&c, &value, key_at(0), MORE_THAN_HALF);
    UNTIL_BULK(NEXT, bulk.dropped && bulk.announced);
    copier_goes_on(NEXT);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    expect_value(key_at(0), MORE_THAN_HALF);
    down_with();
    copies_lease_ms = COPY_LEASE_MS;
}

/* More can be fetched from clients together: they are counted when they are whole. */
TEST(a_copy_is_told_of_a_few_values_at_a_time) {
    enum { AT_A_TIME = 64, MANY = AT_A_TIME + 10, BYTES = 20000 };
    uint64_t id[MANY];
    up_with(ROOM, BYTES);
    copier_stands(OWNER);
    copier_stands(NEXT);
    for (uint32_t i = 0; i < MANY; i++) id[i] = large_put_begin(&c, &value, key_at(i), BYTES);
    UNTIL_BULK(OWNER, bulk.held == MANY);
    copier_goes_on(OWNER);
    UNTIL_BULK(OWNER, bulk.waits == MANY && bulk.told >= AT_A_TIME);
    CHECK_EQ(bulk.told, AT_A_TIME);
    copier_goes_on(NEXT);
    for (uint32_t i = 0; i < MANY; i++) CHECK_EQ(raw_end(&c, id[i]), FKV_OK);
    down_with();
}

TEST(a_value_is_forgotten_when_its_owner_closes_the_shard) {
    up_with(ROOM, SOME);
    copier_stands(NEXT);
    uint64_t id = large_put_begin(&c, &value, "alpha", SOME);
    UNTIL_BULK(NEXT, bulk.announced && bulk.comes > 0);
    rig_close(&servers[OWNER].r, number);
    CHECK_EQ(raw_end(&c, id), FKV_SHARD_CLOSED);
    UNTIL_BULK(NEXT, !bulk.announced);
    copier_goes_on(NEXT);
    next_owner();
    fkv_reply reply;
    CHECK(!raw_get(&c, "alpha", &reply) && reply.status == FKV_NOT_FOUND);
    down_with();
}

TEST(a_value_without_a_number_goes_with_its_owner) {
    up_with(ROOM, SOME);
    CHECK_EQ(raw_put(&c, "alpha", "before", 6), FKV_OK);
    copier_stands(NEXT);
    large_put_begin(&c, &value, "alpha", SOME);
    UNTIL_BULK(NEXT, bulk.comes > 0);
    next_owner();
    uint64_t id = raw_put_begin(&c, "alpha", "after", 5); /* waits until the extent is given up */
    copier_goes_on(NEXT);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    raw_expect(&c, "alpha", "after");
    down_with();
}

/* The owner dies when one copy has prepared the change; another has nothing yet. */
TEST(a_value_that_was_inherited_goes_to_the_other_copies) {
    enum { THIRD = 2 };
    copies_lease_ms = FKV_PEER_LEASE_MS_MAX; /* and beats are as rare */
    server_up(THIRD, ROOM);
    up_with(ROOM, SOME);
    CHECK_EQ(raw_end(&c, large_put_begin(&c, &value, "alpha", SOME)), FKV_OK);
    look(NEXT);
    CHECK(seen.prepared == 1 && seen.committed == 0); /* it hears of the commit with the next message */
    raw_hang_up(&c);
    server_dies(OWNER);
    server_leads(NEXT, 1 << NEXT | 1 << THIRD, 2);
    follow(NEXT, THIRD);
    UNTIL(THIRD, seen.prepared == 1);
    down_with();
    copies_lease_ms = COPY_LEASE_MS;
}

TEST(a_value_that_a_backup_has_no_room_for_is_refused) {
    up_with(8 << 20, 16 << 20);
    fkv_rendezvous v;
    fkv_request q = large_put(&c, &value, "alpha", 16 << 20, &v);
    CHECK_EQ(raw_ask(&c, &q, "alpha", &v, sizeof v, NULL), FKV_TABLE_FULL);
    CHECK_EQ(raw_put(&c, "alpha", "one", 3), FKV_OK);
    raw_expect(&c, "alpha", "one");
    q = large_put(&c, &value, "alpha", 1 << 20, &v);
    CHECK_EQ(raw_ask(&c, &q, "alpha", &v, sizeof v, NULL), FKV_OK);
    expect_value("alpha", 1 << 20);
    down_with();
}

/* The request fits a message, and what comes of it does not. */
TEST(a_large_value_that_was_appended_to_and_touched_comes_to_the_next_owner) {
    fkv_reply reply, got;
    up_with(ROOM, SOME);
    CHECK_EQ(raw_end(&c, large_put_begin(&c, &value, "alpha", SOME)), FKV_OK);
    fkv_request tail = raw_request(&c, FKV_OP_APPEND, "alpha"), ends = raw_request(&c, FKV_OP_TOUCH, "alpha");
    tail.value_bytes = 3;
    ends.expiry = 3600000;
    CHECK_EQ(raw_ask(&c, &tail, "alpha", "end", 3, &reply), FKV_OK);
    CHECK_EQ(reply.expiry_ms, SOME + 3);
    CHECK_EQ(raw_ask(&c, &ends, "alpha", NULL, 0, NULL), FKV_OK);
    next_owner();
    tail.id = c.next_id++;
    tail.flags = FKV_REQUEST_RETRY;
    CHECK_EQ(raw_ask(&c, &tail, "alpha", "end", 3, &reply), FKV_OK);
    CHECK_EQ(reply.expiry_ms, SOME + 3);
    uint8_t *found = raw_get(&c, "alpha", &got);
    CHECK(found && got.value_bytes == SOME + 3 && got.expiry_ms > 0);
    CHECK(memcmp(found, value.region.base, SOME) == 0 && memcmp(found + SOME, "end", 3) == 0);
    free(found);
    down_with();
}

static void tests(void) {
    RUN(small_changes_do_not_wait_for_a_large_value);
    RUN(values_of_all_sizes_come_to_the_next_owner);
    RUN(a_value_whose_link_is_cut_is_pulled_again);
    RUN(bytes_that_changed_on_their_way_are_pulled_again);
    RUN(a_change_waits_for_the_extent_of_a_value_that_was_forgotten);
    RUN(a_value_waits_for_the_room_of_one_that_was_forgotten);
    RUN(a_copy_is_told_of_a_few_values_at_a_time);
    RUN(a_value_is_forgotten_when_its_owner_closes_the_shard);
    RUN(a_value_without_a_number_goes_with_its_owner);
    RUN(a_value_that_was_inherited_goes_to_the_other_copies);
    RUN(a_value_that_a_backup_has_no_room_for_is_refused);
    RUN(a_large_value_that_was_appended_to_and_touched_comes_to_the_next_owner);
    copies_configure = each_on_its_device;
    RUN(values_of_all_sizes_come_to_the_next_owner);
    copies_configure = NULL;
    if (copies_over != FAB_TCP || fab_encryption_missing(FAB_TCP)) return;
    copies_encrypted = true;
    RUN(values_of_all_sizes_come_to_the_next_owner);
    copies_encrypted = false;
}

int main(int argc, char **argv) { return rig_main(argc, argv, &copies_over, tests); }
