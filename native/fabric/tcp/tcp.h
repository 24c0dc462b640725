/* tcp.h: what the files of the tcp provider share. Private to native/fabric/tcp*.c.
 *
 * Who does what:
 *
 *   connections made by fab_connect            connections of a listener
 *   driven by fab_poll, one thread             driven by the responder thread of the CQ's (one, begun by the first
 *                                              fab_listen), and after fab_attend by fab_poll as well (move.c)
 *
 * The *driver* of a connection reads its socket (rx.c), answers READs out of registered memory (serve.c), and ends it
 * (conn.c). What it finds it hands to the CQ's thread as events: through `inbox`, a lock-free stack that the CQ's
 * thread takes whole, when the driver is the responder; straight into the connection's queue otherwise. The CQ's thread
 * makes completions of them, a few of each connection in turn (deliver.c).
 *
 * Writing. Both the driver and the CQ's thread write to a socket. Whoever holds the *right to write* (tx_right) does;
 * the CQ's thread never waits for it: when the responder holds it, the CQ's thread leaves a mark, and the responder
 * writes again before it gives the right up. What the CQ's thread wants to be sent lies in queues with one producer:
 * the SEND ring, READ slots, `released`.
 *
 * Bounds. Nothing here grows with what a peer sends: READ requests are bounded by TCP_DEPTH, SENDs by the window,
 * output by one scratch buffer a connection; a peer that oversteps one of them is cut off. So a driver never has to
 * stop reading a socket, and two full directions cannot block each other.
 *
 * Life. A connection of the responder is freed by the CQ's thread when the responder has said, as its last event, that
 * it let go.
 */
#ifndef FARKV_FABRIC_TCP_H
#define FARKV_FABRIC_TCP_H
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include "../../base/list.h"
#include "../provider.h"
#include "frame.h"
#include "tls.h"

enum {
    TCP_DEPTH = 1024,        /* READs outstanding in one direction of a connection; a power of two */
    TCP_SCRATCH = 128 << 10, /* bytes read, and bytes of answers written, in one go */
    TCP_FIXED = TCP_HEADER_BYTES + TCP_DEPTH * TCP_FOLLOW_BYTES,
    TCP_WINDOW = 256 << 10, /* at least; see tcp_domain.window */
    TCP_DIRECT = 4,         /* up to so many connections of fab_poll are read without asking epoll first */
    TCP_EVENTS = 64,        /* taken from epoll at once */
    /* a READ may take op_timeout, and this for each of its bytes and those before it: 16 MB/s */
    TCP_BYTE_NS = 60
};

typedef struct tcp_domain tcp_domain;
typedef struct tcp_cq tcp_cq;
typedef struct tcp_io tcp_io;
typedef struct tcp_conn tcp_conn;
typedef struct tcp_listener tcp_listener;
typedef struct tcp_responder tcp_responder;
typedef struct tcp_mr tcp_mr;

/* ---- events: from a driver to the CQ's thread ---- */
typedef enum tcp_event_kind {
    TCP_EV_UP = 1,  /* FAB_WC_ACCEPT or FAB_WC_CONNECT */
    TCP_EV_READS,   /* `answered` moved on */
    TCP_EV_MESSAGE, /* the event is the head of a tcp_message */
    TCP_EV_SEND_READY,
    TCP_EV_ATTACH,     /* the event is the head of a tcp_attach */
    TCP_EV_DOWN,       /* the driver touches no local buffer any more: flush, then FAB_WC_DISCONNECT */
    TCP_EV_DISCONNECT, /* the second half of DOWN */
    TCP_EV_MOVED,      /* the responder is not the driver any more, and this its last word */
    TCP_EV_GONE        /* the driver let go of a connection that the user disconnected: free it */
} tcp_event_kind;

typedef struct tcp_event {
    struct tcp_event *next;
    tcp_conn *conn;
    tcp_event_kind kind;
} tcp_event;

