/* The shm provider: the conformance suite, attaching, and the data path. */
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../base/files.h"
#include "../../fabric/shm/shm.h"
#include "../check.h"
#include "fabric_conformance.h"
#include "shm_raw.h"

static const fabric_under_test shm = {
    .provider = FAB_SHM,
    .address = raw_fresh_address,
    .sleeps = true,
    .forks = true,
    .attach_maps = true,
};

static pair p;

/* ---- attaching ---- */

typedef struct attached {
    fkv_region region;
    fab_mr *mr, *local_mr;
    uint8_t local[64];
} attached;

static void open_with_attached(attached *a) {
    pair_open(&p, &shm, NULL, 0);
    CHECK_EQ(fkv_region_alloc("test", 1 << 16, 0, &a->region), 0);
    CHECK_EQ(fab_reg(p.owner.domain, &a->region, 0, &a->mr), 0);
    CHECK_EQ(fab_reg_local(p.client.domain, a->local, sizeof a->local, &a->local_mr), 0);
}

static int attach(attached *a) {
    return fab_attach(p.client_conn, fab_mr_rkey(a->mr), fab_mr_addr(a->mr), a->region.bytes, 3);
}

static void drop_attached(attached *a) {
    fab_disconnect(p.client_conn);
    fab_disconnect(p.owner_conn);
    p.client_conn = p.owner_conn = NULL;
    fab_dereg(a->mr);
    fab_dereg(a->local_mr);
    fkv_region_free(&a->region);
    pair_close(&p);
}

TEST(the_peer_need_not_poll_for_an_attach_to_succeed) {
    attached a;
    open_with_attached(&a);
    CHECK_EQ(attach(&a), 0);
    fab_wc w;
    while (fab_poll(p.client.cq, &w, 1) == 0) sched_yield(); /* only this end */
    CHECK(w.opcode == FAB_WC_ATTACH && w.status == FAB_SUCCESS && w.wr_id == 3);
    drop_attached(&a);
}

TEST(what_is_detached_can_be_attached_again_more_often_than_there_are_slots) {
    attached a;
    open_with_attached(&a);
    for (int i = 0; i < SHM_SLOTS + 100; i++) {
        CHECK_EQ(attach(&a), 0);
        CHECK_EQ(attach(&a), -EEXIST);
        pair_expect(&p, &p.client, FAB_WC_ATTACH, FAB_SUCCESS);
        CHECK_EQ(attach(&a), -EEXIST);
        const uint8_t *direct = fab_direct(p.client_conn, fab_mr_rkey(a.mr));
        a.region.base[1] = (uint8_t)i;
        CHECK(direct && direct[1] == (uint8_t)i);
        fab_detach(p.client_conn, fab_mr_rkey(a.mr));
        CHECK(fab_direct(p.client_conn, fab_mr_rkey(a.mr)) == NULL);
    }
    drop_attached(&a);
}

TEST(a_read_of_what_was_detached_is_refused_also_when_it_was_queued_before) {
    for (int queued = 0; queued < 2; queued++) {
        attached a;
        open_with_attached(&a);
        CHECK_EQ(attach(&a), 0);
        pair_expect(&p, &p.client, FAB_WC_ATTACH, FAB_SUCCESS);
        fab_read r = { .local = a.local,
                       .local_mr = a.local_mr,
                       .remote_addr = fab_mr_addr(a.mr),
                       .rkey = fab_mr_rkey(a.mr),
                       .bytes = 8 };
        if (queued) CHECK_EQ(fab_post_reads(p.client_conn, &r, 1), 1);
        fab_detach(p.client_conn, fab_mr_rkey(a.mr));
        if (!queued) CHECK_EQ(fab_post_reads(p.client_conn, &r, 1), 1);
        pair_expect(&p, &p.client, FAB_WC_READ, FAB_REM_ACCESS_ERR);
        drop_attached(&a);
    }
}

