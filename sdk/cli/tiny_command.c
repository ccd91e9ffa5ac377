/* graft tiny FILE: a saved graph as one C source. */
#include <argp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/whole_file.h"
#include "cli.h"
#include "graph_values.h"
#include "tiny/tiny.h"

typedef struct options {
  cli_graph_options graph;
  const char *output, *name;
} options;

static graft_status check_inputs(const options *o, const graft_graph *graph) {
  graft_graph_port port;
  for (uint32_t i = 0; i < o->graph.inputs.count; i++) {
    bool found = false;
    for (uint32_t k = 0; k < graft_graph_input_count(graph) && !found; k++)
      found =
          !graft_graph_input_query(graph, k, &port, sizeof port) && !strcmp(port.name, o->graph.inputs.items[i].name);
    if (!found)
      return err_set(GRAFT_INVALID_ARGUMENT, "the graph has no input %s; `graft graph %s` lists what it has",
                     o->graph.inputs.items[i].name, o->graph.file);
  }
  return GRAFT_OK;
}

/* The first values of the inputs that have some, given or in the file: NULL at the others. */
static graft_status read_values(const options *o, const graft_graph *graph, graft_tensor **values) {
  graft_graph_port port;
  graft_status status = cli_graph_inputs(graph, graft_device_reference(), &o->graph.inputs, "random:1", values);
  if (status) return status;
  for (uint32_t i = 0; i < graft_graph_input_count(graph); i++) {
    if (!graft_graph_input_query(graph, i, &port, sizeof port) &&
        (port.has_value || cli_pairs_find(&o->graph.inputs, port.name)))
      continue;
    graft_tensor_release(values[i]);
    values[i] = NULL;
  }
  return GRAFT_OK;
}

static graft_status write_source(const options *o, const graft_graph *graph, graft_tensor *const *values) {
  const tiny_options tiny = {.name = o->name, .values = values};
  tiny_info info;
  file_part to;
  graft_status status = file_open(o->output, &to);
  if (status) return status;
  status = tiny_emit(graph, &tiny, to.file, &info);
  if (status)
    file_discard(&to);
  else
    status = file_close(&to);
  if (!status)
    printf("%s: %" PRIu64 " bytes of memory for values, %" PRIu64 " of what is updated, %" PRIu64
           " of what is only read\n",
           o->output, info.arena_bytes, info.updated_bytes, info.constant_bytes);
  return status;
}

/* Open sizes are fixed there. */
static graft_status load(const options *o, graft_graph **graph) {
  graft_graph *made;
  char sizes[160];
  graft_status status = graft_graph_load(NULL, o->graph.file, graph);
  if (status) return status;
  status =
      cli_graph_at(*graph, &(cli_graph_given){&o->graph.sizes, &o->graph.inputs, NULL}, sizes, sizeof sizes, &made);
  if (!status && !made) return GRAFT_OK;
  graft_graph_destroy(*graph);
  *graph = made;
  return status;
}

static int run(const options *o) {
  graft_graph *graph;
  graft_status status = load(o, &graph);
  if (status) return cli_error("tiny", CLI_FAILED);
  const uint32_t count = graft_graph_input_count(graph);
  graft_tensor **values = calloc(count + 1u, sizeof *values);
  status = values ? check_inputs(o, graph) : err_set(GRAFT_OUT_OF_MEMORY, "no host memory for values");
  if (!status) status = read_values(o, graph, values);
  if (!status) {
    status = write_source(o, graph, values);
    for (uint32_t i = 0; i < count; i++) graft_tensor_release(values[i]);
  }
  free(values);
  graft_graph_destroy(graph);
  return status ? cli_error("tiny", CLI_FAILED) : CLI_OK;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  switch (key) {
    case 'o': o->output = argument; return 0;
    case 'n': o->name = argument; return 0;
    case ARGP_KEY_SUCCESS:
      if (!o->output) argp_error(state, "-o: into which file?");
      return 0;
    default: return cli_take_graph_option(key, argument, state, &o->graph);
  }
}

int cli_tiny(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"output", 'o', "OUT.c", 0, "the source", 0},
      {"name", 'n', "NAME", 0, "what its names begin with (default: graph)", 0},
      {"input", 'i', "NAME=X.npy", 0,
       "the source holds this input, with these first values, as it does one that has a value in FILE; others are "
       "arguments of the call",
       0},
      {"size", CLI_KEY_SIZE, "NAME=N", 0, "an open size of FILE, which the source fixes (default: as it was recorded)",
       0},
      {0}};
  static const struct argp argp = {
      .options = rows,
      .parser = parse,
      .args_doc = "FILE",
      .doc =
          "Writes a saved graph as one C source with a function NAME_run, which needs no library but that of C and "
          "no heap: a training step for a microcontroller. docs/tiny.md says which ops there are kernels of.\v"
          "Exit status: 0 it was written; 1 file, values or graph are wrong, and OUT.c is as it was; 2 usage."};
  static options o = {.name = "graph"}; /* large */
  if (argp_parse(&argp, argc, argv, 0, NULL, &o)) return CLI_USAGE;
  return run(&o);
}
