/* dataplane_transfer_test.c: large values: taken from the client's memory while small requests go on, given back in
 * pieces, and undone without a trace when their client goes. */
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <sched.h>
#include "large_values.h"

#ifdef __SANITIZE_THREAD__
enum { BIG = 4 << 20, MIDDLE = 2 << 20 }; /* each word that is copied costs it about a microsecond */
#else
enum { BIG = FKV_VALUE_MAX, MIDDLE = 32 << 20 };
#endif
static fab_provider provider;
static rig r;
static raw c;

static void up(void) {
    rig_init(&r, provider, NULL);
    r.config.wait_ms = 60000;
    rig_up(&r, RIG_SHARDS, 512 << 20);
    raw_up(&c, &r, 1);
}
static void down(void) {
    raw_down(&c);
    rig_down(&r);
}
static bool is_prepared(void) {
    uint64_t n = 0;
    dataplane_stats *s = rig_stats(&r);
    for (uint32_t i = 0; i < s->shards; i++) n += s->shard[i].table.prepared;
    free(s);
    return n != 0;
}
/* A large PUT may first wait for memory; what comes then is not behind it. */
static void wait_until_prepared(uint64_t id) {
    while (!is_prepared() && !is_here(&c, id)) raw_poll(&c);
}
static void expect_value(raw *from, const char *key, const memory *m, uint32_t bytes) {
    fkv_reply reply;
    uint8_t *v = raw_get(from, key, &reply);
    CHECK(v && reply.value_bytes == bytes && memcmp(v, m->region.base, bytes) == 0);
    free(v);
}

/* How many small PUTs are answered, one after the other, from when a large one is on its way to its end. */
static int puts_during_put(raw *small, const memory *m) {
    int n = 0;
    uint64_t id = large_put_begin(&c, m, "big", BIG);
    wait_until_prepared(id);
    while (raw_poll(&c), !is_here(&c, id)) {
        CHECK_EQ(raw_put(small, "small", "v", 1), FKV_OK);
        n++;
    }
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    return n;
}
/* How many small PUTs are answered while its value is sent back over the same connection, between its pieces. */
static int puts_during_get(void) {
    int n = 0;
    fkv_request q = raw_request(&c, FKV_OP_GET, "big");
    uint64_t id = raw_send(&c, &q, "big", NULL, 0);
    while (raw_poll(&c), !is_here(&c, id)) {
        CHECK_EQ(raw_put(&c, "small", "v", 1), FKV_OK);
        n++;
    }
    raw_drop_messages(&c);
    return n;
}

/* A busy machine may run this thread too late for one round, but not for all. */
TEST(small_requests_go_on_while_a_large_value_comes_and_goes) {
    memory m;
    raw small;
    int rounds = 0;
    up();
    memory_make(&m, &c, BIG, 1);
    raw_up(&small, &r, 2);
    do CHECK(++rounds <= 20);
    while (puts_during_put(&small, &m) <= 3);
    do CHECK(++rounds <= 20);
    while (puts_during_get() <= 3);
    expect_value(&small, "big", &m, BIG);
    dataplane_stats *s = rig_stats(&r);
    CHECK(s->worker[0].transfers >= 1);
    free(s);
    memory_free(&m);
    raw_down(&small);
    down();
}

TEST(what_is_asked_of_the_key_meanwhile_waits_for_the_value) {
    memory m, n;
    raw other;
    fkv_reply reply;
    up();
    memory_make(&m, &c, MIDDLE, 1);
    raw_up(&other, &r, 2);
    memory_make(&n, &other, 1 << 20, 2);
    for (int round = 0; round < 3; round++) {
        char key[16];
        snprintf(key, sizeof key, "key-%d", round);
        uint64_t put = large_put_begin(&c, &m, key, MIDDLE);
        wait_until_prepared(put);
        fkv_request q = raw_request(&c, FKV_OP_CAS, key); /* to an absent key: it is absent no more */
        uint64_t late = raw_send(&c, &q, key, NULL, 0);
        q = raw_request(&c, FKV_OP_GET, key);
        uint64_t get = raw_send(&c, &q, key, NULL, 0);
        raw_message *ended = raw_receive(&c, put);
        CHECK_EQ(ended->reply.status, FKV_OK);
        raw_message *lost = raw_receive(&c, late);
        CHECK_EQ(lost->reply.status, FKV_VERSION_MISMATCH);
        CHECK_EQ(lost->reply.version, ended->reply.version);
        bool more = true;
        while (more) {
            raw_message *piece = raw_receive(&c, get);
            CHECK_EQ(piece->reply.status, FKV_OK);
            CHECK_EQ(piece->reply.version, ended->reply.version);
            more = piece->reply.flags & FKV_REPLY_MORE;
            free(piece);
        }
        free(ended);
        free(lost);
        /* Overwritten by another large one, then deleted, all at once. */
        uint64_t again = large_put_begin(&other, &n, key, 1 << 20);
        q = raw_request(&other, FKV_OP_DELETE, key);
        uint64_t gone = raw_send(&other, &q, key, NULL, 0);
        CHECK_EQ(raw_end(&other, again), FKV_OK);
        CHECK_EQ(raw_end(&other, gone), FKV_OK);
        CHECK(raw_get(&c, key, &reply) == NULL);
    }
    memory_free(&m);
    memory_free(&n);
    raw_down(&other);
    down();
}

