/* status.h: the closed set of outcomes that the native side reports to its callers.
 *
 * For: the result of an operation on a key, on the wire (one byte) and across the Node-API boundary.
 * Not for: completions of the fabric (fab_wc_status in fabric/fabric.h); fkv_status_of_wc() maps those here.
 * Invariant: a number, once released, is never given another meaning (it is part of the wire format).
 * TypeScript gets numbers and names from the addon; the names are members of the union ErrorCode in core/errors.ts.
 * UNDECIDED never leaves a client's session, which sends the change again; else it would be as indeterminate as
 * STALE_SEQUENCE.
 */
#ifndef FARKV_BASE_STATUS_H
#define FARKV_BASE_STATUS_H

#include <stdint.h>

/*            number, C name,             name in TypeScript,        what it says to an operator */
#define FKV_STATUS_LIST(X)                                                                                       \
    X(0, OK, "OK", "done")                                                                                       \
    X(1, NOT_FOUND, "NOT_FOUND", "no entry has this key")                                                        \
    X(2, VERSION_MISMATCH, "VERSION_MISMATCH", "the entry's version is not the one expected")                    \
    X(3, KEY_INVALID, "ERR_KEY_INVALID", "a key is 1 to 1024 bytes")                                             \
    X(4, VALUE_TOO_LARGE, "ERR_VALUE_TOO_LARGE", "a value is at most 64 MiB")                                    \
    X(5, TABLE_FULL, "ERR_TABLE_FULL",                                                                           \
      "the shard's memory is full, or too small for the value, or the disk of its values is full; what was "     \
      "there stays readable")                                                                                    \
    X(6, BUSY, "ERR_BUSY", "the owner pushes back: quota, quarantine or queue is full; retry later")             \
    X(7, NOT_OWNER, "ERR_NOT_OWNER", "this server does not own the shard; refresh the shard map")                \
    X(8, SHARD_CLOSED, "ERR_SHARD_UNAVAILABLE", "the shard's owner cannot be reached, or does not serve it now") \
    X(9, STALE_SEQUENCE, "ERR_INDETERMINATE",                                                                    \
      "the change was sent and not answered: whether it took effect is not known")                               \
    X(10, UNAUTHORIZED, "ERR_UNAUTHORIZED", "ticket or token refused")                                           \
    X(11, VERSION_UNSUPPORTED, "ERR_PROTOCOL_VERSION", "no protocol version in common")                          \
    X(12, BAD_REQUEST, "ERR_PROTOCOL", "a malformed message")                                                    \
    X(13, TIMEOUT, "ERR_TIMEOUT", "the operation ran out of time")                                               \
    X(14, DISCONNECTED, "ERR_DISCONNECTED", "the connection to the owner is gone")                               \
    X(15, REMOTE_ACCESS, "ERR_REMOTE_ACCESS", "rkey or bounds refused by the owner's fabric")                    \
    X(16, CORRUPT, "ERR_CORRUPT",                                                                                \
      "bytes failed their checksum after all retries: put the value again, and test the owner's memory")         \
    X(17, ABORTED, "ERR_ABORTED", "cancelled by the caller")                                                     \
    X(18, CLOSED, "ERR_CLOSED", "the client or server was closed")                                               \
    X(19, NO_MEMORY, "ERR_NO_MEMORY", "the system gave no memory, or no descriptor for it")                      \
    X(20, BUFFER_TOO_SMALL, "ERR_BUFFER_TOO_SMALL", "the caller's buffer is smaller than the value")             \
    X(21, UNSUPPORTED, "ERR_UNSUPPORTED", "not offered by this provider or build")                               \
    X(22, ADDRESS_IN_USE, "ERR_ADDRESS_IN_USE", "the address or port is taken")                                  \
    X(23, ADDRESS_INVALID, "ERR_ADDRESS_INVALID", "the address cannot be parsed, resolved or reached")           \
    X(24, INTERNAL, "ERR_INTERNAL", "a broken invariant; please report it")                                      \
    X(25, UNDECIDED, "ERR_INDETERMINATE", "the change may still take effect; send it again as the same")         \
    X(26, TOO_FEW_COPIES, "ERR_TOO_FEW_COPIES",                                                                  \
      "the shard has fewer copies in sync than a change needs; nothing was changed")                             \
    X(27, NOT_INTEGER, "ERR_NOT_INTEGER",                                                                        \
      "the value, or the sum, is no integer from -2^63 to 2^63 - 1 in decimal text; nothing was changed")        \
    X(28, WRONG_CODEC, "ERR_CODEC", "the value was written with another codec; nothing was changed")             \
    X(29, DATA_DIR, "ERR_DATA_DIR", "a write-ahead log cannot be gone on with")

typedef enum fkv_status {
#define X(number, name, ts, text) FKV_##name = number,
    FKV_STATUS_LIST(X)
#undef X
        FKV_STATUS_COUNT
} fkv_status;

const char *fkv_status_name(fkv_status s); /* "ERR_TABLE_FULL"; "ERR_INTERNAL" for a number outside the set */
const char *fkv_status_text(fkv_status s);
/* The sum of `count` over all statuses with the name of `s`; 0 where an earlier status has that name, so that a list by
 * name has each name once. */
uint64_t fkv_status_count(const uint64_t count[FKV_STATUS_COUNT], fkv_status s);

#endif
