/* clients.c: CLIENT and CONFIG GET: what connections there are, and settings that clients ask for. Nothing can be set but
 * a connection's own name. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "glob.h"
#include "internal.h"

enum {
    LIST_MAX = 1024,      /* clients in one CLIENT LIST, so that it is a short turn */
    LINE_MAX_BYTES = 384, /* of one client */
    SETTINGS_MAX = 64,    /* arguments of one CONFIG GET, and the bytes of each: likewise */
    DATABASES = 1 << 16
};

uint32_t database_count(const resp_server *s) { return DATABASES - s->config.space; }

/* ---- CLIENT ---- */

bool client_set_name(resp_connection *c, resp_bytes name) {
    if (name.n > NAME_MAX_BYTES) {
        resp_error(connection_answer(c), "ERR Client names are at most %d bytes", NAME_MAX_BYTES);
        return false;
    }
    for (uint32_t i = 0; i < name.n; i++) {
        if (name.bytes[i] >= '!' && name.bytes[i] <= '~') continue;
        resp_error(connection_answer(c), "ERR Client names cannot contain spaces, newlines or special characters.");
        return false;
    }
    memcpy(c->name, name.bytes, name.n);
    c->name[name.n] = '\0';
    return true;
}

/* "host:port", as redis-server writes it; "?" if the connection has just gone. */
static void address_text(char out[NI_MAXSERV + INET6_ADDRSTRLEN + 4], int fd,
                         int (*of)(int, struct sockaddr *, socklen_t *)) {
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    char host[INET6_ADDRSTRLEN], port[NI_MAXSERV];
    snprintf(out, 2, "?");
    if (of(fd, (struct sockaddr *)&a, &n) != 0 || getnameinfo((struct sockaddr *)&a, n, host, sizeof host, port,
                                                              sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    snprintf(out, NI_MAXSERV + INET6_ADDRSTRLEN + 4, a.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

/* One line, with the command that asks. Returns its bytes. */
static size_t client_line(char out[LINE_MAX_BYTES], const resp_connection *c, const char *command) {
    char peer[NI_MAXSERV + INET6_ADDRSTRLEN + 4], own[sizeof peer];
    address_text(peer, c->fd, getpeername);
    address_text(own, c->fd, getsockname);
    int n = snprintf(out, LINE_MAX_BYTES, "id=%llu addr=%s laddr=%s fd=%d name=%s db=%u resp=%d cmd=%s user=default\n",
                     (unsigned long long)c->id, peer, own, c->fd, c->name, c->database, c->protocol, command);
    return n < LINE_MAX_BYTES ? (size_t)n : LINE_MAX_BYTES - 1;
}

static void client_info(resp_connection *c) {
    char text[LINE_MAX_BYTES];
    client_line(text, c, "client|info");
    resp_verbatim(connection_answer(c), c->protocol, text);
}

/* Whether clients of this type are to be listed: all are normal. False in `known`: there is no such type. */
static bool is_normal(resp_bytes type, bool *known) {
    bool normal = is_word(type, "normal");
    *known = normal || is_word(type, "master") || is_word(type, "replica") || is_word(type, "slave") ||
             is_word(type, "pubsub");
    return normal;
}

static void list_clients(resp_connection *c) {
    resp_out *o = connection_answer(c);
    resp_server *s = c->server;
    char *text = malloc((size_t)LIST_MAX * LINE_MAX_BYTES + 1);
    size_t n = 0;
    if (!text) {
        answer_failure(o, FKV_NO_MEMORY);
        return;
    }
    for (fkv_list *l = s->connections.next; l != &s->connections; l = l->next) {
        const resp_connection *one = LIST_OF(l, resp_connection, link);
        /* The descriptor of one that is closed may be another's already. */
        if (!one->closed) n += client_line(text + n, one, one == c ? "client|list" : "?");
    }
    text[n] = '\0';
    resp_verbatim(o, c->protocol, text);
    free(text);
}

static void client_list(resp_connection *c) {
    resp_out *o = connection_answer(c);
    resp_bytes type = c->parser.count == 4 ? argument(c, 3) : (resp_bytes){ (const uint8_t *)"normal", 6 };
    bool known, normal = is_normal(type, &known);
    if (c->parser.count != 2 && !(c->parser.count == 4 && is_word(argument(c, 2), "type")))
        resp_error(o, "ERR syntax error");
    else if (!known)
        resp_error(o, "ERR Unknown client type '%.*s'", type.n < 128 ? (int)type.n : 128, (const char *)type.bytes);
    else if (!normal)
        resp_verbatim(o, c->protocol, "");
    else if (c->server->stats.connections > LIST_MAX)
        resp_error(o, "ERR CLIENT LIST has at most %d clients and there are %llu, see INFO for their number", LIST_MAX,
                   (unsigned long long)c->server->stats.connections);
    else
        list_clients(c);
}

/* No connection is spared when all together hold too much: ON would promise that. */
static void client_no_evict(resp_connection *c) {
    resp_out *o = connection_answer(c);
    if (is_word(argument(c, 2), "off"))
        resp_simple(o, "OK");
    else if (is_word(argument(c, 2), "on"))
        resp_error(o, "ERR CLIENT NO-EVICT ON is not built: no client is spared, see docs/gateway.md");
    else
        resp_error(o, "ERR syntax error");
}

static void client_wrong_arguments(resp_connection *c, resp_bytes what) {
    static const char *const known[] = { "id", "getname", "info", "setname", "setinfo", "no-evict" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char name[24];
        if (!is_word(what, known[i])) continue;
        snprintf(name, sizeof name, "client|%s", known[i]);
        wrong_arguments(c, name);
        return;
    }
    resp_error(connection_answer(c), "ERR unknown subcommand '%.*s'. Try CLIENT HELP.",
               what.n < 128 ? (int)what.n : 128, (const char *)what.bytes);
}

void client_command(resp_connection *c) {
    resp_out *o = connection_answer(c);
    resp_bytes what = argument(c, 1);
    uint32_t n = c->parser.count;
    if (is_word(what, "id") && n == 2)
        resp_integer(o, (int64_t)c->id);
    else if (is_word(what, "getname") && n == 2 && c->name[0])
        resp_text(o, c->name);
    else if (is_word(what, "getname") && n == 2)
        resp_null(o, c->protocol);
    else if (is_word(what, "info") && n == 2)
        client_info(c);
    else if (is_word(what, "list"))
        client_list(c);
    else if (is_word(what, "no-evict") && n == 3)
        client_no_evict(c);
    else if (is_word(what, "setname") && n == 3) {
        if (client_set_name(c, argument(c, 2))) resp_simple(o, "OK");
    } else if (is_word(what, "setinfo") && n == 4)
        resp_simple(o, "OK");
    else
        client_wrong_arguments(c, what);
}

/* ---- CONFIG ---- */

enum { DATABASES_SETTING = 1, MAXCLIENTS_SETTING, SETTINGS = 7 };

/* NULL: a number of the server. What a gateway does is what redis-server does with these. */
static const char *const settings[SETTINGS][2] = {
    { "appendonly", "no" },
    { "databases", NULL },
    { "maxclients", NULL },
    { "maxmemory", "0" },
    { "maxmemory-policy", "noeviction" },
    { "save", "" },
    { "timeout", "0" },
};

static uint32_t setting_number(const resp_server *s, int k) {
    return k == DATABASES_SETTING ? database_count(s) : s->config.max_connections;
}

/* Marks what a pattern, of any case, names; how many more these are. */
static uint32_t settings_named(resp_bytes pattern, bool wanted[SETTINGS]) {
    uint8_t lower[SETTINGS_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < pattern.n; i++)
        lower[i] = pattern.bytes[i] >= 'A' && pattern.bytes[i] <= 'Z' ? pattern.bytes[i] | 32 : pattern.bytes[i];
    for (int k = 0; k < SETTINGS; k++) {
        const char *name = settings[k][0];
        if (wanted[k] || !resp_glob_matches(lower, pattern.n, (const uint8_t *)name, (uint32_t)strlen(name))) continue;
        wanted[k] = true;
        n++;
    }
    return n;
}

void config_command(resp_connection *c) {
    resp_out *o = connection_answer(c);
    bool wanted[SETTINGS] = { false };
    uint32_t n = 0;
    if (!is_word(argument(c, 1), "get")) {
        resp_error(o, "ERR only CONFIG GET is built, see docs/gateway.md");
        return;
    }
    if (c->parser.count < 3) {
        wrong_arguments(c, "config|get");
        return;
    }
    for (uint32_t i = 2; i < c->parser.count; i++) {
        if (i - 2 == SETTINGS_MAX || argument(c, i).n > SETTINGS_MAX) {
            resp_error(o, "ERR CONFIG GET takes at most %d names, each of at most %d bytes", SETTINGS_MAX,
                       SETTINGS_MAX);
            return;
        }
        n += settings_named(argument(c, i), wanted);
    }
    resp_map(o, c->protocol, n);
    for (int k = 0; k < SETTINGS; k++) {
        char number[16];
        if (!wanted[k]) continue;
        snprintf(number, sizeof number, "%u", setting_number(c->server, k));
        resp_text(o, settings[k][0]);
        resp_text(o, settings[k][1] ? settings[k][1] : number);
    }
}
