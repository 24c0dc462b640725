/* Peers of the tcp provider that say what no honest peer says, say it in crumbs, or say nothing. Each costs its own
 * connection only. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "../../fabric/tcp/frame.h"
#include "../../fabric/tcp/tcp.h"
#include "../check.h"
#include "fabric_tcp_rig.h"
#include "tcp_raw.h"

enum { HANDSHAKE_MS = 3600000 }; /* of tests that move the clock */

static fab_wc owner_expects(fab_wc_opcode opcode, fab_wc_status status, fab_conn *c) {
    fab_wc w = pair_expect(&rig.p, &rig.p.owner, opcode, status);
    CHECK(w.conn == c);
    return w;
}

static const tcp_frame send_1 = { .type = TCP_SEND, .argument = 1 }, bye = { .type = TCP_BYE };
static tcp_frame read_frame(uint32_t number, uint64_t at, uint64_t bytes) {
    return (tcp_frame){ .type = TCP_READ,
                        .number = number,
                        .argument = bytes,
                        .rkey = fab_mr_rkey(rig.mr),
                        .addr = fab_mr_addr(rig.mr) + at };
}

/* ---- in pieces ---- */

static void expect_answer(int fd, uint32_t number, uint64_t at, uint32_t bytes) {
    static uint8_t room[TCP_CHUNK];
    tcp_frame f;
    CHECK(rawtcp_next_frame(fd, &f));
    CHECK(f.type == TCP_DATA && f.status == FAB_SUCCESS && f.number == number && f.argument == bytes && f.last);
    CHECK(rawtcp_read(fd, room, bytes));
    CHECK(memcmp(room, rig.region.base + at, bytes) == 0);
}

/* What an honest client says, cut before byte `cut`, and also between each two bytes when `crumbs`. */
static void say_in_pieces(const rawtcp_bytes *b, size_t cut, bool crumbs) {
    fab_conn *c;
    int fd = rig_stranger(&c);
    for (size_t i = 0; i < b->n; i++) {
        if (i == cut || crumbs) rig_honest_read(); /* the responder has taken what came before */
        rawtcp_write(fd, b->at + i, 1);
        if (!crumbs && i + 1 != cut) { /* the rest of the piece at once */
            size_t end = i < cut ? cut : b->n;
            rawtcp_write(fd, b->at + i + 1, end - i - 1);
            i = end - 1;
        }
    }
    expect_answer(fd, 0, 0, 64);
    fab_wc w = owner_expects(FAB_WC_RECV, FAB_SUCCESS, c);
    CHECK(w.bytes == 100 && pattern_ok(w.data, 8, 100));
    expect_answer(fd, 1, 8, 1000);
    w = owner_expects(FAB_WC_RECV, FAB_SUCCESS, c);
    CHECK(w.bytes == 1 && memcmp(w.data, "!", 1) == 0);
    uint8_t out[TCP_HEADER_BYTES];
    tcp_frame_encode(&bye, out);
    rawtcp_write(fd, out, cut % sizeof out);
    rig_honest_read();
    rawtcp_write(fd, out + cut % sizeof out, sizeof out - cut % sizeof out);
    owner_expects(FAB_WC_DISCONNECT, FAB_SUCCESS, c);
    fab_disconnect(c);
    rawtcp_expect_end(fd);
    close(fd);
}

TEST(frames_may_come_cut_at_any_byte) {
    rig_open(NULL);
    static rawtcp_bytes b;
    uint8_t text[100];
    b.n = 0;
    tcp_frame first = read_frame(0, 0, 64), second = read_frame(1, 8, 1000);
    rawtcp_add_frame(&b, &first);
    rawtcp_add_frame(&b, &(tcp_frame){ .type = TCP_SEND, .argument = 100 });
    pattern_fill(text, 8, sizeof text);
    rawtcp_add(&b, text, sizeof text);
    rawtcp_add_frame(&b, &second);
    rawtcp_add_frame(&b, &send_1);
    rawtcp_add(&b, "!", 1);
    rawtcp_add_frame(&b, &(tcp_frame){ .type = TCP_CREDIT });
    for (size_t cut = 0; cut < b.n; cut++) say_in_pieces(&b, cut, false);
    say_in_pieces(&b, 0, true);
    rig_close();
}

