/* assert.h: invariants. One that is broken stops the process, in release builds too: nothing that a table holds may
 * rest on a state that cannot be. For checks that cost nothing beside their path; not for what callers or peers say,
 * which is answered with a status. */
#ifndef FARKV_BASE_ASSERT_H
#define FARKV_BASE_ASSERT_H

/* Says which on standard error, and aborts. */
__attribute__((noreturn, cold)) void fkv_broken(const char *invariant, const char *file, int line);
#define fkv_assert(invariant) (__builtin_expect(!(invariant), 0) ? fkv_broken(#invariant, __FILE__, __LINE__) : (void)0)

#endif
