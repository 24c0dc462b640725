/* The verbs provider: the conformance suite over an RDMA device whose address FARKV_VERBS_ADDRESS names (in the virtual machine of
 * test/rdma, soft-RoCE's and soft-iWARP's; on a host with a NIC, that NIC's). Without it there is nothing to run on, and it says so. */
#include <stdio.h>
#include <stdlib.h>
#include "check.h"
#include "fabric_conformance.h"

static const char *address;

static const char *listen_address(void) {
    static char text[128];
    snprintf(text, sizeof text, "%s:0", address);
    return text;
}

/* Under emulation, on a busy machine, a connection takes hundreds of milliseconds. */
static void patient(fab_options *o) {
    if (o->handshake_ms == 0) o->handshake_ms = 15000;
    if (o->op_timeout_ms == 0) o->op_timeout_ms = 5000;
}

static fabric_under_test verbs = {.provider = FAB_VERBS, .address = listen_address, .configure = patient, .sleeps = true, .forks = true,
                                  .device_reads = true, .messages = 4000};

int main(int argc, char **argv) {
    address = getenv("FARKV_VERBS_ADDRESS");
    if (!address) {
        printf("left out fabric_verbs: FARKV_VERBS_ADDRESS names no address of an RDMA device; npm run test:rdma runs it in a virtual machine\n");
        return 0;
    }
    verbs.silent_refusals = getenv("FARKV_VERBS_SILENT") != NULL;   /* soft-iWARP */
    CHECK(fab_provider_missing(FAB_VERBS) == NULL);
    if (fabric_conformance_child(&verbs, argc, argv)) return 0;
    fabric_conformance(&verbs);
    return check_end(argc, argv);
}
