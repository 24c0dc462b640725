/* poll.c: fab_poll. In this order: what the agent told, the ends of connections, READs, messages. None of it blocks,
 * allocates or (but for what the agent told) takes a lock. */
#include <stdlib.h>
#include "../../base/shared_copy.h"
#include "shm.h"
#include "poll.h"

static fab_wc completion(shm_conn *c, fab_wc_opcode opcode, fab_wc_status status, uint64_t wr_id) {
    c->touched = c->cq->polls;
    return (fab_wc){ .opcode = opcode, .status = status, .wr_id = wr_id, .conn = &c->head };
}

/* ---- what the agent told ---- */

static void begin_ending(shm_conn *c, fab_wc_status gone) {
    if (c->status == FAB_SUCCESS) c->status = gone;
    /* What the peer published before it went is still delivered; a process that lives on and goes on writing is not
     * heard. */
    c->last_message = c->state == SHM_OPEN && shm_in_refresh(&c->in, memory_order_acquire) ? c->in.tail : c->in.head;
    shm_stop_listening(c);
    c->state = SHM_ENDING;
    c->ending = true;
    c->next_ending = c->cq->ending;
    c->cq->ending = c;
}

static void take_news(shm_cq *q) {
    /* Taken before looking: what is posted from now on sets it again. */
    atomic_store(&q->attention, 0);
    pthread_mutex_lock(&q->lock);
    shm_conn *list = q->news;
    q->news = NULL;
    q->news_last = &q->news;
    for (shm_conn *c = list; c; c = c->news.next) {
        c->news.listed = false;
        shm_list_move(&c->attached, &c->news.attached);
        c->announce |= c->news.bits;
        c->news.bits = 0;
        shm_announce(c);
    }
    pthread_mutex_unlock(&q->lock);
}

static fab_wc announce_connect(shm_conn *c) {
    fab_wc_status status = c->news.connected;
    if (status == FAB_SUCCESS && !shm_conn_open(c)) {
        c->state = SHM_OPEN; /* open enough to break in order */
        shm_break(c, FAB_GENERAL_ERR);
        status = FAB_GENERAL_ERR;
    }
    fab_wc w = completion(c, FAB_WC_CONNECT, status, 0);
    w.data = c->news.priv;
    w.bytes = c->news.priv_bytes;
    return w;
}

static fab_wc announce_accept(shm_conn *c) {
    fab_wc w = completion(c, FAB_WC_ACCEPT, FAB_SUCCESS, 0);
    w.data = c->news.priv;
    w.bytes = c->news.priv_bytes;
    return w;
}

static fab_wc announce_attached(shm_conn *c, shm_attachment *a) {
    fab_wc w = completion(c, FAB_WC_ATTACH, a->status, a->wr_id);
    shm_table_settle(&c->table, a);
    if (a->status == FAB_SUCCESS) return w;
    shm_attachment_free(a);
    return w;
}

static int announce(shm_cq *q, fab_wc *wc, int max) {
    int n = 0;
    while (q->announce && n < max) {
        shm_conn *c = q->announce;
        if (c->announce & SHM_NEWS_ACCEPT) {
            c->announce &= ~(unsigned)SHM_NEWS_ACCEPT;
            wc[n++] = announce_accept(c);
        } else if (c->announce & SHM_NEWS_CONNECT) {
            c->announce &= ~(unsigned)SHM_NEWS_CONNECT;
            wc[n++] = announce_connect(c);
        } else if (c->attached.first) {
            wc[n++] = announce_attached(c, shm_list_pop(&c->attached));
        } else {
            if (c->announce & SHM_NEWS_GONE) begin_ending(c, c->news.gone);
            c->announce = 0;
            c->announced = false;
            if (!(q->announce = c->next_announced)) q->announce_last = &q->announce;
        }
    }
    return n;
}

/* ---- messages ---- */

/* Takes up to `max` messages, not beyond `end`. */
static int receive(shm_conn *c, fab_wc *wc, int max, uint64_t end) {
    int n = 0;
    while (n < max && c->free_count > 0 && c->in.head != end) {
        uint16_t i = c->free[c->free_count - 1];
        uint8_t *buffer = c->pool + (size_t)i * c->stride;
        uint32_t bytes = shm_in_take(&c->in, buffer);
        if (bytes == 0) {
            shm_break(c, FAB_GENERAL_ERR);
            c->in.head = end;
            break;
        }
        c->free_count--;
        c->held[i] = 1;
        wc[n++] = (fab_wc){ .opcode = FAB_WC_RECV, .conn = &c->head, .data = buffer, .bytes = bytes };
    }
    return n;
}

