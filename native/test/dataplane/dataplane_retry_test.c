/* dataplane_retry_test.c: a change has at most one effect and is not reported wrongly, however late, twice or out of
 * order it comes: the owner's grant runs out under it, copies of it meet, its client gives up on it. */
#include <semaphore.h>
#include "raw_client.h"
#include "worker_visit.h"

enum { LARGE = 1 << 20, MEMORY = 16 << 20 };

static fab_provider provider;
static rig r;

static uint64_t prepared_changes(void) {
    dataplane_stats *s = rig_stats(&r);
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->shards; i++) n += s->shard[i].table.prepared;
    free(s);
    return n;
}

/* Asked at the beginning of a turn, before which each of them was run. */
static uint64_t puts_taken(void) {
    dataplane_stats *s = rig_stats(&r);
    uint64_t n = s->worker[0].requests[FKV_OP_PUT];
    free(s);
    return n;
}

/* A large value in memory that the owner may READ. */
typedef struct large {
    fkv_region region;
    fab_mr *mr;
    fkv_rendezvous where;
} large;
static void large_up(large *l, raw *c, uint32_t bytes) {
    CHECK_EQ(fkv_region_alloc("test", bytes, FKV_REGION_PREFAULT, &l->region), 0);
    memset(l->region.base, 'A', bytes);
    CHECK_EQ(fab_reg(c->domain, &l->region, 0, &l->mr), 0);
    l->where = (fkv_rendezvous){ fab_mr_rkey(l->mr), fab_mr_addr(l->mr), fab_mr_addr(l->mr), l->region.bytes };
}
static void large_down(large *l) {
    fab_dereg(l->mr);
    fkv_region_free(&l->region);
}
/* Two clients of an owner, of which the first has a large value ready. */
static void two_up(raw *c, raw *d, uint64_t second, large *l) {
    rig_init(&r, provider, NULL);
    r.config.wait_ms = 60000;
    rig_up(&r, RIG_SHARDS, MEMORY);
    raw_up(c, &r, 1);
    raw_up(d, &r, second);
    large_up(l, c, LARGE);
}
static void two_down(raw *c, raw *d, large *l) {
    raw_hang_up(c);
    large_down(l);
    raw_down(c);
    raw_down(d);
    rig_down(&r);
}

/* The copier stands still until it is let go, so that a large change stays prepared for as long as a test needs. */
static sem_t copier_goes;
static void hold_copier(job *j) {
    (void)j;
    while (sem_wait(&copier_goes) != 0) {}
}
static void copier_stops(void) {
    static job held;
    held.run = hold_copier;
    helper_post(&r.d->copier, &held);
}
static void copier_goes_on(void) { CHECK_EQ(sem_post(&copier_goes), 0); }

static fkv_request large_put(raw *c, const char *key, uint32_t bytes) {
    fkv_request q = raw_request(c, FKV_OP_PUT, key);
    q.flags = FKV_REQUEST_RENDEZVOUS;
    q.value_bytes = bytes;
    return q;
}

/* Returns when it is prepared; it stays so until copier_goes_on. */
static fkv_request large_put_begin(raw *c, const char *key, const large *l) {
    fkv_request q = large_put(c, key, LARGE);
    copier_stops();
    raw_send(c, &q, key, &l->where, sizeof l->where);
    while (!prepared_changes()) raw_poll(c);
    return q;
}

/* The grant runs out while the value is on its way. */
TEST(a_change_that_is_ready_after_the_grant_leaves_no_trace) {
    raw c, d;
    large l;
    fkv_reply reply;
    two_up(&c, &d, 2, &l);
    fkv_request q = large_put_begin(&c, "k", &l);
    dataplane_set_grant_until(r.d, fkv_now_ns());
    copier_goes_on();
    CHECK_EQ(raw_end(&c, q.id), FKV_SHARD_CLOSED);
    dataplane_set_grant_until(r.d, UINT64_MAX);
    CHECK_EQ(prepared_changes(), 0);
    CHECK_EQ(raw_put(&d, "k", "B", 1), FKV_OK);
    raw_expect(&d, "k", "B");
    fkv_request get = raw_request(&d, FKV_OP_GET, "k");
    CHECK_EQ(raw_ask(&d, &get, "k", NULL, 0, &reply), FKV_OK);
    two_down(&c, &d, &l);
}

/* What waits behind such a change is not answered from a table that may be somebody else's by now. */
TEST(what_has_waited_past_the_grant_is_refused) {
    raw c, d;
    large l;
    two_up(&c, &d, 2, &l);
    fkv_request q = large_put_begin(&c, "k", &l), get = raw_request(&d, FKV_OP_GET, "k");
    uint64_t before = puts_taken();
    uint64_t got = raw_send(&d, &get, "k", NULL, 0), done = raw_put_begin(&d, "k", "B", 1);
    while (puts_taken() == before) {}
    dataplane_set_grant_until(r.d, fkv_now_ns());
    copier_goes_on();
    CHECK_EQ(raw_end(&c, q.id), FKV_SHARD_CLOSED);
    CHECK_EQ(raw_end(&d, got), FKV_SHARD_CLOSED);
    CHECK_EQ(raw_end(&d, done), FKV_SHARD_CLOSED);
    two_down(&c, &d, &l);
}

/* A retry that overtook its first copy and failed for good: the first copy, when it comes, is not made, although it
 * could be now. (A first copy would be as large; that this one is not shows that it is not even tried.) */
