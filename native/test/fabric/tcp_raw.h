/* tcp_raw.h: a peer of the tcp provider made of a blocking socket and tcp/frame.h, for tests that say what no honest
 * peer says. */
#ifndef FARKV_TEST_TCP_RAW_H
#define FARKV_TEST_TCP_RAW_H
#include "../../fabric/tcp/frame.h"

/* All give a descriptor. address: "127.0.0.1:7000". */
int rawtcp_connect(const char *address);
int rawtcp_connect_from(const char *source, const char *address); /* source: "127.0.0.2:0" */
int rawtcp_listen(char address[64]);
/* A connection in two steps. */
int rawtcp_socket(void);
void rawtcp_reach(int fd, const char *address);
void rawtcp_write(int fd, const void *bytes, size_t n);
/* Reads exactly n bytes. False: the stream ended (or was reset) before. */
bool rawtcp_read(int fd, void *bytes, size_t n);
/* Throws away what comes until the peer closes. */
void rawtcp_expect_end(int fd);

tcp_hello rawtcp_hello(void); /* a client's, without private data */
/* Says `h` and reads the answer. */
tcp_hello rawtcp_greet(int fd, const tcp_hello *h);
/* As a server: takes a hello and answers `yes`. */
void rawtcp_accept(int fd, const tcp_hello *yes);
void rawtcp_frame(int fd, const tcp_frame *f);
bool rawtcp_next_frame(int fd, tcp_frame *f);
/* From now on this end does not notice what comes, not even that it should acknowledge: as if its host were gone. */
void rawtcp_vanish(int fd);

/* A growing string of bytes. */
typedef struct rawtcp_bytes {
    size_t n;
    uint8_t at[1 << 16];
} rawtcp_bytes;
void rawtcp_add(rawtcp_bytes *b, const void *bytes, size_t n);
void rawtcp_add_frame(rawtcp_bytes *b, const tcp_frame *f);
void rawtcp_add_hello(rawtcp_bytes *b, const tcp_hello *h);
#endif
