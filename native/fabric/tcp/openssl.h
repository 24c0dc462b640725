/* openssl.h: the functions of OpenSSL 3 that this provider calls, found at run time.
 *
 * For: tls.c. They come from the program itself (Node.js carries OpenSSL and exports it to addons), and where a program
 * has none, as C tests have, from the system's libssl.so.3. So nothing is linked, and no headers are needed to build:
 * what is declared here is OpenSSL's stable interface, objects only ever as pointers.
 */
#ifndef FARKV_FABRIC_TCP_OPENSSL_H
#define FARKV_FABRIC_TCP_OPENSSL_H
#include <stddef.h>
#include <stdint.h>

typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_method_st SSL_METHOD;
typedef struct ssl_session_st SSL_SESSION;
typedef struct ssl_cipher_st SSL_CIPHER;
typedef struct bio_st BIO;
typedef struct bio_method_st BIO_METHOD;
typedef struct evp_md_st EVP_MD;

typedef int openssl_find_session(SSL *s, const unsigned char *name, size_t bytes, SSL_SESSION **out);
typedef int openssl_use_session(SSL *s, const EVP_MD *md, const unsigned char **name, size_t *bytes, SSL_SESSION **out);

#define OPENSSL_FUNCTIONS(X)                                                            \
    X(unsigned long, OpenSSL_version_num, (void))                                       \
    X(const SSL_METHOD *, TLS_client_method, (void))                                    \
    X(const SSL_METHOD *, TLS_server_method, (void))                                    \
    X(SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *))                                     \
    X(void, SSL_CTX_free, (SSL_CTX *))                                                  \
    X(long, SSL_CTX_ctrl, (SSL_CTX *, int command, long number, void *pointer))         \
    X(int, SSL_CTX_set_ciphersuites, (SSL_CTX *, const char *names))                    \
    X(int, SSL_CTX_set_num_tickets, (SSL_CTX *, size_t))                                \
    X(uint64_t, SSL_CTX_set_options, (SSL_CTX *, uint64_t))                             \
    X(void, SSL_CTX_set_psk_find_session_callback, (SSL_CTX *, openssl_find_session *)) \
    X(void, SSL_CTX_set_psk_use_session_callback, (SSL_CTX *, openssl_use_session *))   \
    X(SSL *, SSL_new, (SSL_CTX *))                                                      \
    X(void, SSL_free, (SSL *))                                                          \
    X(void, SSL_set_bio, (SSL *, BIO *, BIO *))                                         \
    X(BIO *, SSL_get_rbio, (const SSL *))                                               \
    X(void, SSL_set_connect_state, (SSL *))                                             \
    X(void, SSL_set_accept_state, (SSL *))                                              \
    X(int, SSL_do_handshake, (SSL *))                                                   \
    X(int, SSL_session_reused, (const SSL *))                                           \
    X(int, SSL_read, (SSL *, void *, int))                                              \
    X(int, SSL_write, (SSL *, const void *, int))                                       \
    X(int, SSL_pending, (const SSL *))                                                  \
    X(int, SSL_key_update, (SSL *, int))                                                \
    X(const SSL_CIPHER *, SSL_CIPHER_find, (SSL *, const unsigned char *))              \
    X(SSL_SESSION *, SSL_SESSION_new, (void))                                           \
    X(void, SSL_SESSION_free, (SSL_SESSION *))                                          \
    X(int, SSL_SESSION_set1_master_key, (SSL_SESSION *, const unsigned char *, size_t)) \
    X(int, SSL_SESSION_set_cipher, (SSL_SESSION *, const SSL_CIPHER *))                 \
    X(int, SSL_SESSION_set_protocol_version, (SSL_SESSION *, int))                      \
    X(BIO_METHOD *, BIO_meth_new, (int type, const char *name))                         \
    X(int, BIO_meth_set_read, (BIO_METHOD *, int (*)(BIO *, char *, int)))              \
    X(int, BIO_meth_set_write, (BIO_METHOD *, int (*)(BIO *, const char *, int)))       \
    X(int, BIO_meth_set_ctrl, (BIO_METHOD *, long (*)(BIO *, int, long, void *)))       \
    X(BIO *, BIO_new, (const BIO_METHOD *))                                             \
    X(void, BIO_set_data, (BIO *, void *))                                              \
    X(void *, BIO_get_data, (BIO *))                                                    \
    X(void, BIO_set_init, (BIO *, int))                                                 \
    X(void, BIO_set_flags, (BIO *, int))                                                \
    X(void, BIO_clear_flags, (BIO *, int))                                              \
    X(unsigned long, ERR_peek_error, (void))                                            \
    X(void, ERR_clear_error, (void))

typedef struct openssl {
#define X(TYPE, name, parameters) TYPE(*name) parameters;
    OPENSSL_FUNCTIONS(X)
#undef X
} openssl;

/* Numbers of its interface. */
enum {
    TLS1_3_VERSION = 0x0304,
    SSL_CTRL_MODE = 33,
    SSL_CTRL_SET_SESS_CACHE_MODE = 44,
    SSL_CTRL_SET_GROUPS_LIST = 92,
    SSL_CTRL_SET_MIN_PROTO_VERSION = 123,
    SSL_CTRL_SET_MAX_PROTO_VERSION = 124,
    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER = 2,
    SSL_OP_NO_TICKET = 1 << 14,
    SSL_OP_NO_RENEGOTIATION = 1 << 30,
    SSL_KEY_UPDATE_NOT_REQUESTED = 0,
    SSL_AD_REASON_OFFSET = 1000, /* an alert of the peer is an error whose reason is this and the alert */
    BIO_TYPE_SOURCE_SINK = 0x0400,
    BIO_FLAGS_READ = 1,
    BIO_FLAGS_SHOULD_RETRY = 8,
    BIO_CTRL_FLUSH = 11
};

/* NULL: there is none that fits; openssl_missing says why. Any thread. */
const openssl *openssl_get(void);
const char *openssl_missing(void);
#endif
