/* dataplane_shard_test.c: shards are opened, served, leased and closed; their layout is what readers are told. */
#include "raw_client.h"
#include "worker_visit.h"

static fab_provider provider;
static rig r;
static raw c;

static void up(uint64_t memory) {
    rig_init(&r, provider, NULL);
    rig_up(&r, RIG_SHARDS, memory);
    raw_up(&c, &r, 1);
}
static void down(void) {
    raw_down(&c);
    rig_down(&r);
}
static fkv_status get_status(const char *key) {
    fkv_reply reply;
    free(raw_get(&c, key, &reply));
    return (fkv_status)reply.status;
}

TEST(a_shard_answers_only_while_it_is_served_here) {
    rig_init(&r, provider, NULL);
    rig_start(&r);
    raw_up(&c, &r, 1);
    const char *key = "k";
    uint32_t shard = raw_shard_of(0, key, 1);
    CHECK_EQ(raw_put(&c, key, "v", 1), FKV_NOT_OWNER);
    CHECK_EQ(get_status(key), FKV_NOT_OWNER);
    CHECK_EQ(rig_open_shard(&r, shard, 0, TABLE_MEMORY_MIN, NULL), FKV_OK);
    CHECK_EQ(raw_put(&c, key, "v", 1), FKV_SHARD_CLOSED);
    CHECK_EQ(get_status(key), FKV_SHARD_CLOSED);
    rig_serve(&r, shard);
    CHECK_EQ(raw_put(&c, key, "v", 1), FKV_OK);
    fkv_request q = raw_request(&c, FKV_OP_GET, key);
    q.shard = (shard + 1) % RIG_SHARDS;
    CHECK_EQ(raw_ask(&c, &q, key, NULL, 0, NULL), FKV_NOT_OWNER);
    q.shard = RIG_SHARDS;
    CHECK_EQ(raw_ask(&c, &q, key, NULL, 0, NULL), FKV_BAD_REQUEST);
    CHECK_EQ(rig_open_shard(&r, (shard + 1) % RIG_SHARDS, 0, TABLE_MEMORY_MIN, NULL), FKV_OK);
    rig_serve(&r, (shard + 1) % RIG_SHARDS);
    q.shard = (shard + 1) % RIG_SHARDS; /* served, but not this key's */
    CHECK_EQ(raw_ask(&c, &q, key, NULL, 0, NULL), FKV_BAD_REQUEST);
    rig_close(&r, shard);
    CHECK_EQ(raw_put(&c, key, "v", 1), FKV_NOT_OWNER);
    CHECK_EQ(rig_open_shard(&r, shard, 0, TABLE_MEMORY_MIN, NULL), FKV_OK);
    rig_serve(&r, shard);
    CHECK_EQ(get_status(key), FKV_NOT_FOUND);
    down();
}

static dataplane_slow told;
static uint32_t told_count;
static void on_slow(void *ctx, const dataplane_slow *s) {
    (void)ctx;
    told = *s;
    told_count++;
}
/* What its worker has told until now, which it alone reads: the client's ring orders no threads. */
static dataplane_slow heard;
static uint32_t heard_count;
static void hear(worker *w, void *ctx) {
    (void)w;
    (void)ctx;
    heard = told;
    heard_count = told_count;
}
static void settle(void) { rig_visit(&r, hear, NULL); }

