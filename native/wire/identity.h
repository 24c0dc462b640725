/* identity.h: a pass as what an encrypted connection begins with. */
#ifndef FARKV_WIRE_IDENTITY_H
#define FARKV_WIRE_IDENTITY_H
#include <string.h>
#include "../fabric/fabric.h"
#include "wire.h"

static inline fab_identity fkv_pass_identity(const fkv_pass *p) {
    static_assert(sizeof p->name <= FAB_NAME_MAX && sizeof p->key == FAB_KEY_BYTES, "a pass is an identity");
    fab_identity who = { .bytes = FKV_NAME_BYTES };
    memcpy(who.name, p->name, sizeof p->name);
    memcpy(who.key, &p->key, sizeof p->key);
    return who;
}
#endif
