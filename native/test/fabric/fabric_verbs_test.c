/* The verbs provider: the conformance suite over an RDMA device whose address FARKV_VERBS_ADDRESS names (in the virtual
 * machine of test/rdma, soft-RoCE's and soft-iWARP's; on a host with a NIC, that NIC's). Without it there is nothing to
 * run on, and it says so. */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"
#include "fabric_conformance.h"
#include "../../base/clock.h"
#include "../../fabric/verbs/verbs.h"

static const char *address;

static const char *listen_address(void) {
    static char text[128];
    snprintf(text, sizeof text, "%s:0", address);
    return text;
}

/* Under emulation, on a busy machine, a connection takes hundreds of milliseconds. */
static void patient(fab_options *o) {
    if (o->handshake_ms == 0) o->handshake_ms = 15000;
    if (o->op_timeout_ms == 0) o->op_timeout_ms = 5000;
}

static fabric_under_test verbs = { .provider = FAB_VERBS,
                                   .address = listen_address,
                                   .configure = patient,
                                   .sleeps = true,
                                   .forks = true,
                                   .device_reads = true,
                                   .messages = 4000 };

/* An address of the device's network at which nobody is: packets to it are lost. Port 7 is as good as any. */
static const char *nobody(void) {
    static char text[128];
    snprintf(text, sizeof text, "%s:7", getenv("FARKV_VERBS_NOBODY"));
    return text;
}

/* Over soft-iWARP rdma_connect waits for TCP, two minutes when nobody answers: that must be nobody else's time. */
TEST(connecting_to_nobody_holds_up_no_other_connection) {
    static pair p;
    fab_conn *lost, *mine, *theirs;
    pair_open(&p, &verbs, &(fab_options){ .handshake_ms = 60000 }, 1);
    CHECK_EQ(fab_connect(p.client.cq, nobody(), NULL, 0, NULL, &lost), 0);
    pair_connect(&p, 1, &mine, &theirs); /* ends before the other one's time is over: it would be polled here */
    CHECK_EQ(fab_send(mine, &(struct iovec){ (void *)(uintptr_t) "hello", 6 }, 1), 0);
    fab_wc wc = pair_expect(&p, &p.owner, FAB_WC_RECV, FAB_SUCCESS);
    CHECK(wc.conn == theirs && strcmp(wc.data, "hello") == 0);
    fab_release(theirs, wc.data);
    alarm(90);            /* sooner than TCP gives up */
    fab_disconnect(lost); /* interrupts the call */
    alarm(0);
    fab_disconnect(mine);
    CHECK(pair_expect(&p, &p.owner, FAB_WC_DISCONNECT, FAB_SUCCESS).conn == theirs);
    fab_disconnect(theirs);
    pair_close(&p);
}

TEST(connecting_to_nobody_ends_in_time_and_as_failed) {
    static pair p;
    fab_conn *lost;
    pair_open(&p, &verbs, &(fab_options){ .handshake_ms = 3000 }, 1);
    CHECK_EQ(fab_connect(p.client.cq, nobody(), NULL, 0, NULL, &lost), 0);
    CHECK(pair_expect(&p, &p.client, FAB_WC_CONNECT, FAB_RETRY_EXC_ERR).conn == lost);
    CHECK(pair_expect(&p, &p.client, FAB_WC_DISCONNECT, FAB_RETRY_EXC_ERR).conn == lost);
    fab_disconnect(lost);
    pair_close(&p);
}

static void read_is_whole(pair *p, fab_conn *c, fab_mr *served, fab_mr *local, uint8_t *to) {
    memset(to, 0, 4096);
    fab_read r = { .wr_id = 7,
                   .local = to,
                   .local_mr = local,
                   .remote_addr = fab_mr_addr(served),
                   .rkey = fab_mr_rkey(served),
                   .bytes = 4096 };
    CHECK_EQ(fab_post_reads(c, &r, 1), 1);
    CHECK_EQ(pair_expect(p, &p->client, FAB_WC_READ, FAB_SUCCESS).wr_id, 7);
    CHECK(pattern_ok(to, 1, 4096));
}

