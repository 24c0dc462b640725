/* loop.c: one data-plane thread and its loop. A turn of it:
 *
 *     jobs from other threads
 *     poll every queue: accept, note what arrived, ends of READs, credits
 *     background work of the tables                            (it also tells them the time)
 *     what arrived is prepared or read, in order; ready changes are committed and answered; what waited for their keys is
 *         prepared, and so on until nothing can go on          (run_all)
 *     connections that are over are freed                      (nothing at hand names them any more)
 *     what waited for memory, or too long; READs of large values; slices of long replies
 *     flush every queue
 *
 * After each step that may have put ops on the group's lists, run_all drains them: shards and connections go only when the lists are empty.
 *
 * A thread with nothing to do polls for spin_us more, then sleeps on one epoll descriptor until a queue or its mailbox wakes it
 * or the next deadline has come; when nothing is pending there is no deadline. */
#include "loop.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../base/clock.h"
#include "../base/pause.h"
#include "client.h"
#include "connection.h"
#include "latency.h"
#include "life.h"
#include "op.h"
#include "request.h"
#include "run.h"
#include "stream.h"
#include "transfer.h"
#include "wait.h"

/* ---- a turn ---- */

static void handle(group *g, fab_provider p, const fab_wc *wc) {
    if (wc->opcode == FAB_WC_UNREACHABLE) {
        if (g->d->c.on_unreachable) g->d->c.on_unreachable(g->d->c.ctx, p);
        return;
    }
    client *c = fab_user(wc->conn);
    switch (wc->opcode) {
    case FAB_WC_ACCEPT: client_ask(g, p, wc); break;
    case FAB_WC_RECV: if (!c->doomed) request_received(g, c, wc); break;
    case FAB_WC_READ: transfer_read_done(g, wc); break;
    case FAB_WC_ATTACH: transfer_attached(c, wc); break;
    case FAB_WC_SEND_READY: reply_credits(c); break;
    case FAB_WC_DISCONNECT: client_doom(c); break;
    case FAB_WC_CONNECT:
    case FAB_WC_UNREACHABLE: break;
    }
}

/* Few at once, for replies are sent at the end of a turn: were all that a client has in flight answered together, it would have nothing to do until
 * then, and this thread nothing after. Where to send costs nothing a message, even fewer (docs/performance-notes.md, "PUT"). */
static int poll_all(group *g) {
    fab_wc wc[POLL_BATCH];
    int all = 0;
    for (int i = 0; i < g->polled_count; i++) {
        int n = fab_poll(g->cq[g->polled[i]], wc, g->batch_of[i]);
        for (int k = 0; k < n; k++) {
            handle(g, g->polled[i], &wc[k]);
            run_answers(g);   /* what was refused no longer counts against its client's quota */
        }
        all += n;
    }
    return all;
}

/* True when something happened, or is to be gone on with at once. */
static bool turn(group *g) {
    g->now_ns = fkv_now_ns();
    g->scan_chains = SCAN_CHAINS_A_TURN;
    bool busy = mailbox_ready(&g->box) && mailbox_run(&g->box);
    busy |= poll_all(g) > 0;
    /* After everything that this turn answers has come, however long the jobs took or the thread was paused: what has ended by then is
     * not read any more, and a time to live begins no earlier. */
    g->wall_ms = fkv_wall_ms();
    run_all(g);
    shards_tick(g);
    run_arrived(g);
    run_all(g);
    clients_reap(g);
    run_all(g);
    run_starved(g);
    wait_expire(g);
    run_all(g);
    transfers_step(g);
    run_all(g);
    busy |= replies_continue(g);
    for (int i = 0; i < g->polled_count; i++) fab_flush(g->cq[g->polled[i]]);
    latencies_settle(g);
    return busy;
}

/* ---- sleep ---- */

static uint64_t next_deadline(const group *g) {
    uint64_t at = min_u64(shards_deadline(g), transfers_deadline(g));
    if (!list_empty(&g->timed)) at = min_u64(at, LIST_OF(g->timed.next, op, timed)->deadline_ns);
    return min_u64(at, replies_deadline(g));
}

/* What was decided after this turn looked at it. */
static bool unfinished(const group *g) {
    return run_pending(g) || !list_empty(&g->sending) || g->feed_starved ||
           clients_to_reap(g) || mailbox_ready(&g->box);
}

static void wait_for_events(group *g, uint64_t until_ns) {
    int ms = -1;
    if (until_ns != UINT64_MAX) {
        uint64_t now = fkv_now_ns(), left = until_ns > now ? until_ns - now : 0;
        ms = left > 3600000000000u ? 3600000 : (int)((left + 999999) / 1000000);
    }
    struct epoll_event e[FAB_PROVIDER_COUNT];
    g->stats.sleeps++;
    int n = epoll_wait(g->epoll, e, FAB_PROVIDER_COUNT, ms);
    for (int i = 0; i < n; i++) if (e[i].data.ptr == &g->box) mailbox_sleep(&g->box);
}

