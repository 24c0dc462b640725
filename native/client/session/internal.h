/* internal.h: what the files of native/client/session share. Private to the folder.
 *
 *   session.c      create, close, poll, hand out completions      owner.c       set of owners, connections, back-off
 *   request.c      table of requests, queues, sending, delays     reply.c       messages that came: match, assemble,
 *                                                                               end
 *   lease.c        LEASE requests, the owner's wall clock         rendezvous.c  registered memory for large values
 *   shards.c       who owns a shard, sequences and their window   timers.c      deadlines
 *   absent.c       shards that nobody answers for                renewal.c     the next ticket, in time
 *   silent.c       owners that say nothing                        places.c      a domain and a queue for each device
 *   steps.c        what was done and when, of traced sessions
 */
#ifndef FARKV_CLIENT_SESSION_INTERNAL_H
#define FARKV_CLIENT_SESSION_INTERNAL_H
#include "../../base/list.h"
#include "rendezvous.h"
#include "session.h"
#include "steps.h"
#include "timers.h"

enum { INLINE_MESSAGE = 232 };

typedef enum { OWNER_IDLE, OWNER_WAITING, OWNER_CONNECTING, OWNER_UP, OWNER_DROPPING } owner_state;

typedef struct session_owner {
    session_peer peer; /* first: a peer is an owner */
    session *session;
    fkv_list link;         /* session.owners */
    uint64_t incarnation;  /* as the routes' maker says */
    uint64_t connected_to; /* as the welcome said */
    struct {
        fab_provider provider;
        char *text;
        fkv_status last;
        uint32_t rail;   /* as session_peer.rail */
        uint32_t device; /* below session.devices: what it was reached over, or is tried over */
    } * address;
    uint32_t addresses;
    uint32_t at;         /* address that is in use or tried */
    uint32_t others;     /* so many devices were tried in vain for it */
    uint32_t routes;     /* shards that name it; > 0: it is to be connected */
    uint32_t sent_count; /* requests in `sent` */
    /* Of this connection: requests that may be at the owner at once (fkv_welcome), and those that are. What has ended here
     * counts until its reply has come, for so long it is at the owner. Invariant: at_owner <= quota. */
    uint32_t quota, at_owner;
    uint32_t takes;       /* as the welcome said */
    bool gone;            /* taken out of the list of owners: freed when dropped */
    bool was_up, blocked; /* blocked: -EAGAIN, until FAB_WC_SEND_READY */
    bool heard, silent;   /* silent.c */
    bool retry_now;       /* the drop was our own wish: no back-off */
    uint32_t in_vain; /* how often all its addresses were tried, each for its whole time, since it was last connected */
    /* in this round some address was not tried for its whole time; all were tried since it was last connected */
    bool hurried, patient;
    owner_state state;
    fkv_status reason; /* why the connection is being dropped */
    fab_conn *conn;    /* peer.conn, or one that is being made or dropped */
    uint64_t started_ns, up_ns;
    fkv_challenge challenge; /* of the address in use, to be answered by the next connection; number 0: none */
    uint32_t challenged;     /* how often in a row */
    uint32_t failures;       /* rounds that failed since the last lasting connection */
    timer_node timer;        /* back-off, or the bound of a connection attempt */
    fkv_list dropping;       /* session.dropping */
    fkv_list pushing;        /* session.pushing: something waits that may be sent now */
    fkv_list waiting, sent;  /* requests */

    uint64_t lease_id; /* the LEASE request under way, 0: none */
    uint32_t lease_ms_max, drift_ppm;
    timer_node renew;
    uint64_t wall_rtt_ns, wall_at_ns; /* of the sample behind peer.wall_offset_ms */

    uint64_t renewal_id;   /* the RENEW request under way, 0: none */
    fkv_ticket shown;      /* the ticket that the owner has, or is being asked to take */
    timer_node show_again; /* another one is to be shown */
} session_owner;

typedef enum {
    REQUEST_FREE,
    REQUEST_WAITING, /* in a queue: the owner's, the shard's, or the one of shards without owner */
    REQUEST_DELAYED, /* refused for now: goes to a queue when `delay` fires */
    REQUEST_SENT,
    /* ended, but the owner may still READ its memory: kept until the reply or the end of the connection */
    REQUEST_ABANDONED
} request_state;

typedef struct request {
    fkv_list link;      /* the queue, `sent`, or the free list */
    fkv_list in_window; /* changes that have a sequence: the shard's, in its order */
    timer_node deadline, delay;
    session *session;
    session_owner *owner;  /* WAITING in its queue, SENT, ABANDONED */
    session_owner *pinned; /* a LEASE is for this owner, whatever the routes say; else NULL */
    uint64_t generation;
    uint32_t index;
    request_state state;
    bool sent_before; /* a copy may have reached an owner */
    fkv_status why;   /* the last reason for which it has not ended yet */
    uint32_t refusals;
    uint64_t first_sent_ns, sent_ns, held_ns; /* held_ns: session_put_off */
    fkv_request head;
    uint8_t *message; /* head, key, value or fkv_rendezvous; `room` or of malloc */
    uint32_t message_bytes;
    rendezvous *memory;
    uint8_t *body; /* reply in several messages, as far as it came */
    uint32_t body_bytes, body_room;
    session_done *done;
    void *user;
    uint8_t room[INLINE_MESSAGE];
} request;

