/* The tcp provider encrypted: the conformance suite, who is let in, and what somebody on the way can hear and do. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "../../fabric/tcp/tcp.h"
#include "../check.h"
#include "fabric_conformance.h"
#include "tcp_raw.h"
#include "tcp_tap.h"

enum { REGION = 1 << 16, TENANT = 3 };

/* ---- both ends ---- */

static const fab_identity honest = { .bytes = 6, .name = "honest", .key = "sixteen bytes ok" };

static bool key_of(void *ctx, const void *name, uint32_t bytes, uint8_t key[FAB_KEY_BYTES]) {
    (void)ctx;
    if (bytes != honest.bytes || memcmp(name, honest.name, bytes) != 0) return false;
    memcpy(key, honest.key, FAB_KEY_BYTES);
    return true;
}
static void configure(fab_options *o) { o->key_of = key_of; }
static const char *address(void) { return "tls:127.0.0.1:0"; }
static const fabric_under_test tls = {
    .provider = FAB_TCP, .address = address, .configure = configure, .who = &honest, .sleeps = true, .forks = true
};

static pair p;
static char there[256]; /* the owner's address */
static tap way;
static fkv_region region;
static fab_mr *mr, *local_mr;
static uint8_t local[REGION];
static uint64_t reads;

static void open_owner(const fab_options *o) {
    pair_listen(&p, &tls, o);
    memcpy(there, p.address, sizeof there);
    CHECK_EQ(fkv_region_alloc("tls", REGION, 0, &region), 0);
    pattern_fill(region.base, 5, REGION);
    CHECK_EQ(fab_reg(p.owner.domain, &region, TENANT, &mr), 0);
    CHECK_EQ(fab_reg_local(p.client.domain, local, sizeof local, &local_mr), 0);
}

static void end_connection(void) {
    fab_disconnect(p.client_conn);
    fab_disconnect(p.owner_conn);
    p.client_conn = p.owner_conn = NULL;
}

static void close_owner(void) {
    end_connection();
    fab_dereg(local_mr);
    fab_dereg(mr);
    fkv_region_free(&region);
    pair_close(&p);
}

static void connect_to(const char *where) {
    snprintf(p.address, sizeof p.address, "%s", where);
    pair_connect(&p, TENANT, &p.client_conn, &p.owner_conn);
}

static void post(uint32_t bytes) {
    fab_read r = { .wr_id = ++reads,
                   .local = local,
                   .local_mr = local_mr,
                   .remote_addr = fab_mr_addr(mr),
                   .rkey = fab_mr_rkey(mr),
                   .bytes = bytes };
    CHECK_EQ(fab_post_reads(p.client_conn, &r, 1), 1);
}

static void read_once(uint32_t bytes) {
    memset(local, 0, bytes);
    post(bytes);
    fab_wc w = pair_expect(&p, &p.client, FAB_WC_READ, FAB_SUCCESS);
    CHECK(w.wr_id == reads && memcmp(local, region.base, bytes) == 0);
}

static void send_once(fab_conn *from, end *to, const void *bytes, size_t n) {
    CHECK_EQ(fab_send(from, &(struct iovec){ (void *)(uintptr_t)bytes, n }, 1), 0);
    fab_wc w = pair_expect(&p, to, FAB_WC_RECV, FAB_SUCCESS);
    CHECK(w.bytes == n && memcmp(w.data, bytes, n) == 0);
    fab_release(w.conn, w.data);
}

static fab_wc_status refused(const char *where, const fab_identity *who) {
    fab_conn *c;
    CHECK_EQ(fab_connect_as(p.client.cq, where, who, NULL, 0, NULL, &c), 0);
    fab_wc w = pair_next(&p, &p.client);
    CHECK(w.opcode == FAB_WC_CONNECT && w.status != FAB_SUCCESS);
    pair_expect(&p, &p.client, FAB_WC_DISCONNECT, w.status);
    fab_disconnect(c);
    CHECK(!end_has(&p.owner)); /* whose user hears nothing of it */
    return w.status;
}

/* ---- who is let in ---- */

