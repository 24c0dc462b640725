/* locations.h: the location cache: where the extents of keys lay when they were last READ, so that a GET needs one READ
 * and not two.
 *
 *   set = one cache line of four entries, found by the low half of the key's hash
 *   +-------------------------------- entry, 16 bytes --------------------------------+
 *   | check 32: the hash's high half | tag 32: of the segment                         |
 *   | location 40 | size class 8 | use 8: how often it was asked for | trust 8        |
 *   +---------------------------------------------------------------------------------+
 *
 * For: get.c, for READs over a fabric. Not for: memory that is mapped here (direct.c): a look into this cache costs as
 * much as one into a bucket. One thread.
 *
 * What it says is a guess and never an answer: the extent that is READ at a cached location is taken only as one that
 * the index led to is: LIVE, with the tag that its segment has now, the whole key, a good checksum, under a running
 * lease. That is enough however old the location is (layout.h: at most one extent of a key is LIVE;
 * protocol_model_test.c, "extents reused at once"), with one thing more: the segment must still have the tag that it
 * had when the location was learned. Under another tag its pages have other size classes, and the location may point
 * into a value whose bytes imitate an extent.
 *
 * Who stays. `use` counts what was asked for, ever more slowly (each doubling of the count takes twice as long), and
 * sinks with time; a newcomer takes the place of the least used of its set. So a scan replaces only entries that were
 * used once.
 *
 * Who is left alone. A stale location costs a READ, a good one saves a READ: it pays for a key that changes less often
 * than it is read. `trust` rises with each good guess and falls with each stale one; below LOCATION_TRUSTED the GET
 * goes by the index, and what it finds there is compared with what would have been guessed, so that a key that has come
 * to rest is trusted again without a READ wasted.
 */
#ifndef FARKV_LOOKUP_LOCATIONS_H
#define FARKV_LOOKUP_LOCATIONS_H
#include <stdbool.h>
#include <stdint.h>

enum { LOCATION_WAYS = 4, LOCATION_BYTES = 16, LOCATION_USE_MAX = 15, LOCATION_TRUST_MAX = 7, LOCATION_TRUSTED = 4 };

typedef struct location {
    uint64_t word; /* size class 8 | location 40, as in a slot */
    uint32_t tag;
} location;

typedef struct location_entry {
    uint32_t check, tag;
    uint64_t word; /* 0: empty. A location of 0: it is not known where the key lies */
} location_entry;

typedef struct locations {
    location_entry *entry; /* NULL: there is no cache */
    uint32_t sets;
    uint64_t dice;
    uint64_t evicted, bypassed;
} locations;

/* Room for `entries`, rounded down to whole sets, at least one; 0: no cache. Memory is used as entries are. False:
 * there is no memory. */
bool locations_create(locations *c, uint32_t entries);
void locations_free(locations *c);

/* Brings the line that a guess for this hash will look at closer. */
void locations_prefetch(const locations *c, uint64_t hash);
/* Where the key with this hash may lie; counts as a use. False: not known, or the key changes too often. */
bool locations_guess(locations *c, uint64_t hash, location *out);
/* The guess was good. */
void locations_good(locations *c, uint64_t hash);
/* The guess was not: it is not made again. */
void locations_stale(locations *c, uint64_t hash);
/* The index led to this extent, and it was the key's. */
void locations_learn(locations *c, uint64_t hash, location where);
/* The key is going to be elsewhere: changed by this client, or gone. */
void locations_forget(locations *c, uint64_t hash);

#endif
