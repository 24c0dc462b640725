/* The tcp provider: the conformance suite over IPv4, what depends on the address over IPv6, and what is particular to
 * it. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../fabric/tcp/tcp.h"
#include "../check.h"
#include "fabric_conformance.h"
#include "fabric_tcp_rig.h"

static const char *address_v6(void) { return "[::1]:0"; }
static const fabric_under_test tcp_v6 = { .provider = FAB_TCP, .address = address_v6, .sleeps = true, .forks = true };
static void configure_busy(fab_options *o) { o->polling = POLLING_ALWAYS; }

TEST(addresses_are_read_and_written_alike) {
    static const char *const good[] = { "127.0.0.1:7000", "0.0.0.0:0",       "192.0.2.255:65535",
                                        "[::1]:7000",     "[2001:db8::1]:0", "[::]:1" };
    static const char *const bad[] = { "",
                                       ":",
                                       ":7000",
                                       "127.0.0.1",
                                       "127.0.0.1:",
                                       "127.0.0.1:65536",
                                       "127.0.0.1:-1",
                                       "127.0.0.1:+1",
                                       "127.0.0.1: 1",
                                       "127.0.0.1:1x",
                                       "127.0.0.1:000000001",
                                       "localhost:7000",
                                       "256.0.0.1:1",
                                       "::1:7000",
                                       "[::1]",
                                       "[::1]7000",
                                       "[]:1",
                                       "[::1:7000",
                                       "[127.0.0.1]:1",
                                       "[::g]:1",
                                       "127.0.0.1:7000 ",
                                       "unix:/tmp/x",
                                       "sim:a" };
    struct sockaddr_storage a;
    socklen_t n;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        char text[FAB_ADDRESS_MAX];
        CHECK_EQ(tcp_address_parse(good[i], &a, &n), 0);
        tcp_address_format(&a, text, sizeof text);
        CHECK(strcmp(text, good[i]) == 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) CHECK_EQ(tcp_address_parse(bad[i], &a, &n), -EINVAL);
}

TEST(port_0_finds_a_free_port_and_says_which) {
    end e;
    fab_listener *a, *b, *c;
    char text[FAB_ADDRESS_MAX];
    end_open(&e, &tcp_v4, NULL);
    CHECK_EQ(fab_listen(e.cq, "127.0.0.1:0", &a), 0);
    CHECK_EQ(fab_listen(e.cq, "127.0.0.1:0", &b), 0);
    CHECK(strcmp(fab_listener_address(a), fab_listener_address(b)) != 0);
    CHECK(strcmp(fab_listener_address(a), "127.0.0.1:0") != 0);
    /* The same port of the other family is another address. */
    snprintf(text, sizeof text, "[::]:%s", strrchr(fab_listener_address(a), ':') + 1);
    CHECK_EQ(fab_listen(e.cq, text, &c), 0);
    fab_unlisten(c);
    fab_unlisten(b);
    fab_unlisten(a);
    end_close(&e);
}

TEST(a_responder_that_polls_busily_serves_as_well) {
    fabric_under_test busy = tcp_v4;
    busy.configure = configure_busy;
    pair p;
    pair_open(&p, &busy, NULL, 0);
    for (uint64_t i = 0; i < 200; i++) {
        CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ &i, sizeof i }, 1), 0);
        fab_wc w = pair_expect(&p, &p.owner, FAB_WC_RECV, FAB_SUCCESS);
        CHECK(memcmp(w.data, &i, sizeof i) == 0);
        fab_release(w.conn, w.data);
    }
    pair_close(&p);
}

TEST(what_peers_are_told_of_a_region_is_not_where_it_lies) {
    rig_open(NULL);
    CHECK(fab_mr_addr(rig.mr) != (uint64_t)(uintptr_t)rig.region.base);
    fab_mr *again;
    CHECK_EQ(fab_reg(rig.p.owner.domain, &rig.region, RIG_TENANT, &again), 0);
    CHECK(fab_mr_addr(again) != fab_mr_addr(rig.mr) && fab_mr_rkey(again) != fab_mr_rkey(rig.mr));
    fab_dereg(again);
    rig_honest_read();
    rig_close();
}

TEST(many_regions_come_and_go_and_each_is_found) {
    enum { REGIONS = 600, STEPS = 20000 };
    static fab_mr *mr[REGIONS];
    rig_open(NULL);
    tcp_domain *d = (tcp_domain *)rig.p.owner.domain;
    uint64_t x = check_seed();
    for (int step = 0; step < STEPS; step++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        fab_mr **m = &mr[x % REGIONS];
        if (*m) {
            fab_dereg(*m);
            *m = NULL;
        } else {
            CHECK_EQ(fab_reg(&d->head, &rig.region, (uint32_t)(x % REGIONS), m), 0);
        }
        if (step % 100) continue;
        pthread_rwlock_rdlock(&d->mr_lock);
        for (uint32_t i = 0; i < REGIONS; i++) {
            const uint8_t *at = NULL;
            if (!mr[i]) continue;
            CHECK(tcp_mr_find(d, fab_mr_rkey(mr[i]), fab_mr_addr(mr[i]) + 8, RIG_REGION - 8, i, &at) ==
                  (tcp_mr *)mr[i]);
            CHECK(at == rig.region.base + 8);
            CHECK(tcp_mr_find(d, fab_mr_rkey(mr[i]), fab_mr_addr(mr[i]) + 8, RIG_REGION - 8, i + 1, &at) == NULL);
        }
        pthread_rwlock_unlock(&d->mr_lock);
    }
    for (uint32_t i = 0; i < REGIONS; i++) fab_dereg(mr[i]);
    rig_close();
}

