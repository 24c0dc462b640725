/* Connections that their owner attends to: the conformance suite, and the moment at which they change their driver. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "../../fabric/tcp/tcp.h"
#include "../check.h"
#include "fabric_conformance.h"
#include "fabric_tcp_rig.h"
#include "tcp_raw.h"

static const char *address(void) { return "127.0.0.1:0"; }
static const fabric_under_test attended = {
    .provider = FAB_TCP, .address = address, .sleeps = true, .forks = true, .attends = true
};

static void wait_until_moved(const fab_conn *c) {
    uint64_t give_up = fkv_now_ns() + check_patience_ms() * 1000000ull;
    while (((const tcp_conn *)c)->threaded) {
        pair_turn(&rig.p);
        CHECK(fkv_now_ns() < give_up);
    }
}

/* What a stranger receives while the owner works. */
static void take(int fd, void *to, size_t n) {
    uint64_t give_up = fkv_now_ns() + check_patience_ms() * 1000000ull;
    for (size_t got = 0; got < n;) {
        ssize_t r = recv(fd, (uint8_t *)to + got, n - got, MSG_DONTWAIT);
        CHECK(r > 0 || (r < 0 && errno == EAGAIN));
        if (r > 0) got += (size_t)r;
        pair_turn(&rig.p);
        CHECK(fkv_now_ns() < give_up);
    }
}
static tcp_frame take_frame(int fd) {
    uint8_t header[TCP_HEADER_BYTES];
    tcp_frame f;
    take(fd, header, sizeof header);
    CHECK_EQ(tcp_frame_decode(header, sizeof header, 16 << 10, &f), (int)sizeof header);
    return f;
}
static void take_end(int fd) {
    uint8_t byte;
    ssize_t r;
    while ((r = recv(fd, &byte, 1, MSG_DONTWAIT)) > 0 || (r < 0 && errno == EAGAIN)) pair_turn(&rig.p);
}

static tcp_frame read_of(uint32_t number, uint64_t rkey, uint32_t bytes) {
    return (
        tcp_frame){ .type = TCP_READ, .number = number, .argument = bytes, .rkey = rkey, .addr = fab_mr_addr(rig.mr) };
}

static void say(int fd, uint64_t text) {
    rawtcp_frame(fd, &(tcp_frame){ .type = TCP_SEND, .argument = sizeof text });
    rawtcp_write(fd, &text, sizeof text);
}

TEST(its_own_thread_reads_what_it_attends_to) {
    fab_conn *c;
    rig_open(NULL);
    int fd = rig_stranger(&c);
    CHECK(((tcp_conn *)c)->threaded);
    fab_attend(c);
    fab_attend(c); /* says nothing new */
    wait_until_moved(c);
    say(fd, 7);
    fab_wc w = pair_expect(&rig.p, &rig.p.owner, FAB_WC_RECV, FAB_SUCCESS);
    CHECK(w.conn == c);
    fab_release(c, w.data);
    rig_honest_read(); /* the responder goes on with others */
    close(fd);
    pair_expect(&rig.p, &rig.p.owner, FAB_WC_DISCONNECT, FAB_RETRY_EXC_ERR);
    fab_disconnect(c);
    rig_close();
}

/* Whoever has the connection at that moment, nothing comes twice or out of order. */
TEST(what_comes_while_it_moves_comes_once_and_in_order) {
    enum { ROUNDS = 30, TEXTS = 40 };
    rig_open(NULL);
    for (int round = 0; round < ROUNDS; round++) {
        fab_conn *c;
        int fd = rig_stranger(&c);
        uint64_t said = 0;
        for (; said < (uint64_t)(round % 3) * 10; said++) say(fd, said);
        fab_attend(c);
        for (; said < TEXTS; said++) {
            say(fd, said);
            if (said % 10 == 0) pair_turn(&rig.p);
        }
        for (uint64_t i = 0, text; i < TEXTS; i++) {
            fab_wc w = pair_expect(&rig.p, &rig.p.owner, FAB_WC_RECV, FAB_SUCCESS);
            CHECK(w.conn == c && w.bytes == sizeof text);
            memcpy(&text, w.data, sizeof text);
            CHECK_EQ(text, i);
            fab_release(c, w.data);
        }
        fab_disconnect(c);
        take_end(fd);
        close(fd);
    }
    rig_close();
}

/* One that begins to move, and so many turns later. */
static int stranger_that_moves(fab_conn **c, int turns) {
    int fd = rig_stranger(c);
    fab_attend(*c);
    while (turns-- > 0) pair_turn(&rig.p);
    return fd;
}

