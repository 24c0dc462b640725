/* follow.c: where a bucket leads for a key: what the responder of a fabric that is software needs to answer a GET's two
 * READs at once (fabric.h, followed READs). On that fabric's thread; pure. Nothing is decided here: the reader looks at
 * the same bucket and the same extent, and believes neither. */
#include "follow.h"
#include "../table/reader.h"

bool dataplane_follow(const void *bytes, uint32_t count, uint64_t hash, fab_next *out) {
    if (count != FKV_BUCKET_BYTES) return false;
    const fkv_bucket *b = bytes;
    int i = fkv_bucket_find(b, fkv_hash_fingerprint(hash), 0);
    if (i < 0) return false;
    uint64_t slot = b->slot[i], location = fkv_slot_location(slot);
    *out = (fab_next){ .number = fkv_location_segment(location) };
    return fkv_location_range(location, fkv_slot_class(slot), UINT64_MAX, &out->offset, &out->bytes);
}
