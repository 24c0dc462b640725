/* provider.h: what a provider (shm, verbs, tcp) implements behind fabric.h. For native/fabric, and for a provider that
 * a program brings.
 *
 * fabric.c checks arguments once for all providers, keeps the few facts that need no provider, and calls through
 * fab_ops. Each public object begins with the head declared here; a provider embeds it as the first member of its own
 * struct:
 *
 *     typedef struct shm_conn { fab_conn head; ... } shm_conn;      (shm_conn *)c  is valid for a c made by this
 *                                                                                  provider
 *
 * fabric.c fills the head's `ops`, `domain` and `cq` after the provider returned the object, unless said otherwise
 * below; a provider that hands out a connection by itself (FAB_WC_ACCEPT) fills the head with fab_conn_init().
 *
 * Rules that fabric.h leaves to be read between the lines, the same for all providers; fabric_conformance.c tests them:
 *  - A connection from FAB_WC_ACCEPT cannot send, READ or receive before fab_accept() returned 0; it can at once
 *    afterwards. It gets no FAB_WC_CONNECT. If the peer goes away before the answer, FAB_WC_DISCONNECT comes and
 *    fab_accept gives -ENOTCONN.
 *  - fab_reject() ends and frees the connection, as fab_disconnect() does.
 *  - A failed FAB_WC_CONNECT is followed by FAB_WC_DISCONNECT, as any failure is.
 *  - FAB_WC_DISCONNECT of a connection is given by a later fab_poll() than its other completions, so that a user who
 *    disconnects while handling a failed completion does not find it again in the batch at hand.
 *  - FAB_WC_DISCONNECT has status FAB_SUCCESS when the peer closed in order, else the reason.
 *  - Messages that the peer sent before it closed, and that arrived, are delivered before FAB_WC_DISCONNECT.
 *  - fab_disconnect() may be called at any time, also with work outstanding and on a connection that is not yet
 *    connected. When it returns, no local buffer and no attached region is touched any more.
 *  - fab_send, fab_post_reads and fab_attach on a connection that is not connected, or in error, give -ENOTCONN.
 *  - A connection made by fab_connect has tenant 0 on the connecting side.
 *  - An address that cannot be parsed is an errno at once; one that nobody answers at is a failed FAB_WC_CONNECT.
 *  - fab_detach concerns a region whose FAB_WC_ATTACH was polled; of anything else it does nothing.
 *  - READs complete in the order posted. SENDs and READs are not ordered with each other.
 *  - A READ whose local buffer is not inside its local_mr completes with FAB_LOC_PROT_ERR and breaks the connection.
 *  - Data of FAB_WC_RECV is 8-byte aligned.
 *  - Open, listen, connect, accept, attach are set-up: they may allocate and make system calls. poll, flush, send,
 *    post_reads and release are the data path: no allocation, no lock, and no system call that the transport itself
 *    does not need.
 */
#ifndef FARKV_FABRIC_PROVIDER_H
#define FARKV_FABRIC_PROVIDER_H
#include "fabric.h"

enum {
    FAB_ADDRESS_MAX = 256, /* text of an address, with its end */
    FAB_IOV_MAX = 16,      /* pieces of one SEND */
    FAB_MESSAGE_MIN = 256, /* bounds of fab_options.max_message */
    FAB_MESSAGE_MAX = 1 << 20
};
enum { FAB_LOG_ERROR = 0, FAB_LOG_WARNING = 1, FAB_LOG_INFO = 2 };

typedef struct fab_ops {
    unsigned abilities;                      /* fab_ability */
    const char *(*missing)(void);            /* as fab_provider_missing; NULL: nothing ever is */
    const char *(*encryption_missing)(void); /* as fab_encryption_missing; NULL: it never encrypts */
    /* `o` has its defaults filled in and was checked; *out->options is set by fabric.c after open returned, so open
     * itself uses `o`. Helper threads that need the options keep their own copy. */
    int (*open)(const fab_options *o, fab_domain **out);
    void (*close)(fab_domain *d);

    /* fills head.rkey and head.addr */
    int (*reg)(fab_domain *d, const fkv_region *r, uint32_t tenant, fab_mr **out);
    int (*reg_local)(fab_domain *d, void *base, size_t bytes, fab_mr **out);
    void (*dereg)(fab_mr *m);

    int (*cq_create)(fab_domain *d, fab_cq **out);
    void (*cq_destroy)(fab_cq *cq);
    int (*poll)(fab_cq *cq, fab_wc *wc, int max); /* max >= 1 */
    void (*flush)(fab_cq *cq);
    int (*arm)(fab_cq *cq);
    int (*fd)(fab_cq *cq);

    int (*listen)(fab_cq *cq, const char *address, fab_listener **out); /* fills head.address */
    void (*unlisten)(fab_listener *l);
    /* The provider calls fab_conn_init before anything of the connection can be seen. `who` is of use to those that
     * encrypt. */
    int (*connect)(fab_cq *cq, const char *address, const fab_identity *who, const void *priv, uint32_t priv_bytes,
                   void *user, fab_conn **out);
    int (*accept)(fab_conn *c, uint32_t tenant, const void *priv, uint32_t priv_bytes);
    void (*attend)(fab_conn *c); /* NULL: no other thread reads it */
    int (*reject)(fab_conn *c, const void *priv, uint32_t priv_bytes);
    void (*disconnect)(fab_conn *c);

    int (*post_reads)(fab_conn *c, const fab_read *r, int n); /* n >= 1 */
    /* 1 <= bytes <= head.max_message */
    int (*send)(fab_conn *c, const struct iovec *iov, int n, uint32_t bytes);
    void (*release)(fab_conn *c, const void *message);
    int (*attach)(fab_conn *c, uint64_t rkey, uint64_t remote_addr, uint64_t bytes, uint64_t wr_id);
    void (*detach)(fab_conn *c, uint64_t rkey);
    /* NULL: this provider has none */
    const uint8_t *(*direct)(fab_conn *c, uint64_t rkey);
    /* NULL: this process serves none */
    uint64_t (*reads_served)(const fab_cq *cq);
    const poller *(*poller_of)(const fab_cq *cq); /* may be NULL */
    /* NULL: none of these two: READs are not followed */
    int (*name)(fab_mr *m, uint64_t group, uint32_t number);
    bool (*follows)(const fab_conn *c);
} fab_ops;

