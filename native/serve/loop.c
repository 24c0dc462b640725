/* loop.c: one data-plane thread and its loop. A turn of it:
 *
 *     jobs from other threads
 *     poll every queue: accept, note what arrived, ends of READs, credits
 *     background work of the tables                            (it also tells them the time)
 *     what arrived is prepared or read, in order; ready changes are committed and answered; what waited for their keys
 *         is prepared, and so on until nothing can go on       (run_all)
 *     connections that are over are freed                      (nothing at hand names them any more)
 *     what waited for memory, or too long; READs of large values; slices of long replies
 *     what is prepared of durable shards goes to the log       (what is answered from there is committed at once)
 *     records for backups, and acknowledgements to owners      (repl_send)
 *     flush every queue
 *
 * After each step that may have put ops on the worker's lists, run_all drains them: shards and connections go only when
 * the lists are empty.
 *
 * A thread with nothing to do polls for as long as that helps (base/poller.h), then sleeps on one epoll descriptor until
 * a queue or its mailbox wakes it or the next deadline has come; when nothing is pending there is no deadline. */
#include "loop.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../base/clock.h"
#include "../dataplane/client.h"
#include "../dataplane/latency.h"
#include "../replication/replication.h"
#include "../storage/shard.h"
#include "connection.h"
#include "life.h"
#include "request.h"
#include "run.h"
#include "stages.h"
#include "stream.h"
#include "transfer.h"
#include "wait.h"

/* ---- a turn ---- */

static void handle(worker *w, uint32_t place, const fab_wc *wc) {
    if (wc->opcode == FAB_WC_UNREACHABLE) {
        if (w->d->c.on_unreachable)
            w->d->c.on_unreachable(w->d->c.ctx, fab_place_provider(place), fab_place_device(place));
        return;
    }
    if (wc->opcode == FAB_WC_ACCEPT) {
        client_ask(w, place, wc);
        return;
    }
    client *c = fab_user(wc->conn);
    if (c->head.kind != CONNECTION_CLIENT) {
        repl_event(w, &c->head, wc);
        return;
    }
    switch (wc->opcode) {
    case FAB_WC_RECV:
        if (!c->doomed) request_received(w, c, wc);
        break;
    case FAB_WC_READ: fetch_pool_read(w->fetches, wc); break;
    case FAB_WC_ATTACH:
        if (!c->doomed) fetch_source_attached(&c->source, wc);
        break;
    case FAB_WC_SEND_READY: reply_credits(c); break;
    case FAB_WC_DISCONNECT: client_doom(c, FKV_END_NONE); break;
    case FAB_WC_ACCEPT:
    case FAB_WC_CONNECT:
    case FAB_WC_UNREACHABLE: break;
    }
}

/* Few at once, for replies are sent at the end of a turn: were all that a client has in flight answered together, it
 * would have nothing to do until then, and this thread nothing after. Where to send costs nothing a message, even fewer
 * (docs/performance-notes.md, "PUT"). */
static int poll_all(worker *w) {
    fab_wc wc[POLL_BATCH];
    int all = 0;
    for (int i = 0; i < w->polled_count; i++) {
        int n = fab_poll(w->cq[w->polled[i]], wc, w->batch_of[i]);
        for (int k = 0; k < n; k++) {
            handle(w, w->polled[i], &wc[k]);
            run_answers(w); /* what was refused no longer counts against its client's quota */
        }
        all += n;
    }
    return all;
}

bool worker_turn(worker *w) {
    w->now_ns = fkv_now_ns();
    w->scan_chains = SCAN_CHAINS_A_TURN;
    bool busy = mailbox_ready(&w->box) && mailbox_run(&w->box);
    busy |= poll_all(w) > 0;
    /* After everything that this turn answers has come, however long the jobs took or the thread was paused: what has
     * ended by then is not read any more, and a time to live begins no earlier. */
    w->wall_ms = fkv_wall_ms();
    if (w->wall_ms >= w->expiry_ms) clients_expire(w); /* mutation: access/outlives-ticket */
    run_all(w);
    shards_tick(w);
    run_arrived(w);
    run_all(w);
    clients_reap(w);
    run_all(w);
    run_starved(w);
    wait_expire(w);
    run_all(w);
    transfers_step(w);
    run_all(w);
    busy |= replies_continue(w);
    if (w->repl.log) {
        repl_write(w);
        /* What became ready is in the table before its record is sent: a copy takes a large value from there. */
        run_all(w); /* mutation: early/sent-before-effect */
    }
    repl_send(w);
    for (int i = 0; i < w->polled_count; i++) fab_flush(w->cq[w->polled[i]]);
    latencies_settle(w);
    return busy;
}

