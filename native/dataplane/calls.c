/* calls.c: calls from other threads, as jobs that are posted to the thread that owns what they are about. Which shards
 * there are is kept here too, so that a call for one that is not open is answered without asking a worker. */
#include <stdlib.h>
#include <string.h>
#include "backup.h"
#include "base.h"
#include "command.h"
#include "copies.h"
#include "durable.h"
#include "handover.h"
#include "import.h"
#include "latency.h"
#include "life.h"
#include "memory.h"
#include "recovery.h"
#include "rely.h"
#include "role.h"
#include "snapshots.h"

static command *make(dataplane *d, uint32_t number, void (*run)(job *), dataplane_done done, void *ctx) {
    command *c = calloc(1, sizeof *c);
    if (!c) {
        done(ctx, FKV_NO_MEMORY, NULL);
        return NULL;
    }
    *c = (command){ .job.run = run, .d = d, .done = done, .ctx = ctx, .number = number };
    return c;
}

/* The state of the shard's place as a status; OK when there is an open shard. */
static fkv_status open_status(const dataplane *d, uint32_t shard) {
    if (d->state != DP_RUNNING) return FKV_CLOSED;
    if (shard >= d->c.shards) return FKV_BAD_REQUEST;
    switch ((place_state)d->place[shard].state) {
    case PLACE_OPEN: return FKV_OK;
    case PLACE_CLOSING: return FKV_BUSY;
    default: return FKV_NOT_OWNER;
    }
}

void dataplane_open_shard(dataplane *d, const dataplane_shard *o, dataplane_done done, void *ctx) {
    command *c = make(d, o->shard, memory_open, done, ctx);
    if (!c) return;
    c->open = *o;
    c->opens = shard_open;
    bool good = o->shard < d->c.shards && o->worker < d->c.workers && o->epoch <= DATAPLANE_EPOCH_MAX &&
                o->memory_bytes >= TABLE_MEMORY_MIN && (!o->durable || d->c.log.disk);
    pthread_mutex_lock(&d->lock);
    fkv_status s = !good ? FKV_BAD_REQUEST : open_status(d, o->shard);
    s = s == FKV_NOT_OWNER && d->place[o->shard].state == PLACE_NONE ? FKV_OK
        : s == FKV_OK || s == FKV_NOT_OWNER                          ? FKV_BUSY
                                                                     : s;
    if (s == FKV_OK) {
        d->place[o->shard].state = PLACE_OPENING;
        d->place[o->shard].worker = (uint8_t)o->worker;
        c->w = d->worker[o->worker];
        helper_post(&d->memory, &c->job);
    }
    pthread_mutex_unlock(&d->lock);
    if (s != FKV_OK) command_done(c, s, NULL);
}

/* Under the lock, so that nothing is posted after the threads were told to stop. */
static void post(dataplane *d, command *c, place_state then) {
    uint32_t shard = c->number;
    pthread_mutex_lock(&d->lock);
    fkv_status s = open_status(d, shard);
    if (s == FKV_OK) {
        d->place[shard].state = (uint8_t)then;
        c->w = d->worker[d->place[shard].worker];
        worker_post(c->w, &c->job);
    }
    pthread_mutex_unlock(&d->lock);
    if (s != FKV_OK) command_done(c, s, NULL);
}
static void ask_worker(dataplane *d, uint32_t shard, void (*run)(job *), place_state then, dataplane_done done,
                       void *ctx) {
    command *c = make(d, shard, run, done, ctx);
    if (c) post(d, c, then);
}

void dataplane_serve_shard(dataplane *d, uint32_t shard, dataplane_done done, void *ctx) {
    ask_worker(d, shard, shard_serve, PLACE_OPEN, done, ctx);
}
void dataplane_close_shard(dataplane *d, uint32_t shard, dataplane_done done, void *ctx) {
    ask_worker(d, shard, shard_close, PLACE_CLOSING, done, ctx);
}
void dataplane_pause_shard(dataplane *d, uint32_t shard, dataplane_done done, void *ctx) {
    ask_worker(d, shard, shard_pause, PLACE_OPEN, done, ctx);
}
void dataplane_snapshot(dataplane *d, uint32_t shard, dataplane_done done, void *ctx) {
    ask_worker(d, shard, snapshots_ask, PLACE_OPEN, done, ctx);
}
void dataplane_discard_copy(dataplane *d, uint32_t shard, uint64_t copy, dataplane_done done, void *ctx) {
    command *c = make(d, shard, recovery_discard, done, ctx);
    if (!c) return;
    c->copy = copy;
    pthread_mutex_lock(&d->lock);
    int worker = recovery_worker(d, shard, copy);
    fkv_status s = d->state != DP_RUNNING ? FKV_CLOSED : worker < 0 ? FKV_NOT_FOUND : FKV_OK;
    if (s == FKV_OK) {
        c->w = d->worker[worker];
        worker_post(c->w, &c->job);
    }
    pthread_mutex_unlock(&d->lock);
    if (s != FKV_OK) command_done(c, s, NULL);
}
void dataplane_get_layout(dataplane *d, uint32_t shard, dataplane_done done, void *ctx) {
    ask_worker(d, shard, shard_layout, PLACE_OPEN, done, ctx);
}

