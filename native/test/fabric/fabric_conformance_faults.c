/* Peers that die, stop, or vanish. The peer is this program again, as a child process (see fabric_conformance_child).
 * */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../check.h"
#include "fabric_conformance.h"

static const fabric_under_test *u;
static pair p;

/* An owner in a child process: listens, registers a region twice, accepts one peer, tells it the rkeys, and echoes. */
typedef struct told {
    uint64_t rkey[2], addr[2];
} told;
enum { CHILD_REGION = 1 << 16 };

static _Noreturn void child_owner(int out) {
    fab_domain *d;
    fab_cq *cq;
    fab_listener *l;
    fab_options o = patient_options(u, NULL);
    fkv_region r;
    fab_mr *m[2];
    told t;
    if (fab_open(&o, &d) || fab_cq_create(d, &cq) || fab_listen(cq, u->address(), &l)) _exit(2);
    if (fkv_region_alloc("child", CHILD_REGION, 0, &r)) _exit(3);
    for (int i = 0; i < 2; i++) {
        if (fab_reg(d, &r, 0, &m[i])) _exit(4);
        t.rkey[i] = fab_mr_rkey(m[i]);
        t.addr[i] = fab_mr_addr(m[i]);
    }
    char address[256] = { 0 };
    snprintf(address, sizeof address, "%s", fab_listener_address(l));
    if (write(out, address, sizeof address) != sizeof address) _exit(5);
    for (;;) {
        fab_wc wc[8];
        int n = fab_poll(cq, wc, 8);
        for (int i = 0; i < n; i++) {
            if (wc[i].opcode == FAB_WC_ACCEPT) {
                fab_accept(wc[i].conn, 0, NULL, 0);
                fab_send(wc[i].conn, &(struct iovec){ &t, sizeof t }, 1);
            } else if (wc[i].opcode == FAB_WC_RECV) {
                fab_send(wc[i].conn, &(struct iovec){ (void *)(uintptr_t)wc[i].data, wc[i].bytes }, 1);
                fab_release(wc[i].conn, wc[i].data);
            } else if (wc[i].opcode == FAB_WC_DISCONNECT) {
                fab_disconnect(wc[i].conn);
            }
        }
        fab_flush(cq);
    }
}

/* A client in a child process: connects to `address` and sends without end. */
static _Noreturn void child_client(const char *address) {
    fab_domain *d;
    fab_cq *cq;
    fab_conn *c;
    fab_options o = patient_options(u, NULL);
    static uint8_t room[5000];
    if (fab_open(&o, &d) || fab_cq_create(d, &cq) || fab_connect_as(cq, address, u->who, NULL, 0, NULL, &c)) _exit(2);
    for (uint64_t i = 0;;) {
        fab_wc wc[8];
        int n = fab_poll(cq, wc, 8);
        for (int j = 0; j < n; j++)
            if (wc[j].opcode == FAB_WC_RECV) fab_release(c, wc[j].data);
        pattern_fill(room, i, 8 + i % 4900);
        if (fab_send(c, &(struct iovec){ room, 8 + i % 4900 }, 1) == 0) i++;
        fab_flush(cq);
    }
}

enum { CHILD_OUT = 3 };
static bool main_asks_first;

bool fabric_conformance_child(const fabric_under_test *under, int argc, char **argv) {
    main_asks_first = true;
    if (argc < 3 || strcmp(argv[1], "--child") != 0) return false;
    u = under;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (strcmp(argv[2], "owner") == 0) child_owner(CHILD_OUT);
    if (argc == 4 && strcmp(argv[2], "client") == 0) child_client(argv[3]);
    return false;
}

/* `out`: where an owner says its address, or -1. */
static pid_t start_child(const char *role, const char *address, int out) {
    char *const argv[] = { "test", "--child", (char *)(uintptr_t)role, (char *)(uintptr_t)address, NULL };
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid > 0) return pid;
    if (out == CHILD_OUT)
        fcntl(out, F_SETFD, 0);
    else if (out >= 0)
        dup2(out, CHILD_OUT);
    execv("/proc/self/exe", argv);
    _exit(127);
}

