/* client_stats.c: a client's counters as an object. */
#include "client.h"

typedef struct owner_list {
    napi_env env;
    napi_value list;
    uint32_t n;
    bool good;
} owner_list;

static void add_owner(void *ctx, const session_peer *p) {
    owner_list *o = ctx;
    napi_value item, connected, undefined;
    if (!o->good) return;
    o->good = napi_create_object(o->env, &item) == napi_ok && binding_set_number(o->env, item, "owner", p->owner) &&
              napi_get_boolean(o->env, p->conn != NULL, &connected) == napi_ok &&
              napi_set_named_property(o->env, item, "connected", connected) == napi_ok;
    if (o->good && p->conn) o->good = binding_set_text(o->env, item, "provider", fab_provider_name(p->provider));
    if (o->good && !p->conn) {
        o->good = napi_get_undefined(o->env, &undefined) == napi_ok &&
                  napi_set_named_property(o->env, item, "provider", undefined) == napi_ok;
    }
    o->good = o->good && napi_set_element(o->env, o->list, o->n++, item) == napi_ok;
}

napi_value client_stats(napi_env env, napi_callback_info info) {
    client *c = client_arguments(env, info, NULL, 0);
    napi_value out;
    lookup_stats l = { 0 };
    session_stats s = { 0 };
    owner_list owners = { .env = env, .good = true };
    if (!c) return NULL;
    if (napi_create_object(env, &out) != napi_ok || napi_create_array(env, &owners.list) != napi_ok) return NULL;
    if (c->lookup) {
        lookup_get_stats(c->lookup, &l);
        session_get_stats(lookup_session(c->lookup), &s);
        session_each_peer(lookup_session(c->lookup), add_owner, &owners);
    }
    const struct {
        const char *name;
        uint64_t value;
    } fields[] = {
        { "gets", l.gets },
        { "getHits", l.hits },
        { "getMisses", l.misses },
        { "reads", l.reads },
        { "readBytes", l.read_bytes },
        { "retries", l.retries },
        { "twoSidedGets", l.two_sided },
        { "leaseRenewals", s.lease_renewals },
        { "lateDiscards", l.late },
        { "tornReads", l.torn },
        { "foreignReads", l.foreign },
        { "changes", s.changes },
        { "locationHits", l.location_hits },
        { "locationStale", l.location_stale },
        { "locationEvictions", l.location_evicted },
        { "locationBypassed", l.location_bypassed },
        { "followedReads", l.followed },
    };
    bool good = owners.good;
    for (size_t i = 0; good && i < sizeof fields / sizeof *fields; i++) {
        good = binding_set_number(env, out, fields[i].name, (double)fields[i].value);
    }
    uint64_t now_ns = fkv_now_ns();
    const poller_stats gets = poller_get_stats(&c->gets.poller, now_ns),
                       changes = poller_get_stats(&c->changes.poller, now_ns);
    good = good && binding_set_polling(env, out, "getPolling", &gets) &&
           binding_set_polling(env, out, "changePolling", &changes);
    return good && napi_set_named_property(env, out, "owners", owners.list) == napi_ok ? out : NULL;
}