/* What the provider does when it hears of the loss, on a device that is in truth still there: so it can be taken again.
 * */
TEST(a_client_lets_a_lost_device_go_and_binds_anew) {
    static pair p;
    fkv_region region;
    fab_mr *served, *offered, *local; /* offered: a value of the client's that the owner READs */
    static uint8_t to[4096];
    pair_open(&p, &verbs, NULL, 1);
    CHECK_EQ(fkv_region_alloc("lost", 4096, 0, &region), 0);
    pattern_fill(region.base, 1, 4096);
    CHECK_EQ(fab_reg(p.owner.domain, &region, 1, &served), 0);
    CHECK_EQ(fab_reg(p.client.domain, &region, 0, &offered), 0);
    CHECK_EQ(fab_reg_local(p.client.domain, to, sizeof to, &local), 0);
    read_is_whole(&p, p.client_conn, served, local, to);
    verbs_domain *d = (verbs_domain *)p.client.domain;
    verbs_device_gone(d);
    verbs_device_gone(d); /* connection manager and device both tell */
    CHECK(pair_expect(&p, &p.client, FAB_WC_DISCONNECT, FAB_FATAL_ERR).conn == p.client_conn);
    CHECK(fab_post_reads(p.client_conn, &(fab_read){ .local = to, .local_mr = local, .bytes = 8 }, 1) == -ENOTCONN);
    fab_conn *early;
    /* the lost connection is not freed: the device is still held */
    CHECK_EQ(fab_connect(p.client.cq, p.address, NULL, 0, NULL, &early), 0);
    CHECK(pair_expect(&p, &p.client, FAB_WC_CONNECT, FAB_FATAL_ERR).conn == early);
    CHECK(pair_expect(&p, &p.client, FAB_WC_DISCONNECT, FAB_FATAL_ERR).conn == early);
    fab_disconnect(early);
    fab_disconnect(p.client_conn);
    CHECK(pair_next(&p, &p.owner).opcode == FAB_WC_DISCONNECT);
    fab_disconnect(p.owner_conn);
    CHECK_EQ(d->queues, 1);
    pair_connect(&p, 1, &p.client_conn, &p.owner_conn);
    CHECK(d->queues == 1 && !d->lost && d->device);
    CHECK(fab_mr_gone(offered) && !fab_mr_gone(local) && !fab_mr_gone(served));
    read_is_whole(&p, p.client_conn, served, local, to);
    fab_dereg(offered);
    fab_dereg(local);
    fab_disconnect(p.client_conn);
    CHECK(pair_next(&p, &p.owner).opcode == FAB_WC_DISCONNECT);
    fab_disconnect(p.owner_conn);
    p.client_conn = p.owner_conn = NULL;
    fab_dereg(served);
    fkv_region_free(&region);
    pair_close(&p);
}

TEST(an_owner_whose_device_is_lost_says_once_that_nobody_comes) {
    static pair p;
    fkv_region region;
    fab_mr *served;
    pair_open(&p, &verbs, NULL, 1);
    CHECK_EQ(fkv_region_alloc("lost", 4096, 0, &region), 0);
    CHECK_EQ(fab_reg(p.owner.domain, &region, 1, &served), 0);
    verbs_domain *d = (verbs_domain *)p.owner.domain;
    verbs_device_gone(d);
    verbs_device_gone(d);
    fab_wc wc = pair_expect(&p, &p.owner, FAB_WC_UNREACHABLE, FAB_FATAL_ERR);
    CHECK(wc.conn == NULL);
    CHECK(pair_expect(&p, &p.owner, FAB_WC_DISCONNECT, FAB_FATAL_ERR).conn == p.owner_conn);
    fab_disconnect(p.owner_conn);
    CHECK(pair_next(&p, &p.client).opcode == FAB_WC_DISCONNECT);
    fab_disconnect(p.client_conn);
    p.client_conn = p.owner_conn = NULL;
    pair_settle(&p);
    CHECK(!end_has(&p.owner));
    CHECK(d->lost); /* peers have its keys: it is never bound anew */
    fab_dereg(served);
    fkv_region_free(&region);
    pair_close(&p);
}

