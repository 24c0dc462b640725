/* join_rig.h: data planes of several servers that make copies of one shard by the calls of their servers only, and a
 * client that changes the shard meanwhile. The test is the metadata. */
#ifndef FARKV_TEST_JOIN_RIG_H
#define FARKV_TEST_JOIN_RIG_H
#include "../../client/copy.h"
#include "../../replication/rules/replica.h"
#include "raw_client.h"
#include "worker_visit.h"

enum { NODES = 6, EVENTS = 64, JOIN_MEMORY = 16 << 20, SMALL_MEMORY = 8 << 20, LEASE_MS = 300 };

typedef struct node {
    rig r;
    bool runs;
    pthread_mutex_t lock; /* of the next two */
    struct {
        uint32_t shard;
        uint64_t id;
        dataplane_copy_event what;
    } event[EVENTS];
    uint32_t events;
    uint64_t incarnation; /* that the shard has here */
    uint32_t epoch;
    shard_copy *copy;
    rig_call caught_up, followed;
    bool base;               /* its table has entries of before */
    shard_copy_stats copied; /* by the last copy that followed */
} node;

/* Set before servers come up. */
static fab_provider join_over = FAB_SHM;
static bool join_encrypted;
static uint32_t join_slow_ms; /* 0: the default */
static uint32_t join_lease_ms = LEASE_MS;
static uint64_t join_memory = JOIN_MEMORY;
static void (*join_configure)(int s, rig *r); /* or NULL: what else is said of a server */

static node nodes[NODES];
static uint32_t number; /* of the shard of "alpha"; main sets it */

static inline uint64_t id_of(int s) { return UINT64_MAX - (uint64_t)s; }

static inline void node_event(void *ctx, uint32_t shard, uint64_t id, dataplane_copy_event what) {
    node *n = ctx;
    bool repeats = what == DATAPLANE_COPY_UNKNOWN || what == DATAPLANE_COPY_REFUSED; /* as often as it asks */
    bool said = false;
    pthread_mutex_lock(&n->lock);
    for (uint32_t i = 0; i < n->events && repeats && !said; i++)
        said = n->event[i].shard == shard && n->event[i].id == id && n->event[i].what == what;
    CHECK(said || n->events < EVENTS);
    if (!said) {
        n->event[n->events].shard = shard;
        n->event[n->events].id = id;
        n->event[n->events++].what = what;
    }
    pthread_mutex_unlock(&n->lock);
}
/* Waits for an event about the shard's copy at another node, and takes it. */
static inline void node_expects(int s, int copy, dataplane_copy_event what) {
    node *n = &nodes[s];
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    for (bool found = false; !found; sched_yield()) {
        CHECK(fkv_now_ns() < until);
        pthread_mutex_lock(&n->lock);
        for (uint32_t i = 0; i < n->events && !found; i++) {
            found = n->event[i].shard == number && n->event[i].id == id_of(copy) && n->event[i].what == what;
            if (found) n->event[i] = n->event[--n->events];
        }
        pthread_mutex_unlock(&n->lock);
    }
}

static inline void node_starts(int s, uint32_t epoch) {
    node *n = &nodes[s];
    *n = (node){ .lock = PTHREAD_MUTEX_INITIALIZER, .epoch = epoch };
    rig_init(&n->r, join_over, NULL);
    n->r.encrypted = join_encrypted;
    n->r.epoch = epoch;
    n->incarnation = 1000 + number;
    n->r.config.replica_lease_ms = join_lease_ms;
    n->r.config.backup_slow_ms = join_slow_ms;
    n->r.config.client_quota = 4096;
    n->r.config.on_copy = node_event;
    n->r.config.ctx = n;
    if (join_configure) join_configure(s, &n->r);
    rig_start(&n->r);
    n->runs = true;
}
/* With the shard open, in this epoch. */
static inline void node_up(int s, uint32_t epoch) {
    node_starts(s, epoch);
    CHECK_EQ(rig_open_shard(&nodes[s].r, number, 0, join_memory, NULL), FKV_OK);
}
static inline void node_stops_copying(int s) {
    node *n = &nodes[s];
    if (!n->copy) return;
    shard_copy_stop(n->copy);
    n->copy = NULL;
    if (n->followed.result) n->copied = *(shard_copy_stats *)n->followed.result;
    free(n->followed.result);
    n->followed.result = NULL;
}
static inline void node_dies(int s) {
    node_stops_copying(s);
    if (nodes[s].runs) rig_dies(&nodes[s].r);
    nodes[s].runs = false;
}
static inline void nodes_down(void) {
    for (int s = 0; s < NODES; s++) node_dies(s);
}

