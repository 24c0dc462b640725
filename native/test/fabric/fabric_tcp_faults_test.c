/* The tcp provider and time: READs that are not answered, peers that drip, peers whose host is gone. What is checked is
 * that the end comes, and how; never how fast. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "../../fabric/tcp/frame.h"
#include "../check.h"
#include "fabric_tcp_rig.h"
#include "tcp_raw.h"

/* A fab connection of the rig's client to a raw server; *fd is that end. */
static fab_conn *connect_to_raw(int *fd) {
    char where[64];
    fab_conn *c;
    int l = rawtcp_listen(where);
    CHECK_EQ(fab_connect(rig.p.client.cq, where, NULL, 0, NULL, &c), 0);
    *fd = accept(l, NULL, NULL);
    close(l);
    for (int i = 0; i < 20; i++) pair_turn(&rig.p); /* the hello leaves when connect() is seen to have ended */
    tcp_hello yes = rawtcp_hello();
    yes.kind = TCP_ACCEPT;
    rawtcp_accept(*fd, &yes);
    CHECK(pair_expect(&rig.p, &rig.p.client, FAB_WC_CONNECT, FAB_SUCCESS).conn == c);
    return c;
}

static void post_two(fab_conn *c, void *local, fab_mr *m, uint32_t bytes) {
    for (uint64_t i = 1; i <= 2; i++) {
        fab_read r = { .wr_id = i, .local = local, .local_mr = m, .bytes = bytes };
        CHECK_EQ(fab_post_reads(c, &r, 1), 1);
    }
}

static void expect_out_of_time(end *e, fab_conn *c) {
    fab_wc w = pair_expect(&rig.p, e, FAB_WC_READ, FAB_RESP_TIMEOUT_ERR);
    CHECK(w.conn == c && w.wr_id == 1);
    CHECK_EQ(pair_expect(&rig.p, e, FAB_WC_READ, FAB_WR_FLUSH_ERR).wr_id, 2);
    CHECK(pair_expect(&rig.p, e, FAB_WC_DISCONNECT, FAB_RESP_TIMEOUT_ERR).conn == c);
    fab_disconnect(c);
}

/* Those whose time does not run out are served. By a SEND where a READ of theirs would have as little time: a busy
 * machine may need more. */
static void others_are_served(bool by_read) {
    if (by_read) {
        rig_honest_read();
        return;
    }
    CHECK_EQ(fab_send(rig.p.client_conn, &(struct iovec){ "still there", 11 }, 1), 0);
    fab_wc w = pair_expect(&rig.p, &rig.p.owner, FAB_WC_RECV, FAB_SUCCESS);
    CHECK(w.conn == rig.p.owner_conn && w.bytes == 11);
    fab_release(w.conn, w.data);
}

TEST(reads_that_are_not_answered_run_out_of_time_at_either_end) {
    const fab_options impatient = { .op_timeout_ms = 100 };
    rig_open_ends(NULL, &impatient);
    int fd;
    fab_conn *c = connect_to_raw(&fd);
    post_two(c, rig.local, rig.local_mr, 64);
    expect_out_of_time(&rig.p.client, c);
    close(fd);
    others_are_served(false);
    rig_close();

    rig_open_ends(&impatient, NULL);
    static uint8_t bounce[64];
    fab_mr *m;
    CHECK_EQ(fab_reg_local(rig.p.owner.domain, bounce, sizeof bounce, &m), 0);
    fd = rig_stranger(&c);
    post_two(c, bounce, m, 64);
    expect_out_of_time(&rig.p.owner, c);
    close(fd);
    fab_dereg(m);
    others_are_served(true);
    rig_close();
}

/* A byte now and then keeps a connection alive, and must not keep a READ alive for ever. */
TEST(an_answer_that_drips_runs_out_of_time) {
    rig_open(&(fab_options){ .op_timeout_ms = 200 });
    int fd;
    fab_conn *c = connect_to_raw(&fd);
    post_two(c, rig.local, rig.local_mr, 60000);
    uint64_t next = 0;
    uint64_t give_up = fkv_now_ns() + check_patience_ms() * 1000000ull;
    while (!end_has(&rig.p.client)) {
        CHECK(fkv_now_ns() < give_up);
        pair_turn(&rig.p);
        if (fkv_now_ns() < next) continue;
        next = fkv_now_ns() + 10000000;
        rawtcp_frame(fd, &(tcp_frame){ .type = TCP_DATA, .argument = 1 });
        rawtcp_write(fd, "x", 1);
    }
    expect_out_of_time(&rig.p.client, c);
    close(fd);
    rig_close();
}

