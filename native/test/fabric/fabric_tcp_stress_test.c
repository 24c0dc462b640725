/* The tcp provider under pressure: readers that do not read, sockets that take only part, regions that go away,
 * everything at once. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "../../fabric/tcp/frame.h"
#include "../check.h"
#include "fabric_tcp_rig.h"
#include "tcp_raw.h"

static uint64_t state;
static uint32_t below(uint32_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) * n >> 32);
}

static void take_little(int fd) {
    int bytes = 300000; /* much less, and loopback with its 64 KiB segments waits for persist timers */
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
}

/* ---- an owner whose peer does not read ---- */

static uint32_t text_bytes(uint64_t i) { return 1 + (uint32_t)(i * 7919 % 1500); }

TEST(a_peer_that_does_not_read_holds_up_nobody_and_gets_everything_in_the_end) {
    enum { READS = 500, TEXTS = 150 };
    rig_open(NULL);
    fab_conn *c;
    int fd = rig_stranger(&c);
    take_little(fd);
    for (uint32_t i = 0; i < READS; i++) {
        rawtcp_frame(fd, &(tcp_frame){ .type = TCP_READ,
                                       .number = i,
                                       .argument = i % 3 ? RIG_REGION : 1 + i,
                                       .rkey = fab_mr_rkey(rig.mr),
                                       .addr = fab_mr_addr(rig.mr) });
    }
    static uint8_t room[RIG_REGION], answer[RIG_REGION];
    for (uint64_t i = 0; i < TEXTS; i++) {
        rig_honest_read();
        pattern_fill(room, i, text_bytes(i));
        CHECK_EQ(fab_send(c, &(struct iovec){ room, text_bytes(i) }, 1), 0);
        fab_flush(rig.p.owner.cq);
    }
    size_t got = 0;
    for (uint32_t reads = 0, texts = 0; reads < READS || texts < TEXTS;) {
        tcp_frame f;
        CHECK(rawtcp_next_frame(fd, &f));
        if (f.type == TCP_SEND) {
            CHECK_EQ(f.argument, text_bytes(texts));
            CHECK(rawtcp_read(fd, room, f.argument) && pattern_ok(room, texts, f.argument));
            texts++;
        } else {
            size_t whole = reads % 3 ? RIG_REGION : 1 + reads;
            CHECK(f.type == TCP_DATA && f.status == 0 && f.number == reads && got + f.argument <= whole);
            CHECK(rawtcp_read(fd, answer + got, f.argument));
            got += f.argument;
            CHECK_EQ(f.last, got == whole);
            if (!f.last) continue;
            CHECK(memcmp(answer, rig.region.base, whole) == 0);
            got = 0;
            reads++;
        }
    }
    close(fd);
    pair_expect(&rig.p, &rig.p.owner, FAB_WC_DISCONNECT, FAB_RETRY_EXC_ERR);
    fab_disconnect(c);
    rig_close();
}

/* ---- a client whose socket is full: every place at which a write can stop ---- */

typedef struct parser {
    size_t n, at;
    uint8_t bytes[1 << 17];
    uint64_t texts, reads;
    uint32_t text_left;
} parser;

/* Takes some of what is in the socket, answers READs, checks texts. */
static void digest(parser *q, int fd) {
    ssize_t r = recv(fd, q->bytes + q->n, below(below(2) ? 64 : (uint32_t)(sizeof q->bytes - q->n)) + 1, MSG_DONTWAIT);
    CHECK(r > 0 || (r < 0 && errno == EAGAIN));
    if (r > 0) q->n += (size_t)r;
    for (;;) {
        tcp_frame f;
        int used = tcp_frame_decode(q->bytes + q->at, q->n - q->at, 16 << 10, &f);
        CHECK(used >= 0);
        if (used == 0) break;
        if (f.type == TCP_SEND) {
            if (q->n - q->at < (size_t)used + f.argument) break;
            CHECK_EQ(f.argument, text_bytes(q->texts));
            CHECK(pattern_ok(q->bytes + q->at + used, q->texts, f.argument));
            q->texts++;
            used += (int)f.argument;
        } else {
            CHECK(f.type == TCP_READ && f.number == (uint32_t)q->reads && f.argument == 8 && f.addr == q->reads);
            uint8_t out[TCP_HEADER_BYTES + 8];
            tcp_frame_encode(&(tcp_frame){ .type = TCP_DATA, .last = true, .number = f.number, .argument = 8 }, out);
            memcpy(out + TCP_HEADER_BYTES, &f.addr, 8);
            rawtcp_write(fd, out, sizeof out);
            q->reads++;
        }
        q->at += (size_t)used;
    }
    memmove(q->bytes, q->bytes + q->at, q->n - q->at);
    q->n -= q->at;
    q->at = 0;
}

