/* about.c: commands about the connection and the server, answered without the store. What Redis clients ask when they
 * connect has the answers of a redis-server 7 without a password; what would be wrong of farkv is left out. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "../base/integer.h"
#include "internal.h"

#define VERSION "7.0.0"

void ping_command(resp_connection *c) {
    if (c->parser.count > 2)
        wrong_arguments(c, "ping");
    else if (c->parser.count == 2)
        resp_bulk(connection_answer(c), argument(c, 1).bytes, argument(c, 1).n);
    else
        resp_simple(connection_answer(c), "PONG");
}

void echo_command(resp_connection *c) { resp_bulk(connection_answer(c), argument(c, 1).bytes, argument(c, 1).n); }

void quit_command(resp_connection *c) {
    resp_simple(connection_answer(c), "OK");
    c->ending = true;
}

void select_command(resp_connection *c) {
    int64_t n;
    if (!integer_argument(c, 1, &n)) return;
    if (n < 0 || n >= database_count(c->server)) {
        resp_error(connection_answer(c), "ERR DB index is out of range");
        return;
    }
    c->database = (uint16_t)n;
    c->space = (uint16_t)(c->server->config.space + n);
    resp_simple(connection_answer(c), "OK");
}

void reset_command(resp_connection *c) {
    resp_out *o = connection_answer(c);
    c->protocol = 2;
    c->database = 0;
    c->space = c->server->config.space;
    c->name[0] = '\0';
    c->refuses = false;
    resp_simple(o, "RESET");
}

/* A web page can have a browser send what it likes to a local port, as lines. No line of HTTP is answered or survived,
 * as with redis-server. */
void http_command(resp_connection *c) { c->broken = true; } /* mutation: gateway/browser */

/* ---- transactions, which are refused ---- */

/* Whoever does not look at this answer must not have his commands run one by one instead. */
void refuse_multi(resp_connection *c) {
    resp_error(connection_answer(c), "ERR MULTI and WATCH are not supported by farkv's gateway, see docs/gateway.md");
}

void multi_command(resp_connection *c) {
    c->refuses = c->refuses || is_word(argument(c, 0), "multi");
    refuse_multi(c);
}

void exec_command(resp_connection *c) {
    resp_error(connection_answer(c),
               c->refuses ? "EXECABORT Transaction discarded because of previous errors." : "ERR EXEC without MULTI");
    c->refuses = false;
}

/* True after a MULTI, though that was refused: nothing was run. */
void discard_command(resp_connection *c) {
    if (c->refuses)
        resp_simple(connection_answer(c), "OK");
    else
        resp_error(connection_answer(c), "ERR DISCARD without MULTI");
    c->refuses = false;
}

/* Its keys may have several owners, so that it cannot be one step. */
void msetnx_command(resp_connection *c) {
    resp_error(connection_answer(c), "ERR MSETNX sets all of its keys or none, which farkv cannot promise of several "
                                     "keys: use SETNX or SET NX for each, see docs/gateway.md");
}

/* ---- HELLO and AUTH ---- */

/* There are no passwords: as redis-server, whose user `default` then takes any. */
static bool authenticated(resp_connection *c, resp_bytes user) {
    if (user.n == 7 && memcmp(user.bytes, "default", 7) == 0) return true;
    resp_error(connection_answer(c), "WRONGPASS invalid username-password pair or user is disabled.");
    return false;
}

void auth_command(resp_connection *c) {
    resp_out *o = connection_answer(c);
    if (c->parser.count > 3)
        resp_error(o, "ERR syntax error");
    else if (c->parser.count == 2)
        resp_error(o, "ERR AUTH <password> called without any password configured for the default user. Are you sure "
                      "your configuration is correct?");
    else if (authenticated(c, argument(c, 1)))
        resp_simple(o, "OK");
}

static bool hello_options(resp_connection *c) {
    for (uint32_t i = 2; i < c->parser.count; i++) {
        resp_bytes b = argument(c, i);
        uint32_t left = c->parser.count - 1 - i;
        if (is_word(b, "auth") && left >= 2) {
            if (!authenticated(c, argument(c, i + 1))) return false;
            i += 2;
        } else if (is_word(b, "setname") && left >= 1) {
            if (!client_set_name(c, argument(c, ++i))) return false;
        } else {
            resp_error(connection_answer(c), "ERR Syntax error in HELLO option '%.*s'", b.n < 128 ? (int)b.n : 128,
                       (const char *)b.bytes);
            return false;
        }
    }
    return true;
}

