/* copy.c: see copy.h. The copy's thread asks, waits, and turns its session meanwhile; callbacks of the session only
 * note what came. What becomes of a page is in copy_page.c. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/helper.h"
#include "copy_internal.h"

enum {
    PAGE = 1024,         /* entries asked for in one page; how many come is bounded by bytes */
    LITTLE = 64,         /* changes in a page that are little */
    PATIENCE = 64,       /* pages of changes after the last key, before it is caught up however much changes */
    CHANGES_A_PAGE = 16, /* pages of changes after each of keys, where clients change more than one holds */
    REST_MS = 2,         /* between two questions for changes when there are none */
    GIVE_WAY_MS = 2      /* the most that it rests after a page */
};
static const uint64_t ALL_LISTED = 1ull << 32; /* behind the last cursor */

/* ---- the loop ---- */

void copy_turn(shard_copy *c, uint64_t most_ns) {
    session_flush(c->s);
    int n = session_poll(c->s);
    session_tick(c->s);
    if (n) return;
    fab_cq *cq[SESSION_PLACES];
    struct pollfd f[SESSION_PLACES + 1];
    int queues = session_queues(c->s, cq, SESSION_PLACES);
    for (int i = 0; i < queues; i++) {
        if (fab_arm(cq[i]) != 0) return;
        f[i] = (struct pollfd){ .fd = fab_fd(cq[i]), .events = POLLIN };
    }
    f[queues] = (struct pollfd){ .fd = c->wake.fd, .events = POLLIN };
    uint64_t due = session_next_tick(c->s), now = session_now(c->s), ns = due <= now ? 0 : due - now;
    if (ns > most_ns) ns = most_ns;
    ppoll(f, (nfds_t)queues + 1, &(struct timespec){ (time_t)(ns / COPY_SECOND), (long)(ns % COPY_SECOND) }, NULL);
    if (f[queues].revents) mailbox_sleep(&c->wake);
}

static void rest(shard_copy *c, uint64_t ns) {
    uint64_t until = session_now(c->s) + ns;
    for (uint64_t now; (now = session_now(c->s)) < until && !copy_stopping(c);) copy_turn(c, until - now);
}

/* ---- questions ---- */

static void answered(void *user, session_answer *a) {
    shard_copy *c = user;
    c->answer = *a;
    c->body = a->status == FKV_OK && a->body_bytes ? session_take_body(a) : NULL;
    if (a->status == FKV_OK && a->body_bytes && !c->body) c->answer.status = FKV_NO_MEMORY;
    c->answered = true;
}

/* On OK the answer is in c->answer and c->body, which the caller frees. Small values come along, but with pages of what
 * the table may have already. */
static fkv_status ask(shard_copy *c, uint8_t flags, uint64_t expected) {
    if (!c->config.base || flags) flags |= FKV_REQUEST_SCAN_VALUES;
    session_ask a = { .op = FKV_OP_SCAN,
                      .flags = (uint8_t)(FKV_REQUEST_SCAN_COPY | flags),
                      .shard = c->config.shard,
                      .value_bytes = PAGE,
                      .expected = expected,
                      .ttl_ms = flags & FKV_REQUEST_SCAN_FROM_HERE ? c->config.copy : 0,
                      .deadline_ns = session_now(c->s) + COPY_ASK_MS * COPY_MS,
                      .done = answered,
                      .user = c };
    uint64_t id;
    c->answered = false;
    fkv_status s = session_request(c->s, &a, &id);
    if (s != FKV_OK) return s;
    while (!c->answered && !copy_stopping(c)) copy_turn(c, COPY_SECOND);
    if (c->answered) return c->answer.status;
    session_cancel(c->s, id, FKV_ABORTED);
    free(c->body);
    c->body = NULL;
    return FKV_ABORTED;
}

/* ---- the copy ---- */

