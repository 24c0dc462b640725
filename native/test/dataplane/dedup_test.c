/* dedup_test.c: no change is made twice, whatever was forgotten; and nothing is forgotten that is promised to be
 * remembered. */
#include "../check.h"
#include <stdlib.h>
#include <string.h>
#include "../../dataplane/dedup.h"
#include "../../wire/wire.h"

static const uint64_t IDLE_NS = (uint64_t)FKV_DEDUP_IDLE_MS * 1000000u;

static dedup d;
static dedup_client *c; /* client 1 */

static void up(size_t bytes_max) {
    CHECK_EQ(dedup_init(&d, bytes_max), 0);
    c = dedup_enter(&d, 1, 1);
}
static void down(void) {
    dedup_leave(&d, c, 1);
    dedup_free(&d);
}
static dedup_answer begin_in(uint32_t slot, uint64_t sequence, bool retry, uint64_t now, uint64_t *version) {
    void *op = &d;
    dedup_result r = { 0 };
    dedup_answer a = dedup_begin(&d, c, slot, sequence, retry, now, &op, &r);
    *version = r.version;
    return a;
}
static dedup_answer first(uint64_t sequence) {
    uint64_t version;
    return begin_in(0, sequence, false, 1, &version);
}
static dedup_answer again(uint64_t sequence) {
    uint64_t version;
    return begin_in(0, sequence, true, 1, &version);
}
static void finish(uint64_t sequence) {
    dedup_finish(c, 0, sequence, &(dedup_result){ FKV_OK, sequence * 10, sequence * 100 });
}
static void change(uint64_t sequence) {
    CHECK_EQ(first(sequence), DEDUP_NEW);
    finish(sequence);
}

TEST(a_repeated_sequence_has_the_first_result) {
    uint64_t version;
    up(1 << 20);
    for (uint64_t s = 1; s <= 5000; s++) {
        change(s);
        uint64_t oldest = s > FKV_DEDUP_WINDOW ? s - FKV_DEDUP_WINDOW + 1 : 1;
        CHECK_EQ(begin_in(0, oldest, true, 1, &version), DEDUP_DONE);
        CHECK_EQ(version, oldest * 10);
        if (oldest > 1) CHECK_EQ(again(oldest - 1), DEDUP_FORGOTTEN);
    }
    dedup_leave(&d, c, 1);
    CHECK(dedup_enter(&d, 1, IDLE_NS) == c); /* a new connection of the same client */
    CHECK_EQ(again(5000), DEDUP_DONE);
    down();
}

TEST(a_sequence_in_progress_is_not_begun_again_until_it_is_cancelled) {
    up(1 << 20);
    CHECK_EQ(first(1), DEDUP_NEW);
    CHECK_EQ(again(1), DEDUP_IN_PROGRESS);
    /* A whole window later its place is still its own. */
    for (uint64_t s = 2; s <= FKV_DEDUP_WINDOW; s++) change(s);
    CHECK_EQ(first(FKV_DEDUP_WINDOW + 1), DEDUP_NO_ROOM);
    CHECK_EQ(again(1), DEDUP_IN_PROGRESS);
    dedup_cancel(c, 0, 1);
    CHECK_EQ(again(1), DEDUP_NEW);
    finish(1);
    down();
}

TEST(sequences_may_arrive_out_of_order_within_the_window) {
    up(1 << 20);
    for (uint64_t s = 1000; s >= 1; s--) change(s);
    for (uint64_t s = 1; s <= 1000; s++) CHECK_EQ(again(s), DEDUP_DONE);
    down();
}

TEST(a_client_forgotten_early_is_not_let_make_a_change_twice) {
    up(40 << 10); /* room for two full windows */
    for (uint64_t s = 1; s <= 2000; s++) change(s);
    dedup_leave(&d, c, 1000);
    for (uint64_t other = 2; other <= 20; other++) { /* each takes room, until the first is forgotten */
        c = dedup_enter(&d, other, 2000);
        for (uint64_t s = 1; s <= 2000; s++) change(s);
        dedup_leave(&d, c, 2000);
    }
    CHECK(d.bytes <= d.bytes_max);
    c = dedup_enter(&d, 1, 3000);
    CHECK_EQ(again(2000), DEDUP_FORGOTTEN);
    /* It goes on with new changes; retries of the old ones stay unknown. */
    change(2001);
    CHECK_EQ(again(2000), DEDUP_FORGOTTEN);
    CHECK_EQ(again(2001), DEDUP_DONE);
    down();
}

TEST(a_first_request_that_was_lost_on_the_way_is_made_when_it_comes_again) {
    up(1 << 20);
    CHECK_EQ(again(1), DEDUP_NEW);
    finish(1);
    down();
}

TEST(with_no_room_left_windows_stay_short_and_say_so) {
    up(4 << 10);
    for (uint64_t s = 1; s <= 500; s++) change(s);
    CHECK(d.bytes <= d.bytes_max);
    CHECK_EQ(again(500), DEDUP_DONE);
    CHECK_EQ(again(1), DEDUP_FORGOTTEN);
    down();
}

TEST(clients_gone_for_long_leave_no_memory_behind) {
    up(64 << 20);
    for (uint64_t id = 1; id < 1000; id++) {
        change(1);
        dedup_leave(&d, c, 1);
        c = dedup_enter(&d, id * 0x9e3779b97f4a7c15u, 1);
    }
    CHECK_EQ(d.clients, 1000);
    dedup_leave(&d, c, 1);
    c = dedup_enter(&d, 5, IDLE_NS + 2);
    CHECK_EQ(d.clients, 1);
    down();
}

