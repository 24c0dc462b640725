/* start.c: the data plane as a whole: made, started, stopped; calls from other threads become commands that are posted
 * to the thread that owns what they are about. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "../log/snapshot_file.h"
#include "../replication/replication.h"
#include "../wire/peer.h"
#include "follow.h"
#include "life.h"
#include "loop.h"

enum { DESCRIPTORS = 16384, SPARE_MOST = 4096, ASKING = 1024 };
enum { SNAPSHOT_BYTES = 256 << 20, SNAPSHOT_BYTES_PER_S = 100000000 };
/* Of the memory for tables, beside which backlogs are; and what a small server has for them. */
enum { BACKLOGS_SHARE = 16, BACKLOGS_MIN = 8 << 20 };

/* ---- create ---- */

static bool tenants_ok(const dataplane_config *c) {
    uint64_t shards = c->tenants ? 0 : c->shards;
    if (c->tenants > DATAPLANE_TENANTS_MAX || (c->tenants && !c->tenant)) return false;
    for (uint32_t i = 0; i < c->tenants; i++) {
        if (c->tenant[i].shards == 0) return false;
        shards += c->tenant[i].shards;
    }
    return shards == c->shards;
}

static bool config_ok(const dataplane_config *c) {
    if (c->shards < 1 || c->shards > DATAPLANE_SHARDS_MAX || c->workers < 1 || c->workers > DATAPLANE_WORKERS_MAX)
        return false;
    if (c->lease_ms < 1 || c->lease_ms > DATAPLANE_LEASE_MS_MAX || c->drift_ppm > DATAPLANE_DRIFT_PPM_MAX) return false;
    if (c->replica_lease_ms && c->replica_lease_ms < DATAPLANE_REPLICA_LEASE_MS_MIN) return false;
    if (c->replica_lease_ms > FKV_PEER_LEASE_MS_MAX) return false;
    if (c->max_clients < 1 || c->max_clients > DATAPLANE_CLIENTS_MAX || c->polling >= POLLING_COUNT) return false;
    if (c->client_quota < 1 || c->client_quota > DATAPLANE_QUOTA_MAX) return false;
    if (c->listens > DATAPLANE_LISTENS_MAX || (c->listens && !c->listen)) return false;
    if (c->transfer_bytes && c->transfer_bytes < FKV_VALUE_MAX) return false;
    if (!tenants_ok(c) || !repl_log_ok(&c->log)) return false;
    for (uint32_t i = 0; i < c->listens; i++) {
        const dataplane_listen *l = &c->listen[i];
        if (l->provider <= FAB_NONE || l->provider >= FAB_PROVIDER_COUNT || l->worker >= c->workers) return false;
        if (l->device >= FAB_DEVICES) return false;
        if (!l->address || strlen(l->address) >= sizeof *((dataplane *)0)->bound) return false;
    }
    return true;
}

static void free_config(dataplane *d) {
    for (uint32_t i = 0; d->listen && i < d->c.listens; i++) free((char *)(uintptr_t)d->listen[i].address);
    free(d->listen);
}

static void copy_tenants(dataplane *d, const dataplane_config *c) {
    static const dataplane_tenant all = { 0, 0 };
    uint32_t first = 0;
    d->c.tenants = c->tenants ? c->tenants : 1;
    d->c.tenant = NULL; /* the caller's; d->tenant is what counts */
    for (uint32_t i = 0; i < d->c.tenants; i++) {
        const dataplane_tenant *t = c->tenants ? &c->tenant[i] : &all;
        d->tenant[i] = (dp_tenant){ .shards = { first, c->tenants ? t->shards : c->shards },
                                    .max_clients = t->max_clients ? t->max_clients : c->max_clients };
        first += d->tenant[i].shards.count;
    }
}

