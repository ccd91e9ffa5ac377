/* graft check: ABI lint and contract tests of one plugin. */
#include "check.h"

#include <argp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "plugin/loader.h"

typedef struct options {
  const char *plugin, *pattern;
  bool list;
  const char *plugin_options[32];
  uint32_t option_count;
  ck_target target;
} options;

static int whole_number(struct argp_state *state, const char *text, int least) {
  char *end;
  long number = strtol(text, &end, 10);
  if (end == text || *end || number < least || number > INT_MAX) {
    argp_error(state, "'%s' is no number from %d", text, least);
  }
  return (int)number;
}

static void add_option(options *o, struct argp_state *state, const char *text) {
  const size_t most = sizeof o->plugin_options / sizeof *o->plugin_options - 1;
  cli_add_option(o->plugin_options, &o->option_count, most, text, state);
  o->target.options = o->plugin_options;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  switch (key) {
    case 'd': o->target.device = whole_number(state, argument, 0); return 0;
    case 't': o->target.time_limit_s = whole_number(state, argument, 1); return 0;
    case 'o': add_option(o, state, argument); return 0;
    case 'p': o->pattern = argument; return 0;
    case 'l': o->list = true; return 0;
    case ARGP_KEY_ARG:
      if (o->plugin) argp_usage(state);
      o->plugin = argument;
      return 0;
    case ARGP_KEY_END:
      if (!o->plugin && !o->list) argp_usage(state);
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option rows[] = {
    {"device", 'd', "N", 0, "the plugin's device to use (default: 0)", 0},
    {"only", 'p', "GLOB", 0, "only the checks of that name, such as 'memory.*', and what they stand on", 0},
    {"option", 'o', "KEY=VALUE", 0, "an option handed to the plugin when it is opened; may be repeated", 0},
    {"time-limit", 't', "SECONDS", 0, "how long one check may take before it counts as hung (default: 60)", 0},
    {"list", 'l', NULL, 0, "list the checks and their rules, and run none", 0},
    {0}};

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), tail = strlen(end);
  return length >= tail && !strcmp(text + length - tail, end);
}

static int refuse(const char *what, const char *why) {
  fprintf(stderr, "graft check: %s: %s\n", what, why);
  return CLI_USAGE;
}

/* A name as discovery knows it. A manifest that is refused is still followed if it leads to a library: its faults are
 * what check is there to show. */
static int find_by_name(options *o) {
  const graft_backend_info *const *infos;
  size_t count;
  if (!strcmp(o->plugin, "reference")) return CLI_OK;
  if (graft_backends(&infos, &count)) return cli_error("check", CLI_USAGE);
  for (size_t i = 0; i < count; i++) {
    if (strcmp(infos[i]->name, o->plugin) || !infos[i]->manifest) continue;
    if (infos[i]->problem) return refuse(infos[i]->manifest, infos[i]->problem);
    o->target.path = infos[i]->library;
    o->target.manifest = infos[i]->manifest;
    return CLI_OK;
  }
  return refuse(o->plugin, "no backend of this name was found and no file is there; `graft backends` lists them");
}

static bool is_file(const char *path) {
  struct stat info;
  return !stat(path, &info) && S_ISREG(info.st_mode);
}

static int find_by_path(options *o) {
  static char path[PATH_MAX];
  static plg_manifest manifest;
  if (!realpath(o->plugin, path)) return refuse(o->plugin, "no such file");
  if (!is_file(path)) return refuse(path, "not a file; give the path of a plugin's library or manifest");
  o->target.path = path;
  if (!ends_with(path, ".graft.json")) return CLI_OK;
  plg_manifest_read(path, PLG_TYPED, &manifest);
  if (manifest.problem) return refuse(path, manifest.problem);
  o->target.path = manifest.library;
  o->target.manifest = manifest.path;
  return CLI_OK;
}

static int find(options *o) {
  return is_file(o->plugin) || strchr(o->plugin, '/') ? find_by_path(o) : find_by_name(o);
}

int cli_check(int argc, char **argv) {
  static const struct argp argp = {
      rows,
      parse,
      "PLUGIN",
      "Holds a plugin to the rules of the ABI: its file and manifest, opening, devices and properties, memory, copies, "
      "streams, events, and what it says of its ops.\v"
      "PLUGIN is a library's path, a manifest's, or a backend's name. Every check runs in a process of its own: a "
      "plugin "
      "that crashes or hangs fails that one check. Whether numbers are right is what `graft conformance` tests.\n\n"
      "Exit status: 0 no check failed, 1 one did, 2 usage, no such plugin, or one that can't be loaded or has no "
      "device.\n\n"
      "  graft check build/my_chip.so\n"
      "  graft check opencl --only 'event.*'\n",
      NULL,
      NULL,
      NULL};
  options o = {.target = {.time_limit_s = 60}};
  if (argp_parse(&argp, argc, argv, 0, NULL, &o)) return CLI_USAGE;
  if (o.list) {
    ck_list();
    return CLI_OK;
  }
  int status = find(&o);
  if (status) return status;
  printf("graft check %s\n", o.target.path ? o.target.path : "reference (built in)");
  ck_counts counts = {0};
  ck_run_all(&o.target, o.pattern, &counts);
  if (counts.ok + counts.failed + counts.skipped == 0) {
    return refuse(o.pattern, "no check has such a name; `graft check --list` lists them");
  }
  printf("\n%d checks: %d ok, %d failed, %d skipped\n", counts.ok + counts.failed + counts.skipped, counts.ok,
         counts.failed, counts.skipped);
  if (counts.slots[0]) printf("%s\n", counts.slots);
  if (counts.reached < CK_DEVICE) return CLI_USAGE;
  return counts.failed ? CLI_FAILED : CLI_OK;
}