/* One page of changes. *state: FKV_CHANGED_* of the owner. */
static fkv_status follow(shard_copy *c, uint32_t *entries, uint32_t *state) {
    /* Not before all keys were listed: it would join anew after each page. */
    bool joins = !c->caught_up && __atomic_load_n(&c->joins, __ATOMIC_RELAXED);
    fkv_status s = ask(c, FKV_REQUEST_SCAN_CHANGED | (joins ? FKV_REQUEST_SCAN_FROM_HERE : 0), c->place);
    if (s != FKV_OK) return s;
    uint64_t place = c->answer.reply.version;
    *state = c->answer.reply.user_flags;
    s = copy_take_page(c, 0, 0, entries);
    c->place = place;
    return s;
}

/* Clients change the shard, and wait for threads that list and import: half of the time is theirs. */
static void give_way(shard_copy *c, uint64_t took_ns) {
    rest(c, took_ns < GIVE_WAY_MS * COPY_MS ? took_ns : GIVE_WAY_MS * COPY_MS);
}

static fkv_status copy_all(shard_copy *c) {
    uint32_t entries, state;
    uint64_t cursor = 0;
    fkv_status s = ask(c, FKV_REQUEST_SCAN_CHANGED, 0);
    c->place = c->answer.reply.version;
    if (s == FKV_OK) s = copy_take_page(c, 0, 0, &entries);
    do {
        uint64_t began = session_now(c->s);
        if (s == FKV_OK) s = ask(c, 0, cursor);
        if (s != FKV_OK) return s;
        uint64_t from = cursor;
        cursor = c->answer.reply.version;
        if (cursor && (cursor <= from || cursor >= ALL_LISTED)) return FKV_BAD_REQUEST;
        s = copy_take_page(c, from, cursor ? cursor : ALL_LISTED, &entries);
        /* The log only has to hold what changes during a page: all of that is taken, or as much as goes into many. */
        uint32_t pages = 0;
        for (state = 0; s == FKV_OK && !(state & FKV_CHANGED_ALL) && pages < CHANGES_A_PAGE; pages++)
            s = follow(c, &entries, &state);
        if (s == FKV_OK && entries && pages == 1) give_way(c, session_now(c->s) - began);
    } while (s == FKV_OK && cursor);
    return s;
}

static fkv_status run(shard_copy *c) {
    fkv_status s = copy_all(c);
    uint32_t entries, state = 0, pages = 0;
    while (s == FKV_OK) {
        s = follow(c, &entries, &state);
        if (s != FKV_OK) break;
        if (c->caught_up && ((state & FKV_CHANGED_ALL && entries <= LITTLE) || ++pages == PATIENCE)) {
            c->caught_up(c->caught_up_ctx, FKV_OK, NULL);
            c->caught_up = NULL;
        }
        if (c->join.said) return copy_stopping(c) ? FKV_ABORTED : FKV_OK;
        if (copy_stopping(c)) return FKV_ABORTED;
        if (entries == 0) rest(c, REST_MS * COPY_MS);
    }
    return s;
}

static void no_event(void *ctx, const session_event *e) { (void)ctx, (void)e; }

static fkv_status connect_to_owner(shard_copy *c) {
    lookup_config k = { .seed = c->config.seed,
                        .first_shard = c->config.first_shard,
                        .max_gets = COPY_GETS,
                        .ctx = c,
                        .event = no_event,
                        .done = copy_got };
    k.session = (session_config){ .shards = c->config.shards, .max_requests = 16, .pass = c->config.pass };
    fkv_status s = lookup_create(&k, &c->l);
    if (s != FKV_OK) return s;
    c->s = lookup_session(c->l);
    session_owner_config o = {
        .owner = 1, .incarnation = c->config.server_incarnation, .addresses = c->addresses, .count = c->config.count
    };
    lookup_route r = {
        .shard = c->config.shard, .owner = 1, .epoch = c->config.epoch, .incarnation = c->config.incarnation
    };
    s = session_set_owners(c->s, &o, 1);
    return s == FKV_OK ? lookup_set_route(c->l, &r) : s;
}

