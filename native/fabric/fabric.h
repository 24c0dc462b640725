/* fabric.h: the one contract of three providers: shm, verbs, tcp; and of one that a program brings itself, as tests do.
 *
 * For: connections, registered memory, one-sided READs, two-sided SENDs, completions, wake-up by descriptor.
 * Not for: keys, shards, leases. Nothing above this file knows which provider it runs on, but for fab_direct().
 *
 * The loop of a thread that owns a completion queue (CQ):
 *
 *     for (;;) {
 *         n = fab_poll(cq, wc, N);            // completions, received messages, connection events
 *         ... handle each; post READs and SENDs; release received messages ...
 *         fab_flush(cq);                      // one doorbell / one write per connection touched
 *         if (n == 0 && spun long enough) {
 *             if (fab_arm(cq) == 0) poll(fab_fd(cq));   // fab_arm returns 1 when something arrived meanwhile
 *         }
 *     }
 *
 * Threads. A CQ, its listeners and its connections are used by one thread at a time. fab_reg, fab_dereg, fab_open and
 * fab_close may be called from any thread.
 * Memory. A registered region and the local buffer of a READ must outlive every operation that may touch them:
 * fab_dereg() returns only when no READ by any peer can touch the region any more (shm excepted: a client's mapping
 * outlives deregistration, which is why leases are checked after every READ; and soft-iWARP, which finishes READs that
 * are under way, with what the memory has by then). So a reader is kept from what comes into memory next by quarantine
 * and leases, never by deregistration alone. A local buffer is free again when its FAB_WC_READ, with whatever status,
 * was polled.
 * Errors. A failed operation completes with a status other than FAB_SUCCESS. After such a completion the connection is
 * in error, as a queue pair is: everything outstanding completes with FAB_WR_FLUSH_ERR, then FAB_WC_DISCONNECT comes
 * once, then the user calls fab_disconnect() to free it. No operation is ever left without a completion: each provider
 * bounds every READ in time (fab_options.op_timeout_ms, then FAB_RESP_TIMEOUT_ERR or FAB_RETRY_EXC_ERR). Functions that
 * return int return 0 (or a count) or a negative errno: -EAGAIN no credits or queue full, -ENOTCONN, -EMSGSIZE,
 * -EINVAL, -EADDRINUSE, -EACCES, -ENOMEM, ...
 */
#ifndef FARKV_FABRIC_H
#define FARKV_FABRIC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "../base/poller.h"
#include "../base/region.h"

/* The one list of providers, the better one first: where several lead to a peer, the first of them is taken. */
#define FAB_PROVIDER_LIST(X) X(SHM, shm) X(VERBS, verbs) X(TCP, tcp)
typedef enum fab_provider {
    FAB_NONE,
#define X(NAME, name) FAB_##NAME,
    FAB_PROVIDER_LIST(X)
#undef X
        FAB_BROUGHT,   /* not of this library: fab_bring in provider.h */
    FAB_PROVIDER_COUNT /* arrays by provider have so many places, of which the first stays empty */
} fab_provider;

/* Of verbs a process may use several RDMA devices, which it numbers in an order of its own; others have device 0 alone.
 * A *place* is a provider and a device: arrays with a domain, a queue or a registration for each are indexed by it. */
enum { FAB_DEVICES = 4, FAB_PLACES = FAB_PROVIDER_COUNT * FAB_DEVICES };
static inline uint32_t fab_place(fab_provider p, uint32_t device) { return device * FAB_PROVIDER_COUNT + (uint32_t)p; }
static inline fab_provider fab_place_provider(uint32_t place) { return (fab_provider)(place % FAB_PROVIDER_COUNT); }
static inline uint32_t fab_place_device(uint32_t place) { return place / FAB_PROVIDER_COUNT; }

const char *fab_provider_name(fab_provider p);     /* "shm", "verbs", "tcp" */
fab_provider fab_provider_named(const char *name); /* FAB_NONE: there is none */
/* What providers differ in, for those above, who never ask which provider they have. */
typedef enum fab_ability {
    FAB_CAN_SPIN = 1, /* a READ takes so little time that its caller may wait for it in a loop */
    /* a fab_flush after few messages costs no more than after many: it makes no system call and rings no doorbell */
    FAB_CAN_SEND_FREELY = 2
} fab_ability;
bool fab_can(fab_provider p, fab_ability a);
/* NULL when fab_open can be tried with it here; else why not: not in this build, or a library that is missing and what
 * brings it. */
const char *fab_provider_missing(fab_provider p);

