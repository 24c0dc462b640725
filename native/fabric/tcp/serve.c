/* serve.c: the owner's half of a READ: requests of the peer in, DATA frames out. No JavaScript, no data-plane thread:
 * this runs in the responder, or, for memory of a client that its owner READs, in that client's fab_poll.
 *
 * READs are answered in the order in which they came. A small one is answered by one frame; a large one in pieces of at
 * most TCP_CHUNK, so that other connections, and SENDs of this one, have their turn in between. The rkey is looked up
 * again for every piece: deregistration in the middle of a READ makes it fail, and never makes it touch memory that is
 * gone. A followed READ (follow.c) is answered whole, and counts as one.
 */
#include <string.h>
#include "../../base/shared_copy.h"
#include "tcp.h"

enum { SMALLEST_PIECE = 4 << 10 }; /* of a large READ; less room than this is left for the next write */
/* Behind so many bytes no further small READ is answered in this write: the peer can begin with these while the rest is
 * made, the answers are still in the caches when the kernel copies them, and other connections have their turn. What is
 * large fills the room that there is. */
enum { ENOUGH = 32 << 10 };
/* Of an encrypted connection: each write wakes the peer, and here it takes longer until there is another. */
enum { ENOUGH_ENCRYPTED = 64 << 10 };
enum { AHEAD = 4, AHEAD_BYTES = 2048 };

static size_t refuse(tcp_conn *c, const tcp_request *q, uint8_t *out) {
    tcp_frame f = { .type = TCP_DATA, .status = FAB_REM_ACCESS_ERR, .last = true, .number = q->number };
    /* As a queue pair does: one refused READ ends the connection. It also makes guessing rkeys as slow as connecting
     * is. */
    c->nak = true;
    c->serve_head = c->serve_tail;
    return tcp_frame_encode(&f, out);
}

static size_t answer(const tcp_request *q, bool last, const uint8_t *from, uint32_t n, uint8_t *out) {
    size_t header = tcp_frame_encode(&(tcp_frame){ .type = TCP_DATA, .last = last, .number = q->number, .argument = n },
                                     out);
    fkv_copy_shared(out + header, from, n);
    fkv_copy_shared_end();
    return header + n;
}

/* A READ and what it leads to. The second is copied after the first, as if the peer had posted it. */
static size_t both(const tcp_conn *c, const tcp_mr *m, const tcp_request *q, const uint8_t *from, uint8_t *out) {
    _Alignas(64) uint8_t first[FAB_FOLLOW_FIRST_MAX];
    uint32_t bytes;
    size_t used = answer(q, true, from, q->bytes, out);
    /* what the peer will see, and in a place where it can be looked at as words */
    memcpy(first, out + TCP_HEADER_BYTES, q->bytes);
    const uint8_t *next = tcp_follow(c, m, q, first, &bytes);
    if (!next) return used;
    tcp_frame_encode(&(tcp_frame){ .type = TCP_DATA, .number = q->number, .argument = q->bytes }, out);
    return used + answer(q, true, next, bytes, out + used);
}

/* Where requests lie in memory is known before they are answered: their cache misses overlap. What is loaded here is a
 * hint, and looked at again. */
typedef struct ahead {
    uint64_t found, led;
} ahead;

static void prefetch(const uint8_t *from, uint32_t bytes) {
    for (uint32_t line = 0; line < bytes && line < AHEAD_BYTES; line += 64) __builtin_prefetch(from + line);
}

static void look_ahead(const tcp_conn *c, ahead *a) {
    const tcp_domain *d = tcp_domain_of(c);
    const uint8_t *from;
    for (; a->found != c->serve_tail && a->found < c->serve_head + 2 * AHEAD; a->found++) {
        const tcp_request *q = &c->requests[a->found % TCP_DEPTH];
        if (tcp_mr_find(d, q->rkey, q->addr, q->bytes, c->tenant, &from)) prefetch(from, q->bytes);
    }
    for (; a->led != a->found && a->led < c->serve_head + AHEAD; a->led++) {
        const tcp_request *q = &c->requests[a->led % TCP_DEPTH];
        const tcp_mr *m = q->next_bytes ? tcp_mr_find(d, q->rkey, q->addr, q->bytes, c->tenant, &from) : NULL;
        if (!m) continue;
        _Alignas(64) uint8_t first[FAB_FOLLOW_FIRST_MAX];
        uint32_t bytes;
        fkv_copy_shared(first, from, q->bytes);
        const uint8_t *next = tcp_follow(c, m, q, first, &bytes);
        if (next) prefetch(next, bytes);
    }
}

size_t tcp_serve(tcp_conn *c, uint8_t *out, size_t room) {
    tcp_domain *d = tcp_domain_of(c);
    ahead a = { c->serve_head, c->serve_head };
    size_t used = 0, enough = c->tls ? ENOUGH_ENCRYPTED : ENOUGH;
    uint64_t served = 0;
    if (c->serve_head == c->serve_tail || c->nak) return 0;
    pthread_rwlock_rdlock(&d->mr_lock);
    while (c->serve_head != c->serve_tail) {
        tcp_request *q = &c->requests[c->serve_head % TCP_DEPTH];
        if (used >= enough && q->bytes <= TCP_CHUNK) break;
        if (c->serve_tail - c->serve_head > 1) look_ahead(c, &a);
        size_t left = q->bytes - q->done, space = room - used;
        size_t least = q->bytes <= TCP_CHUNK ? left : left < SMALLEST_PIECE ? left : SMALLEST_PIECE;
        if (space < TCP_HEADER_BYTES + least) break;
        size_t n = left < TCP_CHUNK ? left : TCP_CHUNK;
        if (n > space - TCP_HEADER_BYTES) n = space - TCP_HEADER_BYTES;
        const uint8_t *from;
        const tcp_mr *m = tcp_mr_find(d, q->rkey, q->addr, q->bytes, c->tenant, &from);
        if (!m) {
            used += refuse(c, q, out + used);
            break;
        }
        if (q->next_bytes) {
            if (space < TCP_HEADER_BYTES + q->bytes + TCP_HEADER_BYTES + q->next_bytes) break;
            used += both(c, m, q, from, out + used);
            c->serve_head++;
            served++;
            continue;
        }
        tcp_frame f = { .type = TCP_DATA, .last = n == left, .number = q->number, .argument = n };
        used += tcp_frame_encode(&f, out + used);
        fkv_copy_shared(out + used, from + q->done, n); /* mutation: tcp/torn-words */
        used += n;
        q->done += (uint32_t)n;
        if (n < left) continue;
        c->serve_head++;
        served++;
        fkv_copy_shared_end(); /* READs of a connection see memory in the order in which they were posted */
    }
    pthread_rwlock_unlock(&d->mr_lock);
    __atomic_fetch_add(&((tcp_cq *)c->head.cq)->served, served, __ATOMIC_RELAXED);
    return used;
}
