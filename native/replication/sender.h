/* sender.h: the owner's side of one backup of one shard, for as long as there is a connection to it: what it was sent,
 * what it has room for, what its acknowledgements are worth. Private to native/replication.
 *
 * For: the links (docs/replication-links.md), which bring what arrived and send what is made here. Not for:
 * connections; and who has to have what, which is replica.h's: an acknowledgement goes to replicate_acked. */
#ifndef FARKV_REPLICATION_SENDER_H
#define FARKV_REPLICATION_SENDER_H
#include "../storage/shard.h"
#include "../wire/peer.h"

typedef struct sender sender;
struct sender {
    fkv_list of_shard; /* shard.repl.senders */
    fkv_list of_link;
    void *user; /* whoever began it */
    shard *shard;
    uint64_t id;   /* of the copy */
    uint64_t sent; /* all up to here was given to the connection, or is at the copy */
    uint64_t base; /* of shard.repl.drawn_bytes: where the copy's count of bytes began */
    uint64_t lease_ns;
    uint64_t asked_ns;  /* that was sent last; 0: nothing was */
    uint64_t digest_ns; /* when a HEARTBEAT had it last */
    uint64_t pulls;     /* a record whose value the copy pulls when it has come: what follows waits until it has that */
};

/* Where messages go. `send` copies: 0, -EAGAIN where there is no credit, or another negative errno. */
typedef struct peer_out {
    int (*send)(void *ctx, const void *message, uint32_t bytes);
    void *ctx;
    uint8_t *buffer;
    uint32_t room;  /* of the buffer: the largest message */
    uint32_t place; /* fab_place of the connection; 0: of none, nothing large can be sent */
} peer_out;
/* The least that a link's connection takes as one message. */
enum { PEER_MESSAGE_MIN = 16 << 10 };

/* A copy says FOLLOW. OK: records are sent to it from now on, and `out` is to be sent first; a sender that it had ends. NOT_OWNER: it is
 * to be told STALE. Or NO_MEMORY. */
fkv_status sender_begin(worker *w, const fkv_peer_follow *m, sender **f, fkv_peer_follow_ok *out);
void sender_end(sender *f); /* frees it; the copy is required as before */
/* Sends the records that the copy lacks. 0, or as peer_out.send: what was not sent is sent the next time. -ESTALE: what it
 * lacks is gone, and it is to be told so. */
int sender_send(sender *f, const peer_out *out);
/* False: it is no answer to what was sent. asked_ns is what was sent on its connection at some time. */
bool sender_acked(sender *f, const fkv_peer_ack *a, uint64_t asked_ns);
/* What a HEARTBEAT says of it. */
fkv_peer_heartbeat sender_heartbeat(sender *f);

/* The one of this copy; NULL: it has no connection. */
sender *sender_of(const shard *s, uint64_t id);

#endif