/* What the responder hands over just before its user lies down: nobody wakes that user, so it must see it for itself.
 * */
TEST(a_user_that_lies_down_sees_what_was_handed_over_before) {
    rig_open(NULL);
    fab_wc w;
    for (uint64_t i = 0; i < 100; i++) {
        while (fab_poll(rig.p.owner.cq, &w, 1) != 0) CHECK(false); /* awake, and nothing is left for it */
        fab_read r = { .wr_id = i,
                       .local = rig.local,
                       .local_mr = rig.local_mr,
                       .remote_addr = fab_mr_addr(rig.mr),
                       .rkey = fab_mr_rkey(rig.mr),
                       .bytes = 64 };
        CHECK_EQ(fab_send(rig.p.client_conn, &(struct iovec){ &i, sizeof i }, 1), 0);
        CHECK_EQ(fab_post_reads(rig.p.client_conn, &r, 1), 1);
        fab_flush(rig.p.client.cq);
        /* It hands over the message before it answers the READ behind it. */
        while (fab_poll(rig.p.client.cq, &w, 1) == 0) {
            if (fab_arm(rig.p.client.cq) == 1) continue;
            CHECK_EQ(
                poll(&(struct pollfd){ .fd = fab_fd(rig.p.client.cq), .events = POLLIN }, 1, (int)check_patience_ms()),
                1);
        }
        CHECK(w.opcode == FAB_WC_READ && w.status == FAB_SUCCESS);
        CHECK_EQ(fab_arm(rig.p.owner.cq), 1);
        w = pair_expect(&rig.p, &rig.p.owner, FAB_WC_RECV, FAB_SUCCESS);
        CHECK(memcmp(w.data, &i, sizeof i) == 0);
        fab_release(w.conn, w.data);
    }
    rig_close();
}

/* ---- system calls ---- */

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) /* their runtimes make calls of their own */
#define CALLS_ARE_OURS 1
#else
#define CALLS_ARE_OURS 0
#endif

/* From here on this thread may send and receive, and end the process; anything else kills it. */
static void forbid_other_system_calls(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendmsg, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_recvfrom, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof code / sizeof code[0], code };
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static _Noreturn void work_with_send_and_receive_only(void) {
    rig_open(NULL);
    rig_honest_read();
    CHECK_EQ(fab_send(rig.p.owner_conn, &(struct iovec){ "first", 5 }, 1), 0); /* memory for messages is taken once */
    fab_wc first = pair_expect(&rig.p, &rig.p.client, FAB_WC_RECV, FAB_SUCCESS);
    fab_release(first.conn, first.data);
    pair_settle(&rig.p);
    forbid_other_system_calls();
    for (uint64_t i = 0; i < 2000; i++) {
        fab_read r[8];
        fab_wc w = { 0 };
        bool asked = false, read = false, answered = false;
        for (uint64_t j = 0; j < 8; j++) {
            r[j] = (fab_read){ .wr_id = j,
                               .local = rig.local + j * 64,
                               .local_mr = rig.local_mr,
                               .remote_addr = fab_mr_addr(rig.mr) + j * 64,
                               .rkey = fab_mr_rkey(rig.mr),
                               .bytes = 64 };
        }
        bool ok = fab_post_reads(rig.p.client_conn, r, 8) == 8 &&
                  fab_send(rig.p.client_conn, &(struct iovec){ &i, sizeof i }, 1) == 0;
        while (ok && !(answered && read)) {
            fab_flush(rig.p.client.cq);
            if (fab_poll(rig.p.owner.cq, &w, 1) == 1) {
                ok = w.opcode == FAB_WC_RECV && !asked && fab_send(w.conn, &(struct iovec){ &i, sizeof i }, 1) == 0;
                asked = true;
                fab_release(w.conn, w.data);
                fab_flush(rig.p.owner.cq);
            }
            if (ok && fab_poll(rig.p.client.cq, &w, 1) == 1) {
                read |= w.opcode == FAB_WC_READ && w.wr_id == 7;
                answered |= w.opcode == FAB_WC_RECV;
                if (w.opcode == FAB_WC_RECV) fab_release(w.conn, w.data);
                ok = w.status == FAB_SUCCESS;
            }
        }
        if (!ok) syscall(SYS_exit_group, 3);
    }
    syscall(SYS_exit_group, 0);
    __builtin_unreachable();
}

TEST(the_data_path_sends_and_receives_and_calls_nothing_else) {
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test", "--send-and-receive-only", NULL);
        _exit(127);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--send-and-receive-only") == 0) work_with_send_and_receive_only();
    fabric_conformance_child(&tcp_v4, argc, argv);
    fabric_conformance(&tcp_v4);
    fabric_conformance_connections(&tcp_v6);
    fabric_conformance_reads(&tcp_v6);
    RUN(addresses_are_read_and_written_alike);
    RUN(port_0_finds_a_free_port_and_says_which);
    RUN(a_responder_that_polls_busily_serves_as_well);
    RUN(what_peers_are_told_of_a_region_is_not_where_it_lies);
    RUN(many_regions_come_and_go_and_each_is_found);
    RUN(a_user_that_lies_down_sees_what_was_handed_over_before);
    if (CALLS_ARE_OURS) RUN(the_data_path_sends_and_receives_and_calls_nothing_else);
    return check_end(argc, argv);
}
