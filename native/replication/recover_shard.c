/* recover_shard.c: the shard of a copy that is made anew: opened, given memory while it fills, closed. See recover.h.
 *
 * Other threads make its memory; this one waits for them, since nothing else is to be done yet. */
#include <stdlib.h>
#include "../base/clock.h"
#include "../dataplane/command.h"
#include "../dataplane/worker.h"
#include "../storage/memory.h"
#include "durable.h"
#include "recover.h"
#include "replication.h"

enum { TICK_WORK = 4096, TRIES = 1 << 16 };

typedef struct errand {
    job job;
    worker *w;
    bool over;
    fkv_status status;
} errand;

static void run_over(job *j) { LIST_OF(j, errand, job)->over = true; }
static void done(void *ctx, fkv_status s, void *result) {
    errand *e = ctx;
    free(result);
    e->status = s;
    worker_post(e->w, &e->job);
}

/* Something that was asked for comes. */
static void wait_for_job(worker *w) {
    if (w->d->stepped) {
        helper_drain(&w->d->memory);
        helper_drain(&w->d->huge);
    } else {
        mailbox_sleep(&w->box);
    }
    mailbox_run(&w->box);
}

static command *make_command(recovered_copy *c, void (*run)(job *), errand *e) {
    command *k = calloc(1, sizeof *k);
    *e = (errand){ .job.run = run_over, .w = c->w };
    if (k) *k = (command){ .job.run = run, .d = c->w->d, .w = c->w, .number = c->number, .done = done, .ctx = e };
    return k;
}

static bool open_shard(recovered_copy *c, uint32_t epoch, uint32_t buckets) {
    dataplane *d = c->w->d;
    errand e;
    command *k = make_command(c, memory_open, &e);
    if (!k) return false;
    k->opens = repl_open;
    k->open = (dataplane_shard){ .shard = c->number,
                                 .worker = c->w->number,
                                 .epoch = epoch,
                                 .incarnation = c->id,
                                 .memory_bytes = d->c.log.shard_memory_bytes,
                                 .buckets = buckets,
                                 .durable = true };
    pthread_mutex_lock(&d->lock);
    bool is_free = d->place[c->number].state == PLACE_NONE;
    if (is_free) {
        d->place[c->number].state = PLACE_OPENING;
        d->place[c->number].worker = (uint8_t)c->w->number;
        helper_post(&d->memory, &k->job);
    }
    pthread_mutex_unlock(&d->lock);
    if (!is_free) {
        free(k);
        recover_fails(c, "another copy of the shard is here");
        return false;
    }
    while (!e.over) wait_for_job(c->w);
    if (e.status != FKV_OK) return false;
    c->s = c->w->by_number[c->number];
    table_set_read(c->s->table, false);
    /* What is on the disk comes back however unevenly it is spread. */
    if (d->c.memory_bytes > d->c.log.shard_memory_bytes) table_set_memory(c->s->table, d->c.memory_bytes);
    return true;
}

void recover_close(recovered_copy *c) {
    shard *s = c->s;
    worker *w = c->w;
    errand e;
    if (!s) return;
    c->s = NULL;
    while (s->wanted) wait_for_job(w);
    command *k = make_command(c, NULL, &e);
    list_remove(&s->of_worker);
    w->by_number[s->number] = NULL;
    w->slot_taken[s->slot] = false;
    dedup_drop_slot(&w->dedup, s->slot);
    if (!k) return; /* its memory is lost: there is none for a command */
    memory_close(k, s);
    while (!e.over) wait_for_job(w);
}

bool recover_make(recovered_copy *c, uint32_t epoch, uint64_t lsn, uint32_t buckets) {
    const dataplane_config *f = &c->w->d->c;
    const replica_backup place = replica_copied(epoch, lsn);
    c->w->now_ns = fkv_now_ns();
    c->w->wall_ms = fkv_wall_ms();
    if (!open_shard(c, epoch, buckets) || !backup_make(c->s, c->id, f->replica_lease_ms, &place)) {
        recover_fails(c, "there is no memory for it");
        return false;
    }
    c->s->repl.appended.begins = false; /* its epoch begins nowhere: it goes on */
    durable_end(c->s);
    c->s->repl.copy->place.log = (replica_log){ 0 };
    return true;
}

/* ---- memory of its table ---- */

bool recover_waits(recovered_copy *c, uint32_t *tries) {
    worker *w = c->w;
    if (c->s->wanted) wait_for_job(w);
    w->now_ns = fkv_now_ns();
    table_tick(c->s->table, w->now_ns, w->wall_ms, TICK_WORK);
    return c->s->wanted || ++*tries < TRIES;
}
void recover_rest(recovered_copy *c) {
    worker *w = c->w;
    if (mailbox_ready(&w->box) || w->d->stepped) mailbox_run(&w->box);
    while (table_tick(c->s->table, w->now_ns, w->wall_ms, TICK_WORK)) {}
}
