/* commands.c: which commands there are, how many arguments each takes, and what all of them need. */
#include <string.h>
#include "../base/integer.h"
#include "internal.h"

typedef struct command {
    const char *name;
    int arguments; /* with the name; negative: at least so many */
    command_function *run;
} command;

static const command commands[] = {
    { "get", 2, get_command },
    { "set", -3, set_command },
    { "incr", 2, incr_command },
    { "mget", -2, mget_command },
    { "mset", -3, mset_command },
    { "del", -2, del_command },
    { "exists", -2, exists_command },
    { "expire", -3, expire_command },
    { "ttl", 2, ttl_command },
    { "ping", -1, ping_command },
    { "append", 3, append_command },
    { "auth", -2, auth_command },
    { "client", -2, client_command },
    { "command", -1, command_command },
    { "config", -2, config_command },
    { "dbsize", 1, dbsize_command },
    { "decr", 2, decr_command },
    { "decrby", 3, decrby_command },
    { "discard", 1, discard_command },
    { "echo", 2, echo_command },
    { "exec", 1, exec_command },
    { "expireat", -3, expireat_command },
    { "expiretime", 2, expiretime_command },
    { "flushall", -1, flushall_command },
    { "flushdb", -1, flushdb_command },
    { "function", -2, function_command },
    { "getdel", 2, getdel_command },
    { "getex", -2, getex_command },
    { "getrange", 4, getrange_command },
    { "getset", 3, getset_command },
    { "hdel", -3, hdel_command },
    { "hello", -1, hello_command },
    { "hexists", 3, hexists_command },
    { "hget", 3, hget_command },
    { "hgetall", 2, hgetall_command },
    { "hincrby", 4, hincrby_command },
    { "hkeys", 2, hkeys_command },
    { "hlen", 2, hlen_command },
    { "hmget", -3, hmget_command },
    { "hmset", -4, hmset_command },
    { "hset", -4, hset_command },
    { "hsetnx", 4, hsetnx_command },
    { "hstrlen", 3, hstrlen_command },
    { "hvals", 2, hvals_command },
    { "incrby", 3, incrby_command },
    { "incrbyfloat", 3, incrbyfloat_command },
    { "host:", -1, http_command },
    { "info", -1, info_command },
    { "keys", 2, keys_command },
    { "memory", -2, memory_command },
    { "msetnx", -3, msetnx_command },
    { "multi", 1, multi_command },
    { "object", -2, object_command },
    { "persist", 2, persist_command },
    { "pexpire", -3, pexpire_command },
    { "pexpireat", -3, pexpireat_command },
    { "pexpiretime", 2, pexpiretime_command },
    { "post", -1, http_command },
    { "psetex", 4, psetex_command },
    { "pttl", 2, pttl_command },
    { "quit", -1, quit_command },
    { "randomkey", 1, randomkey_command },
    { "reset", 1, reset_command },
    { "scan", -2, scan_command },
    { "select", 2, select_command },
    { "setex", 4, setex_command },
    { "setnx", 3, setnx_command },
    { "setrange", 4, setrange_command },
    { "strlen", 2, strlen_command },
    { "substr", 4, getrange_command },
    { "touch", -2, exists_command },
    { "type", 2, type_command },
    { "unlink", -2, del_command },
    { "wait", 3, wait_command },
    { "watch", -2, multi_command },
};

enum { COMMANDS = sizeof commands / sizeof *commands };

uint32_t command_count(void) { return COMMANDS; }

static uint8_t lower(uint8_t c) { return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c; }

bool is_word(resp_bytes b, const char *word) {
    if (strlen(word) != b.n) return false;
    for (uint32_t i = 0; i < b.n; i++)
        if (lower(b.bytes[i]) != (uint8_t)word[i]) return false;
    return true;
}

void wrong_arguments(resp_connection *c, const char *name) {
    resp_error(connection_answer(c), "ERR wrong number of arguments for '%s' command", name);
}

/* What is taken between a MULTI, which was refused, and its end. */
static bool is_refused(const resp_connection *c, resp_bytes name) {
    if (!c->refuses) return false;
    return !(is_word(name, "exec") || is_word(name, "discard") || is_word(name, "reset") || is_word(name, "quit") ||
             is_word(name, "host:") || is_word(name, "post"));
}

void command_run(resp_connection *c) {
    resp_bytes name = argument(c, 0);
    int given = (int)c->parser.count;
    if (is_refused(c, name)) {
        refuse_multi(c);
        return;
    }
    for (uint32_t i = 0; i < COMMANDS; i++) {
        const command *d = &commands[i];
        if (!is_word(name, d->name)) continue;
        if (d->arguments < 0 ? given < -d->arguments : given != d->arguments)
            wrong_arguments(c, d->name);
        else
            d->run(c);
        return;
    }
    resp_error(connection_answer(c), "ERR unknown command '%.*s', see docs/gateway.md",
               name.n < 128 ? (int)name.n : 128, (const char *)name.bytes);
}

bool integer_argument(resp_connection *c, uint32_t i, int64_t *out) {
    resp_bytes b = argument(c, i);
    if (fkv_read_integer(b.bytes, b.n, out)) return true;
    answer_failure(connection_answer(c), FKV_NOT_INTEGER);
    return false;
}

/* ---- times to live ---- */

expiry_kind read_expiry(resp_bytes b, expiry_unit u, bool may_be_past, uint64_t *ends_ms) {
    int64_t n, now = (int64_t)fkv_wall_ms(), at;
    if (!fkv_read_integer(b.bytes, b.n, &n)) return EXPIRY_NO_INTEGER;
    if (!may_be_past && n <= 0) return EXPIRY_BAD;
    if (__builtin_mul_overflow(n, u.unit_ms, &at) || __builtin_add_overflow(at, u.absolute ? 0 : now, &at))
        return EXPIRY_BAD;
    if (at > now && (uint64_t)(at - now) > FKV_TTL_MAX) return EXPIRY_BAD;
    *ends_ms = at > now ? (uint64_t)at : 1;
    return EXPIRY_GOOD;
}

void refuse_expiry(resp_out *o, expiry_kind why, const char *command) {
    if (why == EXPIRY_NO_INTEGER)
        answer_failure(o, FKV_NOT_INTEGER);
    else
        resp_error(o, "ERR invalid expire time in '%s' command", command);
}

bool expiry_argument(resp_connection *c, uint32_t i, expiry_unit u, bool may_be_past, const char *command,
                     uint64_t *ends_ms) {
    expiry_kind k = read_expiry(argument(c, i), u, may_be_past, ends_ms);
    if (k != EXPIRY_GOOD) refuse_expiry(connection_answer(c), k, command);
    return k == EXPIRY_GOOD;
}

uint64_t ttl_until(uint64_t ends_ms) {
    uint64_t now = fkv_wall_ms();
    if (!ends_ms) return 0;
    return ends_ms > now ? ends_ms - now : 1;
}
