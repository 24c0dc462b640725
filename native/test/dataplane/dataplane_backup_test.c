/* dataplane_backup_test.c: a shard as another owner's copy. The owner is the test: it makes messages, and gives them to
 * the copy on the worker's thread, as a link will. */
#include "../../replication/backup.h"
#include "raw_client.h"
#include "worker_visit.h"

static rig r;
static uint32_t number; /* of the shard of "alpha" */
enum { COPY = 9, LEASE_MS = 250, MEMORY = 16 << 20, MESSAGE = 16 << 10, CLIENT = 5 };

static uint32_t full; /* the copy; atomic */
static void on_copy(void *ctx, uint32_t shard, uint64_t copy, dataplane_copy_event what) {
    (void)ctx;
    CHECK(shard == number && copy == COPY && what == DATAPLANE_COPY_FULL);
    __atomic_add_fetch(&full, 1, __ATOMIC_SEQ_CST);
}
static uint32_t is_full(void) { return __atomic_load_n(&full, __ATOMIC_SEQ_CST); }

/* ---- on the worker's thread ---- */

typedef struct visit {
    void (*at)(shard *s, void *ctx);
    void *ctx;
} visit;
static void visited(worker *w, void *ctx) {
    const visit *v = ctx;
    v->at(w->by_number[number], v->ctx);
}
static void on_worker(void (*at)(shard *s, void *ctx), void *ctx) { rig_visit(&r, visited, &(visit){ at, ctx }); }

static void make(shard *s, void *place) { CHECK(backup_make(s, COPY, LEASE_MS, place)); }
static uint64_t bound; /* of all tables together; 0: none */
static void up(uint64_t memory) {
    rig_init(&r, FAB_SHM, NULL);
    r.config.memory_bytes = bound;
    number = raw_shard_of(0, "alpha", 5);
    r.config.on_copy = on_copy;
    rig_start(&r);
    CHECK_EQ(rig_open_shard(&r, number, 0, memory, NULL), FKV_OK);
    on_worker(make, &(replica_backup){ .epoch = 1 });
}
static void down(void) { rig_down(&r); }

/* ---- what the owner says ---- */

typedef struct message {
    uint8_t bytes[MESSAGE];
    uint32_t used;
    backup_at done;
    backup_result result;
} message;

static void begin(message *m, uint32_t epoch, uint64_t first, uint64_t committed) {
    fkv_records head = {
        .op = FKV_PEER_RECORDS, .shard = number, .epoch = epoch, .first = first, .committed = committed
    };
    *m = (message){ .used = sizeof head };
    memcpy(m->bytes, &head, sizeof head);
}
static void add(message *m, bool writes, const char *key, const void *value, uint32_t value_bytes, uint64_t version) {
    fkv_records head;
    fkv_record rec = { .kind = writes ? FKV_RECORD_PUT : FKV_RECORD_DELETE,
                       .key_bytes = (uint16_t)strlen(key),
                       .value_bytes = value_bytes,
                       .version = version,
                       .client = CLIENT,
                       .value = version + 100 };
    memcpy(&head, m->bytes, sizeof head);
    rec.sequence = head.first + head.count++;
    uint32_t n = wire_put_record(m->bytes + m->used, MESSAGE - m->used, &rec, (const uint8_t *)key, value);
    CHECK(n > 0);
    m->used += n;
    memcpy(m->bytes, &head, sizeof head);
}
static void give(shard *s, void *ctx) {
    message *m = ctx;
    fkv_peer_message parsed;
    CHECK_EQ(wire_parse_peer(m->bytes, m->used, &parsed), FKV_OK);
    m->result = backup_takes(s->repl.copy, &parsed, &m->done);
}
static backup_result takes(message *m) {
    on_worker(give, m);
    return m->result;
}
/* One record of one key; its sequence is its number. */
static backup_result put(uint32_t epoch, uint64_t lsn, uint64_t committed, const char *key, const char *value) {
    static message m;
    begin(&m, epoch, lsn, committed);
    add(&m, value != NULL, key, value, value ? (uint32_t)strlen(value) : 0, fkv_version(epoch, lsn));
    return takes(&m);
}