typedef struct session_shard {
    session_owner *owner;
    /* Invariant: next_sequence - sequence of the first in window <= FKV_DEDUP_WINDOW */
    uint64_t next_sequence;
    fkv_list window;   /* requests with a sequence */
    fkv_list parked;   /* changes that wait for the window to move */
    uint64_t told_ns;  /* when NOT_OWNER was last reported */
    uint64_t down_ns;  /* since when nobody is known to answer for it; 0: somebody does */
    uint64_t asked_ns; /* when an operation was last refused, or ended because it is absent */
} session_shard;

/* Of a session that is traced. */
typedef struct session_steps {
    uint64_t begin, end; /* numbers; one's place is its number modulo SESSION_STEPS */
    session_step step[SESSION_STEPS];
} session_steps;

typedef struct session_queue {
    fab_domain *domain;
    fab_cq *cq;
} session_queue;

struct session {
    session_config config;
    session_hooks hooks;
    session_queue queue[SESSION_PLACES]; /* by fab_place; domain NULL: not opened */
    fab_cq *open_cq[SESSION_PLACES];     /* those of `queue`, in the order in which they were opened */
    uint32_t open_cqs;
    uint32_t devices; /* that verbs has queues for; 0: not asked, or none to choose from */
    fkv_list owners;
    fkv_list dropping; /* owners whose connection goes when the batch at hand is done */
    fkv_list pushing;  /* owners whose queue is to be sent by the next flush */
    bool polling, closing;
    session_shard *shard;
    fkv_list unrouted; /* requests whose shard has no owner */
    request *table;
    uint32_t capacity, free_count, reserved;
    uint32_t places; /* of the capacity, those that were ever in use; the others are zeros */
    uint32_t outstanding;
    fkv_list free;
    rendezvous_pool *pool;
    timers timers;
    timer_node judge; /* absent.c */
    timer_node watch; /* silent.c */
    bool replicated;
    uint64_t held_ns; /* session_held, in all */
    uint64_t random;
    session_steps *steps; /* NULL: not traced */
    session_stats stats;
};

/* owner.c */
/* connects an idle owner that a route names; else lets it go */
void owner_want(session_owner *o);
enum { OWNER_LINGER_MS = 2000, OWNER_MOVED_MS = 30 };
void owner_lost_shard(session_owner *o);              /* to another owner */
void owner_answered(session_owner *o);                /* one request fewer is on its way to it */
void owner_drop(session_owner *o, fkv_status reason); /* at once, or at the end of the batch at hand */
void owner_finish_drops(session *s);
void owner_event(session_owner *o, const fab_wc *wc); /* CONNECT, DISCONNECT */
void owner_free_all(session *s);
session_owner *owner_find(session *s, uint32_t number);
double session_random(session *s); /* 0 to 1 */

/* places.c */
/* Opens what an owner's addresses need first; what this build or host has not stays closed. */
void places_open(session *s, const session_owner_config *c);
/* The address in use is tried over another device from now on; false: all that there are queues for were. */
bool places_other(session_owner *o);
/* How long an attempt at the address in use may take; it begins. */
uint64_t places_attempt_ms(session_owner *o);

/* request.c */
fkv_status request_table(session *s);
void request_table_free(session *s);
request *request_of(session *s, uint64_t id);
fkv_status request_start(session *s, const session_ask *a, session_owner *pinned, uint64_t *id);
void request_free(request *r);
/* to the end, or the front, of where it has to wait now */
void request_queue(request *r, bool first);
void request_delay(request *r, fkv_status why); /* refused for now: tries again a little later */
void request_finish(request *r, fkv_status s, const fkv_reply *reply, uint8_t *body, uint32_t body_bytes,
                    bool body_owned);
/* ends it without an answer, for this reason or as indeterminate */
void request_give_up(request *r, fkv_status why);
void requests_wake(session_owner *o); /* something waits: the next flush sends it */
void requests_push(session_owner *o); /* sends what waits, as far as credits and the quota go */
void requests_of_lost_link(session_owner *o);
uint64_t request_id(const request *r);

/* shards.c */
/* gives a change its sequence; false: it is to be parked */
bool shard_open_window(session_shard *h, request *r);
void shard_leave_window(session *s, request *r);
void shard_not_owner(session *s, session_owner *o, uint32_t shard);

/* absent.c */
void absent_init(session *s);
void absent_look(session *s); /* soon: ends what waits for absent shards */
/* session_absent, at once where somebody answers for the shard */
static inline bool shard_absent(session *s, uint32_t shard) {
    return s->shard[shard].down_ns && session_absent(s, shard);
}
/* the owner refuses; true: and has not answered for long enough */
bool absent_refused(session *s, uint32_t shard);
void shard_down(session *s, uint32_t shard);
void shard_up(session *s, uint32_t shard);

/* silent.c */
void silent_init(session *s);
void silent_watch(session *s); /* a request is under way */

/* reply.c, lease.c */
void reply_received(session_owner *o, const void *message, uint32_t bytes);
void lease_reply(session_owner *o, request *r, const fkv_reply *reply, const uint8_t *body);
void lease_wall_sample(session_owner *o, uint64_t wall_ms, uint64_t sent_ns);
void lease_init(session_owner *o);
/* The session ends: sends what GETs have done since the last LEASE, where a connection takes it at once. */
void lease_report_last(session *s);
void lease_link_lost(session_owner *o);

/* renewal.c: a connection ends with its ticket, and is shown the next one in time */
void renewal_init(session_owner *o);
void renewal_look(session_owner *o); /* shows the session's ticket if the owner, who is UP, has another */
void renewal_link_lost(session_owner *o);

#endif
