/* devices.c: whether each RDMA device of this host can be opened, and how much it registers. For farkv doctor: a server
 * opens a device by the address that leads to it. */
#include "../fabric.h"
#include "lib.h"
#ifdef FARKV_HAVE_VERBS
#include <errno.h>
#include <stdio.h>

static void examine(const verbs_lib *v, struct ibv_device *device, fab_rdma_device *out) {
    struct ibv_device_attr attr;
    *out = (fab_rdma_device){ 0 };
    snprintf(out->name, sizeof out->name, "%s", v->ibv_get_device_name(device));
    errno = 0;
    struct ibv_context *context = v->ibv_open_device(device);
    if (!context) {
        out->error = errno ? errno : ENODEV;
        return;
    }
    out->error = v->ibv_query_device(context, &attr);
    if (!out->error) {
        out->region_max = attr.max_mr_size;
        out->regions_max = (uint32_t)attr.max_mr;
        out->queue_pairs_max = (uint32_t)attr.max_qp;
    }
    v->ibv_close_device(context);
}

int fab_rdma_devices(fab_rdma_device *out, int max) {
    const verbs_lib *v = verbs_lib_load(NULL);
    int all = 0, n = 0;
    struct ibv_device **list = v ? v->ibv_get_device_list(&all) : NULL;
    if (!list) return 0;
    for (; n < all && n < max; n++) examine(v, list[n], &out[n]);
    v->ibv_free_device_list(list);
    return n;
}
#else
int fab_rdma_devices(fab_rdma_device *out, int max) {
    (void)out;
    (void)max;
    return 0;
}
#endif