static bool copy_config(dataplane *d, const dataplane_config *c) {
    d->c = *c;
    d->backlogs.most = max_u64(BACKLOGS_MIN, c->memory_bytes / BACKLOGS_SHARE);
    copy_tenants(d, c);
    if (!d->c.regions_max) d->c.regions_max = 8192; /* REGIONS_MAX of core/metadata/check-state.ts */
    if (!d->c.quarantine_ns) d->c.quarantine_ns = TABLE_QUARANTINE_NS;
    if (!d->c.transfer_bytes) d->c.transfer_bytes = 256 << 20;
    if (!d->c.dedup_bytes) d->c.dedup_bytes = 64 << 20;
    if (!d->c.wait_ms) d->c.wait_ms = 1000;
    if (!d->c.scrub_ms) d->c.scrub_ms = 300000;
    if (!d->c.transfer_ms) d->c.transfer_ms = 30000;
    if (!d->c.stall_ms) d->c.stall_ms = 5000;
    if (!d->c.replica_lease_ms) d->c.replica_lease_ms = 250;
    if (!d->c.backup_slow_ms) d->c.backup_slow_ms = 1000;
    if (!d->c.log.file_bytes) d->c.log.file_bytes = LOG_FILE_BYTES;
    if (!d->c.log.buffer_bytes) d->c.log.buffer_bytes = WAL_BATCH_MAX;
    if (!d->c.log.chunk_bytes) d->c.log.chunk_bytes = SNAPSHOT_CHUNK_MAX;
    if (!d->c.log.snapshot_bytes) d->c.log.snapshot_bytes = SNAPSHOT_BYTES;
    if (!d->c.log.snapshot_bytes_per_s) d->c.log.snapshot_bytes_per_s = SNAPSHOT_BYTES_PER_S;
    d->listen = calloc(c->listens + 1, sizeof *d->listen);
    if (!d->listen) return false;
    for (uint32_t i = 0; i < c->listens; i++) {
        d->listen[i] = c->listen[i];
        d->listen[i].address = strdup(c->listen[i].address);
        if (!d->listen[i].address) return false;
    }
    d->c.listen = d->listen;
    return true;
}

fkv_status dataplane_create(const dataplane_config *c, dataplane **out) {
    *out = NULL;
    if (!config_ok(c)) return FKV_BAD_REQUEST;
    dataplane *d = calloc(1, sizeof *d);
    if (!d) return FKV_NO_MEMORY;
    d->listener = calloc(c->listens + 1, sizeof *d->listener);
    d->bound = calloc(c->listens + 1, sizeof *d->bound);
    d->place = calloc(c->shards, sizeof *d->place);
    d->keys = access_make(NULL, NULL, &(dataplane_access){ .secrets = 1, .secret = { { 0, c->ticket_secret } } });
    if (!copy_config(d, c) || !d->listener || !d->bound || !d->place || !d->keys) {
        free_config(d);
        free(d->keys);
        free(d->listener);
        free(d->bound);
        free(d->place);
        free(d);
        return FKV_NO_MEMORY;
    }
    d->grant_until_ns = UINT64_MAX;
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->keys_lock, NULL);
    pthread_cond_init(&d->stopped, NULL);
    *out = d;
    return FKV_OK;
}

/* ---- start ---- */

/* Segments share descriptors (base/files.h), every connection is one or two: a quarter of those there are is left to
 * segments. These leave some to connections in turn. */
static uint32_t spare_descriptors(void) {
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most) != 0 || most.rlim_cur / 4 > SPARE_MOST) return SPARE_MOST;
    return (uint32_t)(most.rlim_cur / 4);
}

static uint32_t place_of(const dataplane_listen *l) { return fab_place(l->provider, l->device); }

/* `at` is the listener that was being dealt with, for the error's text. */
static int open_domains(dataplane *d, const dataplane_listen **at) {
    for (uint32_t i = 0; i < d->c.listens; i++) {
        uint32_t place = place_of(*at = &d->listen[i]);
        if (d->domain[place]) continue;
        fab_options o = { .provider = d->listen[i].provider,
                          /* max_clients have their place when they are accepted; so many more may ask for one */
                          .max_conns = d->c.max_clients + ASKING,
                          .spare_descriptors = spare_descriptors(),
                          .polling = d->c.polling,
                          .follow = dataplane_follow,
                          .key_of = access_key_of,
                          .key_ctx = d,
                          .log = d->c.on_fabric_log,
                          .log_ctx = d->c.ctx };
        int e = fab_open(&o, &d->domain[place]);
        if (e) return e;
    }
    return 0;
}