void dataplane_seal_shard(dataplane *d, uint32_t shard, uint64_t copy, dataplane_done done, void *ctx) {
    command *c = make(d, shard, shard_seal, done, ctx);
    if (!c) return;
    c->sealed_for = copy;
    post(d, c, PLACE_OPEN);
}
void dataplane_import(dataplane *d, uint32_t shard, const uint8_t *entries, uint32_t bytes, dataplane_done done,
                      void *ctx) {
    command *c = make(d, shard, import_begin, done, ctx);
    if (!c) return;
    c->entries = entries;
    c->entries_bytes = bytes;
    list_init(&c->importing);
    post(d, c, PLACE_OPEN);
}

/* ---- copies ---- */

void dataplane_compare(dataplane *d, uint32_t shard, const dataplane_page *p, dataplane_done done, void *ctx) {
    command *c = make(d, shard, import_begin, done, ctx);
    if (!c) return;
    list_init(&c->importing);
    c->page = calloc(1, sizeof *c->page);
    if (!c->page) {
        command_done(c, FKV_NO_MEMORY, NULL);
        return;
    }
    *c->page = (base_page){ .of = *p, .at = p->from };
    c->entries = p->entries;
    c->entries_bytes = p->bytes;
    post(d, c, PLACE_OPEN);
}

static void follow(dataplane *d, uint32_t shard, void (*run)(job *), const dataplane_join *at,
                   const dataplane_owner_address *address, uint32_t addresses, dataplane_done done, void *ctx) {
    command *c = make(d, shard, run, done, ctx);
    if (!c) return;
    copy_join *k = c->join = calloc(1, sizeof *k + at->sequences * sizeof *k->sequence);
    if (!k) {
        command_done(c, FKV_NO_MEMORY, NULL);
        return;
    }
    k->at = *at;
    k->sequences = at->sequences;
    if (at->sequences) memcpy(k->sequence, at->sequence, at->sequences * sizeof *k->sequence);
    for (uint32_t i = 0; i < addresses && k->addresses < UPLINK_ADDRESSES; i++) {
        if (strlen(address[i].text) >= UPLINK_ADDRESS_MAX) continue;
        uplink_address *a = &k->address[k->addresses++];
        a->provider = address[i].provider;
        a->device = address[i].device;
        strcpy(a->text, address[i].text);
    }
    post(d, c, PLACE_OPEN);
}
void dataplane_follow_copy(dataplane *d, uint32_t shard, const dataplane_join *at,
                           const dataplane_owner_address *address, uint32_t addresses, dataplane_done done, void *ctx) {
    follow(d, shard, role_follow, at, address, addresses, done, ctx);
}
void dataplane_follow_owner(dataplane *d, uint32_t shard, const dataplane_owner_address *address, uint32_t addresses,
                            dataplane_done done, void *ctx) {
    follow(d, shard, role_follow_owner, &(dataplane_join){ 0 }, address, addresses, done, ctx);
}

static_assert((int)DATAPLANE_COPIES_MAX == (int)REPLICA_PEERS, "each has a place");
static void configure(dataplane *d, uint32_t shard, void (*run)(job *), uint64_t incarnation, const dataplane_copies *k,
                      dataplane_done done, void *ctx) {
    command *c = make(d, shard, run, done, ctx);
    if (!c) return;
    bool fits = k->in_sync <= REPLICA_PEERS && k->eligible <= REPLICA_PEERS && k->joining <= REPLICA_PEERS;
    c->lead = fits ? calloc(1, sizeof *c->lead) : NULL;
    if (!c->lead) {
        command_done(c, fits ? FKV_NO_MEMORY : FKV_BAD_REQUEST, NULL);
        return;
    }
    *c->lead = (copy_lead){ .incarnation = incarnation,
                            .handed = k->handed,
                            .config = { .epoch = k->epoch,
                                        .config = k->config,
                                        .min_in_sync = k->min_in_sync,
                                        .alone = k->alone,
                                        .peers = k->in_sync,
                                        .eligible = k->eligible,
                                        .joining = k->joining } };
    for (uint32_t i = 0; i < k->in_sync; i++) c->lead->config.id[i] = k->id[i];
    for (uint32_t i = 0; i < k->eligible; i++) c->lead->config.eligible_id[i] = k->eligible_id[i];
    for (uint32_t i = 0; i < k->joining; i++) c->lead->config.joining_id[i] = k->joining_id[i];
    post(d, c, PLACE_OPEN);
}
void dataplane_lead_copy(dataplane *d, uint32_t shard, uint64_t incarnation, const dataplane_copies *c,
                         dataplane_done done, void *ctx) {
    configure(d, shard, role_lead, incarnation, c, done, ctx);
}
void dataplane_configure_copies(dataplane *d, uint32_t shard, const dataplane_copies *c, dataplane_done done,
                                void *ctx) {
    configure(d, shard, copies_configure, 0, c, done, ctx);
}

