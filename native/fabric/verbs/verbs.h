/* verbs.h: what the files of the verbs provider share. Private to this folder.
 *
 *   domain.c  the device, protection domains, memory regions
 *   events.c  the connection manager's thread, and its events on their way to a queue
 *   cm.c      the connection manager: listening, the steps of a connection's set-up
 *   dial.c    rdma_connect, which may wait, in a thread of its own
 *   pool.c    registered message buffers and the shared receive queue of a tenant
 *   conn.c    completion queues; connections and queue pairs are made
 *   end.c     connections are broken, left, freed
 *   poll.c    what comes: completions, messages, credits, time-outs; polling and arming
 *   post.c    what goes: READs and SENDs behind one doorbell
 *
 * A domain works on one device: the one to which rdma_cm's routing leads the first address that it listens on or
 * connects to. There is a protection domain for each tenant: an rkey of one cannot be used by a queue pair of
 * another.
 *
 * A device that is lost takes every connection with it. A domain that does not listen then lets go of it, queue by
 * queue, each when its connections are freed and the next is made, and binds again to whatever device that one leads
 * to; memory that peers READ has to be registered again (fab_mr_gone). One that listens cannot: its rkeys are in its
 * peers' hands. Its listening queue says FAB_WC_UNREACHABLE.
 *
 * Threads. A completion queue and its connections belong to one thread, as fabric.h says. The domain's CM thread only
 * waits for connection and device events and hands copies of them over; it never touches a connection. A connection is
 * named to it, and in work requests, by slot and generation, so that what arrives late for a freed one is recognised.
 *
 * A message begins with 8 bytes of this provider (verbs_prefix): credits given back. One credit is one receive buffer;
 * an end never has more messages in flight than it was granted, so a shared receive queue overflows only when very many
 * peers send at once. Their devices then try again every 1.28 ms (VERBS_RNR_TIMER), until op_timeout_ms ends the SEND.
 *
 * An orderly end is a message too (VERBS_BYE): a connection manager's notice overtakes what was sent before it, and is
 * the same whether a peer closed or died. So fab_disconnect sends it, keeps the queue pair until it is acknowledged
 * (VERBS_LEAVING: the user has forgotten the connection, nothing of it is reported) or a second has passed, and
 * ends it then, as below. With READs in flight, whose buffers the user wants back, it destroys the queue pair at once.
 *
 * Drivers that keep the completion queue in the program's memory (mlx5 and others) take completions of a queue pair that
 * is destroyed out of it, and their places of the shared receive queue are free then: the buffers of what had arrived
 * would be nobody's, for good. So a queue pair without READs in flight is set to error first and destroyed when the
 * device has said that no receive of it is left (IBV_EVENT_QP_LAST_WQE_REACHED, ibv_get_async_event(3)), or
 * VERBS_RECEIVES_MS have passed: some devices do not say it. Of one with READs in flight everything that the device has
 * completed is looked at before.
 */
#ifndef FARKV_FABRIC_VERBS_H
#define FARKV_FABRIC_VERBS_H
#include "lib.h"
#ifdef FARKV_HAVE_VERBS
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "../provider.h"

enum {
    /* messages a peer may have unreleased here, at most: fewer where messages are large */
    VERBS_CREDITS = 64,
    VERBS_CREDITS_MIN = 8,
    VERBS_POOL_BYTES = 48 << 20, /* of a listening queue's message buffers in one tenant; a third for others */
    VERBS_LEAVE_MS = 1000,       /* how long an orderly end may take */
    VERBS_RECEIVES_MS = 100,     /* how long a queue pair in error may have receives */
    VERBS_SQ = 128,              /* work requests of a queue pair in flight */
    /* completions there is room for: of a thousand queue pairs, all flushed; the device may have less */
    VERBS_CQ_LISTENING = 1 << 17,
    VERBS_CQ_CONNECTING = 1 << 15,
    VERBS_BATCH = 64,          /* work requests behind one doorbell */
    VERBS_SIGNAL_EVERY = 32,   /* at the latest, a completion is asked for this often */
    VERBS_INLINE_WANTED = 256, /* bytes; the device may give less */
    VERBS_RETRIES = 3,         /* 7 means for ever to rxe */
    VERBS_RNR_RETRIES = 7,     /* for ever: op_timeout_ms is the bound */
    VERBS_RNR_TIMER = 14,      /* 1.28 ms; rdma_cm leaves it at 0, which is 655 ms (IBTA 1.4, table 45) */
    VERBS_ACK_TIMEOUT = 14,    /* 4.096 us * 2^14 = 67 ms */
    VERBS_QP_CHAINS = 1024,
    VERBS_TICK_MS = 50, /* how often time-outs are looked for */
    VERBS_VERSION = 1,
    VERBS_MAGIC = 0x5646
};

