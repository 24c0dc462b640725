/* server_result.c: what the data plane answers, as JavaScript objects. */
#include "../replication/rules/replica.h"
#include "server.h"

static bool add_object(napi_env env, napi_value list, uint32_t i, napi_value *out) {
    return napi_create_object(env, out) == napi_ok && napi_set_element(env, list, i, *out) == napi_ok;
}

static bool set_array(napi_env env, napi_value object, const char *name, napi_value *out) {
    return napi_create_array(env, out) == napi_ok && napi_set_named_property(env, object, name, *out) == napi_ok;
}

napi_value server_addresses(napi_env env, const dataplane *d, const dataplane_config *c) {
    napi_value list, item;
    if (napi_create_array(env, &list) != napi_ok) return NULL;
    for (uint32_t i = 0; i < c->listens; i++) {
        if (!add_object(env, list, i, &item)) return NULL;
        if (!binding_set_provider(env, item, c->listen[i].provider, c->listen[i].device)) return NULL;
        if (!binding_set_text(env, item, "address", dataplane_address(d, i))) return NULL;
        if (!binding_set_number(env, item, "worker", c->listen[i].worker)) return NULL;
    }
    return list;
}

static bool set_region(napi_env env, napi_value o, const dataplane_region *r) {
    return binding_set_provider(env, o, r->provider, r->device) &&
           binding_set_text(env, o, "kind", r->kind == TABLE_INDEX ? "index" : "heap") &&
           binding_set_number(env, o, "segment", r->segment) && binding_set_number(env, o, "tag", r->tag) &&
           binding_set_number(env, o, "bytes", (double)r->bytes) && binding_set_u64(env, o, "remoteAddress", r->addr) &&
           binding_set_u64(env, o, "rkey", r->rkey);
}

napi_value server_layout(napi_env env, const dataplane_layout *l) {
    napi_value o, regions, region;
    if (napi_create_object(env, &o) != napi_ok) return NULL;
    bool good = binding_set_number(env, o, "shard", l->shard) && binding_set_number(env, o, "epoch", l->epoch) &&
                binding_set_u64(env, o, "incarnation", l->incarnation) &&
                binding_set_number(env, o, "layoutEpoch", l->layout_epoch) &&
                binding_set_number(env, o, "buckets", l->buckets) && set_array(env, o, "regions", &regions);
    for (uint32_t i = 0; good && i < l->count; i++) {
        good = add_object(env, regions, i, &region) && set_region(env, region, &l->region[i]);
    }
    return good ? o : NULL;
}

/* Those that are not 0. Statuses of one name are one property, their sum. */
static bool set_statuses(napi_env env, napi_value o, const uint64_t count[FKV_STATUS_COUNT]) {
    for (int i = 0; i < FKV_STATUS_COUNT; i++) {
        uint64_t sum = fkv_status_count(count, (fkv_status)i);
        if (sum && !binding_set_number(env, o, fkv_status_name((fkv_status)i), (double)sum)) return false;
    }
    return true;
}

static bool set_refused_of(napi_env env, napi_value all, const char *kind, const uint64_t count[FKV_STATUS_COUNT]) {
    napi_value o;
    uint64_t sum = 0;
    for (int i = 0; i < FKV_STATUS_COUNT; i++) sum += count[i];
    return sum == 0 || (napi_create_object(env, &o) == napi_ok && set_statuses(env, o, count) &&
                        napi_set_named_property(env, all, kind, o) == napi_ok);
}

static bool set_refused_by_op(napi_env env, napi_value o, const uint64_t count[FKV_OP_COUNT][FKV_STATUS_COUNT]) {
    napi_value all;
    if (napi_create_object(env, &all) != napi_ok) return false;
    for (uint8_t i = 1; i < FKV_OP_COUNT; i++) {
        if (fkv_op_reported(i) && !set_refused_of(env, all, fkv_ops[i].name, count[i])) return false;
    }
    return napi_set_named_property(env, o, "refusedOf", all) == napi_ok;
}

