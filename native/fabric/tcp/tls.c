/* tls.c: see tls.h. */
#include "tls.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tcp.h"

static const unsigned char AES_128_GCM_SHA256[] = { 0x13, 0x01 };
enum { ERROR_REASON = 0x7fffff, ALERTS = 256, SHAKE_ROOM = 4096, SAY_ROOM = 256 };

/* ---- OpenSSL's view of the socket ---- */

static int source(BIO *b, char *to, int room) {
    tcp_tls *t = openssl_get()->BIO_get_data(b);
    t->f->BIO_clear_flags(b, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
    t->starved = t->in_bytes == 0;
    if (t->starved) {
        t->f->BIO_set_flags(b, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
        return -1;
    }
    size_t n = t->in_bytes < (size_t)room ? t->in_bytes : (size_t)room;
    memcpy(to, t->in, n);
    t->in += n;
    t->in_bytes -= n;
    return (int)n;
}

static int sink(BIO *b, const char *from, int bytes) {
    tcp_tls *t = openssl_get()->BIO_get_data(b);
    if (!t->sink) return bytes; /* an alert while reading: the connection is over, and that is told by its end */
    if (t->sink_room - t->sink_bytes < (size_t)bytes) return -1;
    memcpy(t->sink + t->sink_bytes, from, (size_t)bytes);
    t->sink_bytes += (size_t)bytes;
    return bytes;
}

static long control(BIO *b, int command, long number, void *pointer) {
    (void)b, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO *bio_for(tcp_tls *t) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static BIO_METHOD *method;
    pthread_mutex_lock(&lock);
    if (!method) {
        method = t->f->BIO_meth_new(BIO_TYPE_SOURCE_SINK | 0x7f, "farkv");
        if (method) {
            t->f->BIO_meth_set_read(method, source);
            t->f->BIO_meth_set_write(method, sink);
            t->f->BIO_meth_set_ctrl(method, control);
        }
    }
    pthread_mutex_unlock(&lock);
    BIO *b = method ? t->f->BIO_new(method) : NULL;
    if (!b) return NULL;
    t->f->BIO_set_data(b, t);
    t->f->BIO_set_init(b, 1);
    return b;
}

/* ---- keys ---- */

static SSL_SESSION *session_of(const openssl *f, SSL *ssl, const uint8_t key[FAB_KEY_BYTES]) {
    SSL_SESSION *s = f->SSL_SESSION_new();
    const SSL_CIPHER *cipher = f->SSL_CIPHER_find(ssl, AES_128_GCM_SHA256);
    if (s && cipher && f->SSL_SESSION_set1_master_key(s, key, FAB_KEY_BYTES) && f->SSL_SESSION_set_cipher(s, cipher) &&
        f->SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION))
        return s;
    f->SSL_SESSION_free(s);
    return NULL;
}

static tcp_tls *tls_of(const openssl *f, SSL *ssl) { return f->BIO_get_data(f->SSL_get_rbio(ssl)); }

static int show_key(SSL *ssl, const EVP_MD *md, const unsigned char **name, size_t *bytes, SSL_SESSION **out) {
    (void)md; /* of the one cipher */
    const openssl *f = openssl_get();
    tcp_tls *t = tls_of(f, ssl);
    *name = t->who.name;
    *bytes = t->who.bytes;
    *out = session_of(f, ssl, t->who.key);
    return *out != NULL;
}

/* Without a session the handshake fails: this end has no certificate to go on with. */
static int find_key(SSL *ssl, const unsigned char *name, size_t bytes, SSL_SESSION **out) {
    const openssl *f = openssl_get();
    const fab_options *o = tls_of(f, ssl)->options;
    uint8_t key[FAB_KEY_BYTES];
    *out = NULL;
    if (bytes > FAB_NAME_MAX || !o->key_of(o->key_ctx, name, (uint32_t)bytes, key)) return 1;
    *out = session_of(f, ssl, key);
    explicit_bzero(key, sizeof key);
    return *out != NULL;
}

/* ---- contexts ---- */

static SSL_CTX *context(const openssl *f, bool server) {
    SSL_CTX *x = f->SSL_CTX_new(server ? f->TLS_server_method() : f->TLS_client_method());
    if (!x) return NULL;
    bool good = f->SSL_CTX_ctrl(x, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, NULL) &&
                f->SSL_CTX_ctrl(x, SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_3_VERSION, NULL) &&
                f->SSL_CTX_set_ciphersuites(x, "TLS_AES_128_GCM_SHA256") &&
                f->SSL_CTX_ctrl(x, SSL_CTRL_SET_GROUPS_LIST, 0, "X25519") && f->SSL_CTX_set_num_tickets(x, 0);
    f->SSL_CTX_ctrl(x, SSL_CTRL_SET_SESS_CACHE_MODE, 0, NULL);
    f->SSL_CTX_ctrl(x, SSL_CTRL_MODE, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, NULL);
    f->SSL_CTX_set_options(x, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    if (server)
        f->SSL_CTX_set_psk_find_session_callback(x, find_key);
    else
        f->SSL_CTX_set_psk_use_session_callback(x, show_key);
    if (good) return x;
    f->SSL_CTX_free(x);
    return NULL;
}

int tcp_tls_ready(tcp_domain *d, bool server) {
    const openssl *f = openssl_get();
    SSL_CTX **x = server ? &d->tls_server : &d->tls_client;
    if (!f) {
        fab_log(&d->options, FAB_LOG_ERROR, "tcp: no encryption: %s", openssl_missing());
        return -EOPNOTSUPP;
    }
    pthread_mutex_lock(&d->tls_lock);
    if (!*x) *x = context(f, server);
    int e = *x ? 0 : -ENOMEM;
    pthread_mutex_unlock(&d->tls_lock);
    f->ERR_clear_error();
    return e;
}

void tcp_tls_end(tcp_domain *d) {
    if (d->tls_server) openssl_get()->SSL_CTX_free(d->tls_server);
    if (d->tls_client) openssl_get()->SSL_CTX_free(d->tls_client);
}

/* ---- one connection ---- */

int tcp_tls_begin(tcp_conn *c, const fab_identity *who) {
    tcp_domain *d = tcp_domain_of(c);
    tcp_tls *t = calloc(1, sizeof *t);
    if (!t) return -ENOMEM;
    t->f = openssl_get();
    t->options = &d->options;
    t->records_most = TCP_TLS_RECORDS;
    if (who) t->who = *who;
    pthread_mutex_init(&t->lock, NULL);
    t->ssl = t->f->SSL_new(who ? d->tls_client : d->tls_server);
    BIO *b = t->ssl ? bio_for(t) : NULL;
    if (!b) {
        tcp_tls_free(t);
        return -ENOMEM;
    }
    t->f->SSL_set_bio(t->ssl, b, b);
    if (who)
        t->f->SSL_set_connect_state(t->ssl);
    else
        t->f->SSL_set_accept_state(t->ssl);
    c->tls = t;
    return 0;
}

void tcp_tls_free(tcp_tls *t) {
    if (!t) return;
    if (t->ssl) t->f->SSL_free(t->ssl);
    pthread_mutex_destroy(&t->lock);
    explicit_bzero(&t->who, sizeof t->who);
    free(t->out);
    free(t);
}

static void sink_to(tcp_tls *t, uint8_t *at, size_t room) {
    t->sink = at;
    t->sink_bytes = 0;
    t->sink_room = room;
}

static bool send_whole(const tcp_conn *c, const uint8_t *bytes, size_t n) {
    return n == 0 || send(c->fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* Why OpenSSL has not done what it was asked for: it had no more to read, or it is over. Asked here, because OpenSSL's
 * own answer looks at a queue of errors in which others of this thread may have left some. */
static tcp_tls_step failure(const tcp_tls *t) {
    if (t->starved) return TCP_TLS_MORE;
    unsigned long reason = t->f->ERR_peek_error() & ERROR_REASON;
    bool told = reason >= SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + ALERTS;
    t->f->ERR_clear_error();
    return told ? TCP_TLS_REFUSED : TCP_TLS_BAD;
}

tcp_tls_step tcp_tls_shake(tcp_conn *c) {
    tcp_tls *t = c->tls;
    uint8_t answer[SHAKE_ROOM], *in = c->io->cipher_in;
    if (c->listener || t->begun) {
        ssize_t r = recv(c->fd, in, TCP_TLS_EARLY, 0);
        if (r < 0) return errno == EAGAIN || errno == EINTR ? TCP_TLS_MORE : TCP_TLS_LOST;
        if (r == 0) return TCP_TLS_LOST;
        t->early += (uint32_t)r;
        t->in = in;
        t->in_bytes = (size_t)r;
    }
    t->begun = true;
    sink_to(t, answer, sizeof answer);
    t->f->ERR_clear_error();
    t->starved = false;
    int result = t->f->SSL_do_handshake(t->ssl);
    tcp_tls_step step = result == 1 ? TCP_TLS_DONE : failure(t);
    size_t n = t->sink_bytes;
    sink_to(t, NULL, 0);
    /* A server may show a certificate in place of the key: no certificate is good here. */
    /* mutation: encryption/certificate-for-the-key */
    if (step == TCP_TLS_DONE && !t->f->SSL_session_reused(t->ssl)) return TCP_TLS_BAD;
    if (!send_whole(c, answer, n)) return step == TCP_TLS_MORE || step == TCP_TLS_DONE ? TCP_TLS_LOST : step;
    if (step == TCP_TLS_MORE && t->early >= TCP_TLS_EARLY) return TCP_TLS_BAD;
    t->ready = step == TCP_TLS_DONE;
    return step;
}

/* Bytes of one record at most; 0: OpenSSL needs more ciphertext; -1: what came was not the peer's, or it is over. */
static int decrypt_record(const tcp_conn *c, uint8_t *to, size_t room) {
    tcp_tls *t = c->tls;
    if (c->threaded) pthread_mutex_lock(&t->lock);
    t->starved = false;
    int n = t->f->SSL_read(t->ssl, to, room < TCP_TLS_RECORD ? (int)room : TCP_TLS_RECORD);
    if (n <= 0) n = failure(t) == TCP_TLS_MORE ? 0 : -1;
    t->pending = t->f->SSL_pending(t->ssl) > 0;
    if (c->threaded) pthread_mutex_unlock(&t->lock);
    return n;
}

static ssize_t fail(int error) {
    errno = error;
    return -1;
}

ssize_t tcp_tls_read(tcp_conn *c, const struct iovec *v, int n) {
    tcp_tls *t = c->tls;
    ssize_t all = 0;
    if (!tcp_tls_has(t)) {
        ssize_t r = recv(c->fd, c->io->cipher_in, TCP_SCRATCH, 0);
        if (r <= 0) return r;
        t->in = c->io->cipher_in;
        t->in_bytes = (size_t)r;
    }
    for (int i = 0; i < n; i++) {
        uint8_t *to = v[i].iov_base;
        for (size_t left = v[i].iov_len; left > 0;) {
            if (!tcp_tls_has(t)) return all ? all : fail(EAGAIN);
            int got = decrypt_record(c, to, left);
            if (got < 0) return fail(EBADMSG);
            to += got;
            left -= (size_t)got;
            all += got;
        }
    }
    return all;
}

/* ---- writing ---- */

bool tcp_tls_push(tcp_conn *c) {
    tcp_tls *t = c->tls;
    if (t->out_bytes == 0) return true;
    ssize_t r = send(c->fd, t->out + t->out_at, t->out_bytes, MSG_NOSIGNAL);
    if (r <= 0) return false;
    t->out_at += (size_t)r;
    t->out_bytes -= (size_t)r;
    if (t->out_bytes > 0) return false;
    free(t->out);
    t->out = NULL;
    return true;
}

/* One record, into what is left of `out`; its bytes are added to *used. A fresh key now and then: the peer is told in a
 * record of its own. */
static bool encrypt_record(const tcp_conn *c, const uint8_t *from, size_t n, uint8_t *out, size_t room, size_t *used) {
    tcp_tls *t = c->tls;
    if (c->threaded) pthread_mutex_lock(&t->lock);
    sink_to(t, out + *used, room - *used);
    bool good = true;
    if (t->records++ >= t->records_most) {
        t->records = 1;
        good = t->f->SSL_key_update(t->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1;
    }
    good = good && t->f->SSL_write(t->ssl, from, (int)n) == (int)n;
    if (!good) t->f->ERR_clear_error();
    *used += t->sink_bytes;
    sink_to(t, NULL, 0);
    if (c->threaded) pthread_mutex_unlock(&t->lock);
    return good;
}

typedef struct cursor {
    const struct iovec *v; /* the piece at hand */
    int left;              /* pieces, with that one */
    size_t at;             /* in it */
} cursor;

static size_t rest_of(const cursor *k) { return k->v->iov_len - k->at; }

static const uint8_t *advance(cursor *k, size_t n) {
    const uint8_t *from = (const uint8_t *)k->v->iov_base + k->at;
    k->at += n;
    if (k->at == k->v->iov_len) {
        k->v++;
        k->left--;
        k->at = 0;
    }
    return from;
}

/* The plaintext of the next record: where it lies, when it lies in one piece; else put together at `room`. */
static const uint8_t *next_record(cursor *k, uint8_t *room, size_t *bytes) {
    size_t n = 0;
    if (k->left == 1 || rest_of(k) >= TCP_TLS_RECORD) {
        *bytes = rest_of(k) < TCP_TLS_RECORD ? rest_of(k) : TCP_TLS_RECORD;
        return advance(k, *bytes);
    }
    while (k->left > 0 && n < TCP_TLS_RECORD) {
        size_t some = rest_of(k) < TCP_TLS_RECORD - n ? rest_of(k) : TCP_TLS_RECORD - n;
        memcpy(room + n, advance(k, some), some);
        n += some;
    }
    *bytes = n;
    return room;
}

static bool keep(tcp_tls *t, const uint8_t *rest, size_t n) {
    t->out = n ? malloc(n) : NULL;
    if (!n) return true;
    if (!t->out) return false;
    memcpy(t->out, rest, n);
    t->out_at = 0;
    t->out_bytes = n;
    return true;
}

ssize_t tcp_tls_write(tcp_conn *c, const tcp_io *io, const struct iovec *v, int n) {
    cursor k = { .v = v, .left = n };
    size_t taken = 0, used = 0;
    if (!tcp_tls_push(c)) return fail(tcp_tls_keeps(c->tls) ? EAGAIN : EPIPE);
    while (k.left > 0 && taken + TCP_TLS_RECORD <= TCP_TLS_TURN) {
        size_t bytes;
        const uint8_t *from = next_record(&k, io->record, &bytes);
        if (!encrypt_record(c, from, bytes, io->cipher_out, TCP_TLS_OUT, &used)) return fail(EPROTO);
        taken += bytes;
    }
    ssize_t r = send(c->fd, io->cipher_out, used, MSG_NOSIGNAL);
    if (r < 0 && errno != EAGAIN && errno != EINTR) return -1;
    size_t sent = r < 0 ? 0 : (size_t)r;
    return keep(c->tls, io->cipher_out + sent, used - sent) ? (ssize_t)taken : fail(ENOMEM);
}

bool tcp_tls_say(tcp_conn *c, const uint8_t *bytes, size_t n) {
    uint8_t out[SAY_ROOM];
    size_t used = 0;
    return c->tls->ready && !tcp_tls_keeps(c->tls) && encrypt_record(c, bytes, n, out, sizeof out, &used) &&
           send_whole(c, out, used);
}
