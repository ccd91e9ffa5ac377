/* One plugin: dlopen, its entry, negotiation. All structs are copied into ones of this host's size, so that nothing
 * above ever asks how old a plugin is. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "plugin/float_mode.h"
#include "plugin/loader.h"

/* A pointer that must not be NULL. */
typedef struct required {
  const char *name;
  size_t offset;
} required;

#define REQUIRED(type, field) \
  { #field, offsetof(type, field) }

static const required plugin_required[] = {
    REQUIRED(graft_plugin, name),        REQUIRED(graft_plugin, vendor),       REQUIRED(graft_plugin, version),
    REQUIRED(graft_plugin, close),       REQUIRED(graft_plugin, device_count), REQUIRED(graft_plugin, device_query),
    REQUIRED(graft_plugin, device_open), REQUIRED(graft_plugin, device_close), REQUIRED(graft_plugin, memory),
    REQUIRED(graft_plugin, stream),
};

static const required memory_required[] = {
    REQUIRED(graft_memory_api, allocate),       REQUIRED(graft_memory_api, release),
    REQUIRED(graft_memory_api, copy_from_host), REQUIRED(graft_memory_api, copy_to_host),
    REQUIRED(graft_memory_api, copy),           REQUIRED(graft_memory_api, fill),
};

static const required stream_required[] = {
    REQUIRED(graft_stream_api, create),       REQUIRED(graft_stream_api, destroy),
    REQUIRED(graft_stream_api, query),        REQUIRED(graft_stream_api, synchronize),
    REQUIRED(graft_stream_api, event_create), REQUIRED(graft_stream_api, event_destroy),
    REQUIRED(graft_stream_api, event_record), REQUIRED(graft_stream_api, stream_wait),
    REQUIRED(graft_stream_api, event_query),  REQUIRED(graft_stream_api, event_synchronize),
    REQUIRED(graft_stream_api, failure),
};

/* A struct of the plugin's and what of it a host needs. */
typedef struct table {
  const char *name;
  size_t bytes; /* as this host knows it */
  const required *needs;
  size_t need_count;
} table;

#define TABLE(name, type, needs) \
  { name, sizeof(type), needs, sizeof(needs) / sizeof *(needs) }
#define OP_TABLE(name, type) \
  { name, sizeof(type), NULL, 0 }

static const table plugin_table = TABLE("graft_plugin", graft_plugin, plugin_required);
static const table memory_table = TABLE("graft_plugin.memory", graft_memory_api, memory_required);
static const table stream_table = TABLE("graft_plugin.stream", graft_stream_api, stream_required);
static const table core_table = OP_TABLE("graft_plugin.core", graft_core_ops);
static const table prims_table = OP_TABLE("graft_plugin.prims", graft_prims_ops);
static const table train_table = OP_TABLE("graft_plugin.train", graft_train_ops);

/* Copies a sized struct: what the plugin lacks stays NULL, what it has beyond this host is dropped. */
static graft_status copy_table(const char *who, const table *table, const void *from, void *to) {
  size_t given;
  memcpy(&given, from, sizeof given);
  if (given < sizeof given) {
    return err_about(GRAFT_INCOMPATIBLE, who, "struct_size of %s is %zu; set it to sizeof of the struct", table->name,
                     given);
  }
  for (size_t i = 0; i < table->need_count; i++) {
    const required *need = &table->needs[i];
    void *value = NULL;
    if (need->offset + sizeof value > given) {
      return err_about(GRAFT_INCOMPATIBLE, who,
                       "struct_size of %s is %zu and ends before the mandatory \"%s\" (at %zu)", table->name, given,
                       need->name, need->offset);
    }
    memcpy(&value, (const char *)from + need->offset, sizeof value);
    if (!value) {
      return err_about(GRAFT_INCOMPATIBLE, who, "the mandatory %s.%s is NULL; every plugin must offer it", table->name,
                       need->name);
    }
  }
  /* Fields come whole: a size that ends inside a pointer does not have that pointer. */
  memcpy(to, from, given < table->bytes ? given - given % sizeof(void *) : table->bytes);
  memcpy(to, &table->bytes, sizeof table->bytes);
  return GRAFT_OK;
}

static graft_status copy_op_table(const char *who, const table *table, const void *from, void **to) {
  if (!from) return GRAFT_OK;
  *to = calloc(1, table->bytes);
  if (!*to) return err_about(GRAFT_OUT_OF_MEMORY, who, "no host memory for its op tables");
  return copy_table(who, table, from, *to);
}

static graft_status check_major(const char *who, const graft_plugin *plugin) {
  size_t given = plugin->struct_size;
  if (given < GRAFT_SIZE_TO(graft_plugin, abi_minor)) {
    return err_about(GRAFT_INCOMPATIBLE, who, "struct_size of graft_plugin is %zu; set it to sizeof of the struct",
                     given);
  }
  if (plugin->abi_major == GRAFT_ABI_MAJOR) return GRAFT_OK;
  return err_about(GRAFT_INCOMPATIBLE, who,
                   "it is built for ABI major %u and this libgraft speaks %d; install a build for that",
                   plugin->abi_major, GRAFT_ABI_MAJOR);
}

static graft_status check_name(const char *who, const char *promised, const char *name) {
  if (!plg_name_is_valid(name)) {
    return err_about(GRAFT_INCOMPATIBLE, who, "its name \"%s\" is not made of 1 to %d letters, digits and _ - .", name,
                     PLG_NAME_MAX);
  }
  if (!promised || strcmp(promised, name) == 0) return GRAFT_OK;
  return err_about(GRAFT_INCOMPATIBLE, who, "the plugin calls itself \"%s\", its manifest \"%s\"; they must agree",
                   name, promised);
}

/* Fills the backend from what the entry gave. */
static graft_status adopt(graft_rt_backend *backend, const char *who, const char *promised,
                          const graft_plugin *plugin) {
  graft_status status = check_major(who, plugin);
  if (!status) status = copy_table(who, &plugin_table, plugin, &backend->plugin);
  if (status) return status;
  const graft_plugin *copy = &backend->plugin;
  status = check_name(who, promised, copy->name);
  if (!status) status = copy_table(who, &memory_table, copy->memory, &backend->memory);
  if (!status) status = copy_table(who, &stream_table, copy->stream, &backend->stream);
  if (!status) status = copy_op_table(who, &core_table, copy->core, &backend->core);
  if (!status) status = copy_op_table(who, &prims_table, copy->prims, &backend->prims);
  if (!status) status = copy_op_table(who, &train_table, copy->train, &backend->train);
  if (status) return status;
  char *name = str_new("%s", copy->name);
  if (!name) return err_about(GRAFT_OUT_OF_MEMORY, who, "no host memory for its name");
  free(backend->name);
  backend->name = name;
  return GRAFT_OK;
}

/* Ends an instance that was refused, as far as it says how. */
static void close_refused(const graft_plugin *plugin) {
  if (plugin->abi_major == GRAFT_ABI_MAJOR && GRAFT_HAS(plugin, graft_plugin, close)) plugin->close(plugin->self);
}

static void backend_free(graft_rt_backend *backend) {
  if (!backend) return;
  pthread_mutex_destroy(&backend->lock);
  free(backend->core);
  free(backend->prims);
  free(backend->train);
  free(backend->name);
  free(backend->path);
  free(backend);
}

/* "x" of ".../libx.so.1": what a library is called until it says its name. */
static char *stem_of(const char *path) {
  const char *base = strrchr(path, '/');
  base = base ? base + 1 : path;
  if (strncmp(base, "lib", 3) == 0 && base[3] != '.') base += 3;
  char *stem = str_new("%.*s", (int)strcspn(base, "."), base);
  if (stem && !plg_name_is_valid(stem)) strcpy(stem, *stem ? "x" : "");
  return stem;
}

static graft_rt_backend *backend_new(const char *path, const char *name) {
  graft_rt_backend *backend = calloc(1, sizeof *backend);
  if (!backend) return NULL;
  pthread_mutex_init(&backend->lock, NULL);
  backend->device_count = -1;
  backend->path = path ? str_new("%s", path) : NULL;
  backend->name = name ? str_new("%s", name) : stem_of(path ? path : "plugin");
  if (backend->name && (backend->path || !path)) return backend;
  backend_free(backend);
  return NULL;
}

bool plg_status_is_known(graft_status status) {
  return status >= 0 && status <= GRAFT_OUT_OF_RANGE;
}

graft_status plg_status_of(const char *who, graft_status status, const char *what) {
  if (status == GRAFT_OK) return GRAFT_OK;
  if (!plg_status_is_known(status)) {
    return err_about(GRAFT_INTERNAL, who, "%s: the plugin returned the unknown status %d%s%s", what, status,
                     err_is_set() ? ": " : "", err_is_set() ? graft_last_error() : "");
  }
  if (!err_is_set()) return err_about(status, who, "%s: the plugin says %s", what, graft_status_name(status));
  /* The text may have been made by the host already, for a function of its own that the plugin called. */
  return err_attribute(err_is_about(who) ? status : err_attribute(status, what), who);
}

graft_status plg_negotiate(graft_plugin_open_v1_fn entry, const char *path, const char *name,
                           const char *const *options, graft_rt_backend **backend) {
  const char *who = path ? path : name;
  graft_rt_backend *made = backend_new(path, name);
  if (!made) return err_about(GRAFT_OUT_OF_MEMORY, who, "no host memory to open it");
  plg_host_init(made);

  const graft_plugin *plugin = NULL;
  err_clear();
  graft_status status = plg_status_of(who, entry(&made->host, options, &plugin), "opening the plugin");
  if (!status && !plugin) status = err_about(GRAFT_INCOMPATIBLE, who, "its entry said OK and gave no plugin");
  if (!status) {
    status = adopt(made, who, name, plugin);
    if (status) close_refused(plugin);
  }
  if (status) {
    backend_free(made);
    return status;
  }
  made->is_reference = !path;
  *backend = made;
  return GRAFT_OK;
}

/* Names the major that a library without our entry was built for, 0 if it is no plugin at all. */
static int other_major(void *library) {
  for (int major = 2; major < 100; major++) {
    char symbol[40];
    snprintf(symbol, sizeof symbol, "graft_plugin_open_v%d", major);
    if (dlsym(library, symbol)) return major;
  }
  return 0;
}

static graft_status no_entry(const char *path, void *library) {
  int major = other_major(library);
  if (!major) {
    return err_about(GRAFT_INCOMPATIBLE, path, "not a Graft plugin: it does not export %s", GRAFT_PLUGIN_ENTRY);
  }
  return err_about(GRAFT_INCOMPATIBLE, path,
                   "it is built for ABI major %d and this libgraft speaks %d; install a build for that", major,
                   GRAFT_ABI_MAJOR);
}

graft_status plg_load(const char *path, const char *name, const char *const *options, graft_rt_backend **backend) {
  struct stat info;
  if (stat(path, &info) != 0) return err_about(GRAFT_INVALID_ARGUMENT, path, "%s", strerror(errno));
  if (!S_ISREG(info.st_mode)) {
    return err_about(GRAFT_INVALID_ARGUMENT, path, "not a file; give the path of a plugin's library or manifest");
  }
  plg_float_mode mode = plg_float_mode_now();
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  plg_float_mode_restore(mode, path, "loading it");
  if (!library) return err_about(GRAFT_INCOMPATIBLE, path, "the library can't be loaded: %s", dlerror());
  /* POSIX lets a pointer to data hold a function; ISO C wants the detour. */
  void *symbol = dlsym(library, GRAFT_PLUGIN_ENTRY);
  if (!symbol) return no_entry(path, library);
  graft_plugin_open_v1_fn entry;
  memcpy(&entry, &symbol, sizeof entry);
  graft_status status = plg_negotiate(entry, path, name, options, backend);
  plg_float_mode_restore(mode, path, "opening it");
  return status;
}