/* The client is not polled, so that it says nothing: the notice that the connection is established lets an owner post
 * what it has sent, but over iWARP, where the client's device may give the connection up for it (RFC 5044, 7.1). There
 * the client's first message does. */
TEST(an_owner_posts_nothing_before_it_may) {
    static pair p;
    pair_listen(&p, &verbs, NULL);
    CHECK_EQ(fab_connect(p.client.cq, p.address, NULL, 0, NULL, &p.client_conn), 0);
    p.owner_conn = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
    CHECK_EQ(fab_accept(p.owner_conn, 1, NULL, 0), 0);
    CHECK_EQ(fab_send(p.owner_conn, &(struct iovec){ "at once", 7 }, 1), 0);
    verbs_conn *c = (verbs_conn *)p.owner_conn;
    verbs_cq *cq = (verbs_cq *)p.owner.cq;
    bool iwarp = c->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
    struct pollfd f = { .fd = fab_fd(p.owner.cq), .events = POLLIN };
    fab_wc wc;
    while (!atomic_load(&cq->has_events)) {
        if (fab_arm(p.owner.cq) == 0) CHECK(poll(&f, 1, (int)check_patience_ms()) != 0);
        if (!atomic_load(&cq->has_events)) CHECK_EQ(fab_poll(p.owner.cq, &wc, 1), 0);
    }
    CHECK_EQ(fab_poll(p.owner.cq, &wc, 1), 0); /* takes the notice */
    CHECK(c->state == (iwarp ? VERBS_ACCEPTING : VERBS_UP) && c->chained == (iwarp ? 1 : 0));
    pair_expect(&p, &p.client, FAB_WC_CONNECT, FAB_SUCCESS);
    fab_wc w = pair_expect(&p, &p.client, FAB_WC_RECV, FAB_SUCCESS);
    CHECK(w.bytes == 7 && memcmp(w.data, "at once", 7) == 0);
    CHECK(c->state == VERBS_UP && c->chained == 0);
    pair_close(&p);
}

/* rdma_cm leaves a queue pair's RNR timer at 0, which is 655 ms: a burst of many peers that finds no buffer would stop
 * each of them for that long. */
TEST(a_peer_that_found_no_buffer_tries_again_soon) {
    static pair p;
    pair_open(&p, &verbs, NULL, 1);
    void *library = dlopen("libibverbs.so.1", RTLD_NOW);
    CHECK(library != NULL);
    int (*query)(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *);
    *(void **)&query = dlsym(library, "ibv_query_qp");
    for (int i = 0; i < 2; i++) {
        const verbs_conn *c = (const verbs_conn *)(i ? p.client_conn : p.owner_conn);
        struct ibv_qp_attr attr;
        struct ibv_qp_init_attr ignored;
        CHECK_EQ(query(c->qp, &attr, IBV_QP_MIN_RNR_TIMER, &ignored), 0);
        if (c->id->verbs->device->transport_type == IBV_TRANSPORT_IB)
            CHECK_EQ((int)attr.min_rnr_timer, (int)VERBS_RNR_TIMER);
    }
    dlclose(library);
    pair_close(&p);
}

