/* private.h: what the files of the sim provider share.
 *
 * Everything is done with world->lock held. Objects of both ends are linked: a connection knows its peer. A connection,
 * and a READ, is referred to by events that are still to come, so both are counted; `gone` and `ended` make such an
 * event do nothing.
 */
#ifndef FARKV_FABRIC_SIM_PRIVATE_H
#define FARKV_FABRIC_SIM_PRIVATE_H
#include <pthread.h>
#include "../../base/list.h"
#include "../../fabric/provider.h"
#include "sim.h"

enum {
    SIM_LINE = 64,         /* bytes of a cache line: what memory gives at once */
    SIM_DEPTH = 256,       /* READs outstanding on a connection */
    SIM_CREDITS = 64,      /* messages that the peer has not released */
    SIM_RETRY_NS = 1000000 /* what meets a cut is sent again after this */
};

extern const fab_ops fab_sim_ops;

typedef struct sim_domain sim_domain;
typedef struct sim_cq sim_cq;
typedef struct sim_conn sim_conn;
typedef struct sim_listener sim_listener;

/* ---- the world ---- */
typedef struct sim_event {
    uint64_t at, order;                /* ties: as they were made */
    void (*run)(void *arg, bool live); /* live false: the world ends, only free */
    void *arg;
} sim_event;

typedef struct sim_mr {
    fab_mr head;
    fkv_list link;
    sim_domain *domain;
    uint8_t *base;
    uint64_t bytes, rkey, addr;
    uint32_t tenant;
} sim_mr;
typedef struct sim_key {
    uint64_t rkey, addr;
} sim_key;

struct sim_world {
    pthread_mutex_t lock;
    uint64_t now, random, order;
    sim_event *heap; /* binary heap, the earliest first */
    size_t events, room;
    bool auto_step, drives_clock, reuse_keys;
    sim_faults faults;
    sim_counts counts;
    uint64_t trace;
    void (*trace_line)(void *ctx, const char *text);
    void *trace_ctx;
    uint32_t conns; /* names of connections in the trace */
    uint64_t next_addr;
    sim_key *old_keys;
    size_t old_count, old_room;
    fkv_list listeners;
    fkv_list mrs;
    fkv_list all;
    struct {
        const sim_domain *a, *b;
    } cut[SIM_PAIRS]; /* NULL: this place is free */
};

struct sim_domain {
    fab_domain head;
    fab_options options;
    sim_world *world;
    bool cut, lost;
};

/* ---- completions ---- */
typedef struct sim_done {
    fkv_list link;
    fab_wc wc;
    sim_conn *conn;
} sim_done;

struct sim_cq {
    fab_cq head;
    sim_world *world;
    fkv_list done;
    fkv_list flushable;
    int eventfd;
    bool paused, armed;
    uint64_t polls;
};

struct sim_listener {
    fab_listener head;
    fkv_list link;
    uint32_t live; /* connections, asked ones too */
    uint32_t references;
};

/* ---- connections ---- */
typedef struct sim_message {
    fkv_list link;
    sim_conn *to; /* referred to, while it is on its way */
    uint64_t number;
    uint32_t bytes;
    _Alignas(16) uint8_t data[];
} sim_message;

typedef struct sim_read {
    fkv_list link;
    sim_conn *conn; /* referred to */
    fab_read request;
    uint64_t number;
    uint32_t references, lines_left;
    fab_wc_status status;
    bool arrived, ended, may_overtake;
} sim_read;

typedef enum sim_state { SIM_CONNECTING = 1, SIM_ASKED, SIM_UP, SIM_ERROR } sim_state;