/* Addresses of this host that lead to an RDMA device, in the order of its interfaces; returns how many. None where
 * there is no device or no library. */
typedef struct fab_rdma_address {
    char device[64], network_interface[16], address[64];
    bool iwarp;
} fab_rdma_address;
enum { FAB_RDMA_ADDRESSES_MAX = 64 };
int fab_rdma_addresses(fab_rdma_address *out, int max);

/* How many RDMA devices connections from here may be routed over; 0: none, or FARKV_RDMA_DEVICE names the one (a list of
 * several, as a server takes it, leaves the choice to the routes). */
uint32_t fab_rdma_routes(void);

/* The traffic class (RFC 2474; in its upper six bits the DSCP) of the connections that this process makes over RDMA from
 * now on; over RoCE what the other end sends has it, too. At first FARKV_RDMA_TRAFFIC_CLASS; 0: the kernel's. */
void fab_rdma_traffic_class(uint8_t octet);

/* The RDMA devices of this host, each opened for a moment; returns how many. None where there is no library. */
typedef struct fab_rdma_device {
    char name[64];
    int error;           /* an errno: it could not be opened, and the rest is 0 */
    uint64_t region_max; /* bytes of a memory region */
    uint32_t regions_max, queue_pairs_max;
} fab_rdma_device;
enum { FAB_RDMA_DEVICES_MAX = 64 };
int fab_rdma_devices(fab_rdma_device *out, int max);

/* Modelled on enum ibv_wc_status; closed. */
typedef enum fab_wc_status {
    FAB_SUCCESS = 0,
    FAB_LOC_LEN_ERR,       /* message longer than the receiver takes */
    FAB_LOC_PROT_ERR,      /* the local buffer is not registered */
    FAB_WR_FLUSH_ERR,      /* the connection was in error before this was tried */
    FAB_REM_INV_REQ_ERR,   /* the peer could not parse the request */
    FAB_REM_ACCESS_ERR,    /* wrong rkey, out of bounds, wrong tenant, deregistered */
    FAB_REM_OP_ERR,        /* the peer failed while serving */
    FAB_RETRY_EXC_ERR,     /* the peer does not answer */
    FAB_RNR_RETRY_EXC_ERR, /* the peer posts no receives */
    FAB_RESP_TIMEOUT_ERR,  /* no response within op_timeout_ms */
    FAB_FATAL_ERR,         /* device or port lost */
    FAB_GENERAL_ERR,
    FAB_AUTH_ERR,         /* the peer does not take the key that fab_connect_as showed */
    FAB_OTHER_DEVICE_ERR, /* verbs: the way leads over another device than the domain's */
    FAB_WC_STATUS_COUNT
} fab_wc_status;
const char *fab_wc_status_name(fab_wc_status s);

typedef enum fab_wc_opcode {
    FAB_WC_READ = 1,   /* a READ ended; wr_id is the caller's */
    FAB_WC_RECV,       /* a message came: data, bytes; give it back with fab_release() */
    FAB_WC_SEND_READY, /* after -EAGAIN from fab_send: credits are back, try again */
    FAB_WC_ATTACH,     /* a fab_attach ended; wr_id is the caller's */
    /* a peer asks: private data in data, bytes (valid until the next fab_poll); answer with fab_accept or fab_reject.
     * conn is new */
    FAB_WC_ACCEPT,
    FAB_WC_CONNECT,    /* fab_connect ended; status says how; on success data, bytes are the peer's reply */
    FAB_WC_DISCONNECT, /* the connection is gone; comes once, last */
    /* once, of a queue that listens; conn is NULL: its device is gone, so nobody comes by its listeners any more */
    FAB_WC_UNREACHABLE
} fab_wc_opcode;

typedef struct fab_domain fab_domain; /* a provider opened: protection domain, registered memory, helper threads */
typedef struct fab_cq fab_cq;
typedef struct fab_listener fab_listener;
typedef struct fab_conn fab_conn;
typedef struct fab_mr fab_mr;

typedef struct fab_wc {
    fab_wc_opcode opcode;
    fab_wc_status status;
    uint64_t wr_id;
    fab_conn *conn;
    const void *data;
    uint32_t bytes;
} fab_wc;

/* Followed READs. Where the peer's half of a READ is software (tcp), it can go on by itself to what the bytes that were
 * READ point at, so that two READs, of which the second depends on the first, are one round trip. What points where is
 * the user's to know: `fab_follow` looks at a private copy of the bytes and answers with a place in a region that
 * fab_name gave this number, in the group of the region that was READ. It runs on the provider's thread and must not
 * block. The second READ is checked as the first was: the region must be registered, of the connection's tenant,
 * and hold all of the bytes; what is not so is not followed. */
