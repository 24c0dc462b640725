/* fabric_sends.c: how fast SENDs of a fabric provider are between two polling threads: one message back and forth, and
 * a stream.
 *
 *     make -C native all && gcc -O2 -D_GNU_SOURCE -o /tmp/fabric_sends bench/micro/fabric_sends.c \
 *         build/native/libfarkv.a -pthread -ldl -lm
 *     /tmp/fabric_sends shm unix:/tmp/sends.sock [bytes 32] [messages 2000000] [sleep 0]
 *
 * Half of a round trip is printed as "each way". With `sleep` 1 both ends sleep on their descriptors before each
 * message instead of polling. The figures mean something only when two cores are free.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../native/base/clock.h"
#include "../../native/fabric/fabric.h"

typedef struct side {
    fab_cq *cq;
    fab_conn *conn;
    uint64_t messages;
    uint32_t bytes;
    bool echo, sleep;
} side;

static void must(int e, const char *what) {
    if (e >= 0) return;
    fprintf(stderr, "%s: %s\n", what, strerror(-e));
    exit(1);
}

static void wait_for(const side *s) {
    struct pollfd f = { .fd = fab_fd(s->cq), .events = POLLIN };
    if (s->sleep && fab_arm(s->cq) == 0) poll(&f, 1, -1);
}

/* The far end: takes messages, answers each when echoing. */
static void *far_end(void *arg) {
    side *s = arg;
    for (uint64_t got = 0; got < s->messages;) {
        fab_wc wc[32];
        int n = fab_poll(s->cq, wc, 32);
        for (int i = 0; i < n; i++) {
            if (wc[i].opcode != FAB_WC_RECV) continue;
            got++;
            if (s->echo)
                must(fab_send(wc[i].conn, &(struct iovec){ (void *)(uintptr_t)wc[i].data, wc[i].bytes }, 1), "send");
            fab_release(wc[i].conn, wc[i].data);
        }
        fab_flush(s->cq);
        if (n == 0) wait_for(s);
    }
    return NULL;
}

static double back_and_forth(side *s) {
    static uint8_t room[1 << 20];
    uint64_t start = fkv_now_ns();
    for (uint64_t i = 0; i < s->messages; i++) {
        must(fab_send(s->conn, &(struct iovec){ room, s->bytes }, 1), "send");
        fab_flush(s->cq);
        fab_wc wc;
        while (fab_poll(s->cq, &wc, 1) == 0) wait_for(s);
        fab_release(s->conn, wc.data);
    }
    return (double)(fkv_now_ns() - start) / (double)s->messages / 2;
}

static double stream(side *s) {
    static uint8_t room[1 << 20];
    uint64_t start = fkv_now_ns();
    for (uint64_t i = 0; i < s->messages;) {
        int e = fab_send(s->conn, &(struct iovec){ room, s->bytes }, 1);
        if (e == 0) {
            if (++i % 16 == 0 || i == s->messages) fab_flush(s->cq);
            continue;
        }
        fab_wc wc;
        fab_flush(s->cq);
        while (fab_poll(s->cq, &wc, 1) == 0) wait_for(s);
    }
    return (double)(fkv_now_ns() - start) / (double)s->messages;
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: fabric_sends PROVIDER ADDRESS [bytes] [messages] [sleep]\n"), 2;
    fab_options o = { .provider = strcmp(argv[1], "shm") == 0   ? FAB_SHM
                                  : strcmp(argv[1], "tcp") == 0 ? FAB_TCP
                                                                : FAB_VERBS };
    side near = { .bytes = argc > 3 ? (uint32_t)atoi(argv[3]) : 32,
                  .messages = argc > 4 ? (uint64_t)atoll(argv[4]) : 2000000 };
    near.sleep = argc > 5 && atoi(argv[5]);
    fab_domain *d[2];
    fab_listener *l;
    fab_wc wc;
    side far = near;
    must(fab_open(&o, &d[0]), "open");
    must(fab_open(&o, &d[1]), "open");
    must(fab_cq_create(d[0], &near.cq), "cq");
    must(fab_cq_create(d[1], &far.cq), "cq");
    must(fab_listen(far.cq, argv[2], &l), "listen");
    must(fab_connect(near.cq, fab_listener_address(l), NULL, 0, NULL, &near.conn), "connect");
    while (fab_poll(far.cq, &wc, 1) == 0) {}
    far.conn = wc.conn;
    must(fab_accept(far.conn, 0, NULL, 0), "accept");
    while (fab_poll(near.cq, &wc, 1) == 0) fab_flush(far.cq);
    pthread_t thread;
    far.echo = true;
    pthread_create(&thread, NULL, far_end, &far);
    printf("%s, %u B, one at a time: %.0f ns each way\n", argv[1], near.bytes, back_and_forth(&near));
    pthread_join(thread, NULL);
    far.echo = false;
    pthread_create(&thread, NULL, far_end, &far);
    double each = stream(&near);
    pthread_join(thread, NULL);
    printf("%s, %u B, a stream: %.0f ns a message, %.2f million/s\n", argv[1], near.bytes, each, 1e3 / each);
    fab_disconnect(near.conn);
    fab_disconnect(far.conn);
    fab_unlisten(l);
    fab_cq_destroy(near.cq);
    fab_cq_destroy(far.cq);
    fab_close(d[0]);
    fab_close(d[1]);
    return 0;
}
