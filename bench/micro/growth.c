/* growth.c: tables grow from 1,000 keys to many, while every PUT is timed and every key that was acknowledged is looked
 * for.
 *
 *     make -C native all
 *     gcc -O2 -D_GNU_SOURCE -o /tmp/growth bench/micro/growth.c build/native/libfarkv.a -pthread -ldl -lm
 *     /tmp/growth [keys 10000000] [value bytes 100] [shards 4] [PUTs a second, 0: as fast as it goes]
 *
 * A data plane in this process serves the shards over shm. One thread PUTs keys, up to 64 outstanding; another reads
 * keys that have been acknowledged, uniformly, by lookup_direct and where that is not possible by the session, and
 * compares values: a key that is not found, or another value, ends the program with an error. It rests between bursts,
 * so that two cores are enough for all. Then all keys are read once more.
 *
 *   client   from the call to the answer, as the thread that called sees it: waiting for one of the machine's cores
 *            counts
 *   owner    from the turn in which the request came to the end of the turn that answered it (`farkv status --json`,
 *            latencyNs)
 *
 * For each PUT of a client over 10 ms it says when it came, and for how long the calling thread, the owner's and the
 * two that
 * make memory ran meanwhile, and waited for a core
 * (/proc/.../schedstat), and for how long the host of a virtual machine gave its CPUs to others: a machine that has
 * other work to do stops threads for longer than growth ever does. `chrt -f 1` before it keeps other work of the
 * machine away.
 */
#include <dirent.h>
#include <fcntl.h>
#include "rig.h"

enum { AT_ONCE = 64, FIRST = 1000, SLOW_MS = 10, TICKS = 512, BURST = 200, REST_US = 200 };

enum { WRITER, OWNER, MEMORY, HUGE, THREADS }; /* those that a PUT may wait for */
typedef struct times {
    uint64_t ran_ns, waited_ns;
} times;
typedef struct put {
    uint64_t start_ns, stolen_ms;
    times before[THREADS];
    uint32_t number;
    bool busy;
} put;
static put sent[AT_ONCE];
static uint32_t acknowledged; /* atomic: keys below it are there */
static bool over;             /* atomic */
static uint64_t slow, slow_without_wait, longest_ns, answered, shown_ns;
static uint64_t histogram[TICKS]; /* of 100 us each; the last is everything above */
static const char *const names[THREADS] = { "writer", "owner", "memory", "huge" };
static unsigned thread[THREADS];
static uint64_t seen_stolen_ms;
static times seen[THREADS]; /* as last looked at: every millisecond */

static int number_key(char *key, uint32_t i) { return sprintf(key, "user%012u", i); }
static void number_value(uint8_t *v, uint32_t i) {
    for (uint32_t k = 0; k + 4 <= value_bytes; k += 4) memcpy(v + k, &i, 4);
}

/* How long threads of this process ran, and were ready to run and had no core. The files stay open: a thread that opens
 * one waits for as long as the kernel takes to double the process's table of them. */
static void look_at_times(void) {
    static int fd[THREADS];
    for (int i = 0; i < THREADS; i++) {
        char text[96] = "";
        unsigned long long ran, ready;
        snprintf(text, sizeof text, "/proc/self/task/%u/schedstat", thread[i]);
        if (fd[i] == 0) fd[i] = open(text, O_RDONLY | O_CLOEXEC);
        ssize_t n = pread(fd[i], text, sizeof text - 1, 0);
        if (n > 0) text[n] = 0;
        if (n > 0 && sscanf(text, "%llu %llu", &ran, &ready) == 2) seen[i] = (times){ ran, ready };
    }
}

/* For how long the host let the machine's CPUs stand still, all together; the kernel counts it in hundredths of a
 * second. */
static uint64_t stolen_ms(void) {
    static int fd;
    char text[256] = "";
    unsigned long long steal = 0;
    if (fd == 0) fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    if (pread(fd, text, sizeof text - 1, 0) > 0) sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &steal);
    return steal * 10;
}

