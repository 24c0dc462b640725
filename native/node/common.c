/* common.c: constants that exist once, in C; tickets, hashes, clocks and locks for TypeScript; errors and bytes across
 * the boundary. Not for: objects with a life of their own (server_binding.c, client_binding.c). No state. */
#include "binding.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include "../base/clock.h"
#include "../base/notify.h"
#include "../fabric/fabric.h"
#include "../table/table.h"
#include "../wire/wire.h"

void binding_throw(napi_env env, fkv_status s, const char *text) {
    bool pending = false;
    napi_is_exception_pending(env, &pending);
    if (!pending) napi_throw_error(env, fkv_status_name(s), text ? text : fkv_status_text(s));
}

napi_value binding_error(napi_env env, fkv_status s, const char *text) {
    napi_value code, message, error;
    if (!text) text = fkv_status_text(s);
    if (napi_create_string_utf8(env, fkv_status_name(s), NAPI_AUTO_LENGTH, &code) != napi_ok) return NULL;
    if (napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &message) != napi_ok) return NULL;
    return napi_create_error(env, code, message, &error) == napi_ok ? error : NULL;
}

static bool bytes_of(napi_env env, napi_value v, uint8_t **bytes, size_t *n) {
    bool is_array = false;
    napi_typedarray_type type;
    void *at = NULL;
    if (napi_is_typedarray(env, v, &is_array) != napi_ok || !is_array) return false;
    if (napi_get_typedarray_info(env, v, &type, n, &at, NULL, NULL) != napi_ok || type != napi_uint8_array)
        return false;
    *bytes = at;
    return true;
}

bool binding_bytes(napi_env env, napi_value v, uint8_t **bytes, size_t *n) {
    if (bytes_of(env, v, bytes, n)) return true;
    napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "a Uint8Array or Buffer was expected");
    return false;
}

bool binding_seed(napi_env env, napi_value v, const char *name, fkv_seed *out) {
    uint8_t *bytes;
    size_t n;
    if (!bytes_of(env, v, &bytes, &n) || n != sizeof *out) {
        return binding_bad_option(env, "%s must be a Uint8Array of 16 bytes", name);
    }
    memcpy(out, bytes, sizeof *out);
    return true;
}

/* Whether a text has half a surrogate pair, of which its UTF-8 has U+FFFD instead: EF BF BD. */
static bool has_half_pair(napi_env env, napi_value v, const uint8_t *utf8, size_t n) {
    char16_t units[FKV_KEY_MAX + 4]; /* no more than bytes */
    size_t count;
    if (!memmem(utf8, n, "\xef\xbf\xbd", 3)) return false;
    if (napi_get_value_string_utf16(env, v, units, FKV_KEY_MAX + 4, &count) != napi_ok) return true;
    for (size_t i = 0; i < count; i++) {
        if ((units[i] & 0xf800) != 0xd800) continue;
        bool pair = units[i] < 0xdc00 && i + 1 < count && (units[i + 1] & 0xfc00) == 0xdc00;
        if (!pair) return true;
        i++;
    }
    return false;
}

bool binding_key_text(napi_env env, napi_value v, uint8_t *room, size_t *n) {
    /* Tried as a string, without asking for the type: one call for the usual key. */
    if (napi_get_value_string_utf8(env, v, (char *)room, FKV_KEY_MAX + 4, n) != napi_ok) return false;
    /* Two keys with different halves would become one. The first byte of U+FFFD alone is looked for: others are rare. */
    if (*n <= FKV_KEY_MAX && memchr(room, 0xef, *n) && has_half_pair(env, v, room, *n)) *n = 0;
    /* Only whole characters are copied, so exactly FKV_KEY_MAX bytes may be all of it or the part that fitted. */
    return *n != FKV_KEY_MAX || napi_get_value_string_utf8(env, v, NULL, 0, n) == napi_ok;
}

