/* fuzz_guest.c: see fuzz_guest.h. */
#include "fuzz_guest.h"

void fuzz_guest_open(guest *c, puppet *p, uint32_t cached_locations, void (*done)(void *ctx, lookup_get *g)) {
    lookup_config config = guest_config(c, p);
    config.done = done;
    config.cached_locations = cached_locations;
    guest_open(c, p, &config);
    guest_connect(c);
}
void fuzz_guest_turn(guest *c) {
    session_flush(c->s);
    session_poll(c->s);
    session_tick(c->s);
}
void fuzz_guest_read(guest *c, fuzz_in *in) {
    puppet_read *r = puppet_first(c->p);
    if (!r) return;
    if (fuzz_u8(in) & 1)
        puppet_carry(c->p, r, fuzz_u8(in));
    else
        puppet_complete(c->p, r);
}
