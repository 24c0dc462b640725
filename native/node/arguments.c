/* arguments.c: fields of options objects in, fields of results out. TypeScript's types promise nothing at run time, so
 * every field is checked here, and the error names it. */
#include "binding.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool binding_bad_option(napi_env env, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bool pending = false;
    napi_is_exception_pending(env, &pending);
    if (!pending) napi_throw_error(env, "ERR_CONFIG", text);
    return false;
}

bool binding_field(napi_env env, napi_value object, const char *name, napi_value *out) {
    napi_valuetype type;
    if (napi_typeof(env, object, &type) != napi_ok) return false;
    if (type != napi_object) return binding_bad_option(env, "an options object with %s was expected", name);
    return napi_get_named_property(env, object, name, out) == napi_ok;
}

bool binding_number(napi_env env, napi_value object, const char *name, uint64_t min, uint64_t max, uint64_t *out) {
    napi_value v;
    double d;
    if (!binding_field(env, object, name, &v)) return false;
    /* NaN and the infinities fail the comparisons, so the conversion below is defined. */
    if (napi_get_value_double(env, v, &d) == napi_ok && d >= (double)min && d <= (double)max &&
        d == (double)(uint64_t)d) {
        *out = (uint64_t)d;
        return true;
    }
    return binding_bad_option(env, "%s must be an integer from %" PRIu64 " to %" PRIu64, name, min, max);
}

bool binding_number_or(napi_env env, napi_value object, const char *name, uint64_t min, uint64_t max,
                       uint64_t otherwise, uint64_t *out) {
    bool given;
    if (napi_has_named_property(env, object, name, &given) != napi_ok) return false;
    *out = otherwise;
    return !given || binding_number(env, object, name, min, max, out);
}

bool binding_u64(napi_env env, napi_value object, const char *name, uint64_t *out) {
    napi_value v;
    bool lossless = false;
    if (!binding_field(env, object, name, &v)) return false;
    if (napi_get_value_bigint_uint64(env, v, out, &lossless) == napi_ok && lossless) return true;
    return binding_bad_option(env, "%s must be a bigint from 0 to 2^64 - 1", name);
}

bool binding_bool(napi_env env, napi_value object, const char *name, bool *out) {
    napi_value v;
    if (!binding_field(env, object, name, &v)) return false;
    return napi_get_value_bool(env, v, out) == napi_ok || binding_bad_option(env, "%s must be true or false", name);
}

bool binding_text(napi_env env, napi_value object, const char *name, char *out, size_t room) {
    napi_value v;
    size_t n;
    if (!binding_field(env, object, name, &v)) return false;
    if (napi_get_value_string_utf8(env, v, NULL, 0, &n) != napi_ok || n == 0 || n >= room) {
        return binding_bad_option(env, "%s must be text of 1 to %zu bytes", name, room - 1);
    }
    return napi_get_value_string_utf8(env, v, out, room, &n) == napi_ok;
}

bool binding_provider(napi_env env, napi_value object, fab_provider *out, uint32_t *device) {
    char name[16];
    uint64_t number;
    if (!binding_text(env, object, "provider", name, sizeof name) ||
        !binding_number_or(env, object, "device", 0, FAB_DEVICES - 1, 0, &number))
        return false;
    *device = (uint32_t)number;
    *out = fab_provider_named(name);
    return *out != FAB_NONE || binding_bad_option(env, "provider %s is not known", name);
}

bool binding_polling(napi_env env, napi_value object, polling *out) {
    char text[16];
    if (!binding_text(env, object, "polling", text, sizeof text)) return false;
    for (polling how = 0; how < POLLING_COUNT; how++) {
        if (strcmp(text, polling_name(how)) != 0) continue;
        *out = how;
        return true;
    }
    return binding_bad_option(env, "polling is auto, always or never, not %s", text);
}

bool binding_array(napi_env env, napi_value object, const char *name, napi_value *out, uint32_t *n) {
    bool is_array = false;
    if (!binding_field(env, object, name, out)) return false;
    if (napi_is_array(env, *out, &is_array) != napi_ok || !is_array)
        return binding_bad_option(env, "%s must be an array", name);
    return napi_get_array_length(env, *out, n) == napi_ok;
}

bool binding_set_number(napi_env env, napi_value object, const char *name, double v) {
    napi_value value;
    return napi_create_double(env, v, &value) == napi_ok &&
           napi_set_named_property(env, object, name, value) == napi_ok;
}

bool binding_set_u64(napi_env env, napi_value object, const char *name, uint64_t v) {
    napi_value value;
    return napi_create_bigint_uint64(env, v, &value) == napi_ok &&
           napi_set_named_property(env, object, name, value) == napi_ok;
}

bool binding_set_hex64(napi_env env, napi_value object, const char *name, uint64_t v) {
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)v);
    return binding_set_text(env, object, name, text);
}

bool binding_set_text(napi_env env, napi_value object, const char *name, const char *v) {
    napi_value value;
    return napi_create_string_utf8(env, v, NAPI_AUTO_LENGTH, &value) == napi_ok &&
           napi_set_named_property(env, object, name, value) == napi_ok;
}

bool binding_set_provider(napi_env env, napi_value object, fab_provider p, uint32_t device) {
    return binding_set_text(env, object, "provider", fab_provider_name(p)) &&
           (device == 0 || binding_set_number(env, object, "device", device));
}

bool binding_set_function(napi_env env, napi_value object, const char *name, napi_callback f, void *ctx) {
    napi_value value;
    return napi_create_function(env, name, NAPI_AUTO_LENGTH, f, ctx, &value) == napi_ok &&
           napi_set_named_property(env, object, name, value) == napi_ok;
}

bool binding_set_polling(napi_env env, napi_value o, const char *name, const poller_stats *p) {
    napi_value v;
    return napi_create_object(env, &v) == napi_ok &&
           binding_set_number(env, v, "share", p->lived_ns ? (double)p->polled_ns / (double)p->lived_ns : 0) &&
           binding_set_number(env, v, "found", (double)p->found) &&
           binding_set_number(env, v, "vain", (double)p->vain) &&
           binding_set_number(env, v, "yields", (double)p->yields) &&
           binding_set_number(env, v, "lateYields", (double)p->late) &&
           binding_set_number(env, v, "sleeps", (double)p->sleeps) &&
           binding_set_number(env, v, "backOffs", (double)p->back_offs) &&
           napi_set_named_property(env, o, name, v) == napi_ok;
}
