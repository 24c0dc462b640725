/* fabric_reads.c: how fast READs of a fabric provider are, without a table, keys or JavaScript above them.
 *
 *     make -C native all && gcc -O2 -D_GNU_SOURCE -o /tmp/fabric_reads bench/micro/fabric_reads.c \
 *         build/native/libfarkv.a -pthread -ldl -lm
 *     /tmp/fabric_reads tcp 127.0.0.1:0 [bytes 1000] [outstanding 100] [seconds 2] [waiting 0] [polling 2]
 *
 * The owner is a process of its own, that sleeps when it has nothing to do; the client reads at random places of 64
 * MiB. With an address tls:127.0.0.1:0 they are encrypted. With one READ outstanding it prints the latency's distribution; `waiting` says how the client waits, see
 * wait_for. System calls can be counted with strace -c -f; processor time of both is printed.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../native/base/clock.h"
#include "../../native/fabric/fabric.h"

enum { REGION = 64 << 20, BATCH = 256, SAMPLES = 1 << 20 };
typedef struct place {
    uint64_t rkey, addr;
} place;

static const fab_identity WHO = { .name = "bench", .bytes = 5, .key = "sixteen bytes ok" };
static bool key_of(void *ctx, const void *name, uint32_t bytes, uint8_t key[FAB_KEY_BYTES]) {
    (void)ctx, (void)name, (void)bytes;
    memcpy(key, WHO.key, FAB_KEY_BYTES);
    return true;
}
static fab_provider provider_of(const char *name) {
    fab_provider p = fab_provider_named(name);
    if (p) return p;
    fprintf(stderr, "no such provider: %s\n", name);
    exit(2);
}
static void must(int e, const char *what) {
    if (e >= 0) return;
    fprintf(stderr, "%s: %s\n", what, strerror(-e));
    exit(1);
}
/* 0: epoll on the CQ's own descriptor. 1: no waiting. 2: an epoll set that holds the descriptor, as libuv does it:
 * Linux then wakes without the hint that the waker will sleep, the two processes stay on two cores, and on an idle
 * machine each wake-up costs tens of us more. */
enum { WAIT, SPIN, NESTED };
static void wait_for(fab_cq *cq, int how) {
    static int set = -1;
    struct epoll_event e = { .events = EPOLLIN };
    if (set < 0 && how == NESTED) {
        set = epoll_create1(0);
        must(epoll_ctl(set, EPOLL_CTL_ADD, fab_fd(cq), &e) ? -errno : 0, "epoll");
    }
    if (how != SPIN && fab_arm(cq) == 0) epoll_wait(how == NESTED ? set : fab_fd(cq), &e, 1, -1);
}