/* Counts by operation, as the property `name`. */
static bool set_by_op(napi_env env, napi_value o, const char *name, const uint64_t count[FKV_OP_COUNT]) {
    napi_value all;
    if (napi_create_object(env, &all) != napi_ok) return false;
    for (uint8_t i = 1; i < FKV_OP_COUNT; i++) {
        if (fkv_op_reported(i) && !binding_set_number(env, all, fkv_ops[i].name, (double)count[i])) return false;
    }
    return napi_set_named_property(env, o, name, all) == napi_ok;
}

static bool set_counts(napi_env env, napi_value o, const dataplane_worker_stats *g) {
    napi_value refused, clients_over;
    if (napi_create_object(env, &refused) != napi_ok || napi_create_object(env, &clients_over) != napi_ok) return false;
    if (!set_statuses(env, refused, g->refused)) return false;
    for (int p = 1; p < FAB_PROVIDER_COUNT; p++) {
        if (g->clients_over[p] == 0) continue;
        if (!binding_set_number(env, clients_over, fab_provider_name((fab_provider)p), g->clients_over[p]))
            return false;
    }
    return set_by_op(env, o, "requests", g->requests) &&
           napi_set_named_property(env, o, "refused", refused) == napi_ok && set_refused_by_op(env, o, g->refused_of) &&
           napi_set_named_property(env, o, "clientsOver", clients_over) == napi_ok;
}

static bool set_reports(napi_env env, napi_value of, const dataplane_reports *r) {
    napi_value o;
    return napi_create_object(env, &o) == napi_ok && binding_set_number(env, o, "hits", (double)r->hits) &&
           binding_set_number(env, o, "misses", (double)r->misses) &&
           binding_set_number(env, o, "reads", (double)r->reads) &&
           binding_set_number(env, o, "readBytes", (double)r->read_bytes) &&
           binding_set_number(env, o, "followedReads", (double)r->followed) &&
           binding_set_number(env, o, "tornReads", (double)r->torn) &&
           binding_set_number(env, o, "lateDiscards", (double)r->late) &&
           binding_set_number(env, o, "foreignReads", (double)r->foreign) &&
           binding_set_number(env, o, "twoSidedGets", (double)r->two_sided) &&
           napi_set_named_property(env, of, "reported", o) == napi_ok;
}

static bool set_latency(napi_env env, napi_value o, const char *name, const dataplane_latency *of) {
    napi_value l, below;
    bool good = napi_create_object(env, &l) == napi_ok &&
                napi_create_array_with_length(env, of->count ? FKV_HISTOGRAM_BOUNDS : 0, &below) == napi_ok;
    for (uint32_t i = 0; good && of->count && i < FKV_HISTOGRAM_BOUNDS; i++) {
        napi_value n;
        good = napi_create_double(env, (double)of->below[i], &n) == napi_ok &&
               napi_set_element(env, below, i, n) == napi_ok;
    }
    return good && napi_set_named_property(env, l, "below", below) == napi_ok &&
           binding_set_number(env, l, "sum", (double)of->sum_ns) &&
           binding_set_number(env, l, "count", (double)of->count) &&
           binding_set_number(env, l, "p50", (double)of->p50_ns) &&
           binding_set_number(env, l, "p99", (double)of->p99_ns) &&
           binding_set_number(env, l, "max", (double)of->max_ns) && napi_set_named_property(env, o, name, l) == napi_ok;
}

static bool set_latencies(napi_env env, napi_value o, const dataplane_worker_stats *g) {
    napi_value all;
    if (napi_create_object(env, &all) != napi_ok) return false;
    for (uint8_t i = 1; i < FKV_OP_COUNT; i++) {
        if (fkv_op_reported(i) && !set_latency(env, all, fkv_ops[i].name, &g->latency[i])) return false;
    }
    return napi_set_named_property(env, o, "latencyNs", all) == napi_ok;
}

