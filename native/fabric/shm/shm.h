/* shm.h: what the files of the shm provider share: its objects, and who may touch which part of them.
 *
 * Two kinds of thread. The *owner of the CQ* polls and never waits for a lock that is held across a system call of
 * another; the domain's *agent* (agent.c) does everything slow: accepts, handshakes, mapping and unmapping, passing
 * descriptors, time-outs. They talk through two boxes, both lists of connections with bits set:
 *
 *      CQ thread  -- orders, under domain->lock -->  agent  -- news, under cq->lock -->  CQ thread
 *
 * A connection is made by fab_connect (CQ thread) or when a socket is accepted (agent), and always freed by the agent:
 * after CLOSE was ordered, or when a peer never got as far as being made known. From CLOSE on the CQ thread does not
 * touch it, and the agent does not touch the CQ but for its reference count (news.closed). Locks: domain->lock and
 * cq->lock are never held together. The data path takes neither, unless something is in the box.
 */
#ifndef FARKV_FABRIC_SHM_H
#define FARKV_FABRIC_SHM_H
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include "../provider.h"
#include "lane.h"
#include "frame.h"

typedef struct shm_domain shm_domain;
typedef struct shm_cq shm_cq;
typedef struct shm_conn shm_conn;
typedef struct shm_listener shm_listener;
typedef struct shm_attachment shm_attachment;
typedef struct shm_export shm_export;

enum {
    SHM_ACTIVE_MAX = 64,        /* more connections than this at one CQ: idle ones are parked */
    SHM_PARK_POLLS = 1024,      /* idle for so many polls */
    SHM_EPOLL_EVERY = 256,      /* polls and messages between two looks at the bells of parked connections */
    SHM_QUOTA = 16,             /* messages taken from one of several connections before the next has its turn */
    SHM_READS = 512,            /* READs outstanding on a connection */
    SHM_READ_BUDGET = 64 << 10, /* bytes copied by one poll, so that a large READ does not delay small work */
    SHM_ATTACH_WINDOW = 64,     /* attach requests unanswered on a socket; more wait, so its buffers never fill */
    SHM_MR_BUCKETS = 256,
    SHM_UNREACHED = 64 /* sockets of which it is remembered that they took no connection */
};

/* ---- agent's bookkeeping ---- */
/* what epoll and timers point at */
typedef enum { SHM_SOURCE_WAKE, SHM_SOURCE_LISTENER, SHM_SOURCE_CONN } shm_source;
typedef struct shm_timer {
    struct shm_timer *next, *prev; /* next == NULL: not set */
    uint64_t at_ns;
    shm_source *source;
} shm_timer;

typedef struct shm_mr {
    fab_mr head;
    int fd;
    uint64_t offset; /* in the file */
    size_t bytes;
    uint32_t tenant;
    struct shm_mr *next; /* of its bucket; domain->lock */
    shm_export *exports; /* domain->lock */
} shm_mr;

/* An attachment of this side's region by the peer. */
struct shm_export {
    shm_conn *conn;
    shm_mr *mr;               /* NULL after deregistration */
    shm_export *next, **link; /* of the region's list */
    uint32_t slot;
};

/* A region of the peer: asked for, then mapped here. Made by fab_attach, passed to the agent and back, at last to the
 * agent again to be unmapped. */
struct shm_attachment {
    shm_attachment *next; /* of whichever list holds it */
    uint64_t rkey, address, bytes, wr_id;
    uint64_t id, deadline_ns; /* agent */
    const uint8_t *base;      /* of `address`, in this process */
    void *map;
    size_t map_bytes;
    uint32_t slot;
    fab_wc_status status;
};
typedef struct shm_list {
    shm_attachment *first, **last;
} shm_list;
static inline void shm_list_init(shm_list *l) { *l = (shm_list){ NULL, &l->first }; }
static inline void shm_list_add(shm_list *l, shm_attachment *a) {
    a->next = NULL;
    *l->last = a;
    l->last = &a->next;
}
static inline shm_attachment *shm_list_pop(shm_list *l) {
    shm_attachment *a = l->first;
    if (a && !(l->first = a->next)) l->last = &l->first;
    return a;
}
static inline void shm_list_move(shm_list *to, shm_list *from) {
    if (!from->first) return;
    *to->last = from->first;
    to->last = from->last;
    shm_list_init(from);
}