typedef struct verbs_prefix {
    uint16_t credits, flags;
    uint32_t reserved;
} verbs_prefix;
enum { VERBS_CREDIT_ONLY = 1, VERBS_BYE = 2 };

/* Before the user's private data in a connection request, its acceptance or rejection. */
typedef struct verbs_private {
    uint16_t magic;
    uint8_t version, bytes; /* bytes of the user's private data that follow: transports pad */
    uint8_t credits;
    uint8_t message_high; /* max_message, 24 bits */
    uint16_t message_low;
} verbs_private;
_Static_assert(sizeof(verbs_private) + FAB_PRIVATE_MAX <= 56, "rdma_cm carries 56 bytes over InfiniBand");

typedef struct verbs_pd { /* one for each tenant; never freed before the device is let go */
    struct verbs_pd *next;
    uint32_t tenant;
    struct ibv_pd *pd;
} verbs_pd;

typedef struct verbs_mr {
    fab_mr head;
    struct verbs_mr *next, *prev; /* in the domain, under its lock */
    bool served;                  /* to peers, so by a key that they have */
    uint8_t *base;
    size_t bytes;
    struct {
        verbs_pd *pd;
        struct ibv_mr *mr;
    } in[16];       /* a local region is registered in each PD that uses it */
    int registered; /* entries of `in`; under the domain's lock; grows, until the device is let go */
} verbs_mr;

typedef struct verbs_domain {
    fab_domain head;
    const verbs_lib *v;
    pthread_mutex_t lock; /* device, lost, queues, pds, mrs, cqs; and while an event of the device is taken */
    /* librdmacm moves a queue pair on while it takes an event: none is destroyed meanwhile */
    pthread_mutex_t cm_lock;
    struct ibv_context *device; /* rdma_cm's; NULL until the first address */
    struct ibv_device_attr attr;
    bool lost;       /* the device is gone; cleared when it is let go */
    uint32_t queues; /* completion queues that have a part of the device */
    verbs_pd *pds;
    verbs_mr *mrs;
    struct rdma_event_channel *events;
    pthread_t thread;
    int nudge_fd; /* wakes the CM thread: there is a device to watch, or the end */
    atomic_bool stopping;
    _Atomic(struct ibv_context *) async_device;
    struct verbs_cq *cqs;   /* for device events; under lock */
    char source_device[64]; /* to connect from; empty: by routing */
} verbs_domain;

typedef struct verbs_event { /* from the CM thread to a completion queue's thread */
    struct verbs_event *next;
    enum rdma_cm_event_type type; /* or VERBS_DEVICE_LOST, VERBS_RECEIVES_OVER */
    int status;
    uint32_t slot, generation;
    struct rdma_cm_id *id; /* CONNECT_REQUEST: the new one, */
    const void *listener;  /* and at whose context it came; */
    uint64_t from;         /* the peer's address, as fab_source_of gives it */
    uint32_t private_bytes;
    uint8_t private_data[FAB_PRIVATE_MAX + sizeof(verbs_private)];
} verbs_event;
enum { VERBS_DEVICE_LOST = 1000, VERBS_RECEIVES_OVER };

typedef struct verbs_id_context { /* what an rdma_cm_id's context points to; freed after rdma_destroy_id */
    struct verbs_cq *cq;
    uint32_t slot, generation;
} verbs_id_context;

typedef struct verbs_buffer {         /* 64 bytes; then verbs_prefix, message */
    struct verbs_buffer *next, *prev; /* free, or held by a connection's user */
    struct verbs_pool *pool;
    uint32_t bytes; /* early: of the message, with its prefix */
    uint32_t reserved[9];
} verbs_buffer;
_Static_assert(sizeof(verbs_buffer) == 64, "messages stay 8-byte aligned");

