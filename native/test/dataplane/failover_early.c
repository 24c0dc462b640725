/* failover_early.c: the end of a life of failover.c in which changes were answered before disks had them: all servers lose
 * their power, and the longest log leads (R-leader, docs/early-answers.md). It lacks only what was answered a moment
 * before, and whatever came after that. */
#include <stdio.h>
#include "failover_life.h"

/* What was answered before that is on a disk: the time of a sync, that of a server that stands still with a full buffer,
 * and luck. */
static const uint64_t LATELY_NS = (SYNC_MS + 120 + 100) * MS;

typedef enum { UNKNOWN, IS_THERE, IS_LOST } fate;

/* Of a change that was answered. An entry that is there has all of its key up to its version; of one that is not a
 * removal may be the reason. */
static fate fate_of(const asked *a, uint64_t present) {
    if (present) return present >= a->version ? IS_THERE : IS_LOST;
    if (a->kind == ASKED_DELETE) return UNKNOWN;
    for (uint32_t i = 1; i <= life.history.count; i++) {
        const asked *d = &life.history.all[i];
        bool behind = d->version == 0 ? d->end != ASKED_WITHOUT_EFFECT : d->version > a->version;
        if (d->key == a->key && d->kind == ASKED_DELETE && behind) return UNKNOWN;
    }
    return IS_LOST;
}

/* The version of each key's entry; 0: it has none. */
static void read_table(const shard *s, uint64_t *version) {
    for (int k = 0; k < HISTORY_ALL; k++) {
        char name[16];
        size_t bytes = (size_t)snprintf(name, sizeof name, "key-%d", k);
        table_entry e = { 0 };
        uint64_t hash = fkv_hash_key(&HASH_SEED, 0, name, bytes);
        version[k] = table_committed(s->table, 0, name, bytes, hash, &e) == FKV_OK ? e.version : 0;
    }
}

static void judge(const uint64_t *version) {
    static fate of[HISTORY_ASKED];
    uint64_t first_ns = UINT64_MAX; /* when the first of what is lost was answered */
    for (uint32_t i = 1; i <= life.history.count; i++) {
        const asked *a = &life.history.all[i];
        bool answered = a->kind != ASKED_GET && a->end == ASKED_DONE && a->version;
        of[i] = answered ? fate_of(a, version[a->key]) : UNKNOWN;
        if (of[i] != IS_LOST) continue;
        life.counts->lost_early++;
        CHECK(a->ended_ns + LATELY_NS >= life.off_ns);
        if (a->ended_ns < first_ns) first_ns = a->ended_ns;
    }
    for (uint32_t i = 1; i <= life.history.count; i++)
        CHECK(of[i] != IS_THERE || life.history.all[i].began_ns <= first_ns);
}

void life_disks_have_all_but_the_last(void) {
    const config *c = now_in_force();
    uint64_t version[HISTORY_ALL] = { 0 };
    dataplane_recovered best = { 0 };
    for (uint32_t s = 0; s < SERVERS; s++) {
        if (!has_copy(c, s)) continue;
        dataplane_recovered r = life_comes_back(s);
        bool is_longer = r.id && (r.epoch > best.epoch || (r.epoch == best.epoch && r.prepared >= best.prepared));
        if (is_longer) {
            best = r;
            read_table(shard_at(s), version);
        }
        dataplane_destroy(life.node[s].d);
    }
    judge(version);
    life_disks_free();
}
