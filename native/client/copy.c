/* copy.c: see copy.h. The copy's thread asks, waits, and turns its session meanwhile; callbacks of the session only
 * note what came. */
#include "copy.h"
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/mailbox.h"
#include "../base/helper.h"
#include "lookup/lookup.h"

enum {
    GETS = 256,            /* values under way at once */
    PAGE = 1024,           /* entries asked for in one page; how many come is bounded by bytes */
    BATCH_BYTES = 4 << 20, /* of entries that are given to the table at once, beyond one */
    LITTLE = 64,           /* changes in a page that are little */
    /* pages of changes after the last key, before it is caught up however much changes: sealing ends it */
    PATIENCE = 64,
    REST_MS = 2 /* between two questions for changes when there are none */
};
static const uint64_t MS = 1000000;

/* A value under way: of an entry of the page. */
typedef struct wanted {
    shard_copy *c;
    fkv_scan_entry entry;
    const uint8_t *key;
    struct wanted *next; /* free */
} wanted;

struct shard_copy {
    shard_copy_config config;
    session_address *addresses;
    char (*text)[256];
    pthread_t thread;
    mailbox wake;  /* its descriptor only */
    bool stopping; /* atomic */
    dataplane_done caught_up;
    void *caught_up_ctx;

    pthread_mutex_t lock; /* of the next six; and held while an import is told */
    dataplane_done done;
    void *done_ctx;
    bool joins; /* atomic: `done` is of shard_copy_follow */
    shard_copy_waiter *waiters;
    bool ended;
    fkv_status status; /* how, once ended */

    /* The thread's own. */
    lookup *l;
    session *s;
    wanted places[GETS], *free;
    uint32_t under_way;
    fkv_status failed; /* the first thing that went wrong in a page */
    uint8_t *batch;    /* fkv_scan_entry, key, value, ... */
    size_t batch_bytes, batch_room, expected_bytes;
    uint64_t place; /* in the old owner's log */
    bool joined;    /* `at` is where */
    dataplane_join at;
    dataplane_sequence *sequence;
    bool answered;
    session_answer answer;
    uint8_t *body;
    bool imported; /* atomic */
    fkv_status import_status;
    shard_copy_stats stats;
};

/* ---- the loop ---- */

static bool stopping(const shard_copy *c) { return __atomic_load_n(&c->stopping, __ATOMIC_RELAXED); }

/* One turn; sleeps when nothing happened, at most so long. */
static void turn(shard_copy *c, uint64_t most_ms) {
    session_flush(c->s);
    int n = session_poll(c->s);
    session_tick(c->s);
    if (n) return;
    fab_cq *cq[FAB_PROVIDER_COUNT];
    struct pollfd f[FAB_PROVIDER_COUNT + 1];
    int queues = session_queues(c->s, cq, FAB_PROVIDER_COUNT);
    for (int i = 0; i < queues; i++) {
        if (fab_arm(cq[i]) != 0) return;
        f[i] = (struct pollfd){ .fd = fab_fd(cq[i]), .events = POLLIN };
    }
    f[queues] = (struct pollfd){ .fd = c->wake.fd, .events = POLLIN };
    uint64_t due = session_next_tick(c->s), now = session_now(c->s), ms = due <= now ? 0 : (due - now) / MS + 1;
    poll(f, (nfds_t)queues + 1, (int)(ms < most_ms ? ms : most_ms));
    if (f[queues].revents) mailbox_sleep(&c->wake);
}

/* ---- questions ---- */

static void answered(void *user, session_answer *a) {
    shard_copy *c = user;
    c->answer = *a;
    c->body = a->status == FKV_OK && a->body_bytes ? session_take_body(a) : NULL;
    if (a->status == FKV_OK && a->body_bytes && !c->body) c->answer.status = FKV_NO_MEMORY;
    c->answered = true;
}

