/* failover_power.c: the end of a durable life of failover.c: all servers lose their power at once. Nothing is read back
 * into tables here: the logs themselves are compared with what clients have seen. */
#include "failover_life.h"
#include "logged.h"
#include <string.h>

static logged logs[SERVERS];

void life_power_goes(void) {
    for (uint32_t s = 0; s < SERVERS; s++) life.node[s].disk.off = true;
}

static void read_log(uint32_t s, uint64_t copy) {
    memory_disk *d = &life.node[s].disk;
    wal_identity of = { .instance = s };
    memory_disk_on(d);
    logged_read(&d->table, &of, 0, copy, &logs[s]);
    CHECK_EQ(logs[s].base, 0);
}

/* Every change that was answered, or that a GET has returned. */
static void has_what_was_seen(const logged *l) {
    for (uint32_t i = 1; i <= life.history.count; i++) {
        const asked *a = &life.history.all[i];
        if (a->kind != ASKED_GET && a->version) CHECK(logged_find(l, a->version));
    }
}

/* A large value that was replaced before a copy joined goes there as its removal (feed.c). What replaced it follows. */
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

void life_logs_have_all(void) {
    const config *c = now_in_force();
    for (uint32_t s = 0; s < SERVERS; s++) {
        if (!has_copy(c, s)) continue;
        read_log(s, c->id[s]);
        has_what_was_seen(&logs[s]);
        for (uint32_t t = 0; t < s; t++)
            if (has_copy(c, t)) are_the_same(&logs[s], &logs[t]);
        life.counts->logs++;
    }
    for (uint32_t s = 0; s < SERVERS; s++) memory_disk_free(&life.node[s].disk);
}
