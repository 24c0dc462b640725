#include "tcp_tap.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../check.h"
#include "tcp_raw.h"

/* False: this connection is over. */
static bool pass_on(tap *t, int way, int from, int to) {
    uint8_t some[4096];
    ssize_t n = recv(from, some, sizeof some, 0);
    if (n <= 0) return false;
    uint64_t at = t->bytes[way], end = at + (uint64_t)n;
    for (uint64_t i = 0; i < (uint64_t)n && at + i < TAP_ROOM; i++) t->heard[way][at + i] = some[i];
    t->bytes[way] = end;
    if (at <= t->flip[way] && t->flip[way] < end) some[t->flip[way] - at] ^= 4;
    if (t->cut[way] < end) {
        if (t->cut[way] > at) send(to, some, t->cut[way] - at, MSG_NOSIGNAL);
        return false;
    }
    return send(to, some, (size_t)n, MSG_NOSIGNAL) == n;
}

static void carry(tap *t, int client) {
    int owner = rawtcp_connect(t->to);
    t->bytes[TAP_UP] = t->bytes[TAP_DOWN] = 0;
    for (bool on = true; on;) {
        struct pollfd f[] = { { .fd = client, .events = POLLIN },
                              { .fd = owner, .events = POLLIN },
                              { .fd = t->stop[0], .events = POLLIN } };
        CHECK(poll(f, 3, -1) > 0);
        if (f[2].revents) break;
        if (f[0].revents) on = pass_on(t, TAP_UP, client, owner);
        if (on && f[1].revents) on = pass_on(t, TAP_DOWN, owner, client);
    }
    close(owner);
    close(client);
}

static void *run(void *arg) {
    tap *t = arg;
    for (;;) {
        struct pollfd f[] = { { .fd = t->listener, .events = POLLIN }, { .fd = t->stop[0], .events = POLLIN } };
        CHECK(poll(f, 2, -1) > 0);
        if (f[1].revents) return NULL;
        int client = accept(t->listener, NULL, NULL);
        if (client >= 0) carry(t, client);
    }
}

void tap_open(tap *t, const char *to) {
    char bound[64];
    t->flip[0] = t->flip[1] = t->cut[0] = t->cut[1] = TAP_NEVER;
    t->bytes[0] = t->bytes[1] = 0;
    bool encrypted = strncmp(to, "tls:", 4) == 0;
    snprintf(t->to, sizeof t->to, "%s", to + (encrypted ? 4 : 0));
    t->listener = rawtcp_listen(bound);
    snprintf(t->address, sizeof t->address, "%s%s", encrypted ? "tls:" : "", bound);
    CHECK_EQ(pipe(t->stop), 0);
    CHECK_EQ(pthread_create(&t->thread, NULL, run, t), 0);
}

void tap_close(tap *t) {
    CHECK_EQ(write(t->stop[1], "", 1), 1);
    pthread_join(t->thread, NULL);
    close(t->listener);
    close(t->stop[0]);
    close(t->stop[1]);
}

bool tap_heard(const tap *t, const void *bytes, size_t n) {
    for (int way = 0; way < 2; way++) {
        size_t heard = t->bytes[way] < TAP_ROOM ? (size_t)t->bytes[way] : TAP_ROOM;
        if (memmem(t->heard[way], heard, bytes, n)) return true;
    }
    return false;
}