typedef struct fab_next {
    uint64_t offset; /* in the region */
    uint32_t number, bytes;
} fab_next;
/* false: leads nowhere */
typedef bool fab_follow(const void *bytes, uint32_t count, uint64_t argument, fab_next *out);
enum { FAB_FOLLOW_FIRST_MAX = 256, FAB_FOLLOW_MAX = 32 << 10 }; /* bytes of either READ */

/* A key that both ends of a connection have, and its name, which anybody may read: with it connections to an address
 * "tls:..." are encrypted, and each end knows that the other has the key. */
enum { FAB_KEY_BYTES = 16, FAB_NAME_MAX = 48 };
typedef struct fab_identity {
    uint32_t bytes; /* of the name */
    uint8_t name[FAB_NAME_MAX];
    uint8_t key[FAB_KEY_BYTES];
} fab_identity;
/* The key of that name; false: it is not good, or none at all. Called on the provider's thread; must not block. */
typedef bool fab_key_of(void *ctx, const void *name, uint32_t bytes, uint8_t key[FAB_KEY_BYTES]);

typedef struct fab_options {
    fab_provider provider;
    uint32_t op_timeout_ms; /* default 1000 */
    uint32_t max_message;   /* largest SEND in bytes; default 16 KiB; both ends take the smaller */
    uint32_t max_conns;     /* per listener; more are rejected; default 4096 */
    uint32_t handshake_ms;  /* a peer that says nothing is dropped; default 2000 */
    /* Listeners leave so many of the process's descriptors to memory files, those included that there are; default 0. */
    uint32_t spare_descriptors;
    polling polling;    /* of the provider's own threads */
    fab_follow *follow; /* of READs that peers want followed; NULL: they are not */
    fab_key_of *key_of; /* of peers that connect encrypted; NULL: this domain does not listen for them */
    void *key_ctx;
    /* verbs: connect from this RDMA device; NULL: FARKV_RDMA_DEVICE, or the one that routing leads to */
    const char *device;
    void (*log)(void *ctx, int level, const char *text); /* may be NULL; called from any thread */
    void *log_ctx;
} fab_options;

enum { FAB_PRIVATE_MAX = 48 }; /* rdma_cm carries 56 in a connection request; 8 are the verbs provider's own */

/* ---- domain and memory ---- */
int fab_open(const fab_options *o, fab_domain **out);
void fab_close(fab_domain *d); /* all connections, listeners, CQs and MRs are gone before */

/* Registers a region for REMOTE_READ by connections of `tenant` (a tenant, given at fab_accept; 0 is a domain like
 * any other). rkeys are 64 random bits (shm, tcp) or the device's; never logged. */
int fab_reg(fab_domain *d, const fkv_region *r, uint32_t tenant, fab_mr **out);
/* Registers ordinary memory as a destination of READs only; no peer can reach it. */
int fab_reg_local(fab_domain *d, void *base, size_t bytes, fab_mr **out);
/* Where followed READs find this region. Another one that had the name in this group has it no longer. Any thread; 0 or
 * -ENOMEM. */
int fab_name(fab_mr *m, uint64_t group, uint32_t number);
/* NOWHERE: READs of it are followed, but none leads to it */
enum { FAB_NAMES_MAX = 1 << 16, FAB_NOWHERE = FAB_NAMES_MAX };
uint64_t fab_mr_rkey(const fab_mr *m);
/* Whether the device that made the rkey is lost and let go: no peer reaches the region until it is registered again. */
bool fab_mr_gone(const fab_mr *m);
uint64_t fab_mr_addr(const fab_mr *m); /* the remote address of the region's first byte, as peers name it */
void fab_dereg(fab_mr *m);

/* ---- completion queues ---- */
int fab_cq_create(fab_domain *d, fab_cq **out);
void fab_cq_destroy(fab_cq *cq);
int fab_poll(fab_cq *cq, fab_wc *wc, int max); /* never blocks */
void fab_flush(fab_cq *cq);                    /* pushes out what was posted since the last flush */
/* 0: fab_fd will become readable at the next event; 1: poll again now */
int fab_arm(fab_cq *cq);
int fab_fd(fab_cq *cq); /* pollable; may be handed to epoll or uv_poll */
/* Peer READs served by this process for this queue. Always 0 for verbs (the NIC serves them) and shm (the peer loads
 * memory itself). Any thread. */