TEST(a_hello_may_come_cut_at_any_byte) {
    rig_open(NULL);
    uint8_t out[TCP_HELLO_BYTES];
    tcp_hello h = rawtcp_hello();
    h.priv_bytes = FAB_PRIVATE_MAX;
    pattern_fill(h.priv, 4, FAB_PRIVATE_MAX);
    tcp_hello_encode(&h, out);
    for (size_t cut = 1; cut < sizeof out; cut++) {
        int fd = rawtcp_connect(rig.p.address);
        rawtcp_write(fd, out, cut);
        rig_honest_read();
        rawtcp_write(fd, out + cut, sizeof out - cut);
        fab_wc w = pair_expect(&rig.p, &rig.p.owner, FAB_WC_ACCEPT, FAB_SUCCESS);
        CHECK(w.bytes == FAB_PRIVATE_MAX && memcmp(w.data, h.priv, w.bytes) == 0);
        close(fd);
        CHECK_EQ(pair_next(&rig.p, &rig.p.owner).opcode, FAB_WC_DISCONNECT);
        fab_disconnect(w.conn);
    }
    rig_close();
}

/* ---- before a connection is accepted ---- */

static void expect_dropped(const void *bytes, size_t n) {
    int fd = rawtcp_connect(rig.p.address);
    rawtcp_write(fd, bytes, n);
    rawtcp_expect_end(fd);
    close(fd);
    rig_honest_read();
    CHECK(!end_has(&rig.p.owner));
}

