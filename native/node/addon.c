/* addon.c: the module's entry: registers what the three binding files export. No state here: the addon is loaded once
 * in each worker thread that imports it, and every instance keeps its own in napi_set_instance_data or in its
 * objects. */
#include "binding.h"

NAPI_MODULE_INIT() {
    if (!binding_init_common(env, exports) || !binding_init_server(env, exports) || !binding_init_client(env, exports))
        return NULL;
    return exports;
}
