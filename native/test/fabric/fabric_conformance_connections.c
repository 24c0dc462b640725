/* Connecting, accepting, rejecting, private data, limits, and orderly ends. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include "../../base/clock.h"
#include "../../fabric/provider.h"
#include "../check.h"
#include "fabric_conformance.h"

static const fabric_under_test *u;
static pair p;

TEST(private_data_travels_both_ways_with_a_connection) {
    uint8_t hello[FAB_PRIVATE_MAX], welcome[FAB_PRIVATE_MAX];
    pattern_fill(hello, 1, sizeof hello);
    pattern_fill(welcome, 2, sizeof welcome);
    for (uint32_t bytes = 0; bytes <= FAB_PRIVATE_MAX; bytes += 8) {
        int mark;
        pair_listen(&p, u, NULL);
        CHECK_EQ(fab_connect_as(p.client.cq, p.address, u->who, hello, bytes, &mark, &p.client_conn), 0);
        CHECK(fab_user(p.client_conn) == &mark);
        fab_wc asked = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS);
        CHECK_EQ(asked.bytes, bytes);
        CHECK(memcmp(asked.data, hello, bytes) == 0);
        p.owner_conn = asked.conn;
        fab_set_user(p.owner_conn, &p);
        CHECK(fab_user(p.owner_conn) == &p);
        CHECK_EQ(fab_accept(p.owner_conn, 0, welcome, bytes), 0);
        fab_wc connected = pair_expect(&p, &p.client, FAB_WC_CONNECT, FAB_SUCCESS);
        CHECK(connected.conn == p.client_conn);
        CHECK_EQ(connected.bytes, bytes);
        CHECK(memcmp(connected.data, welcome, bytes) == 0);
        pair_close(&p);
    }
    pair_listen(&p, u, NULL);
    CHECK_EQ(fab_connect_as(p.client.cq, p.address, u->who, hello, FAB_PRIVATE_MAX + 1, NULL, &p.client_conn), -EINVAL);
    CHECK(p.client_conn == NULL);
    pair_close(&p);
}

TEST(both_ends_take_the_smaller_message_limit) {
    memset(&p, 0, sizeof p);
    p.under = u;
    end_open(&p.owner, u, &(fab_options){ .max_message = 4096 });
    end_open(&p.client, u, &(fab_options){ .max_message = 1000 });
    CHECK_EQ(fab_listen(p.owner.cq, u->address(), &p.listener), 0);
    snprintf(p.address, sizeof p.address, "%s", fab_listener_address(p.listener));
    pair_connect(&p, 0, &p.client_conn, &p.owner_conn);
    CHECK_EQ(fab_max_message(p.client_conn), 1000);
    CHECK_EQ(fab_max_message(p.owner_conn), 1000);
    pair_close(&p);
}

TEST(a_rejected_peer_gets_the_reason_and_then_the_end) {
    pair_listen(&p, u, NULL);
    CHECK_EQ(fab_connect_as(p.client.cq, p.address, u->who, "?", 1, NULL, &p.client_conn), 0);
    fab_wc asked = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS);
    CHECK_EQ(fab_reject(asked.conn, "no ticket", 9), 0);
    fab_wc w = pair_expect(&p, &p.client, FAB_WC_CONNECT, FAB_REM_ACCESS_ERR);
    CHECK_EQ(w.bytes, 9);
    CHECK(memcmp(w.data, "no ticket", 9) == 0);
    CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ "x", 1 }, 1), -ENOTCONN);
    CHECK_EQ(pair_next(&p, &p.client).opcode, FAB_WC_DISCONNECT);
    pair_settle(&p);
    CHECK(!end_has(&p.client) && !end_has(&p.owner));
    pair_close(&p);
}

TEST(a_connection_cannot_be_used_before_it_is_accepted) {
    pair_listen(&p, u, NULL);
    CHECK_EQ(fab_connect_as(p.client.cq, p.address, u->who, NULL, 0, NULL, &p.client_conn), 0);
    CHECK_EQ(fab_send(p.client_conn, &(struct iovec){ "x", 1 }, 1), -ENOTCONN);
    fab_read r = { .bytes = 8 };
    CHECK_EQ(fab_post_reads(p.client_conn, &r, 1), -ENOTCONN);
    CHECK_EQ(fab_attach(p.client_conn, 1, 0, 8, 0), -ENOTCONN);
    p.owner_conn = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
    CHECK_EQ(fab_send(p.owner_conn, &(struct iovec){ "x", 1 }, 1), -ENOTCONN);
    CHECK_EQ(fab_accept(p.owner_conn, 0, NULL, 0), 0);
    CHECK_EQ(fab_send(p.owner_conn, &(struct iovec){ "at once", 7 }, 1), 0);
    pair_expect(&p, &p.client, FAB_WC_CONNECT, FAB_SUCCESS);
    fab_wc w = pair_expect(&p, &p.client, FAB_WC_RECV, FAB_SUCCESS);
    CHECK(w.bytes == 7 && memcmp(w.data, "at once", 7) == 0);
    pair_close(&p);
}

TEST(where_nobody_listens_connecting_fails_and_ends) {
    pair_listen(&p, u, NULL);
    fab_unlisten(p.listener);
    p.listener = NULL;
    CHECK_EQ(fab_connect_as(p.client.cq, p.address, u->who, NULL, 0, NULL, &p.client_conn), 0);
    fab_wc w = pair_next(&p, &p.client);
    CHECK_EQ(w.opcode, FAB_WC_CONNECT);
    CHECK_EQ(w.status, FAB_RETRY_EXC_ERR); /* an owner that refuses is another thing */
    w = pair_next(&p, &p.client);
    CHECK_EQ(w.opcode, FAB_WC_DISCONNECT);
    CHECK(w.status != FAB_SUCCESS);
    pair_close(&p);
}

