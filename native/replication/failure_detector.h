/* failure_detector.h: whether the owner of copies here is gone, as their link sees it; on_suspicion is told. Private to
 * native/replication, for owner_link.c. Not for: what follows from it. A suspicion may be wrong (docs/replication.md). */
#ifndef FARKV_REPLICATION_FAILURE_DETECTOR_H
#define FARKV_REPLICATION_FAILURE_DETECTOR_H
#include "backup.h"

/* Nobody listens where the owner of these copies was (backup.of_link). */
void suspect_owner_of(const fkv_list *copies);
/* It acknowledges to its owner. */
void unsuspect_owner(backup *b);
/* Finds those whose owner is silent, of which something was heard at heard_ns. Returns when to look again. */
uint64_t watch_owner_of(const fkv_list *copies, uint64_t heard_ns, uint64_t now_ns);

#endif
