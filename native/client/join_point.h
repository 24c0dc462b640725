/* join_point.h: where a copy joins its owner's log: what the owner says behind the last entries that it lists, and the
 * table that follows from there. Of copy.c and copy_page.c, by whose thread it is called; see copy.h. */
#ifndef FARKV_CLIENT_JOIN_POINT_H
#define FARKV_CLIENT_JOIN_POINT_H
#include "../dataplane/dataplane.h"
#include "../wire/wire.h"
#include "copy.h"

typedef struct join_point {
    bool said;
    dataplane_join at; /* without its sequences, but their count */
    dataplane_sequence *sequence;
} join_point;

/* An entry that is not of the table. */
fkv_status join_point_take(join_point *p, uint64_t copy, const fkv_scan_entry *e, const uint8_t *value);
/* Everything that was copied is in the table, and nobody but the table writes there any more. Result: `stats`. */
void join_point_follow(const join_point *p, const shard_copy_config *c, const shard_copy_stats *stats,
                       dataplane_done done, void *ctx);
void join_point_free(join_point *p);

#endif
