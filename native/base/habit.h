/* habit.h: whether to try again what helps at times and costs something when it does not.
 *
 * A try in vain costs two steps, one that helped gives one back, and after one in vain 2^steps - 1 chances are let pass.
 * So one goes on where it helps twice in three times, and where it never does one chance in 64 is taken: by that it is
 * noticed when it helps again. */
#ifndef FARKV_BASE_HABIT_H
#define FARKV_BASE_HABIT_H
#include <stdbool.h>
#include <stdint.h>

enum { HABIT_STEPS_MAX = 6, HABIT_STEPS_IN_VAIN = 2 };

typedef struct habit {
    uint32_t steps, skip; /* skip: so many chances are let pass */
} habit;

/* There is a chance. Whether it is taken. */
static inline bool habit_tries(habit *h) {
    if (h->skip == 0) return true;
    h->skip--;
    return false;
}
static inline void habit_helped(habit *h) {
    if (h->steps) h->steps--;
}
static inline void habit_in_vain(habit *h) {
    h->steps = h->steps + HABIT_STEPS_IN_VAIN < HABIT_STEPS_MAX ? h->steps + HABIT_STEPS_IN_VAIN : HABIT_STEPS_MAX;
    h->skip = (1u << h->steps) - 1;
}

#endif
