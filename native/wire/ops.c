/* ops.c: the table of ops.h. */
#include "ops.h"
#include <assert.h>

const fkv_op_row fkv_ops[FKV_OP_COUNT] = {
#define X(number, NAME, name_, counted_, traits_, flags_, body_) \
    [number] = { .name = name_, .counted = FKV_OP_##counted_, .traits = traits_, .flags = flags_, .body = body_ },
    FKV_OP_LIST(X)
#undef X
};

/* What travels by value or changes has a key, and a key lies in a shard. */
#define X(number, NAME, name, counted, traits, flags, body)                                        \
    static_assert(!((traits) & (FKV_VALUED | FKV_CHANGES)) || ((traits)&FKV_OF_KEY) == FKV_OF_KEY, \
                  "a change is of a key");                                                         \
    static_assert(!((flags)&FKV_REQUEST_RETRY) == !((traits)&FKV_CHANGES),                         \
                  "changes, and nothing else, are known when they are sent again");
FKV_OP_LIST(X)
#undef X
