/* replica_test.c: of the rules of replication (native/replication/rules/replica.h), what a search of interleavings does not
 * show: arithmetic, bounds, and that what was refused may be asked for again. */
#include "../../replication/rules/replica.h"
#include "../check.h"

enum { OTHER = 7, THIRD = 8 };

static replica_backup own;
static replica_owner o;

static void lead(uint32_t epoch, uint64_t prepared) {
    own = (replica_backup){ .epoch = epoch - 1, .prepared = prepared };
    replica_config c = { .epoch = epoch, .config = 10, .min_in_sync = 1, .peers = 1, .id = { OTHER } };
    replica_lead(&o, &own, &c);
}
static bool acked(uint64_t id, uint32_t epoch, uint64_t prepared) {
    return replica_acked(&o, id, &(replica_ack){ epoch, prepared }, 0);
}

TEST(an_acknowledgement_counts_of_this_epoch_and_of_records_that_there_are) {
    lead(3, 5);
    CHECK(!acked(OTHER, 2, 5));
    CHECK(!acked(OTHER, 3, 6));
    CHECK(!acked(THIRD, 3, 5));
    CHECK_EQ(replica_commit(&o), 0);
    CHECK(acked(OTHER, 3, 4));
    CHECK_EQ(replica_commit(&o), 4);
    CHECK(acked(OTHER, 3, 2)); /* late */
    CHECK_EQ(replica_commit(&o), 4);
}

/* Else what it has there would not be acknowledged, and its new owner would wait for it. */
TEST(a_backup_drops_what_its_new_owner_has_not) {
    replica_backup b = { .epoch = 2, .prepared = 5, .committed = 3 };
    CHECK(!replica_follow(&b, 1, 9));
    CHECK(replica_follow(&b, 3, 4));
    CHECK_EQ(b.prepared, 4);
    CHECK(replica_follow(&b, 3, 3)); /* the same owner again */
    CHECK_EQ(b.prepared, 4);
    CHECK(replica_follow(&b, 4, 9));
    CHECK_EQ(b.prepared, 4);
}

TEST(a_new_owner_serves_when_every_copy_in_sync_has_acknowledged_in_its_epoch) {
    own = (replica_backup){ .epoch = 2, .prepared = 5, .committed = 4 };
    replica_config c = { .epoch = 3, .config = 10, .min_in_sync = 1, .peers = 2, .id = { OTHER, THIRD } };
    replica_lead(&o, &own, &c);
    CHECK(!replica_took_over(&o, &own, 0));
    CHECK(acked(OTHER, 3, 5));
    CHECK(!acked(THIRD, 2, 5));
    CHECK(!replica_took_over(&o, &own, 0));
    c = (replica_config){ .epoch = 3, .config = 11, .min_in_sync = 1, .peers = 1, .id = { OTHER } };
    replica_configure(&o, &c);              /* it is gone: nobody waits for it */
    CHECK(!replica_took_over(&o, &own, 0)); /* what came with the shard has not taken effect */
    CHECK_EQ(replica_commit(&o), 5);
    CHECK(replica_took_over(&o, &own, 0));
}

TEST(a_window_that_is_full_takes_no_records_until_some_are_committed) {
    lead(2, 0);
    for (int i = 0; i < REPLICA_WINDOW; i++) {
        CHECK(replica_admits(&o));
        replica_draw(&o);
    }
    CHECK(!replica_admits(&o));
    CHECK(acked(OTHER, 2, 1));
    CHECK_EQ(replica_commit(&o), 1);
    CHECK(replica_admits(&o));
}

TEST(an_addition_that_the_metadata_refused_is_asked_for_again) {
    lead(2, 0);
    CHECK(replica_join(&o, THIRD));
    CHECK(!replica_join(&o, THIRD));
    CHECK(!replica_propose(&o, THIRD, 100));
    CHECK(!replica_require(&o, THIRD, 100)); /* it does not follow yet */
    CHECK(acked(THIRD, 2, 0));
    CHECK(replica_require(&o, THIRD, 100));
    CHECK(!replica_propose(&o, THIRD, 99));
    CHECK(replica_propose(&o, THIRD, 100));
    replica_config c = { .epoch = 2, .config = 11, .min_in_sync = 1, .peers = 1, .id = { OTHER } };
    replica_configure(&o, &c);
    CHECK(replica_require(&o, THIRD, 200));
    CHECK(replica_propose(&o, THIRD, 200));
    c = (replica_config){ .epoch = 2, .config = 12, .min_in_sync = 1, .peers = 2, .id = { OTHER, THIRD } };
    replica_configure(&o, &c);
    CHECK_EQ(o.in_sync, 3);
    replica_draw(&o);
    CHECK(acked(OTHER, 2, 1));
    CHECK_EQ(replica_commit(&o), 0);
    CHECK(acked(THIRD, 2, 1));
    CHECK_EQ(replica_commit(&o), 1);
}