TEST(a_stream_stays_whole_wherever_a_full_socket_cuts_it) {
    enum { TEXTS = 8000, READS = 8000 };
    rig_open(NULL);
    char where[64];
    fab_conn *c;
    int l = rawtcp_listen(where);
    take_little(l);
    CHECK_EQ(fab_connect(rig.p.client.cq, where, NULL, 0, NULL, &c), 0);
    int fd = accept(l, NULL, NULL);
    for (int i = 0; i < 20; i++) pair_turn(&rig.p); /* the hello leaves when connect() is seen to have ended */
    tcp_hello yes = rawtcp_hello();
    yes.kind = TCP_ACCEPT;
    yes.window = 1 << 30;
    rawtcp_accept(fd, &yes);
    CHECK(pair_expect(&rig.p, &rig.p.client, FAB_WC_CONNECT, FAB_SUCCESS).conn == c);

    static parser q;
    static uint8_t room[2048];
    memset(&q, 0, sizeof q);
    uint64_t texts = 0, reads = 0, done = 0;
    bool refused = false;
    while (q.texts < TEXTS || done < READS) {
        for (uint32_t i = below(20); i > 0 && texts < TEXTS && !refused; i--) {
            pattern_fill(room, texts, text_bytes(texts));
            int e = fab_send(c, &(struct iovec){ room, text_bytes(texts) }, 1);
            CHECK(e == 0 || e == -EAGAIN);
            refused = e != 0;
            texts += e == 0;
        }
        for (uint32_t i = below(20); i > 0 && reads < READS; i--) {
            fab_read r = { .wr_id = reads,
                           .local = rig.local + reads % 1024 * 8,
                           .local_mr = rig.local_mr,
                           .remote_addr = reads,
                           .rkey = 1,
                           .bytes = 8 };
            if (fab_post_reads(c, &r, 1) == 1) reads++;
        }
        pair_turn(&rig.p);
        while (end_has(&rig.p.client)) {
            fab_wc w = pair_next(&rig.p, &rig.p.client);
            CHECK(w.conn == c && w.status == FAB_SUCCESS);
            if (w.opcode == FAB_WC_SEND_READY) {
                CHECK(refused);
                refused = false;
                continue;
            }
            CHECK(w.opcode == FAB_WC_READ && w.wr_id == done && memcmp(rig.local + done % 1024 * 8, &done, 8) == 0);
            done++;
        }
        if (refused || texts == TEXTS || below(50) == 0) digest(&q, fd);
    }
    fab_disconnect(c);
    close(fd);
    close(l);
    rig_close();
}

/* The owner sends at any moment of the responder's answering: what it could not write itself the responder must, and
 * nothing else will happen on the connection that would take it along. */
TEST(what_is_sent_while_the_responder_writes_is_sent_by_it) {
    enum { ROUNDS = 4000 };
    rig_open(NULL);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        fab_read r = { .wr_id = i,
                       .local = rig.local,
                       .local_mr = rig.local_mr,
                       .remote_addr = fab_mr_addr(rig.mr),
                       .rkey = fab_mr_rkey(rig.mr),
                       .bytes = RIG_REGION };
        CHECK_EQ(fab_post_reads(rig.p.client_conn, &r, 1), 1);
        fab_flush(rig.p.client.cq);
        uint64_t until = fkv_now_ns() + below(80) * 1000u;
        while (fkv_now_ns() < until) continue;
        CHECK_EQ(fab_send(rig.p.owner_conn, &(struct iovec){ &i, sizeof i }, 1), 0);
        fab_flush(rig.p.owner.cq);
        for (int got = 0; got < 2; got++) {
            fab_wc w = pair_next(&rig.p, &rig.p.client);
            CHECK(w.opcode == FAB_WC_READ || (w.opcode == FAB_WC_RECV && memcmp(w.data, &i, sizeof i) == 0));
            if (w.opcode == FAB_WC_RECV) fab_release(w.conn, w.data);
        }
    }
    rig_close();
}

/* ---- regions that change, and that go away ---- */

static struct {
    uint64_t *words;
    _Atomic int stop;
} scribble;
static void *scribbler(void *arg) {
    (void)arg;
    for (uint64_t i = 1; !scribble.stop; i++)
        for (int w = 0; w < 512; w++)
            __atomic_store_n(&scribble.words[w], i << 32 | (i & 0xffffffff), __ATOMIC_RELAXED);
    return NULL;
}

