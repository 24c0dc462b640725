/* server_options.c: options of the DataPlane class in. dataplane_create checks them as a whole; here each field is
 * checked, so that the error can name it. */
#include <stdlib.h>
#include <string.h>
#include "server.h"

/* Of a server that copies a shard: longer than any copy takes, which has one connection that is looked at once. */
static const uint64_t TICKET_MS = (uint64_t)24 * 3600 * 1000;

static bool read_u32(napi_env env, napi_value object, const char *name, uint64_t min, uint64_t max, uint32_t *out) {
    uint64_t v;
    if (!binding_number(env, object, name, min, max, &v)) return false;
    *out = (uint32_t)v;
    return true;
}

/* 0 where it is not given. */
static bool read_u32_or(napi_env env, napi_value object, const char *name, uint64_t min, uint32_t *out) {
    uint64_t v;
    if (!binding_number_or(env, object, name, min, DATAPLANE_LEASE_MS_MAX, 0, &v)) return false;
    *out = (uint32_t)v;
    return true;
}

static bool read_bool_or(napi_env env, napi_value object, const char *name, bool *out) {
    bool given;
    if (napi_has_named_property(env, object, name, &given) != napi_ok) return false;
    return !given || binding_bool(env, object, name, out);
}

static bool read_seed(napi_env env, napi_value object, const char *name, fkv_seed *out) {
    napi_value v;
    return binding_field(env, object, name, &v) && binding_seed(env, v, name, out);
}

static bool read_listen(napi_env env, napi_value object, server_options *out) {
    napi_value list, item;
    uint32_t n;
    if (!binding_array(env, object, "listen", &list, &n)) return false;
    if (n > DATAPLANE_LISTENS_MAX) return binding_bad_option(env, "listen may have %d entries", DATAPLANE_LISTENS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        dataplane_listen *l = &out->listen[i];
        if (napi_get_element(env, list, i, &item) != napi_ok || !binding_provider(env, item, &l->provider, &l->device))
            return false;
        if (!binding_text(env, item, "address", out->room[i], SERVER_ADDRESS_MAX)) return false;
        if (!read_u32(env, item, "worker", 0, out->config.workers - 1, &l->worker)) return false;
        l->address = out->room[i];
    }
    out->config.listen = out->listen;
    out->config.listens = n;
    return true;
}

/* None where they are not given. */
static bool read_tenants(napi_env env, napi_value v, server_options *out) {
    napi_value list, item;
    bool given;
    if (napi_has_named_property(env, v, "tenants", &given) != napi_ok) return false;
    if (!given) return true;
    if (!binding_array(env, v, "tenants", &list, &out->config.tenants)) return false;
    if (out->config.tenants > DATAPLANE_TENANTS_MAX)
        return binding_bad_option(env, "tenants may have %d entries", DATAPLANE_TENANTS_MAX);
    for (uint32_t i = 0; i < out->config.tenants; i++) {
        dataplane_tenant *t = &out->tenant[i];
        if (napi_get_element(env, list, i, &item) != napi_ok ||
            !read_u32(env, item, "shards", 1, DATAPLANE_SHARDS_MAX, &t->shards))
            return false;
        if (!read_u32(env, item, "maxClients", 0, DATAPLANE_CLIENTS_MAX, &t->max_clients)) return false;
    }
    out->config.tenant = out->tenant;
    return true;
}

static bool read_huge_pages(napi_env env, napi_value object, dataplane_huge *out) {
    static const char *const names[] = {
        [DATAPLANE_HUGE_OFF] = "off", [DATAPLANE_HUGE_AUTO] = "auto", [DATAPLANE_HUGE_REQUIRE] = "require"
    };
    char text[16];
    if (!binding_text(env, object, "hugePages", text, sizeof text)) return false;
    for (dataplane_huge h = DATAPLANE_HUGE_OFF; h <= DATAPLANE_HUGE_REQUIRE; h++) {
        if (strcmp(text, names[h]) != 0) continue;
        *out = h;
        return true;
    }
    return binding_bad_option(env, "hugePages is off, auto or require, not %s", text);
}

