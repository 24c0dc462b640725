/* check.h: a C unit test is a function; main() lists them. A failed check prints where and ends the program.
 *
 *     TEST(a_deleted_key_is_gone) { CHECK(table_get(...) == FKV_NOT_FOUND); }
 *     int main(int argc, char **argv) { RUN(a_deleted_key_is_gone); return check_end(argc, argv); }
 *
 * Random tests take their seed from check_seed(): printed at the start, set by FARKV_SEED to replay.
 */
#ifndef FARKV_TEST_CHECK_H
#define FARKV_TEST_CHECK_H
#include <stdbool.h>
#include <stdint.h>

#define TEST(name)     static void name(void)
#define RUN(name)      check_run(#name, name)
#define CHECK(e)       ((e) ? (void)0 : check_failed(__FILE__, __LINE__, #e))
#define CHECK_EQ(a, b) check_eq(__FILE__, __LINE__, #a " == " #b, (long long)(a), (long long)(b))

void check_run(const char *name, void (*test)(void));
void check_eq(const char *file, int line, const char *what, long long a, long long b);
_Noreturn void check_failed(const char *file, int line, const char *what);
uint64_t check_seed(void);
/* From now on a failed check says that this seed replays it: of a test that has one for each of its parts. */
void check_replays(uint64_t part_seed);
/* How long a test waits for what must come, before it says that it does not: a minute, or FARKV_PATIENCE_MS. */
uint64_t check_patience_ms(void);
/* Whether what began then (fkv_now_ns) may still be waited for. */
bool check_in_time(uint64_t begun_ns);
int check_end(int argc, char **argv);
#endif
