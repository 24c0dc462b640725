/* fabric_verbs_device_test.c: a device that gives the number of a destroyed queue pair to the next one while
 * completions of the first are still in the completion queue, and takes in half of a chain, as soft-iWARP does. Device and
 * connection manager are the test's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../check.h"
#include "../../fabric/verbs/verbs.h"

enum { NUMBER = 17, TENANTS = 3, MESSAGE = 64, WAITING = 8 };

static struct ibv_wc waiting[WAITING];
static int waiting_count;
static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *wc) {
    (void)cq;
    int n = waiting_count < room ? waiting_count : room;
    memcpy(wc, waiting, (size_t)n * sizeof *wc);
    waiting_count -= n;
    memmove(waiting, waiting + n, (size_t)waiting_count * sizeof *wc);
    return n;
}
static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    (void)srq, (void)wr, (void)bad;
    return 0;
}
static struct ibv_context device = { .ops = { .poll_cq = poll_cq, .post_srq_recv = post_srq_recv } };

static struct ibv_qp queue_pairs[2];
static int made;
static int create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
    (void)pd, (void)attr;
    id->qp = &queue_pairs[made++];
    id->qp->qp_num = NUMBER;
    return 0;
}
static void destroy_qp(struct rdma_cm_id *id) { id->qp = NULL; }
static int set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t bytes) {
    (void)id, (void)level, (void)name, (void)value, (void)bytes;
    return 0;
}
static int disconnect(struct rdma_cm_id *id) {
    (void)id;
    return 0;
}
static const verbs_lib lib = { .rdma_create_qp = create_qp,
                               .rdma_destroy_qp = destroy_qp,
                               .rdma_disconnect = disconnect,
                               .rdma_set_option = set_option };

typedef struct rig {
    verbs_domain d;
    verbs_cq cq;
    struct ibv_cq device_cq;
    struct ibv_srq srq;
    struct ibv_mr mr;
    verbs_pd pds[TENANTS];
    verbs_pool pools[TENANTS];
    struct {
        verbs_buffer head;
        uint8_t bytes[MESSAGE];
    } buffers[TENANTS];
    struct rdma_cm_id ids[2];
} rig;

static rig *rig_new(void) {
    rig *r = calloc(1, sizeof *r);
    made = waiting_count = 0;
    pthread_mutex_init(&r->d.cm_lock, NULL);
    r->d.v = &lib;
    r->device_cq.context = r->srq.context = &device;
    r->cq.d = &r->d;
    r->cq.cq = &r->device_cq;
    r->cq.credits = 8;
    r->cq.depth = 1024;
    for (uint32_t t = 0; t < TENANTS; t++) {
        r->pds[t].tenant = t;
        r->pools[t] = (verbs_pool){
            .next = r->cq.pools, .pd = &r->pds[t], .srq = &r->srq, .mr = &r->mr, .stride = 256
        };
        r->cq.pools = &r->pools[t];
        r->buffers[t].head.pool = &r->pools[t];
    }
    return r;
}
static void rig_free(rig *r) {
    while (r->cq.conns) {
        verbs_conn *c = r->cq.conns;
        r->cq.conns = c->next;
        free(c->context);
        free(c);
    }
    free(r->cq.slots);
    free(r->cq.generations);
    free(r->cq.stash);
    pthread_mutex_destroy(&r->d.cm_lock);
    free(r);
}

static verbs_conn *established(rig *r, uint32_t tenant) {
    verbs_conn *c;
    CHECK_EQ(verbs_conn_new(&r->cq, NULL, &c), 0);
    c->id = &r->ids[made];
    CHECK_EQ(verbs_conn_qp(c, tenant), 0);
    CHECK_EQ(c->qp_number, NUMBER);
    c->state = VERBS_UP;
    return c;
}
/* The device has received a message for the queue pair of that number; nobody has polled it yet. */
static void arrives(rig *r, uint32_t tenant) {
    waiting[waiting_count++] = (struct ibv_wc){ .wr_id = (uintptr_t)&r->buffers[tenant],
                                                .status = IBV_WC_SUCCESS,
                                                .qp_num = NUMBER,
                                                .byte_len = sizeof(verbs_prefix) + 8 };
}
static int messages_of(rig *r, const verbs_conn *c) {
    verbs_drain(&r->cq);
    int n = 0;
    for (uint32_t i = r->cq.stash_head; i != r->cq.stash_tail; i++) {
        const fab_wc *wc = &r->cq.stash[i & (r->cq.stash_size - 1)];
        n += wc->opcode == FAB_WC_RECV && wc->conn == &c->head;
    }
    return n;
}

/* A message that the device takes in while the queue pair is being destroyed is behind the last look at the queue. */
static void ends_with_one_more(rig *r, verbs_conn *c, uint32_t tenant) {
    verbs_break(c, FAB_SUCCESS, FAB_SUCCESS);
    CHECK(c->qp == NULL);
    arrives(r, tenant);
}

TEST(what_was_sent_to_a_connection_that_ended_is_not_the_next_one_s) {
    rig *r = rig_new();
    verbs_conn *first = established(r, 1);
    arrives(r, 1);
    CHECK_EQ(messages_of(r, first), 1); /* as it is when nothing ends */
    ends_with_one_more(r, first, 1);
    verbs_conn *second = established(r, 1);
    CHECK_EQ(messages_of(r, second), 0);
    CHECK_EQ((int)second->state, (int)VERBS_UP);
    arrives(r, 1);
    CHECK_EQ(messages_of(r, second), 1);
    rig_free(r);
}

/* Whatever the numbers: the buffer that was filled says whose it is. */
TEST(a_message_in_one_tenant_s_memory_reaches_no_connection_of_another) {
    rig *r = rig_new();
    verbs_conn *c = established(r, 2);
    arrives(r, 1);
    CHECK_EQ(messages_of(r, c), 0);
    CHECK_EQ((int)c->state, (int)VERBS_UP);
    CHECK_EQ(r->pools[1].reposts, 1);
    CHECK_EQ(r->pools[2].reposts, 0);
    rig_free(r);
}

/* soft-iWARP's answer where it refuses a later request of a chain: 0, and which one. */
static int refuses_the_last(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    (void)qp;
    while (wr->next) wr = wr->next;
    *bad = wr;
    return 0;
}

TEST(a_chain_of_which_the_end_was_refused_ends_its_connection) {
    rig *r = rig_new();
    verbs_conn *c = established(r, 1);
    c->qp->context = &device;
    device.ops.post_send = refuses_the_last;
    c->chained = 2;
    verbs_doorbell(c);
    CHECK_EQ((int)c->state, (int)VERBS_BROKEN);
    rig_free(r);
}

int main(int argc, char **argv) {
    RUN(what_was_sent_to_a_connection_that_ended_is_not_the_next_one_s);
    RUN(a_message_in_one_tenant_s_memory_reaches_no_connection_of_another);
    RUN(a_chain_of_which_the_end_was_refused_ends_its_connection);
    return check_end(argc, argv);
}
