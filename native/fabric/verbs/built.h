/* built.h: whether this build has the verbs provider: it needs the headers of libibverbs and librdmacm (the libraries
 * themselves are opened at run time). */
#ifndef FARKV_FABRIC_VERBS_BUILT_H
#define FARKV_FABRIC_VERBS_BUILT_H
#if defined(__has_include)
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/rdma_cma.h>)
#define FARKV_HAVE_VERBS 1
#endif
#endif
#endif
