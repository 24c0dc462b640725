/* lookup.h: the client's side of a GET: where a shard's memory lies, and how an entry is found in it by one-sided
 * READs.
 *
 * For: GETs of one client, over every provider. A lookup has the client's session in it. Not for: changes and scans,
 * which go to the session directly; JavaScript.
 *
 * Two ways, with the same answers:
 *   lookup_direct   where the memory is mapped in this process (shm): the whole GET in one call, the value copied
 *                   straight to where the caller wants it; nothing allocated, no object, no system call
 *   lookup_get      any provider, many at once: a state machine over fabric.h (get.c draws it)
 *
 * Promise: OK and NOT_FOUND are linearizable: the answer was true at some time between the call and its end. What holds
 * it up is checked after the last READ has completed: a lease of the shard's present incarnation still runs; the GET
 * took no longer than fkv_get_life_ns(); tags, checksum or sequence lock, and states are right. What fails a check is
 * discarded and done again, at most LOOKUP_RETRIES times, then the owner is asked (a two-sided GET), until the
 * operation's time is over.
 *
 * Threads: one, as for session.h. `done` is called from inside session_poll, session_tick, session_flush, and
 * lookup_start, lookup_cancel, lookup_release, lookup_set_route. It must not call any of these but lookup_release.
 */
#ifndef FARKV_LOOKUP_H
#define FARKV_LOOKUP_H
#include "../session/session.h"
#include "../../table/layout.h"

enum { LOOKUP_RETRIES = 8, LOOKUP_GROUP = 16, LOOKUP_LOCATIONS_MAX = 1 << 28 };

typedef struct lookup lookup;
typedef struct lookup_get lookup_get;

typedef struct lookup_config {
    session_config session;
    /* keys are in this one and those behind it, up to session.shards: those of the client's tenant */
    uint32_t first_shard;
    fkv_seed seed;
    uint32_t max_gets;         /* at once */
    uint64_t buffer_bytes;     /* where READs land, at most; 0: 256 MiB. A GET that finds no room waits */
    uint32_t cached_locations; /* entries of the location cache (locations.h), 16 bytes each; 0: none */
    void *ctx;                 /* of the two below */
    void (*event)(void *ctx, const session_event *e);
    void (*done)(void *ctx, lookup_get *g);
} lookup_config;

fkv_status lookup_create(const lookup_config *c, lookup **out);
/* Ends what is outstanding with CLOSED (`done` is called from inside), disconnects, frees. Results not yet released are
 * freed too. */
void lookup_close(lookup *l);
session *lookup_session(lookup *l);

/* ---- where shards lie ---- */
typedef struct lookup_region {
    fab_provider provider;
    uint8_t kind;    /* table_segment_kind */
    uint32_t device; /* of the owner's, by its own numbers: for whose connections the rkey is */
    uint32_t segment, tag;
    uint64_t bytes, addr, rkey;
} lookup_region;
typedef struct lookup_route {
    uint32_t shard;
    int64_t owner;  /* as for session_set_owners; -1: nobody */
    uint32_t epoch; /* of ownership */
    uint64_t incarnation;
    uint32_t layout_epoch, buckets;
    const lookup_region *regions;
    uint32_t count;
} lookup_route;
/* What the cluster's metadata says of a shard. What the owner itself said later wins: see layout.c. */
fkv_status lookup_set_route(lookup *l, const lookup_route *r);

/* ---- GET ---- */
typedef struct lookup_result {
    fkv_status status;
    uint8_t codec;
    uint32_t user_flags;
    uint64_t version;
    uint32_t value_bytes; /* also with BUFFER_TOO_SMALL */
    uint64_t expiry_ms;   /* as fkv_reply.expiry_ms: when it ends, 0 never; of a change what else it answers */
} lookup_result;

typedef struct lookup_key {
    const uint8_t *bytes;
    uint32_t count;
    uint16_t space;
    bool hashed; /* `hash` is this key's under this lookup's seed: it is not computed again */
    uint64_t hash;
} lookup_key;

uint64_t lookup_hash(const lookup *l, const lookup_key *k);
uint32_t lookup_shard_of(const lookup *l, const lookup_key *k);
uint32_t lookup_first_shard(const lookup *l); /* lookup_config.first_shard */
/* Of the connection to the shard's owner; 0: there is none. */
fab_provider lookup_provider_of(lookup *l, uint32_t shard);

/* A key that was made ready once: its bytes and its hash, for a program to keep and give back. What comes back is not
 * trusted: it may be of another lookup, with another seed, or for another namespace, and is then hashed again. */
typedef struct lookup_prepared {
    uint64_t hash;
    uint32_t seed_mark;
    uint16_t space, count;
    uint8_t bytes[];
} lookup_prepared;
void lookup_prepare(const lookup *l, const lookup_key *k, lookup_prepared *out);
/* KEY_INVALID: `bytes` bytes are not a prepared key. out->bytes points into it. */
fkv_status lookup_read_prepared(const lookup *l, const void *from, size_t bytes, uint16_t space, lookup_key *out);

/* The whole GET. False: not possible now (no mapping, no lease, a change in the way): use lookup_start. out->status is
 * OK, NOT_FOUND or BUFFER_TOO_SMALL. */
bool lookup_direct(lookup *l, const lookup_key *k, uint8_t *to, size_t room, lookup_result *out);
/* Up to LOOKUP_GROUP of them, their cache misses overlapped. Values lie side by side from to[0] on, without gaps;
 * at[i], set where out[i] is OK, is the only thing that says which lies where. BUFFER_TOO_SMALL: there is no room for
 * it beside the others. done[i] false: as above. Returns the bytes that the values take. */
size_t lookup_direct_group(lookup *l, const lookup_key *k, int n, uint8_t *to, size_t room, lookup_result *out,
                           size_t *at, bool *done);

/* Starts one; `done` is called once, after *out was set. `now_ns` is session_now, read shortly before: once for a
 * batch. BUSY: max_gets are under way. KEY_INVALID. */
fkv_status lookup_start(lookup *l, const lookup_key *k, uint64_t now_ns, uint64_t deadline_ns, void *user,
                        lookup_get **out);
/* Ends it with `why`, unless it has ended. */
void lookup_cancel(lookup_get *g, fkv_status why);
void *lookup_user(const lookup_get *g);
/* After `done`: what came, and the value, until lookup_release, which every GET that was started needs once. */
const lookup_result *lookup_result_of(const lookup_get *g);
const uint8_t *lookup_value(const lookup_get *g);
void lookup_release(lookup_get *g);

/* This client is about to change the key: what is cached of its location will be wrong. */
void lookup_changes(lookup *l, const lookup_key *k);

/* ---- counters ---- */
typedef struct lookup_stats {
    /* gets: begun; what failed is neither hit nor miss. Of those in place one whose value did not fit does not count. */
    uint64_t gets, hits, misses;
    uint64_t reads, read_bytes; /* READs, counted also where they are this process's own loads */
    /* of the READs of buckets those that brought the extent too (fabric.h): each is one in `reads` */
    uint64_t followed;
    uint64_t retries, two_sided, late, torn, foreign;
    /* The location cache: GETs that were answered by one READ, guesses that were none, entries replaced, GETs of keys
     * that change too often. */
    uint64_t location_hits, location_stale, location_evicted, location_bypassed;
} lookup_stats;
void lookup_get_stats(const lookup *l, lookup_stats *out);

#endif