static void about_copy(dataplane *d, uint32_t shard, void (*run)(job *), uint64_t id, dataplane_done done, void *ctx) {
    command *c = make(d, shard, run, done, ctx);
    if (!c) return;
    c->copy = id;
    post(d, c, PLACE_OPEN);
}
void dataplane_require_copy(dataplane *d, uint32_t shard, uint64_t id, dataplane_done done, void *ctx) {
    about_copy(d, shard, copies_require, id, done, ctx);
}
void dataplane_drop_copy(dataplane *d, uint32_t shard, uint64_t id, dataplane_done done, void *ctx) {
    about_copy(d, shard, copies_drop, id, done, ctx);
}

void dataplane_rely_on_disk(dataplane *d, uint32_t shard, dataplane_done done, void *ctx) {
    ask_worker(d, shard, rely_begin, PLACE_OPEN, done, ctx);
}

void dataplane_keep_base(dataplane *d, uint32_t shard, uint64_t id, dataplane_done done, void *ctx) {
    about_copy(d, shard, base_keep, id, done, ctx);
}
void dataplane_hand_over(dataplane *d, uint32_t shard, uint64_t copy, dataplane_done done, void *ctx) {
    about_copy(d, shard, handover_begin, copy, done, ctx);
}
void dataplane_step_down(dataplane *d, uint32_t shard, uint64_t id, dataplane_done done, void *ctx) {
    about_copy(d, shard, handover_step_down, id, done, ctx);
}

void dataplane_set_grant_until(dataplane *d, uint64_t boot_ns) {
    __atomic_store_n(&d->grant_until_ns, boot_ns, __ATOMIC_RELAXED);
}

fkv_status dataplane_set_access(dataplane *d, const dataplane_access *from) {
    access_rules *made[DATAPLANE_WORKERS_MAX];
    uint32_t n = 0;
    if (from->secrets < 1 || from->secrets > DATAPLANE_SECRETS_MAX || from->revocations > DATAPLANE_REVOCATIONS_MAX)
        return FKV_BAD_REQUEST;
    pthread_mutex_lock(&d->lock);
    fkv_status s = d->state == DP_RUNNING ? FKV_OK : FKV_CLOSED;
    for (; s == FKV_OK && n < d->c.workers; n++)
        if (!(made[n] = access_make(d->worker[n], from))) s = FKV_NO_MEMORY;
    access_rules *keys = s == FKV_OK ? access_make(NULL, from) : NULL;
    if (s == FKV_OK && !keys) s = FKV_NO_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        if (s == FKV_OK)
            worker_post(d->worker[i], &made[i]->job);
        else
            free(made[i]);
    }
    if (s == FKV_OK) {
        pthread_mutex_lock(&d->keys_lock);
        access_rules *before = d->keys;
        d->keys = keys;
        pthread_mutex_unlock(&d->keys_lock);
        free(before);
    }
    pthread_mutex_unlock(&d->lock);
    return s;
}

void dataplane_set_lease_ms(dataplane *d, uint32_t ms) {
    uint32_t most = d->c.lease_ms;
    __atomic_store_n(&d->lease_ms, ms < 1 ? 1 : ms > most ? most : ms, __ATOMIC_RELAXED);
}

void dataplane_set_table_memory(dataplane *d, uint64_t bytes) {
    pthread_mutex_lock(&d->lock);
    __atomic_store_n(&d->table_memory, bytes, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; d->state == DP_RUNNING && i < d->c.workers; i++)
        if (!__atomic_exchange_n(&d->worker[i]->limiting, true, __ATOMIC_SEQ_CST))
            worker_post(d->worker[i], &d->worker[i]->limits);
    pthread_mutex_unlock(&d->lock);
}

/* ---- stats: one worker after the other adds its own ---- */

