/* fabric_conformance.h: what fabric.h promises, as tests that every provider runs. A provider's own test program calls
 * fabric_conformance() and adds what is particular to it. */
#ifndef FARKV_TEST_FABRIC_CONFORMANCE_H
#define FARKV_TEST_FABRIC_CONFORMANCE_H
#include "fabric_pair.h"

void fabric_conformance(const fabric_under_test *u);
/* To be called first in main: when this process was started as a child of a test, plays its part and does not return.
 * */
bool fabric_conformance_child(const fabric_under_test *u, int argc, char **argv);

/* Its parts, each in a file of its name. */
void fabric_conformance_connections(const fabric_under_test *u);
void fabric_conformance_sends(const fabric_under_test *u);
void fabric_conformance_reads(const fabric_under_test *u);
void fabric_conformance_faults(const fabric_under_test *u);
void fabric_conformance_wakeups(const fabric_under_test *u);
#endif