TEST(many_regions_attach_at_once_and_all_go_with_the_connection) {
    enum { REGIONS = 1000 };
    static fab_mr *m[REGIONS];
    attached a;
    open_with_attached(&a);
    for (uint64_t i = 0; i < REGIONS; i++) {
        CHECK_EQ(fab_reg(p.owner.domain, &a.region, 0, &m[i]), 0);
        CHECK_EQ(fab_attach(p.client_conn, fab_mr_rkey(m[i]), fab_mr_addr(m[i]) + 4096 * (i % 16), 4096, i), 0);
    }
    for (uint64_t i = 0; i < a.region.bytes; i++) a.region.base[i] = (uint8_t)(i / 4096);
    for (uint64_t i = 0; i < REGIONS; i++) CHECK_EQ(pair_expect(&p, &p.client, FAB_WC_ATTACH, FAB_SUCCESS).wr_id, i);
    for (uint64_t i = 0; i < REGIONS; i++) CHECK_EQ(fab_direct(p.client_conn, fab_mr_rkey(m[i]))[5], i % 16);
    for (uint64_t i = 0; i < REGIONS; i += 2) fab_detach(p.client_conn, fab_mr_rkey(m[i]));
    for (uint64_t i = 1; i < REGIONS; i += 2) CHECK_EQ(fab_direct(p.client_conn, fab_mr_rkey(m[i]))[5], i % 16);
    fab_disconnect(p.client_conn);
    fab_disconnect(p.owner_conn);
    p.client_conn = p.owner_conn = NULL;
    for (uint64_t i = 0; i < REGIONS; i++) fab_dereg(m[i]);
    fab_dereg(a.mr);
    fab_dereg(a.local_mr);
    fkv_region_free(&a.region);
    pair_close(&p);
}

TEST(a_region_that_shares_a_file_is_read_where_it_lies_and_what_has_no_pages_gets_none) {
    enum { BYTES = 64 << 10 };
    attached a;
    fkv_region before, shared;
    uint64_t fresh;
    struct stat s;
    open_with_attached(&a);
    fkv_region own = a.region;
    fab_dereg(a.mr);
    fkv_files *f = fkv_files_make("test", 16, 4 << 20);
    CHECK_EQ(fkv_files_take(f, BYTES, 0, &before, &fresh), 0);
    CHECK_EQ(fkv_files_take(f, BYTES, 0, &shared, &fresh), 0);
    memset(before.base, 1, BYTES);
    memset(shared.base, 2, BYTES);
    CHECK_EQ(fab_reg(p.owner.domain, &shared, 0, &a.mr), 0);
    a.region.bytes = BYTES;
    CHECK_EQ(attach(&a), 0);
    pair_expect(&p, &p.client, FAB_WC_ATTACH, FAB_SUCCESS);
    const uint8_t *direct = fab_direct(p.client_conn, fab_mr_rkey(a.mr));
    for (int i = 0; i < BYTES; i++) CHECK_EQ(direct[i], 2);
    CHECK(fstat(shared.fd, &s) == 0 && s.st_blocks * 512 == 2 * BYTES);
    a.region = own;
    drop_attached(&a);
    fkv_files_give(&before);
    fkv_files_give(&shared);
    fkv_files_leave(f);
}

TEST(memory_without_seals_is_not_registered) {
    end e;
    end_open(&e, &shm, NULL);
    fkv_region r = { .fd = memfd_create("test", MFD_CLOEXEC), .bytes = 4096 };
    CHECK_EQ(ftruncate(r.fd, 4096), 0);
    r.base = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, 0);
    fab_mr *m;
    CHECK_EQ(fab_reg(e.domain, &r, 0, &m), -EINVAL);
    munmap(r.base, 4096);
    close(r.fd);
    end_close(&e);
}

/* ---- polling ---- */

TEST(one_poll_takes_a_share_from_each_connection) {
    enum { CONNS = 3, MOST = CONNS * SHM_QUOTA };
    fab_conn *client[CONNS], *owner[CONNS];
    pair_listen(&p, &shm, NULL);
    for (int i = 0; i < CONNS; i++) pair_connect(&p, 0, &client[i], &owner[i]);
    for (int i = 0; i < CONNS; i++)
        for (int j = 0; j < MOST; j++) CHECK_EQ(fab_send(client[i], &(struct iovec){ &j, 4 }, 1), 0);
    fab_flush(p.client.cq);
    fab_wc w[MOST];
    int n = fab_poll(p.owner.cq, w, MOST), from[CONNS] = { 0 };
    CHECK_EQ(n, MOST);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < CONNS; j++) from[j] += w[i].conn == owner[j];
    for (int j = 0; j < CONNS; j++) CHECK_EQ(from[j], SHM_QUOTA);
    for (int i = 0; i < CONNS; i++) {
        fab_disconnect(client[i]);
        fab_disconnect(owner[i]);
    }
    pair_close(&p);
}

