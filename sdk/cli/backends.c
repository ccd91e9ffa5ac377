/* graft backends: what discovery found and what opens. */
#include <argp.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "dispatch/dispatch.h"

typedef struct options {
  bool json;
} options;

static error_t parse(int key, char *argument, struct argp_state *state) {
  (void)argument;
  options *o = state->input;
  if (key != 'j') return key == ARGP_KEY_ARG ? (argp_usage(state), 0) : ARGP_ERR_UNKNOWN;
  o->json = true;
  return 0;
}

/* How many ops of the core table a device serves with slots of its own. */
static void coverage(graft_rt_device *device, int *served, int *all) {
  size_t count;
  const op_schema *schemas = op_schema_all(&count);
  *served = *all = 0;
  for (size_t i = 0; i < count; i++) {
    if (schemas[i].route != OPROUTE_SLOT || schemas[i].table != OPT_CORE) continue;
    uint32_t equal;
    dsp_route route = dsp_static_route(device, &schemas[i], &equal);
    ++*all;
    *served += route == DSP_ROUTE_PLUGIN || route == DSP_ROUTE_EQUAL;
  }
}

static void device_name(graft_rt_device *device, char *name, size_t room) {
  size_t size;
  if (graft_device_query(device, GRAFT_DEVICE_NAME, name, room, &size)) snprintf(name, room, "?");
}

/* What a plugin may offer beyond its slots, and how that is said. */
static const struct offer {
  const char *extension;
  uint32_t version;
  const char *key, *text;
} offers[] = {
    {GRAFT_EXTENSION_GRAPH, 1, "groups", "compiles groups of calls"},
    {GRAFT_EXTENSION_CAPTURE, GRAFT_CAPTURE_VERSION, "captures", "records captures"},
    {GRAFT_EXTENSION_PROFILER, GRAFT_PROFILER_VERSION, "profiler", "has a profiler"},
};
enum { OFFERS = sizeof offers / sizeof *offers };

static bool has(graft_rt_device *device, const struct offer *offer) {
  const void *table;
  void *self;
  return !graft_device_extension(device, offer->extension, offer->version, &table, &self);
}

static void print_offers(graft_rt_device *device) {
  for (int i = 0; i < OFFERS; i++)
    if (has(device, &offers[i])) printf("; %s", offers[i].text);
  putchar('\n');
}

static void show_devices(graft_rt_backend *backend, int32_t count, cJSON *list) {
  for (int32_t i = 0; i < count; i++) {
    graft_rt_device *device;
    char name[256];
    if (graft_backend_device(backend, i, &device)) {
      if (!list) printf("    %d: does not open: %s\n", i, graft_last_error());
      continue;
    }
    device_name(device, name, sizeof name);
    int served, all;
    coverage(device, &served, &all);
    if (!list) {
      printf("    %s  %s  core ops with a slot: %d of %d", graft_device_text(device), name, served, all);
      print_offers(device);
      continue;
    }
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "device", graft_device_text(device));
    cJSON_AddStringToObject(item, "name", name);
    cJSON_AddNumberToObject(item, "core_slots", served);
    cJSON_AddNumberToObject(item, "core_ops", all);
    for (int k = 0; k < OFFERS; k++) cJSON_AddBoolToObject(item, offers[k].key, has(device, &offers[k]));
    cJSON_AddItemToArray(list, item);
  }
}

/* What names a plugin whose manifest was not read, or not to its end. */
static const char *file_name(const char *path) {
  const char *slash = path ? strrchr(path, '/') : NULL;
  return slash ? slash + 1 : path ? path : "?";
}

static void show_backend(const graft_backend_info *info, cJSON *json) {
  graft_rt_backend *backend = NULL;
  int32_t count = 0;
  const char *problem = info->problem;
  if (!problem && (graft_backend_open(info->name, NULL, &backend) || graft_backend_device_count(backend, &count))) {
    problem = graft_last_error();
  }
  if (!json) {
    if (*info->version)
      printf("%s %s (%s)\n", info->name, info->version, info->vendor);
    else
      printf("%s\n", file_name(info->manifest));
    printf("  from %s\n", info->manifest ? info->manifest : "libgraft itself");
    if (problem)
      printf("  not usable: %s\n", problem);
    else
      printf("  ABI %u.%u, devices: %d\n", backend->plugin.abi_major, backend->plugin.abi_minor, count);
  } else {
    cJSON_AddStringToObject(json, "name", info->name);
    cJSON_AddStringToObject(json, "version", info->version);
    cJSON_AddStringToObject(json, "vendor", info->vendor);
    if (info->manifest) cJSON_AddStringToObject(json, "manifest", info->manifest);
    cJSON_AddStringToObject(json, "library", info->library);
    if (problem) cJSON_AddStringToObject(json, "problem", problem);
    if (!problem) cJSON_AddNumberToObject(json, "abi_major", backend->plugin.abi_major);
    if (!problem) cJSON_AddNumberToObject(json, "abi_minor", backend->plugin.abi_minor);
  }
  if (!problem) show_devices(backend, count, json ? cJSON_AddArrayToObject(json, "devices") : NULL);
}

int cli_backends(int argc, char **argv) {
  static const struct argp_option rows[] = {{"json", 'j', NULL, 0, "one JSON array on stdout", 0}, {0}};
  static const struct argp argp = {rows,
                                   parse,
                                   NULL,
                                   "Lists the backends that discovery found, whether or not they can be used, with "
                                   "what refuses them, their ABI version and their devices.",
                                   NULL,
                                   NULL,
                                   NULL};
  options o = {false};
  if (argp_parse(&argp, argc, argv, 0, NULL, &o)) return CLI_USAGE;
  const graft_backend_info *const *infos;
  size_t count;
  if (graft_backends(&infos, &count)) return cli_error("backends", CLI_USAGE);
  cJSON *list = o.json ? cJSON_CreateArray() : NULL;
  for (size_t i = 0; i < count; i++) {
    cJSON *item = list ? cJSON_CreateObject() : NULL;
    show_backend(infos[i], item);
    if (list) cJSON_AddItemToArray(list, item);
  }
  if (list) {
    char *text = cJSON_Print(list);
    puts(text);
    free(text);
    cJSON_Delete(list);
  }
  return CLI_OK;
}
