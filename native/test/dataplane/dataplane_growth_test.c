/* dataplane_growth_test.c: memory that shards ask for while they grow: huge pages are made on a thread of their own,
 * what takes no time does not wait for them, and what is being made counts against the bound.
 *
 * What the kernel says of huge pages is this file's: memfd_create has no reserved ones, madvise says that it made some,
 * at once or when the test lets it, or that it could not. So nothing here depends on what the machine has. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "raw_client.h"
#include "../../storage/memory.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MFD_HUGETLB
#define MFD_HUGETLB 4U
#endif

enum { SHARD_BYTES = 16 << 20, VALUE_BYTES = 1000, PUTS_MOST = 20000 };

static enum { AT_ONCE, WHEN_LET, NEVER } huge; /* of the thread for huge pages; under the lock, as is what follows */
static int making, refused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void set_huge(int to) {
    pthread_mutex_lock(&lock);
    huge = to;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}
static int now_of(const int *count) {
    pthread_mutex_lock(&lock);
    int n = *count;
    pthread_mutex_unlock(&lock);
    return n;
}

static int collapse(void) {
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (strcmp(name, "farkv-huge") != 0) return 0;
    pthread_mutex_lock(&lock);
    making++;
    while (huge == WHEN_LET) pthread_cond_wait(&changed, &lock);
    bool good = huge == AT_ONCE;
    refused += !good;
    pthread_mutex_unlock(&lock);
    if (good) return 0;
    errno = ENOMEM;
    return -1;
}
int madvise(void *base, size_t bytes, int advice) {
    return advice == MADV_COLLAPSE ? collapse() : (int)syscall(SYS_madvise, base, bytes, advice);
}
int memfd_create(const char *name, unsigned flags) {
    if (!(flags & MFD_HUGETLB)) return (int)syscall(SYS_memfd_create, name, flags);
    errno = ENOSPC;
    return -1;
}

static rig r;
static raw c;

static void up(int how, uint64_t memory_bytes) {
    set_huge(how);
    making = refused = 0;
    rig_init(&r, FAB_SHM, NULL);
    r.config.huge_pages = DATAPLANE_HUGE_REQUIRE;
    r.config.memory_bytes = memory_bytes;
    r.config.wait_ms = 20;
    rig_up(&r, 1, SHARD_BYTES);
    raw_up(&c, &r, 1);
}
static void down(void) {
    set_huge(AT_ONCE);
    raw_down(&c);
    rig_down(&r);
}
/* The number's own key in the shard. */
static fkv_status put(int i) {
    static const uint8_t value[VALUE_BYTES];
    char key[32];
    int salt = 0;
    do snprintf(key, sizeof key, "key %d %d", i, salt++);
    while (raw_shard_of(0, key, strlen(key)) != 0);
    return raw_put(&c, key, value, sizeof value);
}
/* PUTs until `count` has risen; the last ones may be told that there is no memory now. */
static int fill(const int *count) {
    int i = 0, before = now_of(count);
    for (; now_of(count) == before && i < PUTS_MOST; i++) {
        fkv_status s = put(i);
        CHECK(s == FKV_OK || s == FKV_BUSY || s == FKV_TABLE_FULL || s == FKV_NO_MEMORY);
    }
    CHECK(i < PUTS_MOST);
    return i;
}

TEST(while_huge_pages_are_made_for_one_shard_others_get_their_memory) {
    up(WHEN_LET, 0);
    int n = fill(&making);
    CHECK_EQ(rig_open_shard(&r, 1, 0, SHARD_BYTES, NULL), FKV_OK);
    rig_close(&r, 1);
    CHECK_EQ(now_of(&making), 1); /* still */
    set_huge(AT_ONCE);
    for (int i = 0; i < PUTS_MOST && put(n) != FKV_OK; i++) {}
    CHECK_EQ(put(n), FKV_OK);
    down();
}

TEST(changes_that_come_before_their_memory_are_counted_with_the_longest_wait) {
    up(WHEN_LET, 0);
    dataplane_stats *s = rig_stats(&r);
    CHECK(s->shard[0].memory_waits == 0 && s->shard[0].memory_wait_max_ns == 0);
    free(s);
    int n = fill(&making);
    for (int i = 0; put(n) != FKV_BUSY; i++, n++) CHECK(i < PUTS_MOST);
    s = rig_stats(&r);
    CHECK(s->shard[0].memory_waits > 0 && s->shard[0].memory_wait_max_ns >= 20000000);
    free(s);
    down();
}

static uint64_t registered(void) {
    dataplane_stats *s = rig_stats(&r);
    uint64_t bytes = s->shard[0].table.index_bytes + s->shard[0].table.heap_bytes;
    free(s);
    return bytes;
}
/* A table that was refused memory asks again after a tenth of a second. */
TEST(what_could_not_be_made_of_huge_pages_counts_no_longer_against_the_bound) {
    up(NEVER, 3 * FKV_HUGE_PAGE); /* the first two and one more */
    int n = fill(&refused);
    set_huge(AT_ONCE);
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    for (; registered() < 3 * FKV_HUGE_PAGE; n++) {
        put(n);
        CHECK(fkv_now_ns() < until);
    }
    CHECK_EQ(registered(), 3 * FKV_HUGE_PAGE);
    down();
}