TEST(a_request_that_is_refused_is_told_with_its_own_key) {
    rig_init(&r, provider, NULL);
    r.config.on_slow = on_slow;
    r.config.slow_ns = 1;
    rig_start(&r);
    raw_up(&c, &r, 1);
    uint64_t hash = fkv_hash_key(&RIG_SEED, 0, "k", 1), other = fkv_hash_key(&RIG_SEED, 0, "other", 5);
    CHECK_EQ(raw_put(&c, "other", "v", 1), FKV_NOT_OWNER);
    settle();
    CHECK(heard.hash == other && heard.status == FKV_NOT_OWNER);
    CHECK_EQ(rig_open_shard(&r, raw_shard_of(0, "k", 1), 0, TABLE_MEMORY_MIN, NULL), FKV_OK);
    CHECK_EQ(raw_put(&c, "k", "v", 1), FKV_SHARD_CLOSED);
    settle();
    CHECK(heard.hash == hash && heard.status == FKV_SHARD_CLOSED && heard.op == FKV_OP_PUT);
    /* Of one that makes no sense no key was read. */
    fkv_request q = raw_request(&c, FKV_OP_PUT, "k");
    q.sequence = 0;
    CHECK_EQ(raw_ask(&c, &q, "k", NULL, 0, NULL), FKV_BAD_REQUEST);
    settle();
    CHECK(heard.hash == 0 && heard.status == FKV_BAD_REQUEST);
    /* And what is of no kind is not told. */
    uint32_t before = heard_count;
    q = raw_request(&c, FKV_OP_GET, "k");
    q.op = UINT8_MAX;
    CHECK_EQ(raw_ask(&c, &q, "k", NULL, 0, NULL), FKV_BAD_REQUEST);
    settle();
    CHECK_EQ(heard_count, before);
    down();
}

TEST(shards_are_opened_and_closed_once) {
    rig_init(&r, provider, NULL);
    rig_start(&r);
    CHECK_EQ(rig_open_shard(&r, 1, 0, TABLE_MEMORY_MIN, NULL), FKV_OK);
    CHECK_EQ(rig_open_shard(&r, 1, 0, TABLE_MEMORY_MIN, NULL), FKV_BUSY);
    CHECK_EQ(rig_open_shard(&r, RIG_SHARDS, 0, TABLE_MEMORY_MIN, NULL), FKV_BAD_REQUEST);
    CHECK_EQ(rig_open_shard(&r, 2, 1, TABLE_MEMORY_MIN, NULL), FKV_BAD_REQUEST);
    CHECK_EQ(rig_open_shard(&r, 2, 0, TABLE_MEMORY_MIN - 1, NULL), FKV_BAD_REQUEST);
    CHECK_EQ(rig_open_shard(&r, 2, 0, (uint64_t)1 << 60, NULL), FKV_OK); /* a limit, not an allocation */
    CHECK_EQ(rig_shard_call(&r, dataplane_serve_shard, 3), FKV_NOT_OWNER);
    CHECK_EQ(rig_shard_call(&r, dataplane_close_shard, 3), FKV_NOT_OWNER);
    CHECK_EQ(rig_shard_call(&r, dataplane_get_layout, 3), FKV_NOT_OWNER);
    rig_close(&r, 1);
    CHECK_EQ(rig_shard_call(&r, dataplane_close_shard, 1), FKV_NOT_OWNER);
    rig_down(&r);
}

static uint32_t lease(fkv_lease_shard *out, fkv_reply *reply) {
    fkv_request q = raw_request(&c, FKV_OP_LEASE, "");
    raw_message *m = raw_receive(&c, raw_send(&c, &q, "", NULL, 0));
    uint32_t n = m->bytes / (uint32_t)sizeof *out;
    CHECK(n <= RIG_SHARDS && !(m->reply.flags & FKV_REPLY_MORE));
    memcpy(out, m->body, m->bytes);
    *reply = m->reply;
    free(m);
    return n;
}

TEST(a_lease_covers_the_served_shards_by_their_incarnation) {
    fkv_lease_shard list[RIG_SHARDS];
    fkv_reply reply;
    rig_init(&r, provider, NULL);
    rig_up(&r, 2, TABLE_MEMORY_MIN);
    CHECK_EQ(rig_open_shard(&r, 3, 0, TABLE_MEMORY_MIN, NULL), FKV_OK);
    raw_up(&c, &r, 1);
    uint64_t before = fkv_wall_ms();
    CHECK_EQ(lease(list, &reply), 2);
    CHECK_EQ(reply.status, FKV_OK);
    CHECK_EQ(reply.expiry_ms, 200000000);
    CHECK(reply.version >= before && reply.version <= fkv_wall_ms());
    CHECK(list[0].shard == 0 && list[0].incarnation == 1000 && list[1].shard == 1 && list[1].incarnation == 1001);
    rig_serve(&r, 3);
    CHECK_EQ(lease(list, &reply), 3);
    CHECK_EQ(list[2].incarnation, 1003);
    down();
}

