/* Devices: opened once for each backend and index, their properties with defaults, statuses of calls into plugins. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "device/internal.h"

/* --- properties --- */

/* One property of fixed size; false where the plugin does not know it, or answers nonsense. */
static bool ask(const graft_rt_backend *backend, int32_t index, graft_device_key key, void *value, size_t bytes) {
  size_t size = 0;
  graft_status status = backend->plugin.device_query(backend->plugin.self, index, key, value, bytes, &size);
  if (status == GRAFT_UNIMPLEMENTED) return false;
  if (status == GRAFT_OK && size == bytes) return true;
  err_log(GRAFT_LOG_WARNING, "%s:%d: device_query of key %u: %s, %zu bytes where %zu are expected; taken as unknown",
          backend->name, index, key, graft_status_name(status), size, bytes);
  return false;
}

static uint64_t ask_u64(const graft_rt_device *device, graft_device_key key, uint64_t otherwise) {
  uint64_t value = 0;
  return ask(device->backend, device->index, key, &value, sizeof value) && value ? value : otherwise;
}

static uint32_t ask_u32(const graft_rt_device *device, graft_device_key key, uint32_t otherwise) {
  uint32_t value = 0;
  return ask(device->backend, device->index, key, &value, sizeof value) && value ? value : otherwise;
}

/* A size that arithmetic here needs as a power of two. */
static uint64_t ask_power(const graft_rt_device *device, graft_device_key key, uint64_t otherwise) {
  uint64_t value = ask_u64(device, key, otherwise);
  if ((value & (value - 1)) == 0) return value;
  uint64_t power = otherwise;
  while (power < value && power < (UINT64_C(1) << 40)) power *= 2;
  err_log(GRAFT_LOG_WARNING, "%s: property %u is %llu, no power of two; %llu is used", device->text, key,
          (unsigned long long)value, (unsigned long long)power);
  return power;
}

static void read_properties(graft_rt_device *device) {
  device->alignment = ask_power(device, GRAFT_DEVICE_ALIGNMENT, 64);
  device->granularity = ask_u64(device, GRAFT_DEVICE_GRANULARITY, 512);
  device->copy_granularity = ask_power(device, GRAFT_DEVICE_COPY_GRANULARITY, 1);
  device->max_allocation = ask_u64(device, GRAFT_DEVICE_MAX_ALLOCATION, UINT64_MAX);
  /* Plugins of 1.0 and 1.1 gave the dtypes of a few kernels, and nobody read it. */
  device->dtypes = device->backend->plugin.abi_minor < 2 ? 0 : ask_u64(device, GRAFT_DEVICE_DTYPES, 0);
  device->denormals = ask_u64(device, GRAFT_DEVICE_DENORMALS, 0);
  device->memory_kinds = ask_u32(device, GRAFT_DEVICE_MEMORY_KINDS, 0) | 1u << GRAFT_MEMORY_DEVICE;
  device->indivisible = ask_u32(device, GRAFT_DEVICE_INDIVISIBLE, 0) != 0;
  /* Without release_on there is no order to give memory back in: then it is kept until the next request. */
  device->uncached = ask_u32(device, GRAFT_DEVICE_UNCACHED, 0) != 0;
  device->waits_across = ask_u32(device, GRAFT_DEVICE_WAITS_ACROSS, 0) != 0;
  device->unified = ask_u32(device, GRAFT_DEVICE_UNIFIED_MEMORY, 0) != 0;
  device->memory_flags = ask_u32(device, GRAFT_DEVICE_MEMORY_FLAGS, 0);
  device->stream_flags = ask_u32(device, GRAFT_DEVICE_STREAM_FLAGS, 0);
  device->event_flags = ask_u32(device, GRAFT_DEVICE_EVENT_FLAGS, 0);
  device->dlpack_type = 12; /* kDLExtDev */
  int32_t type = 0;
  if (ask(device->backend, device->index, GRAFT_DEVICE_DLPACK_TYPE, &type, sizeof type)) device->dlpack_type = type;
}

