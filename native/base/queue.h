/* queue.h: a bounded queue of fixed-size elements between threads: any number of producers, one consumer.
 *
 * For: commands and results that cross from one thread to another. Not for: bytes of a network stream, or waiting: pair it with
 * a wake-up (fab_wake, an eventfd). Nothing here blocks or allocates after fkv_queue_init; a full queue refuses.
 *
 * Each cell carries a sequence number that says whose turn it is (D. Vyukov, "Bounded MPMC queue"):
 *
 *     sequence == position              free: the producer that claims this position may write it
 *     sequence == position + 1          written: the consumer may read it
 *     sequence == position + capacity   read: free for the next lap
 *
 * Invariant: elements of one producer are popped in the order it pushed them. A producer that has claimed a cell and not yet
 * written it hides later elements, so wake the consumer after every push, not only when the queue was empty.
 */
#ifndef FARKV_BASE_QUEUE_H
#define FARKV_BASE_QUEUE_H
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct fkv_queue {
    uint8_t *cells;
    size_t stride;         /* bytes of a cell: its sequence, then the element */
    size_t element;
    uint64_t mask;         /* capacity - 1; the capacity is a power of two */
    _Alignas(64) uint64_t tail;   /* next position to write; producers */
    _Alignas(64) uint64_t head;   /* next position to read; the consumer */
} fkv_queue;

/* Room for at least `capacity` elements of `element_bytes`. 0 or -ENOMEM. Before any other thread sees the queue. */
static inline int fkv_queue_init(fkv_queue *q, uint32_t capacity, size_t element_bytes) {
    uint64_t cells = 2;
    while (cells < capacity) cells *= 2;
    *q = (fkv_queue){ .stride = 8 + ((element_bytes + 7) & ~(size_t)7), .element = element_bytes, .mask = cells - 1 };
    q->cells = calloc(cells, q->stride);
    if (!q->cells) return -ENOMEM;
    for (uint64_t i = 0; i < cells; i++) memcpy(q->cells + i * q->stride, &i, 8);
    return 0;
}
static inline void fkv_queue_free(fkv_queue *q) {
    free(q->cells);
    q->cells = NULL;
}

static inline uint64_t *fkv_queue_cell(const fkv_queue *q, uint64_t position) {
    return (uint64_t *)(void *)(q->cells + (position & q->mask) * q->stride);
}

/* Any thread. False when the queue is full: nothing was taken. */
static inline bool fkv_queue_push(fkv_queue *q, const void *element) {
    uint64_t at = __atomic_load_n(&q->tail, __ATOMIC_RELAXED);
    for (;;) {
        uint64_t *cell = fkv_queue_cell(q, at);
        int64_t turn = (int64_t)(__atomic_load_n(cell, __ATOMIC_ACQUIRE) - at);
        if (turn < 0) return false;
        if (turn > 0) {
            at = __atomic_load_n(&q->tail, __ATOMIC_RELAXED);
        } else if (__atomic_compare_exchange_n(&q->tail, &at, at + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            memcpy(cell + 1, element, q->element);
            __atomic_store_n(cell, at + 1, __ATOMIC_RELEASE);
            return true;
        }
    }
}

/* The consumer. False when there is nothing (yet). */
static inline bool fkv_queue_pop(fkv_queue *q, void *element) {
    uint64_t *cell = fkv_queue_cell(q, q->head);
    if (__atomic_load_n(cell, __ATOMIC_ACQUIRE) != q->head + 1) return false;
    memcpy(element, cell + 1, q->element);
    __atomic_store_n(cell, q->head + q->mask + 1, __ATOMIC_RELEASE);
    q->head++;
    return true;
}

/* The consumer: whether fkv_queue_pop would find something. */
static inline bool fkv_queue_ready(const fkv_queue *q) {
    return __atomic_load_n(fkv_queue_cell(q, q->head), __ATOMIC_ACQUIRE) == q->head + 1;
}
#endif