/* message buffers and shared receive queue of one tenant at one completion queue */
typedef struct verbs_pool {
    struct verbs_pool *next;
    verbs_pd *pd;
    struct ibv_srq *srq;
    struct ibv_mr *mr;
    uint8_t *memory;
    size_t memory_bytes, stride;
    uint32_t buffers;
    verbs_buffer *send_free;
    bool starved; /* a message found none: connections wait for one */
    struct ibv_recv_wr repost[VERBS_BATCH];
    struct ibv_sge repost_sge[VERBS_BATCH];
    int reposts;
} verbs_pool;

typedef enum {
    VERBS_ASKED = 1,
    VERBS_RESOLVING,
    VERBS_ROUTING,
    VERBS_CONNECTING,
    VERBS_ACCEPTING,
    VERBS_UP,
    VERBS_BROKEN,
    VERBS_LEAVING
} verbs_state;
typedef enum { VERBS_SQ_READ = 1, VERBS_SQ_SEND } verbs_sq_kind;

typedef struct verbs_sq_entry {
    uint64_t wr_id;       /* READ: the caller's */
    uint64_t seen_ns;     /* when verbs_timeouts first saw it posted; 0: not yet */
    verbs_buffer *buffer; /* SEND that is not inline */
    uint8_t kind;
    bool signaled, done;
    fab_wc_status status; /* not done: what it ends with when the connection breaks, if that is known */
} verbs_sq_entry;

typedef struct verbs_dial verbs_dial;

typedef struct verbs_conn {
    fab_conn head;
    struct verbs_cq *cq;
    struct verbs_conn *next, *prev; /* all of the completion queue */
    struct verbs_conn *next_dirty;
    struct verbs_conn *next_by_qp;
    bool dirty, disconnect_due, want_ready;
    bool left;     /* LEAVING: to be ended, or freed if it ends already */
    bool unposted; /* LEAVING since before it was up: its last words wait for that */
    bool ending;   /* BROKEN while completions are taken: the others of it come before its end */
    bool in_error; /* the queue pair is */
    bool ends;     /* LEAVING, in error: receives may be left */
    bool receives_over;
    verbs_state state;
    fab_wc_status reason; /* BROKEN: why, for FAB_WC_DISCONNECT */
    uint32_t slot, generation;
    struct rdma_cm_id *id;
    verbs_id_context *context;
    verbs_dial *dial; /* rdma_connect under way, or returned lately; never without a queue pair */
    verbs_pool *pool;
    struct ibv_qp *qp; /* NULL before set-up and when broken */
    uint32_t qp_number;
    uint32_t max_inline;
    uint64_t deadline_ns; /* of set-up, or of leaving */
    uint32_t reserved;    /* completions that it may still make, of those the queue has room for */
    /* send queue: entries tail .. head - 1 are posted or chained; a ring of VERBS_SQ */
    uint32_t sq_head, sq_tail;
    uint32_t unsignaled;
    /* A READ that is refused here: it and what is behind it is never posted, and the connection breaks when it is the
     * oldest. */
    fab_wc_status refused; /* FAB_SUCCESS: none */
    uint32_t refused_at;
    verbs_sq_entry sq[VERBS_SQ];
    struct ibv_send_wr wr[VERBS_BATCH]; /* chained for the next doorbell */
    struct ibv_sge sge[VERBS_BATCH];
    uint8_t inline_data[VERBS_BATCH][VERBS_INLINE_WANTED];
    int chained;
    /* Which of the chained ask for a completion: the last READ and the last SEND. One for both would not do: over
     * soft-iWARP a SEND completes while READs before it are still under way. The other way round it holds: an answer
     * tells that all before it arrived. */
    int last_read, last_send;          /* in `wr`; -1: none that asks */
    uint32_t credits;                  /* messages the peer still takes */
    uint32_t owed;                     /* buffers released since credits were last given back */
    verbs_buffer *held;                /* messages delivered and not yet released */
    verbs_buffer *early, **last_early; /* CONNECTING: came before the notice that the connection stands */
    uint32_t held_count;
    uint32_t signaled_pending; /* completions that were asked for and are still to come */
    uint32_t seen_to;          /* entries before it have been seen by verbs_timeouts */
    verbs_private mine;
    uint32_t private_bytes;
    uint8_t private_data[FAB_PRIVATE_MAX];
} verbs_conn;

typedef struct verbs_listener {
    fab_listener head;
    struct rdma_cm_id *id;
    verbs_id_context context;
    struct verbs_listener *next;
} verbs_listener;