/* --- opening --- */

static graft_status open_reference(void);

static graft_status open_handle(graft_rt_device *device) {
  const graft_plugin *plugin = &device->backend->plugin;
  graft_device *handle = NULL;
  err_clear();
  graft_status status = plugin->device_open(plugin->self, device->index, &handle);
  dev_watch_exit();
  if (status) return dev_status(device, status, "opening the device");
  if (!handle) return err_about(GRAFT_INTERNAL, device->text, "device_open said OK and gave no device");
  device->handle = handle;
  return GRAFT_OK;
}

static graft_status device_new(graft_rt_backend *backend, int32_t index, graft_rt_device **device) {
  graft_rt_device *made = calloc(1, sizeof *made);
  if (!made) return err_set(GRAFT_OUT_OF_MEMORY, "%s:%d: no host memory to open the device", backend->name, index);
  made->backend = backend;
  made->index = index;
  made->is_reference = backend->is_reference;
  made->generation = backend->generation;
  snprintf(made->text, sizeof made->text, "%s:%d", backend->name, index);
  pthread_mutex_init(&made->streams_lock, NULL);
  dev_generator_init(&made->generator);
  read_properties(made);
  graft_status status = open_handle(made);
  if (!status) status = dev_stream_create_default(made);
  if (!status) status = dev_hooks.allocator_create(made, &made->allocator);
  if (!status) status = dev_hooks.dispatch_create(made, &made->dispatch);
  if (status) {
    dev_free(made);
    return status;
  }
  *device = made;
  return GRAFT_OK;
}

/* Asks once; the caller holds backend->lock. */
static graft_status count_devices(graft_rt_backend *backend) {
  if (backend->closed) return dev_closed_error(backend);
  if (backend->device_count >= 0) return GRAFT_OK;
  int32_t count = -1;
  err_clear();
  graft_status status = backend->plugin.device_count(backend->plugin.self, &count);
  dev_watch_exit();
  if (status) return plg_status_of(backend->name, status, "counting the devices");
  if (count < 0 || count > 65536) {
    return err_about(GRAFT_INTERNAL, backend->name, "device_count said OK and %d devices", count);
  }
  backend->devices = calloc((size_t)count + 1, sizeof *backend->devices);
  if (!backend->devices) return err_about(GRAFT_OUT_OF_MEMORY, backend->name, "no host memory for its devices");
  backend->device_count = count;
  return GRAFT_OK;
}

graft_status graft_backend_device_count(graft_rt_backend *backend, int32_t *count) {
  if (!backend) return err_null(__func__, "backend");
  if (!count) return err_null(__func__, "count");
  graft_status status = dev_enter(backend);
  if (status) return status;
  pthread_mutex_lock(&backend->lock);
  status = count_devices(backend);
  if (!status) *count = backend->device_count;
  pthread_mutex_unlock(&backend->lock);
  return status;
}

static graft_status no_such_device(const graft_rt_backend *backend, int32_t index) {
  if (backend->device_count == 0) return err_about(GRAFT_INVALID_ARGUMENT, backend->name, "the plugin finds no device");
  return err_set(GRAFT_INVALID_ARGUMENT, "%s:%d: there is no such device; the plugin has %d, counted from 0",
                 backend->name, index, backend->device_count);
}

graft_status graft_backend_device(graft_rt_backend *backend, int32_t index, graft_rt_device **device) {
  if (!backend) return err_null(__func__, "backend");
  if (!device) return err_null(__func__, "device");
  graft_status status = dev_enter(backend);
  /* What stands above takes it for granted where there is a device. */
  if (!status && !backend->is_reference) status = open_reference();
  if (status) return status;
  pthread_mutex_lock(&backend->lock);
  status = count_devices(backend);
  if (!status && (index < 0 || index >= backend->device_count)) status = no_such_device(backend, index);
  if (!status && !backend->devices[index]) status = device_new(backend, index, &backend->devices[index]);
  if (!status) *device = backend->devices[index];
  pthread_mutex_unlock(&backend->lock);
  return status;
}

