/* glob.c: see glob.h. */
#include "glob.h"

typedef struct glob {
    const uint8_t *bytes;
    uint32_t n, at;
} glob;

/* The byte at `at`, or the one behind a backslash, which is passed. */
static uint8_t literal(glob *g) {
    if (g->bytes[g->at] == '\\' && g->n - g->at >= 2) g->at++;
    return g->bytes[g->at++];
}

static bool between(uint8_t c, uint8_t one, uint8_t other) {
    return one <= other ? one <= c && c <= other : other <= c && c <= one;
}

/* Whether the class at `at`, behind its bracket, has the byte; passes it. A range's ends stand for themselves. */
static bool class_has(glob *g, uint8_t c) {
    bool without = g->at < g->n && g->bytes[g->at] == '^', has = false;
    if (without) g->at++;
    while (g->at < g->n && g->bytes[g->at] != ']') {
        const uint8_t *p = g->bytes + g->at;
        if (p[0] != '\\' && g->n - g->at >= 3 && p[1] == '-') {
            has = has || between(c, p[0], p[2]);
            g->at += 3;
        } else {
            has = literal(g) == c || has;
        }
    }
    if (g->at < g->n) g->at++;
    return has != without;
}

/* Whether what stands at `at` matches the byte; passes it. */
static bool one_matches(glob *g, uint8_t c) {
    if (g->bytes[g->at] == '?') {
        g->at++;
        return true;
    }
    if (g->bytes[g->at] != '[') return literal(g) == c;
    g->at++;
    return class_has(g, c);
}

/* What is behind the last star that was met is tried at each place in turn; no earlier star can do better. */
bool resp_glob_matches(const uint8_t *pattern, uint32_t pattern_bytes, const uint8_t *text, uint32_t text_bytes) {
    glob g = { pattern, pattern_bytes, 0 };
    uint32_t at = 0, star = 0, star_at = 0; /* behind the star; its text goes up to star_at */
    bool starred = false;
    while (at < text_bytes || g.at < g.n) {
        if (g.at < g.n && pattern[g.at] == '*') {
            star = ++g.at;
            star_at = at;
            starred = true;
        } else if (at < text_bytes && g.at < g.n && one_matches(&g, text[at])) {
            at++;
        } else if (starred && star_at < text_bytes) {
            g.at = star;
            at = ++star_at;
        } else {
            return false;
        }
    }
    return true;
}

uint32_t resp_glob_prefix(const uint8_t *pattern, uint32_t pattern_bytes, uint8_t *to, uint32_t room) {
    glob g = { pattern, pattern_bytes, 0 };
    uint32_t n = 0;
    while (n < room && g.at < g.n && pattern[g.at] != '*' && pattern[g.at] != '?' && pattern[g.at] != '[')
        to[n++] = literal(&g);
    return n;
}
