/* ops.c: the tcp provider: READs, SENDs and events over a socket, for any two hosts. This file opens and closes a
 * domain and lists the operations; tcp.h says which file does what. Traffic is in the clear but for addresses that
 * begin with "tls:" (tls.h). */
#include <errno.h>
#include <stdlib.h>
#include "tcp.h"

static size_t power_of_two(size_t at_least) {
    size_t n = 1;
    while (n < at_least) n *= 2;
    return n;
}

static int tcp_open(const fab_options *o, fab_domain **out) {
    tcp_domain *d = calloc(1, sizeof *d);
    if (!d) return -ENOMEM;
    d->options = *o;
    uint32_t four = 4 * tcp_cost(o->max_message);
    d->window = four > TCP_WINDOW ? four : TCP_WINDOW;
    d->ring_bytes = power_of_two(d->window);
    pthread_mutex_init(&d->tls_lock, NULL);
    int e = tcp_mr_init(d);
    if (e) {
        pthread_mutex_destroy(&d->tls_lock);
        free(d);
        return e;
    }
    *out = &d->head;
    return 0;
}

static void tcp_close(fab_domain *head) {
    tcp_domain *d = (tcp_domain *)head;
    tcp_mr_end(d);
    tcp_tls_end(d);
    pthread_mutex_destroy(&d->tls_lock);
    free(d);
}

const fab_ops fab_tcp_ops = {
    .encryption_missing = openssl_missing,
    .open = tcp_open,
    .close = tcp_close,
    .reg = tcp_reg,
    .reg_local = tcp_reg_local,
    .dereg = tcp_dereg,
    .cq_create = tcp_cq_create,
    .cq_destroy = tcp_cq_destroy,
    .poll = tcp_poll,
    .flush = tcp_flush,
    .arm = tcp_arm,
    .fd = tcp_fd,
    .listen = tcp_listen,
    .unlisten = tcp_unlisten,
    .connect = tcp_connect,
    .accept = tcp_accept,
    .attend = tcp_attend,
    .reject = tcp_reject,
    .disconnect = tcp_disconnect,
    .post_reads = tcp_post_reads,
    .send = tcp_send,
    .release = tcp_release,
    .attach = tcp_attach_region,
    .detach = tcp_detach_region,
    .reads_served = tcp_reads_served,
    .poller_of = tcp_poller_of,
    .name = tcp_name,
    .follows = tcp_follows,
};