/* --- finding and asking --- */

/* Where the ":1" of "opencl:1" begins; the end of the text without one. */
static const char *index_part(const char *text) {
  const char *colon = strrchr(text, ':');
  if (!colon || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")]) return text + strlen(text);
  return colon;
}

graft_status graft_device_find(const char *text, graft_rt_device **device) {
  if (!text) return err_null(__func__, "text");
  if (!device) return err_null(__func__, "device");
  if (!*text) return err_set(GRAFT_INVALID_ARGUMENT, "no device is named; expected something like \"opencl:0\"");
  const char *colon = index_part(text);
  unsigned long index = *colon ? strtoul(colon + 1, NULL, 10) : 0;
  if (index > INT32_MAX) return err_about(GRAFT_INVALID_ARGUMENT, text, "the index of the device is too large");
  char *name = str_new("%.*s", (int)(colon - text), text);
  if (!name) return err_about(GRAFT_OUT_OF_MEMORY, text, "no host memory to open the device");
  graft_rt_backend *backend = NULL;
  graft_status status = graft_backend_open(name, NULL, &backend);
  free(name);
  return status ? status : graft_backend_device(backend, (int32_t)index, device);
}

static _Atomic(graft_rt_device *) reference;

static graft_status open_reference(void) {
  graft_rt_backend *backend;
  graft_rt_device *device;
  if (atomic_load(&reference)) return GRAFT_OK;
  graft_status status = plg_reference(&backend);
  if (!status) status = graft_backend_device(backend, 0, &device);
  if (!status) atomic_store(&reference, device);
  return status;
}

graft_rt_device *graft_device_reference(void) {
  return open_reference() ? NULL : atomic_load(&reference);
}

const char *graft_device_text(const graft_rt_device *device) {
  if (err_is_null(device, __func__, "device")) return NULL;
  return device->text;
}

graft_status graft_device_query(graft_rt_device *device, graft_device_key key, void *value, size_t capacity,
                                size_t *size) {
  if (!device) return err_null(__func__, "device");
  if (capacity && !value) return err_null(__func__, "value");
  if (dev_forked(device)) return dev_forked_error(device);
  const graft_plugin *plugin = &device->backend->plugin;
  size_t unused = 0;
  err_clear();
  graft_status status = plugin->device_query(plugin->self, device->index, key, value, capacity, size ? size : &unused);
  return dev_status(device, status, "querying a property");
}

graft_status graft_device_extension(graft_rt_device *device, const char *name, uint32_t minimum_version,
                                    const void **table, void **self) {
  if (!device) return err_null(__func__, "device");
  if (!name) return err_null(__func__, "name");
  if (!table) return err_null(__func__, "table");
  if (!self) return err_null(__func__, "self");
  if (dev_forked(device)) return dev_forked_error(device);
  const graft_plugin *plugin = &device->backend->plugin;
  const void *found = NULL;
  err_clear();
  graft_status status =
      plugin->extension ? plugin->extension(plugin->self, name, minimum_version, &found) : GRAFT_UNIMPLEMENTED;
  if (status != GRAFT_OK) return dev_status(device, status, "asking for an extension");
  *table = found;
  *self = plugin->self;
  return GRAFT_OK;
}

void dev_each(void (*visit)(void *context, graft_rt_device *device), void *context) {
  for (graft_rt_backend *backend = plg_opened(); backend; backend = backend->next) {
    pthread_mutex_lock(&backend->lock);
    int32_t count = backend->device_count;
    pthread_mutex_unlock(&backend->lock);
    for (int32_t i = 0; i < count; i++) {
      pthread_mutex_lock(&backend->lock);
      graft_rt_device *device = backend->devices[i];
      pthread_mutex_unlock(&backend->lock);
      if (device) visit(context, device);
    }
  }
}
