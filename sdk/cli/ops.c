/* graft ops: each op of the tables and who would run it on a backend. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "conformance/run/fused.h"
#include "cost.h"

enum { MOST_OPTIONS = 15 }; /* as graft conformance has it */

typedef struct options {
  const char *table, *backend, *plugin_options[MOST_OPTIONS + 1]; /* NULL behind the last */
  uint32_t option_count;
  bool schema, levels, cost, counts, fused;
  uint8_t *fusions; /* of --fused: a cf_fusion for each op, as op_schema_all has them */
} options;

/* Those are asked of the plugin in a process of its own, which opens it like this one. */
static uint8_t *fetch_fusions(const options *o) {
  cf_options asked = {.backend = o->backend, .plugin_option_count = o->option_count};
  memcpy(asked.plugin_options, o->plugin_options, sizeof o->plugin_options);
  return cf_fusions_fetch(&asked);
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  switch (key) {
    case 't': o->table = argument; return 0;
    case 'b': o->backend = argument; return 0;
    case 'o': cli_add_option(o->plugin_options, &o->option_count, MOST_OPTIONS, argument, state); return 0;
    case 's': o->schema = true; return 0;
    case 'l': o->levels = true; return 0;
    case 'c': o->cost = true; return 0;
    case 'f': o->fused = true; return 0;
    case 'n': o->counts = true; return 0;
    case ARGP_KEY_ARG: argp_usage(state); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const char *const tables[] = {
    [OPT_CORE] = "core", [OPT_PRIMS] = "prims", [OPT_TRAIN] = "train", [OPT_CUSTOM] = "custom"};
static const char *const routes[] = {
    [OPROUTE_SLOT] = "slot", [OPROUTE_HOST] = "host", [OPROUTE_COMPOSITE] = "composite"};

/* Launches, and how often the bytes of one kernel are moved. */
static void print_cost(const op_schema *schema, graft_rt_device *device, dsp_route route) {
  cli_cost cost = {.way = {1, 1}, .one_kernel = {1, 1}};
  if (route == DSP_ROUTE_HOST) cost.way = (dsp_cost){0, 0};
  bool known = route != DSP_ROUTE_DECOMPOSITION || cli_cost_of(schema, device, &cost);
  if (known && schema->route != OPROUTE_COMPOSITE && route != DSP_ROUTE_NONE)
    printf("\t%u\t%.2f", cost.way.launches, (double)cost.way.bytes / (double)cost.one_kernel.bytes);
  else
    printf("\t-\t-");
}

static void print_op(const op_schema *schema, graft_rt_device *device, const options *o) {
  uint32_t equal;
  dsp_route route = dsp_static_route(device, schema, &equal);
  printf("%u\t%s\t%s\t", schema->id, schema->name, routes[schema->route]);
  if (schema->route == OPROUTE_COMPOSITE)
    printf("composite");
  else if (route == DSP_ROUTE_EQUAL)
    printf("equal:%s", op_schema_of(equal)->name);
  else
    printf("%s", dsp_route_name(route));
  if (o->cost) print_cost(schema, device, route);
  if (o->fused) printf("\t%s", cf_fusion_name(cf_fusion_among(o->fusions, schema)));
  if (o->schema) printf("\t%s", schema->schema);
  putchar('\n');
}

/* --- levels --- */

enum { LEVELS = 5 };

/* Ops with a slot, by who computes them. */
typedef struct level {
  int ops, slots, composed, host, none;
} level;

static void count_op(level *levels, const op_schema *schema, graft_rt_device *device) {
  uint32_t equal;
  if (schema->route != OPROUTE_SLOT || schema->table == OPT_PRIMS) return;
  level *of = &levels[schema->level];
  of->ops++;
  switch (dsp_static_route(device, schema, &equal)) {
    case DSP_ROUTE_PLUGIN:
    case DSP_ROUTE_EQUAL: of->slots++; break;
    case DSP_ROUTE_DECOMPOSITION: of->composed++; break;
    case DSP_ROUTE_REFERENCE: of->host++; break;
    default: of->none++; break;
  }
}

static void print_levels(graft_rt_device *device) {
  static const char *const meanings[LEVELS] = {"an MLP and a CNN infer", "they train", "transformers train",
                                               "core ATen", "all of aten"};
  level levels[LEVELS] = {{0}};
  size_t count;
  const op_schema *all = op_schema_all(&count);
  for (size_t i = 0; i < count; i++) count_op(levels, &all[i], device);
  printf("level\tops\tplugin\tdecomposition\treference\tunsupported\twith them\n");
  for (int i = 0; i < LEVELS; i++) {
    const level *of = &levels[i];
    printf("%d\t%d\t%d\t%d\t%d\t%d\t%s\n", i, of->ops, of->slots, of->composed, of->host, of->none, meanings[i]);
  }
}

/* --- counts --- */

/* Overloads of a table, by which way they go. */
typedef struct ways {
  int all, plugin, equal, decomposition, reference, host, composite, none;
} ways;

static void count_way(ways *of, const op_schema *schema, graft_rt_device *device) {
  uint32_t equal;
  of->all++;
  if (schema->route == OPROUTE_COMPOSITE) {
    of->composite++;
    return;
  }
  switch (dsp_static_route(device, schema, &equal)) {
    case DSP_ROUTE_PLUGIN: of->plugin++; break;
    case DSP_ROUTE_EQUAL: of->equal++; break;
    case DSP_ROUTE_DECOMPOSITION: of->decomposition++; break;
    case DSP_ROUTE_REFERENCE: of->reference++; break;
    case DSP_ROUTE_HOST: of->host++; break;
    default: of->none++; break;
  }
}

static void print_ways(const char *table, const ways *of) {
  printf("%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", table, of->all, of->plugin, of->equal, of->decomposition,
         of->reference, of->host, of->composite, of->none);
}

static void print_counts(graft_rt_device *device, int table) {
  ways counted[OPT_CUSTOM + 1] = {{0}};
  size_t count;
  const op_schema *all = op_schema_all(&count);
  for (size_t i = 0; i < count; i++) count_way(&counted[all[i].table], &all[i], device);
  for (uint32_t i = 0; op_schema_custom(i); i++) count_way(&counted[OPT_CUSTOM], op_schema_custom(i), device);
  printf("table\toverloads\tplugin\tequal\tdecomposition\treference\thost\tcomposite\tunsupported\n");
  for (int t = OPT_CORE; t <= OPT_CUSTOM; t++)
    if ((table < 0 || table == t) && counted[t].all) print_ways(tables[t], &counted[t]);
}

int cli_ops(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"table", 't', "TABLE", 0, "core, prims, train or custom: the plugin's own (default: all)", 0},
      {"backend", 'b', "NAME", 0, "a backend's name or the path of its library (default: reference)", 0},
      {"option", 'o', "KEY=VALUE", 0, "an option handed to the plugin when it is opened; may be repeated", 0},
      {"cost", 'c', NULL, 0, "add two columns: launches of a call, and the bytes they move", 0},
      {"counts", 'n', NULL, 0, "instead: how many overloads of each table go which way", 0},
      {"fused", 'f', NULL, 0, "add a column: with which calls the plugin makes one program of it", 0},
      {"schema", 's', NULL, 0, "add the schema as a last column", 0},
      {"levels", 'l', NULL, 0, "instead: how much of each level the backend has, see plugin_api/ops/README.md", 0},
      {0}};
  static const struct argp argp = {
      rows,
      parse,
      NULL,
      "Lists the ops, one a line, tab-separated: id, overload, route, implementer.\v"
      "The implementer is plugin (a slot of its own), equal:OVERLOAD (the slot of an op that is the same thing), "
      "decomposition (other ops on the device), reference (host memory), host (a view or metadata: no kernel), "
      "composite (PyTorch composes it) or unsupported.\n"
      "With --cost, of the conformance suite's first call of the op: how many kernels the implementer launches, and "
      "how "
      "many times the bytes these move that one kernel would, which reads each input and writes each result once. "
      "Parts of a decomposition that decompose in turn count by their parts; views cost nothing; '-' where there is no "
      "such call.\n"
      "With --fused, of the suite's calls of the op, by the plugin's extension graft.graph: whether one is compiled "
      "with the call that made its input (before), with the call that its result goes to (after), with either (both), "
      "or runs alone (none). The neighbour is a negation; nothing is compiled for the answer.",
      NULL,
      NULL,
      NULL};
  options o = {.backend = "reference"};
  if (argp_parse(&argp, argc, argv, 0, NULL, &o)) return CLI_USAGE;
  int table = -1;
  for (int i = OPT_CORE; o.table && i <= OPT_CUSTOM; i++) {
    if (!strcmp(tables[i], o.table)) table = i;
  }
  if ((o.levels || o.counts) && (o.cost || o.fused || o.schema || (o.levels && (o.counts || o.table)))) {
    fputs(
        "graft ops: --levels and --counts print something else than ops, each by itself: give one of them, and no "
        "--cost, --fused or --schema; --table goes with --counts only\n",
        stderr);
    return CLI_USAGE;
  }
  if (o.table && table < 0) {
    fprintf(stderr, "graft ops: there is no table '%s'; expected core, prims, train or custom\n", o.table);
    return CLI_USAGE;
  }
  graft_rt_device *device;
  if (!cli_open_with(o.backend, o.option_count ? o.plugin_options : NULL, 0, &device))
    return cli_error("ops", CLI_USAGE);
  if (o.levels) {
    print_levels(device);
    return CLI_OK;
  }
  if (o.counts) {
    print_counts(device, table);
    return CLI_OK;
  }
  if (o.fused) o.fusions = fetch_fusions(&o);
  if (o.fused && !o.fusions) return CLI_FAILED;
  size_t count;
  const op_schema *all = op_schema_all(&count);
  for (size_t i = 0; i < count; i++) {
    if (table < 0 || all[i].table == table) print_op(&all[i], device, &o);
  }
  for (uint32_t i = 0; (table < 0 || table == OPT_CUSTOM) && op_schema_custom(i); i++)
    print_op(op_schema_custom(i), device, &o);
  free(o.fusions);
  return CLI_OK;
}