/* ---- calls of a server ---- */

static inline dataplane *plane(int s) { return nodes[s].r.d; }
static inline dataplane_copies copies_of(const uint64_t *id, uint32_t n, uint32_t epoch, uint32_t config,
                                         uint32_t min) {
    return (dataplane_copies){ .epoch = epoch, .config = config, .min_in_sync = min, .in_sync = n, .id = id };
}
/* `copies`: nodes as bits, beside the owner. */
static inline uint32_t ids_of(uint32_t copies, uint64_t *id) {
    uint32_t n = 0;
    for (int s = 0; s < NODES; s++)
        if (copies >> s & 1) id[n++] = id_of(s);
    return n;
}
static inline fkv_status node_configures(int s, uint32_t copies, uint32_t config, uint32_t min) {
    uint64_t id[NODES];
    dataplane_copies k = copies_of(id, ids_of(copies, id), nodes[s].epoch, config, min);
    rig_call c;
    rig_call_init(&c);
    dataplane_configure_copies(plane(s), number, &k, rig_done, &c);
    return rig_wait(&c);
}
static inline fkv_status node_leads(int s, uint32_t copies, uint32_t epoch, uint32_t config) {
    uint64_t id[NODES];
    dataplane_copies k = copies_of(id, ids_of(copies, id), epoch, config, 1);
    rig_call c;
    rig_call_init(&c);
    dataplane_lead_copy(plane(s), number, 1000 * epoch + (uint64_t)s, &k, rig_done, &c);
    fkv_status status = rig_wait(&c);
    if (status == FKV_OK) {
        dataplane_layout *l = c.result;
        CHECK(l->epoch == epoch && l->incarnation == 1000 * epoch + (uint64_t)s && l->count > 0);
        nodes[s].epoch = epoch;
        nodes[s].incarnation = l->incarnation;
    }
    free(c.result);
    return status;
}
static inline void node_serves(int s) { rig_serve(&nodes[s].r, number); }
static inline fkv_status node_drops(int s, uint64_t id) {
    rig_call c;
    rig_call_init(&c);
    dataplane_drop_copy(plane(s), number, id, rig_done, &c);
    return rig_wait(&c);
}
static inline fkv_status node_requires(int s, uint64_t id, uint64_t *lsn) {
    rig_call c;
    rig_call_init(&c);
    dataplane_require_copy(plane(s), number, id, rig_done, &c);
    fkv_status status = rig_wait(&c);
    *lsn = status == FKV_OK ? *(uint64_t *)c.result : 0;
    free(c.result);
    return status;
}
/* Under load the copy may lag, or be without its link, for a moment: the server asks again. */
static inline uint64_t node_requires_in_time(int s, int copy) {
    uint64_t lsn, until = fkv_now_ns() + check_patience_ms() * 1000000u;
    fkv_status status;
    while ((status = node_requires(s, id_of(copy), &lsn)) == FKV_BUSY) CHECK(fkv_now_ns() < until);
    CHECK_EQ(status, FKV_OK);
    return lsn;
}
static inline fkv_status node_keeps_base(int s) {
    rig_call c;
    rig_call_init(&c);
    dataplane_keep_base(plane(s), number, id_of(s), rig_done, &c);
    nodes[s].base = true;
    return rig_wait(&c);
}
static inline void node_follows(int s, int owner) {
    dataplane_owner_address a = { join_over, dataplane_address(plane(owner), 0), 0 };
    rig_call c;
    rig_call_init(&c);
    dataplane_follow_owner(plane(s), number, &a, 1, rig_done, &c);
    CHECK_EQ(rig_wait(&c), FKV_OK);
}

