/* import.h: entries of a shard that moves here; see import.c. Private to native/dataplane. */
#ifndef FARKV_DATAPLANE_IMPORT_H
#define FARKV_DATAPLANE_IMPORT_H
#include "command.h"

void import_begin(job *j); /* of a command */
void imports_continue(shard *s);
void imports_end(shard *s, fkv_status why);

#endif
