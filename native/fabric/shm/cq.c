/* cq.c: a completion queue's life, its lists of connections, flush, and sleep.
 *
 * Which connections are looked at. Polling reads the tail index of each *active* connection's ring: a cache line that
 * nobody writes while the peer is idle, so it stays in this core's cache and costs a few nanoseconds. Up to
 * SHM_ACTIVE_MAX connections are always active, and then neither end makes a system call. When there are more, those
 * that were idle for a while are *parked*: marked asleep, so that the peer's next message rings the bell, which is
 * looked for every SHM_EPOLL_EVERY polls. No memory is shared between clients for this (a common doorbell would let one
 * client delay another): each has its own flag and bell.
 *
 * Sleep. fab_fd is an epoll descriptor over the bells and one eventfd for the agent. All are
 * edge-triggered, so one epoll_wait after a sleep empties it.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../../base/assert.h"
#include "shm.h"
#include "poll.h"

int shm_cq_create(fab_domain *d, fab_cq **out) {
    shm_cq *q = aligned_alloc(alignof(shm_cq), sizeof *q);
    if (!q) return -ENOMEM;
    *q = (shm_cq){ .domain = (shm_domain *)d };
    q->news_last = &q->news;
    q->reading_last = &q->reading;
    q->announce_last = &q->announce;
    q->epoll = epoll_create1(EPOLL_CLOEXEC);
    q->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event e = { .events = EPOLLIN | EPOLLET };
    if (q->epoll < 0 || q->wake_fd < 0 || epoll_ctl(q->epoll, EPOLL_CTL_ADD, q->wake_fd, &e) != 0) {
        int error = -errno;
        if (q->epoll >= 0) close(q->epoll);
        if (q->wake_fd >= 0) close(q->wake_fd);
        free(q);
        return error;
    }
    pthread_mutex_init(&q->lock, NULL);
    atomic_init(&q->refs, 1);
    *out = &q->head;
    return 0;
}

/* The agent may still be closing connections of this CQ; the last one frees it. */
void shm_cq_unref(shm_cq *q) {
    if (atomic_fetch_sub(&q->refs, 1) > 1) return;
    pthread_mutex_destroy(&q->lock);
    free(q);
}

void shm_cq_destroy(fab_cq *base) {
    shm_cq *q = (shm_cq *)base;
    /* connections are gone before */
    fkv_assert(q->active_count == 0 && q->parked_count == 0 && !q->announce && !q->ending);
    close(q->epoll);
    close(q->wake_fd);
    free(q->active);
    shm_cq_unref(q);
}

/* ---- lists ---- */

bool shm_active_add(shm_conn *c) {
    shm_cq *q = c->cq;
    /* room for the parked too, so that unparking cannot fail */
    if (q->active_count + q->parked_count >= q->active_room) {
        uint32_t room = q->active_room ? 2 * q->active_room : 16;
        shm_conn **more = realloc(q->active, room * sizeof *more);
        if (!more) return false;
        q->active = more;
        q->active_room = room;
    }
    c->active_at = q->active_count;
    q->active[q->active_count++] = c;
    c->heard = q->polls;
    return true;
}

static void active_remove(shm_conn *c) {
    shm_cq *q = c->cq;
    if (c->active_at == UINT32_MAX) return;
    fkv_assert(c->active_at < q->active_count && q->active[c->active_at] == c);
    shm_conn *last = q->active[--q->active_count];
    q->active[c->active_at] = last;
    last->active_at = c->active_at;
    c->active_at = UINT32_MAX;
}

static _Atomic uint32_t *own_flags(const shm_conn *c) { return &c->shared->asleep[c->side].flags; }
static _Atomic uint32_t *peer_flags(const shm_conn *c) { return &c->shared->asleep[!c->side].flags; }

void shm_unpark(shm_conn *c) {
    c->parked = false;
    c->cq->parked_count--;
    atomic_store_explicit(own_flags(c), 0, memory_order_relaxed);
    shm_active_add(c);
}

/* Something came that the peer published before it could see the flag; nonsense counts too, for the poll to find. */
static bool has_come(shm_conn *c) { return !shm_in_refresh(&c->in, memory_order_seq_cst) || c->in.tail != c->in.head; }

void shm_park_idle(shm_cq *q) {
    for (uint32_t i = q->active_count; i-- > 0 && q->active_count > SHM_ACTIVE_MAX;) {
        shm_conn *c = q->active[i];
        if (c->state != SHM_OPEN || c->out.want || q->polls - c->heard < SHM_PARK_POLLS || c->free_count == 0) continue;
        atomic_store(own_flags(c), SHM_ASLEEP);
        if (has_come(c)) {
            atomic_store_explicit(own_flags(c), 0, memory_order_relaxed);
            continue;
        }
        active_remove(c);
        c->parked = true;
        q->parked_count++;
    }
}

void shm_announce(shm_conn *c) {
    if (c->announced) return;
    c->announced = true;
    c->next_announced = NULL;
    *c->cq->announce_last = c;
    c->cq->announce_last = &c->next_announced;
}

void shm_stop_listening(shm_conn *c) {
    if (c->parked) {
        c->parked = false;
        c->cq->parked_count--;
    }
    active_remove(c);
}

