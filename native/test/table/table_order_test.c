/* table_order_test.c: the order in which commit stores and a reader loads, seen from inside: the pages that an access
 * goes to are protected, and the handler of the fault looks at what the other words are at that moment. layout.h says
 * why the order matters, and protocol_model_test.c what goes wrong without it.
 */
#include <signal.h>
#include <stdio.h>
#include "table_host.h"
#include "../../table/internal.h"

typedef struct watch {
    host *h;
    const host_segment *segment; /* write-protected until the first store */
    const fkv_extent *old, *new;
    const uint8_t *first_store;
    uint32_t old_state, new_state; /* at that store */
    int faults;
} watch;
static watch w;

static void protect(int protection) {
    CHECK_EQ(mprotect(w.segment->region.base, w.segment->region.bytes, protection), 0);
}
static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)context;
    const uint8_t *at = info->si_addr;
    if (w.faults++ > 0 || at < w.segment->region.base || at >= w.segment->region.base + w.segment->region.bytes)
        abort();
    w.first_store = at;
    w.old_state = w.old ? w.old->state : 0;
    w.new_state = w.new ? w.new->state : 0;
    mprotect(w.segment->region.base, w.segment->region.bytes, PROT_READ | PROT_WRITE);
}
static void watch_begin(host *h, table_segment_kind kind, const fkv_extent *old, const fkv_extent *new) {
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    w = (watch){ .h = h, .old = old, .new = new };
    for (int i = h->count - 1; i >= 0; i--)
        if (h->segments[i].kind == kind) w.segment = &h->segments[i]; /* the first is the only one in use */
    protect(PROT_READ);
}
static void watch_end(void) {
    CHECK_EQ(w.faults, 1);
    signal(SIGSEGV, SIG_DFL);
}
static const fkv_extent *extent_of_key(host *h, const char *key) {
    table_entry e;
    CHECK_EQ(host_get(h, key, strlen(key), &e), FKV_OK);
    return (const fkv_extent *)(const void *)(e.key - FKV_EXTENT_HEADER);
}
static table_prepared prepare(host *h, table_op_kind kind, const char *key, const char *value) {
    table_op op = host_op(h, kind, key, strlen(key), value, strlen(value));
    table_prepared p;
    uint64_t present;
    table_busy why;
    CHECK_EQ(table_prepare(h->t, &op, &p, &present, &why), FKV_OK);
    return p;
}