/* Attachments by rkey: open addressing. An entry that is not `ready` is still being asked for and belongs to the agent.
 * */
typedef struct shm_table {
    struct shm_entry {
        uint64_t rkey;
        shm_attachment *a;
        bool ready;
    } * at;
    uint32_t room, count; /* room: 0 or a power of two */
} shm_table;

/* ---- a READ in the queue ---- */
typedef struct shm_read {
    uint64_t wr_id;
    uint8_t *local;
    const uint8_t *from;
    const shm_attachment *of;
    uint32_t bytes, done;
    fab_wc_status status; /* what was wrong when it was posted */
} shm_read;

/* ---- a connection ---- */
typedef enum {
    SHM_CONNECTING, /* fab_connect was called */
    SHM_ASKED,      /* FAB_WC_ACCEPT is, or will be, given */
    SHM_OPEN,
    SHM_BROKEN, /* something failed here; the agent was told to hang up */
    SHM_ENDING, /* the agent said that the peer is gone */
    SHM_ENDED   /* FAB_WC_DISCONNECT was given */
} shm_state;
/* Connections of a listener that have not said their hello; one more ends the oldest. */
enum { SHM_SILENT = 256 };
enum { SHM_ORDER_CONNECT = 1, SHM_ORDER_ACCEPT = 2, SHM_ORDER_REJECT = 4, SHM_ORDER_HANGUP = 8, SHM_ORDER_CLOSE = 16 };
enum { SHM_NEWS_ACCEPT = 1, SHM_NEWS_CONNECT = 2, SHM_NEWS_GONE = 4 };
typedef enum {
    SHM_LINK_IDLE,
    SHM_LINK_RETRY,
    SHM_LINK_HELLO,
    SHM_LINK_ASKED,
    SHM_LINK_WELCOME,
    SHM_LINK_UP,
    SHM_LINK_DOWN
} shm_link_state;

/* The part that only the agent touches, once the connection was handed to it. */
typedef struct shm_link {
    shm_source source;
    shm_link_state state;
    int fd;                  /* the socket; -1: closed */
    uint32_t events;         /* what epoll watches */
    shm_timer timer;         /* handshake: give up or try again; up: the oldest attach runs out */
    uint64_t deadline_ns;    /* of the handshake */
    shm_conn *next, *prev;   /* all of the domain; after the end, `next` of those to be freed */
    shm_list asked, waiting; /* attach requests: sent; not yet sent */
    uint32_t asked_count;
    uint64_t next_id, answered_ns;
    shm_export **exports; /* by slot; domain->lock */
    uint32_t export_room, export_hint;
    uint32_t *released; /* slots of the peer's that were detached and not yet told */
    uint32_t released_count, released_room;
    int rings_fd, peer_bell_fd; /* acceptor: to be handed over with WELCOME */
    bool holds;                 /* `held` could not be answered yet; nothing more is read until it is */
    shm_frame held;
} shm_link;

struct shm_conn {
    fab_conn head;
    shm_domain *domain;
    shm_cq *cq;
    shm_listener *listener; /* acceptor */
    int side;               /* 0 connector, 1 acceptor: writes lane[side], its flag is asleep[side] */
    char path[108];         /* connector */

    /* The rings: made by the agent before they are made known, then the CQ thread's. */
    shm_shared *shared;
    uint32_t ring_bytes, max_message;
    int bell;      /* a socket: ringing sends a byte; readable when the peer rang */
    uint8_t *pool; /* `buffers` receive buffers of `stride` bytes, then the queue of READs */
    size_t pool_bytes;
    uint32_t buffers, stride;

    /* CQ thread. */
    alignas(64) shm_state state;
    uint32_t free_count;
    uint64_t heard; /* the poll that last took a message */
    shm_in in;
    shm_out out;
    uint16_t *free;     /* stack of free buffers: the one used last is warm */
    uint8_t *held;      /* by buffer: in the user's hands */
    uint32_t active_at; /* place in cq->active; UINT32_MAX: not there */
    bool parked, dirty, freed_space, reading, announced, ending;
    fab_wc_status status;  /* why it broke */
    uint64_t touched;      /* the poll that last gave a completion other than RECV in order */
    uint64_t last_message; /* ENDING: in.head where the peer's last message ends */
    shm_conn *next_dirty, *next_reading;
    shm_conn *next_announced, *next_ending;
    unsigned announce; /* SHM_NEWS_* not yet given */
    shm_list attached; /* not yet given */
    shm_read *reads;
    uint32_t read_head, read_tail;
    shm_table table;

