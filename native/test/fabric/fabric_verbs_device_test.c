/* fabric_verbs_device_test.c: devices as no machine without hardware has them, and as soft-iWARP is. One gives the number
 * of a destroyed queue pair to the next one while completions of the first are still in the completion queue, and takes in
 * half of a chain; one takes completions of a destroyed queue pair out of the queue, as mlx5 does; one goes away. Device
 * and connection manager are the test's. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../check.h"
#include "../../client/session/rendezvous.h"
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

/* A message that the device takes in while the queue pair is being destroyed is behind the last look at the queue. */
static void ends_with_one_more(rig *r, verbs_conn *c, uint32_t tenant) {
    reads(c);
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

/* ---- message buffers ---- */

TEST(a_message_that_found_no_buffer_is_told_of_one_that_others_give_back) {
    enum { BUFFERS = 4, BYTES = 48 };
    rig *r = rig_new();
    numbers_differ = true;
    verbs_buffer *buffers[BUFFERS];
    verbs_pool *pool = &r->pools[1];
    for (int i = 0; i < BUFFERS; i++) {
        buffers[i] = calloc(1, sizeof *buffers[i] + sizeof(verbs_prefix) + MESSAGE);
        buffers[i]->pool = pool;
        buffers[i]->next = pool->send_free;
        pool->send_free = buffers[i];
    }
    char message[BYTES] = { 0 };
    struct iovec v = { message, BYTES };
    verbs_conn *c[2] = { established(r, 1), established(r, 1) };
    c[0]->credits = c[1]->credits = 64;
    for (int i = 0; i < BUFFERS; i++) CHECK_EQ(verbs_send(&c[0]->head, &v, 1, BYTES), 0);
    CHECK_EQ(verbs_send(&c[1]->head, &v, 1, BYTES), -EAGAIN);
    verbs_flush(&r->cq.head);
    completes((struct ibv_wc){ .wr_id = last_posted[0] });
    fab_wc wc[4];
    CHECK_EQ(verbs_poll(&r->cq.head, wc, 4), 1);
    CHECK_EQ((int)wc[0].opcode, (int)FAB_WC_SEND_READY);
    CHECK(wc[0].conn == &c[1]->head);
    CHECK_EQ(verbs_send(&c[1]->head, &v, 1, BYTES), 0);
    for (int i = 0; i < BUFFERS; i++) free(buffers[i]);
    rig_free(r);
}

TEST(a_device_without_inline_data_has_connections_too) {
    rig *r = rig_new();
    without_inline = true;
    CHECK_EQ(established(r, 1)->max_inline, 0);
    rig_free(r);
}

/* ---- completions ---- */

TEST(what_a_completion_points_to_is_there_until_the_poll_behind_it) {
    enum { ENDED = 20, POLLED = 16 };
    rig *r = rig_new();
    numbers_differ = true;
    for (int i = 0; i < ENDED; i++) verbs_break(established(r, 1), FAB_SUCCESS, FAB_RETRY_EXC_ERR);
    verbs_event *e = calloc(1, sizeof *e);
    const verbs_private p = {
        .magic = VERBS_MAGIC, .version = VERBS_VERSION, .bytes = 5, .credits = 64, .message_low = FAB_MESSAGE_MIN
    };
    e->type = RDMA_CM_EVENT_CONNECT_REQUEST;
    e->id = &r->ids[ENDED];
    e->id->verbs = &device;
    memcpy(e->private_data, &p, sizeof p);
    memcpy(e->private_data + sizeof p, "hello", 5);
    e->private_bytes = sizeof p + 5;
    r->d.head.options.max_conns = 2 * CONNECTIONS;
    verbs_post_event(&r->cq, e);
    fab_wc wc[POLLED];
    CHECK_EQ(verbs_poll(&r->cq.head, wc, POLLED), POLLED);
    int n = verbs_poll(&r->cq.head, wc, POLLED), accepts = 0;
    CHECK_EQ(n, ENDED - POLLED + 1);
    for (int i = 0; i < n; i++) {
        if (wc[i].opcode != FAB_WC_ACCEPT) continue;
        accepts++;
        CHECK(memcmp(wc[i].data, "hello", 5) == 0);
    }
    CHECK_EQ(accepts, 1);
    rig_free(r);
}

/* ---- a driver that cleans the completion queue ---- */

/* Of three messages the first is none: the connection ends while they are taken. */
TEST(buffers_that_were_filled_before_the_end_come_back) {
    rig *r = rig_new();
    cleans = true;
    verbs_conn *c = established(r, 1);
    reads(c);
    one_at_a_time = true; /* the others come while the first is looked at */
    arrives_for(r, 1, NUMBER, 0);
    arrives(r, 1);
    arrives(r, 1);
    fab_wc wc[4];
    int n = verbs_poll(&r->cq.head, wc, 4);
    CHECK_EQ((int)c->state, (int)VERBS_BROKEN);
    CHECK_EQ(destroyed, 1);
    CHECK_EQ(r->pools[1].reposts, 3);
    CHECK_EQ(n, 1); /* the READ */
    CHECK_EQ((int)wc[0].opcode, (int)FAB_WC_READ);
    rig_free(r);
}

/* The second of three READs fails, and the third is flushed in the same breath. */
TEST(a_read_that_failed_is_not_answered_by_those_that_were_flushed) {
    rig *r = rig_new();
    verbs_conn *c = established(r, 1);
    for (int i = 0; i < 3; i++) reads(c);
    completes((struct ibv_wc){ .wr_id = verbs_wr_id(c, 1) });
    completes((struct ibv_wc){ .wr_id = verbs_wr_id(c, 2) });
    waiting[0].status = IBV_WC_REM_ACCESS_ERR;
    waiting[1].status = IBV_WC_WR_FLUSH_ERR;
    fab_wc wc[4];
    CHECK_EQ(verbs_poll(&r->cq.head, wc, 4), 3);
    CHECK_EQ((int)wc[0].status, (int)FAB_SUCCESS);
    CHECK_EQ((int)wc[1].status, (int)FAB_REM_ACCESS_ERR);
    CHECK_EQ((int)wc[2].status, (int)FAB_WR_FLUSH_ERR);
    CHECK_EQ((int)c->state, (int)VERBS_BROKEN);
    rig_free(r);
}

static void over(rig *r, verbs_conn *c) {
    verbs_event *e = calloc(1, sizeof *e);
    e->type = (enum rdma_cm_event_type)VERBS_RECEIVES_OVER;
    e->slot = c->slot;
    e->generation = c->generation;
    verbs_post_event(&r->cq, e);
}

TEST(a_queue_pair_is_there_until_its_receives_are_over) {
    rig *r = rig_new();
    cleans = true;
    verbs_conn *c = established(r, 1);
    verbs_break(c, FAB_SUCCESS, FAB_RETRY_EXC_ERR);
    arrives(r, 1); /* it was being received */
    fab_wc wc[4];
    CHECK_EQ(verbs_poll(&r->cq.head, wc, 4), 1);
    CHECK_EQ((int)wc[0].opcode, (int)FAB_WC_DISCONNECT);
    verbs_disconnect(&c->head);
    CHECK_EQ(destroyed, 0);
    CHECK_EQ((int)r->cq.conn_count, 1);
    arrives(r, 1);
    over(r, c);
    CHECK_EQ(verbs_poll(&r->cq.head, wc, 4), 0); /* the event, */
    CHECK_EQ(verbs_poll(&r->cq.head, wc, 4), 0); /* and the end */
    CHECK_EQ(destroyed, 1);
    verbs_pool_flush(&r->pools[1]);
    CHECK_EQ(receives, 2);
    CHECK_EQ((int)r->cq.conn_count, 0);
    CHECK_EQ((int)r->cq.reserved, 0);
    rig_free(r);
}

TEST(a_device_that_does_not_say_that_receives_are_over_is_not_waited_for) {
    rig *r = rig_new();
    verbs_conn *c = established(r, 1);
    verbs_disconnect(&c->head); /* says goodbye */
    CHECK_EQ((int)c->state, (int)VERBS_LEAVING);
    completes((struct ibv_wc){ .wr_id = last_posted[0] });
    fab_wc wc[4];
    CHECK_EQ(verbs_poll(&r->cq.head, wc, 4), 0);
    CHECK_EQ(verbs_poll(&r->cq.head, wc, 4), 0);
    CHECK_EQ(destroyed, 0);
    CHECK(c->ends && c->deadline_ns > 0);
    c->deadline_ns = 0; /* its time passes */
    verbs_timeouts(&r->cq);
    CHECK_EQ(verbs_poll(&r->cq.head, wc, 4), 0);
    CHECK_EQ(destroyed, 1);
    CHECK_EQ((int)r->cq.conn_count, 0);
    rig_free(r);
}

TEST(an_end_that_nobody_acknowledges_waits_for_its_receives_too) {
    rig *r = rig_new();
    verbs_conn *c = established(r, 1);
    verbs_disconnect(&c->head);
    c->deadline_ns = 0; /* that of its goodbye passes */
    verbs_timeouts(&r->cq);
    fab_wc wc[4];
    CHECK_EQ(verbs_poll(&r->cq.head, wc, 4), 0);
    CHECK(c->in_error && c->ends);
    CHECK_EQ(destroyed, 0);
    over(r, c);
    CHECK_EQ(verbs_poll(&r->cq.head, wc, 4), 0);
    CHECK_EQ(verbs_poll(&r->cq.head, wc, 4), 0);
    CHECK_EQ(destroyed, 1);
    rig_free(r);
}

/* ---- a device that goes away ---- */

TEST(the_channel_of_a_lost_device_wakes_nobody) {
    rig *r = rig_new();
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    struct ibv_comp_channel channel = { .fd = ends[0] };
    struct epoll_event interest = { .events = EPOLLIN, .data.fd = ends[0] };
    CHECK_EQ(epoll_ctl(r->cq.epoll_fd, EPOLL_CTL_ADD, ends[0], &interest), 0);
    r->cq.channel = &channel;
    close(ends[1]); /* as the kernel does: the other end hangs up */
    struct pollfd p = { .fd = r->cq.epoll_fd, .events = POLLIN };
    CHECK_EQ(poll(&p, 1, 0), 1);
    verbs_event *e = calloc(1, sizeof *e);
    e->type = (enum rdma_cm_event_type)VERBS_DEVICE_LOST;
    verbs_post_event(&r->cq, e);
    fab_wc wc[4];
    CHECK_EQ(verbs_poll(&r->cq.head, wc, 4), 0);
    p.revents = 0;
    CHECK_EQ(poll(&p, 1, 0), 0);
    close(ends[0]);
    rig_free(r);
}

/* A client whose last large value lies in memory that it keeps for the next one. */
TEST(memory_that_owners_read_does_not_hold_a_lost_device) {
    rig *r = rig_new();
    r->d.head.ops = &fab_verbs_ops;
    r->d.nudge_fd = eventfd(0, EFD_NONBLOCK);
    session_peer peer = { .domain = &r->d.head };
    rendezvous_pool *pool = rendezvous_pool_create(1 << 20);
    rendezvous *value;
    fab_mr *mr;
    CHECK_EQ(rendezvous_take(pool, 40000, &value), FKV_OK);
    CHECK_EQ(rendezvous_register(value, &peer, &mr), 0);
    uint64_t first = fab_mr_rkey(mr);
    CHECK_EQ(rendezvous_register(value, &peer, &mr), 0);
    CHECK(fab_mr_rkey(mr) == first && !fab_mr_gone(mr));
    rendezvous_give(pool, value, true);
    verbs_device_gone(&r->d);
    r->d.queues = 1;
    verbs_queue_gone(&r->d);
    CHECK(!r->d.lost && !r->d.device);
    CHECK_EQ(registrations, 0);
    CHECK(fab_mr_gone(mr));
    r->d.device = &device; /* another one: a connection has come up over it */
    CHECK_EQ(rendezvous_take(pool, 40000, &value), FKV_OK);
    CHECK_EQ(rendezvous_register(value, &peer, &mr), 0);
    CHECK(fab_mr_rkey(mr) != first && !fab_mr_gone(mr));
    CHECK_EQ(registrations, 1);
    rendezvous_give(pool, value, true);
    rendezvous_pool_destroy(pool);
    CHECK_EQ(registrations, 0);
    free(r->d.pds);
    close(r->d.nudge_fd);
    rig_free(r);
}

/* What /proc says of memory: `dc`, it is not copied for children. */
static bool copied_for_children(const void *memory) {
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    bool here = false, copied = true;
    unsigned long from, to;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) here = (uintptr_t)memory >= from && (uintptr_t)memory < to;
        if (here && strncmp(line, "VmFlags:", 8) == 0) copied = strstr(line, " dc") == NULL;
    }
    if (f) fclose(f);
    return copied;
}