bool server_read_options(napi_env env, napi_value v, server_options *out) {
    dataplane_config *c = &out->config;
    *c = (dataplane_config){ 0 };
    return binding_u64(env, v, "serverIncarnation", &c->server_incarnation) &&
           read_seed(env, v, "hashSeed", &c->hash_seed) && read_seed(env, v, "ticketSecret", &c->ticket_secret) &&
           read_u32(env, v, "shards", 1, DATAPLANE_SHARDS_MAX, &c->shards) &&
           read_u32(env, v, "workers", 1, DATAPLANE_WORKERS_MAX, &c->workers) &&
           read_u32(env, v, "leaseMs", 1, DATAPLANE_LEASE_MS_MAX, &c->lease_ms) &&
           read_u32(env, v, "driftPpm", 0, DATAPLANE_DRIFT_PPM_MAX, &c->drift_ppm) &&
           read_u32(env, v, "maxClients", 1, DATAPLANE_CLIENTS_MAX, &c->max_clients) &&
           read_u32(env, v, "clientQuota", 1, DATAPLANE_QUOTA_MAX, &c->client_quota) &&
           binding_polling(env, v, &c->polling) && read_huge_pages(env, v, &c->huge_pages) &&
           binding_number_or(env, v, "memoryBytes", 0, 9007199254740991u, 0, &c->memory_bytes) &&
           read_u32_or(env, v, "replicaLeaseMs", DATAPLANE_REPLICA_LEASE_MS_MIN, &c->replica_lease_ms) &&
           read_u32_or(env, v, "backupSlowMs", 1, &c->backup_slow_ms) &&
           read_u32_or(env, v, "scrubMs", 1, &c->scrub_ms) &&
           binding_number_or(env, v, "slowNs", 0, 9007199254740991u, 0, &c->slow_ns) &&
           binding_number_or(env, v, "tracedSlowNs", 0, 9007199254740991u, 0, &out->traced_slow_ns) &&
           read_tenants(env, v, out) && read_listen(env, v, out);
}

bool server_read_shard(napi_env env, napi_value v, const dataplane_config *c, dataplane_shard *out) {
    *out = (dataplane_shard){ 0 };
    return read_u32(env, v, "shard", 0, c->shards - 1, &out->shard) &&
           read_u32(env, v, "worker", 0, c->workers - 1, &out->worker) &&
           read_u32(env, v, "epoch", 0, DATAPLANE_EPOCH_MAX, &out->epoch) &&
           read_u32_or(env, v, "buckets", 0, &out->buckets) && read_bool_or(env, v, "durable", &out->durable) &&
           binding_u64(env, v, "incarnation", &out->incarnation) &&
           binding_number(env, v, "memoryBytes", TABLE_MEMORY_MIN, 9007199254740991u, &out->memory_bytes);
}

bool server_read_access(napi_env env, napi_value v, dataplane_access *out, dataplane_revocation **revoked) {
    napi_value secrets, list, item, seed;
    uint32_t n;
    uint64_t number, tenant;
    *out = (dataplane_access){ 0 };
    *revoked = NULL;
    if (!binding_array(env, v, "secrets", &secrets, &out->secrets) || !binding_array(env, v, "revoked", &list, &n))
        return false;
    if (out->secrets < 1 || out->secrets > DATAPLANE_SECRETS_MAX || n > DATAPLANE_REVOCATIONS_MAX)
        return binding_bad_option(env, "1 to %d secrets, at most %d revocations", DATAPLANE_SECRETS_MAX,
                                  DATAPLANE_REVOCATIONS_MAX);
    for (uint32_t i = 0; i < out->secrets; i++) {
        if (napi_get_element(env, secrets, i, &item) != napi_ok ||
            !binding_number(env, item, "number", 0, UINT32_MAX, &number) ||
            !binding_field(env, item, "secret", &seed) || !binding_seed(env, seed, "secret", &out->secret[i].seed))
            return false;
        out->secret[i].number = (uint32_t)number;
    }
    dataplane_revocation *r = calloc(n + 1, sizeof *r);
    if (!r) return binding_throw(env, FKV_NO_MEMORY, NULL), false;
    for (uint32_t i = 0; i < n; i++) {
        if (napi_get_element(env, list, i, &item) != napi_ok || !binding_u64(env, item, "client", &r[i].client) ||
            !binding_number(env, item, "tenant", 0, UINT16_MAX, &tenant) ||
            !binding_number(env, item, "beforeMs", 0, 9007199254740991u, &r[i].before_ms)) {
            free(r);
            return false;
        }
        r[i].tenant = (uint32_t)tenant;
    }
    out->revocations = n;
    out->revoked = *revoked = r;
    return true;
}