typedef struct tcp_message {
    tcp_event event;
    fkv_list link; /* delivered and not released; the CQ's thread */
    uint32_t bytes, size_class;
    _Alignas(16) uint8_t data[];
} tcp_message;

typedef struct tcp_attach {
    tcp_event event;
    uint64_t wr_id;
} tcp_attach;

/* ---- one READ ---- */
typedef struct tcp_slot { /* asked by us */
    uint64_t wr_id, rkey, addr;
    uint8_t *local;
    uint32_t bytes;
    uint32_t status;
    uint64_t posted_ns, deadline_ns;
    uint8_t *next_local; /* a followed READ's second half */
    uint64_t next_argument;
    uint32_t next_bytes; /* at most; 0: not to be followed */
    uint32_t landed;     /* bytes that came, of both */
} tcp_slot;
typedef struct tcp_request { /* asked by the peer */
    uint64_t rkey, addr, follow;
    uint32_t number, bytes, done;
    uint32_t next_bytes; /* 0: not to be followed */
} tcp_request;

typedef enum tcp_state {
    TCP_CONNECTING = 1, /* client: connect() is under way */
    TCP_GREETING,       /* client: the answer is awaited; server: the hello is */
    TCP_ASKED,          /* server: the user has FAB_WC_ACCEPT */
    TCP_UP,
    /* all is said; what still comes is thrown away until the peer closes or handshake_ms have passed */
    TCP_LINGER,
    TCP_CLOSED /* no socket any more */
} tcp_state;
enum { TCP_TX_FREE, TCP_TX_HELD, TCP_TX_AGAIN }; /* tx_right; AGAIN: held, and more was queued */
/* commands to the responder */
enum { TCP_CMD_CLOSE = 1, TCP_CMD_FAIL = 2, TCP_CMD_MOVE = 4 };

struct tcp_conn {
    fab_conn head;
    /* Fixed when the connection begins; the first two by the CQ's thread once more, when it becomes the driver. */
    tcp_io *io;
    bool threaded;          /* the driver is the responder */
    tcp_listener *listener; /* NULL: made by fab_connect */
    tcp_tls *tls;           /* NULL: it is in the clear */
    uint8_t *arena;         /* the three rings below: one mapping, no page of it touched before its use */
    uint8_t *ring;          /* SENDs; domain->ring_bytes */
    tcp_slot *slots;        /* [TCP_DEPTH] */
    tcp_request *requests;  /* [TCP_DEPTH] */
    /* held while the responder handles input, so that fab_disconnect can wait that out */
    pthread_mutex_t rx_lock;

    /* The CQ's thread. */
    bool usable; /* sends and READs are taken */
    bool gone;   /* the user disconnected: its events are dropped */
    bool moving; /* the responder was told to let it go, and has not said that it has */
    bool is_dirty, is_awaiting, is_active;
    fkv_list dirty_link, awaiting_link, active_link;
    tcp_event *events, **events_end; /* oldest first */
    uint64_t down_poll;              /* the poll that flushed: DISCONNECT comes in a later one */
    fkv_list unreleased;
    /* READs given to the user. Invariant: completed <= answered <= posted <= completed + depth; once DOWN is being
     * delivered, completed <= posted, for it gives what was not answered too */
    uint64_t completed;
    uint64_t outstanding_bytes;
    uint64_t last_deadline_ns;
    uint64_t seen_rx, progress_ns, suspect_ns;
    uint32_t depth; /* READs that the peer serves at once, at most TCP_DEPTH */
    uint32_t peer_window;
    fab_wc_status fail_status; /* set before TCP_CMD_FAIL */
    uint32_t held_commands;    /* while it moves */
    /* slots from `posted` on that are not sent: the first one's local buffer is not registered */
    uint32_t refused;

