/* The shm provider against clients that lie, garble, stay silent or belong to somebody else. In each test an honest
 * client is connected as well, and must not notice. */
#include <signal.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "../check.h"
#include "fabric_pair.h"
#include "shm_raw.h"

static const fabric_under_test shm = {
    .provider = FAB_SHM, .address = raw_fresh_address, .sleeps = true, .attach_maps = true
};

static pair p;
static uint64_t random_state;
static uint64_t random_word(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void open_with_honest_client(const fab_options *o) { pair_open(&p, &shm, o, 0); }

static void honest_client_is_well(void) {
    CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ "well?", 5 }, 1), 0);
    fab_wc w = pair_expect(&p, &p.owner, FAB_WC_RECV, FAB_SUCCESS);
    CHECK(w.conn == p.owner_conn && w.bytes == 5);
    fab_release(w.conn, w.data);
}

/* A hostile peer that got as far as being connected; *conn is the owner's end. */
static raw hostile_client(fab_conn **conn) {
    raw r = raw_connect(p.address);
    raw_hello(&r);
    *conn = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
    CHECK_EQ(fab_accept(*conn, 0, NULL, 0), 0);
    raw_welcomed(&r);
    return r;
}

static void expect_cut_off(raw *r, fab_conn *conn) {
    fab_wc w = pair_next(&p, &p.owner);
    CHECK(w.opcode == FAB_WC_DISCONNECT && w.status == FAB_GENERAL_ERR && w.conn == conn);
    fab_disconnect(conn);
    raw_wait_for_end(r);
    raw_close(r);
    honest_client_is_well();
}

/* ---- the socket ---- */

/* The owner's agent has looked at its sockets, then at its clock. */
static void agent_turn(void) {
    fab_listener *l;
    CHECK_EQ(fab_listen(p.owner.cq, raw_fresh_address(), &l), 0);
    fab_unlisten(l);
}

/* Time passes by the test's clock, so that those who are not slow are not taken for silent however busy the machine is.
 * */
TEST(a_peer_that_says_nothing_is_dropped_and_gives_its_place_back) {
    enum { SILENT = 3, HANDSHAKE_MS = 3600000 };
    open_with_honest_client(&(fab_options){ .handshake_ms = HANDSHAKE_MS, .max_conns = 1 + SILENT });
    for (int round = 0; round < 2; round++) {
        raw r[SILENT];
        for (int i = 0; i < SILENT; i++) r[i] = raw_connect(p.address);
        agent_turn();
        for (int i = 0; i < SILENT; i++) CHECK(!raw_has_ended(&r[i]));
        /* the first turn may accept them only */
        for (int i = 0, rounds = 0; i < SILENT; i += raw_has_ended(&r[i])) {
            CHECK(rounds++ < 100);
            fkv_clock_skip((HANDSHAKE_MS + 1) * 1000000ll);
            agent_turn();
        }
        for (int i = 0; i < SILENT; i++) raw_close(&r[i]);
    }
    fab_conn *conn;
    raw r = hostile_client(&conn);
    raw_close(&r);
    CHECK_EQ(pair_next(&p, &p.owner).opcode, FAB_WC_DISCONNECT);
    fab_disconnect(conn);
    honest_client_is_well();
    CHECK(!end_has(&p.owner));
    pair_close(&p);
    fkv_clock_restore();
}

TEST(silent_peers_take_no_places_and_the_oldest_of_them_goes) {
    enum { SILENT = 256, MORE = 5 }; /* SILENT as shm.h says */
    static raw r[SILENT + MORE];
    open_with_honest_client(&(fab_options){ .handshake_ms = 600000, .max_conns = 2 });
    for (int i = 0; i < SILENT + MORE; i++) r[i] = raw_connect(p.address);
    for (int i = 0; i < MORE; i++) raw_wait_for_end(&r[i]);
    agent_turn();
    for (int i = MORE; i < SILENT + MORE; i++) CHECK(!raw_has_ended(&r[i]));
    raw_hello(&r[MORE]);
    fab_conn *conn = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
    shm_frame no;
    raw_hello(&r[MORE + 1]); /* one too many */
    raw_expect(&r[MORE + 1], SHM_REJECT, &no, NULL);
    for (int i = 0; i < SILENT + MORE; i++) raw_close(&r[i]);
    CHECK_EQ(pair_next(&p, &p.owner).opcode, FAB_WC_DISCONNECT);
    fab_disconnect(conn);
    honest_client_is_well();
    CHECK(!end_has(&p.owner));
    pair_close(&p);
}