/* On OK the answer is in c->answer and c->body, which the caller frees. */
static fkv_status ask(shard_copy *c, uint8_t flags, uint64_t expected) {
    session_ask a = { .op = FKV_OP_SCAN,
                      .flags = (uint8_t)(FKV_REQUEST_SCAN_COPY | flags),
                      .shard = c->config.shard,
                      .value_bytes = PAGE,
                      .expected = expected,
                      .ttl_ms = flags & FKV_REQUEST_SCAN_FROM_HERE ? c->config.copy : 0,
                      .deadline_ns = session_now(c->s) + COPY_ASK_MS * MS,
                      .done = answered,
                      .user = c };
    uint64_t id;
    c->answered = false;
    fkv_status s = session_request(c->s, &a, &id);
    if (s != FKV_OK) return s;
    while (!c->answered && !stopping(c)) turn(c, 1000);
    if (c->answered) return c->answer.status;
    session_cancel(c->s, id, FKV_ABORTED);
    free(c->body);
    c->body = NULL;
    return FKV_ABORTED;
}

/* ---- values ---- */

static bool append(shard_copy *c, const fkv_scan_entry *e, const uint8_t *key, const uint8_t *value) {
    size_t bytes = sizeof *e + e->key_bytes + (value ? e->value_bytes : 0);
    if (c->batch_bytes + bytes > c->batch_room) {
        size_t room = 2 * (c->batch_bytes + bytes);
        uint8_t *larger = realloc(c->batch, room);
        if (!larger) return false;
        c->batch = larger;
        c->batch_room = room;
    }
    uint8_t *to = c->batch + c->batch_bytes;
    memcpy(to, e, sizeof *e);
    memcpy(to + sizeof *e, key, e->key_bytes);
    if (value && e->value_bytes) memcpy(to + sizeof *e + e->key_bytes, value, e->value_bytes);
    c->batch_bytes += bytes;
    return true;
}

static void got(void *ctx, lookup_get *g) {
    (void)ctx;
    wanted *w = lookup_user(g);
    shard_copy *c = w->c;
    const lookup_result *r = lookup_result_of(g);
    /* Under another version it was changed after it was listed, and is in the log behind that. One that is gone was
     * deleted, which is in the log too, or has ended, which is not: what was taken over of its key before goes, or it
     * would be back. */
    if (r->status == FKV_OK && r->version == w->entry.version) {
        w->entry.has_value = 1;
        w->entry.value_bytes = r->value_bytes;
        if (!append(c, &w->entry, w->key, lookup_value(g)) && c->failed == FKV_OK) c->failed = FKV_NO_MEMORY;
    } else if (r->status == FKV_NOT_FOUND) {
        w->entry.version = w->entry.expiry_ms = 0;
        if (!append(c, &w->entry, w->key, NULL) && c->failed == FKV_OK) c->failed = FKV_NO_MEMORY;
    } else if (r->status != FKV_OK && c->failed == FKV_OK) {
        c->failed = r->status;
    }
    lookup_release(g);
    w->next = c->free;
    c->free = w;
    c->under_way--;
}

static void settle(shard_copy *c, uint32_t most) {
    while (c->under_way > most && !stopping(c)) turn(c, 1000);
}

