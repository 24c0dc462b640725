/* failover_servers.c: servers of failover.c: each has a data plane of the product, and does what a config says that it has
 * heard of. */
#include <stdio.h>
#include <stdlib.h>
#include "../../replication/durable.h"
#include "../../serve/loop.h"
#include "../../replication/replicate.h"
#include "../../replication/owner_link.h"
#include "failover_life.h"
#include "../../replication/replication.h"

static const uint64_t MEMORY = 32 << 20;
/* Small, so that values go in pieces, and files end. */
enum { LOG_BUFFER = 64 << 10, LOG_FILE = 2 << 20 };

void life_node_turn(node *n) {
    if (!chance(100000)) helper_drain(&n->d->memory); /* it may be late */
    if (!chance(100000)) helper_drain(&n->d->copier);
    helper_drain(&n->d->huge);
    if (life.durable && any(3)) repl_drain(n->w);
    if (life.durable && any(3)) helper_drain(&n->d->maker);
    if (life.durable && any(3)) helper_drain(&n->d->snapshots);
    worker_turn(n->w);
}

static void opened(void *ctx, fkv_status s, void *result) {
    CHECK_EQ(s, FKV_OK);
    free(result);
    *(bool *)ctx = true;
}

static void noticed(void *ctx, uint32_t shard, uint64_t copy, dataplane_copy_event what) {
    node *n = ctx;
    (void)shard;
    CHECK(what != DATAPLANE_COPY_DAMAGED);
    n->unknown |= what == DATAPLANE_COPY_UNKNOWN && copy == n->id;
}

static bool recovers(void *ctx, uint32_t shard, uint64_t copy) { return shard == 0 && copy == ((const node *)ctx)->id; }

/* With what is on its disk, if it has one. */
void life_node_starts(uint32_t s, const dataplane_listen *listen) {
    node *n = &life.node[s];
    char why[256];
    dataplane_config c = { .server_incarnation = 10 + s,
                           .hash_seed = HASH_SEED,
                           .ticket_secret = SECRET,
                           .shards = 1,
                           .workers = 1,
                           .lease_ms = 25,
                           .drift_ppm = 1000,
                           .max_clients = 64,
                           .client_quota = 256,
                           .wait_ms = 100,
                           .dedup_bytes = 1 << 20,
                           .scrub_ms = 1,
                           .on_copy = noticed,
                           .ctx = n,
                           .listen = listen,
                           .listens = listen != NULL };
    if (life.durable)
        c.log = (dataplane_log){ .disk = &n->disk.table,
                                 .instance = s,
                                 .sync_ns = life.early ? SYNC_MS * MS : 0,
                                 .file_bytes = LOG_FILE,
                                 .buffer_bytes = LOG_BUFFER,
                                 .chunk_bytes = ITEM_CHUNK_MIN,
                                 .shard_memory_bytes = MEMORY,
                                 .recovers = recovers,
                                 .ctx = n };
    CHECK_EQ(dataplane_create(&c, &n->d), FKV_OK);
    n->d->c.replica_lease_ms = LEASE_MS; /* shorter than a server may say */
    n->d->stepped = true;
    if (dataplane_start(n->d, why, sizeof why) != FKV_OK) check_failed(__FILE__, __LINE__, why);
    n->w = n->d->worker[0];
}

void life_node_up(uint32_t s) {
    node *n = &life.node[s];
    char address[32];
    snprintf(address, sizeof address, "sim:server-%u", s);
    *n = (node){ .config = 1, .left = true, .closed = true };
    if (life.durable) memory_disk_init(&n->disk, life.seed + s, 4096);
    life_node_starts(s, &(dataplane_listen){ FAB_SIM, 0, address, 0 });
}

static uint64_t next_id(uint32_t s) { return 1000 + 100 * ++life.copies_made + s; }

uint64_t life_opens(uint32_t s, uint32_t epoch) {
    node *n = &life.node[s];
    bool open = false;
    n->id = next_id(s);
    dataplane_shard o = { .epoch = epoch, .incarnation = n->id, .memory_bytes = MEMORY, .durable = life.durable };
    dataplane_open_shard(n->d, &o, opened, &open);
    while (!open) life_node_turn(n);
    n->left = n->closed = n->leads = n->serves = n->asked = n->required = n->unknown = n->suspects = false;
    return n->id;
}