TEST(addresses_that_cannot_be_parsed_are_refused_at_once) {
    pair_listen(&p, u, NULL);
    fab_listener *l;
    fab_conn *c;
    char endless[1000];
    memset(endless, 'a', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    CHECK(fab_listen(p.owner.cq, "nonsense", &l) < 0 && l == NULL);
    CHECK(fab_listen(p.owner.cq, "", &l) < 0 && l == NULL);
    CHECK(fab_listen(p.owner.cq, NULL, &l) < 0 && l == NULL);
    CHECK_EQ(fab_listen(p.owner.cq, endless, &l), -ENAMETOOLONG);
    CHECK(fab_connect_as(p.client.cq, "nonsense", u->who, NULL, 0, NULL, &c) < 0 && c == NULL);
    CHECK_EQ(fab_connect_as(p.client.cq, endless, u->who, NULL, 0, NULL, &c), -ENAMETOOLONG);
    pair_close(&p);
}

TEST(an_address_in_use_is_refused_and_free_again_after_unlisten) {
    pair_listen(&p, u, NULL);
    fab_listener *second;
    CHECK_EQ(fab_listen(p.client.cq, p.address, &second), -EADDRINUSE);
    fab_unlisten(p.listener);
    CHECK_EQ(fab_listen(p.owner.cq, p.address, &p.listener), 0);
    pair_connect(&p, 0, &p.client_conn, &p.owner_conn);
    pair_close(&p);
}

TEST(options_out_of_range_are_refused) {
    fab_domain *d;
    CHECK_EQ(fab_open(&(fab_options){ .provider = u->provider, .max_message = FAB_MESSAGE_MIN - 1 }, &d), -EINVAL);
    CHECK_EQ(fab_open(&(fab_options){ .provider = u->provider, .max_message = FAB_MESSAGE_MAX + 1 }, &d), -EINVAL);
    CHECK_EQ(fab_open(&(fab_options){ .provider = (fab_provider)99 }, &d), -EINVAL);
}

TEST(more_connections_than_allowed_are_refused_until_one_ends) {
    enum { LIMIT = 3 };
    fab_conn *client[LIMIT + 2], *owner[LIMIT + 2];
    pair_listen(&p, u, &(fab_options){ .max_conns = LIMIT });
    for (int i = 0; i < LIMIT; i++) pair_connect(&p, 0, &client[i], &owner[i]);
    CHECK_EQ(fab_connect_as(p.client.cq, p.address, u->who, NULL, 0, NULL, &client[LIMIT]), 0);
    fab_wc w = pair_next(&p, &p.client);
    CHECK(w.opcode == FAB_WC_CONNECT && w.status != FAB_SUCCESS);
    CHECK_EQ(pair_next(&p, &p.client).opcode, FAB_WC_DISCONNECT);
    fab_disconnect(client[LIMIT]);
    CHECK(!end_has(&p.owner));
    fab_disconnect(client[0]);
    CHECK(pair_expect(&p, &p.owner, FAB_WC_DISCONNECT, FAB_SUCCESS).conn == owner[0]);
    fab_disconnect(owner[0]);
    for (bool connected = false; !connected;) { /* the place is free once the provider has let go of the old one */
        CHECK_EQ(fab_connect_as(p.client.cq, p.address, u->who, NULL, 0, NULL, &client[0]), 0);
        while (!end_has(&p.client) && !end_has(&p.owner)) pair_turn(&p);
        if (end_has(&p.owner)) {
            owner[0] = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
            CHECK_EQ(fab_accept(owner[0], 0, NULL, 0), 0);
            pair_expect(&p, &p.client, FAB_WC_CONNECT, FAB_SUCCESS);
            connected = true;
        } else {
            CHECK(pair_next(&p, &p.client).status != FAB_SUCCESS);
            CHECK_EQ(pair_next(&p, &p.client).opcode, FAB_WC_DISCONNECT);
            fab_disconnect(client[0]);
        }
    }
    for (int i = 0; i < LIMIT; i++) {
        fab_disconnect(client[i]);
        fab_disconnect(owner[i]);
    }
    pair_close(&p);
}

TEST(an_orderly_end_delivers_what_was_sent_and_then_one_disconnect) {
    enum { MESSAGES = 50 };
    for (int who = 0; who < 2; who++) {
        pair_open(&p, u, NULL, 0);
        end *other = who ? &p.client : &p.owner;
        fab_conn **leaves = who ? &p.owner_conn : &p.client_conn, *stays = who ? p.client_conn : p.owner_conn;
        for (uint64_t i = 0; i < MESSAGES; i++) CHECK_EQ(fab_send(*leaves, &(struct iovec){ &i, sizeof i }, 1), 0);
        fab_flush(who ? p.owner.cq : p.client.cq);
        fab_disconnect(*leaves);
        *leaves = NULL;
        const void *kept[MESSAGES];
        for (uint64_t i = 0; i < MESSAGES; i++) {
            fab_wc w = pair_expect(&p, other, FAB_WC_RECV, FAB_SUCCESS);
            CHECK(w.bytes == sizeof i && memcmp(w.data, &i, sizeof i) == 0);
            kept[i] = w.data;
        }
        fab_wc w = pair_expect(&p, other, FAB_WC_DISCONNECT, FAB_SUCCESS);
        CHECK(w.conn == stays);
        /* Messages are the user's until the connection is freed, and releasing them stays harmless. */
        for (uint64_t i = 0; i < MESSAGES; i += 2) {
            CHECK(memcmp(kept[i], &i, sizeof i) == 0);
            fab_release(stays, kept[i]);
        }
        CHECK_EQ(fab_send(stays, &(struct iovec){ "x", 1 }, 1), -ENOTCONN);
        pair_settle(&p);
        CHECK(!end_has(other));
        pair_close(&p);
    }
}

TEST(a_connection_may_be_dropped_at_any_stage) {
    for (int stage = 0; stage < 5; stage++) {
        pair_listen(&p, u, NULL);
        CHECK_EQ(fab_connect_as(p.client.cq, p.address, u->who, NULL, 0, NULL, &p.client_conn), 0);
        fab_wc w = { 0 };
        if (stage >= 1) w = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS);
        p.owner_conn = w.conn;
        if (stage == 3) CHECK_EQ(fab_accept(p.owner_conn, 0, NULL, 0), 0);
        if (stage == 2) { /* the owner goes without an answer */
            fab_disconnect(p.owner_conn);
            p.owner_conn = NULL;
            w = pair_next(&p, &p.client);
            CHECK(w.opcode == FAB_WC_CONNECT && w.status != FAB_SUCCESS);
            CHECK_EQ(pair_next(&p, &p.client).opcode, FAB_WC_DISCONNECT);
        } else { /* the client goes */
            fab_disconnect(p.client_conn);
            p.client_conn = NULL;
        }
        if (stage == 1) {
            CHECK_EQ(pair_next(&p, &p.owner).opcode, FAB_WC_DISCONNECT);
            CHECK_EQ(fab_accept(p.owner_conn, 0, NULL, 0), -ENOTCONN);
        }
        if (stage == 3) CHECK_EQ(pair_next(&p, &p.owner).opcode, FAB_WC_DISCONNECT);
        if (stage == 4) { /* the listener goes while a peer asks, seen or not */
            fab_unlisten(p.listener);
            p.listener = NULL;
        }
        pair_close(&p);
    }
}

