/* failover_joins.c: a server of failover.c that has no copy makes one while clients change the shard. All that the owner
 * has comes to it in one step: the calls are those that the copy's thread makes (native/client/copy.c), and the answers of
 * a SCAN are taken from the owner's table. What follows comes by the link. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../replication/copies.h"
#include "failover_life.h"
#include "../../replication/replication.h"

enum { CLIENTS_MOST = 16 };

static bool knows(uint32_t owner, const config *c) {
    const node *n = &life.node[owner];
    return runs(owner) && n->leads && n->serves && shard_at(owner) && &life.at[n->config] == c;
}

/* ---- in one step ---- */

static uint32_t list_entries(uint32_t owner, uint8_t *to) {
    uint32_t at = 0;
    for (int k = 0; k < HISTORY_ALL; k++) {
        char name[16];
        size_t n = (size_t)snprintf(name, sizeof name, "key-%d", k);
        table_entry e;
        uint64_t hash = fkv_hash_key(&HASH_SEED, 0, name, n);
        if (table_committed(shard_at(owner)->table, 0, name, n, hash, &e) != FKV_OK) continue;
        fkv_scan_entry s = { .version = e.version,
                             .expiry_ms = e.expiry_ms,
                             .value_bytes = e.value_bytes,
                             .user_flags = e.user_flags,
                             .key_bytes = e.key_bytes,
                             .codec = e.codec,
                             .has_value = 1 };
        memcpy(to + at, &s, sizeof s);
        memcpy(to + at + sizeof s, name, n);
        memcpy(to + at + sizeof s + n, e.value, e.value_bytes);
        at += (uint32_t)(sizeof s + n) + e.value_bytes;
    }
    return at;
}

typedef struct sequences {
    dataplane_sequence list[CLIENTS_MOST];
    uint32_t count;
} sequences;
static void add_sequence(void *ctx, uint64_t client, uint64_t sequence) {
    sequences *s = ctx;
    CHECK(s->count < CLIENTS_MOST);
    s->list[s->count++] = (dataplane_sequence){ client, sequence };
}

static void done(void *ctx, fkv_status s, void *result) {
    CHECK_EQ(s, FKV_OK);
    free(result);
    *(bool *)ctx = true;
}
static void ignored(void *ctx, fkv_status s, void *result) {
    (void)ctx, (void)s;
    free(result);
}

/* Of what is listed, all that the table does not have. */
static uint32_t compare(node *n, uint8_t *entries, uint32_t bytes) {
    bool same[HISTORY_ALL], compared = false;
    uint64_t version[HISTORY_ALL];
    fkv_scan_entry e;
    const uint8_t *key, *value;
    dataplane_page page = {
        .entries = entries, .bytes = bytes, .to = (uint64_t)1 << 32, .same = same, .version = version
    };
    for (uint32_t at = 0; wire_next_scan_entry(entries, bytes, &at, &e, &key, &value);) page.count++;
    dataplane_compare(n->d, 0, &page, done, &compared);
    while (!compared) life_node_turn(n);
    uint32_t left = 0;
    for (uint32_t at = 0, before = 0, i = 0; wire_next_scan_entry(entries, bytes, &at, &e, &key, &value); i++) {
        if (!same[i]) {
            memmove(entries + left, entries + before, at - before);
            left += at - before;
        }
        life.counts->kept += same[i];
        before = at;
    }
    life.counts->bases++;
    return left;
}

static uint64_t opens(uint32_t s) {
    node *n = &life.node[s];
    if (!n->base) return life_opens(s, life.at[n->config].epoch);
    n->left = n->closed = n->leads = n->serves = n->asked = n->required = n->unknown = n->suspects = false;
    return n->id;
}

