/* dataplane_handover_test.c: when an owner says that its shard is handed over: what must be over by then, and who must
 * have all. Handovers among faults: failover.c. */
#include <semaphore.h>
#include "links_rig.h"

/* What the owner's worker has when it says so. */
static struct {
    sem_t said;
    fkv_status status;
    uint64_t at_ns;
} told;
static void on_told(void *ctx, fkv_status status, void *result) {
    (void)ctx;
    told.status = status;
    told.at_ns = fkv_now_ns();
    free(result);
    sem_post(&told.said);
}
static void hand_over(void) {
    sem_init(&told.said, 0, 0);
    dataplane_hand_over(servers[OWNER].r.d, number, id_of(NEXT), on_told, NULL);
}
static bool is_told(void) {
    int posted;
    sem_getvalue(&told.said, &posted);
    return posted > 0;
}
static void wait_told(void) {
    while (sem_wait(&told.said) != 0) {}
}

static struct { uint64_t leases_ns, longest_ns, last, committed, heir; } has;
static void do_look_at(worker *w, void *ctx) {
    (void)ctx;
    const shard *s = here(w);
    has.leases_ns = s->lease_until_ns;
    has.longest_ns = s->repl.lease_most_ns;
    has.last = s->repl.owner.last;
    has.committed = s->repl.owner.committed;
    has.heir = s->repl.owner.peer[replica_place(&s->repl.owner, id_of(NEXT))].prepared;
}
static void look_at_owner(void) { visit_server(OWNER, do_look_at, &(errand){ 0 }); }
static void lease(void) {
    fkv_request q = raw_request(&c, FKV_OP_LEASE, "");
    CHECK_EQ(raw_ask(&c, &q, "", NULL, 0, NULL), FKV_OK);
}

TEST(it_is_told_when_every_lease_is_over_and_the_heir_has_all) {
    up();
    for (uint32_t i = 0; i < 50; i++) CHECK_EQ(raw_put(&c, key_at(i), &i, sizeof i), FKV_OK);
    lease();
    hand_over();
    wait_told();
    CHECK_EQ(told.status, FKV_OK);
    look_at_owner();
    CHECK(has.leases_ns > 0 && told.at_ns >= has.leases_ns);
    CHECK(has.longest_ns > 0 && has.longest_ns <= 4000000); /* of which clients wait for the rest */
    CHECK_EQ(has.committed, 50);
    CHECK_EQ(has.heir, 50);
    down();
}

/* A worker that stands until it is let go. */
static sem_t stands, goes;
static void do_stand(worker *w, void *ctx) {
    (void)w, (void)ctx;
    sem_post(&stands);
    while (sem_wait(&goes) != 0) {}
}
static void *stand(void *ctx) {
    visit_server(NEXT, do_stand, ctx);
    return NULL;
}

TEST(it_is_not_told_while_the_heir_lacks_a_change) {
    pthread_t thread;
    up();
    CHECK_EQ(raw_put(&c, "alpha", "one", 3), FKV_OK);
    sem_init(&stands, 0, 0);
    sem_init(&goes, 0, 0);
    CHECK_EQ(pthread_create(&thread, NULL, stand, &(errand){ 0 }), 0);
    while (sem_wait(&stands) != 0) {}
    uint64_t id = raw_put_begin(&c, "alpha", "two", 3);
    do look_at_owner();
    while (has.last < 2);
    hand_over();
    /* Until nothing but the heir is missing: no lease is left, and the worker has looked at that. */
    do look_at_owner();
    while (has.leases_ns > fkv_now_ns());
    for (int i = 0; i < 3; i++) look_at_owner();
    CHECK(!is_told());
    CHECK_EQ(has.heir, 1);
    sem_post(&goes);
    pthread_join(thread, NULL);
    wait_told();
    CHECK(told.status == FKV_OK || told.status == FKV_TIMEOUT); /* on a machine that let it wait for too long */
    CHECK_EQ(raw_end(&c, id), FKV_OK);
    down();
}

int main(int argc, char **argv) {
    RUN(it_is_told_when_every_lease_is_over_and_the_heir_has_all);
    RUN(it_is_not_told_while_the_heir_lacks_a_change);
    return check_end(argc, argv);
}