    /* The driver. */
    _Alignas(64) fkv_list io_link, runnable_link, timer_link, shaking_link;
    bool is_runnable, is_timed, is_shaking, counted; /* counted: in listener->live */
    uint64_t from;                                   /* the peer's address, as fab_source_of gives it */
    bool announced;                                  /* the CQ's thread knows of it */
    bool closing;                                    /* the user disconnected: say GONE when all is over */
    bool said_down, nak;                             /* nak: a READ was refused; no more is answered or taken */
    uint64_t timer_ns;
    uint64_t serve_head, serve_tail; /* requests[] */
    uint32_t received;               /* bytes of the oldest READ that came */
    uint32_t held;                   /* bytes of an incomplete header in hold */
    uint8_t hold[TCP_HELLO_MAX];
    uint8_t *want_at; /* where the payload at hand goes, and how much of it is missing */
    size_t want_left;
    bool want_last;
    tcp_message *want_message; /* the payload is a SEND's; else a READ's */
    uint64_t rx_cost;          /* of all messages that came */
    tcp_message *pool[16];     /* free messages by size class */
    size_t pool_bytes;         /* of all messages of this connection, free or not */
    tcp_event up, reads, send_ready, down, moved, let_go;
    fab_wc_status up_status, down_status;
    /* down_status is the oldest READ's as well; else that one is flushed like the others */
    bool down_blames;
    tcp_hello own_hello; /* client: said once connected */
    tcp_hello peer;      /* what it said; not changed after `up` was emitted */
    bool follows;        /* it follows READs; the same */

    /* Whoever holds the right to write. */
    _Alignas(64) int fd; /* the driver closes it; the CQ's thread looks only while it holds the right */
    bool blocked, armed; /* the socket takes no more; EPOLLOUT is asked for */
    bool ring_first;     /* the ring's head is inside a frame */
    uint8_t cut_at, cut_bytes;
    uint8_t cut[TCP_FOLLOW_BYTES]; /* rest of a fixed frame */
    uint8_t *left;                 /* rest of composed answers, [TCP_SCRATCH] */
    size_t left_at, left_bytes, quota;
    uint64_t requested; /* READs sent */

    /* Between threads. */
    _Alignas(64) uint32_t tx_right;
    uint32_t state;  /* tcp_state; ASKED to UP by the CQ's thread, all else by the driver */
    uint32_t tenant; /* written before the state becomes UP */
    uint32_t broken; /* a write failed */
    uint32_t deaf;   /* input is thrown away, no local buffer is touched */
    uint32_t reads_queued, ready_queued;
    uint32_t want_cost;              /* fab_send said -EAGAIN for so much; 0: nobody waits */
    uint64_t posted;                 /* the CQ's thread writes */
    uint64_t answered;               /* the driver writes */
    uint64_t ring_head, ring_tail;   /* holder of the right; the CQ's thread */
    uint64_t spent;                  /* cost of messages sent; the CQ's thread */
    uint64_t returned;               /* cost that the peer gave back; the driver */
    uint64_t released;               /* cost given back by the user; the CQ's thread */
    uint64_t credit_limit;           /* cost that the peer may have been given back: set before a CREDIT is sent */
    uint64_t credit_sent;            /* and set when it was; holder of the right */
    uint64_t rx_total, rx_cost_seen; /* bytes that came; copy of rx_cost */
    tcp_message *pool_returns;       /* stack of released messages */
    uint32_t commands;
    tcp_conn *command_next;
};

/* What a driver needs; one in each CQ, one in its responder. */
struct tcp_io {
    tcp_domain *domain;
    tcp_cq *cq;
    bool threaded;
    int epoll;
    uint8_t *rx, *tx; /* scratch: TCP_SCRATCH; TCP_FIXED + TCP_SCRATCH */
    /* of encrypted connections: TCP_SCRATCH, TCP_TLS_OUT, TCP_TLS_RECORD */
    uint8_t *cipher_in, *cipher_out, *record;
    int sockets, timed; /* timed: connections in `timers`, of the owner's side strangers (provider.h) */
    int attention;      /* client: sockets that wait for EPOLLOUT */
    fkv_list conns, runnable, timers;
    fkv_list shaking; /* bytes of a handshake wait in the socket: one of these has its turn each round */
    fkv_list dead;    /* let go by the responder; the epoll events at hand may name them. Empty between its rounds */
    tcp_event *batch, *batch_oldest; /* events not yet handed over, newest first */
};

