/* rendezvous.h: registered memory from which an owner READs values that are too large for a SEND.
 *
 * A value is copied into a sealed region of a power of two bytes; the region is registered with a domain when the
 * request is first sent over it. Regions are kept for the next value of their size and are bounded in all. Invariant: a
 * region is given back for reuse only when the owner that knew its rkey has answered the only copy of the request that
 * was sent. Otherwise it is destroyed: a late READ must never find another request's value.
 */
#ifndef FARKV_SESSION_RENDEZVOUS_H
#define FARKV_SESSION_RENDEZVOUS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../../base/status.h"
#include "../../fabric/fabric.h"
#include "session.h"

typedef struct rendezvous_pool rendezvous_pool;
typedef struct rendezvous {
    struct rendezvous *next;
    fkv_region region;
    fab_mr *registered[SESSION_PLACES]; /* NULL: not yet */
} rendezvous;

rendezvous_pool *rendezvous_pool_create(uint64_t max_bytes);
void rendezvous_pool_destroy(rendezvous_pool *p); /* everything was given back before */
/* BUSY: the bound is reached. NO_MEMORY: the system gave none. */
fkv_status rendezvous_take(rendezvous_pool *p, size_t bytes, rendezvous **out);
/* Registers with the peer's domain, unless that is done. 0 or a negative errno. */
int rendezvous_register(rendezvous *r, const session_peer *p, fab_mr **mr);
void rendezvous_give(rendezvous_pool *p, rendezvous *r, bool reuse);

#endif
