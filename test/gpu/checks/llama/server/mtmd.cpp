// Stands in for llama.cpp's library for images and audio, which the measured llama-server is built without. The server
// calls these also for a model that reads text only.
#include "mtmd-helper.h"
#include "mtmd.h"

mtmd_helper_init_opt mtmd_helper_init_opt_default(void) { return {}; }
void mtmd_helper_log_set(ggml_log_callback, void *) {}
mtmd_context_params mtmd_context_params_default(void) { return {}; }
mtmd_caps mtmd_get_cap_from_file(const char *) { return {}; }
void mtmd_free(mtmd_context *) {}
std::map<ggml_backend_dev_t, size_t> mtmd_get_memory_usage(const char *, mtmd_context_params) { return {}; }