static int listen_all(dataplane *d, const dataplane_listen **at) {
    for (uint32_t i = 0; i < d->c.listens; i++) {
        const dataplane_listen *l = *at = &d->listen[i];
        worker *w = d->worker[l->worker];
        int e = worker_add_place(w, place_of(l));
        if (e == 0) e = fab_listen(w->cq[place_of(l)], l->address, &d->listener[i]);
        if (e) return e;
        snprintf(d->bound[i], sizeof d->bound[i], "%s", fab_listener_address(d->listener[i]));
    }
    return 0;
}

static int create_workers(dataplane *d) {
    int e = 0;
    for (uint32_t i = 0; i < d->c.workers && e == 0; i++) e = worker_create(d, i, &d->worker[i]);
    return e;
}

static int start_threads(dataplane *d, bool *damaged, char *why, size_t room) {
    int (*start)(helper * w, const char *name) = d->stepped ? helper_open : helper_start;
    int e = start(&d->memory, "farkv-memory");
    if (e == 0) e = start(&d->huge, "farkv-huge");
    if (e == 0) e = start(&d->copier, "farkv-copier");
    if (e == 0 && d->c.log.disk) e = start(&d->maker, "farkv-log-files");
    if (e == 0 && d->c.log.disk) e = start(&d->snapshots, "farkv-snapshot");
    if (e == 0) e = repl_start(d, damaged, why, room);
    for (uint32_t i = 0; i < d->c.workers && e == 0 && !d->stepped; i++) e = worker_start(d->worker[i]);
    return e;
}

/* From whatever was reached to nothing. Threads first, so that all the rest belongs to this one. */
static void tear_down(dataplane *d) {
    for (uint32_t i = 0; i < d->c.workers; i++)
        if (d->worker[i]) worker_join(d->worker[i]);
    for (uint32_t i = 0; i < d->c.workers; i++)
        if (d->worker[i]) repl_stop(d->worker[i]);
    helper_stop(&d->maker);
    helper_stop(&d->snapshots);
    helper_stop(&d->copier);
    helper_stop(&d->memory);
    helper_stop(&d->huge);
    for (int ran = 1; ran;) {
        ran = helper_drain(&d->copier) + helper_drain(&d->memory) + helper_drain(&d->huge) + helper_drain(&d->maker) +
              helper_drain(&d->snapshots);
        for (uint32_t i = 0; i < d->c.workers; i++)
            if (d->worker[i]) ran += worker_drain(d->worker[i]) + repl_drain(d->worker[i]);
    }
    for (uint32_t i = 0; i < d->c.workers; i++) {
        loop_unlisten(d, i);
        if (d->worker[i]) shards_end(d->worker[i]);
        worker_free(d->worker[i]);
        d->worker[i] = NULL;
    }
    helper_free(&d->copier);
    helper_free(&d->memory);
    helper_free(&d->huge);
    helper_free(&d->maker);
    helper_free(&d->snapshots);
    for (int p = 0; p < FAB_PLACES; p++) {
        fab_close(d->domain[p]);
        d->domain[p] = NULL;
    }
    repl_free(d);
    memset(d->place, 0, d->c.shards * sizeof *d->place);
}

static fkv_status status_of(int e) {
    switch (-e) {
    case EADDRINUSE: return FKV_ADDRESS_IN_USE;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EAGAIN: return FKV_NO_MEMORY;
    case EOPNOTSUPP:
    case ENOSYS: return FKV_UNSUPPORTED;
    default: return FKV_ADDRESS_INVALID;
    }
}

static void say_why(const dataplane *d, int e, const dataplane_listen *at, char *why, size_t room) {
    errno = -e;
    if (!at)
        snprintf(why, room, "the data plane's threads could not be started: %m");
    else if (!d->domain[place_of(at)])
        snprintf(why, room, "%s could not be opened: %m", fab_provider_name(at->provider));
    else if (e == -EOPNOTSUPP && fab_encryption_missing(at->provider))
        snprintf(why, room, "data cannot be encrypted: %s; --insecure-data leaves it in the clear",
                 fab_encryption_missing(at->provider));
    else
        snprintf(why, room, "cannot listen on %s: %m", at->address);
}

