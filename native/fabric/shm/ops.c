/* ops.c: the shm provider, for processes on one host: its table of operations, and a domain's life.
 *
 * READ is the reader's own copy out of the region, which it has mapped read-only; SEND goes through a byte ring in
 * memory that both ends have mapped (lane.h); a Unix socket carries the handshake and descriptors (frame.h) and says
 * when the peer's process is gone. When both ends poll, neither makes a system call. shm.h says which thread does what.
 */
#include <errno.h>
#include <stdlib.h>
#include "shm.h"

static int shm_open_domain(const fab_options *o, fab_domain **out) {
    shm_domain *d = calloc(1, sizeof *d);
    if (!d) return -ENOMEM;
    d->options = *o;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->listener_closed, NULL);
    int e = shm_agent_start(d);
    if (e) {
        free(d);
        return e;
    }
    *out = &d->head;
    return 0;
}

static void shm_close_domain(fab_domain *base) {
    shm_domain *d = (shm_domain *)base;
    shm_agent_stop(d);
    pthread_cond_destroy(&d->listener_closed);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

const fab_ops fab_shm_ops = {
    .abilities = FAB_CAN_SPIN | FAB_CAN_SEND_FREELY,
    .open = shm_open_domain,
    .close = shm_close_domain,
    .reg = shm_reg,
    .reg_local = shm_reg_local,
    .dereg = shm_dereg,
    .cq_create = shm_cq_create,
    .cq_destroy = shm_cq_destroy,
    .poll = shm_poll,
    .flush = shm_flush,
    .arm = shm_arm,
    .fd = shm_fd,
    .listen = shm_listen,
    .unlisten = shm_unlisten,
    .connect = shm_connect,
    .accept = shm_accept,
    .reject = shm_reject,
    .disconnect = shm_disconnect,
    .post_reads = shm_post_reads,
    .send = shm_send,
    .release = shm_release,
    .attach = shm_attach,
    .detach = shm_detach,
    .direct = shm_direct,
};
