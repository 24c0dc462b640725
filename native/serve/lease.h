/* lease.h: what makes a one-sided READ the truth, and until when; see lease.c. Private to native/serve. */
#ifndef FARKV_SERVE_LEASE_H
#define FARKV_SERVE_LEASE_H
#include "../dataplane/worker.h"
#include "../wire/wire.h"

/* Each shard has two: leases of shards that expect copies are short, and have the first. */
static inline uint32_t lease_places(fkv_shard_range range) { return 2 * range.count; }

/* Grants a lease for the served shards of `range` from place `at` on, at most `room` of them. Returns how many;
 * *next is the place from which to go on; *granted_ns is 0 when the owner's own lease is over. */
uint32_t lease_grant(worker *w, fkv_shard_range range, uint32_t at, fkv_lease_shard *out, uint32_t room, uint32_t *next,
                     uint64_t *granted_ns);

#endif