static void imported(void *ctx, fkv_status s, void *result) {
    (void)result;
    shard_copy *c = ctx;
    pthread_mutex_lock(&c->lock);
    c->import_status = s;
    __atomic_store_n(&c->imported, true, __ATOMIC_RELEASE);
    mailbox_wake(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

/* Waits for the values under way, and gives all that came to the table. Does not return before the table has done with
 * it. */
static fkv_status hand_over(shard_copy *c) {
    settle(c, 0);
    if (stopping(c)) return FKV_ABORTED;
    if (c->failed != FKV_OK || c->batch_bytes == 0) return c->failed;
    __atomic_store_n(&c->imported, false, __ATOMIC_RELAXED);
    dataplane_import(c->config.to, c->config.shard, c->batch, (uint32_t)c->batch_bytes, imported, c);
    while (!__atomic_load_n(&c->imported, __ATOMIC_ACQUIRE)) turn(c, 1000);
    /* It may be seen before the owner's thread has rung: not before that is over may this thread end, and the
     * descriptor with it. */
    pthread_mutex_lock(&c->lock);
    pthread_mutex_unlock(&c->lock);
    c->stats.bytes += c->batch_bytes;
    c->batch_bytes = c->expected_bytes = 0;
    return c->import_status;
}

static fkv_status want(shard_copy *c, const fkv_scan_entry *e, const uint8_t *key) {
    if (c->expected_bytes + e->value_bytes > BATCH_BYTES && c->expected_bytes) {
        fkv_status s = hand_over(c);
        if (s != FKV_OK) return s;
    }
    c->expected_bytes += sizeof *e + e->key_bytes + e->value_bytes;
    c->stats.entries++;
    if (e->version == 0) return append(c, e, key, NULL) ? FKV_OK : FKV_NO_MEMORY;
    settle(c, GETS - 1);
    if (stopping(c)) return FKV_ABORTED;
    wanted *w = c->free;
    lookup_key k = { .bytes = key, .count = e->key_bytes, .space = e->space };
    lookup_get *g;
    uint64_t now = session_now(c->s);
    *w = (wanted){ .c = c, .entry = *e, .key = key, .next = w->next };
    c->free = w->next;
    c->under_way++;
    fkv_status s = lookup_start(c->l, &k, now, now + COPY_ASK_MS * MS, w, &g);
    if (s == FKV_OK) return FKV_OK;
    w->next = c->free;
    c->free = w;
    c->under_way--;
    return s;
}

/* What is said behind the entries when the copy has joined. */
static fkv_status take_said(shard_copy *c, const fkv_scan_entry *e, const uint8_t *value) {
    if (e->kind == FKV_SCAN_JOIN_POINT) {
        fkv_join_point p;
        if (!value || e->value_bytes != sizeof p) return FKV_BAD_REQUEST;
        memcpy(&p, value, sizeof p);
        c->at = (dataplane_join){
            .id = c->config.copy, .lsn = p.lsn, .epoch = p.epoch, .doubt_ms = p.doubt_ms, .sequences = c->at.sequences
        };
        c->joined = true;
        return FKV_OK;
    }
    if (e->kind != FKV_SCAN_SEQUENCES || !value || e->value_bytes % sizeof(fkv_join_sequence)) return FKV_BAD_REQUEST;
    uint32_t n = e->value_bytes / (uint32_t)sizeof(fkv_join_sequence);
    dataplane_sequence *more = realloc(c->sequence, (c->at.sequences + n) * sizeof *more);
    if (!more) return FKV_NO_MEMORY;
    c->sequence = more;
    for (uint32_t i = 0; i < n; i++) {
        fkv_join_sequence s;
        memcpy(&s, value + i * sizeof s, sizeof s);
        more[c->at.sequences++] = (dataplane_sequence){ .client = s.client, .sequence = s.sequence };
    }
    return FKV_OK;
}

/* Takes over what c->answer lists. */
static fkv_status take_page(shard_copy *c, uint32_t *entries) {
    fkv_scan_entry e;
    const uint8_t *key, *value;
    fkv_status s = FKV_OK;
    bool said = c->answer.reply.user_flags & FKV_CHANGED_JOINED;
    *entries = 0;
    for (uint32_t at = 0; s == FKV_OK && wire_next_scan_entry(c->body, c->answer.body_bytes, &at, &e, &key, &value);) {
        if (said && e.kind != FKV_SCAN_ENTRY) {
            s = take_said(c, &e, value);
            continue;
        }
        s = want(c, &e, key);
        ++*entries;
    }
    if (s == FKV_OK) s = hand_over(c);
    if (s != FKV_OK) settle(c, 0); /* those under way name keys in the page */
    if (c->under_way == 0) {
        free(c->body);
        c->body = NULL;
    }
    return s;
}

/* ---- the copy ---- */

/* One page of changes. *state: FKV_CHANGED_* of the old owner, SEALED only where it is for this copy. */
static fkv_status follow(shard_copy *c, uint32_t *entries, uint32_t *state) {
    /* Not before all keys were listed: it would join anew after each page. */
    bool joins = !c->caught_up && __atomic_load_n(&c->joins, __ATOMIC_RELAXED);
    fkv_status s = ask(c, FKV_REQUEST_SCAN_CHANGED | (joins ? FKV_REQUEST_SCAN_FROM_HERE : 0), c->place);
    if (s != FKV_OK) return s;
    uint64_t place = c->answer.reply.version;
    *state = c->answer.reply.user_flags;
    if (c->answer.reply.expiry_ms != c->config.copy) *state &= ~(uint32_t)FKV_CHANGED_SEALED;
    s = take_page(c, entries);
    c->place = place;
    return s;
}

static fkv_status copy_all(shard_copy *c) {
    uint32_t entries, state;
    uint64_t cursor = 0;
    fkv_status s = ask(c, FKV_REQUEST_SCAN_CHANGED, 0);
    c->place = c->answer.reply.version;
    if (s == FKV_OK) s = take_page(c, &entries);
    do {
        if (s == FKV_OK) s = ask(c, 0, cursor);
        if (s != FKV_OK) return s;
        cursor = c->answer.reply.version;
        s = take_page(c, &entries);
        /* The log only has to hold what changes during a page. */
        if (s == FKV_OK) s = follow(c, &entries, &state);
    } while (s == FKV_OK && cursor);
    return s;
}

static fkv_status run(shard_copy *c) {
    fkv_status s = copy_all(c);
    uint32_t entries, state = 0, pages = 0;
    bool told = false;
    while (s == FKV_OK) {
        s = follow(c, &entries, &state);
        if (s != FKV_OK) break;
        if (!told && ((state & FKV_CHANGED_ALL && entries <= LITTLE) || ++pages == PATIENCE)) {
            told = true;
            c->caught_up(c->caught_up_ctx, FKV_OK, NULL);
            c->caught_up = NULL;
        }
        if (c->joined) return stopping(c) ? FKV_ABORTED : FKV_OK;
        if (told && state == (FKV_CHANGED_ALL | FKV_CHANGED_SEALED)) return FKV_OK;
        if (stopping(c)) return FKV_ABORTED;
        if (entries == 0) {
            uint64_t until = session_now(c->s) + REST_MS * MS;
            while (session_now(c->s) < until && !stopping(c)) turn(c, REST_MS);
        }
    }
    return s;
}

static void no_event(void *ctx, const session_event *e) { (void)ctx, (void)e; }

static fkv_status connect_to_owner(shard_copy *c) {
    lookup_config k = { .seed = c->config.seed,
                        .first_shard = c->config.first_shard,
                        .max_gets = GETS,
                        .ctx = c,
                        .event = no_event,
                        .done = got };
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

static shard_copy_stats *stats_of(const shard_copy *c) {
    shard_copy_stats *out = malloc(sizeof *out);
    if (out) *out = c->stats;
    return out;
}

/* Everything that was copied is in the table, and this thread writes there no more. */
static void follow_owner(const shard_copy *c, dataplane_done done, void *ctx) {
    dataplane_owner_address *a = calloc(c->config.count + 1, sizeof *a);
    if (!a) {
        done(ctx, FKV_NO_MEMORY, NULL);
        return;
    }
    for (uint32_t i = 0; i < c->config.count; i++)
        a[i] = (dataplane_owner_address){ .provider = c->addresses[i].provider, .text = c->addresses[i].text };
    dataplane_join at = c->at;
    at.sequence = c->sequence;
    dataplane_follow_copy(c->config.to, c->config.shard, &at, a, c->config.count, done, ctx);
    free(a);
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
    if (done && c->joined && s == FKV_OK)
        follow_owner(c, done, c->done_ctx);
    else if (done)
        done(c->done_ctx, s, s == FKV_OK ? stats_of(c) : NULL);
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
        lookup_close(c->l); /* ends the GETs under way, which are `got` */
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
    free(c->sequence);
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
    for (int i = 0; i < GETS; i++) {
        c->places[i].next = c->free;
        c->free = &c->places[i];
    }
    bool good = c->addresses && c->text && mailbox_open(&c->wake) == 0;
    for (uint32_t i = 0; good && i < config->count; i++) {
        good = strlen(config->addresses[i].text) < sizeof c->text[i];
        if (!good) break;
        strcpy(c->text[i], config->addresses[i].text);
        c->addresses[i] = (session_address){ .provider = config->addresses[i].provider, .text = c->text[i] };
    }
    if (good && thread_start(&c->thread, copy_main, c) == 0) return FKV_OK;
    free_copy(c);
    *out = NULL;
    return FKV_NO_MEMORY;
}

static void finish(shard_copy *c, bool joins, dataplane_done done, void *ctx) {
    pthread_mutex_lock(&c->lock);
    bool ended = c->ended;
    if (!ended) {
        c->done = done;
        c->done_ctx = ctx;
        __atomic_store_n(&c->joins, joins, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&c->lock);
    if (ended) done(ctx, c->status, c->status == FKV_OK ? stats_of(c) : NULL);
}

void shard_copy_finish(shard_copy *c, dataplane_done done, void *ctx) { finish(c, false, done, ctx); }
void shard_copy_follow(shard_copy *c, dataplane_done done, void *ctx) { finish(c, true, done, ctx); }

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