TEST(a_new_extent_is_pending_before_anything_else_of_it_changes) {
    host *h = host_open(4 << 20, 0, 0);
    for (int i = 0; i < 4; i++) {
        host_put(h, "k", "a value");
        host_drain(h);
    }
    watch_begin(h, TABLE_HEAP, NULL, NULL);
    table_prepared p = prepare(h, TABLE_PUT, "k", "another");
    watch_end();
    CHECK(w.first_store == (const uint8_t *)&p.extent->state);
    CHECK(p.extent->state == FKV_EXTENT_PENDING && p.extent->version == p.version);
    table_commit(h->t, &p);
    host_close(h);
}
TEST(a_replacement_kills_the_old_extent_then_stores_the_slot_then_takes_effect) {
    host *h = host_open(4 << 20, 0, 0);
    host_put(h, "k", "a value");
    const fkv_extent *old = extent_of_key(h, "k");
    table_prepared p = prepare(h, TABLE_PUT, "k", "another");
    CHECK(old->state == FKV_EXTENT_LIVE && p.extent->state == FKV_EXTENT_PENDING);
    watch_begin(h, TABLE_INDEX, old, p.extent);
    table_commit(h->t, &p);
    watch_end();
    CHECK(w.old_state == FKV_EXTENT_DEAD && w.new_state == FKV_EXTENT_PENDING);
    CHECK(p.extent->state == FKV_EXTENT_LIVE);
    host_close(h);
}
TEST(an_insert_stores_the_slot_before_it_takes_effect) {
    host *h = host_open(4 << 20, 0, 0);
    table_prepared p = prepare(h, TABLE_PUT, "k", "a value");
    watch_begin(h, TABLE_INDEX, NULL, p.extent);
    table_commit(h->t, &p);
    watch_end();
    CHECK(w.new_state == FKV_EXTENT_PENDING && p.extent->state == FKV_EXTENT_LIVE);
    host_close(h);
}
TEST(a_delete_kills_the_extent_before_it_clears_the_slot) {
    host *h = host_open(4 << 20, 0, 0);
    host_put(h, "k", "a value");
    const fkv_extent *old = extent_of_key(h, "k");
    table_prepared p = prepare(h, TABLE_DELETE, "k", "");
    CHECK(old->state == FKV_EXTENT_LIVE);
    watch_begin(h, TABLE_INDEX, old, NULL);
    table_commit(h->t, &p);
    watch_end();
    CHECK_EQ(w.old_state, FKV_EXTENT_DEAD);
    host_close(h);
}
TEST(an_expired_entry_is_killed_before_its_slot_is_cleared) {
    host *h = host_open(4 << 20, 0, 0);
    table_op op = host_op(h, TABLE_PUT, "k", 1, "v", 1);
    op.expiry_ms = h->wall_ms + 1;
    table_busy why;
    CHECK_EQ(host_do(h, &op, NULL, &why), FKV_OK);
    watch_begin(h, TABLE_INDEX, extent_of_key(h, "k"), NULL);
    for (int i = 0; i < 100 && w.faults == 0; i++) host_pass(h, 1000000000);
    watch_end();
    CHECK_EQ(w.old_state, FKV_EXTENT_DEAD);
    host_close(h);
}
/* Else a reader by a kept location and one by the index could take two extents of one key for LIVE at the same time. */
TEST(an_entry_that_moves_dies_where_it_was_before_it_lives_where_it_is) {
    host *h = host_open(4 << 20, 0, 0);
    host_put(h, "k", "a value");
    const fkv_extent *old = extent_of_key(h, "k");
    host_add(h, TABLE_HEAP, 256 << 10);
    const fkv_extent *new = (const fkv_extent *)(const void *)h->segments[h->count - 1].region.base;
    CHECK(table_evacuate_start(h->t));
    watch_begin(h, TABLE_INDEX, old, new);
    int budget = 1000000;
    table_evacuate_step(h->t, &budget);
    watch_end();
    CHECK(w.old_state == FKV_EXTENT_DEAD && w.new_state == FKV_EXTENT_PENDING);
    CHECK(old->state == FKV_EXTENT_DEAD && new->state == FKV_EXTENT_LIVE);
    CHECK(extent_of_key(h, "k") == new);
    host_close(h);
}