    struct { /* guarded by cq->lock */
        unsigned bits;
        bool listed, closed;
        shm_conn *next;
        fab_wc_status gone, connected;
        uint32_t priv_bytes; /* of HELLO, WELCOME or REJECT; not written again after it was posted */
        uint8_t priv[FAB_PRIVATE_MAX];
        shm_list attached;
    } news;
    struct { /* guarded by domain->lock */
        unsigned bits;
        bool listed, broken; /* broken: HANGUP or CLOSE is not in order */
        shm_conn *next;
        uint32_t tenant;
        uint32_t priv_bytes;
        uint8_t priv[FAB_PRIVATE_MAX];
        shm_list attach, detach;
    } orders;
    alignas(64) shm_link link; /* agent */
};
static inline shm_conn *shm_conn_of(shm_source *s) { return (shm_conn *)((char *)s - offsetof(shm_conn, link.source)); }

struct shm_listener {
    fab_listener head;
    shm_source source;
    shm_domain *domain;
    shm_cq *cq;
    int fd;
    char path[108];
    dev_t device; /* of the socket file, to unlink no other's */
    ino_t inode;
    bool closed;                /* domain->lock */
    shm_listener *next_closing; /* domain->lock */
    _Atomic uint32_t refs;      /* the user's and one a connection */
    uint32_t conns, silent;     /* agent; silent: those of them that have not said their hello */
    shm_timer timer;            /* agent: out of descriptors, accept again later */
};
static inline shm_listener *shm_listener_of(shm_source *s) {
    return (shm_listener *)((char *)s - offsetof(shm_listener, source));
}

struct shm_cq {
    fab_cq head;
    shm_domain *domain;
    int epoll, wake_fd;
    uint64_t polls;
    bool armed;
    shm_conn **active;
    uint32_t active_count, active_room, turn, parked_count, since_epoll;
    shm_conn *dirty;
    shm_conn *reading, **reading_last;
    shm_conn *announce, **announce_last;
    shm_conn *ending;

    alignas(64) _Atomic uint32_t attention; /* 1: there is `news` */
    _Atomic uint32_t refs;                  /* the user's and one a connection */
    pthread_mutex_t lock;
    shm_conn *news, **news_last; /* lock */
};

struct shm_domain {
    fab_domain head;
    fab_options options;
    pthread_t agent;
    int epoll, wake_fd;

    pthread_mutex_t lock;
    pthread_cond_t listener_closed;  /* with lock */
    shm_mr *mrs[SHM_MR_BUCKETS];     /* lock */
    shm_conn *orders, **orders_last; /* lock */
    shm_listener *closing;           /* lock */
    bool stop;                       /* lock */

    shm_source wake_source; /* agent, from here on */
    shm_timer timers;       /* ring, sorted by time */
    shm_conn *conns, *dead;
    struct shm_unreached {
        uint64_t said_ns; /* 0: of none */
        uint32_t path_crc;
        int error;
    } unreached[SHM_UNREACHED];
};

/* agent.c */
int shm_agent_start(shm_domain *d);
void shm_agent_stop(shm_domain *d);
void shm_agent_wake(shm_domain *d);
void shm_order(shm_conn *c, unsigned bits); /* takes domain->lock */
void shm_order_locked(shm_conn *c, unsigned bits);
void shm_post(shm_conn *c, unsigned bits, fab_wc_status status); /* agent: news for the CQ; takes cq->lock */
void shm_post_attached(shm_conn *c, shm_attachment *a);
void shm_timer_set(shm_domain *d, shm_timer *t, uint64_t at_ns);
void shm_timer_clear(shm_timer *t);

/* listen.c; shm_listener_* run in the agent */
int shm_listen(fab_cq *q, const char *address, fab_listener **out);
void shm_unlisten(fab_listener *l);
int shm_parse_address(const char *address, char path[108]);
void shm_listener_ready(shm_listener *l);
void shm_listener_timer(shm_listener *l);
void shm_listener_close(shm_listener *l);
void shm_listener_unref(shm_listener *l);
bool shm_peer_trusted(int fd);