TEST(a_wrong_key_or_name_is_refused_and_says_so) {
    fab_identity wrong = honest, unknown = honest, nameless = honest;
    wrong.key[15] ^= 1;
    unknown.name[0] ^= 1;
    nameless.bytes = 0;
    open_owner(NULL);
    CHECK_EQ(refused(there, &wrong), FAB_AUTH_ERR);
    CHECK_EQ(refused(there, &unknown), FAB_AUTH_ERR);
    CHECK(refused(there, &nameless) != FAB_SUCCESS);
    connect_to(there);
    read_once(4096);
    close_owner();
}

TEST(nothing_falls_back_to_clear_text) {
    open_owner(NULL);
    fab_conn *c;
    fab_listener *clear;
    CHECK_EQ(fab_connect(p.client.cq, there, NULL, 0, NULL, &c), -EACCES);
    /* A client without encryption at a port with it, and the reverse. */
    refused(there + 4, NULL);
    CHECK_EQ(fab_listen(p.owner.cq, "127.0.0.1:0", &clear), 0);
    char marked[100];
    snprintf(marked, sizeof marked, "tls:%s", fab_listener_address(clear));
    refused(marked, &honest);
    fab_unlisten(clear);
    connect_to(there);
    read_once(64);
    close_owner();
}

TEST(without_keys_nobody_listens_for_encryption) {
    end e;
    fab_listener *l;
    fabric_under_test plain = tls;
    plain.configure = NULL;
    end_open(&e, &plain, NULL);
    CHECK_EQ(fab_listen(e.cq, "tls:127.0.0.1:0", &l), -EINVAL);
    end_close(&e);
}

/* ---- somebody on the way ---- */

static void hear_a_session(void) {
    char secret[] = "a key and its value that nobody shall hear";
    tap_open(&way, there);
    connect_to(way.address);
    read_once(REGION);
    send_once(p.client_conn, &p.owner, secret, sizeof secret);
    send_once(p.owner_conn, &p.client, secret, sizeof secret);
    end_connection();
    pair_settle(&p);
    tap_close(&way);
    CHECK(way.bytes[TAP_UP] > 200 && way.bytes[TAP_DOWN] > REGION);
    CHECK(!tap_heard(&way, secret, 16));
    for (size_t at = 0; at < REGION; at += 4096) CHECK(!tap_heard(&way, (uint8_t *)region.base + at, 16));
    uint64_t rkey = fab_mr_rkey(mr);
    CHECK(!tap_heard(&way, &rkey, sizeof rkey) && !tap_heard(&way, honest.key, FAB_KEY_BYTES));
}

TEST(what_travels_cannot_be_read) {
    open_owner(NULL);
    hear_a_session();
    close_owner();
}

TEST(what_was_heard_opens_nothing_when_it_is_said_again) {
    open_owner(NULL);
    hear_a_session();
    /* The hello alone is answered, with a fresh exchange; its sender cannot go on. */
    uint64_t lengths[] = { way.bytes[TAP_UP], 300 };
    for (int i = 0; i < 2; i++) {
        int fd = rawtcp_connect(there + 4);
        rawtcp_write(fd, way.heard[TAP_UP], lengths[i] < TAP_ROOM ? lengths[i] : TAP_ROOM);
        shutdown(fd, SHUT_WR);
        rawtcp_expect_end(fd);
        close(fd);
    }
    CHECK(!end_has(&p.owner));
    connect_to(there);
    read_once(64);
    CHECK(!end_has(&p.owner));
    close_owner();
}

/* Until the connection ends: READs, in which every byte is the region's. */
static void read_until_it_ends(void) {
    for (;;) {
        memset(local, 0, REGION);
        post(REGION);
        fab_wc w = pair_next(&p, &p.client);
        CHECK_EQ(w.opcode, FAB_WC_READ);
        if (w.status != FAB_SUCCESS) break;
        CHECK(memcmp(local, region.base, REGION) == 0);
    }
    CHECK(pair_next(&p, &p.client).opcode == FAB_WC_DISCONNECT);
}