/* ---- readers ---- */
enum { PAGE = 4096 };
/* two; one is protected until the first load from it, which is when `meanwhile` happens */
static uint8_t *pages;
static const uint8_t *first_load;
static void (*meanwhile)(void);
static void on_load(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)context;
    if (first_load) abort();
    first_load = info->si_addr;
    mprotect(pages, 2 * PAGE, PROT_READ | PROT_WRITE);
    if (meanwhile) meanwhile();
}
static void open_pages(void) {
    pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
}
static void load_begin(int page, void (*what)(void)) {
    struct sigaction action = { .sa_sigaction = on_load, .sa_flags = SA_SIGINFO };
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    first_load = NULL;
    meanwhile = what;
    CHECK_EQ(mprotect(pages + page * PAGE, PAGE, PROT_NONE), 0);
}
static void load_end(void) {
    signal(SIGSEGV, SIG_DFL);
    CHECK(first_load != NULL);
}
TEST(a_reader_loads_the_version_before_the_state) {
    open_pages();
    fkv_wanted want = { "k", 1, 0, 1 };
    fkv_found found;
    load_begin(0, NULL);
    CHECK_EQ(fkv_extent_copy(pages, 64, &want, NULL, 0, &found), FKV_READ_AGAIN);
    load_end();
    CHECK(first_load == pages + offsetof(fkv_extent, version));
    munmap(pages, 2 * PAGE);
}
/* Word 0 ends the protected page, the rest of the bucket lies behind it and changes when word 0 is loaded. */
static void change_second_page(void) { memset(pages + PAGE, 0xff, PAGE); }
TEST(a_reader_loads_word_0_of_a_bucket_last) {
    open_pages();
    fkv_bucket *b = (fkv_bucket *)(void *)(pages + PAGE - 8), copy;
    b->word0 = fkv_bucket_word0(7, 3, 0);
    for (int i = 0; i < FKV_SLOTS; i++) b->slot[i] = 100 + (uint64_t)i;
    load_begin(0, change_second_page);
    fkv_bucket_copy(b, &copy);
    load_end();
    CHECK(first_load == (const uint8_t *)&b->word0 && b->slot[0] == UINT64_MAX);
    CHECK_EQ(copy.word1, 0);
    for (int i = 0; i < FKV_SLOTS; i++) CHECK_EQ(copy.slot[i], 100 + i);
    munmap(pages, 2 * PAGE);
}
/* The header and key of an extent lie on the first page, most of its value on the second: when the value is copied, the
 * header has been looked at, and something happens to the extent. */
static fkv_extent *straddling(void) { return (fkv_extent *)(void *)(pages + PAGE - 64); }
static void write_straddling(uint64_t version, int fill) {
    fkv_extent *e = straddling();
    *e = (fkv_extent){ .state = FKV_EXTENT_LIVE, .version = version, .tag = 1, .value_bytes = 100, .key_bytes = 16 };
    memcpy((uint8_t *)e + FKV_EXTENT_HEADER, "sixteen bytes ab", 16);
    memset((uint8_t *)e + FKV_EXTENT_HEADER + 16, fill, 100);
    e->crc = fkv_extent_crc(e, 16, 100);
}
static void it_dies(void) { straddling()->state = FKV_EXTENT_DEAD; }
static void it_is_reused(void) { write_straddling(2, 'b'); }
static fkv_read copy_while(void (*what)(void)) {
    uint8_t value[100];
    fkv_wanted want = { "sixteen bytes ab", 16, 0, 1 };
    fkv_found found;
    write_straddling(1, 'a');
    load_begin(1, what);
    fkv_read r = fkv_extent_copy(straddling(), 160, &want, value, sizeof value, &found);
    load_end();
    return r;
}
TEST(a_copy_during_which_the_extent_died_or_was_reused_is_refused) {
    open_pages();
    CHECK_EQ(copy_while(NULL), FKV_READ_OK);
    CHECK_EQ(copy_while(it_dies), FKV_READ_AGAIN);
    CHECK_EQ(copy_while(it_is_reused), FKV_READ_AGAIN); /* live again, and of the same key: only the version tells */
    munmap(pages, 2 * PAGE);
}

int main(int argc, char **argv) {
    RUN(a_new_extent_is_pending_before_anything_else_of_it_changes);
    RUN(a_replacement_kills_the_old_extent_then_stores_the_slot_then_takes_effect);
    RUN(an_insert_stores_the_slot_before_it_takes_effect);
    RUN(a_delete_kills_the_extent_before_it_clears_the_slot);
    RUN(an_expired_entry_is_killed_before_its_slot_is_cleared);
    RUN(an_entry_that_moves_dies_where_it_was_before_it_lives_where_it_is);
    RUN(a_reader_loads_the_version_before_the_state);
    RUN(a_reader_loads_word_0_of_a_bucket_last);
    RUN(a_copy_during_which_the_extent_died_or_was_reused_is_refused);
    return check_end(argc, argv);
}
