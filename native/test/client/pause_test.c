/* pause_test.c: a shard that is paused, as its client sees it, over each provider in turn. */
#include "client_kit.h"

static fab_provider provider;

TEST(a_paused_shard_answers_nothing_is_left_alone_when_its_leases_are_over_and_goes_on_with_all_it_had) {
    rig r;
    kit k;
    answer get;
    rig_call paused;
    rig_init(&r, provider, NULL);
    rig_up(&r, RIG_SHARDS, 4 << 20);
    kit_up(&k, &r, 100);
    lookup_key key = kit_key("alpha");
    uint32_t shard = lookup_shard_of(k.l, &key);
    answer put = kit_put(&k, "alpha", "one", 3, 20000);
    CHECK_EQ(put.status, FKV_OK);
    kit_expect(&k, "alpha", "one"); /* under a lease */
    rig_call_init(&paused);
    dataplane_pause_shard(r.d, shard, rig_done, &paused);
    CHECK_EQ(rig_wait(&paused), FKV_OK);
    kit_get_begin(&k, "alpha", 60000, &get);
    for (bool refused = false; !refused && !get.done;) {
        kit_turn(&k);
        dataplane_stats *s = rig_stats(&r);
        for (uint32_t i = 0; i < s->shards; i++) CHECK(s->shard[i].serving == (s->shard[i].shard != shard));
        refused = s->worker[0].refused[FKV_SHARD_CLOSED] > 0;
        free(s);
    }
    CHECK(!get.done); /* nor by a READ: no lease is left */
    rig_serve(&r, shard);
    kit_until(&k, &get.done);
    CHECK_EQ(get.status, FKV_OK);
    CHECK_EQ(get.version, put.version);
    free(get.value);
    CHECK_EQ(kit_put(&k, "alpha", "two", 3, 20000).status, FKV_OK);
    kit_expect(&k, "alpha", "two");
    rig_call_init(&paused);
    dataplane_pause_shard(r.d, shard, rig_done, &paused);
    rig_close(&r, shard);
    rig_wait(&paused);
    kit_down(&k);
    rig_down(&r);
}

static void tests(void) {
    RUN(a_paused_shard_answers_nothing_is_left_alone_when_its_leases_are_over_and_goes_on_with_all_it_had);
}

int main(int argc, char **argv) { return rig_main(argc, argv, &provider, tests); }