fkv_status binding_key(napi_env env, napi_value v, uint8_t *room, const uint8_t **key, size_t *n) {
    if (binding_key_text(env, v, room, n)) {
        *key = room;
    } else {
        uint8_t *bytes;
        if (!bytes_of(env, v, &bytes, n)) return FKV_KEY_INVALID;
        *key = bytes;
    }
    return *n >= 1 && *n <= FKV_KEY_MAX ? FKV_OK : FKV_KEY_INVALID;
}

/* The callback's arguments; false with an exception pending when there are fewer than `needed`. */
static bool arguments(napi_env env, napi_callback_info info, napi_value *argv, size_t needed, size_t room) {
    size_t n = room;
    if (napi_get_cb_info(env, info, &n, argv, NULL, NULL) != napi_ok) return false;
    if (n >= needed) return true;
    char text[64];
    snprintf(text, sizeof text, "%zu arguments were expected", needed);
    napi_throw_type_error(env, "ERR_MISSING_ARGS", text);
    return false;
}

static bool number_argument(napi_env env, napi_value v, const char *name, double max, double *out) {
    if (napi_get_value_double(env, v, out) == napi_ok && *out >= 0 && *out <= max && *out == (double)(uint64_t)*out)
        return true;
    return binding_bad_option(env, "%s must be an integer from 0 to %.0f", name, max);
}

/* { number, secret } */
static bool read_secret(napi_env env, napi_value v, uint64_t *number, fkv_seed *secret) {
    napi_value seed;
    return binding_number(env, v, "number", 0, UINT32_MAX, number) && binding_field(env, v, "secret", &seed) &&
           binding_seed(env, seed, "secret", secret);
}

static napi_value make_ticket(napi_env env, napi_callback_info info) {
    napi_value argv[2], buffer, out;
    fkv_seed secret;
    fkv_pass pass;
    uint64_t number, client, issued_ms, expires_ms, tenant, flags;
    void *at;
    if (!arguments(env, info, argv, 2, 2) || !read_secret(env, argv[0], &number, &secret)) return NULL;
    if (!binding_u64(env, argv[1], "client", &client)) return NULL;
    if (client == 0) {
        binding_bad_option(env, "client must be a bigint from 1 to 2^64 - 1");
        return NULL;
    }
    if (!binding_number(env, argv[1], "issuedMs", 0, 9007199254740991u, &issued_ms) ||
        !binding_number(env, argv[1], "expiresMs", issued_ms, issued_ms + UINT32_MAX, &expires_ms) ||
        !binding_number(env, argv[1], "tenant", 0, UINT16_MAX, &tenant) ||
        !binding_number(env, argv[1], "flags", 0, FKV_TICKET_READ | FKV_TICKET_WRITE, &flags))
        return NULL;
    fkv_ticket t = { .client = client,
                     .expires_ms = expires_ms,
                     .life_ms = (uint32_t)(expires_ms - issued_ms),
                     .tenant = (uint16_t)tenant,
                     .flags = (uint8_t)flags,
                     .secret = (uint8_t)number };
    fkv_pass_make(&secret, &t, &pass);
    if (napi_create_arraybuffer(env, sizeof pass, &at, &buffer) != napi_ok) return NULL;
    memcpy(at, &pass, sizeof pass);
    return napi_create_typedarray(env, napi_uint8_array, sizeof pass, buffer, 0, &out) == napi_ok ? out : NULL;
}

static bool set_number(napi_env env, napi_value to, const char *name, uint64_t n) {
    napi_value v;
    return napi_create_double(env, (double)n, &v) == napi_ok && napi_set_named_property(env, to, name, v) == napi_ok;
}

static napi_value ticket_out(napi_env env, const fkv_ticket *t) {
    napi_value out, client;
    bool good = napi_create_object(env, &out) == napi_ok &&
                napi_create_bigint_uint64(env, t->client, &client) == napi_ok &&
                napi_set_named_property(env, out, "client", client) == napi_ok &&
                set_number(env, out, "issuedMs", t->expires_ms - t->life_ms) &&
                set_number(env, out, "expiresMs", t->expires_ms) && set_number(env, out, "tenant", t->tenant) &&
                set_number(env, out, "flags", t->flags);
    return good ? out : NULL;
}