TEST(the_user_may_go_before_it_has_moved) {
    rig_open(NULL);
    for (int round = 0; round < 30; round++) {
        fab_conn *c;
        int fd = stranger_that_moves(&c, round % 4);
        CHECK_EQ(fab_send(c, &(struct iovec){ "last", 4 }, 1), 0);
        fab_disconnect(c);
        uint8_t text[4];
        tcp_frame f = take_frame(fd);
        CHECK(f.type == TCP_SEND && f.argument == sizeof text);
        take(fd, text, sizeof text);
        CHECK_EQ(take_frame(fd).type, TCP_BYE);
        take_end(fd);
        close(fd);
    }
    rig_close();
}

TEST(the_peer_may_go_before_it_has_moved) {
    rig_open(NULL);
    for (int round = 0; round < 30; round++) {
        fab_conn *c;
        int fd = stranger_that_moves(&c, round % 4);
        close(fd);
        CHECK(pair_expect(&rig.p, &rig.p.owner, FAB_WC_DISCONNECT, FAB_RETRY_EXC_ERR).conn == c);
        wait_until_moved(c);
        fab_disconnect(c);
    }
    rig_close();
}

TEST(one_that_is_over_moves_as_well) {
    fab_conn *c;
    rig_open(NULL);
    int fd = rig_stranger(&c);
    tcp_frame forbidden = read_of(0, fab_mr_rkey(rig.mr) ^ 1, 64);
    rawtcp_frame(fd, &forbidden);
    pair_expect(&rig.p, &rig.p.owner, FAB_WC_DISCONNECT, FAB_REM_ACCESS_ERR);
    fab_attend(c);
    wait_until_moved(c);
    fab_disconnect(c);
    CHECK_EQ(take_frame(fd).status, FAB_REM_ACCESS_ERR);
    take_end(fd);
    close(fd);
    rig_close();
}

/* The socket is full, and there is more to answer: who drives it now goes on with that. */
TEST(answers_that_wait_for_the_socket_go_on) {
    enum { READS = 100 };
    static uint8_t answer[RIG_REGION];
    fab_conn *c;
    int little = 300000;
    rig_open(NULL);
    int fd = rig_stranger(&c);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
    for (uint32_t i = 0; i < READS; i++) {
        tcp_frame f = read_of(i, fab_mr_rkey(rig.mr), RIG_REGION);
        rawtcp_frame(fd, &f);
    }
    rig_honest_read();
    fab_attend(c);
    wait_until_moved(c);
    for (uint32_t i = 0; i < READS; i++) {
        for (size_t got = 0; got < RIG_REGION;) {
            tcp_frame f = take_frame(fd);
            CHECK(f.type == TCP_DATA && f.status == 0 && f.number == i && got + f.argument <= RIG_REGION);
            take(fd, answer + got, f.argument);
            got += f.argument;
        }
        CHECK(memcmp(answer, rig.region.base, RIG_REGION) == 0);
    }
    close(fd);
    pair_expect(&rig.p, &rig.p.owner, FAB_WC_DISCONNECT, FAB_RETRY_EXC_ERR);
    fab_disconnect(c);
    rig_close();
}

TEST(a_queue_may_be_destroyed_before_all_have_moved) {
    enum { CONNS = 8 };
    for (int round = 0; round < 5; round++) {
        int fd[CONNS];
        fab_conn *c[CONNS];
        rig_open(NULL);
        for (int i = 0; i < CONNS; i++) fd[i] = rig_stranger(&c[i]);
        for (int i = 0; i < CONNS; i++) fab_attend(c[i]);
        for (int i = 0; i < round; i++) fab_disconnect(c[i]);
        rig_close();
        for (int i = 0; i < CONNS; i++) close(fd[i]);
    }
}

int main(int argc, char **argv) {
    fabric_conformance_child(&attended, argc, argv);
    RUN(its_own_thread_reads_what_it_attends_to);
    RUN(what_comes_while_it_moves_comes_once_and_in_order);
    RUN(the_user_may_go_before_it_has_moved);
    RUN(the_peer_may_go_before_it_has_moved);
    RUN(one_that_is_over_moves_as_well);
    RUN(answers_that_wait_for_the_socket_go_on);
    RUN(a_queue_may_be_destroyed_before_all_have_moved);
    fabric_conformance_connections(&attended);
    fabric_conformance_sends(&attended);
    fabric_conformance_reads(&attended);
    return check_end(argc, argv);
}
