/* calls.c: calls from other threads, as jobs that are posted to the thread that owns what they are about. Those about
 * copies are in replication/calls.c. */
#include <stdlib.h>
#include "../dataplane/command.h"
#include "../dataplane/latency.h"
#include "../replication/replication.h"
#include "../storage/memory.h"
#include "connection.h"
#include "life.h"

void dataplane_open_shard(dataplane *d, const dataplane_shard *o, dataplane_done done, void *ctx) {
    command *c = command_make(d, o->shard, memory_open, done, ctx);
    if (!c) return;
    c->open = *o;
    c->opens = repl_open;
    bool good = o->shard < d->c.shards && o->worker < d->c.workers && o->epoch <= DATAPLANE_EPOCH_MAX &&
                o->memory_bytes >= TABLE_MEMORY_MIN && (!o->durable || d->c.log.disk);
    pthread_mutex_lock(&d->lock);
    fkv_status s = !good ? FKV_BAD_REQUEST : command_place_status(d, o->shard);
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

void dataplane_serve_shard(dataplane *d, uint32_t shard, dataplane_done done, void *ctx) {
    command_ask(d, shard, shard_serve, PLACE_OPEN, done, ctx);
}
void dataplane_close_shard(dataplane *d, uint32_t shard, dataplane_done done, void *ctx) {
    command_ask(d, shard, shard_close, PLACE_CLOSING, done, ctx);
}
void dataplane_pause_shard(dataplane *d, uint32_t shard, dataplane_done done, void *ctx) {
    command_ask(d, shard, shard_pause, PLACE_OPEN, done, ctx);
}
void dataplane_get_layout(dataplane *d, uint32_t shard, dataplane_done done, void *ctx) {
    command_ask(d, shard, shard_layout, PLACE_OPEN, done, ctx);
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
        if (!(made[n] = access_make(d->worker[n], clients_judge, from))) s = FKV_NO_MEMORY;
    access_rules *keys = s == FKV_OK ? access_make(NULL, NULL, from) : NULL;
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
                                    .snapshot_error = s->repl.snapshot.error };
    table_get_stats(s->table, &out->table);
    repl_shard_stats(s, &out->copy);
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
    if ((out->has_log = w->repl.log)) repl_log_stats(w, &out->log);
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
    command *c = command_make(d, 0, stats_of_worker, done, ctx);
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
