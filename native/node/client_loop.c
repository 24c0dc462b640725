/* client_loop.c: a client on an event loop. Nothing here blocks.
 *
 *   prepare   before the loop sleeps: sends what was posted, arms the completion queues, sets the timer
 *   poll      a completion queue has something: hands it out
 *   timer     deadlines, renewals, back-off are due
 *   idle      only active when the queues could not be armed because more kept coming: keeps the loop from sleeping
 *
 * A program may hold the event loop for longer than its operations may take. That time is not theirs: what has come in it
 * is taken in before deadlines are looked at, and those are put off by it.
 *
 * JavaScript is called from these only, never from inside a call to the client. The loop is kept alive by the prepare
 * handle, and only while an operation is outstanding.
 */
#include <stdlib.h>
#include "../fabric/provider.h"
#include "client.h"

enum { ROUNDS = 4 };
static const uint64_t HELD_NS = 100000000; /* a turn of the event loop that was busy for so long was held */

/* ---- callbacks ---- */

/* Returns false when the client was closed by what was called. */
static bool call(client *c, napi_ref function, size_t argc, const napi_value *argv) {
    napi_value f, resource, result, error;
    if (napi_get_reference_value(c->env, function, &f) != napi_ok || !f) return c->lookup != NULL;
    if (napi_get_reference_value(c->env, c->resource, &resource) != napi_ok || !resource) return c->lookup != NULL;
    if (napi_make_callback(c->env, c->context, resource, f, argc, argv, &result) == napi_pending_exception) {
        if (napi_get_and_clear_last_exception(c->env, &error) == napi_ok) napi_fatal_exception(c->env, error);
    }
    return c->lookup != NULL;
}

static napi_value event_object(napi_env env, const session_event *e) {
    static const char *const types[] = { [SESSION_CONNECTED] = "connected",
                                         [SESSION_DISCONNECTED] = "disconnected",
                                         [SESSION_REFUSED] = "refused",
                                         [SESSION_NOT_OWNER] = "not-owner",
                                         [SESSION_SILENT] = "silent" };
    napi_value o;
    if (napi_create_object(env, &o) != napi_ok || !binding_set_text(env, o, "type", types[e->type])) return NULL;
    if (e->type == SESSION_NOT_OWNER) return binding_set_number(env, o, "shard", e->shard) ? o : NULL;
    if (!binding_set_number(env, o, "owner", e->owner)) return NULL;
    if (!binding_set_text(env, o, "provider", fab_provider_name(e->provider))) return NULL;
    if (e->type == SESSION_CONNECTED && e->ended != FKV_END_NONE)
        return binding_set_text(env, o, "ended", fkv_end_name(e->ended)) ? o : NULL;
    if (e->type == SESSION_CONNECTED || e->type == SESSION_SILENT) return o;
    return binding_set_text(env, o, "reason", fkv_status_name(e->reason)) ? o : NULL;
}

static napi_value line_object(napi_env env, const client_line *l) {
    static const char *const levels[] = {
        [FAB_LOG_ERROR] = "error", [FAB_LOG_WARNING] = "warn", [FAB_LOG_INFO] = "info"
    };
    napi_value o;
    bool good = napi_create_object(env, &o) == napi_ok && binding_set_text(env, o, "type", "line") &&
                binding_set_text(env, o, "level", levels[l->level]) && binding_set_text(env, o, "message", l->text) &&
                binding_set_number(env, o, "omitted", l->omitted);
    return good ? o : NULL;
}

static bool has_news(const client *c) {
    return c->event_count || (c->ready_count && !c->told) || __atomic_load_n(&c->line_count, __ATOMIC_RELAXED);
}

/* Tells JavaScript what it has not been told. Returns false when the client was closed meanwhile. */
static bool deliver(client *c) {
    if (!has_news(c) || c->delivering) return c->lookup != NULL;
    napi_handle_scope scope;
    if (napi_open_handle_scope(c->env, &scope) != napi_ok) return c->lookup != NULL;
    c->delivering = true;
    bool open = true;
    client_line line;
    for (int n = 0; open && n < CLIENT_LINES && client_next_line(c, &line); n++) {
        napi_value o = line_object(c->env, &line);
        if (o) open = call(c, c->on_event, 1, &o);
    }
    for (uint32_t n = c->event_count; open && n > 0; n--) {
        session_event e = c->events[c->event_first];
        c->event_first = (c->event_first + 1) % CLIENT_EVENTS;
        c->event_count--;
        napi_value o = event_object(c->env, &e);
        if (o) open = call(c, c->on_event, 1, &o);
    }
    if (open && c->ready_count && !c->told) {
        c->told = true;
        open = call(c, c->on_ready, 0, NULL);
    }
    c->delivering = false;
    napi_close_handle_scope(c->env, scope);
    return open;
}

void client_event(void *ctx, const session_event *e) {
    client *c = ctx;
    if (c->event_count == CLIENT_EVENTS) return;
    c->events[(c->event_first + c->event_count++) % CLIENT_EVENTS] = *e;
}

/* Looks at how long the event loop was busy since the last look. */
static void note_held(client *c) {
    session *s = lookup_session(c->lookup);
    uint64_t now = session_now(s), idle = uv_metrics_idle_time(c->loop);
    uint64_t busy = now - c->looked_ns - (idle - c->idle_ns);
    if (busy > HELD_NS && busy <= now - c->looked_ns) session_held(s, busy);
    c->looked_ns = now;
    c->idle_ns = idle;
}