/* What a ticket says whose key was shown with it; undefined: it was made with none of these secrets. */
static napi_value open_ticket(napi_env env, napi_callback_info info) {
    napi_value argv[2], item, undefined;
    uint8_t *bytes;
    size_t n;
    uint32_t secrets;
    fkv_pass pass;
    if (!arguments(env, info, argv, 2, 2) || napi_get_array_length(env, argv[0], &secrets) != napi_ok) return NULL;
    if (!binding_bytes(env, argv[1], &bytes, &n) || napi_get_undefined(env, &undefined) != napi_ok) return NULL;
    if (n != sizeof pass) return undefined;
    memcpy(&pass, bytes, sizeof pass);
    for (uint32_t i = 0; i < secrets; i++) {
        uint64_t number;
        fkv_seed secret;
        if (napi_get_element(env, argv[0], i, &item) != napi_ok || !read_secret(env, item, &number, &secret))
            return NULL;
        if ((uint8_t)number == pass.ticket.secret && fkv_pass_ok(&secret, &pass)) return ticket_out(env, &pass.ticket);
    }
    return undefined;
}

static napi_value hash_key(napi_env env, napi_callback_info info) {
    napi_value argv[3], out;
    fkv_seed seed;
    double space;
    uint8_t room[FKV_KEY_MAX + 4];
    const uint8_t *key;
    size_t n;
    if (!arguments(env, info, argv, 3, 3) || !binding_seed(env, argv[0], "seed", &seed)) return NULL;
    if (!number_argument(env, argv[1], "space", UINT16_MAX, &space)) return NULL;
    fkv_status s = binding_key(env, argv[2], room, &key, &n);
    if (s != FKV_OK) {
        binding_throw(env, s, NULL);
        return NULL;
    }
    return napi_create_bigint_uint64(env, fkv_hash_key(&seed, (uint16_t)space, key, n), &out) == napi_ok ? out : NULL;
}

static napi_value crc32c(napi_env env, napi_callback_info info) {
    napi_value argv[2], out;
    uint8_t *bytes;
    size_t n;
    double crc = 0;
    napi_valuetype type;
    if (!arguments(env, info, argv, 1, 2) || !binding_bytes(env, argv[0], &bytes, &n)) return NULL;
    if (napi_typeof(env, argv[1], &type) != napi_ok) return NULL;
    if (type != napi_undefined && !number_argument(env, argv[1], "crc", UINT32_MAX, &crc)) return NULL;
    return napi_create_uint32(env, fkv_crc32c((uint32_t)crc, bytes, n), &out) == napi_ok ? out : NULL;
}

static napi_value boot_time_ns(napi_env env, napi_callback_info info) {
    (void)info;
    napi_value out;
    return napi_create_bigint_uint64(env, fkv_now_ns(), &out) == napi_ok ? out : NULL;
}

static napi_value try_lock(napi_env env, napi_callback_info info) {
    napi_value argv[1], out;
    double fd;
    if (!arguments(env, info, argv, 1, 1) || !number_argument(env, argv[0], "fd", INT32_MAX, &fd)) return NULL;
    bool locked = flock((int)fd, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK) {
        char text[160];
        snprintf(text, sizeof text, "flock of descriptor %d failed: %m", (int)fd);
        binding_throw(env, FKV_INTERNAL, text);
        return NULL;
    }
    return napi_get_boolean(env, locked, &out) == napi_ok ? out : NULL;
}

/* dropCleanPages(fd) */
static napi_value drop_clean_pages(napi_env env, napi_callback_info info) {
    napi_value argv[1];
    double fd;
    if (!arguments(env, info, argv, 1, 1) || !number_argument(env, argv[0], "fd", INT32_MAX, &fd)) return NULL;
    posix_fadvise((int)fd, 0, 0, POSIX_FADV_DONTNEED); /* a file system that keeps no pages has nothing to drop */
    return NULL;
}

