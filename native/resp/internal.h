/* internal.h: what the files of native/resp share. Private to the folder.
 *
 * Bounds of one connection: RESP_COMMAND_MAX bytes of a command that is not whole yet; CALLS_MAX calls of the store;
 * OUT_MAX bytes of replies that the client has not taken or that wait for their turn, of values that are read, and of
 * what commands keep, and one of them more; QUEUED_MAX bytes of commands under way, and one command more. Where one is
 * reached no further command is run, and with the parser full nothing is read, so TCP holds the client back.
 *
 * How large a value is, is known when it comes: until then a call counts what the values before it let expect. One that
 * is larger, and does not fit, is dropped and read again when it fits or when it is the next to be answered.
 */
#ifndef FARKV_RESP_INTERNAL_H
#define FARKV_RESP_INTERNAL_H
#include "../base/clock.h"
#include "../base/list.h"
#include "parser.h"
#include "reply.h"
#include "server.h"

enum {
    CALLS_MAX = 128,
    MARKS = 1024,
    OUT_MAX = 1 << 20,
    QUEUED_MAX = 1 << 20,
    SCRATCH = 64 << 10,
    NAME_MAX_BYTES = 64
};

/* What a connection that does nothing may hold. */
enum { BASE_BYTES = 128 << 10 };

/* A busy store, or a version that goes again and again, is waited for; after that it is a failure, which is told. */
#define WAIT_NS ((uint64_t)5 * 1000 * 1000 * 1000)

typedef struct resp_connection resp_connection;
typedef struct resp_job resp_job;
typedef struct resp_walk resp_walk;

/* ---- jobs: commands that are not answered at once ---- */

struct resp_call {
    fkv_list link; /* connection.again: to be started once more; else in no list */
    resp_job *job;
    uint32_t argument; /* of its key */
    uint16_t mark;     /* of its key's hash */
    bool done;
    uint32_t large; /* bytes of its value, which did not fit; 0: it was not dropped */
    size_t counted; /* of connection.held */
    lookup_result result;
    uint8_t *value; /* of a read that wanted it; of malloc */
    uint8_t *key;   /* likewise while it is under way: when it is read again, its command has gone */
    uint32_t key_bytes;
};

typedef enum { CALL_FLYING, CALL_DONE, CALL_LATER } call_start;

/* What a command does with each key, and what it answers. */
typedef struct resp_work {
    bool changes, wants_value;
    bool walks; /* no keys, one call: see walk.c */
    /* DONE: the call's result is there. LATER: the store is busy. */
    call_start (*start)(resp_job *j, resp_call *k);
    /* False: the call has to be started again. NULL: what has ended has ended. */
    bool (*ended)(resp_job *j, resp_call *k);
    /* Answers, when all calls have ended; with `each`, which answers for one call, only begins to. */
    void (*finish)(resp_job *j, resp_out *o);
    void (*each)(resp_job *j, resp_call *k, resp_out *o);
    /* swap.c: whether what was read is changed now. */
    bool (*decides)(resp_job *j, const lookup_result *r);
} resp_work;

struct resp_job {
    fkv_list link; /* connection.jobs */
    resp_connection *c;
    const resp_work *work;
    uint32_t calls, issued, left; /* left: issued and not done */
    uint32_t answered;            /* with `each` */
    bool begun;                   /* likewise */
    int protocol;                 /* when the command came, and */
    uint16_t space;
    resp_out after; /* answers of the commands behind it that were answered at once */

    /* What the commands need. */
    session_ask ask;    /* of a change: op, flags, user_flags, expected */
    uint32_t value_at;  /* of a change: the argument behind the key that is its value; 0: none */
    uint8_t what, step; /* of the command; how far it is */
    int64_t from, to;   /* GETRANGE, SETRANGE: places in the value; FLUSHDB: in the page; MEMORY: bytes of the key */
    uint64_t ends_ms;   /* wall clock, an expiry; 0: none */
    uint64_t until_ns;  /* of what is tried again */
    uint64_t busy_ns;   /* since when the store takes none of its calls; 0: it does */
    uint8_t *kept;      /* key and value, for a command that starts several calls of its key */
    uint32_t kept_key, kept_value;
    uint8_t *old; /* the value before the change, or, with `puts_old`, what is made of it, which the change puts */
    uint32_t old_bytes;
    size_t makes; /* bytes that `old` will have at least: counted from the start */
    bool puts_old, was_there;
    resp_walk *walk;
    resp_call call[];
};

