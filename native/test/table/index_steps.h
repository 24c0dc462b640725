/* index_steps.h: a table's index made larger and smaller step by step, whatever its load, for tests that do not look
 * into the table itself. */
#ifndef FARKV_TEST_INDEX_STEPS_H
#define FARKV_TEST_INDEX_STEPS_H
#include "table_host.h"

/* One bucket; false when that must wait, or the index has its first size. */
bool index_split(host *h);
bool index_merge(host *h);
/* The last segment, when none of its buckets is left; false when it must stay. */
bool index_retire(host *h);
/* Splits or merges, up to `most` times, and now and then retires a segment; `dice` decides. The index has at most
 * `largest` buckets. */
void index_breathe(host *h, uint32_t dice, uint32_t most, uint32_t largest);
#endif
