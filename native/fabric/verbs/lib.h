/* lib.h: libibverbs and librdmacm, opened at run time, so that one binary runs on machines that have them and on those
 * that have not. The functions that the headers inline over the context's own table (ibv_post_send, ibv_poll_cq, ...)
 * need no library; the others are called through this table. Invariant: a table that verbs_lib() returned is complete
 * and never changes; the libraries are never closed.
 */
#ifndef FARKV_FABRIC_VERBS_LIB_H
#define FARKV_FABRIC_VERBS_LIB_H

#include "built.h"
#ifdef FARKV_HAVE_VERBS
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#undef ibv_reg_mr /* macros in the header, fields here */
#undef ibv_query_port

#define VERBS_IBV_FUNCTIONS(X)                                                                             \
    X(struct ibv_device **, ibv_get_device_list, (int *))                                                  \
    X(void, ibv_free_device_list, (struct ibv_device **))                                                  \
    X(const char *, ibv_get_device_name, (struct ibv_device *))                                            \
    X(struct ibv_context *, ibv_open_device, (struct ibv_device *))                                        \
    X(int, ibv_close_device, (struct ibv_context *))                                                       \
    X(int, ibv_query_device, (struct ibv_context *, struct ibv_device_attr *))                             \
    X(int, ibv_query_port, (struct ibv_context *, uint8_t, struct _compat_ibv_port_attr *))                \
    X(int, ibv_query_gid, (struct ibv_context *, uint8_t, int, union ibv_gid *))                           \
    X(int, ibv_get_async_event, (struct ibv_context *, struct ibv_async_event *))                          \
    X(void, ibv_ack_async_event, (struct ibv_async_event *))                                               \
    X(struct ibv_pd *, ibv_alloc_pd, (struct ibv_context *))                                               \
    X(int, ibv_dealloc_pd, (struct ibv_pd *))                                                              \
    X(struct ibv_mr *, ibv_reg_mr, (struct ibv_pd *, void *, size_t, int))                                 \
    X(int, ibv_dereg_mr, (struct ibv_mr *))                                                                \
    X(struct ibv_comp_channel *, ibv_create_comp_channel, (struct ibv_context *))                          \
    X(int, ibv_destroy_comp_channel, (struct ibv_comp_channel *))                                          \
    X(struct ibv_cq *, ibv_create_cq, (struct ibv_context *, int, void *, struct ibv_comp_channel *, int)) \
    X(int, ibv_destroy_cq, (struct ibv_cq *))                                                              \
    X(int, ibv_get_cq_event, (struct ibv_comp_channel *, struct ibv_cq **, void **))                       \
    X(void, ibv_ack_cq_events, (struct ibv_cq *, unsigned int))                                            \
    X(struct ibv_srq *, ibv_create_srq, (struct ibv_pd *, struct ibv_srq_init_attr *))                     \
    X(int, ibv_destroy_srq, (struct ibv_srq *))                                                            \
    X(int, ibv_modify_qp, (struct ibv_qp *, struct ibv_qp_attr *, int))

#define VERBS_CM_FUNCTIONS(X)                                                                                 \
    X(struct rdma_event_channel *, rdma_create_event_channel, (void))                                         \
    X(void, rdma_destroy_event_channel, (struct rdma_event_channel *))                                        \
    X(int, rdma_create_id, (struct rdma_event_channel *, struct rdma_cm_id **, void *, enum rdma_port_space)) \
    X(int, rdma_destroy_id, (struct rdma_cm_id *))                                                            \
    X(int, rdma_bind_addr, (struct rdma_cm_id *, struct sockaddr *))                                          \
    X(int, rdma_listen, (struct rdma_cm_id *, int))                                                           \
    X(int, rdma_resolve_addr, (struct rdma_cm_id *, struct sockaddr *, struct sockaddr *, int))               \
    X(int, rdma_resolve_route, (struct rdma_cm_id *, int))                                                    \
    X(int, rdma_create_qp, (struct rdma_cm_id *, struct ibv_pd *, struct ibv_qp_init_attr *))                 \
    X(void, rdma_destroy_qp, (struct rdma_cm_id *))                                                           \
    X(int, rdma_connect, (struct rdma_cm_id *, struct rdma_conn_param *))                                     \
    X(int, rdma_accept, (struct rdma_cm_id *, struct rdma_conn_param *))                                      \
    X(int, rdma_reject, (struct rdma_cm_id *, const void *, uint8_t))                                         \
    X(int, rdma_disconnect, (struct rdma_cm_id *))                                                            \
    X(int, rdma_get_cm_event, (struct rdma_event_channel *, struct rdma_cm_event **))                         \
    X(int, rdma_ack_cm_event, (struct rdma_cm_event *))                                                       \
    X(int, rdma_set_option, (struct rdma_cm_id *, int, int, void *, size_t))                                  \
    X(__be16, rdma_get_src_port, (struct rdma_cm_id *))

typedef struct verbs_lib {
#define X(result, name, arguments) result(*name) arguments;
    VERBS_IBV_FUNCTIONS(X)
    VERBS_CM_FUNCTIONS(X)
#undef X
} verbs_lib;

/* The table, or NULL with *why saying which library or symbol is missing and what brings it. Thread-safe. */
const verbs_lib *verbs_lib_load(const char **why);
#endif
#endif
