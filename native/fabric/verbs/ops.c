/* ops.c: the verbs provider: READs and SENDs by an RDMA NIC. This file lists the operations; verbs.h says which file
 * does what. A build without the headers of rdma-core has the list too, and it says what is missing. */
#include "../provider.h"
#include "verbs.h"
#ifdef FARKV_HAVE_VERBS

static const char *missing(void) {
    const char *why;
    return verbs_lib_load(&why) ? NULL : why;
}

const fab_ops fab_verbs_ops = {
    .abilities = FAB_CAN_SPIN,
    .missing = missing,
    .open = verbs_open,
    .close = verbs_close,
    .reg = verbs_reg,
    .reg_local = verbs_reg_local,
    .dereg = verbs_dereg,
    .cq_create = verbs_cq_create,
    .cq_destroy = verbs_cq_destroy,
    .poll = verbs_poll,
    .flush = verbs_flush,
    .arm = verbs_arm,
    .fd = verbs_fd,
    .listen = verbs_listen,
    .unlisten = verbs_unlisten,
    .connect = verbs_connect,
    .accept = verbs_accept,
    .reject = verbs_reject,
    .disconnect = verbs_disconnect,
    .post_reads = verbs_post_reads,
    .send = verbs_send,
    .release = verbs_release,
    .attach = verbs_attach,
    .detach = verbs_detach,
    .direct = NULL,
};
#else
static const char *missing(void) {
    return "not in this build: its headers were missing (apt-get install libibverbs-dev librdmacm-dev, then build "
           "again)";
}
const fab_ops fab_verbs_ops = { .missing = missing };
#endif