TEST(a_retry_of_a_large_value_under_way_is_answered_with_it) {
    memory m;
    raw again;
    up();
    raw_up(&again, &r, 1); /* a second connection of the same client */
    memory_make(&m, &c, BIG, 3);
    fkv_rendezvous v;
    fkv_request q = large_put(&c, &m, "big", BIG, &v);
    raw_send(&c, &q, "big", &v, sizeof v);
    /* The same memory, as the second connection's end knows it. Whichever comes first is the one that is made. */
    memory same = { .region = m.region };
    CHECK_EQ(fab_reg(again.domain, &same.region, 0, &same.mr), 0);
    fkv_request retry = q;
    retry.flags |= FKV_REQUEST_RETRY;
    retry.id = 77;
    v = (fkv_rendezvous){ fab_mr_rkey(same.mr), fab_mr_addr(same.mr), fab_mr_addr(same.mr), same.region.bytes };
    raw_send(&again, &retry, "big", &v, sizeof v);
    raw_message *a = raw_receive(&c, q.id), *b = raw_receive(&again, 77);
    CHECK(a->reply.status == FKV_OK && b->reply.status == FKV_OK);
    CHECK_EQ(a->reply.version, b->reply.version);
    free(a);
    free(b);
    dataplane_stats *s = rig_stats(&r);
    CHECK_EQ(s->worker[0].transfers, 1);
    CHECK_EQ(s->worker[0].duplicates, 1);
    free(s);
    fab_dereg(same.mr);
    memory_free(&m);
    raw_down(&again);
    down();
}

TEST(memory_that_is_not_the_clients_is_not_read) {
    memory m;
    raw other;
    up();
    memory_make(&m, &c, 1 << 20, 4);
    fkv_rendezvous v;
    fkv_request q = large_put(&c, &m, "k", 1 << 20, &v);
    v.rkey ^= 0x5555;
    uint64_t id = raw_send(&c, &q, "k", &v, sizeof v);
    /* A failed READ is the end of a connection; a region that cannot be attached is not. */
    while (raw_poll(&c), !is_here(&c, id) && !c.gone) {}
    if (is_here(&c, id)) CHECK_EQ(raw_end(&c, id), FKV_REMOTE_ACCESS);
    raw_up(&other, &r, 2);
    CHECK_EQ(raw_put(&other, "k", "free", 4), FKV_OK);
    raw_expect(&other, "k", "free");
    memory_free(&m);
    raw_down(&other);
    down();
}

TEST(a_cancelled_large_value_is_answered_so_that_its_memory_is_free_again) {
    memory m;
    up();
    memory_make(&m, &c, BIG, 5);
    fkv_status s = FKV_OK;
    /* it may have been faster than the cancellation, but not always */
    for (int round = 0; s != FKV_ABORTED; round++) {
        CHECK(round < 20);
        uint64_t id = large_put_begin(&c, &m, "k", BIG);
        wait_until_prepared(id);
        fkv_request cancel = { .op = FKV_OP_CANCEL, .expected = id };
        raw_send(&c, &cancel, "", NULL, 0);
        s = raw_end(&c, id);
        CHECK(s == FKV_ABORTED || s == FKV_OK);
        fkv_reply reply;
        uint8_t *v = raw_get(&c, "k", &reply);
        CHECK((v != NULL) == (s == FKV_OK));
        free(v);
        fkv_request q = raw_request(&c, FKV_OP_DELETE, "k");
        CHECK_EQ(raw_ask(&c, &q, "k", NULL, 0, NULL), s == FKV_OK ? FKV_OK : FKV_NOT_FOUND);
    }
    memory_free(&m);
    down();
}

