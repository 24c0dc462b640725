/* status.c: names and texts of the outcomes in status.h, for the wire's peers, logs and the Node-API layer. */
#include "status.h"
#include <string.h>

static const char *const names[] = {
#define X(number, name, ts, text) [number] = ts,
    FKV_STATUS_LIST(X)
#undef X
};
static const char *const texts[] = {
#define X(number, name, ts, text) [number] = text,
    FKV_STATUS_LIST(X)
#undef X
};

/* A status may come from the wire: any number is answered. */
static unsigned known(fkv_status s) { return (unsigned)s < FKV_STATUS_COUNT ? (unsigned)s : FKV_INTERNAL; }

const char *fkv_status_name(fkv_status s) { return names[known(s)]; }
const char *fkv_status_text(fkv_status s) { return texts[known(s)]; }

uint64_t fkv_status_count(const uint64_t count[FKV_STATUS_COUNT], fkv_status s) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < FKV_STATUS_COUNT; i++) {
        if (strcmp(names[i], names[s]) != 0) continue;
        if (i < (unsigned)s) return 0;
        sum += count[i];
    }
    return sum;
}