static replica_config told(uint32_t s, uint32_t number) {
    const config *c = &life.at[number];
    replica_config r = { .epoch = c->epoch, .config = number, .min_in_sync = 1 };
    for (uint32_t t = 0; t < SERVERS; t++) {
        if (t != s && has_copy(c, t)) r.id[r.peers++] = c->id[t];
        if (t != s && (c->joining >> t & 1)) r.joining_id[r.joining++] = c->id[t];
    }
    return r;
}

static void follow(uint32_t s, uint32_t owner) {
    link_address a = { .provider = FAB_SIM };
    snprintf(a.text, sizeof a.text, "sim:server-%u", owner);
    CHECK(owner_link_follow(copy_at(s), &a, 1));
}

void life_first_copies(void) {
    config *c = &life.at[1];
    for (uint32_t s = 0; s < SERVERS; s++) {
        if (!has_copy(c, s)) continue;
        c->id[s] = life_opens(s, 1);
        CHECK(backup_make(shard_at(s), c->id[s], LEASE_MS, &(replica_backup){ .epoch = 1 }));
    }
    replica_config r = told(0, 1);
    replicate_lead(shard_at(0), &r);
    life.node[0].leads = true;
    for (uint32_t s = 1; s < SERVERS; s++)
        if (has_copy(c, s)) follow(s, 0);
}

static void closed(void *ctx, fkv_status s, void *result) {
    node *n = ctx;
    (void)s;
    free(result);
    n->closed = true;
}
static void base_kept(void *ctx, fkv_status s, void *result) {
    node *n = ctx;
    free(result);
    n->closed = n->base = s == FKV_OK;
    if (s != FKV_OK && s != FKV_CLOSED) dataplane_close_shard(n->d, 0, closed, n); /* it leads, or steps down */
}
void life_leaves(uint32_t s) {
    node *n = &life.node[s];
    n->left = true;
    n->leads = n->serves = false;
    if (!life.bases || any(3) == 0) {
        dataplane_close_shard(n->d, 0, closed, n);
        return;
    }
    n->id = next_id(s);
    dataplane_keep_base(n->d, 0, n->id, base_kept, n);
}

static void stepped_down(void *ctx, fkv_status status, void *result) {
    node *n = ctx;
    free(result);
    n->steps_down = false;
    if (status == FKV_OK) follow((uint32_t)(n - life.node), life.at[n->config].owner);
}

/* The server hears of the next config, and does what it says. */
void life_apply(uint32_t s) {
    node *n = &life.node[s];
    const config *c = &life.at[++n->config], *before = &life.at[n->config - 1];
    if (n->left) return;
    n->w->now_ns = fkv_now_ns();
    replica_config r = told(s, n->config);
    CHECK(!has_copy(c, s) || c->id[s] == n->id);
    life_handed_over(s, c);
    bool again = (c->joining >> s & 1) && c->id[s] == n->id;
    bool joins = !has_copy(c, s) && (again || (c->epoch == before->epoch && !has_copy(before, s)));
    if (c->owner == s && n->leads) {
        replicate_configure(shard_at(s), &r);
    } else if (c->owner == s) {
        if (c->handed) replica_handed(&copy_at(s)->place, c->epoch);
        replicate_lead(shard_at(s), &r);
        n->leads = true;
        n->suspects = false;
    } else if (n->leads && again && n->serves) {
        n->leads = n->serves = false;
        n->steps_down = true;
        life.counts->deposed++;
        dataplane_step_down(n->d, 0, n->id, stepped_down, n);
    } else if (n->leads || (!has_copy(c, s) && !joins)) {
        life_leaves(s);
    } else if (!n->steps_down) {
        n->suspects = false;
        if (!copy_at(s)->owner_link || c->owner != before->owner) follow(s, c->owner);
    }
}

static void served(void *ctx, fkv_status s, void *result) {
    node *n = ctx;
    free(result);
    n->asked = false;
    n->serves |= s == FKV_OK;
}
void life_try_to_serve(uint32_t s) {
    node *n = &life.node[s];
    if (!n->leads || n->serves || n->asked) return;
    n->asked = true;
    dataplane_serve_shard(n->d, 0, served, n);
}
