#include "index_steps.h"
#include "../../table/internal.h"

bool index_split(host *h) { return table_split(h->t); }

bool index_merge(host *h) {
    return table_buckets(h->t) > h->t->index[0].region.bytes / FKV_BUCKET_BYTES && table_merge(h->t);
}

bool index_retire(host *h) {
    h->t->index[h->t->index_segments - 1].came_ns = 0;
    return table_retire_index(h->t);
}

void index_breathe(host *h, uint32_t dice, uint32_t most, uint32_t largest) {
    bool splits = dice & 1, retires = (dice >> 1 & 3) == 0;
    for (uint32_t n = (dice >> 3) % most; n > 0; n--) {
        if (splits && table_buckets(h->t) >= largest) break;
        if (!(splits ? index_split : index_merge)(h)) break;
    }
    if (retires) index_retire(h);
    host_serve(h);
}
