/* dataplane_scan_test.c: SCAN and TALLY walk all shards of a real data plane, over each provider: what they list and
 * count, with values, prefixes and namespaces. Scans of a table that grows are in table_growth_test.c. */
#include "raw_client.h"

static fab_provider provider;
static rig r;
static raw c;

static void up(void) {
    rig_init(&r, provider, NULL);
    rig_up(&r, RIG_SHARDS, 16 << 20);
    raw_up(&c, &r, 1);
}
static void down(void) {
    raw_down(&c);
    rig_down(&r);
}

/* Repeats the request on every shard, from cursor to cursor; `take` is given each message that comes. */
static void walk(fkv_request q, const char *prefix, void (*take)(void *ctx, const raw_message *m), void *ctx) {
    for (q.shard = 0; q.shard < RIG_SHARDS; q.shard++) {
        q.expected = 0;
        do {
            q.id = c.next_id++;
            uint64_t id = raw_send(&c, &q, prefix, NULL, 0);
            for (bool more = true; more;) {
                raw_message *m = raw_receive(&c, id);
                CHECK_EQ(m->reply.status, FKV_OK);
                take(ctx, m);
                more = m->reply.flags & FKV_REPLY_MORE;
                q.expected = m->reply.version;
                free(m);
            }
        } while (q.expected);
    }
}

/* Where a key of the test of every namespace is put. */
static uint16_t space_of(int i) { return (uint16_t)(i % 3 * 30000); }

typedef struct scanned {
    bool every, values; /* every namespace */
    uint8_t *seen;
    int n, found;
} scanned;

static void see(void *ctx, const raw_message *m) {
    scanned *s = ctx;
    fkv_scan_entry e;
    const uint8_t *key, *value;
    for (uint32_t at = 0; wire_next_scan_entry(m->body, m->bytes, &at, &e, &key, &value);) {
        char text[32] = { 0 };
        memcpy(text, key, e.key_bytes);
        int i = atoi(text + 4);
        CHECK(i >= 0 && i < s->n && e.value_bytes == 200 && (value != NULL) == s->values);
        CHECK_EQ(e.space, s->every ? space_of(i) : 0);
        if (value) CHECK_EQ(*value, (uint8_t)i);
        if (!s->seen[i]++) s->found++;
    }
}

static int scan_all(uint32_t space, bool values, uint32_t wanted, uint8_t *seen, int n) {
    scanned s = { .every = space == TABLE_EVERY_NAMESPACE, .values = values, .seen = seen, .n = n };
    fkv_request q = raw_request(&c, FKV_OP_SCAN, "");
    q.space = s.every ? 0 : (uint16_t)space;
    q.value_bytes = wanted;
    q.flags = (uint8_t)((values ? FKV_REQUEST_SCAN_VALUES : 0) | (s.every ? FKV_REQUEST_SCAN_SPACES : 0));
    walk(q, "", see, &s);
    return s.found;
}

TEST(a_scan_returns_every_key_of_its_namespace) {
    enum { N = 3000 };
    static uint8_t seen[N];
    up();
    for (int i = 0; i < N; i++) {
        char key[32];
        uint8_t value[200];
        snprintf(key, sizeof key, "key-%d", i);
        memset(value, i, sizeof value);
        CHECK_EQ(raw_put(&c, key, value, sizeof value), FKV_OK);
    }
    CHECK_EQ(scan_all(0, false, 1, memset(seen, 0, N), N), N);
    CHECK_EQ(scan_all(0, true, 100, memset(seen, 0, N), N), N);
    CHECK_EQ(scan_all(0, true, UINT32_MAX, memset(seen, 0, N), N), N);
    CHECK_EQ(scan_all(1, true, 100, memset(seen, 0, N), N), 0);
    down();
}

typedef struct counted {
    const char *prefix;
    uint64_t listed, told;
} counted;

static void count_listed(void *ctx, const raw_message *m) {
    counted *n = ctx;
    fkv_scan_entry e;
    const uint8_t *key, *value;
    for (uint32_t at = 0; wire_next_scan_entry(m->body, m->bytes, &at, &e, &key, &value); n->listed++)
        CHECK(e.key_bytes >= strlen(n->prefix) && memcmp(key, n->prefix, strlen(n->prefix)) == 0);
}
static void count_told(void *ctx, const raw_message *m) { ((counted *)ctx)->told += m->reply.expiry_ms; }

/* Of all shards; what a scan with this prefix lists is looked at too. */
static uint64_t tally_of(const char *prefix, uint16_t space) {
    counted n = { .prefix = prefix };
    fkv_request tally = raw_request(&c, FKV_OP_TALLY, prefix), scan = raw_request(&c, FKV_OP_SCAN, prefix);
    tally.space = scan.space = space;
    scan.value_bytes = 50;
    walk(tally, prefix, count_told, &n);
    walk(scan, prefix, count_listed, &n);
    CHECK_EQ(n.listed, n.told);
    return n.told;
}

TEST(a_tally_counts_what_a_scan_lists_and_a_prefix_says_of_which_keys) {
    enum { N = 2000 };
    up();
    CHECK_EQ(tally_of("", 0), 0);
    for (int i = 0; i < N; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s-%d", i % 4 ? "many" : "few", i);
        CHECK_EQ(raw_put(&c, key, "v", 1), FKV_OK);
    }
    CHECK_EQ(raw_put(&c, "fe", "v", 1), FKV_OK);
    CHECK_EQ(tally_of("", 0), N + 1);
    CHECK_EQ(tally_of("few-", 0), N / 4);
    CHECK_EQ(tally_of("fe", 0), N / 4 + 1);
    CHECK_EQ(tally_of("few-1996", 0), 1);
    CHECK_EQ(tally_of("few-1996x", 0), 0);
    CHECK_EQ(tally_of("", 1), 0);
    down();
}

TEST(a_scan_of_every_namespace_says_whose_each_entry_is) {
    enum { N = 900 };
    static uint8_t seen[N];
    up();
    for (int i = 0; i < N; i++) {
        char key[32];
        uint8_t value[200];
        snprintf(key, sizeof key, "key-%d", i);
        memset(value, i, sizeof value);
        fkv_request q = raw_request(&c, FKV_OP_PUT, key);
        c.sequence[q.shard]--;
        q.space = space_of(i);
        q.shard = raw_shard_of(q.space, key, strlen(key));
        q.sequence = ++c.sequence[q.shard];
        q.value_bytes = sizeof value;
        CHECK_EQ(raw_end(&c, raw_send(&c, &q, key, value, sizeof value)), FKV_OK);
    }
    CHECK_EQ(scan_all(TABLE_EVERY_NAMESPACE, true, 100, memset(seen, 0, N), N), N);
    CHECK_EQ(scan_all(0, true, 100, memset(seen, 0, N), N), N / 3);
    down();
}

static void tests(void) {
    RUN(a_scan_returns_every_key_of_its_namespace);
    RUN(a_tally_counts_what_a_scan_lists_and_a_prefix_says_of_which_keys);
    RUN(a_scan_of_every_namespace_says_whose_each_entry_is);
}

int main(int argc, char **argv) { return rig_main(argc, argv, &provider, tests); }
