/* client_shrink_test.c: clients GET while the tables of a real data plane lose nearly all of their entries, give the
 * memory of their indexes back, and grow again; over each provider. Nothing is waited for but that.
 */
#include "client_kit.h"

static fab_provider provider;
enum { KEYS = 24000, KEPT_OF = 40, BATCH = 200 };

static uint32_t version[KEYS]; /* of the value that a key has; 0: absent */
static uint64_t random_state;
static uint32_t any(uint32_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 32) * below >> 32);
}
static void key_of(int i, char key[24]) { snprintf(key, 24, "key number %d", i); }
static uint32_t value_of(int i, char value[32]) {
    return (uint32_t)snprintf(value, 32, "%d of %d", (int)version[i], i);
}

/* Keys from..to, one of `step`: as many changes at a time as a client may have under way. */
static void change_all(kit *k, int from, int to, int step, bool kept, bool puts) {
    static answer a[BATCH];
    while (from < to) {
        int n = 0;
        for (; from < to && n < BATCH; from += step) {
            if (!kept && from % KEPT_OF == 0) continue;
            char key[24], value[32];
            key_of(from, key);
            version[from] = puts ? version[from] + 1 : 0;
            session_ask ask = { .op = FKV_OP_DELETE };
            if (puts)
                kit_put_begin(k, key, value, value_of(from, value), 30000, &a[n++]);
            else
                kit_ask(k, &ask, key, 30000, &a[n++]);
        }
        for (int i = 0; i < n; i++) {
            kit_until(k, &a[i].done);
            CHECK_EQ(a[i].status, FKV_OK);
        }
    }
}
/* In place where that is possible now. */
static void check_get(kit *k, int i) {
    char key[24], expected[32], value[64];
    uint32_t bytes = value_of(i, expected);
    key_of(i, key);
    lookup_key of = kit_key(key);
    lookup_result r;
    if (any(4) && lookup_direct(k->l, &of, (uint8_t *)value, sizeof value, &r)) {
        CHECK_EQ(r.status, version[i] ? FKV_OK : FKV_NOT_FOUND);
        CHECK(!version[i] || (r.value_bytes == bytes && memcmp(value, expected, bytes) == 0));
        return;
    }
    answer a = kit_get(k, key, 30000);
    CHECK_EQ(a.status, version[i] ? FKV_OK : FKV_NOT_FOUND);
    CHECK(!version[i] || (a.bytes == bytes && memcmp(a.value, expected, bytes) == 0));
    free(a.value);
}
static uint64_t index_bytes(rig *r) {
    uint64_t bytes = 0;
    dataplane_stats *s = rig_stats(r);
    for (uint32_t i = 0; i < s->shards; i++) bytes += s->shard[i].table.index_bytes;
    free(s);
    return bytes;
}

TEST(gets_are_answered_rightly_while_indexes_shrink_and_grow) {
    rig r;
    kit writer, reader, idle;
    random_state = check_seed();
    memset(version, 0, sizeof version);
    rig_init(&r, provider, NULL);
    r.config.lease_ms = 1000;
    rig_up(&r, RIG_SHARDS, 8 << 20);
    kit_up(&writer, &r, 100);
    kit_up(&reader, &r, 101);
    kit_up(&idle, &r, 102);
    uint64_t first = index_bytes(&r);
    change_all(&writer, 0, KEYS, 1, true, true);
    for (int i = 0; i < 2000; i++) check_get(&reader, (int)any(KEYS));
    for (int i = 0; i < 200; i++) check_get(&idle, (int)any(KEYS));
    uint64_t grown = index_bytes(&r);
    CHECK(grown > first + first / 4);

    change_all(&writer, 0, KEYS, 1, false, false);
    uint64_t gets = 0;
    for (bool small = false; !small;) {
        for (int i = 0; i < 300; i++, gets++)
            check_get(&reader, any(2) ? (int)any(KEYS) : (int)any(KEYS / KEPT_OF) * KEPT_OF);
        int kept = (int)any(KEYS / KEPT_OF) * KEPT_OF;
        change_all(&writer, kept, kept + 1, 1, true, true);
        small = index_bytes(&r) == first;
    }
    printf("# %s: %llu bytes of index, then %llu, after %llu GETs\n", fab_provider_name(provider),
           (unsigned long long)grown, (unsigned long long)first, (unsigned long long)gets);
    for (int i = 0; i < 200; i++) check_get(&idle, (int)any(KEYS));

    for (int from = 0; from < KEYS; from += 400) {
        change_all(&writer, from, from + 400, 1, true, true);
        for (int i = 0; i < 40; i++) check_get(&reader, (int)any(KEYS));
    }
    CHECK(index_bytes(&r) > first + first / 4);
    for (int i = 0; i < KEYS; i += 7) check_get(i % 2 ? &reader : &idle, i);
    lookup_stats s = kit_stats(&reader);
    if (provider != FAB_SIM) CHECK(reader.disconnected == 0 && s.foreign == 0);
    kit_down(&idle);
    kit_down(&reader);
    kit_down(&writer);
    rig_down(&r);
}

static void all(void) { RUN(gets_are_answered_rightly_while_indexes_shrink_and_grow); }
int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("# seed %llu\n", (unsigned long long)check_seed());
    return rig_main(argc, argv, &provider, all);
}
