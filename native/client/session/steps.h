/* steps.h: what a session and the layer above it did, and when, for a person who asks where one operation spends its
 * time (client/trace.ts). Kept only where session_config.traced says so; elsewhere it costs one look at that. */
#ifndef FARKV_SESSION_STEPS_H
#define FARKV_SESSION_STEPS_H
#include "session.h"

typedef enum {
    SESSION_SENT = 1, /* a request was given to the transport */
    SESSION_ANSWERED, /* its reply came, or the last message of that */
    SESSION_READ,     /* a READ was given to the transport */
    SESSION_LANDED    /* it has completed */
} session_step_type;

typedef struct session_step {
    session_step_type type;
    uint64_t ns; /* fkv_now_ns */
    uint32_t owner;
    fab_provider provider;
    uint32_t bytes;    /* of the message, or READ */
    fkv_op op;         /* SENT, ANSWERED */
    fkv_status status; /* ANSWERED: of the reply; LANDED: OK, or that of its failure */
} session_step;

/* The latest ones are kept: what nobody has taken makes room for what comes. */
enum { SESSION_STEPS = 256 };

/* `step` without time. Nothing where the session is not traced. */
void session_note(session *s, const session_peer *p, const session_step *step);
/* The next one in the order in which they were; false: there is none. */
bool session_next_step(session *s, session_step *out);

#endif