struct tcp_cq {
    fab_cq head;
    tcp_io io;
    tcp_responder *responder; /* NULL before the first fab_listen */
    int eventfd, timerfd;
    uint64_t timer_ns; /* when timerfd fires; 0: never */
    uint64_t polls;
    fkv_list active, deferred; /* have events; have them for the next fab_poll only. is_active: in one of the two */
    fkv_list dirty, awaiting;  /* has something to write; has READs outstanding */
    bool armed;
    _Alignas(64) tcp_event *inbox;
    uint32_t sleeping;
    uint64_t rung, heard; /* writes to the eventfd: begun (any thread); taken out (the CQ's thread) */
    /* READs answered, see fab_reads_served; not in a line that the CQ's thread polls */
    _Alignas(64) uint64_t served;
};

struct tcp_listener {
    fab_listener head;
    tcp_responder *responder;
    pthread_mutex_t lock; /* held while accepting, so that fab_unlisten can close the socket */
    int fd;               /* -1 after fab_unlisten */
    bool encrypted;
    uint32_t closed; /* no more ACCEPT of it */
    fkv_list link;
    uint32_t live; /* connections that have said their hello; more by the responder only, fewer by any driver */
};

struct tcp_domain {
    fab_domain head;
    fab_options options;
    uint32_t window;          /* that this end gives */
    size_t ring_bytes;        /* a power of two */
    pthread_rwlock_t mr_lock; /* read: while bytes are copied out of regions; write: while the table changes */
    tcp_mr **mrs;             /* open addressing by rkey */
    size_t mr_room, mr_count;
    fkv_list groups; /* of regions that followed READs lead to; follow.c */
    pthread_mutex_t tls_lock;
    SSL_CTX *tls_server, *tls_client; /* NULL: not needed so far */
};

/* Regions that have names in one group; there while one has. Guarded by mr_lock. */
typedef struct tcp_group {
    fkv_list link;
    uint64_t id;
    uint32_t members, room;
    tcp_mr **named; /* by number; NULL: none */
} tcp_group;

struct tcp_mr {
    fab_mr head;
    const uint8_t *base; /* the head's copy is not there yet when a peer may already ask */
    uint64_t bytes, addr, rkey;
    uint32_t tenant;
    uint32_t number;  /* in its group */
    tcp_group *group; /* NULL: none */
};

/* mr.c */
int tcp_mr_init(tcp_domain *d);
void tcp_mr_end(tcp_domain *d);
int tcp_reg(fab_domain *d, const fkv_region *r, uint32_t tenant, fab_mr **out);
int tcp_reg_local(fab_domain *d, void *base, size_t bytes, fab_mr **out);
void tcp_dereg(fab_mr *m);
/* With mr_lock held for reading: the region, and where in it the bytes are; NULL when this peer may not have them. */
const tcp_mr *tcp_mr_find(const tcp_domain *d, uint64_t rkey, uint64_t addr, uint64_t bytes, uint32_t tenant,
                          const uint8_t **at);

/* follow.c */
int tcp_name(fab_mr *m, uint64_t group, uint32_t number);
void tcp_unname(tcp_mr *m); /* with mr_lock held for writing */
bool tcp_follows(const fab_conn *c);
/* With mr_lock held for reading: what `first`, a private copy of what was READ out of `m`, leads to; NULL: nothing that
 * this peer may have or wants. */