static bool set_flag(napi_env env, napi_value o, const char *name, bool flag) {
    napi_value v;
    return napi_get_boolean(env, flag, &v) == napi_ok && napi_set_named_property(env, o, name, v) == napi_ok;
}

static bool set_log(napi_env env, napi_value worker, const dataplane_log_stats *s) {
    napi_value o;
    return napi_create_object(env, &o) == napi_ok && binding_set_number(env, o, "bytes", (double)s->bytes) &&
           binding_set_number(env, o, "freeFiles", s->free_files) && set_flag(env, o, "diskFull", s->disk_full) &&
           set_latency(env, o, "syncNs", &s->sync) && binding_set_number(env, o, "records", (double)s->records) &&
           napi_set_named_property(env, worker, "log", o) == napi_ok;
}

static bool set_worker(napi_env env, napi_value o, const dataplane_worker_stats *g) {
    return binding_set_number(env, o, "worker", g->worker) && binding_set_number(env, o, "threadId", g->thread_id) &&
           binding_set_number(env, o, "clients", g->clients) &&
           binding_set_number(env, o, "blockedClients", g->blocked) && set_counts(env, o, g) &&
           binding_set_number(env, o, "duplicates", (double)g->duplicates) &&
           binding_set_number(env, o, "transfers", (double)g->transfers) &&
           binding_set_polling(env, o, "polling", &g->polling) &&
           (!g->has_responder || binding_set_polling(env, o, "responderPolling", &g->responder_polling)) &&
           binding_set_number(env, o, "readsServed", (double)g->reads_served) && set_reports(env, o, &g->reports) &&
           set_latencies(env, o, g) && (!g->has_log || set_log(env, o, &g->log));
}

static bool set_tenant(napi_env env, napi_value o, const dataplane_tenant_stats *t) {
    return set_by_op(env, o, "answered", t->answered) && set_refused_by_op(env, o, t->refused_of) &&
           set_reports(env, o, &t->reports);
}

/* ReplicaStats of data-plane-stats.ts. */
static bool set_copy(napi_env env, napi_value shard, const dataplane_copy_stats *s) {
    static const char *const standings[] = { [REPLICA_NONE] = "",
                                             [REPLICA_JOINS] = "joins",
                                             [REPLICA_REQUIRED] = "required",
                                             [REPLICA_PROPOSED] = "proposed",
                                             [REPLICA_IN_SYNC] = "in-sync" };
    napi_value o, peers, p;
    bool good = napi_create_object(env, &o) == napi_ok && napi_set_named_property(env, shard, "copy", o) == napi_ok &&
                binding_set_text(env, o, "role", s->leads ? "owner" : "backup") &&
                binding_set_hex64(env, o, "id", s->id) && binding_set_number(env, o, "epoch", s->epoch) &&
                binding_set_number(env, o, "config", s->config) &&
                binding_set_number(env, o, "prepared", (double)s->prepared) &&
                binding_set_number(env, o, "committed", (double)s->committed) &&
                binding_set_number(env, o, "lag", (double)(s->prepared - s->committed)) &&
                set_flag(env, o, "follows", s->follows) && set_array(env, o, "peers", &peers);
    if (good && s->failed != FKV_OK) good = binding_set_text(env, o, "failed", fkv_status_name(s->failed));
    for (uint32_t i = 0; good && i < s->peers; i++) {
        good = add_object(env, peers, i, &p) && binding_set_hex64(env, p, "id", s->peer[i].id) &&
               binding_set_text(env, p, "standing", standings[s->peer[i].standing]) &&
               binding_set_number(env, p, "prepared", (double)s->peer[i].prepared) &&
               binding_set_number(env, p, "leaseLeftMs", (double)(s->peer[i].lease_left_ns / 1000000u));
        if (good && s->peer[i].linked != FAB_NONE)
            good = binding_set_text(env, p, "linked", fab_provider_name(s->peer[i].linked));
    }
    return good;
}

