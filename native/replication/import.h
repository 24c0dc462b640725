/* import.h: entries of a shard that is copied here; see import.c. Private to native/replication. */
#ifndef FARKV_REPLICATION_IMPORT_H
#define FARKV_REPLICATION_IMPORT_H
#include "../dataplane/command.h"
#include "../storage/shard.h"

void import_begin(job *j); /* of a command */
void imports_continue(shard *s);
void imports_end(shard *s, fkv_status why);
/* One entry. OK: taken over, or passed over because something as new is there; BUSY: later. */
fkv_status import_entry(shard *s, const fkv_scan_entry *e, const uint8_t *key, const uint8_t *value, bool damaged);

#endif