static void end_child(pid_t pid) {
    kill(pid, SIGKILL);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

/* A client end here, connected to an owner in a child; returns its pid. */
static pid_t connect_to_child(const fab_options *o, told *t) {
    int pipe_fd[2];
    CHECK_EQ(pipe2(pipe_fd, O_CLOEXEC), 0);
    pid_t pid = start_child("owner", NULL, pipe_fd[1]);
    memset(&p, 0, sizeof p);
    p.under = u;
    CHECK_EQ(read(pipe_fd[0], p.address, sizeof p.address), sizeof p.address);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    end_open(&p.owner, u, NULL); /* plays no part; pair_next polls it as well */
    end_open(&p.client, u, o);
    CHECK_EQ(fab_connect_as(p.client.cq, p.address, u->who, NULL, 0, NULL, &p.client_conn), 0);
    pair_expect(&p, &p.client, FAB_WC_CONNECT, FAB_SUCCESS);
    fab_wc w = pair_expect(&p, &p.client, FAB_WC_RECV, FAB_SUCCESS);
    CHECK_EQ(w.bytes, sizeof *t);
    memcpy(t, w.data, sizeof *t);
    fab_release(p.client_conn, w.data);
    return pid;
}

TEST(a_killed_owner_flushes_what_is_outstanding_and_ends_the_connection) {
    for (int round = 0; round < 5; round++) {
        told t;
        pid_t pid = connect_to_child(NULL, &t);
        for (int i = 0; i < 20; i++) CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ &i, sizeof i }, 1), 0);
        fab_flush(p.client.cq);
        if (round % 2) pair_expect(&p, &p.client, FAB_WC_RECV, FAB_SUCCESS);
        end_child(pid);
        fab_wc w;
        do w = pair_next(&p, &p.client);
        while (w.opcode == FAB_WC_RECV);
        CHECK(w.opcode == FAB_WC_DISCONNECT && w.status != FAB_SUCCESS);
        pair_settle(&p);
        CHECK(!end_has(&p.client));
        pair_close(&p);
    }
}

/* More READs than a poll delivers: their ends are told over several polls. */
TEST(each_read_ends_once_when_an_owner_is_killed_with_many_outstanding) {
    static const uint32_t counts[] = { 1, 16, 17, 40, 200 };
    static uint8_t local[64];
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        told t;
        fab_mr *m;
        pid_t pid = connect_to_child(NULL, &t);
        CHECK_EQ(fab_reg_local(p.client.domain, local, sizeof local, &m), 0);
        for (uint64_t i = 0; u->attach_maps && i < 2; i++) {
            CHECK_EQ(fab_attach(p.client_conn, t.rkey[i], t.addr[i], CHILD_REGION, i), 0);
            pair_expect(&p, &p.client, FAB_WC_ATTACH, FAB_SUCCESS);
        }
        int status;
        CHECK_EQ(kill(pid, SIGSTOP), 0);
        CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
        uint64_t posted = 0;
        for (; posted < counts[k]; posted++) {
            fab_read r = {
                .wr_id = posted, .local = local, .local_mr = m, .remote_addr = t.addr[0], .rkey = t.rkey[0], .bytes = 8
            };
            if (fab_post_reads(p.client_conn, &r, 1) != 1) break;
        }
        CHECK(posted > 0);
        fab_flush(p.client.cq);
        end_child(pid);
        fab_wc w = pair_next(&p, &p.client);
        for (uint64_t i = 0; i < posted; i++, w = pair_next(&p, &p.client))
            CHECK(w.opcode == FAB_WC_READ && w.wr_id == i);
        CHECK_EQ(w.opcode, FAB_WC_DISCONNECT);
        pair_settle(&p);
        CHECK(!end_has(&p.client));
        pair_close(&p);
        fab_dereg(m);
    }
}

