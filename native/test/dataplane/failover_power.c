/* failover_power.c: the end of a durable life of failover.c: all servers lose their power at once. The logs themselves are
 * compared with what clients have seen, and so is the copy that each server makes of its disk. */
#include "../../log/snapshot_file.h"
#include "failover_life.h"
#include "logged.h"
#include <stdio.h>
#include <string.h>

static logged logs[SERVERS];

void life_power_goes(void) {
    life.off_ns = fkv_now_ns();
    for (uint32_t s = 0; s < SERVERS; s++) {
        const backup *b = copy_at(s);
        life.node[s].disk.off = true;
        life.node[s].empty = b && b->place.prepared == 0 && shard_at(s)->repl.owner.last == 0;
    }
}

static void read_log(uint32_t s) {
    memory_disk *d = &life.node[s].disk;
    wal_identity of = { .instance = s };
    logged_read(&d->table, &of, 0, life.node[s].id, &logs[s]);
    CHECK_EQ(logs[s].base, 0);
}
/* It was made of what another server had, and of its log some may be given back. */
static bool has_snapshot(uint32_t s) {
    char name[WAL_NAME_MAX];
    snapshot_name(name, 0, life.node[s].id);
    return memory_disk_file(&life.node[s].disk, name);
}

/* Every change that was answered, or that a GET has returned. */
static void has_what_was_seen(const logged *l) {
    for (uint32_t i = 1; i <= life.history.count; i++) {
        const asked *a = &life.history.all[i];
        if (a->kind != ASKED_GET && a->version) CHECK(logged_find(l, a->version));
    }
}

/* A large value that was replaced before a copy joined goes there as its removal (sender.c). What replaced it follows. */
static bool is_replaced(const logged *l, uint64_t lsn) {
    if (l->at[lsn].head.kind != FKV_RECORD_DELETE) return false;
    for (uint64_t later = lsn + 1; later <= l->last; later++)
        if (strcmp(l->at[later].key, l->at[lsn].key) == 0) return true;
    return false;
}

/* Whoever is in the same epoch has the same records: so what the longest has beyond another is all that they differ in. */
static void are_the_same(const logged *a, const logged *b) {
    if (a->epoch != b->epoch) return;
    for (uint64_t lsn = 1; lsn <= a->last && lsn <= b->last; lsn++) {
        CHECK_EQ(a->at[lsn].head.version, b->at[lsn].head.version);
        CHECK(a->at[lsn].value_crc == b->at[lsn].value_crc || is_replaced(a, lsn) || is_replaced(b, lsn));
    }
}

/* As the only copy, which takes all that it has for committed. */
dataplane_recovered life_comes_back(uint32_t s) {
    node *n = &life.node[s];
    uint32_t count;
    n->id = now_in_force()->id[s];
    memory_disk_on(&n->disk);
    life_node_starts(s, NULL);
    const dataplane_recovered *found = dataplane_get_recovered(n->d, &count);
    if (count == 0 && n->empty) return (dataplane_recovered){ 0 };
    const dataplane_recovered r = *found;
    CHECK(count == 1 && r.id == n->id);
    if (!r.whole) check_failed(__FILE__, __LINE__, r.why);
    backup_commit(copy_at(s), r.prepared);
    return r;
}

static void has_in_its_table_what_was_seen(uint32_t s) {
    static history as_it_was;
    as_it_was = life.history;
    for (int k = 0; k < HISTORY_ALL; k++) {
        char name[16];
        size_t bytes = (size_t)snprintf(name, sizeof name, "key-%d", k);
        table_entry e = { 0 };
        uint64_t hash = fkv_hash_key(&HASH_SEED, 0, name, bytes);
        fkv_status status = table_committed(shard_at(s)->table, 0, name, bytes, hash, &e);
        history_end(&life.history, history_begin(&life.history, ASKED_GET, k, 0), status, e.version, e.value,
                    e.value_bytes);
    }
    life.history = as_it_was; /* others may have less that nobody has seen */
}

/* Its log alone has it, too. */
static void log_has_what_was_seen(uint32_t s, const dataplane_recovered *r) {
    read_log(s);
    has_what_was_seen(&logs[s]);
    CHECK(r->epoch == logs[s].epoch && r->prepared == logs[s].last);
    for (uint32_t t = 0; t < s; t++)
        if (logs[t].begun) are_the_same(&logs[s], &logs[t]);
    life.counts->logs++;
}

void life_disks_have_all(void) {
    const config *c = now_in_force();
    memset(logs, 0, sizeof logs);
    for (uint32_t s = 0; s < SERVERS; s++) {
        if (!has_copy(c, s)) continue;
        dataplane_recovered r = life_comes_back(s);
        if (r.id) has_in_its_table_what_was_seen(s);
        dataplane_destroy(life.node[s].d);
        if (r.id == 0)
            has_what_was_seen(&logs[s]); /* nothing was */
        else if (has_snapshot(s))
            life.counts->from_snapshots++;
        else
            log_has_what_was_seen(s, &r);
    }
    life_disks_free();
}

void life_disks_free(void) {
    for (uint32_t s = 0; s < SERVERS; s++) memory_disk_free(&life.node[s].disk);
}
