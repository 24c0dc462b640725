/* replica_disks.c: of the machine of replica_machine.c, copies that have logs: what their disks write, which lags behind
 * what they have prepared, and what there is when all servers have lost their power.
 *
 * One step writes one section: a record, or the beginning of an epoch, which cuts off what the copy has dropped. What is
 * in a buffer or under way is not on the disk, so it needs no steps of its own.
 * After a loss of power any of the servers come back, the others never do. Of the copies in sync that are back, the one
 * with the highest (epoch, lsn) on its disk leads the next epoch; with it are in sync those whose disks have the
 * beginning of the same epoch. */
#include <string.h>
#include "replica_world.h"

/* ---- what a disk writes ---- */

static void begin_epoch(const machine *m, server *v, replica_log *l, uint32_t epoch) {
    log_disk *d = &v->disk;
    if (d->right < v->joined) { /* what the copy was made from comes first */
        if (!m->wrong->joins_without_its_beginning) memcpy(d->log, v->log, v->joined * sizeof *d->log);
        d->last = d->right = v->joined;
    }
    if (!m->wrong->epoch_cuts_nothing_off) d->last = d->right;
    /* What is in the buffer is written before. */
    while (m->set->early && d->last < prepared_of(v)) d->log[d->last] = v->log[d->last], d->right = ++d->last;
    for (uint32_t at = d->last; at < LOG; at++) d->log[at] = (record){ 0 };
    d->epoch = epoch;
    replica_logged(l, epoch, d->last + 1, 0);
    world_buffers(m, v);
}

void step_disk(const machine *m, const world *x, int s) {
    world n = *x;
    server *v = &n.server[s];
    log_disk *d = &v->disk;
    bool owns = v->role == OWNER;
    replica_log *l = owns ? &v->owner.log : &v->copy.log;
    uint32_t epoch = owns ? v->owner.epoch : v->copy.epoch;
    const char *what = "has on its disk record";
    uint32_t number = d->last + 1;
    if (l->epoch != epoch) {
        begin_epoch(m, v, l, epoch);
        what = "has on its disk the beginning of epoch";
        number = epoch;
    } else if (d->last < prepared_of(v)) {
        uint32_t skips = m->wrong->disk_skips_a_record && d->last + 1 < prepared_of(v);
        d->log[d->last] = v->log[d->last + skips];
        d->right = ++d->last;
        replica_logged(l, epoch, d->last, 1);
    } else {
        return;
    }
    if (owns)
        world_settle(m, &n, s, what, number);
    else
        world_reach(m, &n, s, what, number);
}

/* ---- loss of power ---- */

static bool is_higher(const log_disk *a, const log_disk *b) {
    return a->epoch > b->epoch || (a->epoch == b->epoch && a->last > b->last);
}

void world_wakes(const machine *m, world *x, int s) {
    const server was = x->server[s];
    server *v = &x->server[s];
    const replica_log log = { .kept = 1, .epoch = was.disk.epoch, .logged = was.disk.last };
    uint32_t joined = was.joined < was.disk.last ? was.joined : was.disk.last;
    *v = (server){ .alive = 1, .life = was.life, .applied = x->config, .joined = joined, .disk = was.disk };
    memcpy(v->log, was.disk.log, sizeof v->log);
    v->disk.right = v->disk.last;
    v->copy = (replica_backup){ .epoch = log.epoch, .prepared = log.logged, .log = log };
    if (m->wrong->restart_claims_its_memory) v->copy.prepared = prepared_of(&was);
}

/* `back`: servers whose disks are read again. */
static void lose_power(const machine *m, const world *x, uint32_t back) {
    world n = *x;
    int leads = -1;
    n.powers--;
    memset(n.link, 0, sizeof n.link);
    for (int i = 0; i < CHANGES; i++) memset(n.change[i].copy, 0, sizeof n.change[i].copy);
    n.reader = (reader){ .gets_left = n.reader.gets_left };
    for (int s = 0; s < SERVERS; s++) {
        if (back >> s & 1)
            world_wakes(m, &n, s);
        else
            n.server[s] = (server){ .life = n.server[s].life, .copy.log.kept = 1 };
        if ((back >> s & 1) && (leads < 0 || is_higher(&n.server[s].disk, &n.server[leads].disk))) leads = s;
    }
    entry *next = &n.entry[++n.config];
    *next = (entry){ .epoch = n.entry[x->config].epoch + 1, .owner = id_of(&n, leads) };
    for (int s = 0; s < SERVERS; s++)
        if (back >> s & 1) next->in_sync |= 1u << id_of(&n, s);
    world_reach(m, &n, TIME, "has passed without power; on the disks were servers", back);
}

void step_power(const machine *m, const world *x) {
    uint32_t in_sync = 0;
    if (m->set->early) return lose_power_early(m, x);
    for (int s = 0; s < SERVERS; s++)
        if (has_id(x->entry[x->config].in_sync, id_of(x, s))) in_sync |= 1u << s;
    for (uint32_t back = 1; x->powers && x->config < CONFIGS && back < 1u << SERVERS; back++)
        if ((back & ~in_sync) == 0) lose_power(m, x, back);
}
