/* replica_machine.h: replication as a machine whose every interleaving can be searched (replica_machine.c). */
#ifndef FARKV_TEST_REPLICA_MACHINE_H
#define FARKV_TEST_REPLICA_MACHINE_H
#include "../table/search.h"

/* ---- what may be done wrong with the rules of replica.h; each must be found ---- */
typedef struct replica_mistakes {
    bool live_before_acks;       /* readers take what is only prepared */
    bool answers_before_commit;  /* OK when the owner has it */
    bool acks_before_prepared;   /* a backup acknowledges what is still on its way */
    bool acks_old_epoch;         /* a backup that follows a new owner acknowledges records of the one before */
    bool lets_go_before_applied; /* the owner stops waiting for a copy when it has proposed to remove it */
    bool adds_before_requiring;
    bool adds_what_lacks_records;       /* proposed before it has what is committed */
    bool requires_what_does_not_follow; /* it has acknowledged nothing in this epoch */
    bool gives_up_on_an_addition;       /* stops waiting for a copy whose addition may still come */
    bool adds_under_long_client_leases;
    bool grants_beyond_backups; /* to clients, by the leader's lease alone */
    bool serves_before_leases_end;
    bool serves_unfollowed;                  /* before every copy in sync follows the new owner */
    bool grants_without_counting;            /* a backup, and it serves before its leases have ended */
    bool forgets_grants_to_an_earlier_owner; /* when it follows the next one */
    bool inherited_dropped;                  /* a new owner begins at what it has committed */
    bool inherited_shown_early;              /* ... or commits all it has at once */
    bool late_commands;                      /* the metadata does not compare names */
    bool restart_keeps_its_place;
    bool sequences_stay_behind; /* records do not carry them */
    bool joiner_knows_no_sequences;
    bool says_no_effect; /* of what it has sent to a backup */
    bool commits_with_too_few;
    bool joins_after_an_epoch_missed;
    /* of copies that have logs */
    bool commits_before_it_is_logged; /* the owner counts the others' logs only */
    bool acks_before_it_is_logged;
    bool acks_before_the_epoch_is_logged;    /* and counts what it logged in an earlier one */
    bool commits_before_the_epoch_is_logged; /* no mistake: see replica_model_test.c */
    bool epoch_cuts_nothing_off;             /* on the disk */
    bool joins_without_its_beginning;        /* what a joiner was made from is never on its disk */
    bool restart_claims_its_memory;          /* what it had prepared, and not logged */
    /* of copies that answer early (replica_early.c) */
    bool returns_unmarked;    /* a copy that crashed counts as before, as one does that waits for its disk */
    bool marked_follows;      /* its disk begins the owner's epoch without what it lacks */
    bool marked_rejoins;      /* with what it has, once it is removed: its owner counts what it acknowledged before */
    bool marked_asks_to_lead; /* though another one never crashed */
    bool leads_before_all_return; /* the longest of those that are back */
    bool shortest_leads;
    bool answers_late; /* when another one may lead */
    bool marks_go_with_the_owner;
    bool others_go_on; /* copies not in sync, after some of what they have was lost */
    bool disk_skips_a_record;
    bool removes_what_its_disk_lacks; /* the owner's disk, and the copy that it has removed has it */
    bool alone_answers_early;         /* an owner that has no other copy in sync */
} replica_mistakes;

/* What can happen in a search, and how often. */
typedef struct replica_setting {
    const char *name;
    int copies, joiners; /* servers that are in sync at first: the owner is server 0; those that may join */
    int changes, keys, retries, gets;
    int min_in_sync;
    int breaks, crashes, restarts, removals, additions, promotions, ticks;
    int powers;              /* copies have logs, and all servers lose their power so often */
    bool early;              /* they have, and acknowledge what is in the buffer */
    int returns;             /* of servers that crashed, with what their disks have */
    bool a_backup_may_crash; /* else owners only */
    bool rejoins;            /* what is removed joins with what it has */
    bool deposed_join;       /* so does the owner that another one replaces */
    uint8_t cut_off[4];      /* by owner: the servers that it has no link to, as bits */
    uint8_t heirs;           /* the servers that may ask to be promoted; 0: all */
} replica_setting;

/* Visits every state that can be reached, until something is wrong (search_found). */
search *replica_explore(const replica_mistakes *wrong, const replica_setting *set);

/* replica_judge.c: fails the test if something is wrong in this setting; */
void replica_holds(const replica_setting *set, replica_mistakes wrong);
/* and if nothing is in any of these. Prints the shortest violation in the first that has one. */
void replica_finds(const char *mistake, replica_mistakes wrong, const replica_setting *const *settings, int count);
#endif
