/* The one exported function, and the table it answers with. Nothing here touches the OpenCL driver: applications fork
 * after loading, and a driver does not survive that. */
#define _GNU_SOURCE /* secure_getenv */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ocl.h"

static graft_status query_statistics(void *self, graft_opencl_statistics *out) {
  ocl_plugin *plugin = self;
  if (GRAFT_SIZE_TO(graft_opencl_statistics, launches) > out->struct_size) return GRAFT_INVALID_ARGUMENT;
  out->programs_built = atomic_load(&plugin->counters.programs_built);
  out->programs_loaded = atomic_load(&plugin->counters.programs_loaded);
  out->build_nanoseconds = atomic_load(&plugin->counters.build_nanoseconds);
  out->launches = atomic_load(&plugin->counters.launches);
  if (GRAFT_SIZE_TO(graft_opencl_statistics, programs_with_header) <= out->struct_size) {
    out->programs_with_header = atomic_load(&plugin->counters.programs_with_header);
  }
  return GRAFT_OK;
}

static graft_status keep_all(void *self) {
  ocl_plugin *plugin = self;
  atomic_store(&plugin->keeps_all, true);
  return GRAFT_OK;
}

static graft_status native_device(graft_device *device, void **handle) {
  *handle = device->id;
  return GRAFT_OK;
}

static graft_status native_stream(graft_stream *stream, void **handle) {
  atomic_store(&stream->lent, true);
  *handle = stream->queue;
  return GRAFT_OK;
}

static graft_status native_buffer(graft_buffer *buffer, void **handle) {
  *handle = buffer->handle;
  return GRAFT_OK;
}

static graft_status extension(void *self, const char *name, uint32_t minimum, const void **table) {
  static const graft_opencl_statistics_api statistics = {sizeof statistics, query_statistics};
  static const graft_opencl_programs_api programs = {sizeof programs, keep_all};
  static const graft_native_handle_api native = {sizeof native, "opencl", native_device, native_stream, native_buffer};
  static const struct {
    const char *name;
    uint32_t version;
    const void *table;
  } offered[] = {
      {GRAFT_OPENCL_STATISTICS, GRAFT_OPENCL_STATISTICS_VERSION, &statistics},
      {GRAFT_OPENCL_PROGRAMS, GRAFT_OPENCL_PROGRAMS_VERSION, &programs},
      {GRAFT_EXTENSION_NATIVE_HANDLE, GRAFT_NATIVE_HANDLE_VERSION, &native},
      {GRAFT_EXTENSION_PROFILER, GRAFT_PROFILER_VERSION, &ocl_profiler_api},
      {GRAFT_EXTENSION_GRAPH, GRAFT_GRAPH_VERSION, &ocl_graph_api},
  };
  (void)self;
  for (size_t i = 0; i < sizeof offered / sizeof *offered; i++) {
    if (strcmp(name, offered[i].name) == 0 && minimum <= offered[i].version) {
      *table = offered[i].table;
      return GRAFT_OK;
    }
  }
  return GRAFT_UNIMPLEMENTED;
}

static graft_status close_plugin(void *self) {
  ocl_plugin *plugin = self;
  pthread_mutex_destroy(&plugin->lock);
  ocl_registry_close(plugin->registry);
  free(plugin->probe_error);
  free(plugin->candidates);
  free(plugin->selection);
  free(plugin);
  return GRAFT_OK;
}

/* The option wins over the environment, which a privileged program ignores. NULL: not said, or empty. */
static const char *chosen(const char *const *options, const char *key, const char *variable) {
  const char *value = secure_getenv(variable);
  for (; options && *options; options++) {
    size_t length = strlen(key);
    if (strncmp(*options, key, length) == 0 && (*options)[length] == '=') value = *options + length + 1;
  }
  return value && *value ? value : NULL;
}

/* What options may say. */
static const char *const option_names[] = {"device", "kernels", "optimize", NULL};

