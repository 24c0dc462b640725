/* dedup_test.c: no change is made twice, whatever was forgotten; and nothing is forgotten that is promised to be
 * remembered. */
#include "../check.h"
#include <stdlib.h>
#include <string.h>
#include "../../dataplane/dedup.h"
#include "../../wire/wire.h"

static const uint64_t IDLE_NS = (uint64_t)FKV_DEDUP_IDLE_MS * 1000000u;

static dedup_answer begin(dedup *d, dedup_client *c, uint64_t sequence, bool retry, uint64_t now, uint64_t *version) {
    void *op = d;
    fkv_status s;
    uint64_t v = 0;
    dedup_answer a = dedup_begin(d, c, 0, sequence, retry, now, &op, &s, &v);
    if (version) *version = v;
    return a;
}
static void change(dedup *d, dedup_client *c, uint64_t sequence) {
    CHECK_EQ(begin(d, c, sequence, false, 1, NULL), DEDUP_NEW);
    dedup_finish(c, 0, sequence, FKV_OK, sequence * 10);
}

TEST(a_repeated_sequence_has_the_first_result) {
    dedup d;
    uint64_t version;
    CHECK_EQ(dedup_init(&d, 1 << 20), 0);
    dedup_client *c = dedup_enter(&d, 7, 1);
    for (uint64_t s = 1; s <= 5000; s++) {
        change(&d, c, s);
        uint64_t oldest = s > FKV_DEDUP_WINDOW ? s - FKV_DEDUP_WINDOW + 1 : 1;
        CHECK_EQ(begin(&d, c, oldest, true, 1, &version), DEDUP_DONE);
        CHECK_EQ(version, oldest * 10);
        if (oldest > 1) CHECK_EQ(begin(&d, c, oldest - 1, true, 1, NULL), DEDUP_FORGOTTEN);
    }
    dedup_leave(&d, c, 1);
    CHECK(dedup_enter(&d, 7, IDLE_NS) == c); /* a new connection of the same client */
    CHECK_EQ(begin(&d, c, 5000, true, 1, &version), DEDUP_DONE);
    dedup_leave(&d, c, 1);
    dedup_free(&d);
}

TEST(a_sequence_in_progress_is_not_begun_again_until_it_is_cancelled) {
    dedup d;
    CHECK_EQ(dedup_init(&d, 1 << 20), 0);
    dedup_client *c = dedup_enter(&d, 7, 1);
    CHECK_EQ(begin(&d, c, 1, false, 1, NULL), DEDUP_NEW);
    CHECK_EQ(begin(&d, c, 1, true, 1, NULL), DEDUP_IN_PROGRESS);
    /* A whole window later its place is still its own. */
    for (uint64_t s = 2; s <= FKV_DEDUP_WINDOW; s++) change(&d, c, s);
    CHECK_EQ(begin(&d, c, FKV_DEDUP_WINDOW + 1, false, 1, NULL), DEDUP_NO_ROOM);
    CHECK_EQ(begin(&d, c, 1, true, 1, NULL), DEDUP_IN_PROGRESS);
    dedup_cancel(c, 0, 1);
    CHECK_EQ(begin(&d, c, 1, true, 1, NULL), DEDUP_NEW);
    dedup_finish(c, 0, 1, FKV_OK, 1);
    dedup_leave(&d, c, 1);
    dedup_free(&d);
}

TEST(sequences_may_arrive_out_of_order_within_the_window) {
    dedup d;
    CHECK_EQ(dedup_init(&d, 1 << 20), 0);
    dedup_client *c = dedup_enter(&d, 7, 1);
    for (uint64_t s = 1000; s >= 1; s--) change(&d, c, s);
    for (uint64_t s = 1; s <= 1000; s++) CHECK_EQ(begin(&d, c, s, true, 1, NULL), DEDUP_DONE);
    dedup_leave(&d, c, 1);
    dedup_free(&d);
}

TEST(a_client_forgotten_early_is_not_let_make_a_change_twice) {
    dedup d;
    CHECK_EQ(dedup_init(&d, 40 << 10), 0); /* room for two full windows */
    dedup_client *c = dedup_enter(&d, 1, 1);
    for (uint64_t s = 1; s <= 2000; s++) change(&d, c, s);
    dedup_leave(&d, c, 1000);
    for (uint64_t other = 2; other <= 20; other++) { /* each takes room, until the first is forgotten */
        dedup_client *o = dedup_enter(&d, other, 2000);
        for (uint64_t s = 1; s <= 2000; s++) change(&d, o, s);
        dedup_leave(&d, o, 2000);
    }
    CHECK(d.bytes <= d.bytes_max);
    c = dedup_enter(&d, 1, 3000);
    CHECK_EQ(begin(&d, c, 2000, true, 3000, NULL), DEDUP_FORGOTTEN);
    /* It goes on with new changes; retries of the old ones stay unknown. */
    CHECK_EQ(begin(&d, c, 2001, false, 3000, NULL), DEDUP_NEW);
    dedup_finish(c, 0, 2001, FKV_OK, 1);
    CHECK_EQ(begin(&d, c, 2000, true, 3000, NULL), DEDUP_FORGOTTEN);
    CHECK_EQ(begin(&d, c, 2001, true, 3000, NULL), DEDUP_DONE);
    dedup_leave(&d, c, 3000);
    dedup_free(&d);
}