/* Under the numbers of an epoch that it has missed, it may have records of an owner before. */
TEST(who_joins_goes_on_from_the_epoch_before_and_no_earlier_one) {
    own = (replica_backup){ .epoch = 6, .prepared = 5, .committed = 4 };
    replica_config c = { .epoch = 7,
                         .config = 10,
                         .min_in_sync = 1,
                         .peers = 1,
                         .id = { OTHER },
                         .joining = 1,
                         .joining_id = { THIRD },
                         .eligible = 1,
                         .eligible_id = { 9 } };
    replica_lead(&o, &own, &c);
    CHECK(replica_goes_on(&o, THIRD, 7) && replica_goes_on(&o, THIRD, 6) && replica_goes_on(&o, 9, 6));
    CHECK(!replica_goes_on(&o, THIRD, 5) && !replica_goes_on(&o, 9, 5));
    CHECK(replica_goes_on(&o, OTHER, 2));
    CHECK(!replica_goes_on(&o, OTHER, 8) && !replica_goes_on(&o, 30, 6));
}

TEST(there_is_room_for_as_many_peers_as_a_config_names) {
    lead(2, 0);
    for (uint64_t id = 20; id < 20 + REPLICA_PEERS - 1; id++) CHECK(replica_join(&o, id));
    CHECK(!replica_join(&o, 30));
}

/* Record 4 of epoch 1 was logged, and dropped: that of epoch 2 is another. */
TEST(what_is_logged_counts_in_its_own_epoch_only) {
    replica_backup b = { .epoch = 1, .prepared = 5, .log = { .kept = 1, .epoch = 1, .logged = 5 } };
    replica_ack a;
    CHECK(replica_acknowledges(&b, 0, &a) && a.prepared == 5);
    CHECK(replica_follow(&b, 2, 3));
    replica_appended(&b);
    CHECK(!replica_acknowledges(&b, 0, &a));
    CHECK_EQ(replica_on_commit_index(&b, 2, 4), 0);
    replica_logged(&b.log, 2, 4, 0); /* the beginning */
    CHECK(replica_acknowledges(&b, 0, &a) && a.prepared == 3);
    CHECK_EQ(replica_on_commit_index(&b, 2, 4), 3);
    replica_logged(&b.log, 2, 4, 1);
    CHECK(replica_acknowledges(&b, 0, &a) && a.prepared == 4);
    CHECK_EQ(replica_on_commit_index(&b, 2, 4), 4);
    own = b;
    replica_config c = { .epoch = 3, .config = 10, .min_in_sync = 1 };
    replica_lead(&o, &own, &c);
    replica_draw(&o);
    CHECK_EQ(replica_commit(&o), 4);
    replica_logged(&o.log, 3, 5, 0);
    CHECK_EQ(replica_commit(&o), 4);
    replica_logged(&o.log, 3, 5, 1);
    CHECK_EQ(replica_commit(&o), 5);
    replica_step_down(&o, &own);
    CHECK(own.log.epoch == 3 && own.log.logged == 5);
    own = replica_copied(3, 5); /* anew: its log has nothing of that */
    own.log.kept = 1;
    CHECK(!replica_acknowledges(&own, 0, &a));
    CHECK_EQ(replica_on_commit_index(&own, 3, 5), 5);
}

TEST(what_is_buffered_counts_in_its_own_epoch_only) {
    own = (replica_backup){ .log = { .kept = 1 } };
    replica_config c = { .epoch = 1, .config = 10, .min_in_sync = 1, .peers = 1, .id = { OTHER } };
    replica_lead(&o, &own, &c);
    replica_logged(&o.log, 1, 1, 0);
    replica_draw(&o);
    o.log.buffered = 1;
    CHECK_EQ(replica_commit(&o), 0); /* OTHER is waited for */
    replica_step_down(&o, &own);
    CHECK(replica_follow(&own, 2, 0)); /* which has not got the record */
    c = (replica_config){ .epoch = 3, .config = 12, .min_in_sync = 1, .alone = 1 };
    replica_lead(&o, &own, &c);
    replica_draw(&o);
    CHECK_EQ(replica_commit(&o), 0);
    replica_logged(&o.log, 3, 1, 0);
    CHECK_EQ(replica_commit(&o), 0); /* another record 1, which is in no buffer yet */
    o.log.buffered = 1;
    CHECK_EQ(replica_commit(&o), 1);
}