TEST(large_values_share_their_room_and_wait_for_it) {
    memory m[3];
    raw client[3];
    uint64_t id[3];
    rig_init(&r, provider, NULL);
    r.config.transfer_bytes = FKV_VALUE_MAX; /* not all at once */
    r.config.wait_ms = 60000;
    rig_up(&r, RIG_SHARDS, 512 << 20);
    for (int i = 0; i < 3; i++) {
        raw_up(&client[i], &r, (uint64_t)i + 1);
        memory_make(&m[i], &client[i], MIDDLE, (uint32_t)i);
    }
    for (int i = 0; i < 3; i++) id[i] = large_put_begin(&client[i], &m[i], i == 0 ? "a" : i == 1 ? "b" : "c", MIDDLE);
    for (bool all = false; !all; sched_yield()) { /* a client that is not polled does not answer READs over tcp */
        all = true;
        for (int i = 0; i < 3; i++) {
            raw_poll(&client[i]);
            all = is_here(&client[i], id[i]) && all;
        }
    }
    for (int i = 0; i < 3; i++) CHECK_EQ(raw_end(&client[i], id[i]), FKV_OK);
    expect_value(&client[0], "c", &m[2], MIDDLE);
    for (int i = 0; i < 3; i++) {
        memory_free(&m[i]);
        raw_down(&client[i]);
    }
    rig_down(&r);
}

TEST(pieces_of_a_value_that_was_replaced_long_ago_are_not_sent) {
    enum { BYTES = 4 << 20 };
    memory m;
    raw other;
    rig_init(&r, provider, NULL);
    r.config.quarantine_ns = 20000000;
    r.config.stall_ms = 60000;
    rig_up(&r, RIG_SHARDS, 64 << 20);
    raw_up(&c, &r, 1);
    raw_up(&other, &r, 2);
    memory_make(&m, &other, BYTES, 6);
    CHECK_EQ(raw_end(&other, large_put_begin(&other, &m, "k", BYTES)), FKV_OK);
    c.keep = true; /* takes some pieces and gives no more credits */
    fkv_request q = raw_request(&c, FKV_OP_GET, "k");
    raw_message *first = raw_receive(&c, raw_send(&c, &q, "k", NULL, 0));
    CHECK(first->reply.flags & FKV_REPLY_MORE);
    free(first);
    CHECK_EQ(raw_put(&other, "k", "new", 3), FKV_OK);
    /* Its extent leaves quarantine, and may be another value's. */
    for (bool quarantined = true; quarantined;) {
        dataplane_stats *s = rig_stats(&r);
        quarantined = false;
        for (uint32_t i = 0; i < s->shards; i++) quarantined |= s->shard[i].table.quarantine_bytes != 0;
        free(s);
    }
    raw_poll(&c);
    raw_release_kept(&c);
    raw_message *last = raw_receive(&c, q.id);
    while (last->reply.flags & FKV_REPLY_MORE) {
        free(last);
        last = raw_receive(&c, q.id);
    }
    CHECK_EQ(last->reply.status, FKV_BUSY);
    free(last);
    memory_free(&m);
    raw_down(&other);
    down();
}

TEST(closing_a_shard_ends_what_is_on_its_way_into_it) {
    memory m;
    up();
    memory_make(&m, &c, BIG, 7);
    uint32_t shard = raw_shard_of(0, "k", 1);
    fkv_status s = FKV_OK;
    /* it may have been faster than the command, but not always */
    for (int round = 0; s != FKV_SHARD_CLOSED; round++) {
        rig_call closing;
        CHECK(round < 20);
        uint64_t id = large_put_begin(&c, &m, "k", BIG);
        wait_until_prepared(id);
        rig_call_init(&closing);
        dataplane_close_shard(r.d, shard, rig_done, &closing);
        s = raw_end(&c, id);
        CHECK(s == FKV_SHARD_CLOSED || s == FKV_OK);
        CHECK_EQ(rig_wait(&closing), FKV_OK);
        CHECK_EQ(rig_open_shard(&r, shard, 0, 512 << 20, NULL), FKV_OK);
        rig_serve(&r, shard);
    }
    memory_free(&m);
    down();
}