/* notify(address, text): undefined, or why it was not sent. */
static napi_value notify(napi_env env, napi_callback_info info) {
    napi_value argv[2], out;
    char address[NOTIFY_ADDRESS_MAX + 5], text[NOTIFY_TEXT_MAX + 5]; /* cut at a character, too long is still so */
    size_t address_bytes, text_bytes;
    if (!arguments(env, info, argv, 2, 2)) return NULL;
    if (napi_get_value_string_utf8(env, argv[0], address, sizeof address, &address_bytes) != napi_ok ||
        napi_get_value_string_utf8(env, argv[1], text, sizeof text, &text_bytes) != napi_ok) {
        binding_bad_option(env, "address and text must be strings");
        return NULL;
    }
    int e = notify_send(address, address_bytes, text, text_bytes);
    napi_status s = e != 0 ? napi_create_string_utf8(env, strerror(-e), NAPI_AUTO_LENGTH, &out)
                           : napi_get_undefined(env, &out);
    return s == napi_ok ? out : NULL;
}

static napi_value provider_missing(napi_env env, napi_callback_info info) {
    napi_value argv[1], out;
    char name[16];
    size_t n;
    if (!arguments(env, info, argv, 1, 1) || napi_get_value_string_utf8(env, argv[0], name, sizeof name, &n) != napi_ok)
        return NULL;
    const char *why = fab_provider_missing(fab_provider_named(name));
    napi_status s = why ? napi_create_string_utf8(env, why, NAPI_AUTO_LENGTH, &out) : napi_get_undefined(env, &out);
    return s == napi_ok ? out : NULL;
}

static bool set_text(napi_env env, napi_value object, const char *name, const char *text) {
    napi_value v;
    return napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &v) == napi_ok &&
           napi_set_named_property(env, object, name, v) == napi_ok;
}

static napi_value rdma_addresses(napi_env env, napi_callback_info info) {
    (void)info;
    fab_rdma_address found[FAB_RDMA_ADDRESSES_MAX];
    uint32_t n = (uint32_t)fab_rdma_addresses(found, FAB_RDMA_ADDRESSES_MAX);
    napi_value list, item, iwarp;
    if (napi_create_array_with_length(env, n, &list) != napi_ok) return NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (napi_create_object(env, &item) != napi_ok || napi_get_boolean(env, found[i].iwarp, &iwarp) != napi_ok)
            return NULL;
        if (!set_text(env, item, "device", found[i].device) ||
            !set_text(env, item, "networkInterface", found[i].network_interface))
            return NULL;
        if (!set_text(env, item, "address", found[i].address) ||
            napi_set_named_property(env, item, "iwarp", iwarp) != napi_ok)
            return NULL;
        if (napi_set_element(env, list, i, item) != napi_ok) return NULL;
    }
    return list;
}

static napi_value rdma_traffic_class(napi_env env, napi_callback_info info) {
    napi_value argument;
    size_t count = 1;
    uint32_t octet;
    if (napi_get_cb_info(env, info, &count, &argument, NULL, NULL) != napi_ok ||
        napi_get_value_uint32(env, argument, &octet) != napi_ok || octet > UINT8_MAX) {
        binding_bad_option(env, "a traffic class is a number from 0 to %d", UINT8_MAX);
        return NULL;
    }
    fab_rdma_traffic_class((uint8_t)octet);
    return NULL;
}

static napi_value rdma_devices(napi_env env, napi_callback_info info) {
    (void)info;
    fab_rdma_device found[FAB_RDMA_DEVICES_MAX];
    uint32_t n = (uint32_t)fab_rdma_devices(found, FAB_RDMA_DEVICES_MAX);
    napi_value list, item;
    if (napi_create_array_with_length(env, n, &list) != napi_ok) return NULL;
    for (uint32_t i = 0; i < n; i++) {
        const fab_rdma_device *d = &found[i];
        if (napi_create_object(env, &item) != napi_ok || !set_text(env, item, "name", d->name)) return NULL;
        if (d->error && !set_text(env, item, "error", strerror(d->error))) return NULL;
        if (!set_number(env, item, "regionBytesMax", d->region_max) ||
            !set_number(env, item, "regionsMax", d->regions_max))
            return NULL;
        if (!set_number(env, item, "queuePairsMax", d->queue_pairs_max) ||
            napi_set_element(env, list, i, item) != napi_ok)
            return NULL;
    }
    return list;
}

