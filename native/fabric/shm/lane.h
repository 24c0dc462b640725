/* lane.h: the memory that both ends of a shm connection share, and the byte rings in it.
 *
 *   +-----------------------------+  0
 *   | lane 0: tail | head         |  each index on its own pair of cache lines: adjacent lines are fetched together
 *   | lane 1: tail | head         |
 *   | asleep 0 | asleep 1         |
 *   +-----------------------------+  4096
 *   | revoked 0 | revoked 1       |  one byte an attachment
 *   +-----------------------------+  69632
 *   | ring 0: connector->acceptor |  ring_bytes, a power of two
 *   | ring 1: acceptor->connector |
 *   +-----------------------------+
 *
 * A ring has one producer and one consumer. Indexes count bytes and only grow. A message is a header word (its length;
 * the upper half is zero), then its bytes, padded to 8. Each end keeps its own indexes in private memory and publishes
 * copies: what it reads here was written by the peer, is hostile, and is copied once and checked before it is used. A
 * check that fails breaks the connection. Invariant: tail - head <= ring bytes, all of them multiples of 8.
 *
 * Sleep is Dekker's: the sleeper sets its flag and then looks at the indexes again; the other end publishes an index
 * and then looks at the flag; each pair is sequentially consistent, so that at least one of them sees the other.
 */
#ifndef FARKV_FABRIC_SHM_LANE_H
#define FARKV_FABRIC_SHM_LANE_H
#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

enum { SHM_SLOTS = 32768, SHM_RING_MIN = 64 << 10, SHM_RING_MAX = 16 << 20 };
enum { SHM_ASLEEP = 1, SHM_WANTS_SPACE = 2 }; /* asleep until a message comes; until the peer has taken messages */

typedef struct shm_lane {
    alignas(128) _Atomic uint64_t tail; /* written by the producer */
    alignas(128) _Atomic uint64_t head; /* written by the consumer */
} shm_lane;

typedef struct shm_shared {
    shm_lane lane[2];
    struct {
        alignas(128) _Atomic uint32_t flags;
    } asleep[2];
    alignas(4096) _Atomic uint8_t revoked[2][SHM_SLOTS]; /* [end whose region it is][slot] */
} shm_shared;
static_assert(offsetof(shm_shared, revoked) == 4096 && sizeof(shm_shared) == 69632, "drawing");

static inline size_t shm_shared_bytes(uint32_t ring_bytes) { return sizeof(shm_shared) + 2 * (size_t)ring_bytes; }

/* ---- producing ---- */
typedef struct shm_out {
    uint8_t *ring;
    shm_lane *lane;
    uint64_t size;
    uint64_t tail, published; /* published <= tail */
    uint64_t head;            /* the last that was seen of the consumer's */
    uint64_t want;            /* bytes that a refused SEND waits for; 0: none is refused */
} shm_out;

static inline uint64_t shm_record_bytes(uint32_t bytes) { return 8 + (((uint64_t)bytes + 7) & ~7ull); }

/* Looks at the consumer's index again. False when it is nonsense. */
static inline bool shm_out_refresh(shm_out *o, memory_order order) {
    uint64_t head = atomic_load_explicit(&o->lane->head, order);
    if (head - o->head > o->published - o->head || (head & 7)) return false;
    o->head = head;
    return true;
}
static inline uint64_t shm_out_space(const shm_out *o) { return o->size - (o->tail - o->head); }

static inline void shm_out_bytes(shm_out *o, uint64_t at, const void *from, size_t bytes) {
    size_t start = at & (o->size - 1), first = o->size - start;
    if (first > bytes) first = bytes;
    memcpy(o->ring + start, from, first);
    if (bytes > first) memcpy(o->ring, (const uint8_t *)from + first, bytes - first);
}
/* Precondition: there is space for the record. Nothing is seen by the consumer before it is published. */
static inline void shm_out_push(shm_out *o, const struct iovec *iov, int n, uint32_t bytes) {
    uint64_t header = bytes, at = o->tail;
    memcpy(o->ring + (at & (o->size - 1)), &header, 8);
    at += 8;
    for (int i = 0; i < n; i++) {
        if (iov[i].iov_len == 0) continue;
        shm_out_bytes(o, at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
    o->tail += shm_record_bytes(bytes);
}

/* ---- consuming ---- */
typedef struct shm_in {
    const uint8_t *ring;
    shm_lane *lane;
    uint64_t size;
    uint64_t head, published; /* published <= head */
    uint64_t tail;            /* the last that was seen of the producer's, and found sane */
    uint32_t max_message;
} shm_in;

static inline bool shm_in_refresh(shm_in *in, memory_order order) {
    uint64_t tail = atomic_load_explicit(&in->lane->tail, order);
    if (tail - in->head > in->size || (tail & 7)) return false;
    in->tail = tail;
    return true;
}
static inline void shm_in_bytes(const shm_in *in, uint64_t at, void *to, size_t bytes) {
    size_t start = at & (in->size - 1), first = in->size - start;
    if (first > bytes) first = bytes;
    memcpy(to, in->ring + start, first);
    if (bytes > first) memcpy((uint8_t *)to + first, in->ring, bytes - first);
}
/* Copies the next message to `to`, which has room for max_message. Returns its length, or 0 when the ring is corrupt.
 * Precondition: head != tail. */
static inline uint32_t shm_in_take(shm_in *in, void *to) {
    uint64_t header = __atomic_load_n((const uint64_t *)(const void *)(in->ring + (in->head & (in->size - 1))),
                                      __ATOMIC_RELAXED);
    if (header == 0 || header > in->max_message || shm_record_bytes((uint32_t)header) > in->tail - in->head) return 0;
    shm_in_bytes(in, in->head + 8, to, header);
    in->head += shm_record_bytes((uint32_t)header);
    return (uint32_t)header;
}
#endif