const uint8_t *tcp_follow(const tcp_conn *c, const tcp_mr *m, const tcp_request *q, const void *first, uint32_t *bytes);

/* serve.c: answers to READs, composed at `out`; gives the bytes written. The driver, holding the right to write. */
size_t tcp_serve(tcp_conn *c, uint8_t *out, size_t room);

/* message.c */
tcp_message *tcp_message_get(tcp_conn *c, uint32_t bytes); /* driver */
void tcp_message_put(tcp_conn *c, tcp_message *m);         /* the CQ's thread */
/* when no thread but the caller's knows the connection */
void tcp_message_free_all(tcp_conn *c);

/* rx.c: driver. False: the connection is over, and may have been freed. */
bool tcp_rx(tcp_conn *c);
bool tcp_rx_shake(tcp_conn *c); /* while the handshake is not done */

/* tx.c */
void tcp_tx(tcp_conn *c, bool writable); /* driver; writable: epoll said so */
void tcp_flush_conn(tcp_conn *c);        /* the CQ's thread */
/* the CQ's thread: false when the responder has it, and will write again */
bool tcp_tx_take(tcp_conn *c);
void tcp_tx_take_wait(tcp_conn *c);                  /* driver */
bool tcp_tx_give(tcp_conn *c);                       /* true: the caller still has it and is to write again */
int tcp_send_hello(tcp_conn *c, const tcp_hello *h); /* with the right held: 0 or -ENOTCONN */
void tcp_send_bye(tcp_conn *c);                      /* driver */
/* Free bytes of the SEND ring. The CQ's thread, or who holds the right. */
size_t tcp_ring_room(const tcp_conn *c);
void tcp_tell_send_ready(tcp_conn *c, bool look_at_ring, bool driver);

/* conn.c */
tcp_conn *tcp_conn_new(tcp_io *io, int fd, tcp_listener *l, void *user);
void tcp_conn_free(tcp_conn *c);
void tcp_conn_down(tcp_conn *c, fab_wc_status status, bool blames); /* driver: close at once */
void tcp_conn_linger(tcp_conn *c, fab_wc_status status);            /* driver: close when the peer has */
void tcp_conn_timer(tcp_conn *c);                                   /* driver: tcp_conn_timeout handshake_ms from now */
void tcp_conn_untimed(tcp_conn *c);
void tcp_conn_timeout(tcp_conn *c);
void tcp_conn_close(tcp_conn *c);                     /* driver: the user disconnected */
void tcp_conn_command(tcp_conn *c, uint32_t command); /* the CQ's thread */
void tcp_conn_runnable(tcp_conn *c);
static inline tcp_state tcp_conn_state(const tcp_conn *c) { return __atomic_load_n(&c->state, __ATOMIC_ACQUIRE); }
static inline tcp_domain *tcp_domain_of(const tcp_conn *c) { return c->io->domain; }
tcp_hello tcp_conn_hello(const tcp_conn *c, tcp_hello_kind kind, tcp_reason reason, const void *priv,
                         uint32_t priv_bytes);
void tcp_disconnect(fab_conn *c);
int tcp_accept(fab_conn *c, uint32_t tenant, const void *priv, uint32_t priv_bytes);
int tcp_reject(fab_conn *c, const void *priv, uint32_t priv_bytes);

/* move.c: an accepted connection changes its driver */
void tcp_attend(fab_conn *c);
void tcp_move_out(tcp_conn *c); /* responder */
void tcp_move_in(tcp_conn *c);  /* the CQ's thread: TCP_EV_MOVED came */