static void send_garbage(raw *r, bool greet) {
    union {
        uint8_t bytes[2 * sizeof(shm_frame)];
        shm_frame f;
    } m;
    for (size_t i = 0; i < sizeof m; i += 8) {
        uint64_t w = random_word();
        memcpy(m.bytes + i, &w, 8);
    }
    size_t n = sizeof m.f;
    switch (random_word() % 4) {
    case 0: n = 1 + random_word() % sizeof m; break; /* of any length */
    case 1: m.f.magic = SHM_MAGIC; break;            /* right at first sight */
    case 2:
        m.f.magic = SHM_MAGIC;
        m.f.type = (uint8_t)(random_word() % 9);
        break;
    default: /* nearly right */
        m.f = raw_frame((uint8_t)(random_word() % 9));
        m.f.count = (uint32_t)(random_word() % 70);
        m.f.slot = (uint32_t)(random_word() % 5000);
        m.f.slots[0] = (uint32_t)(random_word() % 5000);
        m.f.id = random_word() % 4;
        m.f.version_max = (uint8_t)(random_word() % 3);
        m.f.max_message = (uint32_t)(random_word() % 100000);
    }
    if (!greet && m.f.type == SHM_HELLO) m.f.type = SHM_WELCOME;
    int fds[4] = { r->fd, r->fd, r->fd, r->fd };
    raw_send(r, m.bytes, n, fds, (int)(random_word() % 5));
}

TEST(garbage_on_the_socket_ends_only_the_connection_it_came_by) {
    open_with_honest_client(NULL);
    for (int round = 0; round < 400; round++) {
        fab_conn *conn = NULL;
        raw r = raw_connect(p.address);
        int stage = (int)(random_word() % 3);
        if (stage >= 1) {
            raw_hello(&r);
            conn = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
        }
        if (stage == 2) {
            CHECK_EQ(fab_accept(conn, 0, NULL, 0), 0);
            raw_welcomed(&r);
        }
        for (int i = 0; i < 8; i++) send_garbage(&r, stage > 0); /* it may be cut off before the last */
        raw_close(&r);
        if (conn) {
            fab_wc w = pair_next(&p, &p.owner);
            CHECK(w.opcode == FAB_WC_DISCONNECT && w.conn == conn);
            fab_disconnect(conn);
        }
        honest_client_is_well();
    }
    CHECK(!end_has(&p.owner));
    pair_close(&p);
}

TEST(a_greeting_out_of_range_is_not_shown_to_the_owner) {
    open_with_honest_client(NULL);
    for (int way = 0; way < 6; way++) {
        raw r = raw_connect(p.address);
        shm_frame f = raw_frame(SHM_HELLO);
        f.version_min = f.version_max = SHM_VERSION_MAX;
        f.max_message = 1024;
        switch (way) {
        case 0: f.count = FAB_PRIVATE_MAX + 1; break;
        case 1: f.count = UINT32_MAX; break;
        case 2: f.version_min = f.version_max = SHM_VERSION_MAX + 1; break;
        case 3: f.version_min = f.version_max = SHM_VERSION_MIN - 1; break;
        case 4: f.max_message = 255; break;
        case 5: f.type = SHM_ATTACH; break;
        }
        raw_send(&r, &f, sizeof f, &r.fd, way == 4 ? 1 : 0);
        raw_wait_for_end(&r);
        raw_close(&r);
        honest_client_is_well();
    }
    CHECK(!end_has(&p.owner));
    pair_close(&p);
}

TEST(a_frame_out_of_place_cuts_the_peer_off) {
    open_with_honest_client(NULL);
    for (int way = 0; way < 6; way++) {
        fab_conn *conn;
        raw r = hostile_client(&conn);
        shm_frame f = raw_frame(SHM_HELLO); /* 0: HELLO again */
        if (way == 1) f.magic ^= 1;
        if (way == 2) f = raw_frame(SHM_DETACH), f.count = 1, f.slots[0] = 0; /* never given */
        if (way == 3) f = raw_frame(SHM_DETACH), f.count = 1, f.slots[0] = UINT32_MAX;
        if (way == 4) f = raw_frame(SHM_DETACH), f.count = SHM_FRAME_SLOTS + 1;
        if (way == 5) f = raw_frame(SHM_ATTACHED), f.id = 1; /* never asked */
        raw_send(&r, &f, sizeof f, NULL, 0);
        expect_cut_off(&r, conn);
    }
    pair_close(&p);
}