/* ---- connections ---- */

struct resp_connection {
    fkv_list link;  /* server.connections */
    fkv_list ready; /* server.ready or .starved */
    resp_server *server;
    int fd;
    uint64_t id;
    bool readable, writable, hung_up;
    bool ending;  /* nothing more is read; closed once all is answered */
    bool broken;  /* nobody is there to be answered any more: closed at once */
    bool closed;  /* the socket is; freed with the last call */
    bool leaves;  /* closed with calls under way: counted in server.leaving */
    bool refuses; /* a MULTI was refused, so that nothing is run until its end */
    int protocol;
    uint16_t space, database;
    uint32_t calls;
    size_t held;     /* bytes of answers that wait for their turn, of what comes and of what commands keep */
    size_t queued;   /* bytes of the jobs themselves */
    size_t expected; /* bytes of a value that is read */
    size_t counted;  /* of server.bytes */
    resp_parser parser;
    resp_out out;
    fkv_list jobs;     /* in order */
    resp_job *issuing; /* the last one, while not all of its calls are started; its command is the parser's */
    fkv_list again;    /* calls to be started again */
    size_t guess;      /* bytes of the value before */
    char name[NAME_MAX_BYTES + 1];
    /* How many calls of keys with this mark are under way: reads, and changes. */
    uint8_t reading[MARKS], changing[MARKS];
};

struct resp_server {
    resp_server_config config;
    int epoll;
    bool accepting, short_of_room, closing; /* short_of_room: no descriptor was left */
    uint32_t calls;
    uint64_t next_id;
    uint64_t bytes;   /* that connections hold, each beyond BASE_BYTES */
    uint64_t leaving; /* of these, by connections that are closed */
    fkv_list connections, ready, starved;
    resp_server_stats stats;
    uint8_t scratch[SCRATCH];
};

/* server.c */
void server_ready(resp_connection *c);   /* it runs in the next turn */
void server_starved(resp_connection *c); /* it runs once a call has ended */

/* connection.c */
resp_connection *connection_new(resp_server *s, int fd);
void connection_run(resp_connection *c);
void connection_close(resp_connection *c); /* may free it */
void connection_count(resp_connection *c); /* what it holds, for the server's bound */
resp_out *connection_answer(resp_connection *c);

typedef struct resp_bytes {
    const uint8_t *bytes;
    uint32_t n;
} resp_bytes;
static inline resp_bytes argument(const resp_connection *c, uint32_t i) {
    return (resp_bytes){ resp_parser_bytes(&c->parser, i), c->parser.argument[i].bytes };
}

/* job.c */
/* A job of `calls` keys, which are the arguments from `first` on, each `step` behind the one before. NULL: a key is not
 * one, or there is no memory, which was answered. */
resp_job *job_new(resp_connection *c, const resp_work *w, uint32_t calls, uint32_t first, uint32_t step);
resp_job *job_new_walk(resp_connection *c, const resp_work *w, resp_walk *walk); /* NULL: no memory; was answered */
/* Keeps the key and the value at `value` (0: none) beyond the command. False: no memory, which was answered; no job. */
bool job_keep(resp_job *j, uint32_t value);
uint8_t *job_keep_room(resp_job *j,
                       uint32_t bytes); /* the same, in place of the value room for so many bytes; NULL: false */
bool job_issue(resp_connection *c);     /* false: the rest has to wait */
bool job_drain(resp_connection *c);     /* what can be answered is; false: nothing */
void job_retry(resp_connection *c);
/* Whether so many more bytes do not fit. */
bool job_full(const resp_connection *c, size_t bytes);
void job_count(resp_call *k, size_t bytes); /* what it holds or will hold, from now on */
void job_free(resp_job *j);
static inline uint16_t mark_of(uint64_t hash) { return (uint16_t)(hash >> 32 & (MARKS - 1)); }

