/* ways_test.c: in which order, and for how long, an uplink tries the addresses of an owner. */
#include <string.h>
#include "../check.h"
#include "../../replication/ways.h"
#include "../../dataplane/worker.h"

static const uplink_address TWO_DEVICES[] = { { FAB_VERBS, 0, "10.0.0.1:1" },
                                              { FAB_VERBS, 1, "10.0.1.1:1" },
                                              { FAB_TCP, 0, "10.0.0.1:2" } };
enum { ALL = 3 };
static ways y;
static bool vain;

/* An address, and how long it may take to answer. */
static void expect(uint32_t at, uint64_t ms) {
    CHECK_EQ(y.at, at);
    CHECK_EQ(ways_attempt_ms(&y), ms);
}
/* A round of them, in which nobody answers. */
static void all_in_vain(uint64_t first_ms) {
    expect(0, first_ms);
    CHECK(ways_next(&y, &vain));
    expect(1, 3000);
    CHECK(ways_next(&y, &vain));
    expect(2, 3000);
    CHECK(!ways_next(&y, &vain));
}

TEST(an_address_with_another_device_behind_it_is_soon_given_up_in_the_first_round) {
    ways_init(&y, TWO_DEVICES, ALL);
    all_in_vain(300);
    CHECK(!vain); /* the first may have needed longer */
    all_in_vain(3000);
    CHECK(vain);
    expect(0, 3000);
    ways_up(&y);
    ways_lost(&y);
    all_in_vain(300);
    CHECK(!vain);
    all_in_vain(3000);
    CHECK(vain);
}

TEST(a_round_in_which_somebody_answered_is_not_in_vain) {
    ways_init(&y, TWO_DEVICES, ALL);
    all_in_vain(300);
    y.answered = true;
    all_in_vain(3000);
    CHECK(!vain);
    all_in_vain(3000);
    CHECK(vain);
}

TEST(addresses_of_one_device_have_their_whole_time) {
    const uplink_address of_one[] = { { FAB_TCP, 0, "10.0.0.1:1" }, { FAB_TCP, 0, "10.0.1.1:1" } };
    ways_init(&y, of_one, 2);
    expect(0, 3000);
    CHECK(ways_next(&y, &vain));
    expect(1, 3000);
    CHECK(!ways_next(&y, &vain) && vain);
}

TEST(a_connection_that_is_lost_is_made_again_over_the_first_device_of_its_provider) {
    ways_init(&y, TWO_DEVICES, ALL);
    CHECK(ways_next(&y, &vain));
    ways_up(&y);
    ways_lost(&y);
    expect(0, 300);
    CHECK(ways_next(&y, &vain) && ways_next(&y, &vain));
    ways_up(&y);
    ways_lost(&y);
    expect(2, 3000);
}

TEST(ways_are_the_same_whose_addresses_are) {
    uplink_address other[ALL];
    memcpy(other, TWO_DEVICES, sizeof other);
    ways_init(&y, TWO_DEVICES, ALL);
    CHECK(ways_same(&y, other, ALL));
    CHECK(!ways_same(&y, other, ALL - 1));
    other[1].provider = FAB_TCP;
    CHECK(!ways_same(&y, other, ALL));
    memcpy(other, TWO_DEVICES, sizeof other);
    strcpy(other[2].text, "10.0.0.2:2");
    CHECK(!ways_same(&y, other, ALL));
    memcpy(other, TWO_DEVICES, sizeof other);
    other[1].device = 2;
    CHECK(!ways_same(&y, other, ALL));
}

TEST(more_addresses_than_there_is_room_for_are_left_out) {
    uplink_address many[UPLINK_ADDRESSES + 1] = { { FAB_TCP, 0, "a" } };
    ways_init(&y, many, UPLINK_ADDRESSES + 1);
    CHECK_EQ(y.addresses, UPLINK_ADDRESSES);
    CHECK(ways_same(&y, many, UPLINK_ADDRESSES + 1));
}

TEST(each_device_of_the_worker_is_tried_once_for_an_address) {
    static worker w;
    fab_cq *cq = (fab_cq *)&w; /* nobody uses it */
    ways_init(&y, TWO_DEVICES, ALL);
    w.cq[fab_place(FAB_VERBS, 0)] = w.cq[fab_place(FAB_VERBS, 2)] = cq;
    CHECK_EQ(ways_place(&y), fab_place(FAB_VERBS, 0));
    CHECK(ways_other_device(&y, &w));
    CHECK_EQ(ways_place(&y), fab_place(FAB_VERBS, 2));
    CHECK(!ways_other_device(&y, &w));
    CHECK(ways_next(&y, &vain));
    CHECK(ways_other_device(&y, &w));
}

int main(int argc, char **argv) {
    RUN(an_address_with_another_device_behind_it_is_soon_given_up_in_the_first_round);
    RUN(a_round_in_which_somebody_answered_is_not_in_vain);
    RUN(addresses_of_one_device_have_their_whole_time);
    RUN(a_connection_that_is_lost_is_made_again_over_the_first_device_of_its_provider);
    RUN(ways_are_the_same_whose_addresses_are);
    RUN(more_addresses_than_there_is_room_for_are_left_out);
    RUN(each_device_of_the_worker_is_tried_once_for_an_address);
    return check_end(argc, argv);
}
