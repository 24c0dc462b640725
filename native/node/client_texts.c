/* client_texts.c: the keys of a batch that came as one text, which is read at once: an element fetched and read by
 * itself takes more than the look-up of its key.
 *
 * Invariant: the keys are ASCII. Then a character is a byte, and JavaScript's lengths say where a key ends. Of any
 * other text the UTF-8 is longer than the lengths' sum, whatever JavaScript said, and the keys are read one by one. */
#include "client.h"

bool client_texts_read(client *c, napi_env env, napi_value text, napi_value lengths, uint32_t keys, client_texts *out) {
    napi_typedarray_type type;
    size_t words, n;
    uint64_t sum = 0;
    void *at;
    if (c->texts_in_use || keys > CLIENT_TEXTS_KEYS) return false;
    if (napi_get_value_string_utf8(env, text, (char *)c->texts, sizeof c->texts, &n) != napi_ok) return false;
    if (napi_get_typedarray_info(env, lengths, &type, &words, &at, NULL, NULL) != napi_ok ||
        type != napi_uint32_array || words < keys)
        return false;
    for (uint32_t i = 0; i < keys; i++) sum += c->text_length[i] = ((const uint32_t *)at)[i];
    *out = (client_texts){ .next = c->texts, .length = c->text_length };
    return sum == n && sum <= CLIENT_TEXTS_MAX; /* longer ones may have been cut */
}
