/* fabric_verbs_device_test.c: devices as no machine without hardware has them, and as soft-iWARP is. One gives the number
 * of a destroyed queue pair to the next one while completions of the first are still in the completion queue, and takes in
 * half of a chain; one takes completions of a destroyed queue pair out of the queue, as mlx5 does; one goes away. Device
 * and connection manager are the test's. */
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include "../../base/clock.h"
#include "../../client/session/rendezvous.h"
#include "fabric_verbs_device_rig.h"

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

/* 31 short messages in a row ask for no completion. */
TEST(a_refused_read_behind_a_short_message_completes) {
    rig *r = rig_new();
    verbs_conn *c = established(r, 1);
    c->qp->context = &device;
    c->credits = 64;
    CHECK_EQ(verbs_send(&c->head, &(struct iovec){ "eight by", 8 }, 1, 8), 0);
    verbs_flush(&r->cq.head);
    static uint8_t to[8];
    fab_mr local = { .base = to, .bytes = sizeof to, .local = true };
    fab_read q = { .wr_id = 5, .local = to, .local_mr = &local, .rkey = 1ull << 40, .bytes = sizeof to };
    CHECK_EQ(verbs_post_reads(&c->head, &q, 1), 1);
    verbs_flush(&r->cq.head);
    fab_wc wc[4];
    CHECK_EQ(verbs_poll(&r->cq.head, wc, 4), 1);
    CHECK_EQ((int)wc[0].opcode, (int)FAB_WC_READ);
    CHECK_EQ((int)wc[0].status, (int)FAB_REM_ACCESS_ERR);
    CHECK_EQ(wc[0].wr_id, 5);
    rig_free(r);
}

/* Over InfiniBand and RoCE a rejection has room for private data, and zeros there, also where nobody listens. */
static fab_wc_status rejected(uint32_t bytes, uint16_t magic) {
    rig *r = rig_new();
    verbs_conn *c = established(r, 1);
    c->state = VERBS_CONNECTING;
    verbs_event *e = calloc(1, sizeof *e);
    e->type = RDMA_CM_EVENT_REJECTED;
    e->slot = c->slot;
    e->generation = c->generation;
    e->private_bytes = bytes;
    memcpy(e->private_data, &(verbs_private){ .magic = magic }, sizeof(verbs_private));
    verbs_post_event(&r->cq, e);
    fab_wc wc[4];
    CHECK_EQ(verbs_poll(&r->cq.head, wc, 4), 1);
    CHECK_EQ((int)wc[0].opcode, (int)FAB_WC_CONNECT);
    fab_wc_status status = wc[0].status;
    rig_free(r);
    return status;
}
TEST(where_nobody_listens_is_told_from_an_owner_that_refuses) {
    CHECK_EQ((int)rejected(0, 0), (int)FAB_RETRY_EXC_ERR);
    CHECK_EQ((int)rejected(56, 0), (int)FAB_RETRY_EXC_ERR);
    CHECK_EQ((int)rejected(56, VERBS_MAGIC), (int)FAB_REM_ACCESS_ERR);
}

TEST(the_time_of_a_read_is_over_also_where_each_poll_finds_something) {
    rig *r = rig_new();
    numbers_differ = true;
    verbs_conn *silent = established(r, 1), *busy = established(r, 1);
    reads(silent);
    silent->sq[0].signaled = true;
    silent->signaled_pending = 1;
    bool over = false;
    for (int polls = 0; !over; polls++) {
        CHECK(polls < 4096); /* two looks: one finds that nothing has come, the next that it is too long */
        if (polls % 1000 == 0) fkv_clock_skip(3600ll * 1000000000);
        arrives_for(r, 1, busy->qp_number, 8);
        fab_wc wc[4];
        int n = verbs_poll(&r->cq.head, wc, 4);
        for (int i = 0; i < n; i++) {
            over |= wc[i].opcode == FAB_WC_READ;
            if (wc[i].opcode != FAB_WC_RECV) continue;
            verbs_release(&busy->head, wc[i].data);
            busy->owed = 0;
            verbs_pool_flush(&r->pools[1]);
        }
    }
    fkv_clock_restore();
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
    RUN(a_refused_read_behind_a_short_message_completes);
    RUN(where_nobody_listens_is_told_from_an_owner_that_refuses);
    RUN(the_time_of_a_read_is_over_also_where_each_poll_finds_something);
    return check_end(argc, argv);
}
