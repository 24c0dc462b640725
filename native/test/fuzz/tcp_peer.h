/* tcp_peer.h: for targets of the tcp provider: the other end of a connection, as frames and bytes. The product's end is
 * driven by the fuzzer's thread over a pair of local sockets, so that a run depends on its input alone; threads and real
 * sockets are tested in native/test/fabric. */
#ifndef FARKV_TEST_FUZZ_TCP_PEER_H
#define FARKV_TEST_FUZZ_TCP_PEER_H
#include "../../fabric/tcp/tcp.h"
#include "fuzz.h"

enum { TCP_PEER_HEARD = 1 << 20 };

typedef struct tcp_peer {
    fab_domain *domain;
    fab_cq *cq;
    tcp_conn *conn; /* the product's end; NULL: none */
    int fd;         /* the peer's; -1: none */
    uint8_t *heard; /* all that it was sent, TCP_PEER_HEARD at most */
    size_t heard_bytes;
} tcp_peer;

void tcp_peer_open(tcp_peer *p, const fab_options *o);
void tcp_peer_close(tcp_peer *p);
/* A connection whose product's end has `state` and, for an accepted one, this listener. */
void tcp_peer_connect(tcp_peer *p, tcp_listener *l, tcp_state state);
/* Turns of the product's queue; each completion is given to `take`. False: the connection is over. */
void tcp_peer_turn(tcp_peer *p, void (*take)(const fab_wc *wc));
/* Both ends close; the product's connection is freed. */
void tcp_peer_hang_up(tcp_peer *p, void (*take)(const fab_wc *wc));
void tcp_peer_write(tcp_peer *p, const void *bytes, size_t count);
/* Reads what came, if there is room to keep it. */
void tcp_peer_listen(tcp_peer *p);
/* Steps that both sides have: any bytes; a hello; a frame with some fields of the input's. */
void tcp_peer_say_bytes(tcp_peer *p, fuzz_in *in);
void tcp_peer_say_hello(tcp_peer *p, fuzz_in *in, tcp_hello_kind kind);
void tcp_peer_say_frame(tcp_peer *p, fuzz_in *in, tcp_frame f);

#endif