/* The one of this process with that name. */
static unsigned thread_named(const char *name) {
    unsigned found = 0;
    DIR *all = opendir("/proc/self/task");
    for (const struct dirent *e; all && (e = readdir(all));) {
        char path[300], comm[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%31s", comm) == 1 && !strcmp(comm, name)) found = (unsigned)atoi(e->d_name);
        if (f) fclose(f);
    }
    if (all) closedir(all);
    return found;
}

/* ---- the writer ---- */

static void answered_put(void *user, session_answer *a) {
    put *p = user;
    must(a->status, "PUT");
    uint64_t took = fkv_now_ns() - p->start_ns, tick = took / 100000;
    histogram[tick < TICKS ? tick : TICKS - 1]++;
    answered++;
    if (took > longest_ns) longest_ns = took;
    if (took > SLOW_MS * 1000000) {
        double core = 0;
        look_at_times();
        uint64_t stolen = stolen_ms() - p->stolen_ms;
        for (int i = 0; i < THREADS; i++) core += (double)(seen[i].waited_ns - p->before[i].waited_ns) / 1e6;
        core += (double)stolen;
        bool other = (double)took / 1e6 - core > SLOW_MS;
        if (p->start_ns > shown_ns + 1000000) { /* what was sent with it waited for the same */
            printf("  PUT of key %u took %.1f ms;", p->number, (double)took / 1e6);
            for (int i = 0; i < THREADS; i++)
                printf(" %s %.1f + %.1f", names[i], (double)(seen[i].ran_ns - p->before[i].ran_ns) / 1e6,
                       (double)(seen[i].waited_ns - p->before[i].waited_ns) / 1e6);
            printf(" stolen %llu%s\n", (unsigned long long)stolen, other ? "  <--" : "");
            shown_ns = p->start_ns;
        }
        slow++;
        slow_without_wait += other;
    }
    p->busy = false;
    outstanding--;
}

/* Sleeps until there is a completion, as an event loop does; a thread that spins would take the owner's core. */
static void wait_for_answers(session *s) {
    fab_cq *cq[4];
    struct pollfd f[4];
    int queues = session_queues(s, cq, 4);
    for (int i = 0; i < queues; i++) {
        if (fab_arm(cq[i]) != 0) return;
        f[i] = (struct pollfd){ .fd = fab_fd(cq[i]), .events = POLLIN };
    }
    poll(f, (nfds_t)queues, 1);
}

static void write_keys(lookup *l, uint32_t from, uint32_t to, uint64_t rate) {
    static uint8_t v[1 << 16];
    session *s = lookup_session(l);
    uint64_t begin = fkv_now_ns(), looked = 0;
    uint32_t next = from, low = from;
    while (low < to) {
        uint64_t now = fkv_now_ns();
        if (now - looked > 1000000) {
            look_at_times();
            seen_stolen_ms = stolen_ms();
            looked = now;
        }
        for (; next < to && next - low < AT_ONCE && (rate == 0 || (now - begin) / 1000 * rate / 1000000 >= next - from);
             next++, outstanding++) {
            char key[24];
            lookup_key k = { .bytes = (uint8_t *)key, .count = (uint32_t)number_key(key, next) };
            put *p = &sent[next % AT_ONCE];
            uint64_t id;
            number_value(v, next);
            *p = (put){ .start_ns = fkv_now_ns(), .stolen_ms = seen_stolen_ms, .number = next, .busy = true };
            memcpy(p->before, seen, sizeof seen);
            session_ask ask = { .op = FKV_OP_PUT,
                                .shard = lookup_shard_of(l, &k),
                                .key = k.bytes,
                                .key_bytes = k.count,
                                .value = v,
                                .value_bytes = value_bytes,
                                .deadline_ns = p->start_ns + 30000000000u,
                                .done = answered_put,
                                .user = p };
            must(session_request(s, &ask, &id), "request");
        }
        session_flush(s);
        if (session_poll(s) == 0) wait_for_answers(s);
        session_tick(s);
        while (low < next && !sent[low % AT_ONCE].busy) low++;
        __atomic_store_n(&acknowledged, low, __ATOMIC_RELEASE);
    }
}

/* ---- the reader ---- */

typedef struct reads {
    uint64_t direct, asked;
} reads;

static void read_key(lookup *l, uint32_t i, reads *n) {
    static _Thread_local uint8_t got[1 << 16], wanted[1 << 16];
    char key[24];
    lookup_key k = { .bytes = (uint8_t *)key, .count = (uint32_t)number_key(key, i) };
    lookup_result r;
    while (!lookup_direct(l, &k, got, sizeof got, &r)) {
        refresh(l, &k);
        n->asked++;
    }
    must(r.status, key);
    number_value(wanted, i);
    if (r.value_bytes != value_bytes || memcmp(got, wanted, value_bytes / 4 * 4) != 0) must(FKV_CORRUPT, key);
    n->direct++;
}

static void *read_keys(void *arg) {
    dataplane *d = arg;
    lookup *l = rig_connect(d, 0);
    uint64_t x = 88172645463325252u;
    static reads n;
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        uint32_t there = __atomic_load_n(&acknowledged, __ATOMIC_ACQUIRE);
        if (n.direct % BURST == 0) usleep(REST_US);
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        /* the latest, and any */
        read_key(l, n.direct % 2 ? there - 1 - (uint32_t)(x % 1000) : (uint32_t)(x % there), &n);
    }
    for (uint32_t i = 0; i < acknowledged; i++) read_key(l, i, &n);
    lookup_close(l);
    return &n;
}

