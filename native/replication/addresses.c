/* addresses.c: see addresses.h. */
#include "addresses.h"
#include <string.h>
#include "../dataplane/worker.h"

enum { ATTEMPT_MS = 3000, HASTE_MS = 300 };

static uint32_t most(uint32_t count) { return count < OWNER_LINK_ADDRESSES ? count : OWNER_LINK_ADDRESSES; }

void addresses_init(link_addresses *y, const link_address *at, uint32_t count) {
    *y = (link_addresses){ .addresses = most(count) };
    memcpy(y->address, at, y->addresses * sizeof *at);
}

bool addresses_same(const link_addresses *y, const link_address *at, uint32_t count) {
    if (y->addresses != most(count)) return false;
    for (uint32_t i = 0; i < y->addresses; i++)
        if (y->address[i].provider != at[i].provider || y->address[i].device != at[i].device ||
            strcmp(y->address[i].text, at[i].text) != 0)
            return false;
    return true;
}

uint32_t addresses_place(const link_addresses *y) { return fab_place(y->address[y->at].provider, y->device); }

static bool of_provider(const link_addresses *y, uint32_t i) {
    return y->address[i].provider == y->address[y->at].provider;
}

/* As places_attempt_ms of native/client/session. */
uint64_t addresses_attempt_ms(link_addresses *y) {
    for (uint32_t i = y->at + 1; i < y->addresses && !y->patient; i++) {
        if (!of_provider(y, i) || y->address[i].device == y->address[y->at].device) continue;
        y->hurried = true; /* mutation: dataplane/hurried-round-in-vain */
        return HASTE_MS;   /* mutation: dataplane/lost-device-dialed */
    }
    return ATTEMPT_MS;
}

bool addresses_other_device(link_addresses *y, const worker *w) {
    while (++y->others < FAB_DEVICES) {
        y->device = (y->device + 1) % FAB_DEVICES;
        if (w->cq[addresses_place(y)]) return true;
    }
    return false;
}

bool addresses_next(link_addresses *y, bool *vain) {
    y->others = 0;
    y->at = (y->at + 1) % y->addresses;
    if (y->at != 0) return true;
    *vain = !y->answered && !y->hurried;
    y->answered = y->hurried = false;
    y->patient = true;
    return false;
}

void addresses_up(link_addresses *y) {
    y->others = 0;
    y->answered = true;
    y->hurried = y->patient = false;
}

/* The better devices first, again: it may be this one that is lost. */
void addresses_lost(link_addresses *y) {
    while (y->at > 0 && of_provider(y, y->at - 1)) y->at--;
}
