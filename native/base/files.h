/* files.h: memory files that the regions of one table share, so that a table of thousands of segments takes a dozen
 * descriptors.
 *
 *      0                                           carved                                    the file's end
 *      +----------+--------+------------+----------+-----------------------------------------+
 *      |  region  |  hole  |   region   |  region  |  no pages yet                           |
 *      +----------+--------+------------+----------+-----------------------------------------+
 *
 * A file is as large from its first day on as it will ever be, and sealed at once (region.h): what is not carved yet
 * has no pages and costs nothing. A region that is given back leaves a hole. The seal that keeps everybody else from
 * writing, F_SEAL_FUTURE_WRITE, also forbids its maker to punch that hole out of the file, so its pages stay until the
 * file's last region is given back. Therefore the next regions are made in holes first, in those of the fullest file,
 * and who wants memory back empties the emptiest file (table/evacuate.c), which its regions name.
 *
 * Whoever is handed the file to map one region can map the others, also later ones: all are of one table, and so of one
 * tenant. Once somebody of it is not to see later ones, these are made in other files (fkv_files_renew).
 * Regions of reserved huge pages have files of their own, for the system reserves the pages of all that is mapped.
 * Thread-safe.
 */
#ifndef FARKV_BASE_FILES_H
#define FARKV_BASE_FILES_H
#include "region.h"

typedef struct fkv_files fkv_files;

/* NULL: no memory. A file has room for `parts` regions like its first, and at least `least` bytes. */
fkv_files *fkv_files_make(const char *name, uint32_t parts, uint64_t least);
/* Its regions may be given back later. */
void fkv_files_leave(fkv_files *f);

/* A region of zeroes, all of whose pages are there; flags as fkv_region_alloc. 0 or a negative errno. -EMFILE, also
 * where the last descriptors are left to others. *fresh: bytes of pages that are there more than before, also where it
 * fails. */
int fkv_files_take(fkv_files *f, size_t bytes, int flags, fkv_region *out, uint64_t *fresh);
/* Bytes of pages that fkv_files_take would have to ask the system for. */
uint64_t fkv_files_lack(fkv_files *f, size_t bytes);
/* Bytes of pages that went back to the system. */
uint64_t fkv_files_give(fkv_region *r);
/* No more regions are made in the files of now: somebody who may know of no later region has one of them. */
void fkv_files_renew(fkv_files *f);
/* Bytes of pages that no region has. */
uint64_t fkv_files_holes(const fkv_files *f);

/* How many files the process has. */
uint32_t fkv_files_open(void);

/* ---- what is known of the file of a region that is not given back ---- */

/* Bytes of the file that have pages. */
uint64_t fkv_file_carved(const fkv_file *f);
/* A number that whoever gives it back keeps with it, 0 at first. */
uint64_t *fkv_file_note(fkv_file *f);
/* Whether no more regions are to be made in it: it is being emptied. */
void fkv_file_close(fkv_file *f, bool closed);

#endif