#define UNLINK(first, next, c)                       \
    do {                                             \
        shm_conn **at = &(first);                    \
        while (*at && *at != (c)) at = &(*at)->next; \
        if (*at) *at = (c)->next;                    \
    } while (0)
/* The same for a list that knows its end. */
#define UNLINK_QUEUE(first, last, next, c)           \
    do {                                             \
        shm_conn **at = &(first);                    \
        while (*at && *at != (c)) at = &(*at)->next; \
        if (*at && !(*at = (c)->next)) (last) = at;  \
    } while (0)

void shm_forget(shm_conn *c) {
    shm_cq *q = c->cq;
    shm_stop_listening(c);
    if (c->dirty) UNLINK(q->dirty, next_dirty, c);
    if (c->ending) UNLINK(q->ending, next_ending, c);
    if (c->reading) UNLINK_QUEUE(q->reading, q->reading_last, next_reading, c);
    if (c->announced) UNLINK_QUEUE(q->announce, q->announce_last, next_announced, c);
    c->dirty = c->ending = c->reading = c->announced = false;
}

/* ---- flush ---- */

void shm_dirty(shm_conn *c) {
    if (c->dirty) return;
    c->dirty = true;
    c->next_dirty = c->cq->dirty;
    c->cq->dirty = c;
}

static void ring(shm_conn *c) {
    if (atomic_exchange(peer_flags(c), 0) != 0) send(c->bell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void shm_flush(fab_cq *base) {
    shm_cq *q = (shm_cq *)base;
    while (q->dirty) {
        shm_conn *c = q->dirty;
        q->dirty = c->next_dirty;
        c->dirty = false;
        uint32_t wakes = 0;
        if (c->out.published != c->out.tail) {
            c->out.published = c->out.tail;
            atomic_store(&c->out.lane->tail, c->out.tail);
            wakes |= SHM_ASLEEP;
        }
        if (c->freed_space) {
            c->freed_space = false;
            c->in.published = c->in.head;
            atomic_store(&c->in.lane->head, c->in.head);
            wakes |= SHM_WANTS_SPACE;
        }
        if (atomic_load(peer_flags(c)) & wakes) ring(c);
    }
}

/* ---- sleep ---- */

/* True when this connection cannot be slept on, because something is there. */
static bool fall_asleep(shm_conn *c) {
    if (c->state != SHM_OPEN) return false;
    /* Without a free buffer nothing can be received: the user must release one first, and then will not be asleep. */
    uint32_t flags = (c->free_count ? SHM_ASLEEP : 0) | (c->out.want ? SHM_WANTS_SPACE : 0);
    atomic_store(own_flags(c), flags);
    if ((flags & SHM_ASLEEP) && has_come(c)) return true;
    return c->out.want && (!shm_out_refresh(&c->out, memory_order_seq_cst) || shm_out_space(&c->out) >= c->out.want);
}

static void wake_up(shm_cq *q, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        shm_conn *c = q->active[i];
        if (c->state == SHM_OPEN) atomic_store_explicit(own_flags(c), 0, memory_order_relaxed);
    }
}

int shm_arm(fab_cq *base) {
    shm_cq *q = (shm_cq *)base;
    shm_flush(base);
    if (q->reading || q->announce || q->ending) return 1;
    for (uint32_t i = 0; i < q->active_count; i++) {
        if (!fall_asleep(q->active[i])) continue;
        wake_up(q, i + 1);
        return 1;
    }
    if (atomic_load(&q->attention)) {
        wake_up(q, q->active_count);
        return 1;
    }
    q->armed = true;
    return 0;
}

/* Takes the edges that came. */
static void drain(shm_cq *q) {
    enum { EVENTS = 64, BELL_READS = 16 };
    struct epoll_event events[EVENTS];
    int n;
    do {
        n = epoll_wait(q->epoll, events, EVENTS, 0);
        for (int i = 0; i < n; i++) {
            shm_conn *c = events[i].data.ptr;
            if (!c) continue;
            if (c->parked) shm_unpark(c);
            /* Emptied each time: rings may have come while this end was awake, and a full socket would take no more.
             * But for what more than that has come: one rings once for each sleep, and who never stops must not keep
             * this thread. Each ring is an edge of its own. */
            char room[256];
            for (int k = 0; k < BELL_READS && recv(c->bell, room, sizeof room, MSG_DONTWAIT) == (ssize_t)sizeof room;
                 k++) {}
        }
    } while (n == EVENTS);
    q->since_epoll = 0;
}

void shm_disarm(shm_cq *q) {
    q->armed = false;
    wake_up(q, q->active_count);
    drain(q);
}

void shm_look_for_parked(shm_cq *q, int completions) {
    q->since_epoll += 1 + (uint32_t)completions;
    if (q->since_epoll >= SHM_EPOLL_EVERY) drain(q);
}

int shm_fd(fab_cq *q) { return ((shm_cq *)q)->epoll; }

/* The first to want attention makes the descriptor readable; fab_arm looks at `attention` after everything else. */
void shm_attend(shm_cq *q) {
    if (atomic_exchange(&q->attention, 1)) return;
    uint64_t one = 1;
    ssize_t n = write(q->wake_fd, &one, sizeof one);
    (void)n;
}
