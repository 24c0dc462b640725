/* parser.c: see parser.h. */
#include "parser.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/integer.h"

enum { ARGUMENTS_KEPT = 64, BUFFER_KEPT = 64 << 10 };

void resp_parser_init(resp_parser *p) { *p = (resp_parser){ .bulk = -1 }; }

void resp_parser_free(resp_parser *p) {
    free(p->buffer);
    free(p->argument);
    resp_parser_init(p);
}

/* ---- room ---- */

/* What a large command needed is given back once it is done. */
static void shrink(resp_parser *p) {
    if (p->from == p->to && p->room > BUFFER_KEPT) {
        free(p->buffer);
        p->buffer = NULL;
        p->room = 0;
    }
    if (p->argument_room > ARGUMENTS_KEPT) {
        free(p->argument);
        p->argument = NULL;
        p->argument_room = 0;
    }
}

static void forget(resp_parser *p) {
    if (!p->taken) return;
    p->taken = false;
    p->from = p->at;
    p->count = 0;
    shrink(p);
    if (p->from == p->to) p->from = p->at = p->to = 0;
}

uint8_t *resp_parser_room(resp_parser *p, size_t *room) {
    forget(p);
    if (p->from && p->room - p->to < RESP_READ) {
        memmove(p->buffer, p->buffer + p->from, p->to - p->from);
        p->at -= p->from;
        p->to -= p->from;
        p->from = 0;
    }
    if (p->room - p->to < RESP_READ) {
        /* Twice what came, and no more than the bulk string that is coming needs. */
        size_t more = p->to < RESP_READ ? RESP_READ : p->to, wanted = p->to + more;
        size_t whole = p->bulk < 0 ? 0 : p->at + (size_t)p->bulk + 2;
        if (whole > p->to + RESP_READ && wanted > whole) wanted = whole;
        uint8_t *bytes = realloc(p->buffer, wanted);
        if (!bytes) return NULL;
        p->buffer = bytes;
        p->room = wanted;
    }
    *room = p->room - p->to;
    return p->buffer + p->to;
}

void resp_parser_filled(resp_parser *p, size_t bytes) { p->to += bytes; }

/* ---- what both kinds need ---- */

static resp_parsed bad(resp_parser *p, const char *why) {
    snprintf(p->error, sizeof p->error, "Protocol error: %s", why);
    return RESP_BAD;
}

static bool add(resp_parser *p, size_t at, size_t bytes) {
    if (p->count == p->argument_room) {
        uint32_t room = p->argument_room ? p->argument_room * 2 : 8;
        resp_argument *a = realloc(p->argument, room * sizeof *a);
        if (!a) return false;
        p->argument = a;
        p->argument_room = room;
    }
    p->argument[p->count++] = (resp_argument){ (uint32_t)(at - p->from), (uint32_t)bytes };
    return true;
}

static resp_parsed command(resp_parser *p) {
    p->taken = true;
    return RESP_COMMAND;
}

/* The end of the line at `at`: the place of `end`. False: it has not come. */
static bool line(resp_parser *p, char end, size_t *out) {
    const uint8_t *from = p->buffer + p->at + p->looked;
    const uint8_t *found = p->to > p->at + p->looked ? memchr(from, end, p->to - p->at - p->looked) : NULL;
    if (!found) p->looked = p->to - p->at;
    *out = found ? (size_t)(found - p->buffer) : 0;
    return found != NULL;
}

/* The number of a head, `*3` or `$5`, which ends with \r and one more byte. RESP_COMMAND: it is there. */
static resp_parsed head(resp_parser *p, const char *too_long, int64_t *number, bool *is_number) {
    size_t end;
    if (!line(p, '\r', &end)) return p->to - p->at > RESP_LINE_MAX ? bad(p, too_long) : RESP_MORE;
    p->looked = end - p->at; /* the \n may not be there yet */
    if (p->to - end < 2) return RESP_MORE;
    *is_number = fkv_read_integer(p->buffer + p->at + 1, (uint32_t)(end - p->at - 1), number);
    p->looked = 0;
    return RESP_COMMAND;
}

static void after_head(resp_parser *p) {
    p->at = (size_t)((uint8_t *)memchr(p->buffer + p->at, '\r', p->to - p->at) - p->buffer) + 2;
}

/* ---- inline commands ---- */

