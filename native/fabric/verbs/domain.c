/* domain.c: a domain's device, its protection domains, and memory registered with it. */
#include "verbs.h"
#ifdef FARKV_HAVE_VERBS
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

static void nudge(verbs_domain *d) {
    uint64_t one = 1;
    while (write(d->nudge_fd, &one, sizeof one) < 0 && errno == EINTR) {}
}

int verbs_open(const fab_options *o, fab_domain **out) {
    const char *why;
    const verbs_lib *v = verbs_lib_load(&why);
    if (!v) {
        fab_log(o, FAB_LOG_ERROR, "verbs: %s", why);
        return -EOPNOTSUPP;
    }
    verbs_domain *d = calloc(1, sizeof *d);
    if (!d) return -ENOMEM;
    d->v = v;
    const char *device = o->device ? o->device : verbs_named_device();
    if (device) snprintf(d->source_device, sizeof d->source_device, "%s", device);
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->cm_lock, NULL);
    d->events = v->rdma_create_event_channel();
    if (!d->events) {
        int e = errno;
        fab_log(o, FAB_LOG_ERROR, "verbs: no RDMA connection manager (%s): modprobe rdma_ucm", strerror(e));
        free(d);
        return e == ENODEV || e == ENOENT ? -ENODEV : -e;
    }
    /* An event that librdmacm keeps to itself is followed by another read, which must not wait. */
    (void)fcntl(d->events->fd, F_SETFL, fcntl(d->events->fd, F_GETFL) | O_NONBLOCK);
    d->nudge_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int e = d->nudge_fd < 0 ? errno : pthread_create(&d->thread, NULL, verbs_cm_thread, d);
    if (e) {
        if (d->nudge_fd >= 0) close(d->nudge_fd);
        v->rdma_destroy_event_channel(d->events);
        free(d);
        return -e;
    }
    *out = &d->head;
    return 0;
}

static void free_pds(verbs_domain *d) {
    while (d->pds) {
        verbs_pd *next = d->pds->next;
        d->v->ibv_dealloc_pd(d->pds->pd);
        free(d->pds);
        d->pds = next;
    }
}

void verbs_close(fab_domain *domain) {
    verbs_domain *d = (verbs_domain *)domain;
    atomic_store(&d->stopping, true);
    nudge(d);
    pthread_join(d->thread, NULL);
    free_pds(d);
    d->v->rdma_destroy_event_channel(d->events);
    close(d->nudge_fd);
    pthread_mutex_destroy(&d->lock);
    pthread_mutex_destroy(&d->cm_lock);
    free(d);
}

int verbs_device_of(verbs_domain *d, struct ibv_context *device) {
    if (!device) return -EADDRNOTAVAIL;
    int e = 0;
    pthread_mutex_lock(&d->lock);
    if (d->lost) { /* mutation: verbs/lost-device-bound */
        e = -ENODEV;
    } else if (!d->device) {
        e = -d->v->ibv_query_device(device, &d->attr);
        if (e == 0) {
            d->device = device;
            /* The kernel takes an event back with its queue pair, also between poll and read: a read that waited would
             * never end. */
            (void)fcntl(device->async_fd, F_SETFL, fcntl(device->async_fd, F_GETFL) | O_NONBLOCK);
            atomic_store(&d->async_device, device);
            nudge(d); /* the CM thread watches it from now on */
        }
    } else if (d->device != device) {
        fab_log(&d->head.options, FAB_LOG_INFO,
                "verbs: this address leads to device %s, others to %s; one domain uses one device",
                d->v->ibv_get_device_name(device->device), d->v->ibv_get_device_name(d->device->device));
        e = -EXDEV;
    }
    pthread_mutex_unlock(&d->lock);
    return e;
}

void verbs_device_gone(verbs_domain *d) {
    pthread_mutex_lock(&d->lock);
    if (d->device && !d->lost) {
        d->lost = true;
        fab_log(&d->head.options, FAB_LOG_ERROR, "verbs: device %s is gone",
                d->v->ibv_get_device_name(d->device->device));
        for (verbs_cq *cq = d->cqs; cq; cq = cq->next) {
            verbs_event *e = calloc(1, sizeof *e);
            if (!e) continue;
            e->type = (enum rdma_cm_event_type)VERBS_DEVICE_LOST;
            verbs_post_event(cq, e);
        }
    }
    pthread_mutex_unlock(&d->lock);
}

void verbs_queue_gone(verbs_domain *d) {
    pthread_mutex_lock(&d->lock);
    if (--d->queues == 0 && d->lost) {
        for (verbs_mr *m = d->mrs; m; m = m->next) {
            for (int i = 0; i < m->registered; i++) d->v->ibv_dereg_mr(m->in[i].mr);
            m->registered = 0; /* mutation: verbs/stays-registered */
            /* A destination is registered again where it is next used. An rkey is its device's: who gave it to peers has
             * to register that memory again. */
            m->head.gone = m->served;
        }
        free_pds(d);
        atomic_store(&d->async_device, NULL);
        d->device = NULL;
        d->lost = false;
        nudge(d);
    }
    pthread_mutex_unlock(&d->lock);
}

