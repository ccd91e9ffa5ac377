/* graft graph FILE: what is in a saved graph, and what becomes of it. */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cli.h"
#include "graph/file.h"
#include "graph_tools.h"

enum { MOST_OPTIONS = 16 };
enum { KEY_PASSES = 256, KEY_DOT, KEY_JSON, KEY_BISECT, KEY_AGAINST, KEY_TOLERANCE };

typedef struct options {
  cli_graph_options graph;
  const char *against;
  const char *plugin_options[MOST_OPTIONS + 1];
  uint32_t nplugin_options;
  int what;               /* a key; 0: its text */
  const char *for_bisect; /* an option that was given and says something to --bisect alone */
  double tolerance;
} options;

static graft_status print_json(const char *path) {
  gr_file file;
  graft_status status = gr_file_open(path, &file);
  if (status) return status;
  char *text = cJSON_Print(file.graph);
  if (text) puts(text);
  cJSON_free(text);
  gr_file_close(&file);
  return text ? GRAFT_OK : err_set(GRAFT_OUT_OF_MEMORY, "%s: no host memory for its text", path);
}

/* Where it runs, and what --bisect holds that against. */
typedef struct devices {
  graft_rt_device *device, *against;
} devices;

static bool open_devices(const options *o, devices *d) {
  if (!cli_open_with(o->graph.backend, o->plugin_options, o->graph.device, &d->device)) return false;
  return o->what != KEY_BISECT || cli_open(o->against, 0, &d->against);
}

static graft_status run_on(const options *o, const graft_graph *graph, const devices *d, bool *found) {
  const cli_bisect b = {.graph = graph,
                        .device = d->device,
                        .against = d->against,
                        .inputs = &o->graph.inputs,
                        .tolerance = o->tolerance};
  switch (o->what) {
    case KEY_PASSES: return cli_graph_show_passes(graph, d->device);
    case KEY_DOT: return cli_graph_dot(graph);
    case KEY_BISECT: return cli_graph_bisect(&b, found);
    default: return cli_graph_show(graph, d->device);
  }
}

/* As it is at the sizes that are given, where some are open. */
static graft_status run_at(const options *o, const graft_graph *graph, const devices *d, bool *found) {
  static const cli_pairs none = {0};
  const cli_graph_given given = {&o->graph.sizes, o->what == KEY_BISECT ? &o->graph.inputs : &none, NULL};
  graft_graph *made;
  char sizes[160];
  graft_status status = cli_graph_at(graph, &given, sizes, sizeof sizes, &made);
  if (status) return status;
  if (!o->what) cli_graph_print_sizes(graph);
  if (made && o->what != KEY_DOT) printf("at %s:\n", sizes);
  status = run_on(o, made ? made : graph, d, found);
  graft_graph_destroy(made);
  return status;
}

static int run(const options *o) {
  devices d = {0};
  graft_graph *graph;
  bool found = false;
  if (o->what == KEY_JSON) return print_json(o->graph.file) ? cli_error("graph", CLI_FAILED) : CLI_OK;
  if (o->what == KEY_PASSES || o->what == KEY_BISECT) unsetenv("GRAFT_GRAPH_PASSES"); /* here passes are compared */
  unsetenv("GRAFT_GRAPH_DUMP"); /* the graph is in a file, and what is compiled here are parts of it */
  if (!open_devices(o, &d)) return cli_error("graph", CLI_USAGE);
  graft_status status = graft_graph_load(NULL, o->graph.file, &graph); /* what it is does not depend on where it runs */
  if (!status) {
    status = run_at(o, graph, &d, &found);
    graft_graph_destroy(graph);
  }
  if (status) return cli_error("graph", CLI_FAILED);
  return found ? CLI_FAILED : CLI_OK;
}

static double tolerance(const char *text, struct argp_state *state) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end || !(value >= 0) || isinf(value))
    argp_error(state, "--tolerance: '%s' is no number from 0", text);
  return value;
}

static void take_option(options *o, const char *text, struct argp_state *state) {
  if (o->nplugin_options == MOST_OPTIONS) argp_error(state, "-o: at most %d are taken", MOST_OPTIONS);
  o->plugin_options[o->nplugin_options++] = text;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  switch (key) {
    case 'o': take_option(o, argument, state); return 0;
    case 'i': o->for_bisect = "--input"; return cli_take_graph_option(key, argument, state, &o->graph);
    case KEY_AGAINST:
      o->against = argument;
      o->for_bisect = "--against";
      return 0;
    case KEY_TOLERANCE:
      o->tolerance = tolerance(argument, state);
      o->for_bisect = "--tolerance";
      return 0;
    case KEY_PASSES:
    case KEY_DOT:
    case KEY_JSON:
    case KEY_BISECT:
      if (o->what) argp_error(state, "one of --passes, --dot, --json and --bisect");
      o->what = key;
      return 0;
    case ARGP_KEY_END:
      if (o->for_bisect && o->what != KEY_BISECT) argp_error(state, "%s is for --bisect", o->for_bisect);
      return cli_take_graph_option(key, argument, state, &o->graph);
    default: return cli_take_graph_option(key, argument, state, &o->graph);
  }
}

int cli_graph(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"passes", KEY_PASSES, NULL, 0, "instead: what each pass takes out, and what it saves", 0},
      {"dot", KEY_DOT, NULL, 0, "instead: a picture, for graphviz (graft graph FILE --dot | dot -Tsvg)", 0},
      {"json", KEY_JSON, NULL, 0, "instead: the graph as the file has it, whatever ops are in it", 0},
      {"bisect", KEY_BISECT, NULL, 0, "instead: find the first node, or the pass, with which the backend goes wrong",
       0},
      {"backend", 'b', "NAME|PATH", 0, "for which backend (default: reference)", 1},
      {"device", 'd', "N", 0, "its device (default: 0)", 1},
      {NULL, 'o', "KEY=VALUE", 0, "an option for the plugin; may be repeated", 1},
      {"against", KEY_AGAINST, "NAME|PATH", 0, "what --bisect holds it against (default: reference)", 1},
      {"size", CLI_KEY_SIZE, "NAME=N", 0, "an open size (default: as it was recorded); may be repeated", 1},
      {"input", 'i', "NAME=X.npy", 0, "values for --bisect (default: NAME=random:1 for all)", 1},
      {"tolerance", KEY_TOLERANCE, "R", 0,
       "what --bisect lets pass, relative to the largest element of a result; 0: to the bit (default: half of the "
       "digits that the dtype has, integers to the bit)",
       1},
      {0}};
  static const struct argp argp = {
      .options = rows,
      .parser = parse,
      .args_doc = "FILE",
      .doc =
          "Shows a saved graph: inputs, constants, calls, outputs, and how much memory its values take on a backend. "
          "An "
          "operand is named by what it is of: an input, constant.N, or vN; a view has dtype, sizes, strides and offset "
          "behind it, and a \"!\" before what is written. Of a graph with open sizes these come first, then what it is "
          "at "
          "one of each.\n"
          "--bisect runs each node alone, on the backend and on the one it is held against, from the same values, then "
          "the whole graph with passes and without.\v"
          "Exit status: 0 it was shown, or all agrees; 1 the file is wrong, or --bisect found something; 2 usage, or "
          "no "
          "such plugin."};
  options o = {.graph.backend = "reference", .against = "reference", .tolerance = -1};
  const int status = argp_parse(&argp, argc, argv, 0, NULL, &o) ? CLI_USAGE : run(&o);
  cli_pairs_free(&o.graph.inputs);
  cli_pairs_free(&o.graph.sizes);
  return status;
}
