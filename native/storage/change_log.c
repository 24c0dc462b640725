/* change_log.c: see change_log.h. A note is two 16-bit numbers (namespace, bytes of the key) and the key, in a ring. */
#include "change_log.h"
#include <stdlib.h>
#include <string.h>

enum { HEAD = 4 };

static void copy_out(const change_log *l, uint64_t at, void *to, uint32_t n) {
    uint32_t i = (uint32_t)(at % CHANGE_LOG_ROOM), here = CHANGE_LOG_ROOM - i < n ? CHANGE_LOG_ROOM - i : n;
    memcpy(to, l->ring + i, here);
    memcpy((uint8_t *)to + here, l->ring, n - here);
}
static void copy_in(change_log *l, uint64_t at, const void *from, uint32_t n) {
    uint32_t i = (uint32_t)(at % CHANGE_LOG_ROOM), here = CHANGE_LOG_ROOM - i < n ? CHANGE_LOG_ROOM - i : n;
    memcpy(l->ring + i, from, here);
    memcpy(l->ring, (const uint8_t *)from + here, n - here);
}

static uint32_t note_bytes(const change_log *l, uint64_t at) {
    uint16_t head[2];
    copy_out(l, at, head, HEAD);
    return HEAD + (uint32_t)head[1];
}

uint64_t change_log_begin(change_log *l, uint64_t now_ns) {
    l->asked_ns = now_ns;
    if (l->ring) return l->end;
    l->ring = malloc(CHANGE_LOG_ROOM);
    if (!l->ring) return 0;
    /* No place of an earlier log is one of this: what lies between was not noted. */
    l->first = ++l->end;
    return l->end;
}

void change_log_free(change_log *l) {
    free(l->ring);
    l->ring = NULL;
}

uint64_t change_log_idle_ns(const change_log *l) { return l->ring ? l->asked_ns + CHANGE_LOG_IDLE_NS : UINT64_MAX; }

void change_log_rest(change_log *l, uint64_t now_ns) {
    if (now_ns >= change_log_idle_ns(l)) change_log_free(l);
}

void change_log_note(change_log *l, uint16_t space, const uint8_t *key, uint16_t key_bytes) {
    if (!l->ring) return;
    uint16_t head[2] = { space, key_bytes };
    uint32_t n = HEAD + (uint32_t)key_bytes;
    while (l->end + n - l->first > CHANGE_LOG_ROOM) l->first += note_bytes(l, l->first);
    copy_in(l, l->end, head, HEAD);
    copy_in(l, l->end + HEAD, key, key_bytes);
    l->end += n;
}

bool change_log_reaches(change_log *l, uint64_t place, uint64_t now_ns) {
    if (!l->ring || place < l->first || place > l->end) return false;
    l->asked_ns = now_ns;
    return true;
}

bool change_log_next(const change_log *l, uint64_t *place, changed_key *out) {
    uint64_t left = l->end - *place;
    if (left < HEAD) return false;
    uint16_t head[2];
    copy_out(l, *place, head, HEAD);
    if (head[1] == 0 || head[1] > FKV_KEY_MAX || left - HEAD < head[1]) return false;
    *out = (changed_key){ .space = head[0], .key_bytes = head[1] };
    copy_out(l, *place + HEAD, out->key, head[1]);
    *place += HEAD + (uint32_t)head[1];
    return true;
}
