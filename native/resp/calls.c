/* calls.c: what jobs start: a read, answered at once where the store can, or a change; and what failures are answered. */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

static lookup_key key_of(const resp_job *j, const resp_call *k) {
    lookup_key key = { .bytes = j->kept, .count = j->kept_key, .space = j->space };
    if (j->kept) return key;
    if (k->key) return (lookup_key){ .bytes = k->key, .count = k->key_bytes, .space = j->space };
    resp_bytes b = argument(j->c, k->argument);
    key.bytes = b.bytes;
    key.count = b.n;
    return key;
}

/* BUSY is worth waiting for only while something is under way whose end wakes whoever waits, and not for ever. */
call_start call_started(resp_job *j, resp_call *k, fkv_status s) {
    if (s != FKV_BUSY) {
        j->busy_ns = 0;
    } else if (j->c->server->calls) {
        uint64_t now = fkv_now_ns();
        if (!j->busy_ns) j->busy_ns = now;
        if (now - j->busy_ns < WAIT_NS) return CALL_LATER;
        s = FKV_TIMEOUT;
    }
    if (s == FKV_OK) return CALL_FLYING;
    k->result = (lookup_result){ .status = s };
    return CALL_DONE;
}

call_start start_read(resp_job *j, resp_call *k) {
    const resp_store *s = &j->c->server->config.store;
    uint8_t *scratch = j->c->server->scratch;
    lookup_key key = key_of(j, k);
    bool wanted = j->work->wants_value;
    free(k->value);
    k->value = NULL;
    k->result.status = FKV_OK;
    if (s->get_now(s->ctx, &key, scratch, wanted ? SCRATCH : 0, &k->result)) {
        if (k->result.status == FKV_BUFFER_TOO_SMALL && !wanted) k->result.status = FKV_OK;
        if (k->result.status != FKV_OK && k->result.status != FKV_BUFFER_TOO_SMALL) return CALL_DONE;
        if (!wanted) return CALL_DONE;
        if (k->result.status == FKV_OK) {
            k->value = malloc((size_t)k->result.value_bytes + 1);
            if (!k->value)
                k->result = (lookup_result){ .status = FKV_NO_MEMORY };
            else
                memcpy(k->value, scratch, k->result.value_bytes);
            return CALL_DONE;
        }
    }
    if (wanted && !j->kept && !k->key) {
        k->key = malloc(key.count);
        if (!k->key) {
            k->result = (lookup_result){ .status = FKV_NO_MEMORY };
            return CALL_DONE;
        }
        memcpy(k->key, key.bytes, key.count);
        k->key_bytes = key.count;
    }
    if (wanted) {
        size_t known = k->result.status == FKV_BUFFER_TOO_SMALL ? k->result.value_bytes : k->large;
        if (known < j->c->expected) known = j->c->expected;
        job_count(k, known > j->makes ? known : j->makes);
    }
    return call_started(j, k, s->get(s->ctx, &key, k));
}

call_start start_change(resp_job *j, resp_call *k) {
    const resp_store *s = &j->c->server->config.store;
    lookup_key key = key_of(j, k);
    session_ask a = j->ask;
    a.ttl_ms = ttl_until(j->ends_ms);
    if (j->puts_old) {
        a.value = j->old;
        a.value_bytes = j->old_bytes;
    } else if (j->kept) {
        a.value = j->kept + j->kept_key;
        a.value_bytes = j->kept_value;
    } else if (j->value_at) {
        resp_bytes v = argument(j->c, k->argument + j->value_at);
        a.value = v.bytes;
        a.value_bytes = v.n;
    }
    return call_started(j, k, s->change(s->ctx, &key, &a, k));
}

void answer_failure(resp_out *o, fkv_status s) {
    const char *name = fkv_status_name(s), *text = fkv_status_text(s);
    if (s == FKV_WRONG_CODEC)
        resp_error(o, "WRONGTYPE Operation against a key holding the wrong kind of value");
    else if (s == FKV_NOT_INTEGER)
        resp_error(o, "ERR value is not an integer or out of range");
    else if (s == FKV_TABLE_FULL || s == FKV_NO_MEMORY)
        resp_error(o, "OOM %s", text);
    else if (s == FKV_UNAUTHORIZED)
        resp_error(o, "NOPERM %s", text);
    else if (s == FKV_KEY_INVALID || s == FKV_VALUE_TOO_LARGE)
        resp_error(o, "ERR %s, see docs/gateway.md", text);
    else
        resp_error(o, "%s %s", strncmp(name, "ERR_", 4) == 0 ? name + 4 : name, text);
}

bool answered_bad(resp_out *o, const lookup_result *r) {
    if (r->status == FKV_NOT_FOUND) return false;
    fkv_status s = r->status == FKV_OK && r->codec ? FKV_WRONG_CODEC : r->status;
    if (s == FKV_OK) return false;
    answer_failure(o, s);
    return true;
}
