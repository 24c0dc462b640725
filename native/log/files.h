/* files.h: the files of a log that is written: made for the future, used again, removed. Private to native/log.
 *
 * Two files are ahead, with their names, heads and zeros, so that to go on in the next one costs nothing. A file that was
 * given back is set aside, as soon as nothing else is to be done, and used again under a new name and head:
 *   1. rename to a spare name, sync the directory     from here on nobody reads it
 *   2. write the head, sync
 *   3. rename to the new name, sync the directory
 * Invariants:
 * 1. A file that has a number has a whole head on the disk, of that number. So a bad head is damage.
 * 2. Once a batch was synced, there is a file with one: so numbers of batches go on, and a log without any is new.
 * 3. Numbers of files follow each other, but while a start makes the first file without batches anew: then one file
 *    lies behind the free number, without batches. So where more do, or they have batches, a file was lost. */
#ifndef FARKV_LOG_FILES_H
#define FARKV_LOG_FILES_H
#include "wal.h"

/* Makes the next file, or removes one, where that is due and the maker is idle; `again`: though the disk was full. */
void wal_files_go_on(wal *w, bool again);
/* Splits what was found into files that are kept and those without batches, which are made anew, or removed: in the
 * first of them remains of a batch may lie. */
void wal_files_take(wal *w, fkv_list *found);
/* The next file to be written, now the last of `kept`. There must be one ahead. */
wal_file *wal_files_next(wal *w);

#endif