/* iWARP has no class of its own: there it is for the kernel to say what becomes of it. */
TEST(both_ends_have_the_traffic_class_of_the_one_that_connects) {
    static pair p;
    void *library = dlopen("libibverbs.so.1", RTLD_NOW);
    CHECK(library != NULL);
    int (*query)(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *);
    *(void **)&query = dlsym(library, "ibv_query_qp");
    for (uint8_t octet = 106; octet > 0; octet = octet == 106 ? 8 : 0) {
        fab_rdma_traffic_class(octet);
        pair_open(&p, &verbs, NULL, 1);
        for (int i = 0; i < 2; i++) {
            const verbs_conn *c = (const verbs_conn *)(i ? p.client_conn : p.owner_conn);
            struct ibv_qp_attr attr;
            struct ibv_qp_init_attr ignored;
            if (c->id->verbs->device->transport_type != IBV_TRANSPORT_IB) continue;
            CHECK_EQ(query(c->qp, &attr, IBV_QP_AV, &ignored), 0);
            CHECK_EQ((int)attr.ah_attr.grh.traffic_class, (int)octet);
        }
        pair_close(&p);
    }
    fab_rdma_traffic_class(0);
    dlclose(library);
}

/* A work request of which the device never says anything, as soft-RoCE's with endless retries: put into the send queue
 * by hand, for no device here loses one to order. It is behind a message that is told of by nobody. */
TEST(what_the_device_never_completes_ends_in_time) {
    static pair p;
    pair_open(&p, &verbs, &(fab_options){ .op_timeout_ms = 5000 }, 1);
    verbs_conn *c = (verbs_conn *)p.client_conn;
    verbs_cq *cq = (verbs_cq *)p.client.cq;
    c->sq[c->sq_head++ % VERBS_SQ] = (verbs_sq_entry){ .kind = VERBS_SQ_SEND };
    c->sq[c->sq_head++ % VERBS_SQ] = (verbs_sq_entry){ .wr_id = 7, .kind = VERBS_SQ_READ, .signaled = true };
    c->signaled_pending++;
    verbs_timeouts(cq);
    CHECK(c->state == VERBS_UP); /* its time has only begun */
    fkv_clock_skip(5001ll * 1000000);
    verbs_timeouts(cq);
    fkv_clock_restore();
    CHECK_EQ(pair_expect(&p, &p.client, FAB_WC_READ, FAB_RESP_TIMEOUT_ERR).wr_id, 7);
    CHECK(pair_expect(&p, &p.client, FAB_WC_DISCONNECT, FAB_RESP_TIMEOUT_ERR).conn == p.client_conn);
    fab_disconnect(p.client_conn);
    CHECK(pair_next(&p, &p.owner).opcode == FAB_WC_DISCONNECT);
    fab_disconnect(p.owner_conn);
    p.client_conn = p.owner_conn = NULL;
    pair_close(&p);
}

int main(int argc, char **argv) {
    address = getenv("FARKV_VERBS_ADDRESS");
    if (!address) {
        printf("left out fabric_verbs: FARKV_VERBS_ADDRESS names no address of an RDMA device; npm run test:rdma runs "
               "it in a virtual machine\n");
        return 0;
    }
    verbs.silent_refusals = getenv("FARKV_VERBS_SILENT") != NULL; /* soft-iWARP */
    CHECK(fab_provider_missing(FAB_VERBS) == NULL);
    if (fabric_conformance_child(&verbs, argc, argv)) return 0;
    fabric_conformance(&verbs);
    RUN(an_owner_posts_nothing_before_it_may);
    RUN(a_peer_that_found_no_buffer_tries_again_soon);
    RUN(both_ends_have_the_traffic_class_of_the_one_that_connects);
    RUN(what_the_device_never_completes_ends_in_time);
    RUN(a_client_lets_a_lost_device_go_and_binds_anew);
    RUN(an_owner_whose_device_is_lost_says_once_that_nobody_comes);
    if (getenv("FARKV_VERBS_NOBODY")) {
        RUN(connecting_to_nobody_holds_up_no_other_connection);
        RUN(connecting_to_nobody_ends_in_time_and_as_failed);
    } else {
        printf("left out connecting to nobody: FARKV_VERBS_NOBODY names no address of the device's network at which "
               "nobody is\n");
    }
    return check_end(argc, argv);
}
