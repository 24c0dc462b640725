/* mailbox.h: jobs that go from one thread to another: any number of posters, one taker.
 *
 * A job is a function with its arguments around it; it runs on the taker's thread and may post itself on to another.
 * Posting never blocks, allocates or fails, since the link lies in the job. Jobs of one poster are taken in the order
 * posted. The event descriptor is written only when the box was empty, so it may be readable although the jobs are
 * taken already. */
#ifndef FARKV_BASE_MAILBOX_H
#define FARKV_BASE_MAILBOX_H
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef struct job {
    struct job *next;
    void (*run)(struct job *);
} job;

typedef struct mailbox {
    job *top; /* the latest */
    int fd;
} mailbox;

static inline int mailbox_open(mailbox *m) {
    m->top = NULL;
    m->fd = eventfd(0, EFD_CLOEXEC);
    return m->fd < 0 ? -errno : 0;
}
static inline void mailbox_close(mailbox *m) {
    if (m->fd >= 0) close(m->fd);
    m->fd = -1;
}
static inline void mailbox_wake(mailbox *m) {
    uint64_t one = 1;
    while (write(m->fd, &one, sizeof one) < 0 && errno == EINTR) {}
}
/* Any thread. */
static inline void mailbox_post(mailbox *m, job *j) {
    job *top = __atomic_load_n(&m->top, __ATOMIC_RELAXED);
    do j->next = top;
    while (!__atomic_compare_exchange_n(&m->top, &top, j, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    if (top == NULL) mailbox_wake(m);
}
static inline bool mailbox_ready(const mailbox *m) { return __atomic_load_n(&m->top, __ATOMIC_RELAXED) != NULL; }
/* The taker: waits until the descriptor was written, unless it was already. */
static inline void mailbox_sleep(mailbox *m) {
    uint64_t count;
    while (read(m->fd, &count, sizeof count) < 0 && errno == EINTR) {}
}
/* The taker: runs what is there, in order; returns how many. */
static inline int mailbox_run(mailbox *m) {
    job *j = __atomic_exchange_n(&m->top, NULL, __ATOMIC_ACQUIRE), *in_order = NULL;
    while (j) {
        job *next = j->next;
        j->next = in_order;
        in_order = j;
        j = next;
    }
    int n = 0;
    while (in_order) {
        job *next = in_order->next; /* a job that has run may be freed or posted elsewhere */
        in_order->run(in_order);
        in_order = next;
        n++;
    }
    return n;
}
#endif
