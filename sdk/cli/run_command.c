/* graft run FILE: a saved graph, on a backend, without Python. */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/whole_file.h"
#include "cli.h"
#include "graph/grow.h"
#include "graph_values.h"
#include "npy.h"

/* What one run is given. */
typedef struct one_run {
  cli_pairs inputs, sizes, outputs;
} one_run;

typedef struct options {
  cli_graph_options graph; /* inputs and sizes: of the run that is read */
  cli_pairs outputs;
  one_run *runs; /* those before it, and in the end it, too */
  uint32_t nruns;
  uint64_t repeat;
  char otherwise[sizeof "random:" + 20]; /* what an input gets that is not given; empty: an error */
} options;

enum { KEY_RANDOM = 256, KEY_THEN };

/* A run, and what it is made of. */
typedef struct running {
  const options *o;
  graft_rt_device *device;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor **in, **out;
  uint32_t nin, nout;
} running;

/* --- time --- */

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b) {
  const double *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static graft_status run_once(running *r, double *us) {
  for (uint32_t i = 0; i < r->nout; i++) {
    graft_tensor_release(r->out[i]);
    r->out[i] = NULL;
  }
  const double begin = now_us();
  graft_status status = graft_graph_run(r->exec, r->in, r->nin, r->out, r->nout);
  if (!status) status = graft_device_synchronize(r->device);
  *us = now_us() - begin;
  return status;
}

static graft_status run_all(running *r) {
  double *us = calloc(r->o->repeat, sizeof *us);
  if (!us) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for %llu times", (unsigned long long)r->o->repeat);
  graft_status status = GRAFT_OK;
  for (uint64_t i = 0; i < r->o->repeat && !status; i++) status = run_once(r, &us[i]);
  if (!status && r->o->repeat > 1) {
    const double first = us[0];
    qsort(us, r->o->repeat, sizeof *us, by_size);
    printf("%llu runs: the first %.1f us, the median %.1f us, the fastest %.1f us\n", (unsigned long long)r->o->repeat,
           first, us[r->o->repeat / 2], us[0]);
  }
  free(us);
  return status;
}

/* --- what comes out --- */

/* Where the tensor of an output, or of an input that is written, stands once it is there; NULL: there is none such. */
static graft_tensor **named(const running *r, const char *name) {
  graft_graph_port port;
  for (uint32_t i = 0; i < r->nout; i++) {
    if (!graft_graph_output_query(r->graph, i, &port, sizeof port) && !strcmp(port.name, name)) return &r->out[i];
  }
  for (uint32_t i = 0; i < r->nin; i++) {
    if (!graft_graph_input_query(r->graph, i, &port, sizeof port) && port.is_written && !strcmp(port.name, name))
      return &r->in[i];
  }
  return NULL;
}

/* Before anything runs: a name that is none, or a file that can't be written, must not cost a run. */
static graft_status check_outputs(const running *r, const cli_pairs *outputs) {
  for (uint32_t i = 0; i < outputs->count; i++) {
    if (named(r, outputs->items[i].name)) {
      file_part part;
      graft_status status = file_open(outputs->items[i].what, &part);
      if (status) return status;
      file_discard(&part);
      continue;
    }
    return err_set(
        GRAFT_INVALID_ARGUMENT,
        "the graph has no output %s, nor an input of that name that it writes; `graft graph %s` lists what it "
        "has",
        outputs->items[i].name, r->o->graph.file);
  }
  return GRAFT_OK;
}

static graft_status print_all(const running *r, const cli_pairs *outputs) {
  graft_status status = GRAFT_OK;
  graft_graph_port port;
  for (uint32_t i = 0; i < r->nin && !status; i++) {
    status = graft_graph_input_query(r->graph, i, &port, sizeof port);
    if (!status && port.is_written) status = cli_graph_print_values("written", port.name, r->in[i]);
  }
  for (uint32_t i = 0; i < r->nout && !status; i++) {
    status = graft_graph_output_query(r->graph, i, &port, sizeof port);
    if (!status) status = cli_graph_print_values("output", port.name, r->out[i]);
  }
  for (uint32_t i = 0; i < outputs->count && !status; i++)
    status = cli_npy_write(outputs->items[i].what, *named(r, outputs->items[i].name));
  return status;
}

/* `sizes`: those that `graph` has of the open ones; empty: none is open. */
static void print_graph(const running *r, const graft_graph *graph, const char *sizes) {
  graft_graph_exec_info info = {0};
  graft_graph_exec_query(r->exec, &info, sizeof info);
  printf("%s on %s%s%s: %u nodes, %u after passes; %llu bytes of constants, %llu of values in %llu of memory\n",
         r->o->graph.file, graft_device_text(r->device), *sizes ? " at " : "", sizes, graft_graph_node_count(graph),
         info.nodes, (unsigned long long)info.constant_bytes, (unsigned long long)info.value_bytes,
         (unsigned long long)info.arena_bytes);
}

/* --- the whole --- */

/* At the sizes that its inputs bring. What it is not given is as the run before left it. */
static graft_status run_one(running *r, const one_run *o) {
  graft_graph *made;
  char sizes[160];
  graft_status status =
      cli_graph_at(r->graph, &(cli_graph_given){&o->sizes, &o->inputs, r->in}, sizes, sizeof sizes, &made);
  if (status) return status;
  const graft_graph *graph = made ? made : r->graph;
  status = cli_graph_inputs(graph, r->device, &o->inputs, r->o->otherwise[0] ? r->o->otherwise : NULL, r->in);
  const bool first = !r->exec;
  if (!status && first) status = graft_graph_compile(r->graph, r->device, NULL, &r->exec);
  if (!status && first && !made) print_graph(r, graph, sizes);
  if (!status) status = run_all(r);
  if (!status && made) print_graph(r, graph, sizes); /* what it is at them shows once it has run */
  graft_graph_destroy(made);
  return status ? status : print_all(r, &o->outputs);
}

static graft_status load_and_run(running *r) {
  graft_status status = graft_graph_load(r->device, r->o->graph.file, &r->graph);
  if (status) return status;
  r->nin = graft_graph_input_count(r->graph);
  r->nout = graft_graph_output_count(r->graph);
  r->in = calloc(r->nin + 1u, sizeof *r->in);
  r->out = calloc(r->nout + 1u, sizeof *r->out);
  if (!r->in || !r->out) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a run");
  for (uint32_t i = 0; i < r->o->nruns && !status; i++) status = check_outputs(r, &r->o->runs[i].outputs);
  for (uint32_t i = 0; i < r->o->nruns && !status; i++) status = run_one(r, &r->o->runs[i]);
  return status;
}

static int run(const options *o) {
  running r = {.o = o};
  unsetenv("GRAFT_GRAPH_DUMP"); /* the graph is in a file */
  if (!cli_open(o->graph.backend, o->graph.device, &r.device)) return cli_error("run", CLI_USAGE);
  graft_status status = load_and_run(&r);
  for (uint32_t i = 0; r.in && i < r.nin; i++) graft_tensor_release(r.in[i]);
  for (uint32_t i = 0; r.out && i < r.nout; i++) graft_tensor_release(r.out[i]);
  free(r.in);
  free(r.out);
  graft_graph_exec_destroy(r.exec);
  graft_graph_destroy(r.graph);
  return status ? cli_error("run", CLI_FAILED) : CLI_OK;
}

/* What was given so far is a run's. */
static void end_run(options *o, struct argp_state *state) {
  void *runs = o->runs;
  if (gr_grow(&runs, o->nruns, sizeof *o->runs)) argp_failure(state, CLI_FAILED, 0, "%s", graft_last_error());
  o->runs = runs;
  o->runs[o->nruns++] = (one_run){o->graph.inputs, o->graph.sizes, o->outputs};
  o->graph.inputs = o->graph.sizes = o->outputs = (cli_pairs){0};
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  switch (key) {
    case 'o': cli_take_pair(&o->outputs, argument, "--output", state); return 0;
    case 'r':
      o->repeat = cli_number(argument, "--repeat", state);
      if (!o->repeat || o->repeat > 1000000) argp_error(state, "--repeat: expected 1 to 1000000");
      return 0;
    case KEY_RANDOM:
      snprintf(o->otherwise, sizeof o->otherwise, "random:%llu",
               (unsigned long long)cli_number(argument, "--random", state));
      return 0;
    case KEY_THEN: end_run(o, state); return 0;
    case ARGP_KEY_SUCCESS: end_run(o, state); return 0;
    default: return cli_take_graph_option(key, argument, state, &o->graph);
  }
}

int cli_run(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"backend", 'b', "NAME|PATH", 0, "where it runs (default: reference)", 0},
      {"device", 'd', "N", 0, "its device (default: 0)", 0},
      {"input", 'i', "NAME=X.npy", 0, "the values of an input; NAME=random:SEED draws some", 0},
      {"random", KEY_RANDOM, "SEED", 0, "draw each input that is not given, as NAME=random:SEED does", 0},
      {"output", 'o', "NAME=Y.npy", 0, "write an output, or an input that the graph writes, to a file", 0},
      {"size", CLI_KEY_SIZE, "NAME=N", 0, "an open size that no .npy file of an input brings", 0},
      {"then", KEY_THEN, NULL, 0,
       "what follows is another run's; inputs that it is not given are as the run before left them", 0},
      {"repeat", 'r', "N", 0, "run it N times, on what the run before left, and say how long it took", 0},
      {0}};
  static const struct argp argp = {
      .options = rows,
      .parser = parse,
      .args_doc = "FILE",
      .doc =
          "Runs a saved graph. Each input comes from a .npy file of its dtype and shape, or is drawn (floats between "
          "-1 "
          "and 1, integers and bools 0 or 1), or has a value in the file. For each output, and each input that is "
          "written, it prints shape, least, "
          "largest and mean value. Open sizes are those of the files. bf16 and 8-bit floats are raw bytes in .npy "
          "files (V2, V1).\v"
          "Exit status: 0 it ran; 1 file, inputs or run are wrong; 2 usage, or no such plugin."};
  options o = {.graph.backend = "reference", .repeat = 1};
  const int status = argp_parse(&argp, argc, argv, 0, NULL, &o) ? CLI_USAGE : run(&o);
  for (uint32_t i = 0; i < o.nruns; i++) {
    cli_pairs_free(&o.runs[i].inputs);
    cli_pairs_free(&o.runs[i].sizes);
    cli_pairs_free(&o.runs[i].outputs);
  }
  free(o.runs);
  return status;
}
