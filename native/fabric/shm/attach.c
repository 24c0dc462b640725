/* attach.c: the agent's side of attaching: asking the peer for a region and mapping it; handing one's own to the peer.
 *
 * Both directions work: a client maps the owner's segments, the owner maps a client's rendezvous region. The descriptor
 * that comes is a stranger's: it must carry the seals that keep its bytes there (fkv_region_fd_is_sealed), and is
 * mapped read-only.
 *
 * What a client offers has no holes: the system would fill them for the owner that reads them, and at its cost. The
 * seals that were looked for also keep anybody from making one later. Nor does the owner map more pages of it than it
 * reads. A client maps an owner's region as a whole, so that no READ waits for a page fault.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../../base/clock.h"
#include "shm.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

void shm_attachment_free(shm_attachment *a) {
    if (a->map) munmap(a->map, a->map_bytes);
    free(a);
}

/* ---- asking ---- */

/* When the peer has been silent for too long while something is asked of it; 0: nothing is. Mapping many large regions
 * takes this thread longer than one time-out, so each answer gives the rest new time. */
static uint64_t deadline_of(const shm_conn *c) {
    const shm_link *l = &c->link;
    const shm_attachment *oldest = l->asked.first ? l->asked.first : l->waiting.first;
    if (!oldest) return 0;
    uint64_t since_answer = l->answered_ns + c->domain->options.op_timeout_ms * 1000000ull;
    return oldest->deadline_ns > since_answer ? oldest->deadline_ns : since_answer;
}

static void set_timer(shm_conn *c) {
    uint64_t at = deadline_of(c);
    if (at)
        shm_timer_set(c->domain, &c->link.timer, at);
    else
        shm_timer_clear(&c->link.timer);
}

static void finish(shm_conn *c, shm_attachment *a, fab_wc_status status) {
    a->status = status;
    shm_post_attached(c, a);
}

void shm_attach_fail_all(shm_conn *c, fab_wc_status first) {
    shm_attachment *a;
    c->link.asked_count = 0;
    while ((a = shm_list_pop(&c->link.asked)) || (a = shm_list_pop(&c->link.waiting))) {
        finish(c, a, first);
        first = FAB_WR_FLUSH_ERR;
    }
}

void shm_attach_timer(shm_conn *c) {
    shm_link_ready(c, EPOLLIN); /* it may have answered while this thread was busy */
    if (c->link.state != SHM_LINK_UP) return;
    uint64_t at = deadline_of(c);
    if (at && at <= fkv_now_ns()) {
        shm_attach_fail_all(c, FAB_RESP_TIMEOUT_ERR);
        shm_link_fail(c, FAB_RESP_TIMEOUT_ERR);
    } else {
        set_timer(c);
    }
}

/* Sends the next frame that waits. False: nothing waits, or the socket does not take it (*full, or the link has
 * failed). */
static bool write_one(shm_conn *c, bool *full) {
    shm_link *l = &c->link;
    shm_frame f = { .magic = SHM_MAGIC };
    if (l->released_count > 0) {
        f.type = SHM_DETACH;
        f.count = l->released_count < SHM_FRAME_SLOTS ? l->released_count : SHM_FRAME_SLOTS;
        memcpy(f.slots, l->released + l->released_count - f.count, f.count * sizeof f.slots[0]);
    } else if (l->waiting.first && l->asked_count < SHM_ATTACH_WINDOW) {
        const shm_attachment *a = l->waiting.first;
        f.type = SHM_ATTACH;
        f.id = a->id;
        f.rkey = a->rkey;
        f.address = a->address;
        f.bytes = a->bytes;
    } else {
        return false;
    }
    if (!shm_link_send(c, &f, NULL, 0, full)) {
        if (!*full) shm_link_fail(c, FAB_RETRY_EXC_ERR);
        return false;
    }
    if (f.type == SHM_DETACH) {
        l->released_count -= f.count;
    } else {
        shm_list_add(&l->asked, shm_list_pop(&l->waiting));
        l->asked_count++;
    }
    return true;
}