typedef struct led {
    uint32_t epoch;
    uint64_t last;
    backup_result result;
} led;
static void lead(shard *s, void *ctx) {
    led *l = ctx;
    l->result = backup_on_epoch(s->repl.copy, &(fkv_peer_follow_ok){ .epoch = l->epoch, .last = l->last });
}
static backup_result follow_ok(uint32_t epoch, uint64_t last) {
    led l = { .epoch = epoch, .last = last };
    on_worker(lead, &l);
    return l.result;
}

typedef struct state {
    uint64_t committed; /* what the owner is said to have */
    replica_backup place;
    uint64_t now_ns;
    bool acknowledges;
    fkv_peer_ack ack;
    fkv_peer_follow follow;
    fkv_status failed;
    const char *wrong;
} state;
static void look(shard *s, void *ctx) {
    state *x = ctx;
    backup_on_commit_index(s->repl.copy, s->repl.copy->place.epoch, x->committed);
    x->now_ns = fkv_now_ns();
    x->acknowledges = backup_acknowledges(s->repl.copy, x->now_ns, &x->ack);
    x->follow = backup_follow(s->repl.copy);
    x->place = s->repl.copy->place;
    x->failed = s->repl.copy->failed;
    x->wrong = table_check(s->table);
}
static state seen(uint64_t committed) {
    state x = { .committed = committed };
    on_worker(look, &x);
    CHECK(!x.wrong);
    return x;
}

static void acknowledge(shard *s, void *limit) {
    fkv_peer_ack a;
    CHECK(backup_acknowledges(s->repl.copy, fkv_now_ns(), &a));
    *(uint64_t *)limit = a.limit;
}

typedef struct entry {
    const char *key, *value; /* NULL: there is none */
    bool right;
} entry;
static void find(shard *s, void *ctx) {
    entry *e = ctx;
    table_entry t;
    size_t n = strlen(e->key);
    fkv_status found = table_committed(s->table, 0, e->key, n, fkv_hash_key(&RIG_SEED, 0, e->key, n), &t);
    e->right = !e->value ? found == FKV_NOT_FOUND
                         : found == FKV_OK && t.value_bytes == strlen(e->value) &&
                               memcmp(t.value, e->value, t.value_bytes) == 0;
}
static bool has(const char *key, const char *value) {
    entry e = { .key = key, .value = value };
    on_worker(find, &e);
    return e.right;
}

typedef struct retry {
    uint64_t sequence;
    dedup_answer answer;
    dedup_result result;
} retry;
static void ask(shard *s, void *ctx) {
    retry *t = ctx;
    dedup *d = &s->w->dedup;
    void *op = t;
    dedup_client *c = dedup_enter(d, CLIENT, s->w->now_ns);
    t->answer = dedup_begin(d, c, s->slot, t->sequence, true, s->w->now_ns, &op, &t->result);
    if (t->answer == DEDUP_NEW) dedup_cancel(c, s->slot, t->sequence);
    dedup_leave(d, c, s->w->now_ns);
}

/* The i-th key of the shard. */
static const char *key_at(uint32_t i) {
    static char key[32];
    for (uint32_t n = i * 1000;; n++) {
        snprintf(key, sizeof key, "key-%u", n);
        if (raw_shard_of(0, key, strlen(key)) == number) return key;
    }
}

/* ---- */

TEST(a_record_is_acknowledged_when_it_is_prepared_and_seen_when_it_is_committed) {
    up(MEMORY);
    CHECK_EQ(put(1, 1, 0, "alpha", "one"), BACKUP_TOOK);
    state x = seen(0);
    CHECK(x.place.prepared == 1 && x.place.committed == 0 && x.acknowledges);
    CHECK(x.ack.shard == number && x.ack.epoch == 1 && x.ack.prepared == 1);
    CHECK(has("alpha", NULL));
    CHECK_EQ(put(1, 2, 1, key_at(1), "two"), BACKUP_TOOK);
    CHECK(has("alpha", "one") && has(key_at(1), NULL));
    seen(2);
    CHECK(has(key_at(1), "two"));
    CHECK_EQ(put(1, 3, 2, "alpha", NULL), BACKUP_TOOK);
    CHECK(has("alpha", "one"));
    x = seen(100); /* an owner that says more than the copy has */
    CHECK(x.place.committed == 3 && has("alpha", NULL));
    CHECK_EQ(x.follow.prepared, 3);
    down();
}

