/* copy_end_test.c: copies of a shard that end before they have joined, told to or cancelled, and what the owner keeps for
 * them. */
#include "../../storage/change_log.h"
#include "copy_rig.h"

TEST(a_copy_ends_when_it_is_told_to_at_any_time) {
    pair p;
    char key[24];
    pair_up(&p, 8 << 20);
    for (uint32_t i = 0; i < 300; i++) CHECK_EQ(kit_put(&p.k, key_of(&p.k, i, key), "v", 1, 20000).status, FKV_OK);
    for (int i = 0; i < 20; i++) {
        copy_begin(&p, FKV_TICKET_READ | FKV_TICKET_COPY);
        for (int n = 0; n < i * 3; n++) free(rig_stats(&p.to));
        shard_copy_stop(p.copy);
        p.copy = NULL;
        CHECK(rig_is_done(&p.caught_up));
    }
    rig_close(&p.to, 0);
    copy_begin(&p, FKV_TICKET_READ | FKV_TICKET_COPY);
    CHECK_EQ(wait_turning(&p, &p.caught_up), FKV_NOT_OWNER);
    pair_down(&p);
}

/* The thread of `to` is held up, and something waits for it: what the copy has lent to it. */
static void lent(pair *p) {
    uint64_t start = fkv_now_ns();
    while (!mailbox_ready(&p->to.d->worker[0]->box)) {
        kit_turn(&p->k);
        CHECK(check_in_time(start));
    }
}

TEST(a_copy_that_is_cancelled_while_the_table_has_what_it_lent_ends_only_then_and_nobody_waits_for_it) {
    pair p;
    char key[24];
    rig_hold h;
    rig_call told[2], late;
    shard_copy_waiter waiters[2], last;
    pair_up(&p, 4 << 20);
    CHECK_EQ(kit_put(&p.k, key_of(&p.k, 1, key), "v", 1, 20000).status, FKV_OK);
    rig_hold_up(&h, &p.to);
    copy_begin(&p, FKV_TICKET_READ | FKV_TICKET_COPY);
    lent(&p);
    shard_copy_follow(p.copy, rig_done, &p.done);
    for (int i = 0; i < 2; i++) {
        rig_call_init(&told[i]);
        waiters[i] = (shard_copy_waiter){ .ended = rig_done, .ctx = &told[i] };
        shard_copy_cancel(p.copy, &waiters[i]);
    }
    CHECK(!rig_is_done(&p.caught_up) && !rig_is_done(&p.done));
    CHECK(!rig_is_done(&told[0]) && !rig_is_done(&told[1]));
    rig_let_go(&h);
    for (int i = 0; i < 2; i++) CHECK_EQ(rig_wait(&told[i]), FKV_OK);
    CHECK_EQ(p.caught_up.status, FKV_ABORTED);
    CHECK_EQ(p.done.status, FKV_ABORTED);
    /* It has ended. */
    rig_call_init(&late);
    last = (shard_copy_waiter){ .ended = rig_done, .ctx = &late };
    shard_copy_cancel(p.copy, &last);
    CHECK(rig_is_done(&late));
    pair_down(&p);
}

/* On the owner's thread. */
typedef struct look {
    dataplane *d;
    bool noted;                    /* there is a log */
    uint64_t idle_ns, deadline_ns; /* of the log, and of all shards */
} look;
static void look_here(void *ctx, fkv_status s, void *result) {
    look *l = ctx;
    (void)s;
    free(result);
    l->noted = l->d->worker[0]->by_number[0]->changed.ring != NULL;
    l->idle_ns = change_log_idle_ns(&l->d->worker[0]->by_number[0]->changed);
    l->deadline_ns = shards_deadline(l->d->worker[0]);
}
static look look_at(rig *r) {
    look l = { .d = r->d };
    dataplane_get_layout(r->d, 0, look_here, &l);
    free(rig_stats(r)); /* behind it */
    return l;
}

TEST(the_log_of_a_copy_that_was_called_off_is_given_up_though_nothing_changes) {
    pair p;
    char key[24];
    pair_up(&p, 4 << 20);
    CHECK_EQ(kit_put(&p.k, key_of(&p.k, 1, key), "v", 1, 20000).status, FKV_OK);
    copy_begin(&p, FKV_TICKET_READ | FKV_TICKET_COPY);
    CHECK_EQ(wait_turning(&p, &p.caught_up), FKV_OK);
    shard_copy_stop(p.copy);
    p.copy = NULL;
    look l = look_at(&p.from);
    CHECK(l.noted);
    /* When the table rests this is all that the thread wakes for. */
    uint64_t start = fkv_now_ns();
    for (; l.deadline_ns < l.idle_ns; l = look_at(&p.from)) CHECK(check_in_time(start));
    CHECK(l.deadline_ns == l.idle_ns);
    fkv_clock_skip((int64_t)CHANGE_LOG_IDLE_NS);
    for (start = fkv_now_ns(); l.noted; l = look_at(&p.from)) CHECK(check_in_time(start));
    CHECK(l.idle_ns == UINT64_MAX);
    kit_expect(&p.k, key, "v");
    pair_down(&p);
}

static void all_of(fab_provider p) {
    provider = p;
    RUN(the_log_of_a_copy_that_was_called_off_is_given_up_though_nothing_changes);
    RUN(a_copy_ends_when_it_is_told_to_at_any_time);
    RUN(a_copy_that_is_cancelled_while_the_table_has_what_it_lent_ends_only_then_and_nobody_waits_for_it);
}

int main(int argc, char **argv) {
    all_of(FAB_SHM);
    all_of(FAB_TCP);
    return check_end(argc, argv);
}