TEST(memory_that_a_device_writes_is_not_copied_for_children) {
    enum { BYTES = 1 << 20 };
    rig *r = rig_new();
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fab_mr *mr;
    CHECK_EQ(verbs_reg_local(&r->d.head, memory, BYTES, &mr), 0);
    mr->domain = &r->d.head;
    CHECK(!copied_for_children(memory));
    verbs_dereg(mr);
    CHECK(copied_for_children(memory));
    munmap(memory, BYTES);
    rig_free(r);
}

int main(int argc, char **argv) {
    RUN(what_was_sent_to_a_connection_that_ended_is_not_the_next_one_s);
    RUN(a_message_in_one_tenant_s_memory_reaches_no_connection_of_another);
    RUN(a_chain_of_which_the_end_was_refused_ends_its_connection);
    RUN(a_message_that_found_no_buffer_is_told_of_one_that_others_give_back);
    RUN(a_device_without_inline_data_has_connections_too);
    RUN(what_a_completion_points_to_is_there_until_the_poll_behind_it);
    RUN(buffers_that_were_filled_before_the_end_come_back);
    RUN(a_read_that_failed_is_not_answered_by_those_that_were_flushed);
    RUN(a_queue_pair_is_there_until_its_receives_are_over);
    RUN(a_device_that_does_not_say_that_receives_are_over_is_not_waited_for);
    RUN(an_end_that_nobody_acknowledges_waits_for_its_receives_too);
    RUN(the_channel_of_a_lost_device_wakes_nobody);
    RUN(memory_that_owners_read_does_not_hold_a_lost_device);
    RUN(memory_that_a_device_writes_is_not_copied_for_children);
    return check_end(argc, argv);
}