TEST(a_retry_is_known_as_soon_as_its_change_is_committed) {
    up(MEMORY);
    CHECK_EQ(put(1, 1, 0, "alpha", "one"), BACKUP_TOOK);
    seen(1);
    retry t = { .sequence = 1 };
    on_worker(ask, &t);
    CHECK(t.answer == DEDUP_DONE && t.result.status == FKV_OK && t.result.version == fkv_version(1, 1));
    CHECK_EQ(t.result.value, fkv_version(1, 1) + 100);
    t.sequence = 2;
    on_worker(ask, &t);
    CHECK_EQ(t.answer, DEDUP_NEW);
    down();
}

TEST(what_is_not_the_next_record_of_its_owner_is_not_taken) {
    up(MEMORY);
    CHECK_EQ(put(1, 2, 0, "alpha", "two"), BACKUP_ANEW);
    CHECK_EQ(put(2, 1, 0, "alpha", "one"), BACKUP_ANEW); /* of an owner that it does not follow yet */
    CHECK_EQ(put(1, 1, 0, "alpha", "one"), BACKUP_TOOK);
    CHECK_EQ(put(1, 1, 0, "alpha", "one"), BACKUP_ANEW);
    CHECK_EQ(follow_ok(3, 1), BACKUP_TOOK);
    CHECK_EQ(put(1, 2, 1, "alpha", "two"), BACKUP_ANEW); /* of an owner of the past */
    CHECK_EQ(follow_ok(2, 1), BACKUP_ANEW);
    state x = seen(0);
    CHECK(x.place.prepared == 1 && x.place.committed == 0 && x.place.epoch == 3);
    down();
}

TEST(bytes_that_changed_on_their_way_are_asked_for_again) {
    static message m;
    up(MEMORY);
    begin(&m, 1, 1, 0);
    add(&m, true, "alpha", "one", 3, 7);
    m.bytes[m.used - 1] ^= 1;
    CHECK_EQ(takes(&m), BACKUP_ANEW);
    CHECK_EQ(seen(0).place.prepared, 0);
    CHECK_EQ(put(1, 1, 0, "alpha", "one"), BACKUP_TOOK);
    down();
}

TEST(a_new_owner_takes_away_what_it_has_not) {
    up(MEMORY);
    CHECK_EQ(put(1, 1, 0, "alpha", "one"), BACKUP_TOOK);
    CHECK_EQ(put(1, 2, 1, "alpha", "two"), BACKUP_TOOK);
    CHECK_EQ(put(1, 3, 1, key_at(1), "three"), BACKUP_TOOK);
    CHECK_EQ(put(1, 4, 1, key_at(2), NULL), BACKUP_TOOK); /* of what is not there */
    CHECK_EQ(follow_ok(2, 2), BACKUP_TOOK);
    state x = seen(1);
    CHECK(x.place.prepared == 2 && x.place.committed == 1);
    CHECK_EQ(put(2, 3, 1, key_at(1), "other"), BACKUP_TOOK);
    seen(3);
    CHECK(has("alpha", "two") && has(key_at(1), "other"));
    CHECK_EQ(follow_ok(2, 3), BACKUP_TOOK); /* the same owner, over another connection */
    CHECK_EQ(seen(3).place.prepared, 3);
    down();
}

TEST(a_copy_that_has_shown_what_its_new_owner_has_not_is_none) {
    up(MEMORY);
    CHECK_EQ(put(1, 1, 0, "alpha", "one"), BACKUP_TOOK);
    seen(1);
    CHECK_EQ(follow_ok(2, 0), BACKUP_FAILED);
    CHECK(!seen(1).acknowledges);
    CHECK_EQ(put(2, 1, 0, "alpha", "one"), BACKUP_FAILED);
    CHECK_EQ(follow_ok(2, 1), BACKUP_FAILED);
    down();
}