/* Asks until neither end's socket holds more; returns how often. */
static uint64_t ask_and_do_not_read(raw *r) {
    shm_frame f = raw_frame(SHM_ATTACH);
    f.bytes = 8;
    for (int refused = 0; refused < 100;) {
        if (send(r->fd, &f, sizeof f, MSG_DONTWAIT) == sizeof f) {
            f.id++;
            refused = 0;
        } else {
            refused++;
            sched_yield();
        }
    }
    return f.id;
}

TEST(a_peer_that_asks_and_does_not_read_the_answers_waits_for_them) {
    open_with_honest_client(NULL);
    for (int dies = 0; dies < 2; dies++) {
        fab_conn *conn;
        raw r = hostile_client(&conn);
        uint64_t asked = ask_and_do_not_read(&r);
        honest_client_is_well();
        for (uint64_t i = 0; i < asked && !dies; i++) {
            shm_frame f;
            int fds[4];
            CHECK_EQ(raw_expect(&r, SHM_ATTACHED, &f, fds), 0);
            CHECK(f.id == i && f.status == FAB_REM_ACCESS_ERR);
        }
        raw_close(&r);
        CHECK_EQ(pair_next(&p, &p.owner).opcode, FAB_WC_DISCONNECT);
        fab_disconnect(conn);
        honest_client_is_well();
    }
    pair_close(&p);
}

/* ---- the rings ---- */

static void publish(raw *r, uint64_t header, uint64_t tail) {
    memcpy(r->ring[0], &header, sizeof header);
    atomic_store(&r->shared->lane[0].tail, tail);
}

TEST(a_corrupt_ring_breaks_the_connection_and_nothing_else) {
    open_with_honest_client(NULL);
    for (int way = 0; way < 9; way++) {
        fab_conn *conn;
        raw r = hostile_client(&conn);
        switch (way) {
        case 0: publish(&r, 4, 20); break;                           /* not a multiple of 8 */
        case 1: publish(&r, 4, r.ring_bytes + 8); break;             /* more than the ring holds */
        case 2: publish(&r, 4, UINT64_MAX - 7); break;               /* backwards */
        case 3: publish(&r, 0, 16); break;                           /* no message is empty */
        case 4: publish(&r, r.max_message + 1, r.ring_bytes); break; /* longer than agreed */
        case 5: publish(&r, 9, 16); break;                           /* longer than what was published */
        case 6: publish(&r, 1ull << 32 | 8, 16); break;              /* the upper half means nothing yet */
        case 7: publish(&r, UINT64_MAX, 16); break;
        default: /* good, then taken back */
            publish(&r, 8, 16);
            pair_expect(&p, &p.owner, FAB_WC_RECV, FAB_SUCCESS);
            publish(&r, 8, 8);
        }
        expect_cut_off(&r, conn);
    }
    pair_close(&p);
}

TEST(a_lie_about_what_was_taken_breaks_the_connection_of_the_sender) {
    static uint8_t room[8 << 10];
    static const uint64_t lies[] = { 4, UINT64_MAX - 7, 1ull << 40 };
    open_with_honest_client(NULL);
    for (int way = 0; way < 3; way++) {
        fab_conn *conn;
        raw r = hostile_client(&conn);
        int e = 0;
        for (int i = 0; i < 10; i++) CHECK_EQ(fab_send(conn, &(struct iovec){ room, sizeof room }, 1), 0);
        fab_flush(p.owner.cq);
        atomic_store(&r.shared->lane[1].head, lies[way]);
        for (int i = 0; i < 1000 && (e == 0 || e == -EAGAIN); i++) {
            e = fab_send(conn, &(struct iovec){ room, sizeof room }, 1);
            pair_turn(&p);
        }
        CHECK_EQ(e, -ENOTCONN);
        expect_cut_off(&r, conn);
    }
    pair_close(&p);
}

