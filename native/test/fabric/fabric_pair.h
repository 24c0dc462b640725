/* fabric_pair.h: two ends of one provider in one process, for tests: each has a domain, a CQ and a queue of what was
 * polled.
 *
 * pair_next() polls both ends until the one asked about has something; it spins a little, then arms both and sleeps on
 * their descriptors, so that every test also depends on wake-ups. A test that waits for longer than check_patience_ms()
 * has failed.
 */
#ifndef FARKV_TEST_FABRIC_PAIR_H
#define FARKV_TEST_FABRIC_PAIR_H
#include "../../fabric/fabric.h"

enum { PAIR_QUEUE = 4096 };

typedef struct fabric_under_test {
    fab_provider provider;
    const char *(*address)(void);      /* a fresh one to listen on; valid until the next call */
    void (*configure)(fab_options *o); /* may be NULL */
    const fab_identity *who;           /* with which clients connect; may be NULL */
    void (*idle)(void);                /* called when neither end had anything; may be NULL */
    bool sleeps;                       /* its descriptors can be waited on */
    bool forks;                        /* the peer may be another process */
    bool attends;                      /* the owner attends to its connections */
    /* fab_attach asks the peer, and a READ does not need it any more (shm) */
    bool attach_maps;
    /* a device serves READs: a stopped peer's memory is read all the same, and a READ that is in flight when its end
     * disconnects is ended at once, with what was sent behind it */
    bool device_reads;
    /* of the tests of wake-ups; 0: as many as a real machine does in a second */
    uint32_t messages;
    /* the device says only that a refused READ was flushed (siw: the peer's TERMINATE is not told) */
    bool silent_refusals;
} fabric_under_test;

typedef struct end {
    fab_domain *domain;
    fab_cq *cq;
    fab_wc queue[PAIR_QUEUE]; /* polled, not yet looked at */
    uint32_t head, tail;
} end;

typedef struct pair {
    const fabric_under_test *under;
    end owner, client;
    fab_listener *listener;
    fab_conn *owner_conn, *client_conn; /* once pair_open returned */
    char address[256];
} pair;

/* Makes both ends, listens. `o` may be NULL; provider and configure are applied to a copy, and limits in time that it
 * leaves open are as long as a test waits. */
void pair_listen(pair *p, const fabric_under_test *u, const fab_options *o);
void pair_listen_ends(pair *p, const fabric_under_test *u, const fab_options *owner, const fab_options *client);
/* The same, and a connection of tenant `tenant`. */
void pair_open(pair *p, const fabric_under_test *u, const fab_options *o, uint32_t tenant);
void pair_connect(pair *p, uint32_t tenant, fab_conn **client_conn, fab_conn **owner_conn);
void pair_close(pair *p);

/* What both ends are opened with; also for ends in other processes. */
fab_options patient_options(const fabric_under_test *u, const fab_options *o);
void end_open(end *e, const fabric_under_test *u, const fab_options *o);
void end_close(end *e);

/* The next completion of `e`, which is one of p's ends. */
fab_wc pair_next(pair *p, end *e);
/* The next one must be this; returns it. */
fab_wc pair_expect(pair *p, end *e, fab_wc_opcode opcode, fab_wc_status status);
/* One turn of both ends; true when something was polled. */
bool pair_turn(pair *p);
/* Many turns: for "and nothing else comes". */
void pair_settle(pair *p);
bool end_has(const end *e);

/* Bytes that depend on seed and place. */
void pattern_fill(void *to, uint64_t seed, size_t bytes);
bool pattern_ok(const void *from, uint64_t seed, size_t bytes);
#endif
