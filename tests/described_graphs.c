/* A program of test_opencl_group_launches: what the OpenCL backend puts together of random graphs, those that graft
 * fuzz makes of a seed. They are many, and meet what nobody thought of. */
#include "cli/fuzz.h"
#include "opencl_groups.h"

enum { TENS = 20, FROM_SEED = 1 };

/* Inputs, and a constant behind them. */
static void fill_world(const fuzz_program *program, fuzz_world *world, graft_tensor *constant) {
  world->device = device;
  world->rows = program->sizes[0][0];
  world->columns = program->sizes[0][1];
  OK(fuzz_fill(program, world));
  world->constant[world->count] = true;
  world->values[world->count++] = retained(constant);
}

static uint32_t name_outputs(const fuzz_program *program, const fuzz_world *world, graft_graph *graph) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < world->count; i++) {
    char name[16];
    if (world->constant[i] || !(program->outputs >> i & 1)) continue;
    snprintf(name, sizeof name, "v%u", i);
    OK(graft_graph_output(graph, name, world->values[i]));
    count++;
  }
  return count;
}

/* Compiled with all passes; and how many results it has. */
static graft_graph_exec *recorded(const fuzz_program *program, const fuzz_world *like, uint32_t *results) {
  fuzz_world world = {.device = device};
  graft_graph *graph;
  graft_graph_exec *exec;
  OK(graft_graph_create(device, &graph));
  for (uint32_t i = 0; i < FUZZ_INPUTS; i++) {
    const char name[] = {(char)('a' + i), 0};
    OK(graft_graph_input_like(graph, name, like->values[i], &world.values[world.count++]));
  }
  world.constant[world.count] = true;
  world.values[world.count++] = retained(like->values[FUZZ_INPUTS]);
  OK(graft_graph_record_begin(graph));
  fuzz_run(program, &world, NULL);
  OK(graft_graph_record_end(graph));
  *results = name_outputs(program, &world, graph);
  fuzz_empty(&world);
  OK(graft_graph_compile(graph, device, NULL, &exec));
  graft_graph_destroy(graph);
  return exec;
}

/* Of a call that the backend does not serve, that it does not. */
static void tell_graph(const fuzz_program *program, graft_tensor *constant, FILE *to) {
  fuzz_world inputs = {0};
  char name[32];
  uint32_t results;
  fill_world(program, &inputs, constant);
  graft_graph_exec *exec = recorded(program, &inputs, &results);
  snprintf(name, sizeof name, "seed %d", (int)program->seed);
  tell_groups(to, name, exec);
  for (int run = 0; run < 2; run++) {
    graft_tensor *out[FUZZ_VALUES] = {NULL};
    told = run ? to : NULL;
    if (graft_graph_run(exec, inputs.values, FUZZ_INPUTS, out, results)) tell("%s\n", graft_last_error());
    told = NULL;
    release_all(out, results);
  }
  graft_graph_exec_destroy(exec);
  fuzz_empty(&inputs);
}

/* Ten of them, without those of open sizes. */
START_TEST(random_graphs) {
  if (!device) return;
  char test[32];
  graft_tensor *constant;
  snprintf(test, sizeof test, "seeds_%d", FROM_SEED + 10 * _i);
  FILE *to = begin_telling(test);
  OK(graft_tensor_empty(device, GRAFT_F32, 2, (const int64_t[]){3, 3}, &constant));
  for (uint64_t seed = 0; seed < 10; seed++) {
    fuzz_program program;
    fuzz_make(FROM_SEED + 10 * (uint64_t)_i + seed, &program);
    if (!program.open) tell_graph(&program, constant, to);
  }
  graft_tensor_release(constant);
  fclose(to);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(random_graphs, TENS), {0}};
  return run_suite("opencl_graphs", tests, on_one_device(open_for_cpus)) ||
         run_suite("opencl_graphs_of_gpus", tests, on_one_device(open_for_gpus));
}
