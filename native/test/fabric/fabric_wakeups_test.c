/* fabric_wakeups_test.c: the wake-ups of the conformance suite (fabric_conformance_wakeups.c) many times over, for each
 * provider of this machine. */
#include "../check.h"
#include "fabric_conformance.h"
#include "fabric_tcp_rig.h"
#include "shm_raw.h"

enum { MESSAGES = 200000 };

static const fabric_under_test shm = {
    .provider = FAB_SHM, .address = raw_fresh_address, .sleeps = true, .messages = MESSAGES
};

int main(int argc, char **argv) {
    fabric_under_test tcp = tcp_v4;
    tcp.messages = MESSAGES;
    raw_directory_make();
    fabric_conformance_wakeups(&shm);
    raw_directory_remove();
    fabric_conformance_wakeups(&tcp);
    return check_end(argc, argv);
}