TEST(a_closing_shard_is_leased_no_more_and_closes_after_its_last_lease) {
    fkv_lease_shard list[RIG_SHARDS];
    fkv_reply reply;
    rig_call closing;
    up(TABLE_MEMORY_MIN);
    CHECK_EQ(lease(list, &reply), RIG_SHARDS);
    /* later than the client's request: so it is a lower bound with the grant added */
    uint64_t granted_until = fkv_now_ns();
    CHECK_EQ(lease(list, &reply), RIG_SHARDS);
    rig_call_init(&closing);
    dataplane_close_shard(r.d, 2, rig_done, &closing);
    /* Until then nothing more is granted for it and nothing is answered, and the others go on. */
    do CHECK_EQ(lease(list, &reply), RIG_SHARDS - 1);
    while (!rig_is_done(&closing));
    CHECK(fkv_now_ns() >= granted_until + reply.expiry_ms);
    CHECK_EQ(closing.status, FKV_OK);
    CHECK(list[0].shard == 0 && list[1].shard == 1 && list[2].shard == 3);
    down();
}

TEST(nothing_is_granted_or_acknowledged_beyond_the_owners_own_lease) {
    fkv_lease_shard list[RIG_SHARDS];
    fkv_reply reply;
    up(TABLE_MEMORY_MIN);
    CHECK_EQ(raw_put(&c, "k", "v", 1), FKV_OK);
    uint64_t end = fkv_now_ns() + 100000000;
    dataplane_set_grant_until(r.d, end);
    do {
        uint64_t asked = fkv_now_ns();
        lease(list, &reply);
        if (reply.status == FKV_OK) CHECK(asked + reply.expiry_ms <= end + (fkv_now_ns() - asked));
    } while (reply.status == FKV_OK);
    CHECK_EQ(reply.status, FKV_SHARD_CLOSED);
    CHECK(fkv_now_ns() >= end);
    CHECK_EQ(raw_put(&c, "k", "w", 1), FKV_SHARD_CLOSED);
    CHECK_EQ(get_status("k"), FKV_SHARD_CLOSED);
    dataplane_set_grant_until(r.d, UINT64_MAX);
    raw_expect(&c, "k", "v");
    down();
}

/* The owner's thread is paused between the beginning of its turn and its look at what has arrived: what comes in that
 * time comes after the end of its lease. A job of the thread stands for the pause: jobs run between the two. */
typedef struct stop {
    rig_call call;
    uint64_t get, miss, del, cas, scan;
} stop;
static void while_paused(void *ctx, fkv_status s, void *result) {
    stop *p = ctx;
    free(result);
    dataplane_set_grant_until(r.d, fkv_now_ns());
    fkv_request q = raw_request(&c, FKV_OP_GET, "k");
    p->get = raw_send(&c, &q, "k", NULL, 0);
    q = raw_request(&c, FKV_OP_GET, "none");
    p->miss = raw_send(&c, &q, "none", NULL, 0);
    q = raw_request(&c, FKV_OP_DELETE, "none");
    p->del = raw_send(&c, &q, "none", NULL, 0);
    q = raw_request(&c, FKV_OP_CAS_DELETE, "k");
    q.expected = 1;
    p->cas = raw_send(&c, &q, "k", NULL, 0);
    q = raw_request(&c, FKV_OP_SCAN, "k");
    q.key_bytes = 0;
    q.value_bytes = 10;
    p->scan = raw_send(&c, &q, NULL, NULL, 0);
    rig_done(&p->call, s, NULL);
}