TEST(random_bytes_all_over_the_shared_memory_never_hurt_the_owner) {
    open_with_honest_client(NULL);
    static uint8_t room[256];
    for (int round = 0; round < 300; round++) {
        fab_conn *conn;
        raw r = hostile_client(&conn);
        bool gone = false;
        for (int i = 0; i < 200 && !gone; i++) {
            size_t all = shm_shared_bytes(r.ring_bytes), at = random_word() % (random_word() % 2 ? 1024 : all);
            uint64_t word = random_word() % 2 ? random_word() : random_word() % 4096 * 8;
            memcpy((uint8_t *)r.shared + (at & ~(size_t)7), &word, 8);
            fab_send(conn, &(struct iovec){ room, 1 + random_word() % sizeof room }, 1);
            pair_turn(&p);
            while (end_has(&p.owner)) {
                fab_wc w = pair_next(&p, &p.owner);
                CHECK(w.conn == conn && w.bytes <= r.max_message);
                if (w.opcode == FAB_WC_RECV && random_word() % 2) fab_release(conn, w.data);
                gone |= w.opcode == FAB_WC_DISCONNECT;
            }
        }
        fab_disconnect(conn);
        raw_close(&r);
        honest_client_is_well();
    }
    pair_close(&p);
}

TEST(a_bell_that_nobody_empties_does_not_block_the_one_who_rings) {
    open_with_honest_client(NULL);
    fab_conn *conn;
    raw r = hostile_client(&conn);
    fcntl(r.bell, F_SETFL, 0); /* whatever the peer does to its end */
    alarm(60);
    for (uint64_t i = 0; i < 3000; i++) {
        atomic_store(&r.shared->asleep[0].flags, SHM_ASLEEP); /* always asleep, never woken */
        CHECK_EQ(fab_send(conn, &(struct iovec){ &i, sizeof i }, 1), 0);
        fab_flush(p.owner.cq);
    }
    alarm(0);
    raw_close(&r);
    CHECK_EQ(pair_next(&p, &p.owner).opcode, FAB_WC_DISCONNECT);
    fab_disconnect(conn);
    honest_client_is_well();
    pair_close(&p);
}

TEST(a_peer_that_hung_up_and_goes_on_writing_is_not_heard) {
    open_with_honest_client(NULL);
    fab_conn *conn;
    raw r = hostile_client(&conn);
    int fd = r.fd;
    uint64_t tail = 0, header = 8;
    fab_wc w = { 0 };
    for (int i = 0; w.opcode != FAB_WC_DISCONNECT; i++) {
        CHECK(i < 1000000);
        for (int j = 0; j < 4; j++, tail += 16) memcpy(r.ring[0] + tail % r.ring_bytes, &header, sizeof header);
        atomic_store(&r.shared->lane[0].tail, tail);
        if (i == 10) close(fd);
        do {
            pair_turn(&p);
            if (!end_has(&p.owner)) continue;
            w = pair_next(&p, &p.owner);
            if (w.opcode == FAB_WC_RECV) fab_release(conn, w.data);
        } while (end_has(&p.owner));
        if (i > 10) sched_yield();
    }
    fab_disconnect(conn);
    r.fd = -1;
    raw_close(&r);
    honest_client_is_well();
    pair_close(&p);
}

/* ---- regions ---- */

enum { OFFER_BYTES = 1 << 16 };

/* The owner attaches a region of the hostile client, which answers with `reply` and fd. */
static raw offer(fab_conn **conn, shm_frame reply, int fd) {
    raw r = hostile_client(conn);
    shm_frame f;
    int fds[4];
    CHECK_EQ(fab_attach(*conn, 42, 4096, OFFER_BYTES, 1), 0);
    CHECK_EQ(raw_expect(&r, SHM_ATTACH, &f, fds), 0);
    CHECK(f.rkey == 42 && f.address == 4096 && f.bytes == OFFER_BYTES);
    reply.id = f.id;
    raw_send(&r, &reply, sizeof reply, &fd, fd >= 0 ? 1 : 0);
    if (fd >= 0) close(fd);
    return r;
}

