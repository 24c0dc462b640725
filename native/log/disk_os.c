/* disk_os.c: see disk.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../base/list.h"
#include "disk.h"

static int directory_of(disk *d) { return LIST_OF(d, disk_os, table)->directory; }
static int outcome(int result) { return result < 0 ? -errno : result; }

/* Takes the descriptor. A pipe has no end, and a device may have none. */
static int regular(int file) {
    if (file < 0) return -errno;
    struct stat s;
    int e = fstat(file, &s) != 0 ? -errno : S_ISREG(s.st_mode) ? 0 : -ENXIO;
    if (e != 0) close(file);
    return e != 0 ? e : file;
}

/* After a sync that failed, the page cache may have what the disk has not, and take it for written. It is not to be found
 * there by the next start. */
static void drop_clean_pages(int file) { posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED); }

/* O_NONBLOCK: to open a pipe would wait for its other end. Of a file it changes nothing. A file system without O_DIRECT
 * may have made the file before it says so. */
static int os_open(disk *d, const char *name, disk_mode mode) {
    int at = directory_of(d);
    if (mode == DISK_CREATE && unlinkat(at, name, 0) != 0 && errno != ENOENT) return -errno;
    int how = (mode == DISK_READ ? O_RDONLY : O_WRONLY) | O_CLOEXEC | O_NONBLOCK;
    int create = mode == DISK_CREATE ? O_CREAT : 0;
    int file = openat(at, name, how | create | (create ? O_EXCL : 0) | O_DIRECT, 0600);
    if (file < 0 && errno == EINVAL) {
        file = openat(at, name, how | create, 0600);
        if (file >= 0 && mode == DISK_READ) drop_clean_pages(file);
    }
    return regular(file);
}
static void os_close(disk *d, int file) {
    (void)d;
    close(file);
}
static int os_size(disk *d, int file, uint64_t *bytes) {
    (void)d;
    struct stat s;
    if (fstat(file, &s) != 0) return -errno;
    *bytes = (uint64_t)s.st_size;
    return 0;
}
/* Whether to try again, through the page cache from now on. A device with blocks larger than DISK_BLOCK refuses what goes
 * past it, when it is asked to read or write and not before; then nothing was done. */
static bool through_cache(int file) {
    int how = errno == EINVAL ? fcntl(file, F_GETFL) : -1;
    if (how < 0 || !(how & O_DIRECT) || fcntl(file, F_SETFL, how & ~O_DIRECT) != 0) return false;
    if ((how & O_ACCMODE) == O_RDONLY) drop_clean_pages(file);
    return true;
}
static int os_read(disk *d, int file, uint64_t at, void *to, uint32_t bytes) {
    (void)d;
    for (uint32_t done = 0; done < bytes;) {
        ssize_t n = pread(file, (uint8_t *)to + done, bytes - done, (off_t)(at + done));
        if (n < 0 && (errno == EINTR || through_cache(file))) continue;
        if (n <= 0) return n < 0 ? -errno : -ENODATA;
        done += (uint32_t)n;
    }
    return 0;
}
static int os_write(disk *d, int file, uint64_t at, const void *from, uint32_t bytes) {
    (void)d;
    for (uint32_t done = 0; done < bytes;) {
        ssize_t n = pwrite(file, (const uint8_t *)from + done, bytes - done, (off_t)(at + done));
        if (n < 0 && (errno == EINTR || through_cache(file))) continue;
        if (n <= 0) return n < 0 ? -errno : -EIO;
        done += (uint32_t)n;
    }
    return 0;
}
static int os_sync(disk *d, int file) {
    (void)d;
    return outcome(fdatasync(file));
}
static int os_rename(disk *d, const char *from, const char *to) {
    return outcome(renameat(directory_of(d), from, directory_of(d), to));
}
static int os_remove(disk *d, const char *name) { return outcome(unlinkat(directory_of(d), name, 0)); }
static int os_sync_directory(disk *d) { return outcome(fsync(directory_of(d))); }

static int os_list(disk *d, void (*each)(void *arg, const char *name), void *arg) {
    int again = openat(directory_of(d), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* closedir closes it */
    if (again < 0) return -errno;
    DIR *dir = fdopendir(again);
    if (!dir) {
        int e = -errno;
        close(again);
        return e;
    }
    errno = 0;
    for (struct dirent *entry; (entry = readdir(dir)); errno = 0) each(arg, entry->d_name);
    int e = -errno;
    closedir(dir);
    return e;
}

int disk_os_open(disk_os *d, const char *path) {
    d->table = (disk){ .open = os_open,
                       .close = os_close,
                       .size = os_size,
                       .read = os_read,
                       .write = os_write,
                       .sync = os_sync,
                       .rename = os_rename,
                       .remove = os_remove,
                       .sync_directory = os_sync_directory,
                       .list = os_list };
    d->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return d->directory < 0 ? -errno : 0;
}
void disk_os_close(disk_os *d) { close(d->directory); }
