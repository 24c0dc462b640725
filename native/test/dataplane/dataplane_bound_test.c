/* dataplane_bound_test.c: what one table may register, and all of them together. */
#include "raw_client.h"

static fab_provider provider;
static rig r;
static raw c;

static void down(void) {
    raw_down(&c);
    rig_down(&r);
}

TEST(all_shards_together_register_no_more_than_the_bound) {
    enum { BOUND = 4 << 20 };
    rig_init(&r, provider, NULL);
    r.config.memory_bytes = BOUND;
    rig_up(&r, RIG_SHARDS, 4 * BOUND);
    raw_up(&c, &r, 1);
    static const char value[1000];
    char key[16];
    fkv_status s = FKV_OK;
    for (int i = 0; s != FKV_TABLE_FULL; i++) {
        snprintf(key, sizeof key, "key%d", i);
        s = raw_put(&c, key, value, sizeof value);
        CHECK(s == FKV_OK || s == FKV_BUSY || s == FKV_TABLE_FULL);
    }
    dataplane_stats *stats = rig_stats(&r);
    uint64_t taken = 0;
    for (uint32_t i = 0; i < stats->shards; i++)
        taken += stats->shard[i].table.index_bytes + stats->shard[i].table.heap_bytes;
    CHECK(taken <= BOUND);
    free(stats);
    /* What a shard gives back others may have. */
    for (uint32_t i = 1; i < RIG_SHARDS; i++) rig_close(&r, i);
    for (int i = 0, had = 0; had < 10; i++) {
        snprintf(key, sizeof key, "more%d", i);
        if (raw_shard_of(0, key, strlen(key)) != 0) continue;
        s = raw_put(&c, key, value, sizeof value);
        CHECK(s == FKV_OK || s == FKV_BUSY || s == FKV_TABLE_FULL);
        had += s == FKV_OK;
    }
    down();
}

/* Puts until shard 0 is full; how many it took. */
static int fill(void) {
    static const char value[1000];
    static int next;
    char key[16];
    for (int had = 0;; next++) {
        snprintf(key, sizeof key, "fill%d", next);
        if (raw_shard_of(0, key, strlen(key)) != 0) continue;
        fkv_status s = raw_put(&c, key, value, sizeof value);
        CHECK(s == FKV_OK || s == FKV_BUSY || s == FKV_TABLE_FULL);
        if (s == FKV_TABLE_FULL) return had;
        had += s == FKV_OK;
    }
}

TEST(a_shard_has_no_more_regions_than_the_metadata_takes) {
    enum { REGIONS = 40 };
    dataplane_layout *layout;
    rig_call call;
    rig_init(&r, provider, NULL);
    r.config.regions_max = REGIONS;
    rig_up(&r, RIG_SHARDS, 64 << 20);
    raw_up(&c, &r, 1);
    CHECK(fill() > 100);
    rig_call_init(&call);
    dataplane_get_layout(r.d, 0, rig_done, &call);
    CHECK_EQ(rig_wait(&call), FKV_OK);
    layout = call.result;
    CHECK(layout->count > REGIONS / 2 && layout->count <= REGIONS);
    free(layout);
    down();
}

static table_stats of_shard(uint32_t shard) {
    dataplane_stats *stats = rig_stats(&r);
    table_stats found = { 0 };
    for (uint32_t i = 0; i < stats->shards; i++)
        if (stats->shard[i].shard == shard) found = stats->shard[i].table;
    free(stats);
    return found;
}
static uint64_t limit_of(uint32_t shard) { return of_shard(shard).memory_bytes; }

TEST(tables_have_the_limit_that_was_set_last_whatever_they_were_opened_with) {
    enum { LIMIT = 4 << 20, BOUND = 64 << 20 };
    rig_init(&r, provider, NULL);
    r.config.memory_bytes = BOUND;
    rig_up(&r, RIG_SHARDS, LIMIT);
    raw_up(&c, &r, 1);
    int first = fill();
    CHECK(first > 1000);
    dataplane_set_table_memory(r.d, 2 * LIMIT);
    int more = fill(); /* a put may come before the worker knows of it: it is full then, too */
    if (more == 0) more = fill();
    CHECK(more > first * 8 / 10);
    rig_close(&r, 1);
    CHECK_EQ(rig_open_shard(&r, 1, 0, LIMIT, NULL), FKV_OK);
    CHECK_EQ(limit_of(0), 2 * LIMIT);
    CHECK_EQ(limit_of(1), BOUND); /* it may become another owner's copy */
    rig_serve(&r, 1);
    CHECK_EQ(limit_of(1), 2 * LIMIT);
    dataplane_set_table_memory(r.d, LIMIT);
    CHECK_EQ(limit_of(0), LIMIT);
    fill(); /* what it has it may fill */
    table_stats full = of_shard(0);
    CHECK(full.index_bytes + full.heap_bytes <= 2 * LIMIT);
    dataplane_set_table_memory(r.d, 2 * (uint64_t)BOUND);
    CHECK_EQ(limit_of(0), BOUND); /* all tables together may have no more */
    down();
}

static void tests(void) {
    RUN(all_shards_together_register_no_more_than_the_bound);
    RUN(a_shard_has_no_more_regions_than_the_metadata_takes);
    RUN(tables_have_the_limit_that_was_set_last_whatever_they_were_opened_with);
}

int main(int argc, char **argv) { return rig_main(argc, argv, &provider, tests); }
