/* group_commit_test.c: when a log waits for changes that are about to come. Time is what the test says it is; the log is
 * the product's, on a disk in memory. */
#include "../../log/group_commit.h"
#include <string.h>
#include "../check.h"
#include "log_rig.h"

enum { SYNC_NS = 200 * 1000, BACK_NS = 40 * 1000, STEP_NS = 1000, CLIENTS_MAX = 64 };

static rig r;

/* Clients that send one change after the other over one log, whose disk takes SYNC_NS. */
typedef struct world {
    uint64_t now, synced_at;
    uint64_t back_ns;            /* from an answer to the next change */
    uint64_t comes[CLIENTS_MAX]; /* when a change does; 0: it is in the log */
    uint32_t clients, durable, batches;
} world;

static world begin(uint32_t clients, uint64_t back_ns) {
    world w = { .now = 1000000, .back_ns = back_ns, .clients = clients };
    rig_init(&r, check_seed(), 4096);
    CHECK(rig_recover(&r));
    rig_settle(&r);
    w.durable = r.durable;
    for (uint32_t i = 0; i < clients; i++) w.comes[i] = w.now + i * (SYNC_NS / 4 + 3000);
    return w;
}

static void answer(world *w) {
    uint32_t count = r.durable - w->durable;
    w->durable = r.durable;
    for (uint32_t i = 0; i < w->clients && count > 0; i++) {
        if (w->comes[i]) continue;
        w->comes[i] = w->now + w->back_ns;
        count--;
    }
}

static void step(world *w) {
    if (w->synced_at && w->now >= w->synced_at) {
        w->synced_at = 0;
        helper_drain(&r.writer);
        mailbox_run(&r.home);
        answer(w);
    }
    for (uint32_t i = 0; i < w->clients; i++) {
        if (w->comes[i] == 0 || w->comes[i] > w->now) continue;
        /* What is durable is in a snapshot at once: the disk does not fill up. */
        if (wal_room(&r.log) == 0 || !rig_append(&r, 0, 1, 32)) {
            rig_snapshot(&r, 0);
            helper_drain(&r.maker);
            mailbox_run(&r.home);
            CHECK(rig_append(&r, 0, 1, 32));
        }
        w->comes[i] = 0;
    }
    bool was = r.log.write.base.under_way;
    wal_turn_ends(&r.log, w->now);
    if (!was && r.log.write.base.under_way) {
        w->synced_at = w->now + SYNC_NS;
        w->batches++;
    }
    w->now += STEP_NS;
}

static double records_of_a_batch(world *w, uint32_t batches) {
    uint32_t begun = w->batches, records = w->durable;
    while (w->batches - begun < batches) step(w);
    return (double)(w->durable - records) / batches;
}

TEST(clients_that_are_answered_are_in_the_next_batch_with_the_others) {
    world w = begin(8, BACK_NS);
    records_of_a_batch(&w, 30);
    CHECK(records_of_a_batch(&w, 50) > 7.5); /* sent at once: a batch of some and a batch of the others */
    rig_free(&r);
}

TEST(a_change_alone_is_not_waited_with) {
    world w = begin(1, BACK_NS);
    for (int i = 0; i < 100000; i++) {
        step(&w);
        CHECK_EQ(wal_deadline(&r.log), UINT64_MAX);
    }
    rig_free(&r);
}

TEST(clients_that_come_late_are_hardly_waited_for) {
    world w = begin(2, SYNC_NS - STEP_NS);
    uint64_t waited = 0, begun = w.now;
    records_of_a_batch(&w, 30);
    for (begun = w.now; w.now - begun < 400 * (uint64_t)SYNC_NS;) {
        step(&w);
        if (wal_deadline(&r.log) != UINT64_MAX) waited += STEP_NS;
    }
    CHECK(waited * 50 < w.now - begun);
    rig_free(&r);
}

TEST(a_wait_ends_after_half_a_sync_however_much_is_missing) {
    world w = begin(CLIENTS_MAX, BACK_NS);
    uint64_t since = 0;
    for (int i = 0; i < 200000; i++) {
        if (i == 1000)
            for (uint32_t k = 2; k < w.clients; k++) w.comes[k] = UINT64_MAX; /* they have gone */
        step(&w);
        if (wal_deadline(&r.log) == UINT64_MAX)
            since = 0;
        else if (since == 0)
            since = w.now;
        CHECK(since == 0 || w.now - since <= SYNC_NS / 2 + 2 * STEP_NS);
    }
    rig_free(&r);
}

TEST(a_full_buffer_goes_without_waiting) {
    group_commit g = { 0 };
    group_commit_goes(&g, 1000, 10);
    group_commit_home(&g, 1000 + SYNC_NS, 1);
    CHECK(!group_commit_ready(&g, 1000 + SYNC_NS, 1));
    CHECK_EQ(group_commit_deadline(&g), 1000 + SYNC_NS + SYNC_NS / 2);
    group_commit_goes(&g, 2000 + SYNC_NS, 4); /* by who appends, when there is no room */
    CHECK_EQ(group_commit_deadline(&g), UINT64_MAX);
}

TEST(a_wait_that_was_longer_than_a_sync_was_in_vain) {
    group_commit g = { 0 };
    group_commit_goes(&g, 1000, 10);
    group_commit_home(&g, 1000 + SYNC_NS, 1);
    CHECK(!group_commit_ready(&g, 1000 + SYNC_NS, 1));
    CHECK(group_commit_ready(&g, 1000 + 3 * SYNC_NS, 9)); /* the thread slept too long */
    group_commit_goes(&g, 1000 + 3 * SYNC_NS, 9);
    CHECK(g.habit.skip > 0);
}
int main(int argc, char **argv) {
    RUN(clients_that_are_answered_are_in_the_next_batch_with_the_others);
    RUN(a_change_alone_is_not_waited_with);
    RUN(clients_that_come_late_are_hardly_waited_for);
    RUN(a_wait_ends_after_half_a_sync_however_much_is_missing);
    RUN(a_full_buffer_goes_without_waiting);
    RUN(a_wait_that_was_longer_than_a_sync_was_in_vain);
    return check_end(argc, argv);
}
