/* fabric_verbs_requests_test.c: peers that ask for a connection over verbs and wait for the completion queue's thread:
 * how many, and who gives way. The connection manager's library is the test's, so no device is needed. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "../check.h"
#include "../../fabric/verbs/verbs.h"

enum { ROOM = 512, OF_ADDRESS = 256 }; /* as provider.h says */
enum { EXTRA = 3, PEERS = ROOM + EXTRA };

static struct rdma_cm_id peer[PEERS];
static int rejected[PEERS], destroyed[PEERS];
static struct ibv_context device;

static int reject(struct rdma_cm_id *id, const void *data, uint8_t bytes) {
    (void)data, (void)bytes;
    rejected[id - peer]++;
    return 0;
}
static int destroy(struct rdma_cm_id *id) {
    destroyed[id - peer]++;
    return 0;
}
static const verbs_lib lib = { .rdma_reject = reject, .rdma_destroy_id = destroy };

static verbs_cq *queue(void) {
    verbs_domain *d = calloc(1, sizeof *d);
    verbs_cq *cq = calloc(1, sizeof *cq);
    d->v = &lib;
    d->device = &device; /* max_conns is 0: a peer that is looked at is turned away */
    cq->d = d;
    cq->last_event = &cq->first_event;
    cq->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&cq->lock, NULL);
    pthread_mutex_init(&d->lock, NULL);
    return cq;
}
static void end(verbs_cq *cq) {
    pthread_mutex_destroy(&cq->lock);
    pthread_mutex_destroy(&cq->d->lock);
    close(cq->wake_fd);
    free(cq->d);
    free(cq);
}

static void post(verbs_cq *cq, enum rdma_cm_event_type type, int from, uint64_t address) {
    verbs_event *e = calloc(1, sizeof *e);
    e->type = type;
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        peer[from].verbs = &device;
        e->id = &peer[from];
        e->from = address;
    }
    verbs_post_event(cq, e);
}
/* Of two addresses in turn, so that neither has more than half of the room. */
static void ask(verbs_cq *cq, int from) { post(cq, RDMA_CM_EVENT_CONNECT_REQUEST, from, (uint64_t)from % 2); }
static int turned_away(int from, int to) {
    int n = 0;
    for (int i = from; i < to; i++) {
        CHECK_EQ(rejected[i], destroyed[i]);
        n += destroyed[i];
    }
    return n;
}

TEST(of_peers_that_ask_faster_than_they_are_looked_at_the_oldest_give_way) {
    verbs_cq *cq = queue();
    post(cq, RDMA_CM_EVENT_ADDR_CHANGE, 0, 0); /* events of connections are no one's to evict */
    for (int i = 0; i < ROOM; i++) ask(cq, i);
    CHECK_EQ(turned_away(0, PEERS), 0);
    for (int i = ROOM; i < PEERS; i++) ask(cq, i);
    CHECK_EQ(turned_away(0, EXTRA), EXTRA);
    CHECK_EQ(turned_away(EXTRA, PEERS), 0);
    int waiting = 0;
    for (const verbs_event *e = cq->first_event; e; e = e->next) waiting += e->id != NULL;
    CHECK_EQ(waiting, ROOM);
    CHECK_EQ((int)cq->first_event->type, (int)RDMA_CM_EVENT_ADDR_CHANGE);
    verbs_events(cq);
    CHECK(cq->first_event == NULL);
    CHECK_EQ(turned_away(0, PEERS), PEERS);
    end(cq);
}

static void forget(void) {
    for (int i = 0; i < PEERS; i++) rejected[i] = destroyed[i] = 0;
}

TEST(peers_of_one_address_end_none_of_another) {
    enum { HONEST = 1 };
    verbs_cq *cq = queue();
    forget();
    post(cq, RDMA_CM_EVENT_CONNECT_REQUEST, 0, HONEST);
    for (int i = 1; i < PEERS; i++) post(cq, RDMA_CM_EVENT_CONNECT_REQUEST, i, 7);
    CHECK_EQ(turned_away(0, 1), 0);
    CHECK_EQ(turned_away(1, PEERS - OF_ADDRESS), PEERS - OF_ADDRESS - 1); /* the oldest of the others */
    CHECK_EQ(turned_away(PEERS - OF_ADDRESS, PEERS), 0);
    verbs_events(cq);
    CHECK_EQ(turned_away(0, PEERS), PEERS);
    end(cq);
}

/* So that no number of addresses takes more than the room. */
TEST(peers_of_many_addresses_have_a_bound_together) {
    verbs_cq *cq = queue();
    forget();
    for (int i = 0; i < PEERS; i++) post(cq, RDMA_CM_EVENT_CONNECT_REQUEST, i, (uint64_t)i);
    CHECK_EQ(turned_away(0, EXTRA), EXTRA);
    CHECK_EQ(turned_away(EXTRA, PEERS), 0);
    verbs_events(cq);
    end(cq);
}

TEST(a_peer_that_was_looked_at_takes_no_place) {
    verbs_cq *cq = queue();
    forget();
    for (int i = 0; i < PEERS; i++) {
        ask(cq, i);
        verbs_events(cq);
        CHECK_EQ(turned_away(i, PEERS), 1);
    }
    for (int i = 0; i < ROOM; i++) ask(cq, i);
    CHECK_EQ(turned_away(0, PEERS), PEERS);
    verbs_events(cq);
    end(cq);
}

int main(int argc, char **argv) {
    RUN(of_peers_that_ask_faster_than_they_are_looked_at_the_oldest_give_way);
    RUN(peers_of_one_address_end_none_of_another);
    RUN(peers_of_many_addresses_have_a_bound_together);
    RUN(a_peer_that_was_looked_at_takes_no_place);
    return check_end(argc, argv);
}