#define X(NAME, name) extern const fab_ops fab_##name##_ops;
FAB_PROVIDER_LIST(X)
#undef X
/* Puts a provider of the caller's own behind FAB_BROUGHT, in place of one that was brought before. Before any domain of
 * it is opened, and by one thread: there is one such provider in a process. */
void fab_bring(const char *name, const fab_ops *ops);

struct fab_domain {
    const fab_ops *ops;
    fab_options options; /* with defaults; written once by fabric.c, after open */
};
struct fab_cq {
    const fab_ops *ops;
    fab_domain *domain;
};
struct fab_listener {
    const fab_ops *ops;
    fab_cq *cq;
    char address[FAB_ADDRESS_MAX]; /* as really bound */
};
struct fab_conn {
    const fab_ops *ops;
    fab_cq *cq;
    void *user;
    uint32_t max_message; /* the smaller of both ends' once connected; 0 before */
};
struct fab_mr {
    const fab_ops *ops;
    fab_domain *domain;
    /* base, bytes, tenant, local: set by fabric.c after reg; a provider keeps what it needs earlier */
    uint8_t *base;
    size_t bytes;
    uint64_t rkey, addr;
    uint32_t tenant;
    bool local; /* from fab_reg_local */
    bool gone;  /* fab_mr_gone */
};

static inline void fab_conn_init(fab_conn *c, const fab_ops *ops, fab_cq *cq, void *user) {
    *c = (fab_conn){ .ops = ops, .cq = cq, .user = user };
}
/* Whether a READ's destination lies in memory that was registered for it. */
static inline bool fab_lies_in(const fab_mr *m, const void *local, uint32_t bytes) {
    uintptr_t at = (uintptr_t)local, base = m ? (uintptr_t)m->base : 0;
    return m && m->local && at >= base && at - base <= m->bytes && m->bytes - (at - base) >= bytes;
}
static inline bool fab_local_ok(const fab_read *r) {
    return fab_lies_in(r->local_mr, r->local, r->bytes) &&
           (!r->next_bytes || fab_lies_in(r->next_mr, r->next_local, r->next_bytes));
}
/* ---- peers that have asked for a connection and said no more ---- */

enum {
    FAB_STRANGERS = 512, /* that wait at a worker's port: one more ends the oldest */
    FAB_STRANGERS_OF_ADDRESS = 256
};
struct sockaddr_storage;
/* The peer's address as strangers are counted by: all of IPv4, the network of IPv6. */
uint64_t fab_source_of(const struct sockaddr_storage *a);
/* Those that wait, as far as they were counted: in the order in which they came, for a newcomer from the address `from`. */
typedef struct fab_strangers {
    uint64_t from;
    uint32_t all, same; /* same: of that address */
    void *oldest, *oldest_same;
} fab_strangers;
static inline void fab_strangers_count(fab_strangers *s, void *one, uint64_t from) {
    if (s->all++ == 0) s->oldest = one;
    if (from == s->from && s->same++ == 0) s->oldest_same = one;
}
/* Who gives way to the newcomer: the oldest of its own address if that has all it may have. So whoever floods from few
 * addresses ends none of another's. NULL: there is room. */
static inline void *fab_strangers_give_way(const fab_strangers *s) {
    if (s->same >= FAB_STRANGERS_OF_ADDRESS) return s->oldest_same;
    return s->all >= FAB_STRANGERS ? s->oldest : NULL;
}

/* Whether `fd`, just opened, is a descriptor that is to be left to others. The lowest free one is always the next, so its
 * number tells how many are left. */
bool fab_descriptors_scarce(const fab_options *o, int fd);
/* A connection was accepted as `fd`. Gives the descriptor to go on with, one that is not to be left to others: where
 * there is none, after `end_one` has closed another connection's. -1: there is none, and the connection is closed. */
int fab_descriptor_or_none(const fab_options *o, int fd, bool (*end_one)(void *ctx), void *ctx);
/* Formats and hands a line to the domain's log, if there is one. Never give it an rkey. */
void fab_log(const fab_options *o, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
