/* dataplane_replicate_test.c: changes of a shard whose backups have to have them first. The backups are the test's: it
 * acknowledges for them, on the worker's thread, as a link to one will. */
#include "../../dataplane/op.h"
#include "../../replication/replicate.h"
#include "large_values.h"
#include "worker_visit.h"

static fab_provider provider;
static rig r;
static raw c;
static uint32_t number; /* of the shard of "alpha" */
enum { BACKUP = 7, SHARD_BYTES = 16 << 20 };

/* ---- on the worker's thread ---- */

typedef struct visit {
    void (*at)(shard *s, uint64_t n);
    uint64_t n;
} visit;
static void visited(worker *w, void *ctx) {
    const visit *v = ctx;
    v->at(w->by_number[number], v->n);
}
static void on_worker(void (*at)(shard *s, uint64_t n), uint64_t n) { rig_visit(&r, visited, &(visit){ at, n }); }

static uint64_t seen_last;
static bool seen_entry;
static uint32_t seen_held;
static dataplane_slow told, seen_told; /* `told` is the worker's: the client's ring orders no threads */
static void require(shard *s, uint64_t until_ns) {
    CHECK(replica_join(&s->repl.owner, BACKUP));
    CHECK(replicate_acked(s, BACKUP, &(replica_ack){ s->epoch, 0 }, until_ns));
    CHECK(replica_require(&s->repl.owner, BACKUP, 0));
    replicate_changed(s);
}
static void acknowledge(shard *s, uint64_t lsn) {
    CHECK(replicate_acked(s, BACKUP, &(replica_ack){ s->epoch, lsn }, 0));
}
static void lend(shard *s, uint64_t until_ns) { s->repl.owner.peer[0].lease_ns = until_ns; }
static void let_go(shard *s, uint64_t config) {
    replica_configure(&s->repl.owner,
                      &(replica_config){ .epoch = s->epoch, .config = (uint32_t)config, .min_in_sync = 1 });
    for (int i = 0; i < REPLICA_PEERS; i++) s->repl.owner.peer[i] = (replica_peer){ 0 };
    replicate_changed(s);
}
static void look(shard *s, uint64_t unused) {
    (void)unused;
    table_entry e;
    uint64_t hash = fkv_hash_key(&RIG_SEED, 0, "alpha", 5);
    seen_last = s->repl.owner.last;
    seen_held = s->held;
    seen_told = told;
    seen_entry = table_committed(s->table, 0, "alpha", 5, hash, &e) == FKV_OK;
}
static void wait_until_drawn(uint64_t lsn) {
    for (seen_last = 0; seen_last < lsn;) on_worker(look, 0);
    CHECK_EQ(seen_last, lsn);
}

static void set_wait(shard *s, uint64_t wait_ms) { s->w->d->c.wait_ms = (uint32_t)wait_ms; }

static uint64_t slow_ns; /* dataplane_config's, of the next data plane */
static void on_slow(void *ctx, const dataplane_slow *s) {
    (void)ctx;
    if (s->op == FKV_OP_PUT) told = *s;
}

static void up(void) {
    rig_init(&r, provider, NULL);
    r.config.client_quota = 8192;
    r.config.wait_ms = RIG_WAIT_MS;
    r.config.on_slow = on_slow;
    r.config.slow_ns = slow_ns;
    number = raw_shard_of(0, "alpha", 5);
    rig_up(&r, RIG_SHARDS, SHARD_BYTES);
    raw_up(&c, &r, 1);
    on_worker(require, UINT64_MAX);
}
static void down(void) {
    raw_down(&c);
    rig_down(&r);
}

/* The i-th key of the shard of "alpha". */
static const char *key_at(uint32_t i) {
    static char key[32];
    for (uint32_t n = i * 1000, found = UINT32_MAX; found == UINT32_MAX; n++) {
        snprintf(key, sizeof key, "key-%u", n);
        if (raw_shard_of(0, key, strlen(key)) == number) found = n;
    }
    return key;
}

/* ---- */

