/* parser.h: the commands that one connection sends, out of bytes that come in any pieces: RESP's arrays of bulk strings,
 * and inline commands, lines of words as a person types them. Errors are those of redis-server 7, word for word.
 *
 *   buffer   |  read, gone  |  the present command ...  |  what came behind it  |  room  |
 *                           ^from                       ^at                     ^to
 *
 * An argument is named by its place behind `from`, so the buffer may move while a command is incomplete. What was read
 * of a command is not read again when more comes. Memory is bounded: by RESP_COMMAND_MAX for the bytes of a command, by
 * RESP_ARGUMENTS_MAX for their number; and nothing is allocated because a length was announced, only because bytes came.
 */
#ifndef FARKV_RESP_PARSER_H
#define FARKV_RESP_PARSER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RESP_LINE_MAX = 64 << 10,    /* an inline command, and the head of an array or of a bulk string */
    RESP_BULK_MAX = 64 << 20,    /* as the largest value */
    RESP_COMMAND_MAX = 96 << 20, /* all arguments of a command with their heads */
    RESP_ARGUMENTS_MAX = 1 << 20,
    RESP_READ = 16 << 10 /* room that there is at least for what comes next */
};

typedef struct resp_argument {
    uint32_t at, bytes;
} resp_argument;

typedef struct resp_parser {
    uint8_t *buffer;
    size_t room, from, at, to;
    uint32_t expected; /* arguments still to come of an array; 0: no array has begun */
    int64_t bulk;      /* bytes of the bulk string whose head was read; -1: none */
    size_t looked;     /* behind `at`: no end of line there */
    bool taken;        /* the present command was handed out, and goes with the next call */
    resp_argument *argument;
    uint32_t count, argument_room;
    char error[64];
} resp_parser;

typedef enum {
    RESP_MORE,     /* no whole command is there */
    RESP_COMMAND,  /* `count` arguments, 1 at least, until the next call */
    RESP_BAD,      /* `error` says why; nothing can be read after it */
    RESP_NO_MEMORY /* likewise */
} resp_parsed;

void resp_parser_init(resp_parser *p);
void resp_parser_free(resp_parser *p);
/* Where the next bytes are to be written, at least one; NULL: no memory. Not while a command that was handed out is in
 * use. */
uint8_t *resp_parser_room(resp_parser *p, size_t *room);
void resp_parser_filled(resp_parser *p, size_t bytes);
resp_parsed resp_parser_next(resp_parser *p);
static inline uint8_t *resp_parser_bytes(const resp_parser *p, uint32_t i) {
    return p->buffer + p->from + p->argument[i].at;
}

#endif
