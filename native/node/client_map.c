/* client_map.c: setTicket, setReplicated, setOwners, setRoutes: what the SDK learned of the cluster, handed down. Both lists are
 * whole: what they do not name is dropped. */
#include <stdlib.h>
#include <string.h>
#include "../table/table.h"
#include "client.h"

enum { ADDRESS_ROOM = 256, OWNERS_MAX = 65536, ADDRESSES_MAX = 64, REGIONS_MAX = 1 << 20 };

static napi_value done(napi_env env) {
    napi_value undefined;
    return napi_get_undefined(env, &undefined) == napi_ok ? undefined : NULL;
}

/* The array in the only argument. */
static client *open_with_array(napi_env env, napi_callback_info info, napi_value *array, uint32_t *n) {
    client *c = client_arguments(env, info, array, 1);
    bool is_array = false;
    if (!c) return NULL;
    if (!c->lookup) {
        binding_throw(env, FKV_CLOSED, NULL);
        return NULL;
    }
    if (napi_is_array(env, *array, &is_array) != napi_ok || !is_array ||
        napi_get_array_length(env, *array, n) != napi_ok) {
        napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "an array was expected");
        return NULL;
    }
    return c;
}

napi_value client_set_ticket(napi_env env, napi_callback_info info) {
    napi_value argv[1];
    client *c = client_arguments(env, info, argv, 1);
    uint8_t *bytes;
    size_t n;
    fkv_pass p;
    if (!c || !binding_bytes(env, argv[0], &bytes, &n)) return NULL;
    if (n != sizeof p) {
        binding_bad_option(env, "a ticket has %zu bytes", sizeof p);
        return NULL;
    }
    memcpy(&p, bytes, sizeof p);
    if (c->lookup) session_set_pass(lookup_session(c->lookup), &p);
    return done(env);
}

/* ---- owners ---- */

typedef struct owner_text {
    session_address address[ADDRESSES_MAX];
    char text[ADDRESSES_MAX][ADDRESS_ROOM];
} owner_text;

static bool read_owner(napi_env env, napi_value v, session_owner_config *out, owner_text *room) {
    napi_value list, item;
    uint64_t owner;
    if (!binding_number(env, v, "owner", 0, UINT32_MAX, &owner)) return false;
    if (!binding_u64(env, v, "serverIncarnation", &out->incarnation)) return false;
    if (!binding_array(env, v, "addresses", &list, &out->count)) return false;
    if (out->count > ADDRESSES_MAX) return binding_bad_option(env, "an owner has at most %d addresses", ADDRESSES_MAX);
    out->owner = (uint32_t)owner;
    out->addresses = room->address;
    for (uint32_t i = 0; i < out->count; i++) {
        if (napi_get_element(env, list, i, &item) != napi_ok) return false;
        if (!binding_provider(env, item, &room->address[i].provider, &room->address[i].device)) return false;
        if (!binding_text(env, item, "address", room->text[i], ADDRESS_ROOM)) return false;
        room->address[i].text = room->text[i];
    }
    return true;
}

napi_value client_set_replicated(napi_env env, napi_callback_info info) {
    napi_value argv[1];
    client *c = client_arguments(env, info, argv, 1);
    bool replicated;
    if (!c) return NULL;
    if (napi_get_value_bool(env, argv[0], &replicated) != napi_ok) {
        binding_bad_option(env, "replicated must be true or false");
        return NULL;
    }
    if (c->lookup) session_set_replicated(lookup_session(c->lookup), replicated);
    return done(env);
}

napi_value client_set_owners(napi_env env, napi_callback_info info) {
    napi_value list, item;
    uint32_t n;
    client *c = open_with_array(env, info, &list, &n);
    if (!c) return NULL;
    if (n > OWNERS_MAX) {
        binding_bad_option(env, "at most %d owners", OWNERS_MAX);
        return NULL;
    }
    session_owner_config *owners = calloc(n ? n : 1, sizeof *owners);
    owner_text **rooms = calloc(n ? n : 1, sizeof *rooms);
    bool good = owners && rooms;
    if (!good) binding_throw(env, FKV_NO_MEMORY, NULL);
    for (uint32_t i = 0; good && i < n; i++) {
        rooms[i] = malloc(sizeof **rooms);
        good = rooms[i] != NULL && napi_get_element(env, list, i, &item) == napi_ok &&
               read_owner(env, item, &owners[i], rooms[i]);
    }
    if (good && !c->lookup) { /* a getter closed it */
        binding_throw(env, FKV_CLOSED, NULL);
        good = false;
    }
    if (good) {
        fkv_status s = session_set_owners(lookup_session(c->lookup), owners, n);
        if (s != FKV_OK) binding_throw(env, s, NULL);
        client_loop_watch(c);
    }
    for (uint32_t i = 0; rooms && i < n; i++) free(rooms[i]);
    free(rooms);
    free(owners);
    return done(env);
}