TEST(idle_connections_are_parked_when_there_are_many_and_come_back) {
    enum { CONNS = SHM_ACTIVE_MAX + 40 };
    static fab_conn *client[CONNS], *owner[CONNS];
    pair_listen(&p, &shm, NULL);
    const shm_cq *q = (const shm_cq *)p.owner.cq;
    fab_wc w;
    for (int i = 0; i < CONNS; i++) pair_connect(&p, 0, &client[i], &owner[i]);
    CHECK_EQ(q->active_count + q->parked_count, CONNS);
    for (int i = 0; i < 3 * SHM_PARK_POLLS; i++) CHECK_EQ(fab_poll(p.owner.cq, &w, 1), 0);
    CHECK_EQ(q->active_count, SHM_ACTIVE_MAX);
    for (int i = 0; i < CONNS; i++) {
        CHECK_EQ(fab_send(client[i], &(struct iovec){ &i, sizeof i }, 1), 0);
        fab_flush(p.client.cq);
        while (fab_poll(p.owner.cq, &w, 1) == 0) {} /* polling alone finds it, without sleeping */
        CHECK(w.conn == owner[i] && memcmp(w.data, &i, sizeof i) == 0);
        fab_release(w.conn, w.data);
    }
    CHECK_EQ(q->active_count + q->parked_count, CONNS);
    for (int i = 0; i < 3 * SHM_PARK_POLLS; i++) CHECK_EQ(fab_poll(p.owner.cq, &w, 1), 0);
    CHECK_EQ(q->active_count, SHM_ACTIVE_MAX);
    /* to speak is to listen */
    for (int i = 0; i < CONNS; i++) CHECK_EQ(fab_send(owner[i], &(struct iovec){ &i, sizeof i }, 1), 0);
    CHECK_EQ(q->active_count, CONNS);
    fab_flush(p.owner.cq);
    for (int i = 0; i < CONNS; i++) pair_expect(&p, &p.client, FAB_WC_RECV, FAB_SUCCESS);
    for (int i = 0; i < 3 * SHM_PARK_POLLS; i++) CHECK_EQ(fab_poll(p.owner.cq, &w, 1), 0);
    for (int i = 0; i < CONNS; i += 2) fab_disconnect(owner[i]); /* parked ones too */
    for (int i = 1; i < CONNS; i += 2) fab_disconnect(client[i]);
    for (int i = 0; i < CONNS / 2; i++) {
        CHECK_EQ(pair_next(&p, &p.owner).opcode, FAB_WC_DISCONNECT);
        CHECK_EQ(pair_next(&p, &p.client).opcode, FAB_WC_DISCONNECT);
    }
    for (int i = 0; i < CONNS; i++) fab_disconnect(i % 2 ? owner[i] : client[i]);
    CHECK_EQ(q->active_count + q->parked_count, 0);
    pair_close(&p);
}

TEST(rings_that_came_while_awake_do_not_deafen_the_bell) {
    pair_open(&p, &shm, NULL, 0);
    shm_conn *c = (shm_conn *)p.owner_conn;
    struct pollfd f = { .fd = fab_fd(p.owner.cq), .events = POLLIN };
    fab_wc w;
    /* each time found something after all when it was about to sleep, but the peer has rung */
    for (int i = 0; i < 2000; i++) {
        atomic_store(&c->shared->asleep[c->side].flags, SHM_ASLEEP);
        CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ &i, sizeof i }, 1), 0);
        fab_flush(p.client.cq);
        CHECK_EQ(fab_poll(p.owner.cq, &w, 1), 1);
        fab_release(w.conn, w.data);
        fab_flush(p.owner.cq);
    }
    for (int i = 0; i < 3; i++) {
        while (fab_arm(p.owner.cq) == 0 && poll(&f, 1, 0) == 1) CHECK_EQ(fab_poll(p.owner.cq, &w, 1), 0);
        CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ &i, sizeof i }, 1), 0);
        fab_flush(p.client.cq);
        CHECK_EQ(poll(&f, 1, 10000), 1);
        CHECK_EQ(fab_poll(p.owner.cq, &w, 1), 1);
        fab_release(w.conn, w.data);
    }
    pair_close(&p);
}