/* ---- a live copy ---- */

static inline void copy_begins(int s, int owner) {
    node *n = &nodes[s];
    session_address a = { join_over, dataplane_address(plane(owner), 0), 0 };
    shard_copy_config c = { .to = n->r.d,
                            .shard = number,
                            .shards = RIG_SHARDS,
                            .seed = RIG_SEED,
                            .addresses = &a,
                            .count = 1,
                            .server_incarnation = nodes[owner].r.config.server_incarnation,
                            .epoch = nodes[owner].epoch,
                            .incarnation = nodes[owner].incarnation,
                            .copy = id_of(s),
                            .base = n->base };
    c.pass = raw_pass(900 + (uint64_t)s, FKV_TICKET_READ | FKV_TICKET_COPY);
    rig_call_init(&n->caught_up);
    rig_call_init(&n->followed);
    CHECK_EQ(shard_copy_start(&c, rig_done, &n->caught_up, &n->copy), FKV_OK);
}
static inline fkv_status copy_ends(int s) {
    node *n = &nodes[s];
    shard_copy_follow(n->copy, rig_done, &n->followed);
    fkv_status status = rig_wait(&n->followed);
    node_stops_copying(s);
    return status;
}
static inline void node_copies(int s, int owner) {
    copy_begins(s, owner);
    CHECK_EQ(rig_wait(&nodes[s].caught_up), FKV_OK);
    CHECK_EQ(copy_ends(s), FKV_OK);
}
/* From nothing to a copy that may be required. */
static inline void node_joined(int s, int owner) {
    node_copies(s, owner);
    node_expects(owner, s, DATAPLANE_COPY_JOINED);
}
/* ... to one in sync beside those that there are. */
static inline uint64_t node_joins(int s, int owner, uint32_t others, uint32_t config) {
    node_joined(s, owner);
    uint64_t lsn = node_requires_in_time(owner, s);
    CHECK_EQ(node_configures(owner, others | 1u << s, config, 1), FKV_OK);
    return lsn;
}

/* ---- what is seen ---- */

static inline dataplane_copy_stats copy_stats(int s) {
    dataplane_stats *all = rig_stats(&nodes[s].r);
    dataplane_copy_stats out = { 0 };
    for (uint32_t i = 0; i < all->shards; i++)
        if (all->shard[i].shard == number) out = all->shard[i].copy;
    free(all);
    return out;
}
/* The i-th key of the shard. */
static inline const char *key_at(uint32_t i, char room[32]) {
    for (uint32_t n = i * 1000;; n++) {
        snprintf(room, 32, "key-%u", n);
        if (raw_shard_of(0, room, strlen(room)) == number) return room;
    }
}

/* ---- load: a client with a thread of its own ---- */

enum { LOAD_KEYS = 300, LOAD_AT_ONCE = 24 };
typedef struct load {
    raw c;
    pthread_t thread;
    bool stop;                 /* atomic */
    uint64_t seed, made;       /* made: atomic */
    uint32_t value[LOAD_KEYS]; /* that was answered last; 0: none */
} load;

