/* replica_world.h: the state of the machine of replica_machine.c, and what its files share.
 *
 * Every field is made of 32-bit words, each of which is small, or all ones: packed, a word is a byte. */
#ifndef FARKV_TEST_REPLICA_WORLD_H
#define FARKV_TEST_REPLICA_WORLD_H
#include <assert.h>
#include "../../replication/rules/replica.h"
#include "../check.h"
#include "replica_machine.h"

enum { SERVERS = 4, LOG = 4, CHANGES = 3, CONFIGS = 6, KEYS = 2, LEASE = 1, CLIENT_LEASE = 2 };
#define NO_END UINT32_MAX

typedef struct record {
    uint32_t change, epoch; /* change: from 1; 0: none */
} record;
/* Of an owner to a backup: one record on its way, and the latest acknowledgement on its way back. */
typedef struct link {
    uint32_t up, sent; /* sent: the last record that was given to this connection */
    struct {
        uint32_t full, epoch, lsn, committed;
        record what;
    } to;
    struct {
        uint32_t full, lease;
        uint32_t epoch, prepared;
    } back;
} link;
enum { BACKUP = 0, OWNER };
/* What a server's own log has on its disk. */
typedef struct log_disk {
    uint32_t epoch, last;
    uint32_t right; /* of its records, those that the copy still has; the next epoch cuts off the others */
    uint32_t unused;
    record log[LOG];
} log_disk;
typedef struct server {
    uint32_t alive, life, role, serving, applied;
    uint32_t joined;        /* records up to here came in a copy, without their sequences */
    uint32_t client_leases; /* all that it granted have ended by then */
    uint32_t unused;
    record log[LOG]; /* by lsn - 1; its memory, which clients may READ after its end */
    log_disk disk;
    replica_backup copy;
    replica_owner owner;
} server;
typedef struct entry {
    uint32_t epoch, owner, in_sync, joining; /* owner: id, 0: nobody; the others: ids as bits */
    /* Where copies answer early: those in sync that crashed since they were added; those that crashed otherwise, which
     * cannot be added by what their owner knows of them: they have another start. */
    uint32_t marked, anew;
} entry;
enum { NOTHING = 0, ADD, REMOVE, PROMOTE };
typedef struct proposal {
    uint32_t kind, epoch, config, id;
} proposal;
enum { UNSENT = 0, OUTSTANDING, ANSWERED, WITHOUT_EFFECT, INDETERMINATE };
typedef struct change {
    uint32_t is, at, retried; /* at: server that the newest copy went to, + 1 */
    uint32_t copy[SERVERS];   /* on its way to a server: 1 the first, 2 a retry */
    /* where an answer, or a GET, has shown it: 0: nowhere yet */
    uint32_t lsn, epoch;
    uint32_t lost; /* it was, and no copy in sync had it on its disk */
} change;
enum { RESTS = 0, READS, CHECKS };
typedef struct reader {
    uint32_t is, gets_left, at, lease, low, result;
} reader;
typedef struct world {
    uint32_t now, config;
    entry entry[CONFIGS + 1]; /* by config, from 1 */
    proposal proposal[SERVERS];
    server server[SERVERS];
    link link[SERVERS][SERVERS];
    change change[CHANGES];
    reader reader;
    uint32_t breaks, crashes, restarts, removals, additions, promotions, retries, powers; /* left */
    uint32_t returns;
} world;
static_assert(sizeof(world) % 4 == 0, "words");

typedef struct machine {
    search *s;
    const replica_mistakes *wrong;
    const replica_setting *set;
} machine;

static inline uint32_t id_of(const world *x, int s) { return 1 + (uint32_t)s + SERVERS * x->server[s].life; }
static inline int server_of(uint32_t id) { return (int)(id - 1) % SERVERS; }
static inline bool has_logs(const replica_setting *set) { return set->powers > 0 || set->early; }
static inline bool has_id(uint32_t ids, uint32_t id) { return ids >> id & 1; }
static inline uint32_t key_of(const machine *m, uint32_t change) { return (change - 1) % (uint32_t)m->set->keys; }
static inline uint64_t prepared_of(const server *s) { return s->role == OWNER ? s->owner.last : s->copy.prepared; }
static inline void world_drop(link *l) { *l = (link){ 0 }; }
/* A copy that is what the metadata thinks it is. */
static inline bool is_alive(const world *x, uint32_t id) {
    return x->server[server_of(id)].alive && id_of(x, server_of(id)) == id;
}

/* A state as bytes, one for each of its words. */
enum { WORLD_BYTES = sizeof(world) / 4 };
void world_pack(const world *x, uint8_t *out);
void world_unpack(const uint8_t *in, world *x);

/* Hands a state on, after what must always hold was looked at. `number` is printed behind it. */
void world_reach(const machine *m, const world *x, int who, const char *what, uint32_t number);
void world_wrong(const machine *m, int who, const char *what, uint32_t number);
/* Where the change lies in this server's log; 0: it does not. */
uint32_t world_lsn(const server *s, uint32_t change);
/* The newest change of a key that readers find in this server's memory; 0: none. */
uint32_t world_visible(const machine *m, const server *s, uint32_t key);
/* Somebody has seen this change at this place. False: and it was elsewhere before. */
bool world_witness(world *x, uint32_t change, uint32_t lsn, uint32_t epoch);
/* Up to when a server may be relied on. */
uint32_t world_right(const machine *m, const server *s);

/* The same of an owner for which something has changed: it commits what it may. */
void world_settle(const machine *m, world *x, int s, const char *what, uint32_t number);

void step_server(const machine *m, const world *x, int s);
void step_metadata(const machine *m, const world *x);
void step_faults(const machine *m, const world *x);
/* A server's disk writes; all servers lose their power, and some come back. */
void step_disk(const machine *m, const world *x, int s);
void step_power(const machine *m, const world *x);
/* A server wakes with what is on its disk. */
void world_wakes(const machine *m, world *x, int s);
/* replica_early.c: crashed servers return; one of them leads. */
void step_early(const machine *m, const world *x);
void lose_power_early(const machine *m, const world *x);
/* What a copy that answers early has prepared is in its log's buffer, and counts. */
void world_buffers(const machine *m, server *v);
/* Whether an owner may ask for a copy to be removed: where it answers early, its disk has all. */
bool world_may_ask_to_remove(const machine *m, server *v);
void step_client(const machine *m, const world *x);
void step_reader(const machine *m, const world *x);
/* A server takes a request. */
void step_request(const machine *m, const world *x, int s);
void step_answers(const machine *m, const world *x, int s);
enum { CLIENT = SERVERS, READER, METADATA, TIME };

#endif