TEST(what_arrives_while_the_owner_is_paused_past_its_lease_is_not_answered) {
    stop p;
    up(TABLE_MEMORY_MIN);
    CHECK_EQ(raw_put(&c, "k", "v", 1), FKV_OK);
    rig_call_init(&p.call);
    dataplane_get_stats(r.d, while_paused, &p);
    CHECK_EQ(rig_wait(&p.call), FKV_OK);
    uint64_t asked[] = { p.get, p.miss, p.del, p.cas, p.scan };
    for (int i = 0; i < 5; i++) {
        raw_message *m = raw_receive(&c, asked[i]);
        CHECK_EQ(m->reply.status, FKV_SHARD_CLOSED);
        free(m);
    }
    dataplane_set_grant_until(r.d, UINT64_MAX);
    raw_expect(&c, "k", "v");
    down();
}

static uint32_t layouts; /* atomic */
static void count_layout(void *ctx, uint32_t shard, uint32_t epoch) {
    (void)ctx, (void)shard, (void)epoch;
    __atomic_add_fetch(&layouts, 1, __ATOMIC_RELAXED);
}

static fkv_layout layout_of(uint32_t shard, fkv_layout_segment *out, uint32_t room) {
    fkv_request q = raw_request(&c, FKV_OP_LAYOUT, "");
    fkv_layout l;
    uint32_t at = 0;
    q.shard = shard;
    uint64_t id = raw_send(&c, &q, "", NULL, 0);
    for (bool more = true; more;) {
        raw_message *m = raw_receive(&c, id);
        CHECK_EQ(m->reply.status, FKV_OK);
        memcpy(&l, m->body, sizeof l);
        CHECK(l.first == at && at + l.here <= room);
        memcpy(out + at, m->body + sizeof l, l.here * sizeof *out);
        at += l.here;
        more = m->reply.flags & FKV_REPLY_MORE;
        free(m);
    }
    CHECK_EQ(l.count, at);
    return l;
}

TEST(the_layout_names_every_segment_and_grows_with_the_table) {
    static fkv_layout_segment seg[64];
    dataplane_layout *opened;
    fkv_reply reply;
    rig_init(&r, provider, NULL);
    r.config.on_layout = count_layout;
    layouts = 0;
    rig_start(&r);
    CHECK_EQ(rig_open_shard(&r, 0, 0, 64 << 20, &opened), FKV_OK);
    rig_serve(&r, 0);
    raw_up(&c, &r, 1);
    fkv_layout l = layout_of(0, seg, 64);
    CHECK(l.incarnation == 1000 && l.epoch == r.epoch && l.layout_epoch == opened->layout_epoch &&
          l.count == opened->count);
    CHECK_EQ(l.buckets, opened->buckets);
    for (uint32_t i = 0; i < l.count; i++) {
        CHECK(seg[i].kind == opened->region[i].kind && seg[i].segment == opened->region[i].segment);
        CHECK(seg[i].tag == opened->region[i].tag && seg[i].tag != 0 && seg[i].bytes == opened->region[i].bytes);
        CHECK(seg[i].rkey == opened->region[i].rkey && seg[i].addr == opened->region[i].addr);
    }
    free(opened);
    static char value[8000];
    uint32_t epoch = l.layout_epoch;
    for (int i = 0; i < 20000 && epoch < l.layout_epoch + 3; i++) {
        char key[32];
        snprintf(key, sizeof key, "key-%d", i);
        if (raw_shard_of(0, key, strlen(key)) != 0) continue;
        fkv_request q = raw_request(&c, FKV_OP_PUT, key);
        q.value_bytes = sizeof value;
        CHECK_EQ(raw_ask(&c, &q, key, value, sizeof value, &reply), FKV_OK);
        CHECK(reply.layout_epoch >= epoch && reply.buckets >= l.buckets);
        epoch = reply.layout_epoch;
    }
    CHECK(epoch >= l.layout_epoch + 3);
    CHECK(layout_of(0, seg, 64).count > l.count);
    while (__atomic_load_n(&layouts, __ATOMIC_RELAXED) == 0) raw_poll(&c);
    down();
}