static void sleep_if_idle(group *g) {
    if (unfinished(g)) return;
    uint64_t until = next_deadline(g);
    if (until <= g->now_ns) return;
    if (g->now_ns - g->busy_ns < (uint64_t)g->d->c.spin_us * 1000u) {
        fkv_pause();
        return;
    }
    for (int i = 0; i < g->polled_count; i++) if (fab_arm(g->cq[g->polled[i]]) != 0) return;
    wait_for_events(g, until);
}

/* ---- the thread ---- */

static void stop(job *j) {
    group *g = (group *)(void *)((char *)j - offsetof(group, stop_job));
    g->stopping = true;
}

void loop_unlisten(dataplane *d, uint32_t number) {
    for (uint32_t i = 0; i < d->c.listens; i++) {
        if (d->listen[i].group != number) continue;
        fab_unlisten(d->listener[i]);
        d->listener[i] = NULL;
    }
}

/* Everything that clients had under way ends here. The copier's jobs come back first: they write to extents and read clients'
 * memory. */
static void end_clients(group *g) {
    while (!list_empty(&g->clients)) client_doom(LIST_OF(g->clients.next, client, of_group));
    clients_reap(g);
    while (g->copying) {
        mailbox_sleep(&g->box);
        g->now_ns = fkv_now_ns();
        mailbox_run(&g->box);
        clients_reap(g);
    }
    run_all(g);
}

static void *group_main(void *arg) {
    group *g = arg;
    char name[16];
    snprintf(name, sizeof name, "farkv-data-%u", g->number & 0xff);
    pthread_setname_np(pthread_self(), name);
    g->stats.thread_id = (uint32_t)syscall(SYS_gettid);
    g->busy_ns = fkv_now_ns();
    g->wall_ms = fkv_wall_ms();
    while (!g->stopping) {
        if (turn(g)) g->busy_ns = g->now_ns;
        else sleep_if_idle(g);
    }
    loop_unlisten(g->d, g->number);
    end_clients(g);
    return NULL;
}

/* ---- made and unmade, by the thread that starts and stops ---- */

static int watch(group *g, int fd, void *what) {
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = what };
    return epoll_ctl(g->epoll, EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : -errno;
}

static void init_lists(group *g) {
    fkv_list *const lists[] = { &g->shards, &g->clients, &g->doomed, &g->sending, &g->blocked, &g->answering, &g->runnable, &g->woken,
                                &g->ready, &g->starved, &g->timed, &g->transfers };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) list_init(lists[i]);
}

int group_create(dataplane *d, uint32_t number, group **out) {
    group *g = *out = calloc(1, sizeof *g);
    if (!g) return -ENOMEM;
    g->d = d;
    g->number = g->stats.group = number;
    g->epoll = g->box.fd = -1;
    g->stop_job.run = stop;
    g->op_max = (uint32_t)min_u64((uint64_t)d->c.max_clients * (2 * d->c.client_quota + 1) + OPS_A_SLAB, 1u << 31);
    init_lists(g);
    g->by_number = calloc(d->c.shards, sizeof *g->by_number);
    g->slot_taken = calloc(d->c.shards, sizeof *g->slot_taken);
    g->scratch = malloc(FKV_SCAN_STEP_MAX);
    if (!g->by_number || !g->slot_taken || !g->scratch) return -ENOMEM;
    if (transfer_pool_create(&g->bounces) != FKV_OK) return -ENOMEM;
    int e = dedup_init(&g->dedup, d->c.dedup_bytes);
    if (e == 0) e = mailbox_open(&g->box);
    if (e) return e;
    g->epoll = epoll_create1(EPOLL_CLOEXEC);
    return g->epoll < 0 ? -errno : watch(g, g->box.fd, &g->box);
}

int group_add_provider(group *g, fab_provider p) {
    if (g->cq[p]) return 0;
    int e = fab_cq_create(g->d->domain[p], &g->cq[p]);
    if (e) return e;
    g->batch_of[g->polled_count] = fab_can(p, FAB_CAN_SEND_FREELY) ? POLL_BATCH_FREE : POLL_BATCH;
    g->polled[g->polled_count++] = p;
    e = transfer_pool_register(g->bounces, g->d->domain[p]);
    return e ? e : watch(g, fab_fd(g->cq[p]), g->cq[p]);
}

int group_start(group *g) {
    int e = thread_start(&g->thread, group_main, g);
    g->has_thread = e == 0;
    return e;
}

void group_join(group *g) {
    if (!g->has_thread) {
        g->stopping = true;
        return;
    }
    group_post(g, &g->stop_job);
    pthread_join(g->thread, NULL);
    g->has_thread = false;
}

void group_free(group *g) {
    if (!g) return;
    for (int i = 0; i < g->polled_count; i++) fab_cq_destroy(g->cq[g->polled[i]]);
    if (g->epoll >= 0) close(g->epoll);
    mailbox_close(&g->box);
    transfer_pool_free(g->bounces);
    wait_free_queues(g);
    ops_free_slabs(g);
    dedup_free(&g->dedup);
    free(g->by_number);
    free(g->slot_taken);
    free(g->scratch);
    free(g);
}
