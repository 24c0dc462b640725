/* protocol_machine.h: the protocol of layout.h as a small machine whose every interleaving can be searched
 * (protocol_machine.c). */
#ifndef FARKV_TEST_PROTOCOL_MACHINE_H
#define FARKV_TEST_PROTOCOL_MACHINE_H
#include "search.h"

/* ---- what may be changed about the protocol; each must be found ---- */
typedef struct protocol {
    bool without_pending; /* the extent is written as LIVE */
    bool live_before_dead;
    bool live_before_slot;
    bool slot_cleared_before_dead; /* DELETE */
    bool reader_takes_dead;
    bool without_lease_check;
    bool lease_checked_before_get;  /* and not during it: as a timer, or the end of the GET before, would */
    bool lease_checked_before_read; /* first thing in the GET, and not after its last READ */
    bool takeover_before_leases_end;
    bool split_clears_at_once;
    bool changes_after_split_go_to_the_old_bucket;
    /* the segment's tag is not compared with the one of when it was cached */
    bool cached_location_outlives_its_memory;
} protocol;

typedef enum { NO_OP = 0, PUT, DELETE, SPLIT } op_kind;
typedef struct setting {
    const char *name;
    op_kind script[5];
    int gets[2]; /* of each reader */
    bool no_quarantine, owner_may_stop, restart_empties;
    /* in the new owner's memory bytes of a value look like an extent of this key, LIVE, of change 1 */
    bool imitation;
} setting;

/* Visits every state that can be reached, until the results of GETs are not those of one register (search_found). */
search *explore(const protocol *p, const setting *set);
#endif