static bool add_shard(command *c, const shard *s) {
    dataplane_stats *all = realloc(c->stats, sizeof *all + (c->stats->shards + 1) * sizeof *all->shard);
    if (!all) return false;
    c->stats = all;
    dataplane_shard_stats *out = &all->shard[all->shards++];
    *out = (dataplane_shard_stats){ .shard = s->number,
                                    .worker = s->w->number,
                                    .serving = s->state == SHARD_SERVING,
                                    .memory_waits = s->memory_waits,
                                    .memory_wait_max_ns = s->memory_wait_max_ns,
                                    .snapshot_error = s->snapshot.error };
    table_get_stats(s->table, &out->table);
    copies_stats(s, &out->copy);
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < s->segments[k].top; i++) {
            const segment *m = s->segments[k].at[i];
            if (m) out->page_bytes[m->region.pages] += m->region.bytes;
        }
    for (const segment *m = s->lingering; m; m = m->next) out->retired_bytes += m->region.bytes;
    for (int k = 0; k < 2; k++) out->held_bytes += fkv_files_holes(s->files[k]);
    return true;
}

static void add_reports(dataplane_reports *sum, const dataplane_reports *more) {
    sum->hits += more->hits;
    sum->misses += more->misses;
    sum->reads += more->reads;
    sum->read_bytes += min_u64(more->read_bytes, UINT64_MAX - sum->read_bytes); /* request.c: no figure falls */
    sum->followed += more->followed;
    sum->torn += more->torn;
    sum->late += more->late;
    sum->foreign += more->foreign;
    sum->two_sided += more->two_sided;
}

/* What the worker counts by tenant, to the tenants' sums and, over all tenants, to the worker's. */
static void add_tenants(dataplane_stats *all, dataplane_worker_stats *of_worker, const worker *w) {
    all->tenants = w->d->c.tenants;
    for (uint32_t t = 0; t < all->tenants; t++) {
        const dataplane_tenant_stats *from = &w->tenant[t];
        dataplane_tenant_stats *sum = &all->tenant[t];
        for (int op = 0; op < FKV_OP_COUNT; op++) {
            sum->answered[op] += from->answered[op];
            for (int s = 0; s < FKV_STATUS_COUNT; s++) {
                sum->refused_of[op][s] += from->refused_of[op][s];
                of_worker->refused_of[op][s] += from->refused_of[op][s];
            }
        }
        add_reports(&sum->reports, &from->reports);
        add_reports(&of_worker->reports, &from->reports);
    }
}

static void stats_end(command *c, fkv_status s) {
    dataplane_stats *all = c->stats;
    if (s != FKV_OK) {
        free(all);
        all = NULL;
    }
    command_done(c, s, all);
}

static void stats_of_worker(job *j) {
    command *c = (command *)j;
    worker *w = c->w;
    if (w->stopping) {
        stats_end(c, FKV_CLOSED);
        return;
    }
    dataplane_worker_stats *out = &c->stats->worker[c->stats->workers++];
    *out = w->stats;
    for (const fkv_list *l = w->blocked.next; l != &w->blocked; l = l->next) out->blocked++;
    out->polling = poller_get_stats(&w->poller, w->now_ns);
    for (int i = 0; i < w->polled_count; i++) {
        out->reads_served += fab_reads_served(w->cq[w->polled[i]]);
        const poller *other = fab_poller_of(w->cq[w->polled[i]]);
        if (!other) continue;
        out->has_responder = true;
        out->responder_polling = poller_get_stats(other, w->now_ns);
    }
    latencies_get(w, out->latency);
    add_tenants(c->stats, out, w);
    if ((out->has_log = w->log)) durable_stats(w, &out->log);
    for (const fkv_list *l = w->shards.next; l != &w->shards; l = l->next) {
        if (!add_shard(c, LIST_OF(l, shard, of_worker))) {
            stats_end(c, FKV_NO_MEMORY);
            return;
        }
    }
    if (w->number + 1 == c->d->c.workers) {
        stats_end(c, FKV_OK);
        return;
    }
    c->w = c->d->worker[w->number + 1];
    worker_post(c->w, &c->job);
}

void dataplane_get_stats(dataplane *d, dataplane_done done, void *ctx) {
    command *c = make(d, 0, stats_of_worker, done, ctx);
    if (!c) return;
    c->stats = calloc(1, sizeof *c->stats);
    if (c->stats) {
        c->stats->pages = d->pages;
        c->stats->descriptors_missed = __atomic_load_n(&d->descriptors_missed, __ATOMIC_RELAXED);
    }
    pthread_mutex_lock(&d->lock);
    fkv_status s = d->state != DP_RUNNING ? FKV_CLOSED : c->stats ? FKV_OK : FKV_NO_MEMORY;
    if (s == FKV_OK) {
        c->w = d->worker[0];
        worker_post(c->w, &c->job);
    }
    pthread_mutex_unlock(&d->lock);
    if (s != FKV_OK) stats_end(c, s);
}
