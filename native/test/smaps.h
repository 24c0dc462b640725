/* smaps.h: what the kernel says of a mapping of this process, for tests. */
#ifndef FARKV_TEST_SMAPS_H
#define FARKV_TEST_SMAPS_H
#include <stddef.h>

/* What stands behind "Rss:", "VmFlags:" and the like for the mapping that has this address. */
void smaps_field(const void *address, const char *field, char *out, size_t room);
#endif
