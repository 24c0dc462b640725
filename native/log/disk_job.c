/* disk_job.c: see disk_job.h. */
#include "disk_job.h"
#include <stdio.h>

void disk_failed(disk_failure *f, const char *operation, const char *file, int error) {
    *f = (disk_failure){ .operation = operation, .error = error };
    snprintf(f->file, sizeof f->file, "%s", file);
}

void disk_job_post(disk_job *j, disk *d, mailbox *home, helper *to, void (*run)(job *)) {
    *j = (disk_job){ .job.run = run, .home = home, .disk = d, .under_way = true };
    helper_post(to, &j->job);
}
void disk_job_home(disk_job *j, void (*run)(job *)) {
    j->job.run = run;
    mailbox_post(j->home, &j->job);
}

bool disk_job_did(disk_job *j, const char *operation, const char *file, int result) {
    if (result != 0) disk_failed(&j->failure, operation, file, result);
    return result == 0;
}