/* ---- sleep ---- */

static uint64_t next_deadline(const worker *w) {
    uint64_t at = min_u64(shards_deadline(w), transfers_deadline(w));
    if (!list_empty(&w->timed)) at = min_u64(at, LIST_OF(w->timed.next, op, timed)->deadline_ns);
    at = min_u64(at, repl_deadline(w));
    return min_u64(at, min_u64(replies_deadline(w), clients_deadline(w)));
}

/* What was decided after this turn looked at it. */
static bool unfinished(const worker *w) {
    return run_pending(w) || !list_empty(&w->sending) || w->feed_starved || clients_to_reap(w) ||
           fetch_pool_begun(w->fetches) || fetch_pool_begun(w->repl.pulls) || mailbox_ready(&w->box);
}

static void wait_for_events(worker *w, uint64_t until_ns) {
    int ms = -1;
    if (until_ns != UINT64_MAX) {
        uint64_t now = fkv_now_ns(), left = until_ns > now ? until_ns - now : 0;
        ms = left > 3600000000000u ? 3600000 : (int)((left + 999999) / 1000000);
    }
    struct epoll_event e[FAB_PLACES];
    poller_sleeps(&w->poller);
    int n = epoll_wait(w->epoll, e, FAB_PLACES, ms);
    for (int i = 0; i < n; i++)
        if (e[i].data.ptr == &w->box) mailbox_sleep(&w->box);
}

static void sleep_if_idle(worker *w) {
    if (unfinished(w)) return;
    uint64_t until = next_deadline(w);
    if (until <= w->now_ns) return;
    poll_step step = poller_nothing(&w->poller, w->now_ns);
    if (step != POLL_SLEEP) {
        poller_step(step);
        return;
    }
    for (int i = 0; i < w->polled_count; i++)
        if (fab_arm(w->cq[w->polled[i]]) != 0) return;
    wait_for_events(w, until);
}

/* ---- the thread ---- */

static void stop(job *j) {
    worker *w = (worker *)(void *)((char *)j - offsetof(worker, stop_job));
    w->stopping = true;
}

void loop_unlisten(dataplane *d, uint32_t number) {
    for (uint32_t i = 0; i < d->c.listens; i++) {
        if (d->listen[i].worker != number) continue;
        fab_unlisten(d->listener[i]);
        d->listener[i] = NULL;
    }
}

/* Everything that clients had under way ends here. The copier's jobs come back first: they write to extents and read
 * clients' memory. */
static void end_clients(worker *w) {
    while (!list_empty(&w->clients)) client_doom(LIST_OF(w->clients.next, client, of_worker), FKV_END_NONE);
    clients_reap(w);
    while (fetch_pool_jobs(w->fetches) + fetch_pool_jobs(w->repl.pulls)) {
        if (w->d->stepped) helper_drain(&w->d->copier);
        mailbox_sleep(&w->box);
        w->now_ns = fkv_now_ns();
        mailbox_run(&w->box);
        clients_reap(w);
    }
    for (fkv_list *l = w->shards.next; l != &w->shards; l = l->next) repl_undecided(LIST_OF(l, shard, of_worker));
    run_all(w);
    repl_sync(w); /* mutation: early/lost-at-the-end */
}

static void end(worker *w) {
    loop_unlisten(w->d, w->number);
    repl_leave(w);
    end_clients(w);
}

static void *worker_main(void *arg) {
    worker *w = arg;
    char name[16];
    snprintf(name, sizeof name, "farkv-data-%u", w->number & 0xff);
    pthread_setname_np(pthread_self(), name);
    w->stats.thread_id = (uint32_t)syscall(SYS_gettid);
    poller_init(&w->poller, w->d->c.polling, fkv_now_ns());
    w->poller.chain = true;
    w->wall_ms = fkv_wall_ms();
    while (!w->stopping) {
        if (worker_turn(w))
            poller_found(&w->poller, w->now_ns);
        else
            sleep_if_idle(w);
    }
    end(w);
    return NULL;
}