uint64_t fab_reads_served(const fab_cq *cq);
/* Of the provider's thread that serves READs for this queue; NULL: there is none. */
const poller *fab_poller_of(const fab_cq *cq);

/* ---- connections ----
 * Addresses are text: shm "unix:/path/to.sock"; tcp "192.0.2.1:7000" or "[2001:db8::1]:7000"; sim "sim:NAME";
 * verbs as tcp. Port 0 listens on a free port; fab_listener_address() says which. "tls:192.0.2.1:7000" (tcp only): all
 * that travels is encrypted, or nothing does: -EOPNOTSUPP where fab_encryption_missing. */
/* NULL: this provider can encrypt here; else why not. */
const char *fab_encryption_missing(fab_provider p);
int fab_listen(fab_cq *cq, const char *address, fab_listener **out);
const char *fab_listener_address(const fab_listener *l);
void fab_unlisten(fab_listener *l);
int fab_connect(fab_cq *cq, const char *address, const void *priv, uint32_t priv_bytes, void *user, fab_conn **out);
/* The same, by an end that has a key; `who` is copied. -EACCES: an address "tls:..." without a key. */
int fab_connect_as(fab_cq *cq, const char *address, const fab_identity *who, const void *priv, uint32_t priv_bytes,
                   void *user, fab_conn **out);
int fab_accept(fab_conn *c, uint32_t tenant, const void *priv, uint32_t priv_bytes);
/* Of an accepted connection: its socket is read in fab_poll from now on, and its peer's READs are answered there, where
 * another thread would (tcp). A message has one thread less to pass, and each fab_poll costs a system call. */
void fab_attend(fab_conn *c);
/* the peer's FAB_WC_CONNECT has REM_ACCESS_ERR and priv; frees c, as fab_disconnect does */
int fab_reject(fab_conn *c, const void *priv, uint32_t priv_bytes);
/* Ends and frees the connection. No completion of it is polled afterwards; messages not yet released are freed. */
void fab_disconnect(fab_conn *c);
void fab_set_user(fab_conn *c, void *user);
void *fab_user(const fab_conn *c);
uint32_t fab_max_message(const fab_conn *c);

/* ---- data ---- */
typedef struct fab_read {
    uint64_t wr_id;
    void *local;
    fab_mr *local_mr; /* from fab_reg_local; covers local */
    uint64_t remote_addr;
    uint64_t rkey;
    uint32_t bytes;
    /* Where fab_follows(): what the peer found by itself lands here if it has at most next_bytes; the completion's
     * `bytes` is what landed in both places. 0: not wanted. Then, and elsewhere, `bytes` of a completion means
     * nothing. */
    uint32_t next_bytes;
    void *next_local;
    fab_mr *next_mr;
    uint64_t next_argument; /* for the peer's fab_follow */
} fab_read;

/* Whether READs of this connection may be followed: the peer said that it can. */
bool fab_follows(const fab_conn *c);

/* Posts n READs behind one doorbell (rung by fab_flush). Returns how many were taken, from the front; 0 to n - 1 when
 * the queue is full (post the rest after a completion), or a negative errno: -ENOTCONN, or -ENOMEM where the first
 * one's local memory cannot be registered with the device; the connection is well then. */
int fab_post_reads(fab_conn *c, const fab_read *r, int n);

/* Copies the message and queues it; the caller's buffers are free on return. Messages of a connection arrive in order,
 * whole. -EAGAIN when the peer has given no credits: FAB_WC_SEND_READY follows. */
int fab_send(fab_conn *c, const struct iovec *iov, int n);
/* Gives a received message back, and with it a credit to the peer. Messages of a connection may be released in any
 * order. */
void fab_release(fab_conn *c, const void *message);

/* A region of the peer is made known before it is first READ (shm maps it; others need nothing and complete at once).
 * Completes with FAB_WC_ATTACH; FAB_REM_ACCESS_ERR when the rkey is not known there, which does not break the
 * connection. */
int fab_attach(fab_conn *c, uint64_t rkey, uint64_t remote_addr, uint64_t bytes, uint64_t wr_id);
void fab_detach(fab_conn *c, uint64_t rkey);
/* shm only: where the attached region's first byte is in this process, to be read with acquire loads and checked again
 * after reading; NULL on the other providers. Valid until fab_detach or fab_disconnect. */
const uint8_t *fab_direct(fab_conn *c, uint64_t rkey);

#endif