/* ---- descriptors ---- */

static struct rlimit limit;
/* The process may have `more` descriptors than it has. */
static void allow_descriptors(int more) {
    int lowest = dup(0);
    CHECK(lowest >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
    close(lowest);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)(lowest + more), limit.rlim_max }), 0);
}
static void allow_all_descriptors(void) { CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0); }

/* A table that was refused memory asks again after a tenth of a second. */
TEST(without_descriptors_for_segments_changes_are_told_that_the_system_is_at_fault) {
    /* of small pages: a memory file of huge ones has more room than the shard */
    set_huge(AT_ONCE);
    rig_init(&r, FAB_SHM, NULL);
    r.config.wait_ms = 20;
    rig_up(&r, 1, SHARD_BYTES);
    raw_up(&c, &r, 1);
    allow_descriptors(0);
    int i = 0;
    fkv_status s;
    do s = put(i++);
    while ((s == FKV_OK || s == FKV_BUSY) && i < PUTS_MOST);
    CHECK_EQ(s, FKV_NO_MEMORY);
    dataplane_stats *told = rig_stats(&r);
    CHECK(told->descriptors_missed > 0);
    free(told);
    allow_all_descriptors();
    uint64_t until = fkv_now_ns() + check_patience_ms() * 1000000u;
    while (put(i) != FKV_OK) CHECK(fkv_now_ns() < until);
    down();
}

static int high_socket(int above, int host) {
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000u + (uint32_t)host) };
    int low = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = fcntl(low, F_DUPFD_CLOEXEC, above);
    close(low);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&own, sizeof own) == 0);
    return fd;
}

/* Beyond the limit lie the other ends, which are this process's too. */
TEST(clients_that_say_nothing_do_not_take_the_descriptors_of_segments) {
    enum { LIMIT = 400, STRANGERS = 600, PUTS = 2000 }; /* for these a quarter of LIMIT is enough segments */
    static int fd[STRANGERS];
    char port[16] = "";
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    set_huge(AT_ONCE);
    rig_init(&r, FAB_TCP, NULL);
    r.config.wait_ms = 20;
    for (int i = 0; i < STRANGERS; i++) fd[i] = high_socket(LIMIT, 1 + i % 2);
    allow_descriptors(0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ LIMIT, limit.rlim_max }), 0);
    rig_up(&r, 1, SHARD_BYTES);
    raw_up(&c, &r, 1);
    snprintf(port, sizeof port, "%s", strrchr(dataplane_address(r.d, 0), ':') + 1);
    a.sin_port = htons((uint16_t)atoi(port));
    for (int i = 0; i < STRANGERS; i++) CHECK_EQ(connect(fd[i], (struct sockaddr *)&a, sizeof a), 0);
    /* the responder takes the newest of them only after the others */
    struct pollfd first = { .fd = fd[0], .events = POLLIN };
    CHECK_EQ(poll(&first, 1, (int)check_patience_ms()), 1);
    for (int i = 0; i < PUTS; i++) {
        fkv_status s;
        while ((s = put(i)) == FKV_BUSY) {}
        CHECK_EQ(s, FKV_OK);
    }
    allow_all_descriptors();
    for (int i = 0; i < STRANGERS; i++) close(fd[i]);
    down();
}

TEST(after_the_kernel_took_long_for_huge_pages_it_is_left_alone_for_a_while) {
    const uint64_t MS = 1000000;
    static dataplane d;
    d.c.huge_pages = DATAPLANE_HUGE_AUTO;
    CHECK(memory_huge_now(&d, 0));
    memory_huge_took(&d, 1000 * MS, 4 * MS);
    CHECK(memory_huge_now(&d, 1000 * MS));
    memory_huge_took(&d, 1000 * MS, 40 * MS);
    CHECK(!memory_huge_now(&d, 1000 * MS) && !memory_huge_now(&d, 1399 * MS));
    CHECK(memory_huge_now(&d, 1400 * MS));
    d.c.huge_pages = DATAPLANE_HUGE_REQUIRE;
    CHECK(memory_huge_now(&d, 1000 * MS));
}

int main(int argc, char **argv) {
    RUN(while_huge_pages_are_made_for_one_shard_others_get_their_memory);
    RUN(changes_that_come_before_their_memory_are_counted_with_the_longest_wait);
    RUN(what_could_not_be_made_of_huge_pages_counts_no_longer_against_the_bound);
    RUN(without_descriptors_for_segments_changes_are_told_that_the_system_is_at_fault);
    RUN(clients_that_say_nothing_do_not_take_the_descriptors_of_segments);
    RUN(after_the_kernel_took_long_for_huge_pages_it_is_left_alone_for_a_while);
    return check_end(argc, argv);
}