static void end(shard_copy *c, fkv_status s) {
    if (s != FKV_OK && c->caught_up) c->caught_up(c->caught_up_ctx, s, NULL);
    pthread_mutex_lock(&c->lock);
    c->ended = true;
    c->status = s;
    dataplane_done done = c->done;
    shard_copy_waiter *waiters = c->waiters;
    c->done = NULL;
    c->waiters = NULL;
    pthread_mutex_unlock(&c->lock);
    if (done && s == FKV_OK)
        join_point_follow(&c->join, &c->config, &c->stats, done, c->done_ctx);
    else if (done)
        done(c->done_ctx, s, NULL);
    for (shard_copy_waiter *w = waiters, *next; w; w = next) {
        next = w->next; /* it is gone with the call */
        w->ended(w->ctx, FKV_OK, NULL);
    }
}

static void *copy_main(void *arg) {
    shard_copy *c = arg;
    char name[16];
    snprintf(name, sizeof name, "farkv-copy-%u", c->config.shard & 0xfff);
    pthread_setname_np(pthread_self(), name);
    fkv_status s = connect_to_owner(c);
    if (s == FKV_OK) s = run(c);
    if (c->l) {
        lookup_stats l;
        lookup_get_stats(c->l, &l);
        c->stats.reads = l.reads + l.followed;
        c->stats.two_sided = l.two_sided;
        lookup_close(c->l); /* ends the GETs under way, which are copy_got */
    }
    end(c, s);
    return NULL;
}

/* ---- from other threads ---- */

static void free_copy(shard_copy *c) {
    mailbox_close(&c->wake);
    pthread_mutex_destroy(&c->lock);
    free(c->addresses);
    free(c->text);
    free(c->batch);
    free(c->body);
    free(c->same);
    free(c->version);
    join_point_free(&c->join);
    free(c);
}

fkv_status shard_copy_start(const shard_copy_config *config, dataplane_done caught_up, void *ctx, shard_copy **out) {
    shard_copy *c = *out = calloc(1, sizeof *c);
    if (!c) return FKV_NO_MEMORY;
    c->config = *config;
    c->caught_up = caught_up;
    c->caught_up_ctx = ctx;
    c->wake.fd = -1;
    pthread_mutex_init(&c->lock, NULL);
    c->addresses = calloc(config->count + 1, sizeof *c->addresses);
    c->text = calloc(config->count + 1, sizeof *c->text);
    for (int i = 0; i < COPY_GETS; i++) {
        c->places[i].next = c->free;
        c->free = &c->places[i];
    }
    bool good = c->addresses && c->text && mailbox_open(&c->wake) == 0;
    for (uint32_t i = 0; good && i < config->count; i++) {
        good = strlen(config->addresses[i].text) < sizeof c->text[i];
        if (!good) break;
        strcpy(c->text[i], config->addresses[i].text);
        c->addresses[i] = config->addresses[i];
        c->addresses[i].text = c->text[i];
    }
    c->config.addresses = c->addresses;
    if (good && thread_start(&c->thread, copy_main, c) == 0) return FKV_OK;
    free_copy(c);
    *out = NULL;
    return FKV_NO_MEMORY;
}

void shard_copy_follow(shard_copy *c, dataplane_done done, void *ctx) {
    pthread_mutex_lock(&c->lock);
    bool ended = c->ended;
    if (!ended) {
        c->done = done;
        c->done_ctx = ctx;
        __atomic_store_n(&c->joins, true, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&c->lock);
    if (ended) done(ctx, c->status, NULL); /* it has failed: it does not end well before it is told to follow */
}

static void tell_to_stop(shard_copy *c) {
    __atomic_store_n(&c->stopping, true, __ATOMIC_RELAXED);
    mailbox_wake(&c->wake);
}

void shard_copy_cancel(shard_copy *c, shard_copy_waiter *w) {
    tell_to_stop(c);
    pthread_mutex_lock(&c->lock);
    bool ended = c->ended;
    if (!ended) {
        w->next = c->waiters;
        c->waiters = w;
    }
    pthread_mutex_unlock(&c->lock);
    if (ended) w->ended(w->ctx, FKV_OK, NULL);
}

void shard_copy_stop(shard_copy *c) {
    tell_to_stop(c);
    pthread_join(c->thread, NULL);
    free_copy(c);
}
