/* session.h: the client's side of everything that travels by SEND: connections to owners, requests and their replies,
 * leases.
 *
 * For: one client's connections. An *owner* is one data-plane thread of one server; a *peer* is what others see of an
 * owner. Not for: keys and tables (native/client/lookup), JavaScript (native/node).
 *
 *                     a route names it                      CONNECT ok, welcome ok
 *         IDLE ---------------------> CONNECTING ---------------------------------> UP
 *          ^                            |     ^                                      |
 *          | no route names it          |     | time is over                         | DISCONNECT, bad reply
 *          |                            v     |                                      v
 *          +----------------------- WAITING (back-off, jittered) <-------------------+
 *
 * CONNECTING tries the owner's addresses in order and falls back to the next one when one fails; after the last it
 * waits. A connection that broke is made again by itself as long as a route names the owner.
 *
 * Requests. Each accepted request ends exactly once, by a call of its `done`: with a reply's status, or with
 *   TIMEOUT          its time was over and it had no effect: a read, or a change that was never sent
 *   STALE_SEQUENCE   ("indeterminate") a change was sent, and whether it took effect is not known
 *   SHARD_CLOSED     it had no effect: there is no owner, no connection to it, or the owner refuses; at the end of its
 *                    time, or as soon as that has lasted for session_config.unavailable_ms (absent.c)
 *   DISCONNECTED     the session's own requests (LEASE, LAYOUT) end with their connection
 *   ABORTED, CLOSED  the caller gave up
 * Until its time is over a request survives what a retry can cure: a broken connection, an owner that has changed,
 * BUSY. A change keeps its sequence over retries, and says FKV_REQUEST_RETRY, so that it never has a second effect. A
 * change that an owner refused the first time it was sent had no effect; it goes out again under a new sequence.
 *
 * Threads: one. Nothing here blocks. Callbacks come from inside session_poll, session_tick and, where it is said, other
 * calls. A callback may start and cancel requests; it must not call session_poll, session_tick or session_close.
 */
#ifndef FARKV_SESSION_H
#define FARKV_SESSION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../../base/clock.h"
#include "../../base/list.h"
#include "../../base/status.h"
#include "../../fabric/fabric.h"
#include "../../wire/wire.h"

typedef struct session session;

/* A session has a domain for each provider, and of verbs one for each RDMA device of the host, at most so many: of more
 * devices those that it connects over first. */
enum { SESSION_DEVICES = FAB_DEVICES, SESSION_PLACES = FAB_PLACES };

/* What others may see of an owner. Valid until `gone` is called for it. */
typedef struct session_peer {
    uint32_t owner; /* the number that session_set_owners gave it */
    uint32_t link;  /* rises with each connection */
    fab_conn *conn; /* NULL while not UP */
    fab_domain *domain;
    uint32_t place;          /* of the domain among the session's, below SESSION_PLACES */
    uint32_t rail;           /* the same of the owner's end: for which of its domains its rkeys are */
    fab_provider provider;   /* of the connection there is or was last */
    bool used;               /* set by a reader that relied on a lease: the lease is then renewed before it ends */
    uint64_t wall_offset_ms; /* the owner's wall clock is at most now / 1e6 + this: see session_wall_ms */
    /* What is READ over the connection at a time: lookup/get_window.c, nobody else. */
    struct session_window {
        uint64_t bytes, most;
        uint64_t cut_ns;
        fkv_list waiting;
    } window;
} session_peer;

typedef enum {
    SESSION_CONNECTED = 1,
    SESSION_DISCONNECTED,
    SESSION_REFUSED,
    SESSION_NOT_OWNER,
    SESSION_SILENT /* what was sent to it has had no answer for a while; told once, until one comes */
} session_event_type;
typedef struct session_event {
    session_event_type type;
    uint32_t owner, shard; /* shard: NOT_OWNER only */
    fab_provider provider;
    fkv_status reason;
    fkv_end ended; /* CONNECTED: why the owner itself ended the connection before */
} session_event;

