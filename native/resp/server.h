/* server.h: the Redis gateway: connections of Redis clients on one side, a store on the other.
 *
 *   socket -> parser -> command -> job: calls of the store -> replies in order -> socket
 *
 *   server.c      listening, epoll, turns            parser.c  commands out of bytes      reply.c   replies as bytes
 *   connection.c  reading, pipelining, writing       job.c     commands under way, order  commands.c  which there are
 *   strings.c keys.c set.c edit.c walk.c flush.c inspect.c about.c clients.c   what each command does   swap.c  read, then change what was read
 *   glob.c patterns of keys
 *
 * One thread, that of whoever calls; nothing blocks, and nothing allocates beyond the bounds in internal.h.
 *
 * Promises, as far as the store keeps its own:
 *   1. Replies come in the order of the commands of their connection.
 *   2. A command whose key an earlier command of the connection has still under way waits for it if one of them is a
 *      change. So a connection sees its own changes, in its order. Commands of different keys go side by side.
 *   3. A connection that sends no more than it reads bounds what it costs: see internal.h.
 */
#ifndef FARKV_RESP_SERVER_H
#define FARKV_RESP_SERVER_H
#include "store.h"

typedef struct resp_server resp_server;

typedef struct resp_server_config {
    int listen;               /* a socket that listens, which is the server's from now on */
    uint32_t max_connections; /* those beyond are refused as redis-server does */
    uint64_t memory_max;      /* bytes that connections may hold; beyond it the one that holds most is closed */
    uint16_t space;           /* the namespace of database 0; database n has the n-th behind it */
    resp_store store;
    void *ctx;
    void (*wake)(void *ctx); /* a call has ended: resp_server_turn is to be called soon; not from inside a turn */
} resp_server_config;

/* NO_MEMORY: no memory or descriptor; the socket is closed. */
fkv_status resp_server_create(const resp_server_config *c, resp_server **out);
/* Readable when resp_server_turn has something to do. */
int resp_server_fd(const resp_server *s);
/* Accepts, reads, runs, writes. True: there is more to do at once. */
bool resp_server_turn(resp_server *s);
/* Accepts and reads nothing more; each connection is closed once what it has under way is answered, and read by its
 * client. A turn is to follow. */
void resp_server_end(resp_server *s);
/* Closes all connections. What the store has under way still ends by resp_call_ended; the server is freed with the last
 * call. */
void resp_server_close(resp_server *s);

typedef struct resp_server_stats {
    uint64_t connections, accepted, refused, commands, evicted;
} resp_server_stats;
resp_server_stats resp_server_get_stats(const resp_server *s);

#endif