TEST(peers_that_wait_at_a_closed_listener_are_told) {
    pair_listen(&p, u, NULL);
    CHECK_EQ(fab_connect_as(p.client.cq, p.address, u->who, NULL, 0, NULL, &p.client_conn), 0);
    fab_wc wc[4];
    int n = 0;
    /* the owner does not poll: unseen there */
    for (int i = 0; i < 1000 && n == 0; i++) n = fab_poll(p.client.cq, wc, 4);
    CHECK_EQ(n, 0);
    struct pollfd asked = { .fd = fab_fd(p.owner.cq), .events = POLLIN };
    uint64_t give_up = fkv_now_ns() + check_patience_ms() * 1000000ull;
    if (u->sleeps && fab_arm(p.owner.cq) == 0) {
        while (poll(&asked, 1, 1) == 0) { /* the asking may take more than one step of the client's thread */
            CHECK_EQ(fab_poll(p.client.cq, wc, 4), 0);
            CHECK(fkv_now_ns() < give_up);
        }
    }
    fab_unlisten(p.listener);
    p.listener = NULL;
    fab_wc w = pair_next(&p, &p.client);
    CHECK(w.opcode == FAB_WC_CONNECT && w.status != FAB_SUCCESS);
    CHECK_EQ(pair_next(&p, &p.client).opcode, FAB_WC_DISCONNECT);
    pair_settle(&p);
    CHECK(!end_has(&p.owner));
    pair_close(&p);
}

