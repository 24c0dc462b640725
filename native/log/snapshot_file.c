/* snapshot_file.c: see snapshot_file.h. */
#include "snapshot_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/hash.h"

void snapshot_name(char name[WAL_NAME_MAX], uint32_t shard, uint64_t copy) {
    snprintf(name, WAL_NAME_MAX, "snapshot-%u-%llx", shard, (unsigned long long)copy);
}
void snapshot_new_name(char name[WAL_NAME_MAX], uint32_t shard, uint64_t copy) {
    snprintf(name, WAL_NAME_MAX, "snapshot-%u-%llx-new", shard, (unsigned long long)copy);
}

snapshot_name_kind snapshot_named(const char *name, uint32_t *shard, uint64_t *copy) {
    char same[WAL_NAME_MAX], *end;
    const char *first = strchr(name, '-'), *second = first ? strchr(first + 1, '-') : NULL;
    if (!second) return SNAPSHOT_NO_NAME;
    *shard = (uint32_t)strtoul(first + 1, NULL, 10);
    *copy = strtoull(second + 1, &end, 16);
    snapshot_name(same, *shard, *copy);
    if (strcmp(name, same) == 0) return SNAPSHOT_NAME;
    snapshot_new_name(same, *shard, *copy);
    return strcmp(name, same) == 0 ? SNAPSHOT_NEW_NAME : SNAPSHOT_NO_NAME;
}

uint32_t snapshot_put_head(uint8_t block[WAL_BLOCK], const snapshot_head *head) {
    snapshot_head h = *head;
    h.magic = SNAPSHOT_MAGIC;
    h.format = SNAPSHOT_FORMAT;
    memset(block, 0, WAL_BLOCK);
    memcpy(block, &h, sizeof h);
    h.crc = wal_crc_without(block, WAL_BLOCK, offsetof(snapshot_head, crc));
    memcpy(block, &h, sizeof h);
    return h.crc;
}

bool snapshot_get_head(const uint8_t block[WAL_BLOCK], snapshot_head *head) {
    memcpy(head, block, sizeof *head);
    return head->magic == SNAPSHOT_MAGIC && head->format > 0 &&
           head->crc == wal_crc_without(block, WAL_BLOCK, offsetof(snapshot_head, crc));
}

uint32_t snapshot_seal(uint8_t *chunk, const snapshot_chunk *head) {
    snapshot_chunk h = *head;
    uint32_t used = (uint32_t)sizeof h + h.bytes, bytes = snapshot_blocks(&h);
    h.magic = SNAPSHOT_CHUNK_MAGIC;
    memset(chunk + used, 0, bytes - used);
    memcpy(chunk, &h, sizeof h);
    h.crc = wal_crc_without(chunk, bytes, offsetof(snapshot_chunk, crc));
    memcpy(chunk, &h, sizeof h);
    return h.crc;
}

bool snapshot_begins(const uint8_t block[WAL_BLOCK], uint64_t number, uint64_t room, snapshot_chunk *head) {
    memcpy(head, block, sizeof *head);
    if (head->magic != SNAPSHOT_CHUNK_MAGIC || head->number != number) return false;
    return head->bytes <= SNAPSHOT_CHUNK_MAX - sizeof *head && snapshot_blocks(head) <= room;
}

bool snapshot_whole(const uint8_t *chunk, const snapshot_chunk *head) {
    /* mutation: snapshots/chunk-crc */
    return head->crc == wal_crc_without(chunk, snapshot_blocks(head), offsetof(snapshot_chunk, crc));
}

void snapshot_count_head(snapshot_foot *f, uint32_t crc) { f->crcs = fkv_crc32c(f->crcs, (uint8_t *)&crc, sizeof crc); }
void snapshot_count(snapshot_foot *f, const snapshot_chunk *c, uint32_t crc) {
    f->chunks++;
    f->items += c->count;
    f->bytes += c->bytes;
    snapshot_count_head(f, crc);
}
