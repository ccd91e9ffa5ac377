/* Another plugin with fewer ops, for what a backend of that many could do: GRAFT_MASK_PLUGIN is the path of its
 * library, GRAFT_MASK_SLOTS a file that names the slots which stay, one a line: the table and the number, as in
 * plugin_api/ops. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graft/abi/plugin.h"

typedef graft_status (*open_function)(const graft_host *host, const char *const *options, const graft_plugin **plugin);
typedef void (*any_slot)(void);

static const graft_plugin *whole;
static graft_plugin masked;
static graft_core_ops core;
static graft_prims_ops prims;
static graft_train_ops train;

static graft_status refuse(const graft_host *host, const char *text) {
  host->set_error(host->context, text);
  return GRAFT_INTERNAL;
}

/* Slots follow the size of their table. */
static void keep(void *table, const void *from, size_t known, size_t slot) {
  size_t at = sizeof(size_t) + slot * sizeof(any_slot), size;
  memcpy(&size, from, sizeof size);
  if (at + sizeof(any_slot) <= size && at + sizeof(any_slot) <= known)
    memcpy((char *)table + at, (const char *)from + at, sizeof(any_slot));
}

static bool read_slots(const char *path) {
  char name[16];
  unsigned slot;
  FILE *file = fopen(path, "r");
  if (!file) return false;
  while (fscanf(file, "%15s %u", name, &slot) == 2) {
    if (strcmp(name, "core") == 0) keep(&core, whole->core, sizeof core, slot);
    if (strcmp(name, "prims") == 0) keep(&prims, whole->prims, sizeof prims, slot);
    if (strcmp(name, "train") == 0) keep(&train, whole->train, sizeof train, slot);
  }
  fclose(file);
  return true;
}

graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  const char *path = getenv("GRAFT_MASK_PLUGIN"), *slots = getenv("GRAFT_MASK_SLOTS");
  open_function open;
  if (whole) return GRAFT_INCOMPATIBLE;
  if (!path || !slots) return refuse(host, "GRAFT_MASK_PLUGIN and GRAFT_MASK_SLOTS say what is masked and what stays");
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL),
       *symbol = library ? dlsym(library, "graft_plugin_open_v1") : NULL;
  if (!symbol) return refuse(host, dlerror());
  memcpy(&open, &symbol, sizeof open);
  graft_status status = open(host, options, &whole);
  if (status != GRAFT_OK) return status;
  masked = *whole;
  masked.name = "mask";
  core.struct_size = sizeof core, prims.struct_size = sizeof prims, train.struct_size = sizeof train;
  masked.core = &core, masked.prims = &prims, masked.train = &train;
  if (!read_slots(slots)) return refuse(host, "the file of GRAFT_MASK_SLOTS can't be read");
  *plugin = &masked;
  return GRAFT_OK;
}