TEST(a_changed_bit_ends_the_connection_before_anything_of_it_is_believed) {
    static const uint64_t places[] = { 3000, 70001, 200000 };
    /* A changed length makes an end wait for bytes that never come. */
    open_owner(&(fab_options){ .op_timeout_ms = 300, .handshake_ms = (uint32_t)check_patience_ms() });
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        for (int side = 0; side < 2; side++) {
            tap_open(&way, there);
            way.flip[side] = side == TAP_UP ? 600 + i * 100 : places[i];
            connect_to(way.address);
            read_until_it_ends();
            fab_wc w = pair_next(&p, &p.owner);
            CHECK(w.opcode == FAB_WC_DISCONNECT && w.status != FAB_SUCCESS);
            end_connection();
            tap_close(&way);
        }
    }
    close_owner();
}

TEST(a_changed_bit_in_the_handshake_lets_nobody_in) {
    open_owner(&(fab_options){ .handshake_ms = 100 }); /* as above */
    for (uint64_t at = 0; at < 400; at += 7) {
        tap_open(&way, there);
        way.flip[at % 2] = at / 2;
        CHECK(refused(way.address, &honest) != FAB_SUCCESS);
        tap_close(&way);
    }
    close_owner();
}

TEST(a_stream_that_was_cut_is_no_orderly_end) {
    open_owner(NULL);
    for (uint64_t at = 2000; at < 200000; at += 9973) {
        tap_open(&way, there);
        way.cut[TAP_DOWN] = at;
        connect_to(way.address);
        read_until_it_ends();
        fab_wc w = pair_next(&p, &p.owner);
        CHECK(w.opcode == FAB_WC_DISCONNECT && w.status != FAB_SUCCESS);
        end_connection();
        tap_close(&way);
    }
    close_owner();
}

/* ---- an owner that is none ---- */

/* More of OpenSSL than the provider uses, for a certificate. */
#define FUNCTIONS(X)                                                  \
    X(void *, X509_new, (void))                                       \
    X(void *, EVP_PKEY_Q_keygen, (void *, void *, const char *, ...)) \
    X(void *, X509_getm_notBefore, (const void *))                    \
    X(void *, X509_getm_notAfter, (const void *))                     \
    X(void *, X509_gmtime_adj, (void *, long))                        \
    X(int, X509_set_pubkey, (void *, void *))                         \
    X(int, X509_sign, (void *, void *, const void *))                 \
    X(const void *, EVP_sha256, (void))                               \
    X(int, SSL_CTX_use_certificate, (SSL_CTX *, void *))              \
    X(int, SSL_CTX_use_PrivateKey, (SSL_CTX *, void *))               \
    X(int, SSL_set_fd, (SSL *, int))                                  \
    X(void, X509_free, (void *))                                      \
    X(void, EVP_PKEY_free, (void *))

static struct {
#define X(TYPE, name, parameters) TYPE(*name) parameters;
    FUNCTIONS(X)
#undef X
} more;

