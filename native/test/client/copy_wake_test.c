/* A copy and the owner's thread that tells it that an import is done: the flag may be seen before the ring that follows
 * it. The order is made to happen: write() is this file's own, and the ring is held up in it until the copy's thread
 * waits for it, or goes on without. */
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include "../../client/copy_page.c"
#include "../check.h"

static shard_copy copy;
static pthread_t owner;
static atomic_int copying_thread, ringing, rung, went_on;

/* 'S': it sleeps, which it does for a lock only. */
static bool sleeps(int thread) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *f = fopen(path, "r");
    CHECK(f && fgets(line, sizeof line, f));
    fclose(f);
    return strrchr(line, ')')[2] == 'S';
}

ssize_t write(int fd, const void *data, size_t bytes) {
    if (fd == copy.wake.fd && atomic_load(&copying_thread)) {
        atomic_store(&ringing, 1);
        while (!atomic_load(&went_on) && !sleeps(atomic_load(&copying_thread))) sched_yield();
        atomic_store(&rung, 1);
    }
    return syscall(SYS_write, fd, data, bytes);
}

static void *tell(void *arg) {
    imported(arg, FKV_OK, NULL);
    return NULL;
}

void dataplane_import(dataplane *d, uint32_t shard, const uint8_t *entries, uint32_t bytes, dataplane_done done,
                      void *ctx) {
    (void)d, (void)shard, (void)entries, (void)bytes;
    CHECK(done == imported);
    CHECK_EQ(pthread_create(&owner, NULL, tell, ctx), 0);
    while (!atomic_load(&ringing)) sched_yield();
}

/* Beside the one above, what is called there: no copy comes so far here. */
void dataplane_follow_copy(dataplane *d, uint32_t shard, const dataplane_join *at,
                           const dataplane_owner_address *address, uint32_t addresses, dataplane_done done, void *ctx) {
    (void)d, (void)shard, (void)at, (void)address, (void)addresses, (void)done, (void)ctx;
    check_failed(__FILE__, __LINE__, "not called");
}

void dataplane_compare(dataplane *d, uint32_t shard, const dataplane_page *p, dataplane_done done, void *ctx) {
    (void)d, (void)shard, (void)p, (void)done, (void)ctx;
    check_failed(__FILE__, __LINE__, "not called");
}

static void *hand_over_once(void *arg) {
    atomic_store(&copying_thread, (int)syscall(SYS_gettid));
    CHECK_EQ(hand_over(arg), FKV_OK);
    CHECK(atomic_load(&rung));
    atomic_store(&went_on, 1);
    return NULL;
}

TEST(a_copy_does_not_end_while_it_is_rung_for) {
    pthread_t thread;
    pthread_mutex_init(&copy.lock, NULL);
    CHECK_EQ(mailbox_open(&copy.wake), 0);
    copy.batch_bytes = 1;
    CHECK_EQ(pthread_create(&thread, NULL, hand_over_once, &copy), 0);
    pthread_join(thread, NULL);
    pthread_join(owner, NULL);
    mailbox_close(&copy.wake);
    pthread_mutex_destroy(&copy.lock);
}

int main(int argc, char **argv) {
    RUN(a_copy_does_not_end_while_it_is_rung_for);
    return check_end(argc, argv);
}
