/* Compiled, not run, as C++17: which functions fill the tables. Slots want what does not throw; the other tables want
 * it only under GRAFT_STRICT_NOEXCEPT. THROWS is the number of the one function that may throw, 0 for none. */
#include "graft/abi/plugin.h"

enum { NONE, OF_OPS, OF_MEMORY, OF_STREAM, OF_PLUGIN, OF_HOST, OF_EXTENSION };

static graft_status relu(const graft_exec *, const graft_args_relu *) noexcept(THROWS != OF_OPS) {
  return GRAFT_UNIMPLEMENTED;
}
static graft_status release(graft_device *, graft_buffer *) noexcept(THROWS != OF_MEMORY) {
  return GRAFT_OK;
}
static graft_status flush(graft_stream *) noexcept(THROWS != OF_STREAM) {
  return GRAFT_OK;
}
static graft_status close_instance(void *) noexcept(THROWS != OF_PLUGIN) {
  return GRAFT_OK;
}
static void log(void *, graft_log_level, const char *) noexcept(THROWS != OF_HOST) {}
static graft_status native(graft_device *, void **) noexcept(THROWS != OF_EXTENSION) {
  return GRAFT_OK;
}

void fill(graft_core_ops *core, graft_memory_api *memory, graft_stream_api *stream, graft_plugin *plugin,
          graft_host *host, graft_native_handle_api *handles);

void fill(graft_core_ops *core, graft_memory_api *memory, graft_stream_api *stream, graft_plugin *plugin,
          graft_host *host, graft_native_handle_api *handles) {
  core->relu = relu;
  memory->release = release;
  stream->flush = flush;
  plugin->close = close_instance;
  host->log = log;
  handles->device = native;
}