static inline void *load_main(void *arg) {
    load *l = arg;
    char key[32];
    while (!__atomic_load_n(&l->stop, __ATOMIC_ACQUIRE)) {
        uint64_t id[LOAD_AT_ONCE];
        uint32_t of[LOAD_AT_ONCE], now[LOAD_AT_ONCE];
        for (uint32_t i = 0; i < LOAD_AT_ONCE; i++) {
            l->seed = l->seed * 6364136223846793005u + 1442695040888963407u;
            of[i] = (uint32_t)(l->seed >> 33) % LOAD_KEYS;
            bool removes = l->seed >> 61 == 0;
            now[i] = removes ? 0 : (uint32_t)__atomic_add_fetch(&l->made, 1, __ATOMIC_RELAXED);
            key_at(of[i], key);
            if (removes) {
                fkv_request q = raw_request(&l->c, FKV_OP_DELETE, key);
                id[i] = raw_send(&l->c, &q, key, NULL, 0);
            } else {
                id[i] = raw_put_begin(&l->c, key, &now[i], sizeof now[i]);
            }
        }
        for (uint32_t i = 0; i < LOAD_AT_ONCE; i++) {
            fkv_status s = raw_end(&l->c, id[i]);
            if (s == FKV_SHARD_CLOSED) continue; /* its backups do not let it, for now: without effect */
            CHECK(s == FKV_OK || (s == FKV_NOT_FOUND && now[i] == 0));
            l->value[of[i]] = now[i]; /* of one key they are answered in order */
        }
    }
    return NULL;
}
static inline void load_begins(load *l, int s, uint64_t client) {
    raw_up(&l->c, &nodes[s].r, client);
    l->stop = false;
    if (!l->seed) l->seed = check_seed();
    CHECK_EQ(pthread_create(&l->thread, NULL, load_main, l), 0);
}
static inline void load_ends(load *l) {
    __atomic_store_n(&l->stop, true, __ATOMIC_RELEASE);
    pthread_join(l->thread, NULL);
    raw_down(&l->c);
}
/* Everything that was answered is there, and nothing else. */
static inline void load_is_there(const load *l, raw *c) {
    char key[32];
    for (uint32_t i = 0; i < LOAD_KEYS; i++) {
        fkv_reply reply;
        uint32_t value;
        uint8_t *v = raw_get(c, key_at(i, key), &reply);
        CHECK_EQ(reply.status, l->value[i] ? FKV_OK : FKV_NOT_FOUND);
        if (!v) continue;
        CHECK_EQ(reply.value_bytes, sizeof value);
        memcpy(&value, v, sizeof value);
        CHECK_EQ(value, l->value[i]);
        free(v);
    }
}

/* ---- what all tests begin with ---- */

enum { FIRST = 0, SECOND = 1, THIRD = 2, CLIENT = 7 };
static raw c;
static load work;

static inline void up(void) {
    work = (load){ 0 };
    node_up(FIRST, 1);
    node_serves(FIRST);
}
static inline void down(void) { nodes_down(); }

/* Where backups do not let the owner answer, for now, it is another change that is sent again, as a client does. */
static inline fkv_reply put(const char *key, const char *value) {
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    fkv_reply reply;
    do {
        fkv_request q = raw_request(&c, FKV_OP_PUT, key);
        q.value_bytes = (uint32_t)strlen(value);
        raw_ask(&c, &q, key, value, q.value_bytes, &reply);
    } while (reply.status == FKV_SHARD_CLOSED && fkv_now_ns() < until);
    return reply;
}
static inline fkv_status get(const char *key) {
    fkv_reply reply;
    free(raw_get(&c, key, &reply));
    return (fkv_status)reply.status;
}
/* The owner is gone, and the copy is the owner's: once nobody can rely on the one before. */
static inline void fails_over(int from, int to, uint32_t others, uint32_t epoch) {
    node_dies(from);
    CHECK_EQ(node_leads(to, others, epoch, 100 * epoch), FKV_OK);
    node_serves(to);
}

/* Over each provider, then what is told again over encrypted links; NULL: nothing. */
static inline int join_main(int argc, char **argv, void (*tests)(void), void (*encrypted)(void)) {
    const fab_provider over[] = { FAB_SHM, FAB_TCP };
    number = raw_shard_of(0, "alpha", 5);
    for (int i = 0; i < 2; i++) {
        join_over = over[i];
        tests();
    }
    const char *missing = fab_encryption_missing(FAB_TCP);
    if (encrypted && missing) printf("left out: encrypted links: %s\n", missing);
    join_encrypted = true;
    if (encrypted && !missing) encrypted();
    join_encrypted = false;
    return check_end(argc, argv);
}
#endif