TEST(what_is_buffered_counts_at_a_backup_once_its_epoch_is_on_the_disk) {
    replica_ack a;
    replica_backup b = (replica_backup){ .epoch = 1, .prepared = 3, .log = { .kept = 1, .buffered = 3 } };
    CHECK(!replica_acknowledges(&b, 0, &a));
    CHECK_EQ(replica_on_commit_index(&b, 1, 3), 0);
    replica_logged(&b.log, 1, 1, 0);
    CHECK(replica_acknowledges(&b, 0, &a) && a.prepared == 0);
    b.log.buffered = 2;
    CHECK(replica_acknowledges(&b, 0, &a) && a.prepared == 2);
    CHECK_EQ(replica_on_commit_index(&b, 1, 3), 2);
    CHECK(replica_follow(&b, 2, 2)); /* its owner lacks what is prepared behind that */
    CHECK(!replica_acknowledges(&b, 0, &a));
}

TEST(an_owner_whose_copy_goes_relies_on_its_disk) {
    replica_config c = { .epoch = 1, .config = 10, .min_in_sync = 1, .peers = 1, .id = { OTHER } };
    own = (replica_backup){ .log = { .kept = 1 } };
    replica_lead(&o, &own, &c);
    replica_logged(&o.log, 1, 1, 0);
    for (int i = 0; i < 3; i++) replica_draw(&o);
    CHECK(replica_acked(&o, OTHER, &(replica_ack){ 1, 3 }, 0));
    o.log.buffered = 1;
    CHECK_EQ(replica_commit(&o), 1); /* both have it */
    CHECK(!replica_is_on_disk(&o));
    replica_rely_on_disk(&o);
    o.log.buffered = 2;
    CHECK_EQ(replica_commit(&o), 1);
    replica_logged(&o.log, 1, 1, 1);
    CHECK(replica_is_on_disk(&o));
    c.config = 11;
    replica_configure(&o, &c); /* it stays */
    CHECK_EQ(replica_commit(&o), 2);
    c = (replica_config){ .epoch = 1, .config = 12, .min_in_sync = 1 };
    replica_configure(&o, &c);
    o.log.buffered = 3;
    CHECK_EQ(replica_commit(&o), 2); /* alone */
    replica_logged(&o.log, 1, 2, 2);
    CHECK_EQ(replica_commit(&o), 3);
}

/* The owner counts from when it asked, the backup from when it granted, each by a clock that may be wrong by the drift:
 * of whatever lies between, the backup's end is never earlier. */
TEST(a_lease_ends_for_its_owner_before_it_ends_for_the_backup) {
    static const uint64_t lease = 250000000;
    static const uint32_t drift[] = { 0, 1, 200, 100000 };
    for (int i = 0; i < 4; i++) {
        uint64_t at_owner = replica_lease_end(1000, lease, drift[i]) - 1000;
        uint64_t at_backup = replica_grant_end(1000, lease, drift[i]) - 1000;
        /* the owner's clock is slow, the backup's is fast */
        CHECK(at_owner * 1000000 / (1000000 - drift[i]) <= lease + 2);
        CHECK(at_backup * 1000000 / (1000000 + drift[i]) >= lease - 2);
    }
}

int main(int argc, char **argv) {
    RUN(an_acknowledgement_counts_of_this_epoch_and_of_records_that_there_are);
    RUN(a_backup_drops_what_its_new_owner_has_not);
    RUN(a_new_owner_serves_when_every_copy_in_sync_has_acknowledged_in_its_epoch);
    RUN(a_window_that_is_full_takes_no_records_until_some_are_committed);
    RUN(an_addition_that_the_metadata_refused_is_asked_for_again);
    RUN(who_joins_goes_on_from_the_epoch_before_and_no_earlier_one);
    RUN(there_is_room_for_as_many_peers_as_a_config_names);
    RUN(what_is_logged_counts_in_its_own_epoch_only);
    RUN(what_is_buffered_counts_in_its_own_epoch_only);
    RUN(what_is_buffered_counts_at_a_backup_once_its_epoch_is_on_the_disk);
    RUN(an_owner_whose_copy_goes_relies_on_its_disk);
    RUN(a_lease_ends_for_its_owner_before_it_ends_for_the_backup);
    return check_end(argc, argv);
}
