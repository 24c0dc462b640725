/* dataplane_failure_detector_test.c: when a backup takes its owner for gone, over each provider. */
#include <semaphore.h>
#include "links_rig.h"

enum { SHORT_MS = 250 };

/* What NEXT has said: how often that its owner is gone, and that it is not. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t said = PTHREAD_COND_INITIALIZER;
static uint32_t gone, back;
static dataplane_suspicion last;
static uint64_t last_ns;
static void on_suspicion(void *ctx, const dataplane_suspicion *o) {
    CHECK(ctx == &servers[NEXT].r);
    pthread_mutex_lock(&lock);
    if (o->gone) {
        last = *o;
        last_ns = fkv_now_ns();
    }
    ++*(o->gone ? &gone : &back);
    pthread_cond_broadcast(&said);
    pthread_mutex_unlock(&lock);
}
static uint32_t counted(const uint32_t *count) {
    pthread_mutex_lock(&lock);
    uint32_t n = *count;
    pthread_mutex_unlock(&lock);
    return n;
}
static void more_than(const uint32_t *count, uint32_t before) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(check_patience_ms() / 1000) + 1;
    pthread_mutex_lock(&lock);
    while (*count <= before) CHECK(pthread_cond_timedwait(&said, &lock, &until) == 0);
    pthread_mutex_unlock(&lock);
}

/* A worker that stands still until it is let go. */
typedef struct still {
    pthread_t thread;
    int server;
    sem_t is, goes;
} still;
static void do_stand(worker *w, void *ctx) {
    (void)w;
    still *s = ctx;
    sem_post(&s->is);
    while (sem_wait(&s->goes) != 0) {}
}
static void *stand(void *ctx) {
    still *s = ctx;
    rig_visit(&servers[s->server].r, do_stand, s);
    return NULL;
}
static void stands(still *s, int server) {
    s->server = server;
    sem_init(&s->is, 0, 0);
    sem_init(&s->goes, 0, 0);
    CHECK_EQ(pthread_create(&s->thread, NULL, stand, s), 0);
    while (sem_wait(&s->is) != 0) {}
}
static void goes_on(still *s) {
    sem_post(&s->goes);
    pthread_join(s->thread, NULL);
}

static void up_with(uint32_t lease_ms) {
    gone = back = 0;
    copies_lease_ms = lease_ms;
    copies_on_suspicion = on_suspicion;
    up();
    UNTIL(NEXT, seen.granted_ns > fkv_now_ns());
}

/* ---- */

/* Long before its lease is over. */
TEST(a_copy_whose_owner_is_gone_says_so) {
    up_with(COPY_LEASE_MS);
    for (uint32_t i = 0; i < 5; i++) {
        uint64_t id = raw_put_begin(&c, "alpha", &i, sizeof i);
        CHECK_EQ(raw_end(&c, id), FKV_OK);
    }
    CHECK_EQ(counted(&gone), 0);
    raw_down(&c);
    server_dies(OWNER);
    more_than(&gone, 0);
    CHECK_EQ(last.shard, number);
    CHECK_EQ(last.id, id_of(NEXT));
    CHECK_EQ(last.prepared, 5);
    CHECK_EQ(counted(&gone), 1);
    follow(OWNER, NEXT); /* asked to go on with it, it says so again */
    more_than(&gone, 1);
    servers_down();
}

TEST(a_copy_whose_owner_stands_still_says_so_when_its_last_lease_is_over) {
    still owner;
    up_with(SHORT_MS);
    for (uint32_t i = 0; i < 2; i++) {
        stands(&owner, OWNER);
        uint32_t told = counted(&gone), were = counted(&back);
        if (told == were) more_than(&gone, told); /* else it has been told, on a machine that is slow enough */
        look(NEXT);
        CHECK(last_ns >= seen.granted_ns);
        goes_on(&owner);
        more_than(&back, were);
    }
    down();
}

/* As after a host was suspended: the lease was over long ago. */
TEST(who_stood_still_does_not_take_its_owner_for_gone) {
    still owner;
    up_with(COPY_LEASE_MS);
    stands(&owner, OWNER);
    leases_end();
    look(NEXT); /* it has looked, and heard nothing */
    goes_on(&owner);
    UNTIL(NEXT, seen.granted_ns > fkv_now_ns());
    CHECK_EQ(counted(&gone), 0);
    down();
}

static void tests(void) {
    RUN(a_copy_whose_owner_is_gone_says_so);
    RUN(a_copy_whose_owner_stands_still_says_so_when_its_last_lease_is_over);
    RUN(who_stood_still_does_not_take_its_owner_for_gone);
}

int main(int argc, char **argv) { return rig_main(argc, argv, &copies_over, tests); }