struct sim_conn {
    fab_conn head;
    sim_world *world;
    sim_domain *domain;
    sim_conn *peer;         /* referred to; NULL when it was freed or there is none yet */
    sim_listener *listener; /* of an accepted one; referred to */
    uint32_t name, references, tenant;
    sim_state state;
    bool gone, is_flushable, counted, wants_credit, own_faults;
    fkv_list flush_link, all_link;
    uint64_t cut_since; /* 0: it is not cut */
    sim_faults faults;
    uint64_t next_arrival, next_access, next_answer; /* what leaves later arrives later */
    uint64_t departed, arrived;                      /* messages that left here, and that came here */
    uint64_t reads_posted, disconnect_poll;
    uint32_t reads_outstanding, credits;
    fkv_list staged_reads, reads; /* posted and not flushed; on their way, oldest first */
    fkv_list staged, unreleased;
    char address[FAB_ADDRESS_MAX];
    uint8_t priv[FAB_PRIVATE_MAX];
    uint32_t priv_bytes;
};

/* world.c */
extern sim_world *sim_world_now; /* NULL: there is none */
void sim_lock(sim_world *w);
void sim_unlock(sim_world *w);
void sim_at(sim_world *w, uint64_t at, void (*run)(void *arg, bool live), void *arg);
bool sim_advance(sim_world *w); /* sim_step with the lock held */
uint64_t sim_random(sim_world *w);
bool sim_chance(sim_world *w, uint32_t ppm);
uint64_t sim_between(sim_world *w, uint64_t least, uint64_t most);
void sim_say(sim_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* cq.c */
int sim_cq_create(fab_domain *d, fab_cq **out);
void sim_cq_destroy(fab_cq *cq);
int sim_poll(fab_cq *cq, fab_wc *wc, int max);
void sim_flush(fab_cq *cq);
int sim_arm(fab_cq *cq);
int sim_fd(fab_cq *cq);
void sim_complete(sim_conn *c, fab_wc wc); /* fills in the connection */
void sim_forget_completions(sim_conn *c);

/* mr.c */
int sim_reg(fab_domain *d, const fkv_region *r, uint32_t tenant, fab_mr **out);
int sim_reg_local(fab_domain *d, void *base, size_t bytes, fab_mr **out);
void sim_dereg(fab_mr *m);
const uint8_t *sim_find(sim_domain *d, uint64_t rkey, uint64_t addr, uint64_t bytes, uint32_t tenant);

/* connect.c */
int sim_listen(fab_cq *cq, const char *address, fab_listener **out);
void sim_unlisten(fab_listener *l);
int sim_connect(fab_cq *cq, const char *address, const fab_identity *who, const void *priv, uint32_t priv_bytes,
                void *user, fab_conn **out);
int sim_accept(fab_conn *c, uint32_t tenant, const void *priv, uint32_t priv_bytes);
int sim_reject(fab_conn *c, const void *priv, uint32_t priv_bytes);
void sim_listener_let_go(sim_listener *l);

/* conn.c */
sim_conn *sim_conn_new(sim_cq *cq, void *user);
sim_conn *sim_hold(sim_conn *c);
void sim_let_go(sim_conn *c);
const sim_faults *sim_faults_of(const sim_conn *c);
uint64_t sim_delay(sim_conn *c);
/* When something that leaves `c` now arrives, in order with what left before it. */
uint64_t sim_arrival(sim_conn *c);
bool sim_is_cut(const sim_conn *c); /* from its peer */
/* The connection is in error at this end: the oldest READ has `first`, DISCONNECT `reason`. */
void sim_fail(sim_conn *c, fab_wc_status first, fab_wc_status reason);
/* The same, and the peer learns of it. */
void sim_fail_both(sim_conn *c, fab_wc_status first, fab_wc_status reason);
void sim_disconnect(fab_conn *c);
void sim_mark_flushable(sim_conn *c);

/* send.c */
int sim_send(fab_conn *c, const struct iovec *iov, int n, uint32_t bytes);
void sim_release(fab_conn *c, const void *message);
void sim_flush_messages(sim_conn *c);

/* read.c */
int sim_post_reads(fab_conn *c, const fab_read *r, int n);
void sim_flush_reads(sim_conn *c);
void sim_flush_failed(sim_conn *c, fab_wc_status first);
#endif
