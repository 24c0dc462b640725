/* reply.c: see reply.h. */
#include "reply.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_KEPT = 64 << 10, ERROR_MAX = 400, HEAD_MAX = 24 };

void resp_out_free(resp_out *o) {
    free(o->bytes);
    *o = (resp_out){ 0 };
}

void resp_out_took(resp_out *o, size_t bytes) {
    o->from += bytes;
    if (o->from < o->to) return;
    o->from = o->to = 0;
    if (o->room <= ROOM_KEPT) return;
    free(o->bytes);
    *o = (resp_out){ .failed = o->failed };
}

uint8_t *resp_out_room(resp_out *o, size_t bytes) {
    if (o->failed) return NULL;
    if (o->room - o->to >= bytes) return o->bytes + o->to;
    if (o->from >= o->to - o->from) { /* not more than was sent is moved */
        if (o->from) memcpy(o->bytes, o->bytes + o->from, o->to - o->from);
        o->to -= o->from;
        o->from = 0;
    }
    if (o->room - o->to < bytes) {
        size_t room = o->room * 2 > 4096 ? o->room * 2 : 4096;
        if (room < o->to + bytes) room = o->to + bytes;
        uint8_t *more = realloc(o->bytes, room);
        if (!more) {
            o->failed = true;
            return NULL;
        }
        o->bytes = more;
        o->room = room;
    }
    return o->bytes + o->to;
}

void resp_out_move(resp_out *to, resp_out *from) {
    if (from->failed) to->failed = true;
    size_t n = resp_out_bytes(from);
    if (n && resp_out_bytes(to) == 0 && !to->failed) {
        resp_out_free(to);
        *to = *from;
        *from = (resp_out){ 0 };
        return;
    }
    uint8_t *at = n ? resp_out_room(to, n) : NULL;
    if (at) {
        memcpy(at, from->bytes + from->from, n);
        to->to += n;
    }
    resp_out_free(from);
}

static void put(resp_out *o, const void *bytes, size_t n) {
    uint8_t *at = resp_out_room(o, n);
    if (!at) return;
    memcpy(at, bytes, n);
    o->to += n;
}

void resp_raw(resp_out *o, const char *text) { put(o, text, strlen(text)); }

static void head(resp_out *o, char kind, int64_t n) {
    char text[HEAD_MAX + 4];
    put(o, text, (size_t)snprintf(text, sizeof text, "%c%" PRId64 "\r\n", kind, n));
}

void resp_simple(resp_out *o, const char *text) {
    put(o, "+", 1);
    resp_raw(o, text);
    put(o, "\r\n", 2);
}

void resp_error(resp_out *o, const char *format, ...) {
    char text[ERROR_MAX] = "-";
    va_list list;
    va_start(list, format);
    int n = vsnprintf(text + 1, sizeof text - 3, format, list) + 1;
    va_end(list);
    if (n > ERROR_MAX - 3) n = ERROR_MAX - 3;
    for (int i = 0; i < n; i++)
        if (text[i] == '\r' || text[i] == '\n') text[i] = ' ';
    memcpy(text + n, "\r\n", 2);
    put(o, text, (size_t)n + 2);
}

void resp_integer(resp_out *o, int64_t n) { head(o, ':', n); }

void resp_bulk(resp_out *o, const void *bytes, size_t n) {
    head(o, '$', (int64_t)n);
    if (n) put(o, bytes, n);
    put(o, "\r\n", 2);
}

void resp_text(resp_out *o, const char *text) { resp_bulk(o, text, strlen(text)); }
void resp_verbatim(resp_out *o, int protocol, const char *text) {
    if (protocol != 3) {
        resp_text(o, text);
        return;
    }
    head(o, '=', (int64_t)strlen(text) + 4);
    resp_raw(o, "txt:");
    resp_raw(o, text);
    resp_raw(o, "\r\n");
}
void resp_array(resp_out *o, uint32_t count) { head(o, '*', count); }
void resp_null(resp_out *o, int protocol) { resp_raw(o, protocol == 3 ? "_\r\n" : "$-1\r\n"); }
void resp_map(resp_out *o, int protocol, uint32_t pairs) {
    if (protocol == 3)
        head(o, '%', pairs);
    else
        head(o, '*', 2 * (int64_t)pairs);
}

/* ---- bulk strings in place ---- */

static size_t head_bytes(size_t n) {
    size_t bytes = 4; /* $, one digit, \r\n */
    for (; n >= 10; n /= 10) bytes++;
    return bytes;
}

uint8_t *resp_bulk_begin(resp_out *o, size_t guess, size_t *room) {
    size_t before = head_bytes(guess);
    uint8_t *at = resp_out_room(o, HEAD_MAX + guess + 2);
    if (!at) return NULL;
    *room = o->room - o->to - HEAD_MAX - 2;
    return at + before;
}

void resp_bulk_end(resp_out *o, size_t guess, size_t n) {
    char text[HEAD_MAX + 4];
    uint8_t *at = o->bytes + o->to;
    size_t before = head_bytes(guess), needed = (size_t)snprintf(text, sizeof text, "$%zu\r\n", n);
    if (needed != before) memmove(at + needed, at + before, n);
    memcpy(at, text, needed);
    memcpy(at + needed + n, "\r\n", 2);
    o->to += needed + n + 2;
}
