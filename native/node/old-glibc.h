/* old-glibc.h: included before every file of the addon, so that what is built on this machine loads with glibc 2.28,
 * the oldest that Node.js 20 runs with. glibc 2.32 to 2.34 gave functions that had long been there a new version, when
 * libpthread and libdl became part of libc; a program that is linked there asks for it. The old versions stay in every
 * glibc. Which are needed: objdump -T build/Release/farkv.node; scripts/prebuild.mjs refuses anything newer. */
#ifndef FARKV_OLD_GLIBC_H
#define FARKV_OLD_GLIBC_H
#include <features.h>
#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#include <sys/stat.h>

#define OLD(function, version) __asm__(".symver " #function "," #function "@GLIBC_" version)
#ifdef __x86_64__
#define OLDEST          "2.2.5"
#define OLDEST_SETCLOCK "2.3.3"
#define OLDEST_SETNAME  "2.12"
enum { OLD_STAT = 1 };
#else
#define OLDEST          "2.17"
#define OLDEST_SETCLOCK OLDEST
#define OLDEST_SETNAME  OLDEST
enum { OLD_STAT = 0 };
#endif
OLD(dlopen, OLDEST);
OLD(dlsym, OLDEST);
OLD(pthread_attr_setstacksize, OLDEST);
OLD(pthread_condattr_setclock, OLDEST_SETCLOCK);
OLD(pthread_create, OLDEST);
OLD(pthread_join, OLDEST);
OLD(pthread_kill, OLDEST);
OLD(pthread_once, OLDEST);
OLD(pthread_rwlock_destroy, OLDEST);
OLD(pthread_rwlock_init, OLDEST);
OLD(pthread_rwlock_rdlock, OLDEST);
OLD(pthread_rwlock_unlock, OLDEST);
OLD(pthread_rwlock_wrlock, OLDEST);
OLD(pthread_rwlockattr_destroy, OLDEST);
OLD(pthread_rwlockattr_init, OLDEST);
OLD(pthread_rwlockattr_setkind_np, OLDEST);
OLD(pthread_setname_np, OLDEST_SETNAME);
OLD(pthread_sigmask, OLDEST);

/* These had other names: functions of the header that called the ones below. */
OLD(__fxstat64, OLDEST);
OLD(__lxstat64, OLDEST);
extern int __fxstat64(int version, int fd, struct stat *out);
extern int __lxstat64(int version, const char *path, struct stat *out);
#undef fstat
#undef lstat
#define fstat(fd, out)   __fxstat64(OLD_STAT, fd, out)
#define lstat(path, out) __lxstat64(OLD_STAT, path, out)
#undef OLD
#endif
#endif
