/* table_memory.c: how many bytes an entry costs beyond key and value, at every point while a server's tables fill.
 *
 *     make -C native all
 *     gcc -O2 -D_GNU_SOURCE -o /tmp/table_memory bench/micro/table_memory.c build/native/libfarkv.a -pthread -lm
 *     /tmp/table_memory [entries 100000] [value bytes 100] [shards 4] [inserts a second 300000] [us a segment takes \
 *         1000] [points 0]
 *
 * The shards' tables are filled as a cluster's are: a key's shard follows from its hash, and a segment comes some time
 * after it was asked for. Time is simulated, so the result does not depend on the machine. A cluster of 3 servers with
 * 4 shards each is 12 shards here: memory is a matter of shards, not of servers. Counted are all registered bytes, as
 * `farkv status` has them.
 *   end      after the last insert, and again when the quarantine has let go of what it held
 *   peak     the highest value of any moment from half of the entries on: just after growth
 *   segments of all shards: each is a registration, a change of layout and an attach at each client
 *   waited   inserts that found no memory and had to wait for a segment
 * With `points`, so many moments are printed, evenly spaced on a logarithmic scale.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../../native/table/table.h"

enum { KEY_BYTES = 16, WANTS = 8, TICK_EVERY = 64, TICK_BUDGET = 256 };

typedef struct wanted {
    table_segment_kind kind;
    size_t bytes;
    uint64_t due_ns;
} wanted;
typedef struct shard {
    table *t;
    wanted wants[WANTS];
    int count, segments;
    uint32_t tag;
} shard;

static const fkv_seed SEED = { 11, 13 };
static uint64_t now_ns = 1000000000, segment_ns;
static uint32_t shard_count;
static shard *shards;
static uint64_t waited;

static void must(bool good, const char *what) {
    if (good) return;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

static void want(void *ctx, table_segment_kind kind, size_t bytes) {
    shard *s = ctx;
    must(s->count < WANTS, "counting what was asked for");
    s->wants[s->count++] = (wanted){ kind, bytes, now_ns + segment_ns };
}
static void retire(void *ctx, table_segment_kind kind, uint32_t segment) {
    (void)kind;
    (void)segment;
    ((shard *)ctx)->segments--;
}

static void add(shard *s, table_segment_kind kind, size_t bytes) {
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(base != MAP_FAILED, "mmap");
    fkv_region r = { .fd = -1, .base = base, .bytes = bytes };
    uint32_t number;
    must(table_add_segment(s->t, kind, &r, ++s->tag, &number) == FKV_OK, "table_add_segment");
    s->segments++;
}
static void serve(shard *s) {
    for (int i = 0; i < s->count;) {
        wanted w = s->wants[i];
        if (w.due_ns > now_ns) {
            i++;
            continue;
        }
        s->wants[i] = s->wants[--s->count];
        add(s, w.kind, w.bytes);
    }
}
static void tick(shard *s) {
    serve(s);
    while (table_tick(s->t, now_ns, now_ns / 1000000, TICK_BUDGET)) {}
}
static void insert(uint64_t i, uint32_t value_bytes, uint64_t gap_ns) {
    static uint8_t value[1 << 20];
    char key[32];
    snprintf(key, sizeof key, "user%012llu", (unsigned long long)i);
    uint64_t hash = fkv_hash_key(&SEED, 0, key, KEY_BYTES), present;
    shard *s = &shards[fkv_hash_shard(hash, shard_count)];
    table_op op = {
        .kind = TABLE_PUT, .key = key, .key_bytes = KEY_BYTES, .hash = hash, .value = value, .value_bytes = value_bytes
    };
    table_prepared p;
    table_busy why;
    fkv_status status;
    now_ns += gap_ns;
    serve(s);
    bool first = true;
    while ((status = table_prepare(s->t, &op, &p, &present, &why)) == FKV_BUSY) {
        if (first) waited++;
        first = false;
        now_ns += 20000;
        tick(s);
    }
    must(status == FKV_OK, "table_prepare");
    table_commit(s->t, &p);
}

typedef struct sum {
    uint64_t entries, key_value, registered, used, private, index_free, heap_free, segments;
} sum;
static sum sum_up(void) {
    sum all = { 0 };
    for (uint32_t i = 0; i < shard_count; i++) {
        table_stats st;
        table_get_stats(shards[i].t, &st);
        all.entries += st.entries;
        all.key_value += st.key_value_bytes;
        all.registered += st.index_bytes + st.heap_bytes;
        all.used += st.used_bytes;
        all.private += st.private_bytes;
        all.index_free += st.index_bytes - st.buckets * FKV_BUCKET_BYTES;
        all.heap_free += st.free_bytes;
        all.segments += (uint64_t)shards[i].segments;
    }
    return all;
}
static double an_entry(const sum *s, uint64_t bytes) { return (double)bytes / (double)s->entries; }
static void print(const char *when, const sum *s) {
    printf("%-5s %9llu entries  registered %6.1f  used %6.1f  free in the index %5.1f  in the heap %6.1f  private "
           "%4.1f  %5llu segments\n",
           when, (unsigned long long)s->entries, an_entry(s, s->registered - s->key_value),
           an_entry(s, s->used - s->key_value), an_entry(s, s->index_free), an_entry(s, s->heap_free),
           an_entry(s, s->private), (unsigned long long)s->segments);
}

static uint64_t argument(int argc, char **argv, int i, uint64_t otherwise) {
    return argc > i ? strtoull(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv) {
    uint64_t entries = argument(argc, argv, 1, 100000), rate = argument(argc, argv, 4, 300000);
    uint32_t value_bytes = (uint32_t)argument(argc, argv, 2, 100);
    shard_count = (uint32_t)argument(argc, argv, 3, 4);
    segment_ns = argument(argc, argv, 5, 1000) * 1000;
    double points = (double)argument(argc, argv, 6, 0), next_point = 1000;
    must(value_bytes <= 1 << 20 && entries > 0 && shard_count > 0 && rate > 0, "reading the arguments");
    shards = calloc(shard_count, sizeof *shards);
    must(shards != NULL, "calloc");
    uint64_t memory = entries * (value_bytes + 200) * 3 / 2 + (128 << 20); /* as bench:compare gives a server */
    for (uint32_t i = 0; i < shard_count; i++) {
        shard *s = &shards[i];
        table_config c = { .shard = i,
                           .epoch = 1,
                           .seed = SEED,
                           .memory_bytes = memory / shard_count,
                           .want_segment = want,
                           .retire_segment = retire,
                           .ctx = s };
        must(table_create(&c, &s->t) == FKV_OK, "table_create");
        add(s, TABLE_INDEX, table_first_index_bytes(&c));
        add(s, TABLE_HEAP, table_first_heap_bytes(&c));
    }
    double step = points > 0 ? pow((double)entries / next_point, 1 / points) : 0;
    uint64_t look = entries / 2000 + 1;
    sum peak = { 0 };
    double highest = 0;
    for (uint64_t i = 1; i <= entries; i++) {
        insert(i, value_bytes, 1000000000 / rate);
        if (i % TICK_EVERY == 0)
            for (uint32_t k = 0; k < shard_count; k++) tick(&shards[k]);
        if (step > 0 && (double)i >= next_point) {
            sum s = sum_up();
            print("", &s);
            next_point *= step;
        }
        if (i < entries / 2 || i % look) continue;
        sum s = sum_up();
        double here = an_entry(&s, s.registered - s.key_value);
        if (here <= highest) continue;
        highest = here;
        peak = s;
    }
    sum s = sum_up();
    if (peak.entries) print("peak", &peak);
    print("end", &s);
    for (int i = 0; i < 6; i++) {
        now_ns += 3000000000u;
        for (uint32_t k = 0; k < shard_count; k++) tick(&shards[k]);
    }
    s = sum_up();
    print("rest", &s);
    printf("waited %llu of %llu inserts\n", (unsigned long long)waited, (unsigned long long)entries);
    return 0;
}