/* io.c: the part of a driver that both kinds share */
int tcp_io_init(tcp_io *io, tcp_domain *d, tcp_cq *cq, bool threaded);
void tcp_io_end(tcp_io *io);  /* frees the connections that are left */
void tcp_io_bury(tcp_io *io); /* says GONE of the dead, or frees them */
void tcp_io_event(tcp_io *io, tcp_conn *c, uint32_t epoll_events);
void tcp_io_run(tcp_io *io);                  /* gives each runnable connection a turn */
void tcp_io_shake(tcp_io *io);                /* gives one handshake a turn */
uint64_t tcp_io_next_timer(const tcp_io *io); /* 0: none */
void tcp_io_timers(tcp_io *io, uint64_t now);
void tcp_io_emit(tcp_io *io, tcp_event *e);
void tcp_io_hand_over(tcp_io *io);

/* cq.c */
int tcp_cq_create(fab_domain *d, fab_cq **out);
void tcp_cq_destroy(fab_cq *cq);
int tcp_poll(fab_cq *cq, fab_wc *wc, int max);
void tcp_flush(fab_cq *cq);
int tcp_arm(fab_cq *cq);
int tcp_fd(fab_cq *cq);
uint64_t tcp_reads_served(const fab_cq *cq);
const poller *tcp_poller_of(const fab_cq *cq);
void tcp_cq_wake(tcp_cq *cq); /* any thread */
void tcp_cq_append(tcp_event *e);
void tcp_cq_mark_dirty(tcp_conn *c);
void tcp_cq_refuse_unseen(tcp_cq *cq, const tcp_listener *l);

/* deliver.c: events become completions; gives how many. */
int tcp_deliver(tcp_cq *cq, fab_wc *wc, int max);
/* Events that nobody will poll: their memory goes back to the connections. */
void tcp_deliver_nothing(tcp_cq *cq);

/* read.c: READs of ours, and their end in time */
int tcp_post_reads(fab_conn *c, const fab_read *r, int n);
void tcp_read_done(tcp_conn *c, const tcp_slot *s); /* the oldest READ was given to the user */
void tcp_read_deadlines(tcp_cq *cq, uint64_t now);
uint64_t tcp_read_next_deadline(const tcp_cq *cq);

/* send.c: SENDs, credits, attach */
int tcp_send(fab_conn *c, const struct iovec *iov, int n, uint32_t bytes);
void tcp_release(fab_conn *c, const void *message);
bool tcp_credit_due(const tcp_conn *c, uint64_t released); /* worth a frame? */
int tcp_attach_region(fab_conn *c, uint64_t rkey, uint64_t remote_addr, uint64_t bytes, uint64_t wr_id);
void tcp_detach_region(fab_conn *c, uint64_t rkey);

/* connect.c: the client's way to a connection */
int tcp_connect(fab_cq *cq, const char *address, const fab_identity *who, const void *priv, uint32_t priv_bytes,
                void *user, fab_conn **out);
void tcp_connected(tcp_conn *c); /* driver: connect() has ended */
/* Driver: the connection can carry frames, so the client says its hello. */
void tcp_greet(tcp_conn *c);

/* listen.c */
int tcp_listen(fab_cq *cq, const char *address, fab_listener **out);
void tcp_unlisten(fab_listener *l);
void tcp_listener_accept(tcp_listener *l); /* responder */

/* responder.c */
int tcp_responder_start(tcp_cq *cq);
int tcp_responder_add(tcp_responder *r, tcp_listener *l);
void tcp_responder_command(tcp_responder *r, tcp_conn *c);
void tcp_responder_stop(tcp_responder *r);
void tcp_responder_free(tcp_responder *r);
tcp_io *tcp_responder_io(tcp_responder *r);
void tcp_listener_rest(tcp_listener *l, int error); /* responder: no descriptors are left */

/* address.c */
/* Whether the address is one that is talked to encrypted; *text is then moved behind what says so. */
bool tcp_address_encrypted(const char **text);
int tcp_address_parse(const char *text, struct sockaddr_storage *out, socklen_t *bytes);
void tcp_address_format(const struct sockaddr_storage *a, char *out, size_t room);
void tcp_socket_options(int fd, const fab_options *o, bool accepted);
#endif