/* What is told to the layer above. All are set; `ctx` is passed to each. */
typedef struct session_hooks {
    void *ctx;
    void (*event)(void *ctx, const session_event *e);
    void (*up)(void *ctx, session_peer *p);
    /* The connection was freed: no READ of it is under way and its attached memory is gone. */
    void (*down)(void *ctx, session_peer *p);
    /* the peer is freed; no shard is routed to it any more */
    void (*gone)(void *ctx, session_peer *p);
    void (*read)(void *ctx, session_peer *p, const fab_wc *wc);   /* FAB_WC_READ */
    void (*attach)(void *ctx, session_peer *p, const fab_wc *wc); /* FAB_WC_ATTACH */
    /* A message of a LEASE reply: these shards are covered until `until_ns`; ask again at `renew_ns`. */
    void (*lease)(void *ctx, session_peer *p, const fkv_lease_shard *shards, uint32_t n, uint64_t until_ns,
                  uint64_t renew_ns);
    /* A LEASE request has ended, after its last `lease`; not OK: it failed. Not called when the connection is lost:
     * `down` is. */
    void (*lease_end)(void *ctx, session_peer *p, fkv_status s);
    /* A reply named the shard's layout epoch and number of buckets. */
    void (*shard_news)(void *ctx, session_peer *p, uint32_t shard, uint32_t layout_epoch, uint32_t buckets);
    /* What is to be reported to an owner, and counts as reported then; false: nothing. */
    bool (*report)(void *ctx, fkv_report *out);
    void (*absent)(void *ctx, uint32_t shard); /* session_absent has become true */
    /* the completions of one fab_poll have been handed out */
    void (*polled)(void *ctx);
} session_hooks;

typedef struct session_config {
    uint32_t shards;
    /* at once, beyond those that leases and layouts need; at most SESSION_REQUESTS_MAX */
    uint32_t max_requests;
    uint64_t rendezvous_bytes; /* registered memory for large values, at most; 0: 256 MiB */
    uint32_t op_timeout_ms;    /* fab_options.op_timeout_ms; 0: its default */
    /* how long operations wait for a shard that nobody answers for; 0: for their whole time */
    uint32_t unavailable_ms;
    fkv_pass pass;
    /* fab_options.log of its transports: from any thread; or NULL */
    void (*log)(void *ctx, int level, const char *text);
    void *log_ctx;
    bool traced;          /* its steps are kept: steps.h */
    uint64_t jitter_seed; /* 0: random */
} session_config;
enum { SESSION_REQUESTS_MAX = 1 << 18 };

fkv_status session_create(const session_config *c, const session_hooks *h, session **out);
/* Ends what is outstanding with CLOSED, sends an owner the last report, and disconnects (`down` is called). Memory that
 * was registered with a domain of the session is to be deregistered between this and session_close. */
void session_shutdown(session *s);
void session_close(session *s);

/* For the next connections, and shown over those that there are; one that was refused for its ticket is tried again at
 * once. A pass of another client ends
 * connections, and changes that were sent with STALE_SEQUENCE: their retries would not be known. */
void session_set_pass(session *s, const fkv_pass *p);

typedef struct session_address {
    fab_provider provider;
    const char *text;
    uint32_t device; /* of the owner's, by its own numbers */
} session_address;
typedef struct session_owner_config {
    uint32_t owner;
    /* of the server; a connection to another incarnation is closed when this changes */
    uint64_t incarnation;
    const session_address *addresses; /* in order of preference */
    uint32_t count;
} session_owner_config;
/* Replaces the list of owners. One that is named as before keeps its connection. Calls `down`, `gone`, `event`. */
fkv_status session_set_owners(session *s, const session_owner_config *owners, uint32_t n);
/* The next owner of a shard knows what was sent to the one before it, as copies do: then an owner that a shard was
 * taken from is not waited for, and what it has not answered goes to the next one. False at first. */
void session_set_replicated(session *s, bool replicated);
/* Who owns a shard; owner -1: nobody. Requests that wait go to the new owner. May call `up`, `event`. */
void session_route(session *s, uint32_t shard, int64_t owner);
/* The shard's owner, connected or not; NULL: nobody. */
session_peer *session_peer_of(session *s, uint32_t shard);
/* Nobody has answered for the shard for unavailable_ms, and its owner, if it has one, cannot be reached: see absent.c.
 * */
