/* agent.c: the domain's helper thread and the two boxes through which it and the threads of the CQs talk.
 * It sleeps in epoll_wait over its listeners' and connections' sockets and takes no part in READs and SENDs. */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "../../base/assert.h"
#include "../../base/clock.h"
#include "shm.h"

enum { AGENT_EVENTS = 64, AGENT_STACK_BYTES = 512 << 10 };

/* ---- timers ---- */

void shm_timer_clear(shm_timer *t) {
    if (!t->next) return;
    t->prev->next = t->next;
    t->next->prev = t->prev;
    t->next = t->prev = NULL;
}

/* There are few durations, so the place is nearly always at the end. */
void shm_timer_set(shm_domain *d, shm_timer *t, uint64_t at_ns) {
    shm_timer_clear(t);
    t->at_ns = at_ns;
    shm_timer *after = d->timers.prev;
    while (after != &d->timers && after->at_ns > at_ns) after = after->prev;
    t->prev = after;
    t->next = after->next;
    t->prev->next = t->next->prev = t;
}

static int next_timeout_ms(const shm_domain *d) {
    if (d->timers.next == &d->timers) return -1;
    uint64_t now = fkv_now_ns(), at = d->timers.next->at_ns;
    return at <= now ? 0 : (int)((at - now + 999999) / 1000000);
}

static void run_timers(shm_domain *d) {
    uint64_t now = fkv_now_ns();
    while (d->timers.next != &d->timers && d->timers.next->at_ns <= now) {
        shm_timer *t = d->timers.next;
        shm_timer_clear(t);
        if (*t->source == SHM_SOURCE_CONN)
            shm_link_timer(shm_conn_of(t->source));
        else
            shm_listener_timer(shm_listener_of(t->source));
    }
}

/* ---- orders: CQ thread to agent ---- */

void shm_agent_wake(shm_domain *d) {
    uint64_t one = 1;
    ssize_t n = write(d->wake_fd, &one, sizeof one);
    (void)n; /* only a full counter refuses, and then the agent is awake anyway */
}

void shm_order_locked(shm_conn *c, unsigned bits) {
    shm_domain *d = c->domain;
    c->orders.bits |= bits;
    if (c->orders.listed) return;
    c->orders.listed = true;
    c->orders.next = NULL;
    if (!d->orders) shm_agent_wake(d);
    *d->orders_last = c;
    d->orders_last = &c->orders.next;
}

void shm_order(shm_conn *c, unsigned bits) {
    pthread_mutex_lock(&c->domain->lock);
    shm_order_locked(c, bits);
    pthread_mutex_unlock(&c->domain->lock);
}

static shm_conn *next_order(shm_domain *d) {
    pthread_mutex_lock(&d->lock);
    shm_conn *c = d->orders;
    if (c) {
        c->orders.listed = false;
        if (!(d->orders = c->orders.next)) d->orders_last = &d->orders;
    }
    pthread_mutex_unlock(&d->lock);
    return c;
}

/* Returns false when the domain closes and nothing is left to do. */
static bool run_orders(shm_domain *d) {
    shm_conn *c;
    while ((c = next_order(d)) != NULL) shm_link_orders(c);
    pthread_mutex_lock(&d->lock);
    shm_listener *l = d->closing;
    d->closing = NULL;
    bool go_on = !d->stop || d->orders || l;
    pthread_mutex_unlock(&d->lock);
    while (l) {
        shm_listener *next = l->next_closing;
        shm_listener_close(l);
        l = next;
    }
    return go_on;
}

/* ---- news: agent to CQ thread ---- */

static void list_news_locked(shm_conn *c) {
    if (c->news.listed) return;
    c->news.listed = true;
    c->news.next = NULL;
    *c->cq->news_last = c;
    c->cq->news_last = &c->news.next;
}

void shm_post(shm_conn *c, unsigned bits, fab_wc_status status) {
    pthread_mutex_lock(&c->cq->lock);
    bool wanted = !c->news.closed;
    if (wanted) {
        c->news.bits |= bits;
        if (bits & SHM_NEWS_CONNECT) c->news.connected = status;
        if (bits & SHM_NEWS_GONE) c->news.gone = status;
        list_news_locked(c);
        shm_attend(c->cq);
    }
    pthread_mutex_unlock(&c->cq->lock);
}

void shm_post_attached(shm_conn *c, shm_attachment *a) {
    pthread_mutex_lock(&c->cq->lock);
    bool wanted = !c->news.closed;
    if (wanted) {
        shm_list_add(&c->news.attached, a);
        list_news_locked(c);
        shm_attend(c->cq);
    }
    pthread_mutex_unlock(&c->cq->lock);
    if (!wanted) shm_attachment_free(a);
}

/* ---- the thread ---- */

static void free_dead(shm_domain *d) {
    while (d->dead) {
        shm_conn *c = d->dead;
        d->dead = c->link.next;
        shm_conn_free(c);
    }
}

static void *agent(void *arg) {
    shm_domain *d = arg;
    struct epoll_event events[AGENT_EVENTS];
    do {
        int n = epoll_wait(d->epoll, events, AGENT_EVENTS, next_timeout_ms(d));
        for (int i = 0; i < n; i++) {
            shm_source *s = events[i].data.ptr;
            uint64_t count;
            switch (*s) {
            case SHM_SOURCE_WAKE:
                if (read(d->wake_fd, &count, sizeof count) < 0) fkv_assert(errno == EAGAIN || errno == EINTR);
                break;
            case SHM_SOURCE_LISTENER: shm_listener_ready(shm_listener_of(s)); break;
            case SHM_SOURCE_CONN: shm_link_ready(shm_conn_of(s), events[i].events); break;
            }
        }
        run_timers(d);
        bool go_on = run_orders(d);
        free_dead(d); /* only now: an event of this batch may have named one */
        if (!go_on) return NULL;
    } while (true);
}

int shm_agent_start(shm_domain *d) {
    d->timers.next = d->timers.prev = &d->timers;
    d->wake_source = SHM_SOURCE_WAKE;
    d->orders_last = &d->orders;
    d->epoll = epoll_create1(EPOLL_CLOEXEC);
    d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = &d->wake_source };
    int error = d->epoll < 0 || d->wake_fd < 0 || epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->wake_fd, &e) != 0 ? errno : 0;
    if (!error) {
        pthread_attr_t attr;
        pthread_attr_init(&attr);
        pthread_attr_setstacksize(&attr, AGENT_STACK_BYTES);
        sigset_t all, old; /* the program's signals are for the program's threads */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        error = pthread_create(&d->agent, &attr, agent, d);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&attr);
        if (!error) pthread_setname_np(d->agent, "farkv-shm");
    }
    if (error) {
        if (d->epoll >= 0) close(d->epoll);
        if (d->wake_fd >= 0) close(d->wake_fd);
    }
    return -error;
}

void shm_agent_stop(shm_domain *d) {
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    pthread_mutex_unlock(&d->lock);
    shm_agent_wake(d);
    pthread_join(d->agent, NULL);
    fkv_assert(d->conns == NULL); /* fab_close: connections and listeners are gone before */
    close(d->epoll);
    close(d->wake_fd);
}
