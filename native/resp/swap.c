/* swap.c: a change of what was read, as one step of its key: it changes the version that was read, and if that has gone
 * meanwhile, all begins again, for WAIT_NS. */
#include <stdlib.h>
#include "internal.h"

call_start swap_start(resp_job *j, resp_call *k) {
    return j->step == STEP_READ ? start_read(j, k) : start_change(j, k);
}

static bool read_ended(resp_job *j, resp_call *k) {
    lookup_result *r = &k->result;
    free(j->old);
    j->old = k->value;
    j->old_bytes = r->value_bytes;
    k->value = NULL;
    j->was_there = r->status == FKV_OK;
    bool known = j->was_there || r->status == FKV_NOT_FOUND;
    if (!known || !j->work->decides(j, r)) {
        j->step = STEP_REFUSED;
        return true;
    }
    j->ask.expected = j->was_there ? r->version : 0;
    j->step = STEP_CHANGE;
    return false;
}

bool swap_ended(resp_job *j, resp_call *k) {
    lookup_result *r = &k->result;
    if (j->step == STEP_READ) return read_ended(j, k);
    if (r->status != FKV_VERSION_MISMATCH && r->status != FKV_NOT_FOUND) return true;
    if (fkv_now_ns() > j->until_ns) {
        r->status = FKV_TIMEOUT;
        return true;
    }
    j->step = STEP_READ;
    return false; /* mutation: gateway/set-get-in-two-steps */
}