static bool set_shard(napi_env env, napi_value o, const dataplane_shard_stats *s) {
    const table_stats *t = &s->table;
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        { "shard", s->shard },
        { "worker", s->worker },
        { "entries", t->entries },
        { "keyValueBytes", t->key_value_bytes },
        { "indexBytes", t->index_bytes },
        { "heapBytes", t->heap_bytes },
        { "memoryBytes", t->memory_bytes },
        { "usedBytes", t->used_bytes },
        { "quarantineBytes", t->quarantine_bytes },
        { "freeBytes", t->free_bytes },
        { "buckets", t->buckets },
        { "overflowBuckets", t->overflow_buckets },
        { "longestChain", t->longest_chain },
        { "splits", t->splits },
        { "expired", t->expired },
        { "evacuated", t->evacuated },
        { "prepared", t->prepared },
        { "privateBytes", t->private_bytes },
        { "indexFreeBytes", t->index_free_bytes },
        { "liveBytes", t->live_extent_bytes },
        { "preparedBytes", t->prepared_bytes },
        { "overflowBytes", t->overflow_bytes },
        { "slackBytes", t->slack_bytes },
        { "smallPageBytes", s->page_bytes[FKV_PAGES_SMALL] },
        { "transparentPageBytes", s->page_bytes[FKV_PAGES_TRANSPARENT] },
        { "reservedPageBytes", s->page_bytes[FKV_PAGES_RESERVED] },
        { "retiredBytes", s->retired_bytes },
        { "heldBytes", s->held_bytes },
    };
    if (s->copy.known && !set_copy(env, o, &s->copy)) return false;
    if (s->snapshot_error && !binding_set_number(env, o, "snapshotErrno", -s->snapshot_error)) return false;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!binding_set_number(env, o, numbers[i].name, (double)numbers[i].value)) return false;
    }
    return set_flag(env, o, "serving", s->serving);
}

napi_value server_stats(napi_env env, const dataplane_stats *s) {
    napi_value o, workers, tenants, shards, item;
    if (napi_create_object(env, &o) != napi_ok) return NULL;
    static const char *const pages[] = {
        [FKV_PAGES_SMALL] = "small", [FKV_PAGES_TRANSPARENT] = "transparent", [FKV_PAGES_RESERVED] = "reserved"
    };
    if (!binding_set_text(env, o, "pages", pages[s->pages])) return NULL;
    if (!binding_set_number(env, o, "descriptorsMissed", (double)s->descriptors_missed)) return NULL;
    if (!set_array(env, o, "workers", &workers) || !set_array(env, o, "shards", &shards)) return NULL;
    for (uint32_t i = 0; i < s->workers; i++) {
        if (!add_object(env, workers, i, &item) || !set_worker(env, item, &s->worker[i])) return NULL;
    }
    if (!set_array(env, o, "tenants", &tenants)) return NULL;
    for (uint32_t i = 0; i < s->tenants; i++) {
        if (!add_object(env, tenants, i, &item) || !set_tenant(env, item, &s->tenant[i])) return NULL;
    }
    for (uint32_t i = 0; i < s->shards; i++) {
        if (!add_object(env, shards, i, &item) || !set_shard(env, item, &s->shard[i])) return NULL;
    }
    return o;
}

napi_value server_copy_stats(napi_env env, const shard_copy_stats *s) {
    napi_value o;
    return napi_create_object(env, &o) == napi_ok && binding_set_number(env, o, "entries", s->entries) &&
                   binding_set_number(env, o, "bytes", s->bytes) && binding_set_number(env, o, "kept", s->kept) &&
                   binding_set_number(env, o, "reads", s->reads) &&
                   binding_set_number(env, o, "twoSidedGets", s->two_sided)
               ? o
               : NULL;
}

napi_value server_required(napi_env env, uint64_t lsn) {
    napi_value o;
    return napi_create_object(env, &o) == napi_ok && binding_set_number(env, o, "lsn", (double)lsn) ? o : NULL;
}
