/* failing_disk.c: for LD_PRELOAD; makes operations of the disk fail, or take their time, so that servers are seen to
 * end, or to go on.
 *   FARKV_FAILING_DISK=OPERATION:ERRNO:PART   write, sync or read, of files that have PART in their path
 *   FARKV_FAILING_DISK=slow:MS:PART           nothing fails; each sync of such a file takes so much longer
 *   FARKV_FAILING_DISK_WHEN=FILE              only while there is such a file
 * A write that fails has written nothing. A sync that fails does so once for each descriptor, as Linux has it: what it
 * was about is lost there, and the next one succeeds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 4096 };
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_pread)(int, void *, size_t, off_t);
static int (*real_fdatasync)(int);
static int (*real_fsync)(int);
static char operation[16], part[256];
static const char *when;
static int error;
static atomic_bool reported[FILES];

__attribute__((constructor)) static void begin(void) {
    real_pwrite = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
    real_pread = (ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
    real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    const char *what = getenv("FARKV_FAILING_DISK");
    when = getenv("FARKV_FAILING_DISK_WHEN");
    if (what && sscanf(what, "%15[^:]:%d:%255s", operation, &error, part) != 3) abort();
}

static bool fails(const char *what, int file) {
    char name[64], path[4096];
    if (error == 0 || !when || strcmp(what, operation) != 0 || access(when, F_OK) != 0) return false;
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t n = readlink(name, path, sizeof path - 1);
    if (n < 0) return false;
    path[n] = 0;
    return strstr(path, part) != NULL;
}
static bool sync_fails(int file) {
    if (fails("slow", file)) nanosleep(&(struct timespec){ error / 1000, error % 1000 * 1000000L }, NULL);
    return file >= 0 && file < FILES && fails("sync", file) && !atomic_exchange(&reported[file], true);
}
static int failed(void) {
    errno = error;
    return -1;
}

ssize_t pwrite(int file, const void *from, size_t count, off_t at) {
    return fails("write", file) ? failed() : real_pwrite(file, from, count, at);
}
ssize_t pwrite64(int file, const void *from, size_t count, off_t at) { return pwrite(file, from, count, at); }
ssize_t pread(int file, void *to, size_t count, off_t at) {
    return fails("read", file) ? failed() : real_pread(file, to, count, at);
}
ssize_t pread64(int file, void *to, size_t count, off_t at) { return pread(file, to, count, at); }
int fdatasync(int file) { return sync_fails(file) ? failed() : real_fdatasync(file); }
int fsync(int file) { return sync_fails(file) ? failed() : real_fsync(file); }