TEST(a_shard_that_is_gone_takes_its_windows_with_it) {
    up(1 << 20);
    change(1);
    uint64_t bytes = d.bytes;
    dedup_drop_slot(&d, 0);
    CHECK(d.bytes < bytes);
    change(1);
    CHECK_EQ(d.bytes, bytes);
    down();
}

TEST(a_retry_of_what_an_earlier_owner_was_sent_is_not_made) {
    uint64_t version;
    up(1 << 20);
    CHECK_EQ(dedup_open_slot(&d, 3, true, 100), 0);
    CHECK_EQ(begin_in(3, 7, true, 101, &version), DEDUP_FORGOTTEN);
    /* sent for the first time, so after 7 and 8 */
    CHECK_EQ(begin_in(3, 9, false, 102, &version), DEDUP_NEW);
    CHECK_EQ(begin_in(3, 8, true, 103, &version), DEDUP_FORGOTTEN);
    /* its first copy was sent here, and was lost */
    CHECK_EQ(begin_in(3, 10, true, 104, &version), DEDUP_NEW);
    /* Other slots, and a shard that has never had an owner, are not in doubt. */
    CHECK_EQ(begin_in(2, 7, true, 105, &version), DEDUP_NEW);
    CHECK_EQ(dedup_open_slot(&d, 4, false, 106), 0);
    CHECK_EQ(begin_in(4, 7, true, 107, &version), DEDUP_NEW);
    down();
}

TEST(a_repeated_sequence_has_the_first_value_too) {
    up(1 << 20);
    for (uint64_t s = 1; s <= 200; s++) change(s); /* the ring has grown meanwhile */
    void *op = &d;
    dedup_result r = { 0 };
    CHECK_EQ(dedup_begin(&d, c, 0, 3, true, 1, &op, &r), DEDUP_DONE);
    CHECK_EQ(r.status, FKV_OK);
    CHECK_EQ(r.version, 30);
    CHECK_EQ(r.value, 300);
    down();
}

TEST(what_another_owner_made_is_answered_and_without_room_it_is_in_doubt) {
    uint64_t version;
    up(1 << 20);
    /* in the order in which they took effect, which need not be that of their sequences */
    static const uint64_t made[] = { 2, 1, 3, 70, 5 };
    for (int i = 0; i < 5; i++)
        dedup_note(&d, 1, 0, made[i], &(dedup_result){ FKV_OK, made[i] * 10, made[i] * 100 }, 1);
    for (int i = 0; i < 5; i++) {
        void *op = &d;
        dedup_result r = { 0 };
        CHECK_EQ(dedup_begin(&d, c, 0, made[i], true, 1, &op, &r), DEDUP_DONE);
        CHECK_EQ(r.version, made[i] * 10);
        CHECK_EQ(r.value, made[i] * 100);
    }
    CHECK_EQ(again(4), DEDUP_NEW); /* was on its way and had no effect */
    dedup_forget(&d, 1, 1, 40, 1);
    CHECK_EQ(begin_in(1, 40, true, 1, &version), DEDUP_FORGOTTEN);
    CHECK_EQ(begin_in(1, 41, true, 1, &version), DEDUP_NEW);
    dedup_cancel(c, 1, 41);
    dedup_cancel(c, 0, 4);
    down();
    up(400); /* one client, and no window */
    dedup_note(&d, 2, 0, 7, &(dedup_result){ .version = 70 }, 1);
    dedup_leave(&d, c, 1);
    d.bytes_max = 1 << 20;
    c = dedup_enter(&d, 2, 2);
    CHECK_EQ(begin_in(0, 7, true, 2, &version), DEDUP_FORGOTTEN);
    CHECK_EQ(begin_in(0, 7, true, 3 + IDLE_NS, &version), DEDUP_NEW);
    dedup_cancel(c, 0, 7);
    down();
}

/* As a backup hears of it: a small ring that cannot grow has its place taken by a later change. When there is room the
 * ring grows, and that place is free. */
TEST(what_another_owner_made_out_of_order_is_not_made_again_where_there_is_no_room_for_it) {
    up(4 << 10);
    static const uint64_t made[] = { 70, 65, 1, 6 };
    for (int i = 0; i < 4; i++) dedup_note(&d, 1, 0, made[i], &(dedup_result){ FKV_OK, made[i] * 10, 0 }, 1);
    d.bytes_max = 1 << 20;
    CHECK_EQ(again(1), DEDUP_FORGOTTEN);
    CHECK_EQ(again(6), DEDUP_FORGOTTEN);
    CHECK_EQ(again(65), DEDUP_DONE);
    CHECK_EQ(again(70), DEDUP_DONE);
    CHECK_EQ(again(7), DEDUP_NEW); /* above all that is not known any more */
    dedup_cancel(c, 0, 7);
    down();
}

int main(int argc, char **argv) {
    RUN(a_repeated_sequence_has_the_first_result);
    RUN(a_sequence_in_progress_is_not_begun_again_until_it_is_cancelled);
    RUN(sequences_may_arrive_out_of_order_within_the_window);
    RUN(a_client_forgotten_early_is_not_let_make_a_change_twice);
    RUN(a_first_request_that_was_lost_on_the_way_is_made_when_it_comes_again);
    RUN(with_no_room_left_windows_stay_short_and_say_so);
    RUN(clients_gone_for_long_leave_no_memory_behind);
    RUN(a_shard_that_is_gone_takes_its_windows_with_it);
    RUN(a_retry_of_what_an_earlier_owner_was_sent_is_not_made);
    RUN(a_repeated_sequence_has_the_first_value_too);
    RUN(what_another_owner_made_is_answered_and_without_room_it_is_in_doubt);
    RUN(what_another_owner_made_out_of_order_is_not_made_again_where_there_is_no_room_for_it);
    return check_end(argc, argv);
}
