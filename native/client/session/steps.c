/* steps.c: a ring of what was done and when; see steps.h. */
#include "steps.h"
#include "internal.h"

void session_note(session *s, const session_peer *p, const session_step *step) {
    session_steps *all = s->steps;
    if (!all) return;
    session_step *to = &all->step[all->end++ % SESSION_STEPS];
    *to = *step;
    to->ns = session_now(s);
    to->owner = p->owner;
    to->provider = p->provider;
    if (all->end - all->begin > SESSION_STEPS) all->begin = all->end - SESSION_STEPS;
}

bool session_next_step(session *s, session_step *out) {
    session_steps *all = s->steps;
    if (!all || all->begin == all->end) return false;
    *out = all->step[all->begin++ % SESSION_STEPS];
    return true;
}
