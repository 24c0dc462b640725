#include "fabric_pair.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include "../../base/clock.h"
#include "../check.h"

fab_options patient_options(const fabric_under_test *u, const fab_options *o) {
    fab_options options = o ? *o : (fab_options){ 0 };
    options.provider = u->provider;
    if (u->configure) u->configure(&options);
    /* The fabric's own limits are hang-guards here too, but where a test is about them: on a busy machine a thread that
     * is to answer may not run for a second. */
    if (!u->idle) {
        if (options.op_timeout_ms == 0) options.op_timeout_ms = (uint32_t)check_patience_ms();
        if (options.handshake_ms == 0) options.handshake_ms = (uint32_t)check_patience_ms();
    }
    return options;
}

void end_open(end *e, const fabric_under_test *u, const fab_options *o) {
    fab_options options = patient_options(u, o);
    memset(e, 0, sizeof *e);
    CHECK_EQ(fab_open(&options, &e->domain), 0);
    CHECK_EQ(fab_cq_create(e->domain, &e->cq), 0);
}

void end_close(end *e) {
    fab_cq_destroy(e->cq);
    fab_close(e->domain);
}

void pair_listen_ends(pair *p, const fabric_under_test *u, const fab_options *owner, const fab_options *client) {
    memset(p, 0, sizeof *p);
    p->under = u;
    end_open(&p->owner, u, owner);
    end_open(&p->client, u, client);
    CHECK_EQ(fab_listen(p->owner.cq, u->address(), &p->listener), 0);
    snprintf(p->address, sizeof p->address, "%s", fab_listener_address(p->listener));
}

void pair_listen(pair *p, const fabric_under_test *u, const fab_options *o) { pair_listen_ends(p, u, o, o); }

void pair_connect(pair *p, uint32_t tenant, fab_conn **client_conn, fab_conn **owner_conn) {
    CHECK_EQ(fab_connect_as(p->client.cq, p->address, p->under->who, NULL, 0, NULL, client_conn), 0);
    *owner_conn = pair_expect(p, &p->owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
    CHECK_EQ(fab_accept(*owner_conn, tenant, NULL, 0), 0);
    if (p->under->attends) fab_attend(*owner_conn);
    CHECK(pair_expect(p, &p->client, FAB_WC_CONNECT, FAB_SUCCESS).conn == *client_conn);
}

void pair_open(pair *p, const fabric_under_test *u, const fab_options *o, uint32_t tenant) {
    pair_listen(p, u, o);
    pair_connect(p, tenant, &p->client_conn, &p->owner_conn);
}

void pair_close(pair *p) {
    if (p->client_conn) fab_disconnect(p->client_conn);
    if (p->owner_conn) fab_disconnect(p->owner_conn);
    fab_unlisten(p->listener);
    end_close(&p->client);
    end_close(&p->owner);
}

static int turn(end *e) {
    fab_wc wc[16];
    int n = fab_poll(e->cq, wc, 16);
    CHECK(n >= 0 && n <= 16);
    for (int i = 0; i < n; i++) {
        CHECK(e->tail - e->head < PAIR_QUEUE);
        e->queue[e->tail++ % PAIR_QUEUE] = wc[i];
        /* What holds for every provider: the end of a connection comes alone. */
        for (int j = 0; wc[i].opcode == FAB_WC_DISCONNECT && j < n; j++) CHECK(j == i || wc[j].conn != wc[i].conn);
    }
    fab_flush(e->cq);
    return n;
}

bool end_has(const end *e) { return e->head != e->tail; }

bool pair_turn(pair *p) {
    bool any = turn(&p->owner) > 0;
    any |= turn(&p->client) > 0;
    if (!any && p->under->idle) p->under->idle();
    return any;
}

static void sleep_on_both(pair *p, int timeout_ms) {
    if (!p->under->sleeps || fab_arm(p->owner.cq) == 1 || fab_arm(p->client.cq) == 1) return;
    struct pollfd f[2] = { { .fd = fab_fd(p->owner.cq), .events = POLLIN },
                           { .fd = fab_fd(p->client.cq), .events = POLLIN } };
    poll(f, 2, timeout_ms);
}

fab_wc pair_next(pair *p, end *e) {
    uint64_t give_up = fkv_now_ns() + check_patience_ms() * 1000000ull;
    for (int idle = 0; !end_has(e); idle++) {
        if (pair_turn(p))
            idle = 0;
        else if (idle > 100)
            sleep_on_both(p, 1000);
        CHECK(fkv_now_ns() < give_up);
    }
    return e->queue[e->head++ % PAIR_QUEUE];
}

fab_wc pair_expect(pair *p, end *e, fab_wc_opcode opcode, fab_wc_status status) {
    fab_wc w = pair_next(p, e);
    if (w.opcode != opcode || w.status != status) {
        fprintf(stderr, "got opcode %d, %s; expected opcode %d, %s\n", w.opcode, fab_wc_status_name(w.status), opcode,
                fab_wc_status_name(status));
    }
    CHECK(w.opcode == opcode && w.status == status);
    return w;
}

void pair_settle(pair *p) {
    for (int i = 0; i < 2000; i++) pair_turn(p);
}

static uint64_t mix(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void pattern_fill(void *to, uint64_t seed, size_t bytes) {
    uint8_t *out = to;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t w = mix(seed + i);
        memcpy(out + i, &w, bytes - i < 8 ? bytes - i : 8);
    }
}

bool pattern_ok(const void *from, uint64_t seed, size_t bytes) {
    const uint8_t *in = from;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t w = mix(seed + i);
        if (memcmp(in + i, &w, bytes - i < 8 ? bytes - i : 8) != 0) return false;
    }
    return true;
}