typedef struct verbs_cq {
    fab_cq head;
    verbs_domain *d;
    struct verbs_cq *next;            /* in the domain */
    struct ibv_comp_channel *channel; /* with cq: made when the device is known */
    struct ibv_cq *cq;
    /* completions there is room for; promised to queue pairs and receive queues */
    uint32_t depth, reserved;
    unsigned events_to_ack;
    int epoll_fd, wake_fd, timer_fd;
    pthread_mutex_t lock; /* first_event .. last_event */
    verbs_event *first_event, **last_event;
    atomic_bool has_events;
    verbs_pool *pools;
    verbs_conn *conns, *dirty;
    verbs_conn **slots;
    uint32_t *generations;
    uint32_t slot_count, conn_count;
    verbs_conn *by_qp[VERBS_QP_CHAINS];
    uint32_t recv_buffers, send_buffers; /* of each pool */
    uint32_t credits;                    /* granted to each connection */
    fab_wc *stash;                       /* completions made but not yet polled: a ring that grows */
    uint32_t stash_head, stash_tail, stash_size;
    verbs_event *held_event; /* its private data is in a polled completion */
    uint32_t polls;          /* that found the stash empty */
    uint32_t disconnects_due;
    bool draining, armed, timer_set;
    bool listens, lost; /* lost: the device, and this queue still has its part */
    bool reap;          /* a LEAVING connection has left */
    bool endings;       /* a connection is `ending` */
    bool closing;
} verbs_cq;

/* domain.c */
/* binds, or checks that it is the same: -EXDEV; -ENODEV: lost */
int verbs_device_of(verbs_domain *d, struct ibv_context *device);
/* the device is lost: told to every queue, once */
void verbs_device_gone(verbs_domain *d);
/* one has given up its part; the last lets the device go */
void verbs_queue_gone(verbs_domain *d);
int verbs_pd_of(verbs_domain *d, uint32_t tenant, verbs_pd **out);
int verbs_local_key(verbs_mr *m, verbs_pd *pd, uint32_t *lkey);
int verbs_open(const fab_options *o, fab_domain **out);
void verbs_close(fab_domain *d);
int verbs_reg(fab_domain *d, const fkv_region *r, uint32_t tenant, fab_mr **out);
int verbs_reg_local(fab_domain *d, void *base, size_t bytes, fab_mr **out);
void verbs_dereg(fab_mr *m);
/* Whether private memory that the device writes stays this process's alone. A kernel that copies pages when they are
 * first written after a fork (before 5.12) may give the copy to the parent, and the device goes on with the other. */
void verbs_not_for_children(void *memory, size_t bytes, bool mine);

/* addresses.c */
int verbs_traffic_class(void); /* of connections that are made now; 0: the kernel's; -1: what was given is none */
/* that FARKV_RDMA_DEVICE names; NULL: none, or several */
const char *verbs_named_device(void);
/* -ENODEV: no address of the family leads to it */
int verbs_source_of(const char *device, int family, struct sockaddr_storage *out);

/* events.c */
void *verbs_cm_thread(void *domain);
void verbs_post_event(verbs_cq *cq, verbs_event *e); /* any thread; takes e */
void verbs_turn_away(verbs_cq *cq, verbs_event *e);  /* a CONNECT_REQUEST that nobody has seen; frees e */

/* cm.c */
/* handles what the CM thread handed over */
void verbs_events(verbs_cq *cq);
int verbs_listen(fab_cq *cq, const char *address, fab_listener **out);
void verbs_unlisten(fab_listener *l);
int verbs_connect(fab_cq *cq, const char *address, const fab_identity *who, const void *priv, uint32_t priv_bytes,
                  void *user, fab_conn **out);
int verbs_accept(fab_conn *c, uint32_t tenant, const void *priv, uint32_t priv_bytes);
int verbs_reject(fab_conn *c, const void *priv, uint32_t priv_bytes);
/* one that was accepted is established */
void verbs_peer_ready(verbs_conn *c);

/* dial.c */
/* a failure later is an event: CONNECT_ERROR */
int verbs_dial_begin(verbs_conn *c, const struct rdma_conn_param *p);
/* before the queue pair goes; may be called again */
void verbs_dial_end(verbs_conn *c);

