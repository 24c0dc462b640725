/* client.c: what anybody may do to a connection: mark it. It is ended by connection.c after the completions at hand
 * were looked at, because some may be its own. */
#include "client.h"
#include "worker.h"

void client_doom(client *c) {
    if (c->doomed) return;
    c->doomed = true;
    list_remove(&c->sending);
    list_remove(&c->blocked);
    list_remove(&c->of_worker);
    list_push(&c->w->doomed, &c->of_worker);
}