static void begin(uint32_t s, uint32_t owner) {
    static uint8_t entries[HISTORY_ALL * (HISTORY_VALUE + 100)];
    node *n = &life.node[s], *o = &life.node[owner];
    bool imported = false, base = n->base;
    uint64_t id = opens(s);
    n->base = false;
    life_node_turn(o); /* what is ready takes effect */
    shard *from = shard_at(owner);
    if (!from || shard_status(o->w, from) != FKV_OK || repl_join(from, id) != FKV_OK) {
        life_leaves(s);
        return;
    }
    sequences q = { .count = 0 };
    dedup_each(&o->w->dedup, from->slot, add_sequence, &q);
    uint64_t doubt_ns = dedup_doubt_ns(&o->w->dedup, from->slot), now = o->w->now_ns;
    dataplane_join at = { .id = id,
                          .lsn = from->repl.owner.committed,
                          .epoch = from->repl.owner.epoch,
                          .doubt_ms = doubt_ns > now ? (uint32_t)((doubt_ns - now) / MS + 1) : 0,
                          .sequence = q.list,
                          .sequences = q.count };
    uint32_t bytes = list_entries(owner, entries);
    if (base) bytes = compare(n, entries, bytes);
    if (base && any(8) == 0) {
        life_leaves(s); /* in the middle */
        return;
    }
    dataplane_import(n->d, 0, entries, bytes, done, &imported);
    while (!imported) life_node_turn(n);
    char text[32];
    snprintf(text, sizeof text, "sim:server-%u", owner);
    dataplane_owner_address a = { FAB_SIM, text, 0 };
    dataplane_follow_copy(n->d, 0, &at, &a, 1, ignored, NULL);
    while (!copy_at(s)) life_node_turn(n);
    life.counts->joins++;
}

/* ---- from then on ---- */

/* Of an owner, of this copy of a server, in this config. */
typedef struct wish {
    uint32_t server, owner, config;
    uint64_t id;
} wish;

/* It has all that its owner has committed, and that waits for it: the metadata is asked, by that owner and in the config
 * in which it was required. */
static void settled(void *ctx, fkv_status status, void *result) {
    wish w = *(wish *)ctx;
    node *n = &life.node[w.server];
    const node *o = &life.node[w.owner];
    free(ctx);
    free(result);
    if (n->id != w.id) return; /* it has begun anew */
    n->required = false;
    if (status == FKV_OK && !n->gone && o->leads && o->config == w.config) life_propose(ADD, w.owner, w.server);
}

/* What an owner wants of a copy that joins, or of one that is gone and will not. */
static void ask_for(uint32_t s, uint32_t owner) {
    node *n = &life.node[s], *o = &life.node[owner];
    int i = replica_place(&shard_at(owner)->repl.owner, n->id);
    uint32_t standing = i < 0 ? REPLICA_NONE : shard_at(owner)->repl.owner.peer[i].standing;
    if (standing == REPLICA_PROPOSED) {
        if (fkv_now_ns() - o->proposed_ns > 200 * MS)
            life_propose(KEEP, owner, s); /* what was lost is known to be lost */
    } else if (n->gone) {
        if (standing != REPLICA_NONE) dataplane_drop_copy(o->d, 0, n->id, ignored, NULL);
    } else if (standing == REPLICA_NONE || (standing == REPLICA_JOINS && n->unknown)) {
        life_leaves(s); /* what it would need is gone: it begins anew */
    } else if (standing == REPLICA_JOINS && !n->required) {
        wish *w = malloc(sizeof *w);
        *w = (wish){ .server = s, .owner = owner, .config = o->config, .id = n->id };
        n->required = true;
        dataplane_require_copy(o->d, 0, n->id, settled, w);
    }
}

void life_join(uint32_t s) {
    node *n = &life.node[s];
    const config *c = n->gone ? now_in_force() : &life.at[n->config];
    if (c->owner == s || has_copy(c, s) || !knows(c->owner, c)) return;
    if (n->gone || (runs(s) && !n->left))
        ask_for(s, c->owner);
    else if (runs(s) && n->closed && any(4) == 0)
        begin(s, c->owner);
}