static graft_status check_option(const ocl_plugin *plugin, const char *option) {
  size_t length = strcspn(option, "=");
  for (int i = 0; option_names[i]; i++) {
    if (option[length] == '=' && strlen(option_names[i]) == length && !strncmp(option, option_names[i], length))
      return GRAFT_OK;
  }
  const char *near = option[length] == '=' ? ocl_nearest(option, length, option_names) : NULL;
  return ocl_fail(plugin, GRAFT_INVALID_ARGUMENT,
                  "option \"%s\" is not known: %s%s%s; options are device=..., kernels=... and optimize=...", option,
                  near ? "did you mean \"" : "expected name=value", near ? near : "", near ? "\"?" : "");
}

static graft_status read_options(ocl_plugin *plugin, const char *const *options) {
  for (int i = 0; options && options[i]; i++) {
    graft_status status = check_option(plugin, options[i]);
    if (status != GRAFT_OK) return status;
  }
  const char *selection = chosen(options, "device", "GRAFT_OPENCL_DEVICE");
  const char *kernels = chosen(options, "kernels", "GRAFT_OPENCL_KERNELS");
  if (selection && !(plugin->selection = strdup(selection))) return GRAFT_OUT_OF_MEMORY;
  plugin->cpu_kernels = kernels && strcmp(kernels, "cpu") == 0;
  plugin->gpu_kernels = kernels && strcmp(kernels, "gpu") == 0;
  plugin->portable = kernels && strcmp(kernels, "portable") == 0;
  if (kernels && !plugin->cpu_kernels && !plugin->gpu_kernels && !plugin->portable)
    return ocl_fail(plugin, GRAFT_INVALID_ARGUMENT,
                    "kernels for \"%s\": GRAFT_OPENCL_KERNELS and option \"kernels\" are cpu, gpu or portable",
                    kernels);
  const char *optimize = chosen(options, "optimize", "GRAFT_OPENCL_OPTIMIZE");
  plugin->unoptimized = optimize && strcmp(optimize, "no") == 0;
  plugin->always_optimized = optimize && strcmp(optimize, "always") == 0;
  if (!optimize || plugin->unoptimized || plugin->always_optimized || strcmp(optimize, "yes") == 0) return GRAFT_OK;
  return ocl_fail(plugin, GRAFT_INVALID_ARGUMENT,
                  "optimize=\"%s\": GRAFT_OPENCL_OPTIMIZE and option \"optimize\" are yes, no or always", optimize);
}

graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options, const graft_plugin **out) {
  if (host->abi_major != GRAFT_ABI_MAJOR) return GRAFT_INCOMPATIBLE;
  if (!GRAFT_HAS(host, graft_host, set_error) || !GRAFT_HAS(host, graft_host, workspace) ||
      !GRAFT_HAS(host, graft_host, output_shape) || !GRAFT_HAS(host, graft_host, memo_publish)) {
    return GRAFT_INCOMPATIBLE;
  }
  ocl_plugin *plugin = calloc(1, sizeof *plugin);
  if (!plugin) return GRAFT_OUT_OF_MEMORY;
  plugin->host = host;
  pthread_mutex_init(&plugin->lock, NULL);
  graft_status status = read_options(plugin, options);
  if (status == GRAFT_OK) status = ocl_registry_open(plugin);
  if (status != GRAFT_OK) {
    close_plugin(plugin);
    return status;
  }
  plugin->api = (graft_plugin){
      .struct_size = sizeof plugin->api,
      .abi_major = GRAFT_ABI_MAJOR,
      .abi_minor = GRAFT_ABI_MINOR,
      .self = plugin,
      .name = "opencl",
      .vendor = "Graft",
      .version = GRAFT_OPENCL_VERSION,
      .close = close_plugin,
      .device_count = ocl_device_count,
      .device_query = ocl_device_query,
      .device_open = ocl_device_open,
      .device_close = ocl_device_close,
      .memory = &ocl_memory_api,
      .stream = &ocl_stream_api,
      .core = ocl_core_ops(plugin->registry),
      .prims = ocl_prims_ops(plugin->registry),
      .train = ocl_train_ops(plugin->registry),
      .op_caps = ocl_op_caps_of,
      .extension = extension,
  };
  *out = &plugin->api;
  return GRAFT_OK;
}
