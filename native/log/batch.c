/* batch.c: see batch.h. */
#include "batch.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/hash.h"

void wal_file_name(char name[WAL_NAME_MAX], uint32_t thread, uint64_t number) {
    snprintf(name, WAL_NAME_MAX, "%u-%llu", thread, (unsigned long long)number);
}

void wal_spare_name(char name[WAL_NAME_MAX], uint32_t thread, uint64_t number) {
    if (number)
        snprintf(name, WAL_NAME_MAX, "%u-spare-%llu", thread, (unsigned long long)number);
    else
        snprintf(name, WAL_NAME_MAX, "%u-spare", thread);
}
bool wal_is_spare(const char *name, uint32_t thread) {
    char spare[WAL_NAME_MAX];
    wal_spare_name(spare, thread, 0);
    return strncmp(name, spare, strlen(spare)) == 0;
}
bool wal_file_number(const char *name, uint32_t thread, uint64_t *number) {
    char same[WAL_NAME_MAX];
    const char *dash = strchr(name, '-');
    if (!dash) return false;
    *number = strtoull(dash + 1, NULL, 10);
    wal_file_name(same, thread, *number);
    return *number > 0 && *number < WAL_NUMBER_END && strcmp(name, same) == 0;
}

uint32_t wal_crc_without(const uint8_t *from, size_t bytes, size_t place) {
    static const uint8_t none[sizeof(uint32_t)];
    uint32_t crc = fkv_crc32c(fkv_crc32c(0, from, place), none, sizeof none);
    return fkv_crc32c(crc, from + place + sizeof none, bytes - place - sizeof none);
}

void wal_put_file_head(uint8_t block[WAL_BLOCK], const wal_file_head *head) {
    wal_file_head h = *head;
    h.magic = WAL_FILE_MAGIC;
    h.format = WAL_FORMAT;
    memset(block, 0, WAL_BLOCK);
    memcpy(block, &h, sizeof h);
    h.crc = wal_crc_without(block, WAL_BLOCK, offsetof(wal_file_head, crc));
    memcpy(block, &h, sizeof h);
}

bool wal_get_file_head(const uint8_t block[WAL_BLOCK], wal_file_head *head) {
    memcpy(head, block, sizeof *head);
    return head->magic == WAL_FILE_MAGIC && head->format > 0 &&
           head->crc == wal_crc_without(block, WAL_BLOCK, offsetof(wal_file_head, crc));
}

void wal_seal_batch(uint8_t *batch, const wal_batch *head) {
    wal_batch h = *head;
    uint32_t bytes = wal_whole_blocks(h.bytes);
    h.magic = WAL_BATCH_MAGIC;
    memset(batch + h.bytes, 0, bytes - h.bytes);
    memcpy(batch, &h, sizeof h);
    h.crc = wal_crc_without(batch, bytes, offsetof(wal_batch, crc));
    memcpy(batch, &h, sizeof h);
}

bool wal_begins_batch(const uint8_t block[WAL_BLOCK], const wal_file_head *file, uint64_t room, wal_batch *head) {
    memcpy(head, block, sizeof *head);
    if (head->magic != WAL_BATCH_MAGIC || head->number == 0 || head->number >= WAL_NUMBER_END) return false;
    if (head->file != file->number || head->salt != file->salt) return false; /* mutation: log/earlier-life */
    if (head->bytes < sizeof *head || head->bytes > WAL_BATCH_MAX) return false;
    return wal_whole_blocks(head->bytes) <= room;
}

bool wal_begun_batch(const uint8_t block[WAL_BLOCK], const wal_file_head *file, uint64_t number) {
    wal_batch h;
    memcpy(&h, block, sizeof h);
    return h.salt == file->salt ||
           (h.magic == WAL_BATCH_MAGIC && h.file == file->number && (number == 0 || h.number == number));
}

bool wal_batch_whole(const uint8_t *batch, const wal_batch *head) {
    /* mutation: log/batch-crc */
    return head->crc == wal_crc_without(batch, wal_whole_blocks(head->bytes), offsetof(wal_batch, crc));
}

bool wal_next_section(const uint8_t *batch, const wal_batch *head, uint32_t *at, wal_section *s,
                      const uint8_t **records) {
    uint32_t left = head->bytes - *at;
    if (left < sizeof *s) return false;
    memcpy(s, batch + *at, sizeof *s);
    if (s->bytes > left - sizeof *s || (s->count > 0 && s->bytes == 0)) return false;
    if (s->first == 0 || s->first >= UINT64_MAX - s->count) return false;
    *records = batch + *at + sizeof *s;
    *at += (uint32_t)sizeof *s + s->bytes;
    return true;
}