TEST(a_segment_can_be_read_and_the_owner_counts_what_it_served_itself) {
    fkv_layout_segment seg[8];
    fkv_bucket bucket;
    fab_mr *local;
    fab_wc wc;
    up(TABLE_MEMORY_MIN);
    layout_of(0, seg, 8);
    CHECK_EQ(fab_reg_local(c.domain, &bucket, sizeof bucket, &local), 0);
    CHECK_EQ(fab_attach(c.conn, seg[0].rkey, seg[0].addr, seg[0].bytes, 1), 0);
    fab_flush(c.cq);
    while (fab_poll(c.cq, &wc, 1) == 0) {}
    CHECK(wc.opcode == FAB_WC_ATTACH && wc.status == FAB_SUCCESS);
    fab_read read = { .wr_id = 2,
                      .local = &bucket,
                      .local_mr = local,
                      .remote_addr = seg[0].addr,
                      .rkey = seg[0].rkey,
                      .bytes = sizeof bucket };
    CHECK_EQ(fab_post_reads(c.conn, &read, 1), 1);
    fab_flush(c.cq);
    while (fab_poll(c.cq, &wc, 1) == 0) {}
    CHECK(wc.opcode == FAB_WC_READ && wc.status == FAB_SUCCESS);
    CHECK_EQ(fkv_bucket_tag(bucket.word0), seg[0].tag);
    dataplane_stats *s = rig_stats(&r);
    CHECK_EQ(s->worker[0].reads_served, provider == FAB_TCP ? 1 : 0);
    free(s);
    fab_dereg(local);
    down();
}

/* ---- what is retired ---- */

static fkv_status put_many(int from, int count, const void *value, uint32_t bytes) {
    fkv_status last = FKV_OK;
    for (int i = from; i < from + count && last == FKV_OK; i++) {
        char key[32];
        snprintf(key, sizeof key, "key-%d", i);
        if (raw_shard_of(0, key, strlen(key)) == 0) last = raw_put(&c, key, value, bytes);
    }
    return last;
}
static void delete_many(int count) {
    for (int i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof key, "key-%d", i);
        fkv_request q = raw_request(&c, FKV_OP_DELETE, key);
        if (raw_shard_of(0, key, strlen(key)) == 0) raw_ask(&c, &q, key, NULL, 0, NULL);
    }
}
static bool listed(uint32_t tag) {
    static fkv_layout_segment seg[256];
    uint32_t n = layout_of(0, seg, 256).count;
    for (uint32_t i = 0; i < n; i++)
        if (seg[i].tag == tag) return true;
    return false;
}
static bool readable(const fkv_layout_segment *s, fab_mr *local, void *to) {
    fab_wc wc = { 0 };
    fab_read read = {
        .wr_id = 2, .local = to, .local_mr = local, .remote_addr = s->addr, .rkey = s->rkey, .bytes = 128
    };
    if (fab_post_reads(c.conn, &read, 1) != 1) return false;
    fab_flush(c.cq);
    while (wc.opcode != FAB_WC_READ)
        if (fab_poll(c.cq, &wc, 1) == 0) wc.opcode = (fab_wc_opcode)0;
    return wc.status == FAB_SUCCESS;
}
/* Fills the shard with small values, deletes them, and writes large ones until a segment of the small ones has gone
 * back. */