TEST(memory_that_could_vanish_under_the_owner_is_not_mapped) {
    const int shrink = F_SEAL_SHRINK, rest = F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SEAL, all = shrink | rest;
    open_with_honest_client(NULL);
    for (int way = 0; way < 8; way++) {
        shm_frame good = raw_frame(SHM_ATTACHED), f = good;
        int fd = -1;
        switch (way) {
        case 0: fd = raw_memory(0, OFFER_BYTES); break;
        case 1: fd = raw_memory(rest, OFFER_BYTES); break;       /* may still shrink: SIGBUS */
        case 2: fd = raw_memory(all, OFFER_BYTES - 4096); break; /* too short */
        case 3: break;                                           /* none */
        case 4: fd = open("/dev/zero", O_RDWR); break;
        case 5:
            fd = raw_memory(all, OFFER_BYTES);
            f.offset = 4096;
            break;
        case 6:
            fd = raw_memory(all, OFFER_BYTES);
            f.offset = UINT64_MAX - 4095;
            break;
        case 7:
            fd = raw_memory(all, OFFER_BYTES);
            f.slot = SHM_SLOTS;
            break;
        }
        fab_conn *conn;
        raw r = offer(&conn, f, fd);
        fab_wc w = pair_next(&p, &p.owner);
        CHECK(w.opcode == FAB_WC_ATTACH && w.status == FAB_WR_FLUSH_ERR && w.wr_id == 1);
        CHECK(fab_direct(conn, 42) == NULL);
        expect_cut_off(&r, conn);
    }
    fab_conn *conn; /* and the same when all is well */
    raw r = offer(&conn, raw_frame(SHM_ATTACHED), raw_memory(all, OFFER_BYTES));
    pair_expect(&p, &p.owner, FAB_WC_ATTACH, FAB_SUCCESS);
    CHECK(fab_direct(conn, 42) != NULL);
    static uint8_t local[8192];
    fab_mr *m;
    CHECK_EQ(fab_reg_local(p.owner.domain, local, sizeof local, &m), 0);
    fab_read wraps = {
        .local = local, .local_mr = m, .remote_addr = UINT64_MAX - 99, .rkey = 42, .bytes = 4096 + 100 + 8
    };
    CHECK_EQ(fab_post_reads(conn, &wraps, 1), 1); /* its end, counted modulo 2^64, is inside the region */
    pair_expect(&p, &p.owner, FAB_WC_READ, FAB_REM_ACCESS_ERR);
    fab_disconnect(conn);
    fab_dereg(m);
    raw_wait_for_end(&r);
    raw_close(&r);
    pair_close(&p);
}

TEST(what_a_client_maps_it_cannot_write) {
    open_with_honest_client(NULL);
    fkv_region region;
    fab_mr *m;
    CHECK_EQ(fkv_region_alloc("owner", 8192, 0, &region), 0);
    CHECK_EQ(fab_reg(p.owner.domain, &region, 0, &m), 0);
    CHECK_EQ(fab_attach(p.client_conn, fab_mr_rkey(m), fab_mr_addr(m), 8192, 0), 0);
    pair_expect(&p, &p.client, FAB_WC_ATTACH, FAB_SUCCESS);
    const uint8_t *mapped = fab_direct(p.client_conn, fab_mr_rkey(m));
    region.base[100] = 7;
    CHECK_EQ(mapped[100], 7);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        *(volatile uint8_t *)(uintptr_t)(mapped + 100) = 8;
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK_EQ(region.base[100], 7);
    fab_disconnect(p.client_conn);
    p.client_conn = NULL;
    fab_dereg(m);
    fkv_region_free(&region);
    pair_close(&p);
}

int main(int argc, char **argv) {
    raw_directory_make();
    random_state = check_seed() | 1;
    RUN(a_peer_that_says_nothing_is_dropped_and_gives_its_place_back);
    RUN(silent_peers_take_no_places_and_the_oldest_of_them_goes);
    RUN(garbage_on_the_socket_ends_only_the_connection_it_came_by);
    RUN(a_greeting_out_of_range_is_not_shown_to_the_owner);
    RUN(a_frame_out_of_place_cuts_the_peer_off);
    RUN(a_peer_that_asks_and_does_not_read_the_answers_waits_for_them);
    RUN(a_corrupt_ring_breaks_the_connection_and_nothing_else);
    RUN(a_lie_about_what_was_taken_breaks_the_connection_of_the_sender);
    RUN(random_bytes_all_over_the_shared_memory_never_hurt_the_owner);
    RUN(a_bell_that_nobody_empties_does_not_block_the_one_who_rings);
    RUN(a_peer_that_hung_up_and_goes_on_writing_is_not_heard);
    RUN(memory_that_could_vanish_under_the_owner_is_not_mapped);
    RUN(what_a_client_maps_it_cannot_write);
    raw_directory_remove();
    return check_end(argc, argv);
}
