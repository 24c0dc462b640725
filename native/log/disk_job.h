/* disk_job.h: work on the disk that goes from its owner's thread to a helper, and home again.
 *
 * For: native/log. Not for: what is done there.
 * A job is the helper's from disk_job_post to disk_job_home, then its owner's; only `under_way` is always the owner's. */
#ifndef FARKV_LOG_DISK_JOB_H
#define FARKV_LOG_DISK_JOB_H
#include "../base/helper.h"
#include "disk.h"

/* An operation of the disk that failed, for a message. */
typedef struct disk_failure {
    const char *operation; /* "write" */
    char file[DISK_NAME_MAX];
    int error; /* a negative errno */
} disk_failure;
void disk_failed(disk_failure *f, const char *operation, const char *file, int error);

typedef struct disk_job {
    job job;
    mailbox *home;
    disk *disk;
    bool under_way;
    disk_failure failure;
} disk_job;

void disk_job_post(disk_job *j, disk *d, mailbox *home, helper *to, void (*run)(job *));
/* On the helper's thread, at the end. */
void disk_job_home(disk_job *j, void (*run)(job *));
/* Notes the operation if it failed: the first of the job that did is the last. */
bool disk_job_did(disk_job *j, const char *operation, const char *file, int result);

#endif