/* ---- handles ---- */

void client_keep_alive(client *c) {
    bool wanted = c->outstanding > 0 && c->lookup;
    if (wanted == c->keeps_alive || !c->handles) return;
    c->keeps_alive = wanted;
    if (wanted)
        uv_ref((uv_handle_t *)&c->prepare);
    else
        uv_unref((uv_handle_t *)&c->prepare);
}

static bool arm_all(client *c) {
    bool armed = true;
    for (uint32_t i = 0; i < c->watches; i++) armed = fab_arm(c->watch[i]->cq) == 0 && armed;
    return armed;
}

static void timer_fired(uv_timer_t *t) {
    client *c = t->data;
    c->timer_due_ns = UINT64_MAX;
    note_held(c);
    session_poll(lookup_session(c->lookup));
    session_tick(lookup_session(c->lookup));
    deliver(c);
}

static void set_timer(client *c) {
    session *s = lookup_session(c->lookup);
    uint64_t due = session_next_tick(s), now;
    if (due == c->timer_due_ns) return;
    c->timer_due_ns = due;
    if (due == UINT64_MAX) {
        uv_timer_stop(&c->timer);
        return;
    }
    now = session_now(s);
    uv_timer_start(&c->timer, timer_fired, due > now ? (due - now + 999999) / 1000000 : 0, 0);
}

static void never_mind(uv_idle_t *idle) { (void)idle; }

static void before_sleep(uv_prepare_t *p) {
    client *c = p->data;
    session *s = lookup_session(c->lookup);
    bool armed = false;
    note_held(c);
    session_flush(s);
    for (int round = 0; round < ROUNDS && !armed; round++) {
        armed = arm_all(c);
        if (!armed) session_poll(s);
        if (!has_news(c)) continue;
        if (!deliver(c)) return;
        session_flush(s);
        armed = false;
    }
    set_timer(c);
    if (armed)
        uv_idle_stop(&c->idle);
    else
        uv_idle_start(&c->idle, never_mind);
}

static void readable(uv_poll_t *poll, int status, int events) {
    client *c = ((client_watch *)poll->data)->c;
    (void)status, (void)events;
    session_poll(lookup_session(c->lookup));
    deliver(c);
}

void client_loop_watch(client *c) {
    fab_cq *cq[CLIENT_QUEUES];
    int n = session_queues(lookup_session(c->lookup), cq, CLIENT_QUEUES);
    for (int i = 0; i < n; i++) {
        bool known = false;
        for (uint32_t k = 0; k < c->watches; k++) known = known || c->watch[k]->cq == cq[i];
        client_watch *w = known || c->watches == CLIENT_QUEUES ? NULL : malloc(sizeof *w);
        if (!w) continue;
        w->c = c;
        w->cq = cq[i];
        w->poll.data = w;
        if (uv_poll_init(c->loop, &w->poll, fab_fd(cq[i])) != 0) {
            free(w);
            continue;
        }
        uv_poll_start(&w->poll, UV_READABLE, readable);
        uv_unref((uv_handle_t *)&w->poll);
        c->watch[c->watches++] = w;
        c->handles++;
    }
}

/* ---- life ---- */

bool client_loop_open(client *c, napi_env env) {
    napi_value name;
    if (napi_get_uv_event_loop(env, &c->loop) != napi_ok) return false;
    if (napi_create_string_utf8(env, "farkv", NAPI_AUTO_LENGTH, &name) != napi_ok) return false;
    if (napi_async_init(env, NULL, name, &c->context) != napi_ok) return false;
    uv_prepare_init(c->loop, &c->prepare);
    uv_idle_init(c->loop, &c->idle);
    uv_timer_init(c->loop, &c->timer);
    c->prepare.data = c->idle.data = c->timer.data = c;
    c->handles = 3;
    c->timer_due_ns = UINT64_MAX;
    c->looked_ns = fkv_now_ns();
    c->idle_ns = uv_metrics_idle_time(c->loop);
    uv_prepare_start(&c->prepare, before_sleep);
    uv_unref((uv_handle_t *)&c->prepare);
    uv_unref((uv_handle_t *)&c->idle);
    uv_unref((uv_handle_t *)&c->timer);
    return true;
}

void client_handle_closed(client *c) {
    if (--c->handles) return;
    if (c->cleanup) napi_remove_async_cleanup_hook(c->cleanup);
    client_drop(c);
}

static void own_closed(uv_handle_t *h) { client_handle_closed(h->data); }

static void watch_closed(uv_handle_t *h) {
    client_watch *w = h->data;
    client *c = w->c;
    free(w);
    client_handle_closed(c);
}

/* The completion queues are watched until here, so this comes before they are destroyed. */
void client_loop_close(client *c) {
    for (uint32_t i = 0; i < c->watches; i++) {
        uv_poll_stop(&c->watch[i]->poll);
        uv_close((uv_handle_t *)&c->watch[i]->poll, watch_closed);
    }
    c->watches = 0;
    uv_close((uv_handle_t *)&c->prepare, own_closed);
    uv_close((uv_handle_t *)&c->idle, own_closed);
    uv_close((uv_handle_t *)&c->timer, own_closed);
    napi_async_destroy(c->env, c->context);
    napi_delete_reference(c->env, c->on_ready);
    napi_delete_reference(c->env, c->on_event);
    napi_delete_reference(c->env, c->resource);
}