/* As much as the socket takes; between times the reader, which is this thread too, has its turn. */
static void write_in_turns(int fd, const void *bytes, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t r = send(fd, (const uint8_t *)bytes + at, n - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        CHECK(r > 0 || errno == EAGAIN);
        if (r > 0) at += (size_t)r;
        pair_turn(&rig.p);
    }
}

/* A large READ may take longer than op_timeout, as long as it goes on. By a clock that goes on with the READ: how long
 * the machine takes for it decides nothing. */
TEST(a_large_read_that_goes_on_outlives_the_time_limit_of_a_small_one) {
    enum { BYTES = 64 << 20, T = 100 };
    uint64_t begin = fkv_now_ns();
    alarm((unsigned)(5 * check_patience_ms() / 1000 + 1)); /* waits by that clock never end */
    fkv_clock_set(begin);
    rig_open(&(fab_options){ .op_timeout_ms = T });
    static uint8_t large[BYTES], piece[TCP_CHUNK];
    fab_mr *m;
    CHECK_EQ(fab_reg_local(rig.p.client.domain, large, sizeof large, &m), 0);
    int fd;
    fab_conn *c = connect_to_raw(&fd);
    fab_read r = { .wr_id = 1, .local = large, .local_mr = m, .bytes = BYTES };
    CHECK_EQ(fab_post_reads(c, &r, 1), 1);
    memset(piece, 0x77, sizeof piece);
    for (size_t sent = 0; sent < BYTES; sent += sizeof piece) {
        uint8_t header[TCP_HEADER_BYTES];
        bool last = sent + sizeof piece == BYTES;
        fkv_clock_set(begin + (uint64_t)sent * (3 * T * 1000000ull) / BYTES); /* three times the limit in all */
        write_in_turns(
            fd, header,
            tcp_frame_encode(&(tcp_frame){ .type = TCP_DATA, .argument = sizeof piece, .last = last }, header));
        write_in_turns(fd, piece, sizeof piece);
    }
    CHECK_EQ(pair_expect(&rig.p, &rig.p.client, FAB_WC_READ, FAB_SUCCESS).wr_id, 1);
    CHECK(fkv_now_ns() - begin > 2 * T * 1000000ull);
    for (size_t i = 0; i < BYTES; i += 4096) CHECK(large[i] == 0x77);
    fab_disconnect(c);
    fab_dereg(m);
    close(fd);
    rig_close();
    fkv_clock_restore();
    alarm(0);
}

/* The host of the peer is gone: no byte, no acknowledgement, no reset. An idle connection finds out by keepalive, one
 * that sends by what is not acknowledged, and so does an owner, a little later. */
TEST(a_peer_whose_host_is_gone_is_found_on_idle_and_on_busy_connections) {
    rig_open(&(fab_options){ .op_timeout_ms = 500 });
    int idle_fd, busy_fd, client_fd;
    fab_conn *idle = connect_to_raw(&idle_fd), *busy = connect_to_raw(&busy_fd), *client;
    client_fd = rig_stranger(&client);
    rawtcp_vanish(idle_fd);
    rawtcp_vanish(busy_fd);
    rawtcp_vanish(client_fd);
    CHECK_EQ(fab_send(busy, &(struct iovec){ "are you there?", 14 }, 1), 0);
    CHECK_EQ(fab_send(client, &(struct iovec){ "and you?", 8 }, 1), 0);
    bool busy_first = false;
    for (int i = 0; i < 2; i++) {
        fab_conn *c = pair_expect(&rig.p, &rig.p.client, FAB_WC_DISCONNECT, FAB_RETRY_EXC_ERR).conn;
        CHECK(c == (busy_first ? idle : busy) || c == idle);
        busy_first |= c == busy;
        fab_disconnect(c);
    }
    CHECK(pair_expect(&rig.p, &rig.p.owner, FAB_WC_DISCONNECT, FAB_RETRY_EXC_ERR).conn == client);
    fab_disconnect(client);
    close(idle_fd);
    close(busy_fd);
    close(client_fd);
    others_are_served(false);
    rig_close();
}

int main(int argc, char **argv) {
    RUN(reads_that_are_not_answered_run_out_of_time_at_either_end);
    RUN(an_answer_that_drips_runs_out_of_time);
    RUN(a_large_read_that_goes_on_outlives_the_time_limit_of_a_small_one);
    RUN(a_peer_whose_host_is_gone_is_found_on_idle_and_on_busy_connections);
    return check_end(argc, argv);
}
