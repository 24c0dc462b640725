/* dataplane_pages_test.c: of what pages segments are made, and that each registered byte is told once, whatever it is.
 * */
#include <sys/prctl.h>
#include <sys/wait.h>
#include "dataplane_rig.h"

enum { SHARD_BYTES = 16 << 20 };

static uint64_t pages_of(const dataplane_shard_stats *s) {
    uint64_t sum = 0;
    for (int i = 0; i < FKV_PAGES_KINDS; i++) sum += s->page_bytes[i];
    return sum;
}
static bool system_has_some(void) {
    fkv_region r;
    if (fkv_region_alloc("test", FKV_HUGE_PAGE, FKV_REGION_NEED_HUGE, &r) != 0) return false;
    fkv_region_free(&r);
    return true;
}

TEST(small_segments_stay_small_ones_and_are_told_as_such) {
    static const dataplane_huge ways[] = { DATAPLANE_HUGE_OFF, DATAPLANE_HUGE_AUTO };
    for (int i = 0; i < 2; i++) {
        rig r;
        rig_init(&r, FAB_SHM, NULL);
        r.config.huge_pages = ways[i];
        rig_up(&r, 2, SHARD_BYTES);
        dataplane_stats *s = rig_stats(&r);
        CHECK_EQ(s->pages != FKV_PAGES_SMALL, ways[i] == DATAPLANE_HUGE_AUTO && system_has_some());
        for (uint32_t k = 0; k < s->shards; k++) {
            CHECK_EQ(pages_of(&s->shard[k]), s->shard[k].table.index_bytes + s->shard[k].table.heap_bytes);
            CHECK_EQ(s->shard[k].page_bytes[FKV_PAGES_SMALL], pages_of(&s->shard[k]));
        }
        free(s);
        rig_down(&r);
    }
}

TEST(where_huge_pages_are_required_every_segment_is_made_of_them_or_the_start_fails) {
    rig r;
    char why[256] = "";
    rig_init(&r, FAB_SHM, NULL);
    r.config.huge_pages = DATAPLANE_HUGE_REQUIRE;
    if (!system_has_some()) {
        CHECK_EQ(dataplane_create(&r.config, &r.d), FKV_OK);
        CHECK_EQ(dataplane_start(r.d, why, sizeof why), FKV_NO_MEMORY);
        CHECK(strstr(why, "huge pages are required") != NULL);
        rig_down(&r);
        return;
    }
    rig_up(&r, 2, SHARD_BYTES);
    dataplane_stats *s = rig_stats(&r);
    for (uint32_t k = 0; k < s->shards; k++) {
        const dataplane_shard_stats *one = &s->shard[k];
        CHECK_EQ(one->page_bytes[FKV_PAGES_SMALL], 0);
        CHECK_EQ(pages_of(one), one->table.index_bytes + one->table.heap_bytes);
        CHECK(one->table.index_bytes % FKV_HUGE_PAGE == 0 && one->table.heap_bytes % FKV_HUGE_PAGE == 0);
    }
    free(s);
    rig_down(&r);
}

/* A system that has none, as far as this process sees. */
TEST(without_huge_pages_auto_serves_with_small_ones_and_require_says_why_not) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
        small_segments_stay_small_ones_and_are_told_as_such();
        where_huge_pages_are_required_every_segment_is_made_of_them_or_the_start_fails();
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv) {
    RUN(small_segments_stay_small_ones_and_are_told_as_such);
    RUN(where_huge_pages_are_required_every_segment_is_made_of_them_or_the_start_fails);
    RUN(without_huge_pages_auto_serves_with_small_ones_and_require_says_why_not);
    return check_end(argc, argv);
}