bool session_absent(session *s, uint32_t shard);

/* ---- requests ---- */
typedef struct session_answer {
    uint64_t id;
    fkv_status status;
    bool replied; /* `reply` is the owner's last message; else it is zero */
    fkv_reply reply;
    uint8_t *body; /* what came with the reply, whole; valid until `done` returns, unless taken */
    uint32_t body_bytes;
    bool body_owned; /* body is of malloc and may be taken as it is */
} session_answer;
typedef void session_done(void *user, session_answer *a);

typedef struct session_ask {
    fkv_op op;
    uint8_t flags, codec;
    uint16_t space;
    uint32_t shard;
    const uint8_t *key; /* copied before the call returns, as the value is */
    uint32_t key_bytes;
    const uint8_t *value;
    uint32_t value_bytes; /* SCAN: wanted entries */
    uint32_t user_flags;
    uint64_t expected; /* as fkv_request */
    uint64_t ttl_ms;
    uint64_t deadline_ns;
    session_done *done;
    void *user;
} session_ask;

/* BUSY: no room for a request or for its value now. SHARD_CLOSED: session_absent. KEY_INVALID, VALUE_TOO_LARGE,
 * NO_MEMORY. `done` is not called from inside. */
fkv_status session_request(session *s, const session_ask *a, uint64_t *id);
/* Ends a request with `why` (ABORTED, or TIMEOUT at its time), a change that was sent with STALE_SEQUENCE; calls `done`
 * from inside. Unknown ids are ignored. */
void session_cancel(session *s, uint64_t id, fkv_status why);
/* The body as memory that the caller frees; NULL when there is none or no memory. */
uint8_t *session_take_body(session_answer *a);

/* ---- leases ---- */
/* Asks the owner for a lease, unless that is under way; false: not connected. */
bool session_renew(session *s, session_peer *p);

/* ---- the loop ---- */
/* The caller's thread was busy with something else for so long, and gave nothing to the network and took nothing from
 * it: that time does not count for what is under way (each deadline is put off once). */
void session_held(session *s, uint64_t ns);
/* All of that time. */
uint64_t session_held_ns(const session *s);
/* The deadline of what began when `*held` was session_held_ns has come: it is so much later, 0: now. Sets `*held`, so
 * that it is put off once. */
static inline uint64_t session_put_off(const session *s, uint64_t *held) {
    uint64_t before = *held, now = session_held_ns(s);
    *held = UINT64_MAX;
    return before < now ? now - before : 0;
}
/* Hands out completions, as long as there are some and at most for a few rounds. Returns how many there were. */
int session_poll(session *s);
void session_flush(session *s);
/* Fires what is due. Returns when it is to be called again, UINT64_MAX: not before something else happens. */
uint64_t session_tick(session *s);
uint64_t session_next_tick(const session *s);
/* Completion queues to wait on: their number rises only in session_set_owners. */
int session_queues(session *s, fab_cq **out, int max);

typedef struct session_stats {
    uint64_t changes, requests, resent, lease_renewals, connects, disconnects;
} session_stats;
void session_get_stats(const session *s, session_stats *out);
/* Calls f for each owner. */
void session_each_peer(const session *s, void (*f)(void *ctx, const session_peer *p), void *ctx);

static inline uint64_t session_now(const session *s) {
    (void)s;
    return fkv_now_ns();
}
/* The wheel that session_tick turns, for deadlines of the layer above. */
struct timers *session_timers(session *s);
/* The latest that the owner's wall clock can be at `now_ns`: an entry whose expiry it has reached is expired. */
static inline uint64_t session_wall_ms(const session_peer *p, uint64_t now_ns) {
    return now_ns / 1000000u + p->wall_offset_ms;
}

/* The one table from the fabric's outcomes to status codes. */
fkv_status fkv_status_of_wc(fab_wc_status s);
fkv_status fkv_status_of_errno(int negative_errno);

#endif
