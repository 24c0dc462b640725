/* client_steps.c: takeSteps: what a traced client did, and when. */
#include "../client/session/steps.h"
#include "client.h"

static napi_value step_object(napi_env env, const session_step *x) {
    static const char *const types[] = {
        [SESSION_SENT] = "sent", [SESSION_ANSWERED] = "answered", [SESSION_READ] = "read", [SESSION_LANDED] = "landed"
    };
    napi_value o;
    bool read = x->type == SESSION_READ || x->type == SESSION_LANDED,
         ended = x->type == SESSION_ANSWERED || x->type == SESSION_LANDED;
    bool good = napi_create_object(env, &o) == napi_ok && binding_set_text(env, o, "type", types[x->type]) &&
                binding_set_number(env, o, "bootMs", (double)x->ns / 1e6) &&
                binding_set_number(env, o, "bytes", x->bytes) &&
                binding_set_text(env, o, "provider", fab_provider_name(x->provider)) &&
                (read || binding_set_text(env, o, "operation", fkv_ops[fkv_ops[x->op].counted].name)) &&
                (!ended || binding_set_text(env, o, "result", x->status == FKV_OK ? "ok" : fkv_status_name(x->status)));
    return good ? o : NULL;
}

napi_value client_take_steps(napi_env env, napi_callback_info info) {
    client *c = client_arguments(env, info, NULL, 0);
    napi_value out, o;
    session_step x;
    if (!c || napi_create_array(env, &out) != napi_ok) return NULL;
    for (uint32_t n = 0; c->lookup && session_next_step(lookup_session(c->lookup), &x); n++)
        if (!(o = step_object(env, &x)) || napi_set_element(env, out, n, o) != napi_ok) return NULL;
    return out;
}