static fkv_status start_failed(dataplane *d, int e, bool damaged, const dataplane_listen *at, char *why, size_t room) {
    bool of_log = why[0]; /* which has said why */
    if (!of_log) say_why(d, e, at, why, room);
    tear_down(d);
    if (e == -ECANCELED) return FKV_CLOSED;
    if (!of_log || status_of(e) == FKV_NO_MEMORY) return status_of(e);
    return damaged ? FKV_CORRUPT : FKV_DATA_DIR;
}

/* What segments of whole huge pages will be made of. */
static int try_huge_pages(dataplane *d) {
    static const int flags[] = {
        [DATAPLANE_HUGE_AUTO] = FKV_REGION_TRY_HUGE, [DATAPLANE_HUGE_REQUIRE] = FKV_REGION_NEED_HUGE
    };
    d->pages = FKV_PAGES_SMALL;
    if (d->c.huge_pages == DATAPLANE_HUGE_OFF) return 0;
    fkv_region r;
    int e = fkv_region_alloc("farkv-probe", FKV_HUGE_PAGE, flags[d->c.huge_pages], &r);
    if (e) return d->c.huge_pages == DATAPLANE_HUGE_REQUIRE ? e : 0;
    d->pages = r.pages;
    fkv_region_free(&r);
    return 0;
}

/* Memory files and connections are descriptors. When the process's table of them is full the kernel doubles it, and where threads
 * share it, waits 10 to 30 ms for all CPUs to have let go of the old one; whoever opens one meanwhile waits too. So it
 * is made large before there is anything to wait for it. Not more than a convenience: what fails is let be. */
static void widen_descriptor_table(void) {
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most) != 0) return;
    int last = most.rlim_cur > DESCRIPTORS ? DESCRIPTORS - 1 : (int)most.rlim_cur - 1;
    int fd = memfd_create("farkv-descriptors", MFD_CLOEXEC), high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, last);
    if (high >= 0) close(high);
    if (fd >= 0) close(fd);
}

fkv_status dataplane_start(dataplane *d, char *why, size_t why_room) {
    const dataplane_listen *at = NULL;
    bool damaged = false;
    why[0] = 0;
    if (d->state != DP_CREATED) {
        snprintf(why, why_room, "the data plane was started before");
        return FKV_CLOSED;
    }
    widen_descriptor_table();
    int e = try_huge_pages(d);
    if (e) {
        errno = -e;
        snprintf(why, why_room, "huge pages are required, and the system gives none: %m");
        return FKV_NO_MEMORY;
    }
    e = create_workers(d);
    if (e == 0) e = open_domains(d, &at);
    if (e == 0) e = listen_all(d, &at);
    if (e == 0) {
        at = NULL;
        e = start_threads(d, &damaged, why, why_room);
    }
    if (e) return start_failed(d, e, damaged, at, why, why_room);
    pthread_mutex_lock(&d->lock);
    d->state = DP_RUNNING;
    pthread_mutex_unlock(&d->lock);
    return FKV_OK;
}

const char *dataplane_address(const dataplane *d, uint32_t i) { return d->bound[i]; }

/* ---- stop ---- */

void dataplane_stop(dataplane *d) {
    pthread_mutex_lock(&d->lock);
    bool mine = d->state == DP_RUNNING;
    if (mine)
        d->state = DP_STOPPING;
    else if (d->state == DP_CREATED)
        d->state = DP_STOPPED;
    while (!mine && d->state != DP_STOPPED) pthread_cond_wait(&d->stopped, &d->lock);
    pthread_mutex_unlock(&d->lock);
    if (!mine) return;
    tear_down(d);
    pthread_mutex_lock(&d->lock);
    d->state = DP_STOPPED;
    pthread_cond_broadcast(&d->stopped);
    pthread_mutex_unlock(&d->lock);
}

bool dataplane_is_synced(const dataplane *d) { return !__atomic_load_n(&d->log_failed, __ATOMIC_RELAXED); }

void dataplane_destroy(dataplane *d) {
    if (!d) return;
    dataplane_stop(d);
    pthread_mutex_destroy(&d->lock);
    pthread_mutex_destroy(&d->keys_lock);
    pthread_cond_destroy(&d->stopped);
    free_config(d);
    free(d->keys);
    free(d->listener);
    free(d->bound);
    free(d->place);
    free(d);
}