/* Whether the owner was asked before the client's time was over, which on a busy machine it need not be. */
static bool owner_was_asked(uint32_t handshake_ms) {
    pair_listen(&p, u, &(fab_options){ .handshake_ms = handshake_ms });
    CHECK_EQ(fab_connect_as(p.client.cq, p.address, u->who, NULL, 0, NULL, &p.client_conn), 0);
    uint64_t give_up = fkv_now_ns() + check_patience_ms() * 1000000ull;
    while (!end_has(&p.owner) && !end_has(&p.client)) {
        pair_turn(&p);
        CHECK(fkv_now_ns() < give_up);
    }
    if (end_has(&p.owner)) return true;
    pair_close(&p);
    return false;
}

TEST(an_owner_that_never_answers_is_given_up) {
    for (uint32_t handshake_ms = 100; !owner_was_asked(handshake_ms);) {
        handshake_ms *= 4;
        CHECK(handshake_ms < check_patience_ms());
    }
    p.owner_conn = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS).conn;
    fab_wc w = pair_next(&p, &p.client);
    CHECK(w.opcode == FAB_WC_CONNECT);
    CHECK(w.status == FAB_RESP_TIMEOUT_ERR || w.status == FAB_RETRY_EXC_ERR);
    CHECK_EQ(pair_next(&p, &p.client).opcode, FAB_WC_DISCONNECT);
    CHECK_EQ(pair_next(&p, &p.owner).opcode, FAB_WC_DISCONNECT);
    pair_close(&p);
}

void fabric_conformance_connections(const fabric_under_test *under) {
    u = under;
    RUN(private_data_travels_both_ways_with_a_connection);
    RUN(both_ends_take_the_smaller_message_limit);
    RUN(a_rejected_peer_gets_the_reason_and_then_the_end);
    RUN(a_connection_cannot_be_used_before_it_is_accepted);
    RUN(where_nobody_listens_connecting_fails_and_ends);
    RUN(addresses_that_cannot_be_parsed_are_refused_at_once);
    RUN(an_address_in_use_is_refused_and_free_again_after_unlisten);
    RUN(options_out_of_range_are_refused);
    RUN(more_connections_than_allowed_are_refused_until_one_ends);
    RUN(an_orderly_end_delivers_what_was_sent_and_then_one_disconnect);
    RUN(a_connection_may_be_dropped_at_any_stage);
    RUN(peers_that_wait_at_a_closed_listener_are_told);
    RUN(an_owner_that_never_answers_is_given_up);
}
