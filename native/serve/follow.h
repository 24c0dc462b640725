/* follow.h: see follow.c; by itself, for tests that stand in the place of a responder. */
#ifndef FARKV_SERVE_FOLLOW_H
#define FARKV_SERVE_FOLLOW_H
#include "../fabric/fabric.h"

/* fab_options.follow: `bytes` are a bucket, `hash` is the key's. */
bool dataplane_follow(const void *bytes, uint32_t count, uint64_t hash, fab_next *out);

#endif