void shm_attach_write(shm_conn *c) {
    bool full = false;
    if (c->link.holds) {
        c->link.holds = false;
        if (!shm_attach_request(c, &c->link.held)) {
            shm_link_fail(c, FAB_GENERAL_ERR);
            return;
        }
        full = c->link.holds;
    }
    while (!full && write_one(c, &full)) {}
    if (c->link.state != SHM_LINK_UP) return;
    shm_link_watch(c, (c->link.holds ? 0 : EPOLLIN) | (full ? EPOLLOUT : 0));
    set_timer(c);
}

/* The peer may use the slot again once it is told. Out of memory, the slot is lost until the connection ends. */
static void release_slot(shm_conn *c, uint32_t slot) {
    shm_link *l = &c->link;
    if (l->released_count == l->released_room) {
        uint32_t room = l->released_room ? 2 * l->released_room : 16;
        uint32_t *more = realloc(l->released, room * sizeof *more);
        if (!more) return;
        l->released = more;
        l->released_room = room;
    }
    l->released[l->released_count++] = slot;
}

void shm_attach_orders(shm_conn *c, shm_list *attach, shm_list *detach) {
    if (!attach->first && !detach->first) return;
    shm_attachment *a;
    while ((a = shm_list_pop(detach)) != NULL) {
        if (c->link.state == SHM_LINK_UP) release_slot(c, a->slot);
        shm_attachment_free(a);
    }
    uint64_t deadline = fkv_now_ns() + c->domain->options.op_timeout_ms * 1000000ull;
    while ((a = shm_list_pop(attach)) != NULL) {
        if (c->link.state != SHM_LINK_UP) {
            finish(c, a, FAB_WR_FLUSH_ERR);
            continue;
        }
        a->id = ++c->link.next_id;
        a->deadline_ns = deadline;
        shm_list_add(&c->link.waiting, a);
    }
    if (c->link.state == SHM_LINK_UP) shm_attach_write(c);
}

/* Whether every page of the file from `start` to `end` is there. */
static bool is_whole(int fd, uint64_t start, uint64_t end) {
    off_t hole = lseek(fd, (off_t)start, SEEK_HOLE);
    return hole >= 0 && (uint64_t)hole >= end;
}

/* Maps what the reply speaks of. FAB_GENERAL_ERR: this process has no room for it; FAB_LOC_PROT_ERR: it is not to be
 * trusted. */
static fab_wc_status map_region(shm_attachment *a, const shm_frame *f, int fd, bool is_client) {
    struct stat s;
    if (fd < 0 || f->slot >= SHM_SLOTS || f->offset > SIZE_MAX / 4 || a->bytes > SIZE_MAX / 4) return FAB_LOC_PROT_ERR;
    if (!fkv_region_fd_is_sealed(fd, f->offset + a->bytes) || fstat(fd, &s) != 0) return FAB_LOC_PROT_ERR;
    /* of huge pages, where it has them: mappings of those begin and end with one */
    uint64_t page = (uint64_t)s.st_blksize;
    if (page < 4096 || (page & (page - 1))) return FAB_LOC_PROT_ERR;
    uint64_t start = f->offset & ~(page - 1), end = (f->offset + a->bytes + page - 1) & ~(page - 1);
    if (is_client && !is_whole(fd, f->offset, f->offset + a->bytes)) return FAB_LOC_PROT_ERR;
    void *map = fkv_region_map(fd, start, end - start, PROT_READ);
    if (map == MAP_FAILED) return FAB_GENERAL_ERR;
    /* not what lies beside it: where that has no pages yet, they would be made */
    uint64_t from = f->offset & ~4095ull, to = (f->offset + a->bytes + 4095) & ~4095ull;
    if (!is_client) madvise((uint8_t *)map + (from - start), to - from, MADV_POPULATE_READ);
    a->map = map;
    a->map_bytes = end - start;
    a->base = (const uint8_t *)map + (f->offset - start);
    a->slot = f->slot;
    return FAB_SUCCESS;
}

bool shm_attach_reply(shm_conn *c, const shm_frame *f, int fd) {
    shm_attachment **at = &c->link.asked.first;
    while (*at && (*at)->id != f->id) at = &(*at)->next;
    shm_attachment *a = *at;
    if (!a) return false;
    fab_wc_status status = FAB_REM_ACCESS_ERR;
    if (f->status == FAB_SUCCESS) {
        status = map_region(a, f, fd, c->side == 1);
        if (status == FAB_LOC_PROT_ERR) return false;
        if (status != FAB_SUCCESS) release_slot(c, f->slot);
    } else if (f->status == FAB_REM_OP_ERR) {
        status = FAB_REM_OP_ERR;
    }
    if (!(*at = a->next)) c->link.asked.last = at;
    c->link.asked_count--;
    finish(c, a, status);
    c->link.answered_ns = fkv_now_ns();
    shm_attach_write(c); /* there is room in the window; sets the timer too */
    return true;
}