/* Under the lock. */
static int pd_of(verbs_domain *d, uint32_t tenant, verbs_pd **out) {
    if (!d->device || d->lost) return -ENODEV;
    for (verbs_pd *p = d->pds; p; p = p->next)
        if (p->tenant == tenant) { /* mutation: verbs/one-protection-domain */
            *out = p;
            return 0;
        }
    verbs_pd *p = calloc(1, sizeof *p);
    if (!p) return -ENOMEM;
    p->tenant = tenant;
    p->pd = d->v->ibv_alloc_pd(d->device);
    if (!p->pd) {
        int e = errno;
        free(p);
        return -e;
    }
    p->next = d->pds;
    d->pds = p;
    *out = p;
    return 0;
}

int verbs_pd_of(verbs_domain *d, uint32_t tenant, verbs_pd **out) {
    pthread_mutex_lock(&d->lock);
    int e = pd_of(d, tenant, out);
    pthread_mutex_unlock(&d->lock);
    return e;
}

/* ---- memory ---- */

/* Under the lock. */
static void link_mr(verbs_domain *d, verbs_mr *m) {
    m->next = d->mrs;
    if (m->next) m->next->prev = m;
    d->mrs = m;
}

static int mr_new(void *base, size_t bytes, verbs_mr **out) {
    verbs_mr *m = calloc(1, sizeof *m);
    if (!m) return -ENOMEM;
    m->base = base;
    m->bytes = bytes;
    *out = m;
    return 0;
}

/* Under the lock. */
static int register_in(verbs_domain *d, verbs_mr *m, verbs_pd *pd, int access) {
    if (m->registered == (int)(sizeof m->in / sizeof m->in[0])) return -ENOSPC;
    struct ibv_mr *mr = d->v->ibv_reg_mr(pd->pd, m->base, m->bytes, access);
    if (!mr) {
        int e = errno;
        if (e == ENOMEM)
            fab_log(&d->head.options, FAB_LOG_ERROR,
                    "verbs: %zu bytes cannot be pinned: raise the memlock limit (ulimit -l unlimited)", m->bytes);
        return -e;
    }
    m->in[m->registered].pd = pd;
    m->in[m->registered].mr = mr;
    __atomic_store_n(&m->registered, m->registered + 1, __ATOMIC_RELEASE);
    return 0;
}

int verbs_reg(fab_domain *domain, const fkv_region *r, uint32_t tenant, fab_mr **out) {
    verbs_domain *d = (verbs_domain *)domain;
    verbs_mr *m;
    int e = mr_new(r->base, r->bytes, &m);
    if (e) return e;
    pthread_mutex_lock(&d->lock);
    verbs_pd *pd;
    e = pd_of(d, tenant, &pd);
    if (e == 0) e = register_in(d, m, pd, IBV_ACCESS_REMOTE_READ);
    m->served = true;
    if (e == 0) link_mr(d, m);
    pthread_mutex_unlock(&d->lock);
    if (e) {
        free(m);
        return e;
    }
    m->head.rkey = m->in[0].mr->rkey;
    m->head.addr = (uintptr_t)r->base;
    *out = &m->head;
    return 0;
}

void verbs_not_for_children(void *memory, size_t bytes, bool mine) {
    (void)madvise(memory, bytes, mine ? MADV_DONTFORK : MADV_DOFORK);
}

int verbs_reg_local(fab_domain *domain, void *base, size_t bytes, fab_mr **out) {
    verbs_domain *d = (verbs_domain *)domain;
    verbs_mr *m;
    int e = mr_new(base, bytes, &m);
    if (e) return e;
    verbs_not_for_children(base, bytes, true);
    pthread_mutex_lock(&d->lock);
    link_mr(d, m); /* registered when a queue pair of a known protection domain first uses it */
    pthread_mutex_unlock(&d->lock);
    *out = &m->head;
    return 0;
}

int verbs_local_key(verbs_mr *m, verbs_pd *pd, uint32_t *lkey) {
    for (int i = 0; i < __atomic_load_n(&m->registered, __ATOMIC_ACQUIRE); i++)
        if (m->in[i].pd == pd) {
            *lkey = m->in[i].mr->lkey;
            return 0;
        }
    verbs_domain *d = (verbs_domain *)m->head.domain;
    /* Over iWARP the answer to a READ is a tagged write (RFC 5040, 5.1): its sink must allow remote writes. */
    int access = IBV_ACCESS_LOCAL_WRITE;
    if (d->device->device->transport_type == IBV_TRANSPORT_IWARP) access |= IBV_ACCESS_REMOTE_WRITE;
    pthread_mutex_lock(&d->lock);
    int e = register_in(d, m, pd, access);
    pthread_mutex_unlock(&d->lock);
    if (e == 0) *lkey = m->in[m->registered - 1].mr->lkey;
    return e;
}

void verbs_dereg(fab_mr *mr) {
    verbs_mr *m = (verbs_mr *)mr;
    verbs_domain *d = (verbs_domain *)mr->domain;
    pthread_mutex_lock(&d->lock);
    if (m->prev)
        m->prev->next = m->next;
    else
        d->mrs = m->next;
    if (m->next) m->next->prev = m->prev;
    pthread_mutex_unlock(&d->lock);
    for (int i = 0; i < m->registered; i++) d->v->ibv_dereg_mr(m->in[i].mr);
    if (!m->served) verbs_not_for_children(m->base, m->bytes, false);
    free(m);
}
#endif
