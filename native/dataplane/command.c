/* command.c: how a call from another thread ends, and what is known of its shard meanwhile. The calls themselves are in
 * calls.c. */
#include "command.h"
#include <stdlib.h>

void command_done(command *c, fkv_status s, void *result) {
    c->done(c->ctx, s, result);
    free(c->join);
    free(c->lead);
    free(c->page);
    free(c);
}

void dataplane_place(dataplane *d, uint32_t shard, place_state state) {
    pthread_mutex_lock(&d->lock);
    d->place[shard].state = (uint8_t)state;
    pthread_mutex_unlock(&d->lock);
}