TEST(a_first_request_that_was_lost_on_the_way_is_made_when_it_comes_again) {
    dedup d;
    CHECK_EQ(dedup_init(&d, 1 << 20), 0);
    dedup_client *c = dedup_enter(&d, 1, 1);
    CHECK_EQ(begin(&d, c, 1, true, 1, NULL), DEDUP_NEW);
    dedup_finish(c, 0, 1, FKV_OK, 1);
    dedup_leave(&d, c, 1);
    dedup_free(&d);
}

TEST(with_no_room_left_windows_stay_short_and_say_so) {
    dedup d;
    CHECK_EQ(dedup_init(&d, 4 << 10), 0);
    dedup_client *c = dedup_enter(&d, 1, 1);
    for (uint64_t s = 1; s <= 500; s++) change(&d, c, s);
    CHECK(d.bytes <= d.bytes_max);
    CHECK_EQ(begin(&d, c, 500, true, 1, NULL), DEDUP_DONE);
    CHECK_EQ(begin(&d, c, 1, true, 1, NULL), DEDUP_FORGOTTEN);
    dedup_leave(&d, c, 1);
    dedup_free(&d);
}

TEST(clients_gone_for_long_leave_no_memory_behind) {
    dedup d;
    CHECK_EQ(dedup_init(&d, 64 << 20), 0);
    for (uint64_t id = 1; id <= 1000; id++) {
        dedup_client *c = dedup_enter(&d, id * 0x9e3779b97f4a7c15u, 1);
        change(&d, c, 1);
        dedup_leave(&d, c, 1);
    }
    CHECK_EQ(d.clients, 1000);
    dedup_client *c = dedup_enter(&d, 5, IDLE_NS + 2);
    CHECK_EQ(d.clients, 1);
    dedup_leave(&d, c, 1);
    dedup_free(&d);
}

TEST(a_shard_that_is_gone_takes_its_windows_with_it) {
    dedup d;
    CHECK_EQ(dedup_init(&d, 1 << 20), 0);
    dedup_client *c = dedup_enter(&d, 1, 1);
    change(&d, c, 1);
    uint64_t bytes = d.bytes;
    dedup_drop_slot(&d, 0);
    CHECK(d.bytes < bytes);
    change(&d, c, 1);
    CHECK_EQ(d.bytes, bytes);
    dedup_leave(&d, c, 1);
    dedup_free(&d);
}

TEST(a_retry_of_what_an_earlier_owner_was_sent_is_not_made) {
    dedup d;
    CHECK_EQ(dedup_init(&d, 1 << 20), 0);
    CHECK_EQ(dedup_open_slot(&d, 3, true, 100), 0);
    dedup_client *c = dedup_enter(&d, 1, 100);
    void *op = &d;
    fkv_status status;
    uint64_t version;
    CHECK_EQ(dedup_begin(&d, c, 3, 7, true, 101, &op, &status, &version), DEDUP_FORGOTTEN);
    /* sent for the first time, so after 7 and 8 */
    CHECK_EQ(dedup_begin(&d, c, 3, 9, false, 102, &op, &status, &version), DEDUP_NEW);
    CHECK_EQ(dedup_begin(&d, c, 3, 8, true, 103, &op, &status, &version), DEDUP_FORGOTTEN);
    /* its first copy was sent here, and was lost */
    CHECK_EQ(dedup_begin(&d, c, 3, 10, true, 104, &op, &status, &version), DEDUP_NEW);
    /* Other slots, and a shard that has never had an owner, are not in doubt. */
    CHECK_EQ(dedup_begin(&d, c, 2, 7, true, 105, &op, &status, &version), DEDUP_NEW);
    CHECK_EQ(dedup_open_slot(&d, 4, false, 106), 0);
    CHECK_EQ(dedup_begin(&d, c, 4, 7, true, 107, &op, &status, &version), DEDUP_NEW);
    dedup_leave(&d, c, 108);
    dedup_free(&d);
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
    return check_end(argc, argv);
}
