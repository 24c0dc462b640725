/* buffers.c: the pool that buffers.h describes. */
#include "buffers.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CARVED_AT_ONCE = 4096 };

void buffer_pool_init(buffer_pool *p, uint64_t max_bytes) {
    *p = (buffer_pool){ .max_bytes = max_bytes };
    p->chunks.next = p->chunks.prev = &p->chunks;
}

buffer_chunk *buffer_chunk_new(buffer_pool *p, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bytes = (bytes + page - 1) & ~(page - 1);
    buffer_chunk *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c->base == MAP_FAILED) {
        free(c);
        return NULL;
    }
    c->bytes = bytes;
    p->bytes += bytes;
    c->next = &p->chunks;
    c->prev = p->chunks.prev;
    c->prev->next = c->next->prev = c;
    return c;
}

static void chunk_free(buffer_pool *p, buffer_chunk *c) {
    for (size_t i = 0; i < sizeof c->mr / sizeof *c->mr; i++) fab_dereg(c->mr[i]);
    c->prev->next = c->next;
    c->next->prev = c->prev;
    p->bytes -= c->bytes;
    munmap(c->base, c->bytes);
    free(c);
}

void buffer_pool_free(buffer_pool *p) {
    while (p->chunks.next && p->chunks.next != &p->chunks) chunk_free(p, p->chunks.next);
}

fab_mr *buffer_mr(buffer_chunk *c, const session_peer *p) {
    fab_mr **mr = &c->mr[p->place];
    if (!*mr && fab_reg_local(p->domain, c->base, c->bytes, mr) != 0) *mr = NULL;
    return *mr;
}

static void drop_spare(buffer_pool *p) {
    if (p->spare) chunk_free(p, p->spare);
    p->spare = NULL;
}

static int add_chunk(buffer_pool *p, int cls) {
    if (p->bytes + BUFFER_CHUNK > p->max_bytes) drop_spare(p);
    if (p->bytes + BUFFER_CHUNK > p->max_bytes && p->made[cls]) return -EAGAIN;
    buffer_chunk *c = buffer_chunk_new(p, BUFFER_CHUNK);
    if (!c) return -ENOMEM;
    p->made[cls]++;
    p->newest[cls] = c;
    p->carved[cls] = 0;
    return 0;
}

/* Slots come into use a few at a time: memory that was never touched costs nothing. */
static int add_slots(buffer_pool *p, int cls) {
    size_t each = (size_t)BUFFER_SMALLEST << cls, more = each < CARVED_AT_ONCE ? CARVED_AT_ONCE : each;
    if (!p->newest[cls] || p->carved[cls] == BUFFER_CHUNK) {
        int e = add_chunk(p, cls);
        if (e) return e;
    }
    buffer_chunk *c = p->newest[cls];
    p->carved[cls] += more;
    for (size_t at = p->carved[cls]; more > 0; at -= each, more -= each) {
        struct buffer_slot *s = (struct buffer_slot *)(void *)(c->base + at - each);
        s->next = p->free[cls];
        s->chunk = c;
        p->free[cls] = s;
    }
    return 0;
}

static int take_large(buffer_pool *p, size_t bytes, buffer *out) {
    if (p->spare && p->spare->bytes < bytes) drop_spare(p);
    buffer_chunk *c = p->spare;
    p->spare = NULL;
    if (!c && p->bytes + bytes > p->max_bytes && p->large) return -EAGAIN;
    if (!c) c = buffer_chunk_new(p, bytes);
    if (!c) return -ENOMEM;
    p->large++;
    *out = (buffer){ .base = c->base, .bytes = c->bytes, .chunk = c };
    return 0;
}

int buffer_take(buffer_pool *p, size_t bytes, buffer *out) {
    if (bytes > BUFFER_SMALL_MAX) return take_large(p, bytes, out);
    int cls = 0;
    while (((size_t)BUFFER_SMALLEST << cls) < bytes) cls++;
    if (!p->free[cls]) {
        int e = add_slots(p, cls);
        if (e) return e;
    }
    struct buffer_slot *s = p->free[cls];
    p->free[cls] = s->next;
    *out = (buffer){ .base = (uint8_t *)s, .bytes = (size_t)BUFFER_SMALLEST << cls, .chunk = s->chunk };
    return 0;
}

void buffer_give(buffer_pool *p, buffer *b) {
    if (!b->base) return;
    if (b->bytes > BUFFER_SMALL_MAX) {
        drop_spare(p);
        p->spare = b->chunk;
        p->large--;
    } else {
        int cls = 0;
        while (((size_t)BUFFER_SMALLEST << cls) < b->bytes) cls++;
        struct buffer_slot *s = (struct buffer_slot *)(void *)b->base;
        s->next = p->free[cls];
        s->chunk = b->chunk;
        p->free[cls] = s;
    }
    *b = (buffer){ 0 };
}