TEST(aligned_words_are_never_torn) {
    rig_open(NULL);
    memset(rig.region.base, 0, 4096);
    scribble.words = (uint64_t *)(void *)rig.region.base;
    scribble.stop = 0;
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, scribbler, NULL), 0);
    for (uint64_t i = 0; i < 3000; i++) {
        uint32_t first = below(400), words = 1 + below(100);
        fab_read r = { .local = rig.local,
                       .local_mr = rig.local_mr,
                       .remote_addr = fab_mr_addr(rig.mr) + first * 8,
                       .rkey = fab_mr_rkey(rig.mr),
                       .bytes = words * 8 };
        CHECK_EQ(fab_post_reads(rig.p.client_conn, &r, 1), 1);
        pair_expect(&rig.p, &rig.p.client, FAB_WC_READ, FAB_SUCCESS);
        for (uint32_t w = 0; w < words; w++) {
            uint64_t v;
            memcpy(&v, rig.local + w * 8, 8);
            CHECK(v >> 32 == (v & 0xffffffff));
        }
    }
    scribble.stop = 1;
    CHECK_EQ(pthread_join(t, NULL), 0);
    rig_close();
}

TEST(a_region_may_be_unmapped_as_soon_as_dereg_returns) {
    enum { BYTES = 4 << 20, PIECE = 256 << 10, READS = BYTES / PIECE };
    static uint8_t local[BYTES];
    for (int round = 0; round < 60; round++) {
        pair p;
        fkv_region region;
        fab_mr *mr, *local_mr;
        pair_open(&p, &tcp_v4, NULL, 0);
        CHECK_EQ(fkv_region_alloc("gone", BYTES, 0, &region), 0);
        pattern_fill(region.base, (uint64_t)round, BYTES);
        CHECK_EQ(fab_reg(p.owner.domain, &region, 0, &mr), 0);
        CHECK_EQ(fab_reg_local(p.client.domain, local, sizeof local, &local_mr), 0);
        fab_read r[READS];
        for (uint64_t i = 0; i < READS; i++) {
            r[i] = (fab_read){ .wr_id = i,
                               .local = local + i * PIECE,
                               .local_mr = local_mr,
                               .remote_addr = fab_mr_addr(mr) + i * PIECE,
                               .rkey = fab_mr_rkey(mr),
                               .bytes = PIECE };
        }
        CHECK_EQ(fab_post_reads(p.client_conn, r, READS), READS);
        for (uint32_t i = below(60); i > 0; i--) pair_turn(&p);
        fab_dereg(mr);
        fkv_region_free(&region);
        fab_wc w;
        uint64_t done = 0, good = 0;
        for (; done < READS; done++) {
            w = pair_next(&p, &p.client);
            CHECK(w.opcode == FAB_WC_READ && w.wr_id == done);
            CHECK(w.status == FAB_SUCCESS || w.status == (done == good ? FAB_REM_ACCESS_ERR : FAB_WR_FLUSH_ERR));
            good += w.status == FAB_SUCCESS;
        }
        static uint8_t expected[BYTES];
        pattern_fill(expected, (uint64_t)round, BYTES);
        CHECK(memcmp(local, expected, good * PIECE) == 0);
        fab_disconnect(p.client_conn);
        p.client_conn = NULL;
        fab_dereg(local_mr);
        pair_close(&p);
    }
}

/* ---- the owner as a reader ---- */

TEST(an_owner_that_disconnects_in_the_middle_of_an_answer_has_its_buffer_back) {
    rig_open(NULL);
    static uint8_t bounce[TCP_CHUNK], answer[TCP_CHUNK];
    fab_mr *m;
    memset(answer, 0x11, sizeof answer);
    CHECK_EQ(fab_reg_local(rig.p.owner.domain, bounce, sizeof bounce, &m), 0);
    for (int round = 0; round < 30; round++) {
        fab_conn *c;
        tcp_frame f;
        int fd = rig_stranger(&c);
        fab_read r = { .local = bounce, .local_mr = m, .bytes = sizeof bounce };
        CHECK_EQ(fab_post_reads(c, &r, 1), 1);
        fab_flush(rig.p.owner.cq);
        CHECK(rawtcp_next_frame(fd, &f));
        rawtcp_frame(fd, &(tcp_frame){ .type = TCP_DATA, .last = true, .argument = sizeof bounce });
        rawtcp_write(fd, answer, 1000);
        if (round % 2) rig_honest_read();
        rawtcp_write(fd, answer, 1000);
        fab_disconnect(c);
        memset(bounce, 0xab, sizeof bounce);
        rawtcp_write(fd, answer, sizeof answer - 2000);
        rig_honest_read();
        for (size_t i = 0; i < sizeof bounce; i++) CHECK(bounce[i] == 0xab);
        close(fd);
    }
    fab_dereg(m);
    rig_close();
}

