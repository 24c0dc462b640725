/* buffers.h: memory in which READs land: registered, of size classes, bounded.
 *
 * Small ones are slots of chunks of 1 MiB, one size class a chunk (powers of two from 256 bytes); large ones have
 * memory of their own. A chunk is registered with a domain when one of its slots is first used there. The
 * bound never stops everything: each size class may have one chunk, and one large buffer may be in use, beyond it.
 * Invariant: a buffer is given back only when no READ into it is under way.
 */
#ifndef FARKV_LOOKUP_BUFFERS_H
#define FARKV_LOOKUP_BUFFERS_H
#include <stddef.h>
#include <stdint.h>
#include "../../fabric/fabric.h"
#include "../session/session.h"

enum { BUFFER_CLASSES = 10, BUFFER_SMALLEST = 256, BUFFER_CHUNK = 1 << 20 };
enum { BUFFER_SMALL_MAX = BUFFER_SMALLEST << (BUFFER_CLASSES - 1) };

typedef struct buffer_chunk {
    struct buffer_chunk *next, *prev;
    uint8_t *base;
    size_t bytes;
    fab_mr *mr[SESSION_PLACES]; /* NULL: not yet */
} buffer_chunk;

typedef struct buffer {
    uint8_t *base; /* NULL: none */
    size_t bytes;
    buffer_chunk *chunk;
} buffer;

typedef struct buffer_pool {
    uint64_t max_bytes, bytes; /* of chunks */
    buffer_chunk chunks;       /* all of them, a ring */
    struct buffer_slot {
        struct buffer_slot *next;
        buffer_chunk *chunk;
    } * free[BUFFER_CLASSES];
    uint32_t made[BUFFER_CLASSES]; /* chunks of a class */
    /* The latest of them, and how many of its bytes are slots by now. */
    buffer_chunk *newest[BUFFER_CLASSES];
    size_t carved[BUFFER_CLASSES];
    uint32_t large;      /* large buffers in use */
    buffer_chunk *spare; /* the last large one, kept for the next */
} buffer_pool;

void buffer_pool_init(buffer_pool *p, uint64_t max_bytes);
void buffer_pool_free(buffer_pool *p);
/* 0, -EAGAIN when the bound is reached, -ENOMEM. */
int buffer_take(buffer_pool *p, size_t bytes, buffer *out);
void buffer_give(buffer_pool *p, buffer *b);
/* A chunk by itself, outside the bound. */
buffer_chunk *buffer_chunk_new(buffer_pool *p, size_t bytes);
/* The registration with a peer's domain; NULL: it failed. */
fab_mr *buffer_mr(buffer_chunk *c, const session_peer *p);

#endif
