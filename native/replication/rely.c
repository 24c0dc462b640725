/* rely.c: see rely.h. Where changes wait for the disk anyway, and where nothing is on disks, it is done at once. */
#include "rely.h"
#include "backup.h"
#include "durable.h"
#include "replication.h"

void rely_begin(job *j) {
    command *c = (command *)j;
    shard *s = command_shard(c);
    fkv_status status = !s                                             ? command_none(c)
                        : s->state == SHARD_CLOSING || s->repl.relying ? FKV_BUSY
                        : backup_follows(s)                            ? FKV_NOT_OWNER
                                                                       : FKV_OK;
    if (status != FKV_OK) {
        command_done(c, status, NULL);
        return;
    }
    replica_rely_on_disk(&s->repl.owner);
    if (s->durable) durable_counts_anew(s);
    s->repl.relying = c;
    s->attended = true;
}

void rely_watch(shard *s) {
    /* In another config it answers early again, and its disk may never have all. */
    if (!replica_relies_on_disk(&s->repl.owner))
        rely_end(s, FKV_ABORTED);
    else if (replica_is_on_disk(&s->repl.owner))
        rely_end(s, FKV_OK);
}

void rely_end(shard *s, fkv_status why) { command_end(&s->repl.relying, why); }
