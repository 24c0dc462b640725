/* ops.c: the sim provider: a fabric whose every fault is chosen by a test; see sim.h. This file opens and closes a
 * domain and lists the operations. */
#include <errno.h>
#include <stdlib.h>
#include "private.h"

static int sim_open(const fab_options *o, fab_domain **out) {
    if (!sim_world_now) return -EINVAL;
    sim_domain *d = calloc(1, sizeof *d);
    if (!d) return -ENOMEM;
    d->options = *o;
    d->world = sim_world_now;
    *out = &d->head;
    return 0;
}

static void sim_close(fab_domain *d) { free(d); }

static int sim_attach(fab_conn *conn, uint64_t rkey, uint64_t remote_addr, uint64_t bytes, uint64_t wr_id) {
    (void)rkey, (void)remote_addr, (void)bytes; /* each READ is checked by itself */
    sim_conn *c = (sim_conn *)conn;
    sim_lock(c->world);
    int e = c->state == SIM_UP ? 0 : -ENOTCONN;
    if (e == 0) sim_complete(c, (fab_wc){ .opcode = FAB_WC_ATTACH, .wr_id = wr_id });
    sim_unlock(c->world);
    return e;
}

static void sim_detach(fab_conn *c, uint64_t rkey) { (void)c, (void)rkey; }

const fab_ops fab_sim_ops = {
    .open = sim_open,
    .close = sim_close,
    .reg = sim_reg,
    .reg_local = sim_reg_local,
    .dereg = sim_dereg,
    .cq_create = sim_cq_create,
    .cq_destroy = sim_cq_destroy,
    .poll = sim_poll,
    .flush = sim_flush,
    .arm = sim_arm,
    .fd = sim_fd,
    .listen = sim_listen,
    .unlisten = sim_unlisten,
    .connect = sim_connect,
    .accept = sim_accept,
    .reject = sim_reject,
    .disconnect = sim_disconnect,
    .post_reads = sim_post_reads,
    .send = sim_send,
    .release = sim_release,
    .attach = sim_attach,
    .detach = sim_detach,
};