static void find_more(void) {
    void *library = dlopen("libssl.so.3", RTLD_NOW), *at;
#define X(TYPE, name, parameters)        \
    CHECK((at = dlsym(library, #name))); \
    memcpy(&more.name, &at, sizeof at);
    FUNCTIONS(X)
#undef X
}

typedef struct rogue {
    int listener, heard, shook;
} rogue;

static void *be_rogue(void *arg) {
    rogue *r = arg;
    const openssl *f = openssl_get();
    SSL_CTX *x = f->SSL_CTX_new(f->TLS_server_method());
    void *certificate = more.X509_new(), *key = more.EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    more.X509_gmtime_adj(more.X509_getm_notBefore(certificate), 0);
    more.X509_gmtime_adj(more.X509_getm_notAfter(certificate), 3600);
    CHECK(more.X509_set_pubkey(certificate, key) == 1 && more.X509_sign(certificate, key, more.EVP_sha256()) > 0);
    CHECK(more.SSL_CTX_use_certificate(x, certificate) == 1 && more.SSL_CTX_use_PrivateKey(x, key) == 1);
    int fd = accept(r->listener, NULL, NULL);
    SSL *s = f->SSL_new(x);
    char byte;
    CHECK(more.SSL_set_fd(s, fd) == 1);
    f->SSL_set_accept_state(s);
    r->shook = f->SSL_do_handshake(s) == 1;
    r->heard = f->SSL_read(s, &byte, 1) > 0;
    f->SSL_free(s);
    f->SSL_CTX_free(x);
    more.X509_free(certificate);
    more.EVP_PKEY_free(key);
    close(fd);
    return NULL;
}

TEST(a_server_with_a_certificate_in_place_of_the_key_hears_nothing) {
    char bound[64], marked[80];
    pthread_t thread;
    find_more();
    open_owner(NULL);
    rogue r = { .listener = rawtcp_listen(bound) };
    snprintf(marked, sizeof marked, "tls:%s", bound);
    CHECK_EQ(pthread_create(&thread, NULL, be_rogue, &r), 0);
    refused(marked, &honest);
    pthread_join(thread, NULL);
    close(r.listener);
    CHECK(!r.shook && !r.heard);
    close_owner();
}

/* ---- more than a socket takes ---- */

TEST(what_the_socket_does_not_take_at_once_comes_later) {
    enum { MESSAGES = 400, BYTES = 4000 };
    static uint8_t message[BYTES];
    open_owner(NULL);
    connect_to(there);
    /* Little room, so that there is a rest, whoever runs first. */
    int room = 8192, fd = ((tcp_conn *)p.owner_conn)->fd;
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    fab_read all[64];
    for (int i = 0; i < 64; i++)
        all[i] = (fab_read){ .wr_id = (uint64_t)i,
                             .local = local,
                             .local_mr = local_mr,
                             .remote_addr = fab_mr_addr(mr),
                             .rkey = fab_mr_rkey(mr),
                             .bytes = REGION };
    CHECK_EQ(fab_post_reads(p.client_conn, all, 64), 64);
    fab_flush(p.client.cq);
    /* The client does not look: answers fill its socket, and messages come behind them. */
    int posted = 0;
    for (int idle = 0; posted < MESSAGES && idle < 1000; idle++) {
        pattern_fill(message, (uint64_t)posted, BYTES);
        if (fab_send(p.owner_conn, &(struct iovec){ message, BYTES }, 1) == 0) posted++;
        fab_flush(p.owner.cq);
        fab_wc w[8];
        fab_poll(p.owner.cq, w, 8);
    }
    CHECK(posted > 20);
    int reads_left = 64, messages_left = posted;
    while (reads_left + messages_left > 0) {
        fab_wc w = pair_next(&p, &p.client);
        CHECK_EQ(w.status, FAB_SUCCESS);
        if (w.opcode == FAB_WC_READ) {
            CHECK(memcmp(local, region.base, 64) == 0);
            reads_left--;
        } else {
            CHECK(w.opcode == FAB_WC_RECV && w.bytes == BYTES);
            CHECK(pattern_ok(w.data, (uint64_t)(posted - messages_left--), BYTES));
            fab_release(w.conn, w.data);
        }
    }
    read_once(REGION);
    close_owner();
}

/* ---- what strangers can take ---- */

TEST(a_stranger_is_listened_to_for_so_many_bytes_and_no_more) {
    open_owner(&(fab_options){ .handshake_ms = 600000 });
    /* The header of a ClientHello of 16 KB, and what could be its beginning. */
    uint8_t hello[TCP_TLS_EARLY] = { 0x16, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb, 3, 3 };
    int fd = rawtcp_connect(there + 4);
    rawtcp_write(fd, hello, sizeof hello);
    rawtcp_expect_end(fd);
    close(fd);
    connect_to(there);
    read_once(64);
    close_owner();
}

TEST(a_handshake_that_takes_too_long_is_ended) {
    open_owner(&(fab_options){ .handshake_ms = 50, .op_timeout_ms = (uint32_t)check_patience_ms() });
    uint8_t half[] = { 0x16, 3, 1, 0, 200, 1, 0 };
    int fd = rawtcp_connect(there + 4);
    rawtcp_write(fd, half, sizeof half);
    rawtcp_expect_end(fd);
    close(fd);
    close_owner();
}

TEST(garbage_ends_the_connection_that_brought_it) {
    uint64_t x = check_seed();
    open_owner(NULL);
    for (int i = 0; i < 300; i++) {
        uint8_t bytes[256];
        for (size_t k = 0; k < sizeof bytes; k++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            bytes[k] = (uint8_t)x;
        }
        int fd = rawtcp_connect(there + 4);
        if (i % 2) memcpy(bytes, (uint8_t[]){ 0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3 }, 11);
        rawtcp_write(fd, bytes, sizeof bytes);
        shutdown(fd, SHUT_WR);
        rawtcp_expect_end(fd);
        close(fd);
    }
    connect_to(there);
    read_once(64);
    close_owner();
}

/* A hundred handshakes wait; each has one step a round, and READs go on. */
TEST(handshakes_take_turns_with_reads) {
    enum { MANY = 100 };
    fab_conn *c[MANY];
    open_owner(NULL);
    connect_to(there);
    for (int i = 0; i < MANY; i++) CHECK_EQ(fab_connect_as(p.client.cq, there, &honest, NULL, 0, NULL, &c[i]), 0);
    int asked = 0, up = 0;
    fab_conn *there[MANY];
    while (up < MANY) {
        pair_turn(&p);
        while (end_has(&p.owner)) {
            fab_wc w = pair_expect(&p, &p.owner, FAB_WC_ACCEPT, FAB_SUCCESS);
            CHECK_EQ(fab_accept(there[asked++] = w.conn, TENANT, NULL, 0), 0);
        }
        while (end_has(&p.client)) {
            pair_expect(&p, &p.client, FAB_WC_CONNECT, FAB_SUCCESS);
            up++;
        }
        if (up == 0) {
            post(64);
            fab_wc w;
            while ((w = pair_next(&p, &p.client)).opcode != FAB_WC_READ) up += w.opcode == FAB_WC_CONNECT;
            CHECK_EQ(w.status, FAB_SUCCESS);
        }
    }
    for (int i = 0; i < MANY; i++) {
        fab_disconnect(c[i]);
        fab_disconnect(there[i]);
    }
    close_owner();
}

/* ---- keys ---- */

TEST(keys_are_exchanged_while_both_ends_send) {
    open_owner(NULL);
    connect_to(there);
    tcp_tls *ends[] = { ((tcp_conn *)p.client_conn)->tls, ((tcp_conn *)p.owner_conn)->tls };
    for (int i = 0; i < 2; i++) ends[i]->records_most = 3;
    for (uint64_t i = 0; i < 2000; i++) {
        send_once(p.client_conn, &p.owner, &i, sizeof i);
        send_once(p.owner_conn, &p.client, &i, sizeof i);
        if (i % 100 == 0) read_once(REGION);
    }
    for (int i = 0; i < 2; i++) CHECK(ends[i]->records <= 3);
    close_owner();
}

int main(int argc, char **argv) {
    if (fab_encryption_missing(FAB_TCP)) {
        printf("left out: %s\n", fab_encryption_missing(FAB_TCP));
        return 0;
    }
    fabric_conformance_child(&tls, argc, argv);
    RUN(a_wrong_key_or_name_is_refused_and_says_so);
    RUN(nothing_falls_back_to_clear_text);
    RUN(without_keys_nobody_listens_for_encryption);
    RUN(what_travels_cannot_be_read);
    RUN(what_was_heard_opens_nothing_when_it_is_said_again);
    RUN(a_changed_bit_ends_the_connection_before_anything_of_it_is_believed);
    RUN(a_changed_bit_in_the_handshake_lets_nobody_in);
    RUN(a_stream_that_was_cut_is_no_orderly_end);
    RUN(a_server_with_a_certificate_in_place_of_the_key_hears_nothing);
    RUN(what_the_socket_does_not_take_at_once_comes_later);
    RUN(a_stranger_is_listened_to_for_so_many_bytes_and_no_more);
    RUN(a_handshake_that_takes_too_long_is_ended);
    RUN(garbage_ends_the_connection_that_brought_it);
    RUN(handshakes_take_turns_with_reads);
    RUN(keys_are_exchanged_while_both_ends_send);
    fabric_conformance(&tls);
    fabric_under_test attended = tls;
    attended.attends = true;
    fabric_conformance_sends(&attended);
    fabric_conformance_reads(&attended);
    return check_end(argc, argv);
}
