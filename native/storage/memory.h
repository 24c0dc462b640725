/* memory.h: segments: made and freed off the worker's thread; see memory.c. Private to the data plane's folders. */
#ifndef FARKV_STORAGE_MEMORY_H
#define FARKV_STORAGE_MEMORY_H
#include "../dataplane/command.h"
#include "shard.h"

void memory_open(job *j); /* of a command, on the memory thread: the first segments; then command.opens */
void memory_opened(command *c, shard *failed);
void memory_want(void *shard, table_segment_kind kind, size_t bytes);       /* table_config.want_segment */
void memory_retire(void *shard, table_segment_kind kind, uint32_t segment); /* table_config.retire_segment */
void memory_free_segment(worker *w, segment *s);
bool memory_free_lingering(shard *s, uint64_t now); /* those whose time has come; true: there was one */
/* whether to ask the kernel for huge pages */
bool memory_huge_now(const dataplane *d, uint64_t now_ns);
/* it did not run for so long while it made some */
void memory_huge_took(dataplane *d, uint64_t now_ns, uint64_t waited_ns);
void memory_close(command *c, shard *s);  /* frees the shard, then ends the command */
bool memory_notify(const shard *s);       /* on_layout; false: no memory, try again */
uint64_t memory_left(const dataplane *d); /* what all tables together may still have */
/* A table for this shard, whose memory comes and goes as above. */
table_config memory_table_config(const dataplane *d, const dataplane_shard *o, shard *s);

#endif
