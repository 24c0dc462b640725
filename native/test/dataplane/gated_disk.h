/* gated_disk.h: a disk in memory (memory_disk.h) for several threads, whose syncs a test can hold up: nothing gets on the
 * disk until it lets them go. */
#ifndef FARKV_TEST_GATED_DISK_H
#define FARKV_TEST_GATED_DISK_H
#include <pthread.h>
#include "../log/memory_disk.h"

typedef struct gated_disk {
    disk table;
    memory_disk under;
    pthread_mutex_t lock; /* of what follows and of `under` */
    pthread_cond_t cond;
    bool holds;
    uint32_t passes;  /* of them: may go on, 0 or 1 */
    uint32_t waiting; /* syncs that are held up */
    const char *refused;
    int directory; /* what its next sync answers */
} gated_disk;

void gated_disk_init(gated_disk *d, uint64_t seed);
void gated_disk_free(gated_disk *d);
/* From now on syncs wait, or no longer. */
void gated_disk_hold(gated_disk *d, bool holds);
void gated_disk_pass(gated_disk *d); /* one of those that wait, or the next */
uint32_t gated_disk_waiting(gated_disk *d);
/* The power goes off: every operation fails from now on, those that wait too. Back with gated_disk_on, once nobody uses
 * the disk. */
void gated_disk_off(gated_disk *d);
void gated_disk_on(gated_disk *d);
/* There is no space for new files from now on, or there is. */
void gated_disk_fill(gated_disk *d, bool full);
/* There is no space for files whose names begin so; NULL: there is. */
void gated_disk_refuse(gated_disk *d, const char *beginning);
void gated_disk_fail_directory(gated_disk *d, int error); /* its next sync fails so */
void gated_disk_fail(gated_disk *d, int error);           /* the next operation fails so */
#endif