void hello_command(resp_connection *c) {
    resp_out *o = connection_answer(c);
    int64_t version = c->protocol;
    if (c->parser.count > 1) {
        resp_bytes b = argument(c, 1);
        if (!fkv_read_integer(b.bytes, b.n, &version)) {
            resp_error(o, "ERR Protocol version is not an integer or out of range");
            return;
        }
        if (version < 2 || version > 3) {
            resp_error(o, "NOPROTO unsupported protocol version");
            return;
        }
    }
    if (!hello_options(c)) return;
    c->protocol = (int)version;
    resp_map(o, c->protocol, 7);
    resp_text(o, "server");
    resp_text(o, "redis");
    resp_text(o, "version");
    resp_text(o, VERSION);
    resp_text(o, "proto");
    resp_integer(o, c->protocol);
    resp_text(o, "id");
    resp_integer(o, (int64_t)c->id);
    resp_text(o, "mode");
    resp_text(o, "standalone");
    resp_text(o, "role");
    resp_text(o, "master");
    resp_text(o, "modules");
    resp_array(o, 0);
}

/* ---- the server ---- */

void command_command(resp_connection *c) {
    resp_out *o = connection_answer(c);
    if (c->parser.count == 1)
        resp_array(o, 0);
    else if (is_word(argument(c, 1), "count") && c->parser.count == 2)
        resp_integer(o, command_count());
    else if (is_word(argument(c, 1), "count"))
        wrong_arguments(c, "command|count");
    else if (is_word(argument(c, 1), "docs"))
        resp_map(o, c->protocol, 0);
    else
        resp_error(o, "ERR unknown subcommand '%.*s'. Try COMMAND HELP.",
                   argument(c, 1).n < 128 ? (int)argument(c, 1).n : 128, (const char *)argument(c, 1).bytes);
}

/* There are no functions, so that none is left after a flush. */
void function_command(resp_connection *c) {
    resp_out *o = connection_answer(c);
    resp_bytes what = argument(c, 1);
    uint32_t n = c->parser.count;
    if (!is_word(what, "flush"))
        resp_error(o, "ERR only FUNCTION FLUSH is built, see docs/gateway.md");
    else if (n > 3)
        resp_error(o, "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try FUNCTION HELP.", (int)what.n,
                   (const char *)what.bytes);
    else if (n == 3 && !is_word(argument(c, 2), "sync") && !is_word(argument(c, 2), "async"))
        resp_error(o, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
    else
        resp_simple(o, "OK");
}

/* There are no replicas of the gateway, and nothing to wait for: what is answered is as safe as the cluster makes it. */
void wait_command(resp_connection *c) {
    resp_out *o = connection_answer(c);
    resp_bytes timeout = argument(c, 2);
    int64_t n;
    if (!integer_argument(c, 1, &n)) return;
    if (!fkv_read_integer(timeout.bytes, timeout.n, &n))
        resp_error(o, "ERR timeout is not an integer or out of range");
    else if (n < 0)
        resp_error(o, "ERR timeout is negative");
    else
        resp_integer(o, 0);
}

void info_command(resp_connection *c) {
    char text[512];
    resp_server_stats s = resp_server_get_stats(c->server);
    snprintf(text, sizeof text,
             "# Server\r\nredis_version:" VERSION
             "\r\nredis_mode:standalone\r\nserver_name:farkv\r\nprocess_id:%d\r\n\r\n"
             "# Clients\r\nconnected_clients:%llu\r\nmaxclients:%u\r\nmem_clients_normal:%llu\r\n\r\n# "
             "Persistence\r\nloading:0\r\n\r\n"
             "# "
             "Stats\r\ntotal_connections_received:%llu\r\ntotal_commands_processed:%llu\r\nrejected_connections:%"
             "llu\r\nevicted_clients:%llu\r\n"
             "\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n",
             (int)getpid(), (unsigned long long)s.connections, c->server->config.max_connections,
             (unsigned long long)c->server->bytes, (unsigned long long)s.accepted, (unsigned long long)s.commands,
             (unsigned long long)s.refused, (unsigned long long)s.evicted);
    resp_verbatim(connection_answer(c), c->protocol, text);
}