TEST(clients_killed_in_the_middle_of_sending_leave_the_owner_going) {
    for (int round = 0; round < 8; round++) {
        pair_open(&p, u, NULL, 0); /* a second client that must not notice */
        pid_t pid = start_child("client", p.address, -1);
        fab_conn *dying = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
        CHECK_EQ(fab_accept(dying, 0, NULL, 0), 0);
        uint64_t got = 0, most = 100 + (uint64_t)round * 37;
        for (bool killed = false;;) {
            fab_wc w = pair_next(&p, &p.owner);
            CHECK(w.conn == dying);
            if (w.opcode == FAB_WC_DISCONNECT) break;
            CHECK_EQ(w.opcode, FAB_WC_RECV);
            CHECK_EQ(w.bytes, 8 + got % 4900);
            CHECK(pattern_ok(w.data, got, w.bytes)); /* never a torn or half message */
            got++;
            fab_release(dying, w.data);
            if (got >= most && !killed) {
                end_child(pid);
                killed = true;
            }
        }
        fab_disconnect(dying);
        CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ "still there", 11 }, 1), 0);
        CHECK_EQ(pair_expect(&p, &p.owner, FAB_WC_RECV, FAB_SUCCESS).bytes, 11);
        pair_close(&p);
    }
}

TEST(an_operation_that_a_stopped_peer_does_not_answer_runs_out_of_time) {
    static uint8_t local[64];
    told t;
    pid_t pid = connect_to_child(&(fab_options){ .op_timeout_ms = 200 }, &t);
    fab_mr *m;
    CHECK_EQ(fab_reg_local(p.client.domain, local, sizeof local, &m), 0);
    CHECK_EQ(kill(pid, SIGSTOP), 0);
    int status;
    CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
    CHECK(WIFSTOPPED(status));
    for (uint64_t i = 0; i < 2; i++) CHECK_EQ(fab_attach(p.client_conn, t.rkey[i], t.addr[i], CHILD_REGION, i), 0);
    fab_wc w;
    for (uint64_t i = 0; i < 2; i++) {
        w = pair_next(&p, &p.client);
        CHECK(w.opcode == FAB_WC_ATTACH && w.wr_id == i);
        CHECK(w.status == FAB_SUCCESS ||
              (u->attach_maps && w.status == (i == 0 ? FAB_RESP_TIMEOUT_ERR : FAB_WR_FLUSH_ERR)));
    }
    if (!u->attach_maps) {
        fab_read r[2];
        for (uint64_t i = 0; i < 2; i++) {
            r[i] = (fab_read){
                .wr_id = i, .local = local, .local_mr = m, .remote_addr = t.addr[i], .rkey = t.rkey[i], .bytes = 8
            };
        }
        CHECK_EQ(fab_post_reads(p.client_conn, r, 2), 2);
        if (u->device_reads) { /* a stopped owner's memory is read without it */
            for (uint64_t i = 0; i < 2; i++) CHECK_EQ(pair_expect(&p, &p.client, FAB_WC_READ, FAB_SUCCESS).wr_id, i);
            end_child(pid);
            CHECK_EQ(pair_next(&p, &p.client).opcode, FAB_WC_DISCONNECT);
            pair_close(&p);
            fab_dereg(m);
            return;
        }
        w = pair_next(&p, &p.client);
        CHECK(w.opcode == FAB_WC_READ && w.wr_id == 0);
        CHECK(w.status == FAB_RESP_TIMEOUT_ERR || w.status == FAB_RETRY_EXC_ERR);
        w = pair_next(&p, &p.client);
        CHECK(w.opcode == FAB_WC_READ && w.wr_id == 1 && w.status == FAB_WR_FLUSH_ERR);
    }
    CHECK_EQ(pair_next(&p, &p.client).opcode, FAB_WC_DISCONNECT);
    end_child(pid);
    pair_close(&p);
    fab_dereg(m);
}

void fabric_conformance_faults(const fabric_under_test *under) {
    u = under;
    if (!u->forks) return;
    CHECK(main_asks_first); /* a child of a main that does not would run the tests again, and start children */
    RUN(a_killed_owner_flushes_what_is_outstanding_and_ends_the_connection);
    RUN(each_read_ends_once_when_an_owner_is_killed_with_many_outstanding);
    RUN(clients_killed_in_the_middle_of_sending_leave_the_owner_going);
    RUN(an_operation_that_a_stopped_peer_does_not_answer_runs_out_of_time);
}