/* Any system call but the last one kills this thread. */
static void forbid_system_calls(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = { sizeof code / sizeof code[0], code };
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* In a child process: both ends poll in one thread, after which it ends with 0. */
static _Noreturn void work_without_system_calls(void) {
    attached a;
    open_with_attached(&a);
    CHECK_EQ(attach(&a), 0);
    pair_expect(&p, &p.client, FAB_WC_ATTACH, FAB_SUCCESS);
    fab_read r = { .local = a.local,
                   .local_mr = a.local_mr,
                   .remote_addr = fab_mr_addr(a.mr),
                   .rkey = fab_mr_rkey(a.mr),
                   .bytes = 64 };
    fab_unlisten(p.listener); /* or its file would stay behind */
    forbid_system_calls();
    for (int i = 0; i < 5000; i++) {
        fab_wc w;
        bool ok = fab_send(p.client_conn, &(struct iovec){ &i, sizeof i }, 1) == 0 &&
                  fab_post_reads(p.client_conn, &r, 1) == 1;
        fab_flush(p.client.cq);
        ok = ok && fab_poll(p.client.cq, &w, 1) == 1 && w.opcode == FAB_WC_READ;
        ok = ok && fab_poll(p.owner.cq, &w, 1) == 1 && w.opcode == FAB_WC_RECV;
        if (ok) fab_release(w.conn, w.data);
        ok = ok && fab_send(p.owner_conn, &(struct iovec){ &i, sizeof i }, 1) == 0;
        fab_flush(p.owner.cq);
        ok = ok && fab_poll(p.client.cq, &w, 1) == 1 && w.opcode == FAB_WC_RECV && memcmp(w.data, &i, sizeof i) == 0;
        if (!ok) syscall(SYS_exit_group, 3);
        fab_release(w.conn, w.data);
        fab_flush(p.client.cq);
    }
    syscall(SYS_exit_group, 0);
    __builtin_unreachable();
}

TEST(when_both_ends_poll_neither_makes_a_system_call) {
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test", "--without-system-calls", NULL);
        _exit(127);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- */

/* Owners that were killed leave their socket files behind. */
static void empty_directory(void) {
    DIR *d = opendir(raw_directory());
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] != '.') CHECK_EQ(unlinkat(dirfd(d), e->d_name, 0), 0);
    }
    closedir(d);
}

int main(int argc, char **argv) {
    raw_directory_make();
    if (fabric_conformance_child(&shm, argc, argv)) return 0;
    if (argc == 2 && strcmp(argv[1], "--without-system-calls") == 0) work_without_system_calls();
    fabric_conformance_connections(&shm);
    fabric_conformance_sends(&shm);
    fabric_conformance_reads(&shm);
    fabric_conformance_wakeups(&shm);
    RUN(the_peer_need_not_poll_for_an_attach_to_succeed);
    RUN(what_is_detached_can_be_attached_again_more_often_than_there_are_slots);
    RUN(a_read_of_what_was_detached_is_refused_also_when_it_was_queued_before);
    RUN(many_regions_attach_at_once_and_all_go_with_the_connection);
    RUN(a_region_that_shares_a_file_is_read_where_it_lies_and_what_has_no_pages_gets_none);
    RUN(memory_without_seals_is_not_registered);
    RUN(one_poll_takes_a_share_from_each_connection);
    RUN(idle_connections_are_parked_when_there_are_many_and_come_back);
    RUN(rings_that_came_while_awake_do_not_deafen_the_bell);
    RUN(when_both_ends_poll_neither_makes_a_system_call);
    raw_directory_remove(); /* no file is left behind */
    CHECK_EQ(mkdir(raw_directory(), 0700), 0);
    fabric_conformance_faults(&shm);
    empty_directory();
    raw_directory_remove();
    return check_end(argc, argv);
}
