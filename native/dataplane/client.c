/* client.c: what anybody may do to a connection: mark it. It is ended by connection.c after the completions at hand
 * were looked at, because some may be its own. */
#include "client.h"
#include "worker.h"

static void report(client *c, fkv_end why) {
    const dataplane_config *d = &c->w->d->c;
    if (why == FKV_END_NONE || c->head.kind != CONNECTION_CLIENT) return;
    dedup_note_end(c->memory, (uint8_t)why);
    if (!d->on_ended) return;
    d->on_ended(d->ctx, &(dataplane_ended){ .client = c->ticket.client,
                                            .worker = c->w->number,
                                            .requests = c->op_count - c->asides,
                                            .provider = c->provider,
                                            .why = why });
}

void client_doom(client *c, fkv_end why) {
    if (c->doomed) return;
    c->doomed = true;
    report(c, why);
    list_remove(&c->sending);
    list_remove(&c->blocked);
    list_remove(&c->of_worker);
    list_push(&c->w->doomed, &c->of_worker);
}
