/* glob.h: the patterns of KEYS and SCAN MATCH, as redis-server reads them: * ? [abc] [a-z] [^a] and \ before a byte that
 * stands for itself. A class that does not end goes on to the pattern's end. */
#ifndef FARKV_RESP_GLOB_H
#define FARKV_RESP_GLOB_H
#include <stdbool.h>
#include <stdint.h>

/* Steps at most the product of both lengths. */
bool resp_glob_matches(const uint8_t *pattern, uint32_t pattern_bytes, const uint8_t *text, uint32_t text_bytes);
/* The bytes with which everything that matches begins, at most `room`; how many. */
uint32_t resp_glob_prefix(const uint8_t *pattern, uint32_t pattern_bytes, uint8_t *to, uint32_t room);

#endif