static bool add_list(napi_env env, napi_value object, const char *name, const char *const *items, uint32_t n) {
    napi_value list, item;
    if (napi_create_array_with_length(env, n, &list) != napi_ok) return false;
    for (uint32_t i = 0; i < n; i++) {
        if (napi_create_string_utf8(env, items[i], NAPI_AUTO_LENGTH, &item) != napi_ok) return false;
        if (napi_set_element(env, list, i, item) != napi_ok) return false;
    }
    return napi_object_freeze(env, list) == napi_ok && napi_set_named_property(env, object, name, list) == napi_ok;
}

static bool add_constants(napi_env env, napi_value exports) {
    napi_value c;
    const char *names[FKV_STATUS_COUNT], *texts[FKV_STATUS_COUNT];
    const char *providers[FAB_PROVIDER_COUNT], *all[FAB_PROVIDER_COUNT];
    uint32_t present = 0, there = 0;
    static const struct {
        const char *name;
        double value;
    } numbers[] = {
        { "keyMax", FKV_KEY_MAX },
        { "valueMax", FKV_VALUE_MAX },
        { "dedupWindow", FKV_DEDUP_WINDOW },
        { "wireVersionMin", FKV_WIRE_VERSION_MIN },
        { "wireVersionMax", FKV_WIRE_VERSION_MAX },
        { "layoutVersion", FKV_LAYOUT_VERSION },
        { "memoryMin", TABLE_MEMORY_MIN },
    };
    for (int i = 0; i < FKV_STATUS_COUNT; i++) {
        names[i] = fkv_status_name((fkv_status)i);
        texts[i] = fkv_status_text((fkv_status)i);
    }
    if (napi_create_object(env, &c) != napi_ok) return false;
    if (!add_list(env, c, "statusNames", names, FKV_STATUS_COUNT) ||
        !add_list(env, c, "statusTexts", texts, FKV_STATUS_COUNT)) {
        return false;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!binding_set_number(env, c, numbers[i].name, numbers[i].value)) return false;
    }
    for (fab_provider p = FAB_NONE + 1; p < FAB_PROVIDER_COUNT; p++) {
        if (p == FAB_BROUGHT) continue;
        if (!fab_provider_missing(p)) providers[present++] = fab_provider_name(p);
        all[there++] = fab_provider_name(p);
    }
    if (!add_list(env, c, "providers", providers, present) || !add_list(env, c, "allProviders", all, there))
        return false;
    return napi_object_freeze(env, c) == napi_ok && napi_set_named_property(env, exports, "constants", c) == napi_ok;
}

bool binding_init_common(napi_env env, napi_value exports) {
    return add_constants(env, exports) && binding_set_function(env, exports, "makeTicket", make_ticket, NULL) &&
           binding_set_function(env, exports, "openTicket", open_ticket, NULL) &&
           binding_set_function(env, exports, "hashKey", hash_key, NULL) &&
           binding_set_function(env, exports, "crc32c", crc32c, NULL) &&
           binding_set_function(env, exports, "bootTimeNs", boot_time_ns, NULL) &&
           binding_set_function(env, exports, "tryLock", try_lock, NULL) &&
           binding_set_function(env, exports, "dropCleanPages", drop_clean_pages, NULL) &&
           binding_set_function(env, exports, "notify", notify, NULL) &&
           binding_set_function(env, exports, "providerMissing", provider_missing, NULL) &&
           binding_set_function(env, exports, "rdmaAddresses", rdma_addresses, NULL) &&
           binding_set_function(env, exports, "rdmaDevices", rdma_devices, NULL) &&
           binding_set_function(env, exports, "rdmaTrafficClass", rdma_traffic_class, NULL);
}