/* ---- routes ---- */

static bool read_region(napi_env env, napi_value v, lookup_region *out) {
    char kind[8];
    uint64_t segment, tag;
    if (!binding_provider(env, v, &out->provider, &out->device)) return false;
    if (!binding_text(env, v, "kind", kind, sizeof kind)) return false;
    if (!binding_number(env, v, "segment", 0, UINT16_MAX, &segment)) return false;
    if (!binding_number(env, v, "tag", 0, UINT32_MAX, &tag)) return false;
    if (!binding_number(env, v, "bytes", 0, 1ull << 40, &out->bytes)) return false;
    if (!binding_u64(env, v, "remoteAddress", &out->addr) || !binding_u64(env, v, "rkey", &out->rkey)) return false;
    out->kind = strcmp(kind, "index") == 0 ? TABLE_INDEX : strcmp(kind, "heap") == 0 ? TABLE_HEAP : 0;
    out->segment = (uint32_t)segment;
    out->tag = (uint32_t)tag;
    return out->kind || binding_bad_option(env, "kind must be index or heap");
}

/* The regions are the caller's to free. */
static bool read_route(napi_env env, napi_value v, uint32_t shards, lookup_route *out, lookup_region **regions) {
    napi_value owner, list, item;
    uint64_t shard, epoch, layout_epoch, buckets;
    int32_t number;
    if (!binding_number(env, v, "shard", 0, shards - 1, &shard) || !binding_field(env, v, "owner", &owner))
        return false;
    if (napi_get_value_int32(env, owner, &number) != napi_ok || number < -1) {
        return binding_bad_option(env, "owner must be -1 or a number");
    }
    if (!binding_number(env, v, "epoch", 0, UINT32_MAX, &epoch)) return false;
    if (!binding_u64(env, v, "incarnation", &out->incarnation)) return false;
    if (!binding_number(env, v, "layoutEpoch", 0, UINT32_MAX, &layout_epoch)) return false;
    if (!binding_number(env, v, "buckets", 0, UINT32_MAX, &buckets)) return false;
    if (!binding_array(env, v, "regions", &list, &out->count)) return false;
    if (out->count > REGIONS_MAX) return binding_bad_option(env, "at most %d regions", REGIONS_MAX);
    *regions = calloc(out->count ? out->count : 1, sizeof **regions);
    if (!*regions) return binding_bad_option(env, "no memory for %u regions", out->count);
    out->shard = (uint32_t)shard;
    out->owner = number;
    out->epoch = (uint32_t)epoch;
    out->layout_epoch = (uint32_t)layout_epoch;
    out->buckets = (uint32_t)buckets;
    out->regions = *regions;
    for (uint32_t i = 0; i < out->count; i++) {
        if (napi_get_element(env, list, i, &item) != napi_ok || !read_region(env, item, &(*regions)[i])) return false;
    }
    return true;
}

napi_value client_set_routes(napi_env env, napi_callback_info info) {
    napi_value list, item;
    uint32_t n;
    client *c = open_with_array(env, info, &list, &n);
    if (!c) return NULL;
    bool *named = calloc(c->shards, sizeof *named);
    bool good = named != NULL;
    if (!good) binding_throw(env, FKV_NO_MEMORY, NULL);
    for (uint32_t i = 0; good && i < n; i++) {
        napi_handle_scope scope;
        lookup_route route = { 0 };
        lookup_region *regions = NULL;
        if (napi_open_handle_scope(env, &scope) != napi_ok) break;
        good = napi_get_element(env, list, i, &item) == napi_ok && read_route(env, item, c->shards, &route, &regions);
        if (good && !c->lookup) { /* a getter closed it */
            binding_throw(env, FKV_CLOSED, NULL);
            good = false;
        }
        if (good) {
            fkv_status s = lookup_set_route(c->lookup, &route);
            if (s != FKV_OK) binding_throw(env, s, NULL);
            named[route.shard] = true;
        }
        free(regions);
        napi_close_handle_scope(env, scope);
    }
    for (uint32_t i = 0; good && i < c->shards; i++) {
        if (!named[i]) lookup_set_route(c->lookup, &(lookup_route){ .shard = i, .owner = -1 });
    }
    free(named);
    return done(env);
}
