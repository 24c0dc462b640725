/* tls.h: the stream below the frames of a connection where it is encrypted: TLS 1.3 with a key that both ends have
 * already (a PSK), and a Diffie-Hellman exchange, so that a key that leaks later opens nothing that was recorded.
 *
 * For: rx.c and tx.c, which call these in place of recv and send, and connect.c and listen.c, which begin it. Not for:
 * frames, states of a connection, whose turn it is. A connection without `tls` is in the clear; nothing above this file
 * knows which it is.
 *
 *     socket --recv--> tcp_io.cipher_in --SSL_read--> where rx.c wants it     (the driver)
 *     pieces of tx.c --SSL_write--> tcp_io.cipher_out --send--> socket        (who holds the right to write)
 *                                          \--> out, what the socket did not take
 *
 * OpenSSL sees no socket: it takes ciphertext from `in` and puts ciphertext into `sink`. So there is one recv and one
 * send per turn, however many records they carry, and several small frames are one record.
 *
 * Threads. The driver reads while the CQ's thread may write, and OpenSSL's object is for one thread at a time: `lock`
 * is held for one record. Each of the fields below names its thread.
 * Bounds. Before the handshake is done a peer may send fewer than TCP_TLS_EARLY bytes, and one recv of as many, within
 * handshake_ms; after it, `out`
 * is at most one turn's ciphertext, and while it is not empty nothing more is encrypted.
 */
#ifndef FARKV_FABRIC_TCP_TLS_H
#define FARKV_FABRIC_TCP_TLS_H
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include "openssl.h"
#include "../fabric.h"

enum {
    TCP_TLS_RECORD = 16 << 10, /* most bytes of one record's plaintext */
    TCP_TLS_EARLY = 4096,
    TCP_TLS_TURN = 12 * TCP_TLS_RECORD, /* plaintext taken at once: more than all fixed frames and answers of a turn */
    TCP_TLS_OUT = TCP_TLS_TURN + 4096,  /* and its ciphertext, with a fresh key for each record */
    /* A key is used for so many records: a tenth of what RFC 8446, 5.5 allows for AES-GCM. */
    TCP_TLS_RECORDS = 2 << 20
};

typedef struct tcp_conn tcp_conn;
typedef struct tcp_io tcp_io;
typedef struct tcp_domain tcp_domain;

typedef struct tcp_tls {
    const openssl *f;
    SSL *ssl;
    pthread_mutex_t lock; /* of ssl, sink and records */
    bool starved;         /* OpenSSL's last read found nothing */
    uint8_t *sink;        /* where OpenSSL's next bytes go; NULL: nowhere */
    size_t sink_bytes, sink_room;
    uint64_t records, records_most; /* written under the present key */
    /* The driver. */
    const fab_options *options;
    bool begun; /* client: it has said its first word */
    bool ready; /* the handshake is done; the CQ's thread knows no connection before that */
    uint32_t early;
    const uint8_t *in; /* ciphertext that came and that OpenSSL has not taken */
    size_t in_bytes;
    bool pending;     /* OpenSSL has plaintext of a record that was read in part */
    fab_identity who; /* client: the key, and its name */
    /* Who holds the right to write. */
    uint8_t *out; /* ciphertext that the socket did not take */
    size_t out_at, out_bytes;
} tcp_tls;

typedef enum tcp_tls_step { TCP_TLS_DONE = 1, TCP_TLS_MORE, TCP_TLS_LOST, TCP_TLS_REFUSED, TCP_TLS_BAD } tcp_tls_step;

/* Both kinds of contexts of a domain; made when they are first needed, by any thread. 0, -EOPNOTSUPP, -ENOMEM. */
int tcp_tls_ready(tcp_domain *d, bool server);
void tcp_tls_end(tcp_domain *d);
/* 0 or -ENOMEM. who NULL: the server's end. */
int tcp_tls_begin(tcp_conn *c, const fab_identity *who);
void tcp_tls_free(tcp_tls *t);

/* The driver: takes what came of the handshake and sends what answers it. */
tcp_tls_step tcp_tls_shake(tcp_conn *c);
/* As readv; EBADMSG: the bytes were not the peer's. */
ssize_t tcp_tls_read(tcp_conn *c, const struct iovec *v, int n);
/* Whether a further tcp_tls_read finds bytes without the socket's having any. */
static inline bool tcp_tls_has(const tcp_tls *t) { return t->in_bytes > 0 || t->pending; }

/* Who holds the right to write: as writev, but what is taken is encrypted, and sent or kept. -1 with EAGAIN: something
 * is kept, and the socket does not take it yet. */
ssize_t tcp_tls_write(tcp_conn *c, const tcp_io *io, const struct iovec *v, int n);
/* Sends what was kept. False: some is left, or the socket is broken. */
bool tcp_tls_push(tcp_conn *c);
static inline bool tcp_tls_keeps(const tcp_tls *t) { return t->out_bytes > 0; }
/* A few bytes that the socket takes whole, or the connection is broken: a hello, an end. */
bool tcp_tls_say(tcp_conn *c, const uint8_t *bytes, size_t n);
#endif
