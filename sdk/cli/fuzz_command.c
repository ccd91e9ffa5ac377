/* graft fuzz --graphs N: random programs of calls, each run call by call and as a graph, which must agree to the bit.
 * What does not is made small before it is printed. */
#include <argp.h>
#include <stdlib.h>

#include "cli.h"
#include "fuzz.h"

typedef struct options {
  const char *backend;
  int device;
  uint64_t graphs, seed;
} options;

static void leave_out(const fuzz_program *program, uint32_t step, fuzz_program *less) {
  *less = *program;
  less->nsteps--;
  for (uint32_t i = step; i < less->nsteps; i++) less->steps[i] = less->steps[i + 1];
}

/* Leaves out steps and outputs for as long as it still fails. What is picked moves with it; that it fails counts. */
static void shrink(fuzz_program *program, graft_rt_device *device, fuzz_report *report) {
  for (uint32_t i = program->nsteps; i-- > 0;) {
    fuzz_program less;
    leave_out(program, i, &less);
    if (!fuzz_agrees(&less, device, NULL, report)) *program = less;
  }
  for (uint32_t i = 0; i < FUZZ_VALUES; i++) {
    fuzz_program less = *program;
    less.outputs &= ~(UINT64_C(1) << i);
    if (less.outputs != program->outputs && !fuzz_agrees(&less, device, NULL, report)) *program = less;
  }
  fuzz_agrees(program, device, NULL, report); /* its own text */
}

static void print(const fuzz_program *program, graft_rt_device *device, const char *why) {
  fuzz_world world = {.device = device, .rows = program->sizes[0][0], .columns = program->sizes[0][1]};
  const int64_t sizes[] = {program->open ? 1 : 3, program->open ? 1 : 3};
  fprintf(stderr, "graft fuzz: a graph differs from its calls (--graphs 1 --seed %llu): %s\n",
          (unsigned long long)program->seed, why);
  if (program->open)
    fprintf(stderr, "  (its sizes are open; here it is as recorded, with %lld rows and %lld columns)\n",
            (long long)world.rows, (long long)world.columns);
  if (!fuzz_fill(program, &world) && !graft_tensor_empty(device, GRAFT_F32, 2, sizes, &world.values[world.count])) {
    world.constant[world.count++] = true;
    fuzz_run(program, &world, stderr);
  }
  fuzz_empty(&world);
}

static int run(const options *o) {
  graft_rt_device *device;
  uint64_t bad = 0;
  uint64_t groups = 0, grouped_nodes = 0;
  fuzz_report report = {0};
  unsetenv("GRAFT_GRAPH_PASSES"); /* each program says which of them run */
  if (!cli_open(o->backend, o->device, &device)) return cli_error("fuzz", CLI_USAGE);
  for (uint64_t i = 0; i < o->graphs; i++) {
    fuzz_program program;
    fuzz_make(o->seed + i, &program);
    bool agrees = fuzz_agrees(&program, device, NULL, &report);
    groups += report.groups;
    grouped_nodes += report.grouped_nodes;
    if (agrees) continue;
    bad++;
    shrink(&program, device, &report);
    print(&program, device, report.why);
  }
  printf("%llu graphs on %s, %llu differ from their calls\n", (unsigned long long)o->graphs, graft_device_text(device),
         (unsigned long long)bad);
  if (groups) {
    printf("%llu calls ran in %llu groups that the plugin compiled\n", (unsigned long long)grouped_nodes,
           (unsigned long long)groups);
  }
  return bad ? CLI_FAILED : CLI_OK;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  switch (key) {
    case 'b': o->backend = argument; return 0;
    case 'd': o->device = cli_device_number(argument, state); return 0;
    case 'g': o->graphs = cli_number(argument, "--graphs", state); return 0;
    case 's': o->seed = cli_number(argument, "--seed", state); return 0;
    case ARGP_KEY_ARG: argp_usage(state); return 0;
    case ARGP_KEY_END:
      if (!o->graphs) argp_error(state, "--graphs: how many are to be tried? (at least 1)");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

int cli_fuzz(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"backend", 'b', "NAME|PATH", 0, "where they run (default: reference)", 0},
      {"device", 'd', "N", 0, "its device (default: 0)", 0},
      {"graphs", 'g', "N", 0, "how many programs are made", 0},
      {"seed", 's', "N", 0, "of the first one; the next ones have the next numbers (default: 1)", 0},
      {0}};
  static const struct argp argp = {
      .options = rows,
      .parser = parse,
      .doc =
          "Random programs, views and in-place calls among them, run call by call and as graphs, also as graphs "
          "that were saved and loaded, and of some one graph at several sizes: results, inputs, "
          "what shares memory and random state must agree to the bit. What does not is made small and printed.\v"
          "Exit status: 0 all agree; 1 some do not; 2 usage, or no such plugin."};
  options o = {.backend = "reference", .seed = 1};
  if (argp_parse(&argp, argc, argv, 0, NULL, &o)) return CLI_USAGE;
  return run(&o);
}
