/* failover.h: the data planes of three servers, with copies of one shard, and its clients, in simulated time and on one
 * thread: links that are cut and mend, slow and lost connections, servers that stand still or are gone, copies that are
 * removed and added, owners that are suspected and deposed, and clients that do not notice (failover.c). One seed is one
 * life of the shard, the same each time but for the random numbers of connections' proofs. */
#ifndef FARKV_TEST_FAILOVER_H
#define FARKV_TEST_FAILOVER_H
#include <stdbool.h>
#include <stdint.h>

typedef struct failover_counts {
    uint64_t answered, unknown, without_effect; /* requests */
    uint64_t large;                             /* of the answers: changes whose values fit no message of a link */
    uint64_t promotions, handovers, removals, joins, rejoins, additions, kills,
        lost;                /* lost: lives that ended with the last copy in sync */
    uint64_t deposed;        /* owners that others replaced, and that went on as copies */
    uint64_t logs;           /* that were compared with what was answered */
    uint64_t from_snapshots; /* copies that came back, which were made of others' entries */
    uint64_t lost_early;     /* changes that were answered, and were on no disk when the power went */
    uint64_t bases, kept;    /* copies that began with what was there, and entries that they had already */
} failover_counts;
/* Lives one life, and adds what happened in it. Fails with a check, and says of which seed. */
void failover_live(uint64_t seed, failover_counts *out);
/* The same of a durable shard, until all servers lose their power: then its logs are looked at. */
void failover_live_durable(uint64_t seed, failover_counts *out);
/* The same of one whose servers lose their power before a client has asked anything. */
void failover_end_at_once(uint64_t seed, failover_counts *out);
/* Lives of a durable shard whose changes are answered early: one that ends as the first, and one until all servers lose
 * their power. */
void failover_live_early(uint64_t seed, failover_counts *out);
void failover_end_early(uint64_t seed, failover_counts *out);
/* Either, where copies may begin with what servers have of earlier ones. */
void failover_live_with_bases(uint64_t seed, bool durable, failover_counts *out);
#endif