TEST(a_change_is_neither_seen_nor_answered_before_the_backup_has_it) {
    up();
    uint64_t id = raw_put_begin(&c, "alpha", "one", 3);
    wait_until_drawn(1);
    CHECK(!seen_entry && seen_held == 1);
    on_worker(acknowledge, 1);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    on_worker(look, 0);
    CHECK(seen_entry && seen_held == 0);
    raw_expect(&c, "alpha", "one");
    /* Its removal, too: the key is in the table's memory. */
    fkv_request q = raw_request(&c, FKV_OP_DELETE, "alpha");
    id = raw_send(&c, &q, "alpha", NULL, 0);
    wait_until_drawn(2);
    CHECK(seen_entry);
    on_worker(acknowledge, 2);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    on_worker(look, 0);
    CHECK(!seen_entry);
    down();
}

TEST(changes_take_effect_in_the_order_of_their_records) {
    up();
    uint64_t id[3];
    for (uint32_t i = 0; i < 3; i++) id[i] = raw_put_begin(&c, key_at(i), "v", 1);
    wait_until_drawn(3);
    on_worker(acknowledge, 2);
    CHECK_EQ(raw_end(&c, id[0]), FKV_OK);
    CHECK_EQ(raw_end(&c, id[1]), FKV_OK);
    on_worker(look, 0);
    CHECK_EQ(seen_held, 1);
    on_worker(let_go, 1); /* nobody has to have the third any more */
    CHECK_EQ(raw_end(&c, id[2]), FKV_OK);
    CHECK_EQ(raw_put(&c, "alpha", "one", 3), FKV_OK);
    on_worker(look, 0);
    CHECK_EQ(seen_last, 4);
    down();
}

/* Where the owner keeps messages the connection takes no more, for good. */
static uint64_t put_in_time(const char *key, const void *value, uint32_t bytes) {
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    fkv_request q = raw_request(&c, FKV_OP_PUT, key);
    q.value_bytes = bytes;
    for (int e; (e = raw_try(&c, &q, key, value, bytes)) != 0; raw_poll(&c))
        CHECK(e == -EAGAIN && fkv_now_ns() < until);
    return q.id;
}
/* What waits for a backup has given its message back: else the connection would have no credits, or no room in its
 * rings, for a read of another shard. */
TEST(what_waits_for_a_backup_does_not_stop_its_client) {
    enum { N = 600, BYTES = 3000 };
    static uint8_t value[BYTES];
    up();
    static uint64_t id[N];
    for (uint32_t i = 0; i < N; i++) id[i] = put_in_time(key_at(i), value, BYTES);
    wait_until_drawn(N);
    const char *other = "beta";
    CHECK(raw_shard_of(0, other, 4) != number);
    CHECK_EQ(raw_put(&c, other, "two", 3), FKV_OK);
    raw_expect(&c, other, "two");
    on_worker(acknowledge, N);
    for (uint32_t i = 0; i < N; i++) CHECK_EQ(raw_end(&c, id[i]), FKV_OK);
    down();
}

TEST(a_retry_of_what_waits_is_answered_with_it) {
    up();
    fkv_request q = raw_request(&c, FKV_OP_PUT, "alpha");
    q.value_bytes = 3;
    uint64_t first = raw_send(&c, &q, "alpha", "one", 3);
    wait_until_drawn(1);
    q.id = c.next_id++;
    q.flags = FKV_REQUEST_RETRY;
    uint64_t second = raw_send(&c, &q, "alpha", "one", 3);
    raw_put(&c, "beta", "two", 3); /* the retry has come */
    on_worker(acknowledge, 1);
    CHECK_EQ(raw_end(&c, first), FKV_OK);
    CHECK_EQ(raw_end(&c, second), FKV_OK);
    on_worker(look, 0);
    CHECK_EQ(seen_last, 1);
    down();
}

