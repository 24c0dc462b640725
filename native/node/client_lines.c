/* client_lines.c: what a client's transports say, from any of their threads, until the event loop tells JavaScript. */
#include <stdio.h>
#include "../base/clock.h"
#include "client.h"

/* A server that is gone is dialled again and again: so many in so long are told. */
enum { LINES = 20 };
static const uint64_t LINES_NS = 10000000000u;

void client_transport_says(void *ctx, int level, const char *text) {
    client *c = ctx;
    uint64_t now = fkv_now_ns();
    pthread_mutex_lock(&c->lines_lock);
    uint32_t n = __atomic_load_n(&c->line_count, __ATOMIC_RELAXED);
    if (c->lines_since_ns == 0 || now - c->lines_since_ns >= LINES_NS) {
        c->lines_since_ns = now;
        c->lines_passed = 0;
    }
    if (n < CLIENT_LINES && c->lines_passed < LINES) {
        client_line *to = &c->lines[(c->line_first + n) % CLIENT_LINES];
        to->level = level;
        to->omitted = c->lines_omitted;
        snprintf(to->text, sizeof to->text, "%s", text);
        c->lines_passed++;
        c->lines_omitted = 0;
        __atomic_store_n(&c->line_count, n + 1, __ATOMIC_RELAXED);
    } else {
        c->lines_omitted++;
    }
    pthread_mutex_unlock(&c->lines_lock);
}

bool client_next_line(client *c, client_line *out) {
    pthread_mutex_lock(&c->lines_lock);
    uint32_t n = __atomic_load_n(&c->line_count, __ATOMIC_RELAXED);
    if (n > 0) {
        *out = c->lines[c->line_first];
        c->line_first = (c->line_first + 1) % CLIENT_LINES;
        __atomic_store_n(&c->line_count, n - 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&c->lines_lock);
    return n > 0;
}
