/* client_lines.c: what a client's transports say, from any of their threads, until the event loop tells JavaScript. */
#include <stdio.h>
#include "../base/clock.h"
#include "client.h"

/* A server that is gone is dialled again and again. */
void client_transport_says(void *ctx, int level, const char *text) {
    client *c = ctx;
    uint32_t omitted;
    pthread_mutex_lock(&c->lines_lock);
    uint32_t n = __atomic_load_n(&c->line_count, __ATOMIC_RELAXED);
    if (line_passes(&c->lines_budget, n < CLIENT_LINES ? LINES : 0, fkv_now_ns(), &omitted)) {
        client_line *to = &c->lines[(c->line_first + n) % CLIENT_LINES];
        to->level = level;
        to->omitted = omitted;
        snprintf(to->text, sizeof to->text, "%s", text);
        __atomic_store_n(&c->line_count, n + 1, __ATOMIC_RELAXED);
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