TEST(strangers_of_other_protocols_are_dropped_unseen) {
    rig_open(&(fab_options){ .handshake_ms = 600000 });
    expect_dropped("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35);
    expect_dropped("\x16\x03\x01\x02", 4);
    expect_dropped("F!", 2);
    uint64_t x = check_seed();
    for (int i = 0; i < 200; i++) {
        uint8_t bytes[300];
        for (size_t j = 0; j < sizeof bytes; j++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            bytes[j] = (uint8_t)(x >> 24);
        }
        expect_dropped(bytes, 4 + x % 290);
    }
    rig_close();
}

TEST(hellos_that_cannot_be_served_are_dropped_or_refused_unseen) {
    rig_open(&(fab_options){ .handshake_ms = 600000 });
    tcp_hello bad[5];
    for (int i = 0; i < 5; i++) bad[i] = rawtcp_hello();
    bad[0].kind = TCP_ACCEPT;
    bad[1].max_message = 100;
    bad[2].window = 100;
    bad[3].depth = 0;
    bad[4].window = 16 << 10; /* smaller than the cost of one message */
    for (int i = 0; i < 5; i++) {
        uint8_t out[TCP_HELLO_BYTES];
        expect_dropped(out, tcp_hello_encode(&bad[i], out));
    }
    tcp_hello later = rawtcp_hello();
    later.version_min = TCP_VERSION_MAX + 1;
    later.version_max = TCP_VERSION_MAX + 5;
    int fd = rawtcp_connect(rig.p.address);
    tcp_hello no = rawtcp_greet(fd, &later);
    CHECK(no.kind == TCP_REJECT && no.reason == TCP_REASON_VERSION && no.version_max == TCP_VERSION_MAX);
    rawtcp_expect_end(fd);
    close(fd);
    rig_honest_read();
    CHECK(!end_has(&rig.p.owner));
    rig_close();
}

TEST(a_client_that_does_not_wait_for_the_answer_is_cut_off) {
    rig_open(NULL);
    static rawtcp_bytes b;
    b.n = 0;
    tcp_hello h = rawtcp_hello();
    tcp_frame early = read_frame(0, 0, 64);
    rawtcp_add_hello(&b, &h);
    rawtcp_add_frame(&b, &early);
    int fd = rawtcp_connect(rig.p.address);
    rawtcp_write(fd, b.at, b.n);
    fab_conn *c = pair_expect(&rig.p, &rig.p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
    rawtcp_expect_end(fd);
    CHECK_EQ(fab_accept(c, RIG_TENANT, NULL, 0), -ENOTCONN);
    owner_expects(FAB_WC_DISCONNECT, FAB_REM_INV_REQ_ERR, c);
    fab_disconnect(c);
    close(fd);
    rig_honest_read();
    rig_close();
}

static bool has_ended(int fd) {
    char byte;
    ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno == ECONNRESET);
}

/* Time passes by the test's clock, so that those who are not slow are not taken for silent however busy the machine is.
 * */
TEST(a_client_that_says_nothing_is_dropped_in_time) {
    rig_open(&(fab_options){ .handshake_ms = HANDSHAKE_MS });
    int silent = rawtcp_connect(rig.p.address), half = rawtcp_connect(rig.p.address);
    uint8_t out[TCP_HELLO_BYTES];
    tcp_hello h = rawtcp_hello();
    tcp_hello_encode(&h, out);
    rawtcp_write(half, out, 79);
    rig_honest_read();
    CHECK(!has_ended(silent) && !has_ended(half));
    for (int rounds = 0; !has_ended(silent) || !has_ended(half); rounds++) { /* the first may accept them only */
        CHECK(rounds < 100);
        fkv_clock_skip((HANDSHAKE_MS + 1) * 1000000ll);
        rig_honest_read();
    }
    close(silent);
    close(half);
    rig_honest_read();
    CHECK(!end_has(&rig.p.owner));
    rig_close();
    fkv_clock_restore();
}

/* ---- after it was accepted ---- */

/* The bytes cost the stranger its connection; the owner learns why; the honest client is served. */
static void expect_cut_off(const rawtcp_bytes *b) {
    fab_conn *c;
    int fd = rig_stranger(&c);
    rawtcp_write(fd, b->at, b->n);
    fab_wc w;
    while ((w = pair_next(&rig.p, &rig.p.owner)).opcode == FAB_WC_RECV) CHECK(w.conn == c); /* held, not released */
    CHECK(w.opcode == FAB_WC_DISCONNECT && w.status == FAB_REM_INV_REQ_ERR && w.conn == c);
    fab_disconnect(c);
    rawtcp_expect_end(fd);
    close(fd);
    rig_honest_read();
}

TEST(frames_that_mean_nothing_cut_a_connection_off) {
    rig_open(NULL);
    static const tcp_frame bad[] = {
        { .type = 99 },
        { .type = TCP_SEND, .argument = 0 },
        { .type = TCP_SEND, .argument = (16 << 10) + 1 },
        { .type = TCP_SEND, .argument = UINT64_MAX },
        { .type = TCP_READ, .argument = 1ull << 40 },
        { .type = TCP_READ, .argument = 8, .status = 1 },
        { .type = TCP_DATA, .last = true, .argument = 8 }, /* nobody asked */
        { .type = TCP_DATA, .last = true },
        { .type = TCP_DATA, .last = true, .status = FAB_REM_ACCESS_ERR },
        { .type = TCP_CREDIT, .argument = 1 }, /* for messages that were never sent */
        { .type = TCP_CREDIT, .argument = UINT64_MAX },
        { .type = TCP_BYE, .argument = 1 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        static rawtcp_bytes b;
        b.n = 0;
        rawtcp_add_frame(&b, &bad[i]);
        expect_cut_off(&b);
    }
    rig_close();
}

TEST(a_hello_where_frames_belong_cuts_a_connection_off) {
    rig_open(NULL);
    static rawtcp_bytes b;
    b.n = 0;
    tcp_hello h = rawtcp_hello();
    rawtcp_add_hello(&b, &h);
    expect_cut_off(&b);
    rig_close();
}

TEST(messages_beyond_the_window_cut_a_connection_off) {
    rig_open(NULL);
    fab_conn *c;
    int fd = rig_stranger(&c);
    static uint8_t room[16 << 10];
    for (int i = 0; i < 40; i++) { /* 640 KiB against a window of 256 */
        rawtcp_frame(fd, &(tcp_frame){ .type = TCP_SEND, .argument = sizeof room });
        rawtcp_write(fd, room, sizeof room);
    }
    size_t held = 0;
    fab_wc w;
    while ((w = pair_next(&rig.p, &rig.p.owner)).opcode == FAB_WC_RECV) held += w.bytes;
    CHECK(w.opcode == FAB_WC_DISCONNECT && w.status == FAB_REM_INV_REQ_ERR && w.conn == c);
    CHECK(held <= 256 << 10);
    fab_disconnect(c);
    close(fd);
    rig_honest_read();
    rig_close();
}

TEST(reads_beyond_the_depth_cut_a_connection_off) {
    rig_open(NULL);
    static rawtcp_bytes b;
    b.n = 0;
    for (uint32_t i = 0; i < 2000; i++) { /* 128 MB of answers that nobody reads */
        tcp_frame f = read_frame(i, 0, RIG_REGION);
        rawtcp_add_frame(&b, &f);
    }
    expect_cut_off(&b);
    rig_close();
}

TEST(credit_that_goes_backwards_cuts_a_connection_off) {
    rig_open(NULL);
    fab_conn *c;
    int fd = rig_stranger(&c);
    tcp_frame f;
    CHECK_EQ(fab_send(c, &(struct iovec){ "hello", 5 }, 1), 0);
    fab_flush(rig.p.owner.cq);
    CHECK(rawtcp_next_frame(fd, &f) && f.type == TCP_SEND);
    rawtcp_frame(fd, &(tcp_frame){ .type = TCP_CREDIT, .argument = tcp_cost(5) });
    rig_honest_read();
    CHECK(!end_has(&rig.p.owner));
    rawtcp_frame(fd, &(tcp_frame){ .type = TCP_CREDIT, .argument = tcp_cost(5) - 1 });
    owner_expects(FAB_WC_DISCONNECT, FAB_REM_INV_REQ_ERR, c);
    fab_disconnect(c);
    close(fd);
    rig_close();
}

TEST(after_a_refused_read_nothing_more_is_served) {
    rig_open(NULL);
    fab_conn *c;
    int fd = rig_stranger(&c);
    tcp_frame good = read_frame(0, 0, 64), bad = read_frame(1, 0, 64), f;
    bad.rkey ^= 1;
    rawtcp_frame(fd, &good);
    rawtcp_frame(fd, &bad);
    rawtcp_frame(fd, &good);
    expect_answer(fd, 0, 0, 64);
    CHECK(rawtcp_next_frame(fd, &f));
    CHECK(f.type == TCP_DATA && f.status == FAB_REM_ACCESS_ERR && f.number == 1 && f.argument == 0 && f.last);
    CHECK(!rawtcp_next_frame(fd, &f));
    owner_expects(FAB_WC_DISCONNECT, FAB_REM_ACCESS_ERR, c);
    fab_disconnect(c);
    close(fd);
    rig_honest_read();
    rig_close();
}

/* ---- answers to the owner's READs ---- */

/* A peer that reads nothing, so that READs are posted that cannot be sent, and answers those. */
TEST(answers_to_reads_that_were_not_sent_cut_a_connection_off) {
    enum { LAG = 16 * TCP_DEPTH, FRAME = TCP_HEADER_BYTES + 8 };
    rig_open(NULL);
    fab_conn *conn;
    int fd = rig_stranger(&conn), small = 4096;
    const tcp_conn *c = (const tcp_conn *)conn;
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    static uint8_t to[8], said[256 * FRAME], heard[1 << 16];
    fab_mr *mr;
    CHECK_EQ(fab_reg_local(rig.p.owner.domain, to, sizeof to, &mr), 0);
    fab_read r = { .local = to, .local_mr = mr, .remote_addr = 1, .rkey = 2, .bytes = sizeof to };
    uint32_t posted = 0, answered = 0;
    size_t at = 0, end = 0;
    bool over = false;
    uint64_t start = fkv_now_ns();
    while (!over) {
        CHECK(check_in_time(start));
        if (c->posted - c->requested <= LAG) {
            while (fab_post_reads(conn, &r, 1) == 1) posted++;
            fab_flush(rig.p.owner.cq);
            if (at == end)
                for (at = end = 0; answered != posted && end + FRAME <= sizeof said; answered++) {
                    tcp_frame f = { .type = TCP_DATA, .last = true, .number = answered, .argument = sizeof to };
                    end += tcp_frame_encode(&f, said + end) + sizeof to;
                }
            ssize_t n = send(fd, said + at, end - at, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n > 0) at += (size_t)n;
        } else {
            (void)!recv(fd, heard, sizeof heard, MSG_DONTWAIT); /* it reads on, and what waited is sent */
            fab_flush(rig.p.owner.cq);
        }
        fab_wc wc[64];
        int n = fab_poll(rig.p.owner.cq, wc, 64);
        for (int i = 0; i < n; i++) over |= wc[i].opcode == FAB_WC_DISCONNECT;
    }
    fab_disconnect(conn);
    close(fd);
    fab_dereg(mr);
    rig_honest_read();
    rig_close();
}

TEST(false_answers_cut_a_connection_off_and_write_nothing_beyond_the_buffer) {
    static const struct {
        tcp_frame f;
        uint32_t payload;
    } bad[] = {
        { { .type = TCP_DATA, .number = 1, .last = true, .argument = 100 }, 100 }, /* not the oldest */
        { { .type = TCP_DATA, .number = UINT32_MAX, .last = true, .argument = 100 }, 100 },
        { { .type = TCP_DATA, .last = true, .argument = 101 }, 101 }, /* more than was asked for */
        { { .type = TCP_DATA, .last = true, .argument = 99 }, 99 },   /* less */
        { { .type = TCP_DATA, .argument = 100 }, 100 },               /* all, but not the last */
        { { .type = TCP_DATA, .last = true }, 0 },
        { { .type = TCP_DATA, .last = true, .argument = TCP_CHUNK }, TCP_CHUNK },
    };
    rig_open(NULL);
    static uint8_t bounce[300], junk[TCP_CHUNK];
    fab_mr *bounce_mr;
    memset(junk, 0x55, sizeof junk);
    CHECK_EQ(fab_reg_local(rig.p.owner.domain, bounce, sizeof bounce, &bounce_mr), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fab_conn *c;
        int fd = rig_stranger(&c);
        memset(bounce, 0, sizeof bounce);
        fab_read r = {
            .wr_id = 1, .local = bounce + 100, .local_mr = bounce_mr, .remote_addr = 1, .rkey = 2, .bytes = 100
        };
        CHECK_EQ(fab_post_reads(c, &r, 1), 1);
        fab_flush(rig.p.owner.cq);
        tcp_frame f;
        CHECK(rawtcp_next_frame(fd, &f) && f.type == TCP_READ && f.argument == 100 && f.rkey == 2 && f.addr == 1);
        rawtcp_frame(fd, &bad[i].f);
        rawtcp_write(fd, junk, bad[i].payload);
        CHECK_EQ(owner_expects(FAB_WC_READ, FAB_REM_INV_REQ_ERR, c).wr_id, 1);
        owner_expects(FAB_WC_DISCONNECT, FAB_REM_INV_REQ_ERR, c);
        for (int j = 0; j < 100; j++) CHECK(bounce[j] == 0 && bounce[200 + j] == 0);
        fab_disconnect(c);
        close(fd);
        rig_honest_read();
    }
    fab_dereg(bounce_mr);
    rig_close();
}

TEST(a_refusal_by_the_peer_completes_the_read_and_flushes_the_next) {
    rig_open(NULL);
    static uint8_t bounce[64];
    fab_mr *m;
    fab_conn *c;
    tcp_frame f;
    int fd = rig_stranger(&c);
    CHECK_EQ(fab_reg_local(rig.p.owner.domain, bounce, sizeof bounce, &m), 0);
    fab_read r[2] = { { .wr_id = 1, .local = bounce, .local_mr = m, .bytes = 8 },
                      { .wr_id = 2, .local = bounce, .local_mr = m, .bytes = 8 } };
    CHECK_EQ(fab_post_reads(c, r, 2), 2);
    fab_flush(rig.p.owner.cq);
    CHECK(rawtcp_next_frame(fd, &f) && rawtcp_next_frame(fd, &f));
    rawtcp_frame(fd, &(tcp_frame){ .type = TCP_DATA, .last = true, .status = FAB_REM_ACCESS_ERR });
    CHECK_EQ(owner_expects(FAB_WC_READ, FAB_REM_ACCESS_ERR, c).wr_id, 1);
    CHECK_EQ(owner_expects(FAB_WC_READ, FAB_WR_FLUSH_ERR, c).wr_id, 2);
    owner_expects(FAB_WC_DISCONNECT, FAB_REM_ACCESS_ERR, c);
    fab_disconnect(c);
    fab_dereg(m);
    close(fd);
    rig_close();
}

/* ---- servers that are none ---- */

static fab_conn *connect_to(const char *where) {
    fab_conn *c;
    CHECK_EQ(fab_connect(rig.p.client.cq, where, NULL, 0, NULL, &c), 0);
    fab_flush(rig.p.client.cq);
    for (int i = 0; i < 10; i++) pair_turn(&rig.p);
    return c;
}

static void expect_no_connection(fab_conn *c, fab_wc_status status) {
    fab_wc w = pair_expect(&rig.p, &rig.p.client, FAB_WC_CONNECT, status);
    CHECK(w.conn == c);
    w = pair_next(&rig.p, &rig.p.client);
    CHECK(w.conn == c && w.opcode == FAB_WC_DISCONNECT && w.status != FAB_SUCCESS);
    fab_disconnect(c);
    rig_honest_read();
}

TEST(a_server_that_is_none_is_given_up_by_its_client) {
    rig_open(&(fab_options){ .handshake_ms = HANDSHAKE_MS });
    char where[64];
    int l = rawtcp_listen(where);
    fab_conn *c = connect_to(where);
    int fd = accept(l, NULL, NULL);
    rawtcp_write(fd, "220 mail.example ESMTP\r\n", 24);
    expect_no_connection(c, FAB_REM_INV_REQ_ERR);
    close(fd);

    c = connect_to(where); /* says hello back, as a client would */
    fd = accept(l, NULL, NULL);
    tcp_hello h = rawtcp_hello();
    rawtcp_greet(fd, &h);
    expect_no_connection(c, FAB_REM_INV_REQ_ERR);
    close(fd);

    c = connect_to(where); /* closes without a word */
    fd = accept(l, NULL, NULL);
    close(fd);
    expect_no_connection(c, FAB_RETRY_EXC_ERR);

    c = connect_to(where); /* is silent */
    fd = accept(l, NULL, NULL);
    fkv_clock_skip((HANDSHAKE_MS + 1) * 1000000ll);
    expect_no_connection(c, FAB_RETRY_EXC_ERR);
    close(fd);

    c = connect_to(where); /* speaks only a later version */
    fd = accept(l, NULL, NULL);
    h.kind = TCP_REJECT;
    h.reason = TCP_REASON_VERSION;
    uint8_t out[TCP_HELLO_BYTES];
    rawtcp_write(fd, out, tcp_hello_encode(&h, out));
    expect_no_connection(c, FAB_REM_INV_REQ_ERR);
    close(fd);
    close(l);
    rig_close();
    fkv_clock_restore();
}

int main(int argc, char **argv) {
    RUN(frames_may_come_cut_at_any_byte);
    RUN(a_hello_may_come_cut_at_any_byte);
    RUN(strangers_of_other_protocols_are_dropped_unseen);
    RUN(hellos_that_cannot_be_served_are_dropped_or_refused_unseen);
    RUN(a_client_that_does_not_wait_for_the_answer_is_cut_off);
    RUN(a_client_that_says_nothing_is_dropped_in_time);
    RUN(frames_that_mean_nothing_cut_a_connection_off);
    RUN(a_hello_where_frames_belong_cuts_a_connection_off);
    RUN(messages_beyond_the_window_cut_a_connection_off);
    RUN(reads_beyond_the_depth_cut_a_connection_off);
    RUN(credit_that_goes_backwards_cuts_a_connection_off);
    RUN(after_a_refused_read_nothing_more_is_served);
    RUN(false_answers_cut_a_connection_off_and_write_nothing_beyond_the_buffer);
    RUN(answers_to_reads_that_were_not_sent_cut_a_connection_off);
    RUN(a_refusal_by_the_peer_completes_the_read_and_flushes_the_next);
    RUN(a_server_that_is_none_is_given_up_by_its_client);
    return check_end(argc, argv);
}
