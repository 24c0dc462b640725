#include "fabric_conformance.h"

void fabric_conformance(const fabric_under_test *u) {
    fabric_conformance_connections(u);
    fabric_conformance_sends(u);
    fabric_conformance_reads(u);
    fabric_conformance_faults(u);
    fabric_conformance_wakeups(u);
}
