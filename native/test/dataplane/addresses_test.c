/* addresses_test.c: in which order, and for how long, an owner_link tries the addresses of an owner. */
#include <string.h>
#include "../check.h"
#include "../../replication/addresses.h"
#include "../../dataplane/worker.h"

static const link_address TWO_DEVICES[] = { { FAB_VERBS, 0, "10.0.0.1:1" },
                                            { FAB_VERBS, 1, "10.0.1.1:1" },
                                            { FAB_TCP, 0, "10.0.0.1:2" } };
enum { ALL = 3 };
static link_addresses y;
static bool vain;

/* An address, and how long it may take to answer. */
static void expect(uint32_t at, uint64_t ms) {
    CHECK_EQ(y.at, at);
    CHECK_EQ(addresses_attempt_ms(&y), ms);
}
/* A round of them, in which nobody answers. */
static void all_in_vain(uint64_t first_ms) {
    expect(0, first_ms);
    CHECK(addresses_next(&y, &vain));
    expect(1, 3000);
    CHECK(addresses_next(&y, &vain));
    expect(2, 3000);
    CHECK(!addresses_next(&y, &vain));
}

TEST(an_address_with_another_device_behind_it_is_soon_given_up_in_the_first_round) {
    addresses_init(&y, TWO_DEVICES, ALL);
    all_in_vain(300);
    CHECK(!vain); /* the first may have needed longer */
    all_in_vain(3000);
    CHECK(vain);
    expect(0, 3000);
    addresses_up(&y);
    addresses_lost(&y);
    all_in_vain(300);
    CHECK(!vain);
    all_in_vain(3000);
    CHECK(vain);
}

TEST(a_round_in_which_somebody_answered_is_not_in_vain) {
    addresses_init(&y, TWO_DEVICES, ALL);
    all_in_vain(300);
    y.answered = true;
    all_in_vain(3000);
    CHECK(!vain);
    all_in_vain(3000);
    CHECK(vain);
}

TEST(addresses_of_one_device_have_their_whole_time) {
    const link_address of_one[] = { { FAB_TCP, 0, "10.0.0.1:1" }, { FAB_TCP, 0, "10.0.1.1:1" } };
    addresses_init(&y, of_one, 2);
    expect(0, 3000);
    CHECK(addresses_next(&y, &vain));
    expect(1, 3000);
    CHECK(!addresses_next(&y, &vain) && vain);
}

TEST(a_connection_that_is_lost_is_made_again_over_the_first_device_of_its_provider) {
    addresses_init(&y, TWO_DEVICES, ALL);
    CHECK(addresses_next(&y, &vain));
    addresses_up(&y);
    addresses_lost(&y);
    expect(0, 300);
    CHECK(addresses_next(&y, &vain) && addresses_next(&y, &vain));
    addresses_up(&y);
    addresses_lost(&y);
    expect(2, 3000);
}

TEST(two_owners_are_the_same_whose_addresses_are) {
    link_address other[ALL];
    memcpy(other, TWO_DEVICES, sizeof other);
    addresses_init(&y, TWO_DEVICES, ALL);
    CHECK(addresses_same(&y, other, ALL));
    CHECK(!addresses_same(&y, other, ALL - 1));
    other[1].provider = FAB_TCP;
    CHECK(!addresses_same(&y, other, ALL));
    memcpy(other, TWO_DEVICES, sizeof other);
    strcpy(other[2].text, "10.0.0.2:2");
    CHECK(!addresses_same(&y, other, ALL));
    memcpy(other, TWO_DEVICES, sizeof other);
    other[1].device = 2;
    CHECK(!addresses_same(&y, other, ALL));
}

TEST(more_addresses_than_there_is_room_for_are_left_out) {
    link_address many[OWNER_LINK_ADDRESSES + 1] = { { FAB_TCP, 0, "a" } };
    addresses_init(&y, many, OWNER_LINK_ADDRESSES + 1);
    CHECK_EQ(y.addresses, OWNER_LINK_ADDRESSES);
    CHECK(addresses_same(&y, many, OWNER_LINK_ADDRESSES + 1));
}

TEST(each_device_of_the_worker_is_tried_once_for_an_address) {
    static worker w;
    fab_cq *cq = (fab_cq *)&w; /* nobody uses it */
    addresses_init(&y, TWO_DEVICES, ALL);
    w.cq[fab_place(FAB_VERBS, 0)] = w.cq[fab_place(FAB_VERBS, 2)] = cq;
    CHECK_EQ(addresses_place(&y), fab_place(FAB_VERBS, 0));
    CHECK(addresses_other_device(&y, &w));
    CHECK_EQ(addresses_place(&y), fab_place(FAB_VERBS, 2));
    CHECK(!addresses_other_device(&y, &w));
    CHECK(addresses_next(&y, &vain));
    CHECK(addresses_other_device(&y, &w));
}

int main(int argc, char **argv) {
    RUN(an_address_with_another_device_behind_it_is_soon_given_up_in_the_first_round);
    RUN(a_round_in_which_somebody_answered_is_not_in_vain);
    RUN(addresses_of_one_device_have_their_whole_time);
    RUN(a_connection_that_is_lost_is_made_again_over_the_first_device_of_its_provider);
    RUN(two_owners_are_the_same_whose_addresses_are);
    RUN(more_addresses_than_there_is_room_for_are_left_out);
    RUN(each_device_of_the_worker_is_tried_once_for_an_address);
    return check_end(argc, argv);
}