/* link.c: the agent's side of a connection */
shm_conn *shm_conn_new(shm_domain *d, shm_cq *q, int side);
void shm_link_accepted(shm_listener *l, int fd);
void shm_link_watch(shm_conn *c, uint32_t events);
void shm_link_ready(shm_conn *c, uint32_t events);
void shm_link_timer(shm_conn *c);
void shm_link_orders(shm_conn *c);
void shm_link_fail(shm_conn *c, fab_wc_status status); /* the peer is gone or must go */
void shm_link_end(shm_conn *c);                        /* to be freed when the agent's batch is over */
void shm_conn_free(shm_conn *c);
/* False when the peer does not take it: then the link has failed. *full, where given, is set instead when it might
 * later. */
bool shm_link_send(shm_conn *c, const shm_frame *f, const int *fds, int n, bool *full);

/* rings.c: making and mapping what both ends share */
uint32_t shm_ring_bytes_for(uint32_t max_message);
int shm_rings_make(shm_conn *c);
int shm_rings_map(shm_conn *c, int rings_fd, int bell_fd);
void shm_rings_populate(shm_conn *c);
void shm_rings_free(shm_conn *c);

/* attach.c: the agent's side of attaching */
void shm_attach_orders(shm_conn *c, shm_list *attach, shm_list *detach);
void shm_attach_write(shm_conn *c);                       /* sends what waits, as far as the socket takes it */
bool shm_attach_request(shm_conn *c, const shm_frame *f); /* false: garbage */
bool shm_attach_reply(shm_conn *c, const shm_frame *f, int fd);
bool shm_detach_request(shm_conn *c, const shm_frame *f);
void shm_attach_timer(shm_conn *c);
void shm_attach_fail_all(shm_conn *c, fab_wc_status first);
void shm_attachment_free(shm_attachment *a);
void shm_exports_free(shm_conn *c);

/* table.c: the CQ thread's side */
int shm_attach(fab_conn *c, uint64_t rkey, uint64_t address, uint64_t bytes, uint64_t wr_id);
void shm_detach(fab_conn *c, uint64_t rkey);
const uint8_t *shm_direct(fab_conn *c, uint64_t rkey);
shm_attachment *shm_table_find(const shm_table *t, uint64_t rkey);
void shm_table_settle(shm_table *t, const shm_attachment *a); /* an attach ended: the entry is ready, or goes */
void shm_table_free(shm_table *t);                            /* in the agent */

/* mr.c */
int shm_reg(fab_domain *d, const fkv_region *r, uint32_t tenant, fab_mr **out);
int shm_reg_local(fab_domain *d, void *base, size_t bytes, fab_mr **out);
void shm_dereg(fab_mr *m);
shm_mr *shm_mr_find(shm_domain *d, uint64_t rkey); /* domain->lock held */

/* conn.c: CQ thread */
int shm_connect(fab_cq *q, const char *address, const fab_identity *who, const void *priv, uint32_t priv_bytes,
                void *user, fab_conn **out);
int shm_accept(fab_conn *c, uint32_t tenant, const void *priv, uint32_t priv_bytes);
int shm_reject(fab_conn *c, const void *priv, uint32_t priv_bytes);
void shm_disconnect(fab_conn *c);
void shm_drop(shm_conn *c); /* disconnects one that the user never saw */
bool shm_conn_open(shm_conn *c);
void shm_break(shm_conn *c, fab_wc_status status);
int shm_send(fab_conn *c, const struct iovec *iov, int n, uint32_t bytes);
void shm_release(fab_conn *c, const void *message);
int shm_post_reads(fab_conn *c, const fab_read *r, int n);

/* cq.c, poll.c */
int shm_cq_create(fab_domain *d, fab_cq **out);
void shm_cq_destroy(fab_cq *q);
void shm_cq_unref(shm_cq *q);
int shm_poll(fab_cq *q, fab_wc *wc, int max);
void shm_flush(fab_cq *q);
int shm_arm(fab_cq *q);
int shm_fd(fab_cq *q);
void shm_attend(shm_cq *q); /* any thread */
bool shm_active_add(shm_conn *c);
void shm_unpark(shm_conn *c);
void shm_forget(shm_conn *c); /* out of every list of its CQ */
void shm_announce(shm_conn *c);
void shm_dirty(shm_conn *c);

#endif
