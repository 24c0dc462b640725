/* failover_life.h: the state of one life of a shard, which the parts of failover.c share. Private to failover*.c. */
#ifndef FARKV_TEST_FAILOVER_LIFE_H
#define FARKV_TEST_FAILOVER_LIFE_H
#include "../../client/lookup/lookup.h"
#include "../../replication/backup.h"
#include "../../dataplane/worker.h"
#include "../log/memory_disk.h"
#include "../sim/sim.h"
#include "failover.h"
#include "failover_history.h"

enum { SERVERS = 3, CLIENTS = 2, SLOTS = 6, CONFIGS = 64, PROPOSALS = 8, LEASE_MS = 30, LIFE_MS = 900, SYNC_MS = 10 };
#define MS        ((uint64_t)1000000)
#define HASH_SEED ((fkv_seed){ 1, 2 })
#define SECRET    ((fkv_seed){ 3, 4 })

typedef struct config {
    uint32_t epoch, owner, copies; /* copies: servers in sync as bits, the owner's too */
    uint32_t joining;              /* those that were, and may be again with what they have */
    uint64_t id[SERVERS];          /* of the copy that each of them has */
    bool handed;                   /* the owner before has handed the shard over */
} config;
typedef enum { PROMOTE = 1, REMOVE, ADD, KEEP, HAND_OVER, HAND_OVER_AND_END } proposal_kind;
typedef struct proposal {
    proposal_kind kind;
    uint32_t epoch, config, server;
    uint64_t id; /* of the copy */
    uint64_t due_ns;
} proposal;

typedef struct node {
    dataplane *d;
    worker *w;
    uint64_t id;        /* of the copy that it has, or had last: each has another */
    bool gone, left;    /* left: it has no copy */
    bool closed;        /* the shard, too, or its table is a base */
    bool base;          /* it is */
    uint64_t stands_ns; /* until then it takes no turn */
    uint32_t config;    /* that it has applied */
    bool leads, serves, asked, steps_down;
    bool suspects; /* its owner, in this config */
    bool unknown;  /* its owner knows nothing of its copy, or has not kept what that lacks */
    enum { NOT_HANDING, HANDING, HANDED } hands; /* HANDED: the metadata is asked, in config handed_in */
    uint32_t heir, handed_in;
    bool relies;                    /* as the owner, on its disk, before it asks for `removes` to be removed */
    uint32_t removes, removes_in;   /* in that config */
    bool required;                  /* its owner was asked to require its copy, which is not proposed yet */
    memory_disk disk;               /* of a durable life */
    bool empty;                     /* when the power went, its copy had no record yet: nor need its disk have one */
    uint64_t proposed_ns, hears_ns; /* hears_ns: when of the next config; 0: not drawn */
} node;
typedef struct slot {
    struct player *of;
    uint32_t number; /* of what it asked; 0: nothing */
} slot;
typedef struct player {
    lookup *l;
    uint32_t config;
    uint64_t hears_ns;
    slot slot[SLOTS];
} player;

typedef struct life_state {
    sim_world *world;
    uint64_t seed, random, copies_made;
    config at[CONFIGS]; /* from 1 */
    uint32_t last;
    proposal proposal[PROPOSALS];
    node node[SERVERS];
    player player[CLIENTS];
    history history;
    failover_counts *counts;
    bool durable;
    bool early;      /* changes are answered before disks have them, SYNC_MS before or so */
    uint64_t off_ns; /* when the power went */
    bool bases;      /* copies that are given up may be bases of the next */
    bool heals;
    uint64_t mend_ns[SERVERS][SERVERS]; /* [s][s]: it is cut off from all; 0: not */
} life_state;
extern life_state life;

static inline uint32_t any(uint32_t below) {
    life.random = life.random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((life.random >> 33) % below);
}
static inline bool chance(uint32_t in_a_million) { return any(1000000) < in_a_million; }
static inline const config *now_in_force(void) { return &life.at[life.last]; }
static inline shard *shard_at(uint32_t s) { return life.node[s].w->by_number[0]; }
static inline backup *copy_at(uint32_t s) { return shard_at(s) ? shard_at(s)->repl.copy : NULL; }
static inline bool runs(uint32_t s) { return !life.node[s].gone && life.node[s].stands_ns <= sim_now(life.world); }
static inline bool has_copy(const config *c, uint32_t s) { return c->copies >> s & 1; }

/* failover_servers.c: what a server does that has heard of a config. */
void life_node_up(uint32_t s);
void life_node_starts(uint32_t s, const dataplane_listen *listen); /* NULL: it listens nowhere */
void life_node_turn(node *n);
uint64_t life_opens(uint32_t s, uint32_t epoch); /* the shard, as nobody's; returns the id of its copy */
void life_first_copies(void);                    /* of the first config, without entries */
void life_apply(uint32_t s);                     /* it hears of the next config */
void life_try_to_serve(uint32_t s);
void life_leaves(uint32_t s); /* its copy is given up */

/* failover_power.c: all servers lose their power; when they are freed: what was answered or READ is on the disk of each copy
 * in sync. */
void life_power_goes(void);
void life_disks_have_all(void);
void life_disks_free(void);
/* With this copy, which is in sync: its server starts from its disk. Id 0: it had nothing, and need not. */
dataplane_recovered life_comes_back(uint32_t s);

/* failover_early.c: the same where changes were answered early: the longest log has all but the last. */
void life_disks_have_all_but_the_last(void);

/* failover_metadata.c: what is decided there, and what servers ask it for. */
void life_propose(proposal_kind kind, uint32_t by, uint32_t server);
void life_decide(void);
void life_suspect(uint32_t s);
void life_ask_again(uint32_t s);
void life_remove_copy(uint32_t s);

/* failover_handovers.c: owners give their shard away. */
void life_hand_over(uint32_t s);
void life_ask_for_heir(uint32_t s);                 /* again, or that nothing comes of it */
void life_handed_over(uint32_t s, const config *c); /* the server has heard of a later config */

/* failover_joins.c: a server that has no copy makes one. */
void life_join(uint32_t s);

/* failover_clients.c */
void life_player_up(uint32_t i);
void life_player_turn(player *p);
void life_route(player *p);
void life_ask(player *p, asked_kind kind, int key, uint64_t patience_ns);
void life_ask_something(player *p);
#endif