/* pool.c */
int verbs_pool_of(verbs_cq *cq, uint32_t tenant, verbs_pool **out);
void verbs_pool_repost(verbs_pool *p, verbs_buffer *b);
void verbs_pool_flush(verbs_pool *p);
void verbs_pool_free(verbs_cq *cq, verbs_pool *p);
static inline verbs_prefix *verbs_buffer_prefix(verbs_buffer *b) { return (verbs_prefix *)(void *)(b + 1); }

/* conn.c */
int verbs_conn_new(verbs_cq *cq, void *user, verbs_conn **out);
int verbs_conn_qp(verbs_conn *c, uint32_t tenant); /* makes the queue pair */
/* How soon a peer whose message found no buffer here tries again. The queue pair can send already. */
void verbs_conn_rnr_timer(verbs_conn *c);
verbs_conn *verbs_conn_of_slot(verbs_cq *cq, uint32_t slot, uint32_t generation); /* NULL: freed since */
verbs_conn *verbs_conn_of_qp(verbs_cq *cq, uint32_t number);
int verbs_cq_create(fab_domain *d, fab_cq **out);
int verbs_cq_device(verbs_cq *cq, bool listens); /* makes the device's part */
/* gives it up, if the device is lost and no connection is left */
void verbs_cq_let_go(verbs_cq *cq);
void verbs_cq_destroy(fab_cq *cq);

/* end.c */
/* The connection is in error from now on. With READs in flight the queue pair is destroyed (the device touches no buffer
 * afterwards), then they complete: the oldest with `first`, if it is not SUCCESS, the others flushed. FAB_WC_DISCONNECT
 * follows. While completions are taken that waits for the last of them (verbs_end_broken). */
void verbs_break(verbs_conn *c, fab_wc_status first, fab_wc_status reason);
void verbs_end_broken(verbs_cq *cq);
void verbs_disconnect(fab_conn *c);
/* a LEAVING one: its queue pair is in error from the next verbs_reap on */
void verbs_left(verbs_conn *c);
/* no receive is left of the queue pair in error, or it is not waited for any more: freed at the next verbs_reap */
void verbs_receives_over(verbs_conn *c);
void verbs_reap(verbs_cq *cq);

/* poll.c */
void verbs_stash(verbs_cq *cq, const fab_wc *wc);
/* moves all the device has into the stash */
void verbs_drain(verbs_cq *cq);
/* tells the user that a message can be sent, if it waits for that */
void verbs_ready(verbs_conn *c);
/* completes sq entries: while done, or all */
void verbs_pop(verbs_conn *c, bool all);
int verbs_poll(fab_cq *cq, fab_wc *wc, int max);
int verbs_arm(fab_cq *cq);
int verbs_fd(fab_cq *cq);
void verbs_wake(verbs_cq *cq); /* any thread */
/* at the start, or back to the pool at the end */
void verbs_deliver_early(verbs_conn *c);
/* takes its completions out of the stash */
void verbs_purge(verbs_cq *cq, const verbs_conn *c);
void verbs_timeouts(verbs_cq *cq);
fab_wc_status verbs_status(enum ibv_wc_status s);

/* post.c */
void verbs_doorbell(verbs_conn *c);
/* Breaks the connection if the READ that was refused here is the oldest now. */
void verbs_refuse(verbs_conn *c);
void verbs_flush(fab_cq *cq);
int verbs_post_reads(fab_conn *c, const fab_read *r, int n);
int verbs_send(fab_conn *c, const struct iovec *iov, int n, uint32_t bytes);
void verbs_release(fab_conn *c, const void *message);
void verbs_say_first(verbs_conn *c); /* so that the owner may speak */
bool verbs_say_bye(verbs_conn *c);   /* false: it cannot be posted */
int verbs_attach(fab_conn *c, uint64_t rkey, uint64_t addr, uint64_t bytes, uint64_t wr_id);
void verbs_detach(fab_conn *c, uint64_t rkey);

/* wr_id of a work request: 1 | 0 | slot 20 | generation 10 | position in the send queue 32. Of a receive: the buffer's
 * address, whose highest bit is 0. */
static inline uint64_t verbs_wr_id(const verbs_conn *c, uint32_t position) {
    return 1ull << 63 | (uint64_t)c->slot << 42 | (uint64_t)(c->generation & 1023) << 32 | position;
}
enum { VERBS_SLOTS_MAX = 1 << 20 };
#endif
#endif