/* calls.c: what jobs start */
call_start start_read(resp_job *j, resp_call *k);
call_start call_started(resp_job *j, resp_call *k, fkv_status s); /* what came of asking the store */
/* Puts, in this order: `old` if told so, what is kept, the argument at `value_at`. It ends at `ends_ms`. */
call_start start_change(resp_job *j, resp_call *k);
void answer_failure(resp_out *o, fkv_status s);
/* Answers a failure, or another codec; false: neither. NOT_FOUND is no failure. */
bool answered_bad(resp_out *o, const lookup_result *r);

/* walk.c */
void walk_free(resp_walk *w);
size_t walk_bytes(const resp_walk *w);

/* swap.c: read, decide, and change the version that was read; if that has gone, begin again. Sets was_there and old. */
enum { STEP_READ, STEP_CHANGE, STEP_REFUSED };
call_start swap_start(resp_job *j, resp_call *k);
bool swap_ended(resp_job *j, resp_call *k);

/* commands.c */
void command_run(resp_connection *c);
bool is_word(resp_bytes b, const char *upper_case);
void wrong_arguments(resp_connection *c, const char *name);
uint32_t command_count(void);

typedef void command_function(resp_connection *c);
/* strings.c */
command_function get_command, mget_command, mset_command, strlen_command, getrange_command, append_command,
    incr_command, decr_command, incrby_command, decrby_command;
/* set.c */
command_function set_command, setnx_command, setex_command, psetex_command, getset_command, getdel_command,
    getex_command;
/* edit.c */
command_function setrange_command, incrbyfloat_command;
/* hash.c */
command_function hset_command, hmset_command, hsetnx_command, hdel_command, hincrby_command;
/* Whether a command may carry fields of so many bytes; false: refused. */
bool fields_fit(resp_connection *c, uint64_t bytes);
/* hash_reads.c */
command_function hget_command, hmget_command, hgetall_command, hkeys_command, hvals_command, hlen_command,
    hexists_command, hstrlen_command;
/* The fields of the job's only call; false: there are none to be had, which was answered. An absent hash has none. */
bool hash_fields(const resp_job *j, resp_out *o, uint32_t *count);
/* keys.c */
command_function del_command, exists_command, type_command, ttl_command, pttl_command, expiretime_command,
    pexpiretime_command, expire_command, pexpire_command, expireat_command, pexpireat_command, persist_command;
/* walk.c */
command_function dbsize_command, keys_command, scan_command, randomkey_command;
/* flush.c */
command_function flushdb_command, flushall_command;
/* inspect.c */
command_function object_command, memory_command;
/* about.c */
command_function ping_command, echo_command, quit_command, select_command, hello_command, auth_command, reset_command,
    command_command, info_command, multi_command, exec_command, discard_command, msetnx_command, function_command,
    wait_command, http_command;
void refuse_multi(resp_connection *c);
/* clients.c */
command_function client_command, config_command;
bool client_set_name(resp_connection *c, resp_bytes name); /* false: it is none, which was answered */
uint32_t database_count(const resp_server *s);

/* An integer argument; false: it is none, which was answered. */
bool integer_argument(resp_connection *c, uint32_t i, int64_t *out);
/* A time to live: `unit_ms` 1 or 1000, from now or, `absolute`, since 1970. */
typedef struct expiry_unit {
    int64_t unit_ms;
    bool absolute;
} expiry_unit;
typedef enum { EXPIRY_GOOD, EXPIRY_NO_INTEGER, EXPIRY_BAD } expiry_kind;
/* The wall clock at which it ends; 1: in the past, which only a moment since 1970 may be unless `may_be_past`. */
expiry_kind read_expiry(resp_bytes b, expiry_unit u, bool may_be_past, uint64_t *ends_ms);
void refuse_expiry(resp_out *o, expiry_kind why, const char *command);
/* Both; false: refused. */
bool expiry_argument(resp_connection *c, uint32_t i, expiry_unit u, bool may_be_past, const char *command,
                     uint64_t *ends_ms);
/* Milliseconds from now, at least 1; 0 for 0. */
uint64_t ttl_until(uint64_t ends_ms);

#endif
