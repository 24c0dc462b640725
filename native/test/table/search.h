/* search.h: visits every state that a small machine can reach, breadth first, so that the way to a violation is a
 * shortest one.
 *
 * A machine's state is a struct of bytes without padding: states are compared as bytes. The machine takes a state from
 * search_next() and hands every state that one step leads to to search_reach(), until there is none left or one step
 * was wrong.
 */
#ifndef FARKV_TEST_SEARCH_H
#define FARKV_TEST_SEARCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct search search;
search *search_new(const void *first, size_t state_bytes);
bool search_next(search *s,
                 void *state); /* the next one to make steps from; false: there is none, or a violation was found */
/* `who` did `what`; `number` is printed behind it, unless it is 0. The strings stay the caller's. */
void search_reach(search *s, const void *next, const char *who, const char *what, int number);
void search_violate(search *s, const char *who, const char *what, int number);
/* What is wrong after the step that was reported last; printed behind it. */
void search_explain(search *s, const char *wrong);
uint32_t search_states(const search *s);
bool search_found(const search *s); /* a violation */
/* It ended with states left to make steps from. So are long searches under the address sanitizer, which looks for faults
 * of memory: a long search takes minutes there, and repeats the steps of a short one. */
bool search_stopped(const search *s);
void search_print(const search *s); /* the way to it */
void search_free(search *s);
#endif