/* ---- made and unmade, by the thread that starts and stops ---- */

static int watch(worker *w, int fd, void *what) {
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = what };
    return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : -errno;
}

static void init_lists(worker *w) {
    fkv_list *const lists[] = { &w->shards,
                                &w->clients,
                                &w->doomed,
                                &w->sending,
                                &w->blocked,
                                &w->answering,
                                &w->runnable,
                                &w->woken,
                                &w->ready,
                                &w->starved,
                                &w->timed,
                                &w->transfers,
                                &w->repl.owner_links,
                                &w->repl.backup_links,
                                &w->repl.unsent };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) list_init(lists[i]);
}

int worker_create(dataplane *d, uint32_t number, worker **out) {
    worker *w = *out = calloc(1, sizeof *w);
    if (!w) return -ENOMEM;
    w->d = d;
    w->number = w->stats.worker = number;
    w->epoll = w->box.fd = -1;
    w->stop_job.run = stop;
    w->limits.run = shard_limits;
    /* of each client twice its quota, a LAYOUT of each shard, a LEASE and a RENEW */
    uint64_t of_client = 2 * (uint64_t)d->c.client_quota + d->c.shards + 3;
    w->op_max = (uint32_t)min_u64(d->c.max_clients * of_client + OPS_A_SLAB, 1u << 31);
    init_lists(w);
    challenges_init(&w->challenges);
    w->expiry_ms = UINT64_MAX;
    w->by_number = calloc(d->c.shards, sizeof *w->by_number);
    w->slot_taken = calloc(d->c.shards, sizeof *w->slot_taken);
    w->scratch = malloc(FKV_SCAN_STEP_MAX);
    w->access = access_make(w, clients_judge,
                            &(dataplane_access){ .secrets = 1, .secret = { { 0, d->c.ticket_secret } } });
    if (!w->by_number || !w->slot_taken || !w->scratch || !w->access) return -ENOMEM;
    w->fetches = fetch_pool_make(&d->copier, &w->box);
    if (!w->fetches) return -ENOMEM;
    int e = dedup_init(&w->dedup, d->c.dedup_bytes);
    if (e == 0) e = mailbox_open(&w->box);
    if (e) return e;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    return w->epoll < 0 ? -errno : watch(w, w->box.fd, &w->box);
}

int worker_add_place(worker *w, uint32_t place) {
    if (w->cq[place]) return 0;
    int e = fab_cq_create(w->d->domain[place], &w->cq[place]);
    if (e) return e;
    w->batch_of[w->polled_count] = fab_can(fab_place_provider(place), FAB_CAN_SEND_FREELY) ? POLL_BATCH_FREE
                                                                                           : POLL_BATCH;
    w->polled[w->polled_count++] = place;
    e = fetch_pool_register(w->fetches, w->d->domain[place], place);
    return e ? e : watch(w, fab_fd(w->cq[place]), w->cq[place]);
}

int worker_start(worker *w) {
    int e = thread_start(&w->thread, worker_main, w);
    w->has_thread = e == 0;
    return e;
}

void worker_join(worker *w) {
    if (!w->has_thread) {
        w->stopping = true;
        if (w->d->stepped) end(w);
        return;
    }
    worker_post(w, &w->stop_job);
    pthread_join(w->thread, NULL);
    w->has_thread = false;
}

void worker_free(worker *w) {
    if (!w) return;
    for (int i = 0; i < w->polled_count; i++) fab_cq_destroy(w->cq[w->polled[i]]);
    if (w->epoll >= 0) close(w->epoll);
    mailbox_close(&w->box);
    fetch_pool_free(w->fetches);
    fetch_pool_free(w->repl.pulls);
    wait_free_queues(w);
    ops_free_slabs(w);
    dedup_free(&w->dedup);
    repl_free_worker(w);
    free(w->access);
    free(w->by_number);
    free(w->slot_taken);
    free(w->scratch);
    free(w->made);
    free(w);
}