static int scan(shm_cq *q, fab_wc *wc, int max) {
    int n = 0;
    uint32_t count = q->active_count, at = q->turn < count ? q->turn : 0;
    for (uint32_t i = 0; i < count && n < max; i++) {
        shm_conn *c = q->active[at];
        if (++at == count) at = 0;
        if (c->state != SHM_OPEN) continue;
        if (c->in.tail == c->in.head && !shm_in_refresh(&c->in, memory_order_acquire)) {
            shm_break(c, FAB_GENERAL_ERR);
            continue;
        }
        if (c->in.tail != c->in.head) {
            int room = max - n;
            n += receive(c, wc + n, count > 1 && room > SHM_QUOTA ? SHM_QUOTA : room, c->in.tail);
            c->heard = q->polls;
            /* Space is given back an eighth at a time, so that the line with the index moves seldom. */
            if (c->in.head - c->in.published >= c->in.size / 8) {
                c->freed_space = true;
                shm_dirty(c);
            }
        }
        if (c->out.want && n < max) {
            if (!shm_out_refresh(&c->out, memory_order_acquire)) {
                shm_break(c, FAB_GENERAL_ERR);
            } else if (shm_out_space(&c->out) >= c->out.want) {
                c->out.want = 0;
                wc[n++] = completion(c, FAB_WC_SEND_READY, FAB_SUCCESS, 0);
            }
        }
    }
    q->turn = at;
    return n;
}

/* ---- READs ---- */

/* Copies what the budget allows of the next READ. True when it ended. */
static bool read_some(shm_conn *c, shm_read *r, uint32_t *budget) {
    uint32_t left = r->bytes - r->done, now = left;
    if (left > *budget) { /* ends at a word, so that none is loaded in two halves */
        uint32_t over = (uint32_t)((uintptr_t)(r->from + r->done) + *budget) & 7;
        now = *budget > over ? *budget - over : 0;
        *budget = now;
    }
    fkv_copy_shared(r->local + r->done, r->from + r->done, now);
    r->done += now;
    *budget -= now;
    if (now < left) return false;
    fkv_copy_shared_end();
    /* Looked at after the copy: a region that was deregistered before the READ ended was not read. */
    /* mutation: lookup/revoked-unseen */
    if (atomic_load_explicit(&c->shared->revoked[!c->side][r->of->slot], memory_order_acquire))
        r->status = FAB_REM_ACCESS_ERR;
    return true;
}

static int do_reads(shm_cq *q, fab_wc *wc, int max) {
    int n = 0;
    uint32_t budget = SHM_READ_BUDGET;
    while (q->reading && n < max) {
        shm_conn *c = q->reading;
        while (c->read_head != c->read_tail && n < max) {
            shm_read *r = &c->reads[c->read_head % SHM_READS];
            if (c->state != SHM_OPEN)
                r->status = FAB_WR_FLUSH_ERR;
            else if (r->status == FAB_SUCCESS && !read_some(c, r, &budget))
                break;
            c->read_head++;
            wc[n++] = completion(c, FAB_WC_READ, r->status, r->wr_id);
            if (r->status != FAB_SUCCESS) shm_break(c, r->status);
        }
        if (c->read_head != c->read_tail && n == max) break;
        if (!(q->reading = c->next_reading)) q->reading_last = &q->reading;
        c->reading = false;
        if (c->read_head == c->read_tail) continue;
        c->reading = true; /* out of budget: the others' turn is next */
        c->next_reading = NULL;
        *q->reading_last = c;
        q->reading_last = &c->next_reading;
        break;
    }
    return n;
}

/* ---- ends ---- */

/* The last messages, then, once the READs are flushed and in a poll of its own, FAB_WC_DISCONNECT. */
static int end_connections(shm_cq *q, fab_wc *wc, int max) {
    int n = 0;
    shm_conn **at = &q->ending;
    while (*at && n < max) {
        shm_conn *c = *at;
        if (c->in.head != c->last_message && c->free_count > 0) {
            int got = receive(c, wc + n, max - n, c->last_message);
            if (got) c->touched = q->polls;
            n += got;
        } else if (c->read_head == c->read_tail && !c->announced && c->touched != q->polls) {
            wc[n++] = completion(c, FAB_WC_DISCONNECT, c->status, 0);
            c->state = SHM_ENDED;
            c->ending = false;
            *at = c->next_ending;
            continue;
        }
        at = &c->next_ending;
    }
    return n;
}

int shm_poll(fab_cq *base, fab_wc *wc, int max) {
    shm_cq *q = (shm_cq *)base;
    int n = 0;
    q->polls++;
    if (__builtin_expect(q->armed, 0)) shm_disarm(q);
    if (__builtin_expect(atomic_load_explicit(&q->attention, memory_order_acquire) != 0, 0)) take_news(q);
    if (__builtin_expect(q->announce != NULL, 0)) n = announce(q, wc, max);
    if (__builtin_expect(q->ending != NULL, 0) && n < max) n += end_connections(q, wc + n, max - n);
    if (q->reading && n < max) n += do_reads(q, wc + n, max - n);
    if (n < max) n += scan(q, wc + n, max - n);
    if (__builtin_expect(q->active_count > SHM_ACTIVE_MAX, 0) && q->polls % SHM_PARK_POLLS == 0) shm_park_idle(q);
    if (__builtin_expect(q->parked_count != 0, 0)) shm_look_for_parked(q, n);
    return n;
}
