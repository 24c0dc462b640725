/* guest.h: one client of a puppet (puppet.h): its connections, its GETs and requests, and what became of them. For tests
 * that need one exact interleaving; guest_steps.h has the steps of one GET. */
#ifndef FARKV_TEST_GUEST_H
#define FARKV_TEST_GUEST_H
#include "../../client/lookup/lookup.h"
#include "puppet.h"

typedef struct outcome {
    bool done;
    fkv_status status;
    uint64_t version;
    uint32_t bytes;
    char value[4096]; /* as text */
    lookup_get *get;
    uint64_t request;
} outcome;

typedef struct guest {
    puppet *p;
    lookup *l;
    session *s;
    uint32_t connected, disconnected, refused, not_owner, silent;
    fkv_status reason;
    fkv_end ended; /* of the last connection that came */
} guest;

lookup_config guest_config(guest *c, puppet *p);
void guest_open(guest *c, puppet *p, const lookup_config *config); /* config NULL: guest_config */
void guest_connect(guest *c);                                      /* sets owner and route */
/* A connected client that has read once, so that it has layout, lease and segments. */
void guest_up(guest *c, puppet *p);
void guest_down(guest *c); /* frees the puppet too */
/* Turns of the loop until nothing happens any more. READs by hand and time are left to the test. */
void guest_settle(guest *c);
void guest_start(guest *c, const char *key, uint32_t ms, outcome *o);
/* Starts, settles; the GET must have ended. */
outcome guest_get(guest *c, const char *key);
void guest_expect(guest *c, const char *key, const char *value);
void guest_ask(guest *c, fkv_op op, const char *key, const char *value, uint32_t ms, outcome *o);
lookup_stats guest_stats(const guest *c);

#endif