TEST(a_removal_of_what_has_expired_here_is_a_record_like_any) {
    up(MEMORY);
    CHECK_EQ(put(1, 1, 0, "alpha", NULL), BACKUP_TOOK);
    state x = seen(1);
    CHECK(x.place.prepared == 1 && x.place.committed == 1);
    retry t = { .sequence = 1 };
    on_worker(ask, &t);
    CHECK_EQ(t.answer, DEDUP_DONE);
    down();
}

TEST(a_record_of_another_shard_or_an_older_version_ends_the_copy) {
    const char *other = "beta";
    up(MEMORY);
    CHECK(raw_shard_of(0, other, 4) != number);
    CHECK_EQ(put(1, 1, 0, other, "one"), BACKUP_FAILED);
    down();
    static message m;
    up(MEMORY);
    CHECK_EQ(put(1, 1, 0, "alpha", "one"), BACKUP_TOOK);
    begin(&m, 1, 2, 1);
    add(&m, true, "alpha", "two", 3, 1);
    CHECK_EQ(takes(&m), BACKUP_FAILED);
    CHECK_EQ(seen(1).failed, FKV_VERSION_MISMATCH);
    down();
}

/* An owner's records of one key are never both uncommitted. */
TEST(two_records_of_one_key_that_are_not_committed_end_the_copy) {
    up(MEMORY);
    CHECK_EQ(put(1, 1, 0, "alpha", "one"), BACKUP_TOOK);
    CHECK_EQ(put(1, 2, 0, "alpha", "two"), BACKUP_FAILED);
    down();
}

TEST(a_copy_holds_a_whole_window_and_no_more) {
    static message m;
    uint64_t lsn = 1;
    up(MEMORY);
    while (lsn <= REPLICA_WINDOW) {
        begin(&m, 1, lsn, 0);
        for (int i = 0; i < 64; i++, lsn++) add(&m, true, key_at((uint32_t)lsn), "v", 1, lsn);
        while (takes(&m) == BACKUP_WAITS) {}
        CHECK_EQ(m.result, BACKUP_TOOK);
    }
    CHECK_EQ(seen(0).place.prepared, REPLICA_WINDOW);
    CHECK(has(key_at(1), NULL));
    begin(&m, 1, lsn, 0);
    add(&m, true, "alpha", "v", 1, lsn);
    CHECK_EQ(takes(&m), BACKUP_FAILED);
    seen(REPLICA_WINDOW);
    CHECK(has(key_at(1), "v") && has(key_at(REPLICA_WINDOW), "v"));
    down();
}

/* The limit that a copy says is one that it keeps: whoever heeds it never finds it without memory. */
static void finds_room_within_the_limit(uint64_t memory) {
    static uint8_t value[8000];
    static message m;
    uint64_t lsn = 0, sent = 0, limit;
    up(memory);
    limit = seen(0).follow.room;
    CHECK(limit > 0 && limit < 4 << 20);
    for (;;) {
        const char *key = key_at((uint32_t)++lsn);
        uint64_t room = record_room(true, (uint32_t)strlen(key), sizeof value);
        if (sent + room > limit) break;
        begin(&m, 1, lsn, lsn - 1);
        add(&m, true, key, value, sizeof value, lsn);
        while (takes(&m) == BACKUP_WAITS) {}
        CHECK_EQ(m.result, BACKUP_TOOK);
        sent += room;
        on_worker(acknowledge, &limit);
    }
    CHECK(lsn > 300);
    down();
}
TEST(what_lies_within_the_limit_finds_room) { finds_room_within_the_limit(4 << 20); }
/* The limit of an owner may have fallen below what its table has. */
TEST(a_copy_may_have_what_all_tables_may_have_whatever_an_owner_may) {
    bound = 64 << 20;
    up(MEMORY);
    dataplane_set_table_memory(r.d, TABLE_MEMORY_MIN);
    CHECK(seen(0).follow.room > 60 << 20);
    dataplane_set_table_memory(r.d, 2 * MEMORY);
    CHECK(seen(0).follow.room > 60 << 20);
    down();
    bound = 0;
}
TEST(what_lies_within_the_bound_of_all_tables_finds_room) {
    bound = 4 << 20;
    finds_room_within_the_limit(MEMORY);
    bound = 0;
}