/* Over sim: READs that come torn, out of order, late, refused, reported twice, or not at all. */
TEST(values_arrive_whole_or_not_at_all_whatever_the_fabric_does) {
    enum { BYTES = 3 << 20, ROUNDS = 40 };
    memory m;
    int arrived = 0;
    up();
    memory_make(&m, &c, BYTES, 9);
    uint64_t trouble = check_seed();
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t kind = (uint32_t)(trouble >> round % 56) & 7, one = 150000;
        sim_faults f = { .delay_min_ns = 1000,
                         .delay_max_ns = 50000,
                         .reorder = one * 3,
                         .overtake = one * 3,
                         .tear = one,
                         .tear_span_ns = 2000,
                         .duplicate_error = SIM_ALWAYS };
        if (kind == 1) f.access_error = one;
        if (kind == 2) f.flush_error = one;
        if (kind == 3) f.break_conn = one;
        sim_set_faults(r.sim, &f);
        uint64_t id = large_put_begin(&c, &m, "k", BYTES);
        while (raw_poll(&c), !is_here(&c, id) && !c.gone) {}
        sim_set_faults(r.sim, &(sim_faults){ .delay_min_ns = 1000, .delay_max_ns = 3000 });
        if (is_here(&c, id)) arrived += raw_end(&c, id) == FKV_OK;
        if (c.gone) {
            fkv_pass h = raw_pass(1, FKV_TICKET_READ | FKV_TICKET_WRITE);
            raw_hang_up(&c);
            CHECK_EQ(raw_connect(&c, 0, &h), FKV_OK);
        }
        fkv_reply reply;
        uint8_t *v = raw_get(&c, "k", &reply);
        CHECK(v ? reply.value_bytes == BYTES && memcmp(v, m.region.base, BYTES) == 0 : reply.status == FKV_NOT_FOUND);
        free(v);
        fkv_request q = raw_request(&c, FKV_OP_DELETE, "k");
        CHECK_EQ(raw_ask(&c, &q, "k", NULL, 0, NULL), v ? FKV_OK : FKV_NOT_FOUND);
    }
    CHECK(arrived > 0);
    while (is_prepared()) {}
    memory_free(&m);
    down();
}

/* ---- a client that is killed ---- */

/* The child: connects to argv[3], names its memory in a PUT, says so, and waits to be killed. */
_Noreturn static void child(char **argv) {
    static rig owner;
    static raw self;
    memory m;
    owner.provider = (fab_provider)atoi(argv[2]);
    raw_open(&self, &owner);
    fkv_pass h = raw_pass(99, FKV_TICKET_READ | FKV_TICKET_WRITE);
    CHECK_EQ(raw_connect_to(&self, argv[3], &h), FKV_OK);
    memory_make(&m, &self, MIDDLE, 8);
    large_put_begin(&self, &m, "k", MIDDLE);
    CHECK_EQ(write(1, "x", 1), 1);
    for (;;) pause();
}

TEST(a_client_killed_while_its_value_is_read_leaves_nothing_behind) {
    extern char **environ;
    char number[8], text[1], *argv[] = { "dataplane_transfer", "child", number, NULL, NULL };
    up();
    snprintf(number, sizeof number, "%d", (int)provider);
    argv[3] = (char *)(uintptr_t)dataplane_address(r.d, 0);
    for (int round = 0; round < 4; round++) {
        int said[2];
        pid_t pid;
        CHECK_EQ(pipe(said), 0);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, said[1], 1);
        CHECK_EQ(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ), 0);
        posix_spawn_file_actions_destroy(&actions);
        close(said[1]);
        CHECK_EQ(read(said[0], text, 1), 1);
        close(said[0]);
        if (round % 2) CHECK_EQ(raw_put(&c, "other", "v", 1), FKV_OK); /* a little later */
        kill(pid, SIGKILL);
        CHECK_EQ(waitpid(pid, NULL, 0), pid);
        for (bool left = true; left;) {
            dataplane_stats *s = rig_stats(&r);
            left = s->worker[0].clients != 1 || is_prepared();
            free(s);
        }
        fkv_reply reply;
        uint8_t *v = raw_get(&c, "k", &reply);
        CHECK(v ? reply.value_bytes == MIDDLE : reply.status == FKV_NOT_FOUND);
        free(v);
        CHECK_EQ(raw_put(&c, "k", "mine", 4), FKV_OK);
        fkv_request q = raw_request(&c, FKV_OP_DELETE, "k");
        CHECK_EQ(raw_ask(&c, &q, "k", NULL, 0, NULL), FKV_OK);
    }
    down();
}

static void tests(void) {
    RUN(small_requests_go_on_while_a_large_value_comes_and_goes);
    RUN(what_is_asked_of_the_key_meanwhile_waits_for_the_value);
    RUN(a_retry_of_a_large_value_under_way_is_answered_with_it);
    RUN(memory_that_is_not_the_clients_is_not_read);
    RUN(a_cancelled_large_value_is_answered_so_that_its_memory_is_free_again);
    RUN(large_values_share_their_room_and_wait_for_it);
    RUN(pieces_of_a_value_that_was_replaced_long_ago_are_not_sent);
    RUN(closing_a_shard_ends_what_is_on_its_way_into_it);
    if (provider != FAB_SIM)
        RUN(a_client_killed_while_its_value_is_read_leaves_nothing_behind);
    else
        RUN(values_arrive_whole_or_not_at_all_whatever_the_fabric_does);
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "child") == 0) child(argv);
    return rig_main(argc, argv, &provider, tests);
}
