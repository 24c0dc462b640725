/* edit.c: SETRANGE and INCRBYFLOAT: what a value becomes is worked out here, and put in the place of the version that was
 * read (swap.c). */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/* The present value's place is taken by what is put. */
static void becomes(resp_job *j, const lookup_result *r, uint8_t *value, uint32_t bytes) {
    j->old = value;
    j->old_bytes = bytes;
    j->ask.user_flags = r->user_flags;
}

static resp_job *edit_new(resp_connection *c, const resp_work *w, uint32_t value) {
    resp_job *j = job_new(c, w, 1, 1, 1);
    if (!j || !job_keep(j, value)) return NULL;
    j->until_ns = fkv_now_ns() + WAIT_NS;
    j->puts_old = true;
    j->ask.op = FKV_OP_CAS;
    j->ask.flags = FKV_REQUEST_KEEP_EXPIRY;
    return j;
}

/* ---- SETRANGE ---- */

enum { STRING_MAX = 512 << 20 }; /* a redis-server's */

static bool setrange_decides(resp_job *j, const lookup_result *r) {
    size_t before = j->was_there ? j->old_bytes : 0, needed = j->makes, after = before > needed ? before : needed;
    if (j->was_there && r->codec) return false;
    uint8_t *value = realloc(j->old, after);
    if (!value) {
        j->call[0].result.status = FKV_NO_MEMORY;
        return false;
    }
    if (after > before) memset(value + before, 0, after - before);
    memcpy(value + j->from, j->kept + j->kept_key, j->kept_value);
    becomes(j, r, value, (uint32_t)after);
    return true;
}

static void setrange_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    if (j->step == STEP_CHANGE && r->status == FKV_OK)
        resp_integer(o, j->old_bytes);
    else if (!answered_bad(o, r))
        answer_failure(o, r->status);
}
static const resp_work setrange_work = { .changes = true,
                                         .wants_value = true,
                                         .start = swap_start,
                                         .ended = swap_ended,
                                         .decides = setrange_decides,
                                         .finish = setrange_finish };

void setrange_command(resp_connection *c) {
    resp_out *o = connection_answer(c);
    uint32_t n = argument(c, 3).n;
    int64_t from;
    if (!integer_argument(c, 2, &from)) return;
    if (from < 0) {
        resp_error(o, "ERR offset is out of range");
    } else if (!n) {
        strlen_command(c);
    } else if (from > STRING_MAX - (int64_t)n) {
        resp_error(o, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    } else if (from > FKV_VALUE_MAX - (int64_t)n) {
        answer_failure(o, FKV_VALUE_TOO_LARGE);
    } else {
        resp_job *j = edit_new(c, &setrange_work, 3);
        if (!j) return;
        j->from = from;
        j->makes = (size_t)from + n;
    }
}

/* ---- INCRBYFLOAT ---- */

enum { FLOAT_TEXT = 5 << 10 }; /* longer than any that is written; of one that is read, as in redis-server */
enum { FLOAT_ADDS, FLOAT_IS_NONE, FLOAT_IS_INFINITE };

/* Whatever strtold takes but a leading blank, a text that is not whole, what overflows, and NaN. */
static bool read_float(const uint8_t *bytes, uint32_t n, long double *out) {
    char text[FLOAT_TEXT], *end;
    if (n == 0 || n >= sizeof text || isspace(bytes[0])) return false;
    memcpy(text, bytes, n);
    text[n] = '\0';
    errno = 0;
    *out = strtold(text, &end);
    bool out_of_range = errno == ERANGE && (isinf(*out) || *out == 0);
    return end == text + n && !out_of_range && !isnan(*out);
}

/* 17 digits behind the point, without the zeros at their end; never an exponent. */
static uint32_t write_float(char to[FLOAT_TEXT], long double value) {
    int n = snprintf(to, FLOAT_TEXT, "%.17Lf", value);
    while (n && to[n - 1] == '0') n--;
    if (n && to[n - 1] == '.') n--;
    if (n != 2 || memcmp(to, "-0", 2) != 0) return (uint32_t)n;
    to[0] = '0';
    return 1;
}

static bool incrbyfloat_decides(resp_job *j, const lookup_result *r) {
    char text[FLOAT_TEXT];
    long double value = 0, by;
    if (j->was_there && r->codec) return false;
    bool good = read_float(j->kept + j->kept_key, j->kept_value, &by) &&
                (!j->was_there || read_float(j->old, j->old_bytes, &value));
    j->what = !good ? FLOAT_IS_NONE : isfinite(value + by) ? FLOAT_ADDS : FLOAT_IS_INFINITE;
    if (j->what != FLOAT_ADDS) return false;
    uint32_t n = write_float(text, value + by);
    uint8_t *made = realloc(j->old, n);
    if (!made) {
        j->call[0].result.status = FKV_NO_MEMORY;
        return false;
    }
    memcpy(made, text, n);
    becomes(j, r, made, n);
    return true;
}

static void incrbyfloat_finish(resp_job *j, resp_out *o) {
    const lookup_result *r = &j->call[0].result;
    if (j->step == STEP_CHANGE && r->status == FKV_OK)
        resp_bulk(o, j->old, j->old_bytes);
    else if (answered_bad(o, r))
        return;
    else if (j->what == FLOAT_IS_NONE)
        resp_error(o, "ERR value is not a valid float");
    else if (j->what == FLOAT_IS_INFINITE)
        resp_error(o, "ERR increment would produce NaN or Infinity");
    else
        answer_failure(o, r->status);
}
static const resp_work incrbyfloat_work = { .changes = true,
                                            .wants_value = true,
                                            .start = swap_start,
                                            .ended = swap_ended,
                                            .decides = incrbyfloat_decides,
                                            .finish = incrbyfloat_finish };

void incrbyfloat_command(resp_connection *c) { edit_new(c, &incrbyfloat_work, 2); }
