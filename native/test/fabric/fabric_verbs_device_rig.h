/* fabric_verbs_device_rig.h: an RDMA device and a connection manager that do what a test says, and the provider's domain
 * and completion queue over them. */
#ifndef FARKV_TEST_FABRIC_VERBS_DEVICE_RIG_H
#define FARKV_TEST_FABRIC_VERBS_DEVICE_RIG_H
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "../check.h"
#include "../../fabric/verbs/verbs.h"

enum { NUMBER = 17, TENANTS = 3, MESSAGE = 64, WAITING = 8, CONNECTIONS = 24, INLINE = 32 };

static struct ibv_wc waiting[WAITING];
static int waiting_count;
static bool one_at_a_time;
static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *wc) {
    (void)cq;
    if (one_at_a_time) room = 1;
    int n = waiting_count < room ? waiting_count : room;
    memcpy(wc, waiting, (size_t)n * sizeof *wc);
    waiting_count -= n;
    memmove(waiting, waiting + n, (size_t)waiting_count * sizeof *wc);
    return n;
}
static int receives; /* that the device was given */
static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    (void)srq, (void)bad;
    for (; wr; wr = wr->next) receives++;
    return 0;
}
static uint64_t last_posted[CONNECTIONS]; /* by queue pair */
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static struct ibv_device kind = { .transport_type = IBV_TRANSPORT_IB };
static struct ibv_context device = {
    .device = &kind, .ops = { .poll_cq = poll_cq, .post_srq_recv = post_srq_recv, .post_send = post_send }
};

static struct ibv_qp queue_pairs[CONNECTIONS];
static int made, destroyed;
static bool numbers_differ, cleans, without_inline;
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    (void)bad;
    while (wr->next) wr = wr->next;
    last_posted[qp - queue_pairs] = wr->wr_id;
    return 0;
}
static int create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
    (void)pd;
    if (without_inline && attr->cap.max_inline_data > 0) {
        errno = EINVAL;
        return -1;
    }
    if (attr->cap.max_inline_data > INLINE) attr->cap.max_inline_data = INLINE;
    id->qp = &queue_pairs[made++];
    *id->qp = (struct ibv_qp){ .context = &device,
                               .qp_context = attr->qp_context,
                               .qp_num = (uint32_t)(numbers_differ ? NUMBER + made : NUMBER) };
    return 0;
}
static void destroy_qp(struct rdma_cm_id *id) {
    destroyed++;
    int kept = 0;
    for (int i = 0; i < waiting_count; i++)
        if (!cleans || waiting[i].qp_num != id->qp->qp_num) waiting[kept++] = waiting[i];
    waiting_count = kept;
    id->qp = NULL;
}
static int destroy_id(struct rdma_cm_id *id) {
    (void)id;
    return 0;
}
static int set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t bytes) {
    (void)id, (void)level, (void)name, (void)value, (void)bytes;
    return 0;
}
static int disconnect(struct rdma_cm_id *id) {
    (void)id;
    return 0;
}
static const char *name_of(struct ibv_device *d) {
    (void)d;
    return "test0";
}
static struct ibv_pd protection;
static struct ibv_pd *alloc_pd(struct ibv_context *context) {
    (void)context;
    return &protection;
}
static int dealloc_pd(struct ibv_pd *pd) {
    (void)pd;
    return 0;
}
static int registrations;
static uint32_t last_rkey;
static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *base, size_t bytes, int access) {
    (void)pd, (void)base, (void)bytes, (void)access;
    struct ibv_mr *mr = calloc(1, sizeof *mr);
    registrations++;
    mr->rkey = ++last_rkey;
    return mr;
}
static int dereg_mr(struct ibv_mr *mr) {
    registrations--;
    free(mr);
    return 0;
}
static const verbs_lib lib = { .ibv_get_device_name = name_of,
                               .ibv_alloc_pd = alloc_pd,
                               .ibv_dealloc_pd = dealloc_pd,
                               .ibv_reg_mr = reg_mr,
                               .ibv_dereg_mr = dereg_mr,
                               .rdma_create_qp = create_qp,
                               .rdma_destroy_qp = destroy_qp,
                               .rdma_destroy_id = destroy_id,
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
    struct rdma_cm_id ids[CONNECTIONS];
} rig;

static rig *rig_new(void) {
    rig *r = calloc(1, sizeof *r);
    made = destroyed = receives = waiting_count = 0;
    numbers_differ = cleans = without_inline = one_at_a_time = false;
    device.ops.post_send = post_send;
    pthread_mutex_init(&r->d.cm_lock, NULL);
    pthread_mutex_init(&r->d.lock, NULL);
    pthread_mutex_init(&r->cq.lock, NULL);
    r->d.head.options = (fab_options){ .max_message = MESSAGE, .op_timeout_ms = 1000, .handshake_ms = 60000 };
    r->cq.head.domain = &r->d.head;
    r->cq.last_event = &r->cq.first_event;
    r->cq.epoll_fd = epoll_create1(0);
    r->cq.wake_fd = eventfd(0, EFD_NONBLOCK);
    r->d.v = &lib;
    r->d.device = &device;
    r->device_cq.context = r->srq.context = &device;
    r->cq.d = &r->d;
    r->cq.cq = &r->device_cq;
    r->cq.credits = 8;
    r->cq.depth = CONNECTIONS * VERBS_SQ;
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
    free(r->cq.held_event);
    close(r->cq.epoll_fd);
    close(r->cq.wake_fd);
    pthread_mutex_destroy(&r->d.cm_lock);
    pthread_mutex_destroy(&r->d.lock);
    pthread_mutex_destroy(&r->cq.lock);
    free(r);
}

static verbs_conn *established(rig *r, uint32_t tenant) {
    verbs_conn *c;
    CHECK_EQ(verbs_conn_new(&r->cq, NULL, &c), 0);
    c->id = &r->ids[made];
    c->id->verbs = &device;
    CHECK_EQ(verbs_conn_qp(c, tenant), 0);
    if (!numbers_differ) CHECK_EQ(c->qp_number, NUMBER);
    c->state = VERBS_UP;
    return c;
}
static void completes(struct ibv_wc wc) {
    wc.status = IBV_WC_SUCCESS;
    waiting[waiting_count++] = wc;
}
/* The device has received a message for the queue pair of that number; nobody has polled it yet. */
static void arrives_for(rig *r, uint32_t tenant, uint32_t number, uint32_t bytes) {
    completes((struct ibv_wc){ .wr_id = (uintptr_t)&r->buffers[tenant],
                               .qp_num = number,
                               .byte_len = (uint32_t)sizeof(verbs_prefix) + bytes });
}
static void arrives(rig *r, uint32_t tenant) { arrives_for(r, tenant, NUMBER, 8); }
/* A READ that the device has, and has not answered. */
static void reads(verbs_conn *c) { c->sq[c->sq_head++ % VERBS_SQ] = (verbs_sq_entry){ .kind = VERBS_SQ_READ }; }
static int messages_of(rig *r, const verbs_conn *c) {
    verbs_drain(&r->cq);
    int n = 0;
    for (uint32_t i = r->cq.stash_head; i != r->cq.stash_tail; i++) {
        const fab_wc *wc = &r->cq.stash[i & (r->cq.stash_size - 1)];
        n += wc->opcode == FAB_WC_RECV && wc->conn == &c->head;
    }
    return n;
}

#endif