TEST(a_copy_that_is_full_says_so_once_and_acknowledges_nothing_more) {
    static uint8_t value[8000];
    static message m;
    uint64_t lsn = 0;
    full = 0;
    up(4 << 20);
    do { /* past the limit */
        CHECK_EQ(is_full(), 0);
        lsn++;
        begin(&m, 1, lsn, lsn - 1);
        add(&m, true, key_at((uint32_t)lsn), value, sizeof value, lsn);
        while (takes(&m) == BACKUP_WAITS) {}
    } while (m.result == BACKUP_TOOK);
    CHECK_EQ(m.result, BACKUP_FAILED);
    state x = seen(lsn);
    CHECK(x.failed == FKV_TABLE_FULL && x.place.prepared == lsn - 1 && !x.acknowledges);
    CHECK_EQ(is_full(), 1);
    CHECK_EQ(put(1, lsn, lsn - 1, "alpha", NULL), BACKUP_FAILED);
    CHECK_EQ(follow_ok(2, lsn), BACKUP_FAILED);
    CHECK_EQ(is_full(), 1);
    down();
}

/* No segment can come while the thread is here. */
static void fill_until_it_waits(shard *s, void *ctx) {
    static uint8_t value[8000];
    message *m = ctx;
    uint64_t lsn = 0;
    do {
        lsn++;
        begin(m, 1, lsn, lsn - 1);
        add(m, true, key_at((uint32_t)lsn), value, sizeof value, lsn);
        give(s, m);
    } while (m->result == BACKUP_TOOK);
}
TEST(a_record_that_waits_for_memory_is_taken_when_that_has_come) {
    static message m;
    up(MEMORY);
    on_worker(fill_until_it_waits, &m);
    CHECK_EQ(m.result, BACKUP_WAITS);
    uint64_t before = seen(0).place.prepared;
    while (takes(&m) == BACKUP_WAITS) {}
    CHECK_EQ(m.result, BACKUP_TOOK);
    CHECK_EQ(seen(0).place.prepared, before + 1);
    down();
}

TEST(a_copy_counts_the_leases_that_it_grants) {
    up(MEMORY);
    state x = seen(0);
    CHECK(x.acknowledges);
    CHECK(x.place.granted_until_ns > x.now_ns + LEASE_MS * UINT64_C(1000000));
    CHECK_EQ(x.follow.lease_ms, LEASE_MS);
    CHECK_EQ(put(1, 1, 0, "alpha", "one"), BACKUP_TOOK);
    CHECK_EQ(follow_ok(2, 1), BACKUP_TOOK); /* what it granted the owner before still counts */
    state y = seen(0);
    CHECK(y.acknowledges && y.place.granted_until_ns > x.place.granted_until_ns);
    down();
}

TEST(a_copy_is_not_served) {
    up(MEMORY);
    CHECK_EQ(rig_shard_call(&r, dataplane_serve_shard, number), FKV_BUSY);
    down();
}

int main(int argc, char **argv) {
    RUN(a_record_is_acknowledged_when_it_is_prepared_and_seen_when_it_is_committed);
    RUN(a_retry_is_known_as_soon_as_its_change_is_committed);
    RUN(what_is_not_the_next_record_of_its_owner_is_not_taken);
    RUN(bytes_that_changed_on_their_way_are_asked_for_again);
    RUN(a_new_owner_takes_away_what_it_has_not);
    RUN(a_copy_that_has_shown_what_its_new_owner_has_not_is_none);
    RUN(a_removal_of_what_has_expired_here_is_a_record_like_any);
    RUN(a_record_of_another_shard_or_an_older_version_ends_the_copy);
    RUN(two_records_of_one_key_that_are_not_committed_end_the_copy);
    RUN(a_copy_holds_a_whole_window_and_no_more);
    RUN(what_lies_within_the_limit_finds_room);
    RUN(a_copy_may_have_what_all_tables_may_have_whatever_an_owner_may);
    RUN(what_lies_within_the_bound_of_all_tables_finds_room);
    RUN(a_copy_that_is_full_says_so_once_and_acknowledges_nothing_more);
    RUN(a_record_that_waits_for_memory_is_taken_when_that_has_come);
    RUN(a_copy_counts_the_leases_that_it_grants);
    RUN(a_copy_is_not_served);
    return check_end(argc, argv);
}