static void retire_a_segment(fkv_layout_segment *gone, fab_mr **local, void *to) {
    enum { SMALL = 40000, LARGE = 9000 };
    static fkv_layout_segment seg[256];
    static char value[LARGE];
    fkv_lease_shard list[RIG_SHARDS];
    fkv_reply reply;
    fab_wc wc;
    put_many(0, SMALL, value, 100);
    uint32_t n = layout_of(0, seg, 256).count;
    CHECK(n < 256);
    *gone = seg[0];
    for (uint32_t i = 0; i < n; i++)
        if (seg[i].kind == TABLE_HEAP && (gone->kind != TABLE_HEAP || seg[i].segment == 1)) *gone = seg[i];
    CHECK_EQ(fab_reg_local(c.domain, to, 128, local), 0);
    CHECK_EQ(fab_attach(c.conn, gone->rkey, gone->addr, gone->bytes, 1), 0);
    fab_flush(c.cq);
    while (fab_poll(c.cq, &wc, 1) == 0) {}
    CHECK(wc.opcode == FAB_WC_ATTACH && wc.status == FAB_SUCCESS);
    CHECK(lease(list, &reply) == 1);
    delete_many(SMALL);
    for (int i = 0; listed(gone->tag); i += 50) {
        CHECK(i < 100000);
        put_many(SMALL + i, 50, value, sizeof value);
    }
}
static void retire_under_leases_of(uint32_t lease_ms, bool given_back) {
    fkv_layout_segment gone;
    fab_mr *local;
    uint8_t bytes[128];
    rig_init(&r, provider, NULL);
    r.config.lease_ms = lease_ms;
    rig_up(&r, 1, 4 << 20);
    raw_up(&c, &r, 1);
    retire_a_segment(&gone, &local, bytes);
    if (given_back)
        while (readable(&gone, local, bytes)) {}
    else
        CHECK(readable(&gone, local, bytes));
    fab_dereg(local);
    down();
}
TEST(a_retired_segment_stays_readable_while_leases_are_left_that_do_not_tell_of_it) {
    retire_under_leases_of(60000, false);
}
TEST(a_retired_segment_is_given_back_when_they_are_over) { retire_under_leases_of(50, true); }

/* While a chain has slots that wait to be cleared it is not shortened, and its readers need one READ more. */
TEST(what_growth_left_is_cleared_also_when_nobody_asks_for_anything) {
    rig_init(&r, provider, NULL);
    rig_up(&r, RIG_SHARDS, 64 << 20);
    raw_up(&c, &r, 1);
    enum { KEYS = 8000 * RIG_SHARDS };
    char key[16];
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "key%d", i);
        CHECK_EQ(raw_put(&c, key, "v", 1), FKV_OK);
    }
    for (uint64_t moving = 1, split = 0; moving || !split;) {
        dataplane_stats *s = rig_stats(&r);
        moving = 0;
        for (uint32_t i = 0; i < RIG_SHARDS; i++) {
            moving += s->shard[i].table.moving;
            split += s->shard[i].table.splits;
        }
        free(s);
    }
    down();
}

static void tests(void) {
    RUN(a_shard_answers_only_while_it_is_served_here);
    RUN(a_request_that_is_refused_is_told_with_its_own_key);
    RUN(shards_are_opened_and_closed_once);
    RUN(a_lease_covers_the_served_shards_by_their_incarnation);
    RUN(a_closing_shard_is_leased_no_more_and_closes_after_its_last_lease);
    RUN(nothing_is_granted_or_acknowledged_beyond_the_owners_own_lease);
    RUN(what_arrives_while_the_owner_is_paused_past_its_lease_is_not_answered);
    RUN(the_layout_names_every_segment_and_grows_with_the_table);
    RUN(a_segment_can_be_read_and_the_owner_counts_what_it_served_itself);
    if (provider == FAB_SIM) return; /* its memory is this process's, and its time runs slowly */
    RUN(what_growth_left_is_cleared_also_when_nobody_asks_for_anything);
    RUN(a_retired_segment_stays_readable_while_leases_are_left_that_do_not_tell_of_it);
    RUN(a_retired_segment_is_given_back_when_they_are_over);
}

int main(int argc, char **argv) { return rig_main(argc, argv, &provider, tests); }