static int digit_of(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The byte that an escape within "..." stands for; *i is left at its last byte. */
static uint8_t escaped(const uint8_t *s, size_t n, size_t *i) {
    if (s[*i + 1] == 'x' && *i + 3 < n && digit_of(s[*i + 2]) >= 0 && digit_of(s[*i + 3]) >= 0) {
        uint8_t c = (uint8_t)(digit_of(s[*i + 2]) * 16 + digit_of(s[*i + 3]));
        *i += 3;
        return c;
    }
    static const char names[] = "n\nr\rt\tb\ba\a";
    uint8_t c = s[++*i];
    for (size_t k = 0; k + 1 < sizeof names; k += 2)
        if (names[k] == (char)c) return (uint8_t)names[k + 1];
    return c;
}

/* One word from s[*i] on, written over what was read, for it never becomes longer. False: quotes are not balanced. */
static bool word(uint8_t *s, size_t n, size_t *i, size_t *bytes) {
    size_t at = *i, out = at;
    uint8_t quote = 0;
    for (; at < n; at++) {
        if (!quote && is_space(s[at])) break;
        if (!quote && (s[at] == '"' || s[at] == '\'')) {
            quote = s[at];
        } else if (quote && s[at] == quote) {
            if (at + 1 < n && !is_space(s[at + 1])) return false;
            quote = 0;
            at++;
            break;
        } else if (quote == '"' && s[at] == '\\' && at + 1 < n) {
            uint8_t c = escaped(s, n, &at);
            s[out++] = c;
        } else if (quote == '\'' && s[at] == '\\' && at + 1 < n && s[at + 1] == '\'') {
            s[out++] = s[++at];
        } else {
            s[out++] = s[at];
        }
    }
    *bytes = out - *i;
    *i = at;
    return quote == 0;
}

static resp_parsed inline_command(resp_parser *p) {
    size_t end;
    if (!line(p, '\n', &end)) return p->to - p->at > RESP_LINE_MAX ? bad(p, "too big inline request") : RESP_MORE;
    uint8_t *s = p->buffer + p->at;
    size_t n = end - p->at, i = 0, start = p->at;
    if (n && s[n - 1] == '\r') n--;
    p->looked = 0;
    for (;;) {
        size_t bytes, at;
        while (i < n && is_space(s[i])) i++;
        if (i == n) break;
        at = i;
        if (!word(s, n, &i, &bytes)) return bad(p, "unbalanced quotes in request");
        if (!add(p, start + at, bytes)) return RESP_NO_MEMORY;
    }
    p->at = end + 1;
    return command(p);
}

/* ---- arrays ---- */

static resp_parsed array_head(resp_parser *p) {
    int64_t n = 0;
    bool good = false;
    resp_parsed r = head(p, "too big mbulk count string", &n, &good);
    if (r != RESP_COMMAND) return r;
    if (!good || n > RESP_ARGUMENTS_MAX) return bad(p, "invalid multibulk length");
    after_head(p);
    if (n <= 0) return command(p); /* nothing is asked for */
    p->expected = (uint32_t)n;
    return RESP_MORE;
}

static resp_parsed bulk_head(resp_parser *p) {
    int64_t n = 0;
    bool good = false;
    resp_parsed r = head(p, "too big bulk count string", &n, &good);
    if (r != RESP_COMMAND) return r;
    uint8_t first = p->buffer[p->at];
    if (first != '$') {
        char why[] = "expected '$', got ' '";
        why[sizeof why - 3] = first == '\r' || first == '\n' || !first ? ' ' : (char)first;
        return bad(p, why);
    }
    if (!good || n < 0 || n > RESP_BULK_MAX) return bad(p, "invalid bulk length");
    after_head(p);
    if (p->at - p->from + (size_t)n > RESP_COMMAND_MAX) return bad(p, "too big mbulk request");
    p->bulk = n;
    return RESP_COMMAND;
}

static resp_parsed array(resp_parser *p) {
    if (!p->expected) {
        resp_parsed r = array_head(p);
        if (r != RESP_MORE || !p->expected) return r;
    }
    while (p->count < p->expected) {
        if (p->bulk < 0) {
            resp_parsed r = p->at == p->to ? RESP_MORE : bulk_head(p);
            if (r != RESP_COMMAND) return r;
        }
        if (p->to - p->at < (size_t)p->bulk + 2) return RESP_MORE;
        if (!add(p, p->at, (size_t)p->bulk)) return RESP_NO_MEMORY;
        p->at += (size_t)p->bulk + 2;
        p->bulk = -1;
    }
    p->expected = 0;
    return command(p);
}

resp_parsed resp_parser_next(resp_parser *p) {
    resp_parsed r;
    do {
        forget(p);
        if (!p->expected && p->at == p->to) return RESP_MORE;
        r = p->expected || p->buffer[p->from] == '*' ? array(p) : inline_command(p);
    } while (r == RESP_COMMAND && p->count == 0);
    return r;
}
