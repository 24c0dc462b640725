/* fuzz_guest.h: for targets whose client (guest.h) reads from a puppet (puppet.h). */
#ifndef FARKV_TEST_FUZZ_GUEST_H
#define FARKV_TEST_FUZZ_GUEST_H
#include "../client/guest.h"
#include "fuzz.h"

/* A client that has the owner's address and the route of shard 0. It remembers `cached_locations` and calls `done` for
 * each GET. */
void fuzz_guest_open(guest *c, puppet *p, uint32_t cached_locations, void (*done)(void *ctx, lookup_get *g));
/* One turn of the client's loop. */
void fuzz_guest_turn(guest *c);
/* Carries the READ that was posted first over, in part or whole. */
void fuzz_guest_read(guest *c, fuzz_in *in);

#endif