static void owner(const fab_options *o, const char *address, int out) {
    fab_domain *d;
    fab_cq *cq;
    fab_listener *l;
    fab_mr *m;
    fkv_region r;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    must(fab_open(o, &d), "open");
    must(fab_cq_create(d, &cq), "cq");
    must(fkv_region_alloc("bench", REGION, FKV_REGION_PREFAULT, &r), "region");
    must(fab_reg(d, &r, 0, &m), "reg");
    must(fab_listen(cq, address, &l), "listen");
    char line[256] = "";
    snprintf(line, sizeof line, "%s", fab_listener_address(l));
    place p = { fab_mr_rkey(m), fab_mr_addr(m) };
    if (write(out, line, sizeof line) < 0 || write(out, &p, sizeof p) < 0) exit(1);
    for (;;) {
        fab_wc wc[16];
        int n = fab_poll(cq, wc, 16);
        for (int i = 0; i < n; i++) {
            if (wc[i].opcode == FAB_WC_ACCEPT) must(fab_accept(wc[i].conn, 0, NULL, 0), "accept");
            if (wc[i].opcode == FAB_WC_DISCONNECT) {
                struct rusage u;
                getrusage(RUSAGE_SELF, &u);
                double s = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
                if (write(out, &s, sizeof s) < 0) exit(1);
            }
        }
        fab_flush(cq);
        if (n == 0) wait_for(cq, WAIT);
    }
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s provider address [bytes] [outstanding] [seconds] [waiting] [polling]\n", argv[0]);
        return 2;
    }
    uint32_t bytes = argc > 3 ? (uint32_t)atoi(argv[3]) : 1000;
    int outstanding = argc > 4 ? atoi(argv[4]) : 100, seconds = argc > 5 ? atoi(argv[5]) : 2,
        how = argc > 6 ? atoi(argv[6]) : WAIT;
    fab_options o = { .provider = provider_of(argv[1]),
                      .polling = argc > 7 ? (polling)atoi(argv[7]) : POLLING_NEVER, /* 0: auto */
                      .key_of = key_of };
    int pipes[2];
    if (pipe(pipes)) return 1;
    pid_t child = fork();
    if (child == 0) owner(&o, argv[2], pipes[1]);
    char address[256];
    place at;
    if (read(pipes[0], address, sizeof address) < 0 || read(pipes[0], &at, sizeof at) < 0) return 1;

    fab_domain *d;
    fab_cq *cq;
    fab_conn *c;
    fab_mr *local;
    fab_wc wc[BATCH];
    must(fab_open(&o, &d), "open");
    must(fab_cq_create(d, &cq), "cq");
    uint8_t *buffers = malloc((size_t)outstanding * bytes);
    uint32_t *ns = malloc(SAMPLES * sizeof *ns);
    uint64_t *posted = calloc((size_t)outstanding, sizeof *posted);
    must(fab_reg_local(d, buffers, (size_t)outstanding * bytes, &local), "reg_local");
    must(fab_connect_as(cq, address, &WHO, NULL, 0, NULL, &c), "connect");
    for (bool up = false; !up;) {
        int n = fab_poll(cq, wc, BATCH);
        for (int i = 0; i < n; i++) {
            if (wc[i].status) return fprintf(stderr, "%s\n", fab_wc_status_name(wc[i].status)), 1;
            if (wc[i].opcode == FAB_WC_CONNECT) must(fab_attach(c, at.rkey, at.addr, REGION, 0), "attach");
            up |= wc[i].opcode == FAB_WC_ATTACH;
        }
        if (n == 0) wait_for(cq, WAIT);
    }
    uint64_t done = 0, samples = 0, random = 88172645463325252u, start = fkv_now_ns(),
             end = start + (uint64_t)seconds * 1000000000u, now = start;
    fab_read batch[BATCH];
    int ready = outstanding, free_slots[4096];
    for (int i = 0; i < outstanding; i++) free_slots[i] = i;
    while (now < end) {
        while (ready > 0) {
            int n = 0;
            for (; n < BATCH && ready > 0; n++) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                uint64_t slot = (uint64_t)free_slots[--ready];
                batch[n] = (fab_read){ .wr_id = slot,
                                       .local = buffers + slot * bytes,
                                       .local_mr = local,
                                       .rkey = at.rkey,
                                       .remote_addr = at.addr + random % (REGION - bytes + 1) / 32 * 32,
                                       .bytes = bytes };
                posted[slot] = now;
            }
            must(fab_post_reads(c, batch, n) == n ? 0 : -EAGAIN, "post");
        }
        fab_flush(cq);
        int n = fab_poll(cq, wc, BATCH);
        if (n == 0) wait_for(cq, how);
        now = fkv_now_ns();
        for (int i = 0; i < n; i++) {
            if (wc[i].status) return fprintf(stderr, "%s\n", fab_wc_status_name(wc[i].status)), 1;
            if (samples < SAMPLES) ns[samples++] = (uint32_t)(now - posted[wc[i].wr_id]);
            free_slots[ready++] = (int)wc[i].wr_id;
        }
        done += (uint64_t)n;
    }
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    double client = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6,
           server = 0;
    fab_disconnect(c);
    if (read(pipes[0], &server, sizeof server) < 0) return 1;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    qsort(ns, samples, sizeof *ns, by_size);
    double took = (double)(now - start) / 1e9;
    printf("%s, %u B, %d outstanding: %.0f READs/s, p50 %.1f us, p99 %.1f us; processor seconds per second: client "
           "%.2f, owner %.2f\n",
           argv[1], bytes, outstanding, (double)done / took, ns[samples / 2] / 1e3, ns[samples * 99 / 100] / 1e3,
           client / took, server / took);
    fab_dereg(local);
    fab_cq_destroy(cq);
    fab_close(d);
    return 0;
}