TEST(what_a_backup_may_have_is_undecided_when_the_shard_is_closed) {
    up();
    uint64_t id = raw_put_begin(&c, "alpha", "one", 3);
    wait_until_drawn(1);
    uint64_t behind = raw_put_begin(&c, "alpha", "two", 3); /* it waits for the key: no backup has it */
    raw_put(&c, "beta", "two", 3);
    rig_close(&r, number);
    CHECK_EQ(raw_end(&c, id), FKV_UNDECIDED);
    CHECK_EQ(raw_end(&c, behind), FKV_SHARD_CLOSED);
    down();
}

TEST(the_change_of_a_client_that_is_gone_goes_on_and_a_data_plane_stops_with_it) {
    up();
    raw_put_begin(&c, "alpha", "one", 3);
    wait_until_drawn(1);
    raw_down(&c);
    raw_up(&c, &r, 2);
    on_worker(acknowledge, 1);
    raw_expect(&c, "alpha", "one");
    raw_put_begin(&c, "alpha", "two", 3);
    wait_until_drawn(2);
    down();
}

/* The owner is relied on no longer than its backup lets it. What the backup has is made and answered however late. */
TEST(an_owner_answers_and_grants_no_longer_than_its_backup_lets_it) {
    enum { LET_NS = 150000000 };
    up();
    uint64_t id = raw_put_begin(&c, "alpha", "one", 3);
    wait_until_drawn(1);
    uint64_t begun = fkv_now_ns(), until = begun + LET_NS;
    on_worker(lend, until);
    fkv_request q = { .op = FKV_OP_LEASE, .id = c.next_id++ };
    uint64_t lease = raw_send(&c, &q, NULL, NULL, 0);
    bool more = true, listed = false;
    while (more) {
        raw_message *m = raw_receive(&c, lease);
        more = m->reply.flags & FKV_REPLY_MORE;
        const fkv_lease_shard *list = (const void *)m->body;
        for (uint32_t i = 0; i < m->bytes / sizeof *list; i++) {
            if (list[i].shard != number) continue;
            listed = true;
            CHECK(m->reply.expiry_ms <= until - begun);
        }
        free(m);
    }
    CHECK(listed || fkv_now_ns() >= until);
    while (fkv_now_ns() < until) raw_poll(&c);
    fkv_reply reply;
    q = raw_request(&c, FKV_OP_GET, key_at(1));
    CHECK_EQ(raw_ask(&c, &q, key_at(1), NULL, 0, &reply), FKV_SHARD_CLOSED);
    CHECK_EQ(raw_put(&c, key_at(1), "two", 3), FKV_SHARD_CLOSED);
    on_worker(acknowledge, 1);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    CHECK_EQ(raw_put(&c, "beta", "two", 3), FKV_OK); /* of another shard */
    down();
}

static raw filler[REPLICA_WINDOW / FKV_DEDUP_WINDOW]; /* as many as one client may have under way */
static uint64_t filling[REPLICA_WINDOW];
static void fill_window(void) {
    for (uint32_t i = 0; i < REPLICA_WINDOW; i++) {
        raw *f = &filler[i / FKV_DEDUP_WINDOW];
        if (i % FKV_DEDUP_WINDOW == 0) raw_up(f, &r, 10 + i);
        filling[i] = raw_put_begin(f, key_at(i), "v", 1);
    }
    wait_until_drawn(REPLICA_WINDOW);
}
static void empty_window(void) {
    for (uint32_t i = 0; i < REPLICA_WINDOW; i++) {
        raw *f = &filler[i / FKV_DEDUP_WINDOW];
        CHECK_EQ(raw_end(f, filling[i]), FKV_OK);
        if ((i + 1) % FKV_DEDUP_WINDOW == 0) raw_down(f);
    }
}

TEST(a_change_waits_while_the_window_is_full) {
    up();
    fill_window();
    uint64_t waits = raw_put_begin(&c, "alpha", "one", 3);
    raw_put(&c, "beta", "two", 3); /* it has come */
    on_worker(look, 0);
    CHECK_EQ(seen_last, REPLICA_WINDOW);
    on_worker(acknowledge, 1);
    wait_until_drawn(REPLICA_WINDOW + 1);
    on_worker(acknowledge, REPLICA_WINDOW + 1);
    CHECK_EQ(raw_end(&c, waits), FKV_OK);
    empty_window();
    down();
}

