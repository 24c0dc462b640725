/* The sim provider: the conformance suite, driven step by step. */
#include <stdio.h>
#include "../fabric/sim.h"
#include "check.h"
#include "fabric_conformance.h"

static sim_world *world;
static void step(void) { sim_step(world); }
static void configure(fab_options *o) { o->sim = world; }
static const char *address(void) {
    static char text[32];
    static int count;
    snprintf(text, sizeof text, "sim:%d", count++);
    return text;
}
static const fabric_under_test sim = {.provider = FAB_SIM, .address = address, .configure = configure, .idle = step};

int main(int argc, char **argv) {
    world = sim_world_create(check_seed());
    fabric_conformance(&sim);
    sim_world_destroy(world);
    return check_end(argc, argv);
}
