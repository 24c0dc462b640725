/* conn.c: a connection as its CQ's thread sees it: its life, SEND, release, and queueing of READs. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include "../../base/assert.h"
#include "shm.h"
#include "poll.h"

/* ---- life ---- */

int shm_connect(fab_cq *base, const char *address, const fab_identity *who, const void *priv, uint32_t priv_bytes,
                void *user, fab_conn **out) {
    (void)who; /* nothing of it is encrypted here */
    shm_cq *q = (shm_cq *)base;
    char path[sizeof((shm_conn *)0)->path];
    int e = shm_parse_address(address, path);
    if (e) return e;
    shm_conn *c = shm_conn_new(q->domain, q, 0);
    if (!c) return -ENOMEM;
    c->head.user = user;
    strcpy(c->path, path);
    if (priv_bytes) memcpy(c->orders.priv, priv, priv_bytes);
    c->orders.priv_bytes = priv_bytes;
    *out = &c->head;
    shm_order(c, SHM_ORDER_CONNECT);
    return 0;
}

bool shm_conn_open(shm_conn *c) {
    struct epoll_event e = { .events = EPOLLIN | EPOLLET, .data.ptr = c };
    if (!shm_active_add(c)) return false;
    if (epoll_ctl(c->cq->epoll, EPOLL_CTL_ADD, c->bell, &e) != 0) {
        shm_stop_listening(c);
        return false;
    }
    c->state = SHM_OPEN;
    c->head.max_message = c->max_message;
    return true;
}

static void set_private(shm_conn *c, const void *priv, uint32_t priv_bytes) {
    if (priv_bytes) memcpy(c->orders.priv, priv, priv_bytes);
    c->orders.priv_bytes = priv_bytes;
}

int shm_accept(fab_conn *base, uint32_t tenant, const void *priv, uint32_t priv_bytes) {
    shm_conn *c = (shm_conn *)base;
    if (c->state != SHM_ASKED) return -ENOTCONN;
    if (!shm_conn_open(c)) return -ENOMEM;
    pthread_mutex_lock(&c->domain->lock);
    c->orders.tenant = tenant;
    set_private(c, priv, priv_bytes);
    shm_order_locked(c, SHM_ORDER_ACCEPT);
    pthread_mutex_unlock(&c->domain->lock);
    return 0;
}

/* From here on the connection is the agent's alone. */
static void hand_over(shm_conn *c, unsigned order) {
    shm_cq *q = c->cq;
    if (c->state == SHM_OPEN) { /* what was sent, arrives */
        shm_dirty(c);
        shm_flush(&q->head);
    }
    shm_forget(c);
    pthread_mutex_lock(&q->lock);
    c->news.closed = true;
    if (c->news.listed) {
        shm_conn **at = &q->news;
        while (*at != c) at = &(*at)->news.next;
        if (!(*at = c->news.next)) q->news_last = at;
        c->news.listed = false;
    }
    pthread_mutex_unlock(&q->lock);
    if (c->head.max_message) epoll_ctl(q->epoll, EPOLL_CTL_DEL, c->bell, NULL); /* it was opened */
    pthread_mutex_lock(&c->domain->lock);
    c->orders.broken |= c->status != FAB_SUCCESS;
    shm_order_locked(c, order | SHM_ORDER_CLOSE);
    pthread_mutex_unlock(&c->domain->lock);
}

void shm_drop(shm_conn *c) { hand_over(c, 0); }
void shm_disconnect(fab_conn *c) { hand_over((shm_conn *)c, 0); }

int shm_reject(fab_conn *base, const void *priv, uint32_t priv_bytes) {
    shm_conn *c = (shm_conn *)base;
    if (c->head.max_message == 0) set_private(c, priv, priv_bytes);
    hand_over(c, c->state == SHM_ASKED ? SHM_ORDER_REJECT : 0);
    return 0;
}

void shm_break(shm_conn *c, fab_wc_status status) {
    if (c->state != SHM_OPEN) return;
    c->state = SHM_BROKEN;
    c->status = status;
    shm_order(c, SHM_ORDER_HANGUP);
}

/* ---- SEND ---- */

int shm_send(fab_conn *base, const struct iovec *iov, int n, uint32_t bytes) {
    shm_conn *c = (shm_conn *)base;
    if (c->state != SHM_OPEN) return -ENOTCONN;
    if (__builtin_expect(c->parked, 0)) shm_unpark(c); /* an answer is likely, and polling is to find it at once */
    shm_out *o = &c->out;
    uint64_t need = shm_record_bytes(bytes);
    if (shm_out_space(o) < need) {
        if (!shm_out_refresh(o, memory_order_acquire)) {
            shm_break(c, FAB_GENERAL_ERR);
            return -ENOTCONN;
        }
        if (shm_out_space(o) < need) {
            /* Wait for more than this one message, so that not every single one costs a round of waiting. */
            o->want = need > o->size / 4 ? need : o->size / 4;
            return -EAGAIN;
        }
    }
    shm_out_push(o, iov, n, bytes);
    shm_dirty(c);
    return 0;
}

void shm_release(fab_conn *base, const void *message) {
    shm_conn *c = (shm_conn *)base;
    size_t at = (size_t)((const uint8_t *)message - c->pool), i = at / c->stride;
    fkv_assert(i < c->buffers && at % c->stride == 0 && c->held[i]);
    c->held[i] = 0;
    c->free[c->free_count++] = (uint16_t)i;
}

/* ---- READ ---- */

static const uint8_t *locate(const shm_conn *c, const fab_read *r, const shm_attachment **of) {
    const shm_attachment *a = *of && (*of)->rkey == r->rkey ? *of : shm_table_find(&c->table, r->rkey);
    *of = a;
    if (!a || r->remote_addr < a->address) return NULL;
    uint64_t offset = r->remote_addr - a->address;
    return offset <= a->bytes && a->bytes - offset >= r->bytes ? a->base + offset : NULL;
}

int shm_post_reads(fab_conn *base, const fab_read *r, int n) {
    enum { LINE = 64, PREFETCH_BYTES = 256 };
    shm_conn *c = (shm_conn *)base;
    if (c->state != SHM_OPEN) return -ENOTCONN;
    const shm_attachment *of = NULL;
    int taken = 0;
    for (; taken < n && c->read_tail - c->read_head < SHM_READS; taken++, r++) {
        shm_read *q = &c->reads[c->read_tail++ % SHM_READS];
        const uint8_t *from = locate(c, r, &of);
        *q = (shm_read){ .wr_id = r->wr_id,
                         .local = r->local,
                         .from = from,
                         .of = of,
                         .bytes = r->bytes,
                         .status = !fab_local_ok(r) ? FAB_LOC_PROT_ERR
                                   : from           ? FAB_SUCCESS
                                                    : FAB_REM_ACCESS_ERR };
        /* The copies are made by fab_poll; until then the memory of the whole batch is on its way at once. */
        for (uint32_t i = 0; from && i < r->bytes && i < PREFETCH_BYTES; i += LINE) __builtin_prefetch(from + i);
    }
    if (taken > 0 && !c->reading) {
        c->reading = true;
        c->next_reading = NULL;
        *c->cq->reading_last = c;
        c->cq->reading_last = &c->next_reading;
    }
    return taken;
}
