/* musl.c: gcc for arm64 chooses the instructions of atomics when a library is loaded, by a function that glibc has. A gcc
 * that was built for glibc (scripts/addons.mjs) does so for musl too. */
#include <features.h>
#if defined(__aarch64__) && !defined(__GLIBC__)
#include <sys/auxv.h>

unsigned long __getauxval(unsigned long type);
unsigned long __getauxval(unsigned long type) { return getauxval(type); }
#else
typedef int musl_unused; /* ISO C asks for a declaration */
#endif