static bool seen_bulk;
static void look_for_bulk(shard *s, uint64_t unused) {
    (void)unused;
    seen_bulk = !list_empty(&s->repl.bulks);
}
/* The backup has the value of a change without a number. */
static void pulled(shard *s, uint64_t unused) {
    (void)unused;
    LIST_OF(s->repl.bulks.next, op, link)->pulled = UINT8_MAX;
}
TEST(a_large_value_takes_room_in_the_window_before_small_changes) {
    enum { LARGE = 64 << 10 };
    memory value;
    up();
    memory_make(&value, &c, LARGE, 7);
    uint64_t large = large_put_begin(&c, &value, "alpha", LARGE);
    for (seen_bulk = false; !seen_bulk; raw_poll(&c)) on_worker(look_for_bulk, 0);
    fill_window();
    on_worker(pulled, 0);
    on_worker(acknowledge, REPLICA_WINDOW);
    on_worker(look, 0);
    CHECK_EQ(seen_last, REPLICA_WINDOW + 1);
    on_worker(acknowledge, REPLICA_WINDOW + 1);
    CHECK_EQ(raw_end(&c, large), FKV_OK);
    empty_window();
    memory_free(&value);
    down();
}

TEST(a_change_does_not_wait_for_ever_while_the_window_is_full) {
    up();
    fill_window();
    on_worker(set_wait, 20);
    CHECK_EQ(raw_put(&c, "alpha", "one", 3), FKV_BUSY);
    on_worker(acknowledge, REPLICA_WINDOW);
    empty_window();
    down();
}

/* What was told of a change that has been answered. */
static const dataplane_slow *told_of_last(void) {
    on_worker(look, 0);
    CHECK_EQ(seen_told.client, 1);
    CHECK(seen_told.ns >= seen_told.queued_ns + seen_told.held_ns);
    return &seen_told;
}

TEST(a_request_that_is_told_says_for_whom_it_waited) {
    slow_ns = 1;
    up();
    uint64_t id = raw_put_begin(&c, "alpha", "one", 3);
    wait_until_drawn(1);
    on_worker(acknowledge, 1);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    CHECK_EQ(told_of_last()->last, BACKUP);
    CHECK(seen_told.held_ns > 0);
    id = raw_put_begin(&c, "alpha", "two", 3);
    wait_until_drawn(2);
    on_worker(let_go, 2);
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    CHECK_EQ(told_of_last()->last, DATAPLANE_LAST_CONFIG);
    CHECK(seen_told.held_ns > 0);
    CHECK_EQ(raw_put(&c, "alpha", "six", 3), FKV_OK);
    CHECK_EQ(told_of_last()->last, DATAPLANE_LAST_NONE);
    CHECK(seen_told.ns > 0 && seen_told.queued_ns == 0 && seen_told.held_ns == 0);
    down();
    slow_ns = 0;
}

static void tests(void) {
    RUN(a_change_is_neither_seen_nor_answered_before_the_backup_has_it);
    RUN(changes_take_effect_in_the_order_of_their_records);
    RUN(what_waits_for_a_backup_does_not_stop_its_client);
    RUN(a_retry_of_what_waits_is_answered_with_it);
    RUN(what_a_backup_may_have_is_undecided_when_the_shard_is_closed);
    RUN(the_change_of_a_client_that_is_gone_goes_on_and_a_data_plane_stops_with_it);
    RUN(an_owner_answers_and_grants_no_longer_than_its_backup_lets_it);
    RUN(a_change_waits_while_the_window_is_full);
    RUN(a_large_value_takes_room_in_the_window_before_small_changes);
    RUN(a_change_does_not_wait_for_ever_while_the_window_is_full);
    RUN(a_request_that_is_told_says_for_whom_it_waited);
}

int main(int argc, char **argv) { return rig_main(argc, argv, &provider, tests); }
