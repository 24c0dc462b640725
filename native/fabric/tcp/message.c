/* message.c: memory of received messages. The driver takes, the CQ's thread gives back; in the steady state nothing is
 * allocated.
 *
 * Sizes are powers of two from 256 bytes. Free messages are kept by size in `pool`, which is the driver's; the CQ's
 * thread gives back through the stack `pool_returns`, which the driver takes whole when it runs dry. Invariant:
 * pool_bytes, all that this connection holds, is at most 4 windows: what is in use is bounded by the window (a message
 * takes less than twice its cost), what is free is dropped before the bound is passed.
 */
#include <assert.h>
#include <stdlib.h>
#include "tcp.h"

static size_t bytes_of_class(uint32_t k) { return (size_t)256 << k; }

static uint32_t class_of(uint32_t message_bytes) {
    size_t need = sizeof(tcp_message) + message_bytes;
    uint32_t k = 0;
    while (bytes_of_class(k) < need) k++;
    return k;
}

static void into_pool(tcp_conn *c, tcp_message *m) {
    m->event.next = (tcp_event *)c->pool[m->size_class];
    c->pool[m->size_class] = m;
}

static void take_returns(tcp_conn *c) {
    tcp_message *m = __atomic_exchange_n(&c->pool_returns, NULL, __ATOMIC_ACQUIRE);
    while (m) {
        tcp_message *next = (tcp_message *)m->event.next;
        into_pool(c, m);
        m = next;
    }
}

static void drop_pool(tcp_conn *c) {
    for (size_t k = 0; k < sizeof c->pool / sizeof c->pool[0]; k++) {
        while (c->pool[k]) {
            tcp_message *m = c->pool[k];
            c->pool[k] = (tcp_message *)m->event.next;
            c->pool_bytes -= bytes_of_class(m->size_class);
            free(m);
        }
    }
}

tcp_message *tcp_message_get(tcp_conn *c, uint32_t bytes) {
    static_assert(sizeof(tcp_message) + FAB_MESSAGE_MAX <= (size_t)256 << 15, "a class for each message");
    uint32_t k = class_of(bytes);
    if (!c->pool[k]) take_returns(c);
    tcp_message *m = c->pool[k];
    if (m) {
        c->pool[k] = (tcp_message *)m->event.next;
    } else {
        if (c->pool_bytes + bytes_of_class(k) > (size_t)tcp_domain_of(c)->window * 4) drop_pool(c);
        m = malloc(bytes_of_class(k));
        if (!m) return NULL;
        c->pool_bytes += bytes_of_class(k);
        m->size_class = k;
    }
    m->event = (tcp_event){ .conn = c, .kind = TCP_EV_MESSAGE };
    m->bytes = bytes;
    return m;
}

void tcp_message_put(tcp_conn *c, tcp_message *m) {
    if (!c->threaded) {
        into_pool(c, m);
        return;
    }
    tcp_message *top = __atomic_load_n(&c->pool_returns, __ATOMIC_RELAXED);
    do m->event.next = (tcp_event *)top;
    while (!__atomic_compare_exchange_n(&c->pool_returns, &top, m, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

void tcp_message_free_all(tcp_conn *c) {
    take_returns(c);
    tcp_message *m;
    while ((m = LIST_FIRST(&c->unreleased, tcp_message, link))) {
        list_remove(&m->link);
        into_pool(c, m);
    }
    if (c->want_message) into_pool(c, c->want_message);
    c->want_message = NULL;
    drop_pool(c);
}