TEST(large_reads_in_both_directions_do_not_block_each_other) {
    enum { BYTES = 4 << 20, EACH = 6, ROUNDS = 3 };
    pair p;
    fkv_region region[2];
    fab_mr *mr[2], *local_mr[2];
    static uint8_t local[2][EACH][BYTES];
    pair_open(&p, &tcp_v4, NULL, 0);
    end *ends[2] = { &p.owner, &p.client };
    for (int e = 0; e < 2; e++) {
        CHECK_EQ(fkv_region_alloc("both", BYTES, 0, &region[e]), 0);
        pattern_fill(region[e].base, (uint64_t)e, BYTES);
        CHECK_EQ(fab_reg(ends[e]->domain, &region[e], 0, &mr[e]), 0);
        CHECK_EQ(fab_reg_local(ends[e]->domain, local[e], sizeof local[e], &local_mr[e]), 0);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int e = 0; e < 2; e++) {
            for (uint64_t i = 0; i < EACH; i++) {
                fab_read r = { .wr_id = i,
                               .local = local[e][i],
                               .local_mr = local_mr[e],
                               .remote_addr = fab_mr_addr(mr[!e]),
                               .rkey = fab_mr_rkey(mr[!e]),
                               .bytes = BYTES };
                CHECK_EQ(fab_post_reads(e ? p.client_conn : p.owner_conn, &r, 1), 1);
            }
        }
        for (int e = 0; e < 2; e++) {
            for (uint64_t i = 0; i < EACH; i++) CHECK_EQ(pair_expect(&p, ends[e], FAB_WC_READ, FAB_SUCCESS).wr_id, i);
            for (uint64_t i = 0; i < EACH; i++) CHECK(memcmp(local[e][i], region[!e].base, BYTES) == 0);
        }
        memset(local, 0, sizeof local);
    }
    fab_disconnect(p.client_conn);
    fab_disconnect(p.owner_conn);
    p.client_conn = p.owner_conn = NULL;
    for (int e = 0; e < 2; e++) {
        fab_dereg(local_mr[e]);
        fab_dereg(mr[e]);
        fkv_region_free(&region[e]);
    }
    pair_close(&p);
}

TEST(one_cq_reads_over_many_connections) {
    enum { CONNS = 60, READS = 6000, AT_ONCE = 500 };
    rig_open(NULL);
    fab_conn *client[CONNS], *owner[CONNS];
    for (int i = 0; i < CONNS; i++) pair_connect(&rig.p, RIG_TENANT, &client[i], &owner[i]);
    uint64_t posted = 0, done = 0;
    static uint64_t place[AT_ONCE];
    static bool busy[AT_ONCE];
    while (done < READS) {
        while (posted < READS && posted - done < AT_ONCE && below(8)) {
            uint64_t slot = below(AT_ONCE);
            if (busy[slot]) continue;
            busy[slot] = true;
            place[slot] = below(RIG_REGION - 100);
            fab_read r = { .wr_id = slot,
                           .local = rig.local + slot * 100,
                           .local_mr = rig.local_mr,
                           .remote_addr = fab_mr_addr(rig.mr) + place[slot],
                           .rkey = fab_mr_rkey(rig.mr),
                           .bytes = 100 };
            CHECK_EQ(fab_post_reads(client[below(CONNS)], &r, 1), 1);
            posted++;
        }
        if (posted == done) continue;
        uint64_t slot = pair_expect(&rig.p, &rig.p.client, FAB_WC_READ, FAB_SUCCESS).wr_id;
        CHECK(memcmp(rig.local + slot * 100, rig.region.base + place[slot], 100) == 0);
        busy[slot] = false;
        done++;
    }
    for (int i = 0; i < CONNS; i++) {
        fab_disconnect(client[i]);
        fab_disconnect(owner[i]);
    }
    rig_close();
}

int main(int argc, char **argv) {
    state = check_seed();
    RUN(a_peer_that_does_not_read_holds_up_nobody_and_gets_everything_in_the_end);
    RUN(a_stream_stays_whole_wherever_a_full_socket_cuts_it);
    RUN(what_is_sent_while_the_responder_writes_is_sent_by_it);
    RUN(aligned_words_are_never_torn);
    RUN(a_region_may_be_unmapped_as_soon_as_dereg_returns);
    RUN(an_owner_that_disconnects_in_the_middle_of_an_answer_has_its_buffer_back);
    RUN(large_reads_in_both_directions_do_not_block_each_other);
    RUN(one_cq_reads_over_many_connections);
    return check_end(argc, argv);
}