/* ---- being asked ---- */

static shm_export *export_new(shm_conn *c, shm_mr *m) {
    shm_link *l = &c->link;
    uint32_t slot = l->export_hint;
    while (slot < l->export_room && l->exports[slot]) slot++;
    if (slot == SHM_SLOTS) return NULL;
    if (slot == l->export_room) {
        uint32_t room = l->export_room ? 2 * l->export_room : 16;
        shm_export **more = realloc(l->exports, room * sizeof *more);
        if (!more) return NULL;
        memset(more + l->export_room, 0, (room - l->export_room) * sizeof *more);
        l->exports = more;
        l->export_room = room;
    }
    shm_export *e = malloc(sizeof *e);
    if (!e) return NULL;
    *e = (shm_export){ .conn = c, .mr = m, .next = m->exports, .link = &m->exports, .slot = slot };
    if (m->exports) m->exports->link = &e->next;
    m->exports = e;
    l->exports[slot] = e;
    l->export_hint = slot + 1;
    atomic_store_explicit(&c->shared->revoked[c->side][slot], 0, memory_order_relaxed);
    return e;
}

static void export_free(shm_conn *c, uint32_t slot) {
    shm_export *e = c->link.exports[slot];
    if (e->mr) {
        *e->link = e->next;
        if (e->next) e->next->link = e->link;
    }
    c->link.exports[slot] = NULL;
    if (slot < c->link.export_hint) c->link.export_hint = slot;
    free(e);
}

bool shm_attach_request(shm_conn *c, const shm_frame *f) {
    shm_domain *d = c->domain;
    shm_frame reply = { .magic = SHM_MAGIC, .type = SHM_ATTACHED, .status = FAB_REM_ACCESS_ERR, .id = f->id };
    bool full = false;
    pthread_mutex_lock(&d->lock); /* until it is sent: deregistration must not close the descriptor meanwhile */
    shm_mr *m = shm_mr_find(d, f->rkey);
    shm_export *e = NULL;
    uint64_t offset = m ? f->address - m->head.addr : 0; /* below the region: wraps to beyond its end */
    if (m && m->tenant == c->orders.tenant && f->bytes > 0 && offset <= m->bytes && m->bytes - offset >= f->bytes) {
        e = export_new(c, m);
        reply.status = e ? FAB_SUCCESS : FAB_REM_OP_ERR;
    }
    if (e) {
        reply.slot = e->slot;
        reply.offset = m->offset + offset;
    }
    bool sent = shm_link_send(c, &reply, e ? &m->fd : NULL, e ? 1 : 0, &full);
    if (!sent && e) export_free(c, e->slot);
    pthread_mutex_unlock(&d->lock);
    if (!sent && full) { /* a peer that asks and does not read the answers: it gets none until it does */
        c->link.held = *f;
        c->link.holds = true;
        shm_link_watch(c, EPOLLOUT);
    } else if (!sent) {
        shm_link_fail(c, FAB_RETRY_EXC_ERR);
    }
    return true;
}

bool shm_detach_request(shm_conn *c, const shm_frame *f) {
    bool sound = f->count <= SHM_FRAME_SLOTS;
    pthread_mutex_lock(&c->domain->lock);
    for (uint32_t i = 0; sound && i < f->count; i++) {
        uint32_t slot = f->slots[i];
        sound = slot < c->link.export_room && c->link.exports[slot];
        if (sound) export_free(c, slot);
    }
    pthread_mutex_unlock(&c->domain->lock);
    return sound;
}

void shm_exports_free(shm_conn *c) {
    pthread_mutex_lock(&c->domain->lock);
    for (uint32_t i = 0; i < c->link.export_room; i++)
        if (c->link.exports[i]) export_free(c, i);
    pthread_mutex_unlock(&c->domain->lock);
    free(c->link.exports);
}