bool server_read_addresses(napi_env env, napi_value v, server_addresses_in *out) {
    napi_value list, item;
    uint32_t n;
    if (!binding_array(env, v, "addresses", &list, &n)) return false;
    out->count = n < SERVER_COPY_ADDRESSES ? n : SERVER_COPY_ADDRESSES;
    for (uint32_t i = 0; i < out->count; i++) {
        session_address *a = &out->address[i];
        if (napi_get_element(env, list, i, &item) != napi_ok || !binding_provider(env, item, &a->provider, &a->device))
            return false;
        if (!binding_text(env, item, "address", out->room[i], SERVER_ADDRESS_MAX)) return false;
        a->text = out->room[i];
    }
    return true;
}

bool server_read_shard_number(napi_env env, napi_value v, const dataplane_config *c, uint32_t *out) {
    return read_u32(env, v, "shard", 0, c->shards - 1, out);
}

static bool read_ids(napi_env env, napi_value v, const char *name, uint64_t *id, uint32_t *count) {
    napi_value list, item;
    bool whole;
    if (!binding_array(env, v, name, &list, count)) return false;
    if (*count > DATAPLANE_COPIES_MAX)
        return binding_bad_option(env, "%s may have %d entries", name, DATAPLANE_COPIES_MAX);
    for (uint32_t i = 0; i < *count; i++) {
        if (napi_get_element(env, list, i, &item) != napi_ok ||
            napi_get_value_bigint_uint64(env, item, &id[i], &whole) != napi_ok || !whole)
            return binding_bad_option(env, "%s has bigints of 64 bits", name);
    }
    return true;
}

bool server_read_config(napi_env env, napi_value v, const dataplane_config *c, uint32_t *shard, server_copy_ids *ids,
                        dataplane_copies *out) {
    *out = (dataplane_copies){ .id = ids->in_sync, .eligible_id = ids->eligible, .joining_id = ids->joining };
    if (!server_read_shard_number(env, v, c, shard) ||
        !read_u32(env, v, "epoch", 0, DATAPLANE_EPOCH_MAX, &out->epoch) ||
        !read_u32(env, v, "config", 1, UINT32_MAX, &out->config) ||
        !read_u32(env, v, "minInSync", 1, DATAPLANE_COPIES_MAX + 1, &out->min_in_sync) ||
        !read_bool_or(env, v, "alone", &out->alone))
        return false;
    return read_ids(env, v, "inSync", ids->in_sync, &out->in_sync) &&
           read_ids(env, v, "eligible", ids->eligible, &out->eligible) &&
           read_ids(env, v, "joining", ids->joining, &out->joining);
}

bool server_read_copy(napi_env env, napi_value v, const dataplane_config *c, const dataplane_secret *secret,
                      server_copy_options *out) {
    shard_copy_config *k = &out->config;
    *k = (shard_copy_config){ .shards = c->shards, .seed = c->hash_seed, .addresses = out->addresses.address };
    uint32_t tenant = 0;
    if (!read_u32(env, v, "shard", 0, c->shards - 1, &k->shard) ||
        !read_u32(env, v, "epoch", 0, DATAPLANE_EPOCH_MAX, &k->epoch) ||
        !binding_u64(env, v, "incarnation", &k->incarnation) ||
        !binding_u64(env, v, "serverIncarnation", &k->server_incarnation) || !binding_u64(env, v, "copy", &k->copy) ||
        !read_bool_or(env, v, "base", &k->base) || !server_read_addresses(env, v, &out->addresses))
        return false;
    k->count = out->addresses.count;
    for (uint32_t end = 0; c->tenants && (end += c->tenant[tenant].shards) <= k->shard; tenant++) k->first_shard = end;
    if (c->tenants) k->shards = k->first_shard + c->tenant[tenant].shards;
    fkv_ticket t = { .expires_ms = fkv_wall_ms() + TICKET_MS,
                     .life_ms = TICKET_MS,
                     .tenant = (uint16_t)tenant,
                     .flags = FKV_TICKET_READ | FKV_TICKET_COPY,
                     .secret = (uint8_t)secret->number };
    while (t.client == 0) fkv_random(&t.client, sizeof t.client);
    fkv_pass_make(&secret->seed, &t, &k->pass);
    return true;
}