/* ---- what came out ---- */

static void with_stats(void *ctx, fkv_status s, void *result) {
    must(s, "stats");
    *(dataplane_stats **)ctx = result;
    called(NULL, s, NULL);
}
static dataplane_stats *stats_of(dataplane *d) {
    dataplane_stats *s = NULL;
    dataplane_get_stats(d, with_stats, &s);
    wait_calls(1);
    return s;
}
static double percentile(double part) {
    uint64_t sum = 0, wanted = (uint64_t)((double)answered * part);
    for (int i = 0; i < TICKS; i++)
        if ((sum += histogram[i]) >= wanted) return (i + 1) / 10.0;
    return TICKS / 10.0;
}

int main(int argc, char **argv) {
    key_count = argc > 1 ? (uint32_t)atoi(argv[1]) : 10000000;
    value_bytes = argc > 2 ? (uint32_t)atoi(argv[2]) : 100;
    shard_count = argc > 3 ? (uint32_t)atoi(argv[3]) : 4;
    uint64_t rate = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
    if (key_count <= FIRST || value_bytes < 4 || value_bytes > 1 << 16 || shard_count == 0)
        must(FKV_BAD_REQUEST, "the arguments");
    dataplane *d = rig_serve("growth");
    dataplane_stats *s = stats_of(d);
    thread[WRITER] = (unsigned)getpid();
    thread[OWNER] = s->worker[0].thread_id;
    thread[MEMORY] = thread_named("farkv-memory");
    thread[HUGE] = thread_named("farkv-huge");
    free(s);
    lookup *l = rig_connect(d, 0);
    write_keys(l, 0, FIRST, 0);
    memset(histogram, 0, sizeof histogram);
    longest_ns = answered = slow = slow_without_wait = 0;
    pthread_t reader;
    void *result;
    if (pthread_create(&reader, NULL, read_keys, d) != 0) must(FKV_NO_MEMORY, "a thread");
    uint64_t begin = fkv_now_ns();
    write_keys(l, FIRST, key_count, rate);
    double seconds = (double)(fkv_now_ns() - begin) / 1e9;
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    pthread_join(reader, &result);
    const reads *n = result;
    s = stats_of(d);
    uint64_t splits = 0, registered = 0, huge = 0, chain = 0, waits = 0, longest_wait = 0;
    for (uint32_t i = 0; i < s->shards; i++) {
        const dataplane_shard_stats *one = &s->shard[i];
        splits += one->table.splits;
        registered += one->table.index_bytes + one->table.heap_bytes;
        huge += one->page_bytes[FKV_PAGES_TRANSPARENT] + one->page_bytes[FKV_PAGES_RESERVED];
        waits += one->memory_waits;
        if (one->memory_wait_max_ns > longest_wait) longest_wait = one->memory_wait_max_ns;
        if (one->table.longest_chain > chain) chain = one->table.longest_chain;
    }
    const dataplane_latency *o = &s->worker[0].latency[DATAPLANE_PUT];
    printf("%u to %u keys of %u B in %.1f s: %.0f PUTs/s, %llu splits, longest chain ever %llu, %.0f MB registered, "
           "%.0f of them huge pages\n",
           FIRST, key_count, value_bytes, seconds, (key_count - FIRST) / seconds, (unsigned long long)splits,
           (unsigned long long)chain, (double)registered / 1e6, (double)huge / 1e6);
    printf("client  p50 <= %.1f  p99 <= %.1f  p99.99 <= %.1f  longest %.2f ms; over 10 ms: %llu, of which not for want "
           "of a core: %llu\n",
           percentile(0.5), percentile(0.99), percentile(0.9999), (double)longest_ns / 1e6, (unsigned long long)slow,
           (unsigned long long)slow_without_wait);
    printf("memory  PUTs that came before the memory they needed was made: %llu, longest wait %.2f ms\n",
           (unsigned long long)waits, (double)longest_wait / 1e6);
    printf("owner   p50 %.4f  p99 %.4f  longest %.2f ms\n", (double)o->p50_ns / 1e6, (double)o->p99_ns / 1e6,
           (double)o->max_ns / 1e6);
    printf("reads   %llu in place, %llu by the session meanwhile and after; no key missed, no other value\n",
           (unsigned long long)n->direct, (unsigned long long)n->asked);
    bool met = slow_without_wait == 0;
    printf("%s\n", met ? "met" : "MISSED");
    free(s);
    lookup_close(l);
    dataplane_destroy(d);
    return met ? 0 : 1;
}
