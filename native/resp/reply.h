/* reply.h: replies as bytes, in RESP2 and in RESP3, which differ in what `protocol` is given for. A buffer that had no
 * memory has `failed` set and takes nothing more: whoever sends it closes the connection instead. */
#ifndef FARKV_RESP_REPLY_H
#define FARKV_RESP_REPLY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct resp_out {
    uint8_t *bytes;
    size_t room, from, to; /* from..to is there */
    bool failed;
} resp_out;

static inline size_t resp_out_bytes(const resp_out *o) { return o->to - o->from; }
void resp_out_free(resp_out *o);
void resp_out_took(resp_out *o, size_t bytes); /* the first of them were sent */
/* Room for so many bytes behind what is there; NULL: failed. What is written counts once `to` is moved behind it. */
uint8_t *resp_out_room(resp_out *o, size_t bytes);
void resp_out_move(resp_out *to, resp_out *from); /* all of it; `from` is empty then */

void resp_raw(resp_out *o, const char *text); /* ends with \r\n already */
void resp_simple(resp_out *o, const char *text);
/* "-" and the text, its line ends as spaces, at most a few hundred bytes. */
void resp_error(resp_out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
void resp_integer(resp_out *o, int64_t n);
void resp_bulk(resp_out *o, const void *bytes, size_t n);
void resp_text(resp_out *o, const char *text);
void resp_verbatim(resp_out *o, int protocol, const char *text); /* RESP2: as resp_text */
void resp_array(resp_out *o, uint32_t count);
void resp_null(resp_out *o, int protocol);
void resp_map(resp_out *o, int protocol, uint32_t pairs);

/* A bulk string whose bytes are written before their number is known for sure: room for `guess` of them, where they are
 * to be written, and the reply's end once `n` are there. */
uint8_t *resp_bulk_begin(resp_out *o, size_t guess, size_t *room);
void resp_bulk_end(resp_out *o, size_t guess, size_t n);

#endif