TEST(a_first_copy_that_comes_after_its_retry_has_failed_is_not_made) {
    raw c;
    large l;
    fkv_reply reply;
    rig_init(&r, provider, NULL);
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    raw_up(&c, &r, 1);
    large_up(&l, &c, FKV_VALUE_MAX);
    fkv_request retry = large_put(&c, "k", FKV_VALUE_MAX), first = retry;
    retry.flags |= FKV_REQUEST_RETRY;
    first.flags = 0;
    first.value_bytes = 1;
    first.id = c.next_id++;
    fkv_status s = raw_ask(&c, &retry, "k", &l.where, sizeof l.where, NULL);
    CHECK(s == FKV_TABLE_FULL || s == FKV_NO_MEMORY);
    CHECK_EQ(raw_ask(&c, &first, "k", "v", 1, NULL), s);
    CHECK(raw_get(&c, "k", &reply) == NULL);
    CHECK_EQ(reply.status, FKV_NOT_FOUND);
    CHECK_EQ(raw_put(&c, "k", "v", 1), FKV_OK);
    raw_hang_up(&c);
    large_down(&l);
    raw_down(&c);
    rig_down(&r);
}

/* The copy that is cancelled follows one that goes on: whether the change is made is not known by then. */
TEST(a_cancelled_copy_of_a_change_under_way_is_indeterminate) {
    raw c, d;
    large l;
    two_up(&c, &d, 1, &l);
    fkv_request q = large_put_begin(&c, "k", &l), copy = q;
    copy.flags |= FKV_REQUEST_RETRY;
    copy.id = d.next_id++;
    uint64_t before = puts_taken();
    raw_send(&d, &copy, "k", &l.where, sizeof l.where);
    while (puts_taken() == before) {}
    fkv_request cancel = { .op = FKV_OP_CANCEL, .shard = q.shard, .expected = copy.id };
    raw_send(&d, &cancel, "", NULL, 0);
    CHECK_EQ(raw_end(&d, copy.id), FKV_STALE_SEQUENCE);
    copier_goes_on();
    CHECK_EQ(raw_end(&c, q.id), FKV_OK);
    two_down(&c, &d, &l);
}

/* The owner before it may have made the change, and others may have seen it before that owner's memory was lost: made
 * again it would come back after it was seen to be gone. */
TEST(a_retry_of_what_an_earlier_owner_was_sent_is_indeterminate) {
    raw c;
    fkv_reply reply;
    rig_init(&r, provider, NULL);
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    raw_up(&c, &r, 1);
    fkv_request q = raw_request(&c, FKV_OP_PUT, "k");
    q.value_bytes = 1;
    CHECK_EQ(raw_ask(&c, &q, "k", "v", 1, NULL), FKV_OK);
    rig_close(&r, q.shard);
    r.epoch++;
    CHECK_EQ(rig_open_shard(&r, q.shard, 0, TABLE_MEMORY_MIN, NULL), FKV_OK);
    rig_serve(&r, q.shard);
    q.flags = FKV_REQUEST_RETRY;
    q.id = c.next_id++;
    CHECK_EQ(raw_ask(&c, &q, "k", "v", 1, NULL), FKV_STALE_SEQUENCE);
    CHECK(raw_get(&c, "k", &reply) == NULL);
    CHECK_EQ(reply.status, FKV_NOT_FOUND);
    CHECK_EQ(raw_put(&c, "k", "w", 1), FKV_OK);
    q.id = c.next_id++;
    CHECK_EQ(raw_ask(&c, &q, "k", "v", 1, NULL), FKV_STALE_SEQUENCE); /* also now that this owner knows the client */
    raw_down(&c);
    rig_down(&r);
}

/* A shard may be open at its next owner for long, while the one before makes changes. */
TEST(a_shard_that_was_open_for_long_before_it_is_served_takes_no_retry_either) {
    rig r;
    raw c;
    fkv_reply reply;
    rig_init(&r, provider, NULL);
    rig_up(&r, RIG_SHARDS, TABLE_MEMORY_MIN);
    raw_up(&c, &r, 1);
    fkv_request q = raw_request(&c, FKV_OP_PUT, "k");
    rig_close(&r, q.shard);
    r.epoch++;
    CHECK_EQ(rig_open_shard(&r, q.shard, 0, TABLE_MEMORY_MIN, NULL), FKV_OK);
    fkv_clock_skip(((int64_t)FKV_DEDUP_IDLE_MS + 1000) * 1000000);
    rig_serve(&r, q.shard);
    q.value_bytes = 1;
    q.flags = FKV_REQUEST_RETRY;
    q.id = c.next_id++;
    CHECK_EQ(raw_ask(&c, &q, "k", "v", 1, NULL), FKV_STALE_SEQUENCE);
    CHECK(raw_get(&c, "k", &reply) == NULL);
    CHECK_EQ(reply.status, FKV_NOT_FOUND);
    raw_down(&c);
    rig_down(&r);
    fkv_clock_restore();
}

static void tests(void) {
    RUN(a_change_that_is_ready_after_the_grant_leaves_no_trace);
    RUN(what_has_waited_past_the_grant_is_refused);
    RUN(a_retry_of_what_an_earlier_owner_was_sent_is_indeterminate);
    RUN(a_shard_that_was_open_for_long_before_it_is_served_takes_no_retry_either);
    RUN(a_first_copy_that_comes_after_its_retry_has_failed_is_not_made);
    if (provider == FAB_SHM) RUN(a_cancelled_copy_of_a_change_under_way_is_indeterminate);
}

int main(int argc, char **argv) {
    CHECK_EQ(sem_init(&copier_goes, 0, 0), 0);
    return rig_main(argc, argv, &provider, tests);
}
