/* A program's calls against its graph. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "fuzz.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

static const char *const passes[] = {NULL,    NULL,      NULL,    "none",  "-dead",    "-cse",
                                     "-fold", "-direct", "-late", "-fuse", "-inplace", "-memory"};
enum { NPASSES = sizeof passes / sizeof *passes, RUNS = 2 };

typedef struct comparison {
  const fuzz_program *program;
  graft_rt_device *device;
  const fuzz_fault *fault; /* NULL: none */
  graft_tensor *constant;
  graft_graph *graph;
  graft_graph_exec *exec;
  char *path;                              /* of a file that the graph goes through */
  uint32_t outputs[FUZZ_VALUES], noutputs; /* which values come out */
  graft_status recorded[FUZZ_STEPS];
  int at; /* which of the program's sizes calls have */
  fuzz_report *report;
} comparison;

__attribute__((format(printf, 2, 3))) static bool differ(comparison *c, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(c->report->why, sizeof c->report->why, format, args);
  va_end(args);
  return false;
}

static bool failed(comparison *c, const char *what) {
  return differ(c, "%s: %s", what, graft_last_error());
}

static void add_constant(const comparison *c, fuzz_world *world) {
  graft_tensor_retain(c->constant);
  world->constant[world->count] = true;
  world->values[world->count++] = c->constant;
}

static bool begin_world(comparison *c, fuzz_world *world) {
  world->device = c->device;
  world->rows = c->program->sizes[c->at][0];
  world->columns = c->program->sizes[c->at][1];
  if (fuzz_fill(c->program, world)) return failed(c, "inputs");
  add_constant(c, world);
  return true;
}

/* --- the graph --- */

/* With open sizes, those of the first pair for examples; where these are the same, they are one. */
static bool name_sizes(comparison *c, fuzz_world *world) {
  const int64_t *rows = c->program->sizes[0];
  bool square = true;
  for (int i = 0; i < FUZZ_SIZES; i++) square &= c->program->sizes[i][0] == c->program->sizes[i][1];
  world->graph = c->graph;
  if (graft_graph_size(c->graph, "n", rows[0], 0, INT64_MAX, &world->rows)) return failed(c, "a size");
  world->columns = world->rows;
  if (!square && graft_graph_size(c->graph, "m", rows[1], 0, INT64_MAX, &world->columns)) return failed(c, "a size");
  if (fuzz_name_inputs(c->program, world)) return failed(c, "an input");
  add_constant(c, world);
  return true;
}

static bool name_inputs(comparison *c, const fuzz_world *like, fuzz_world *world) {
  for (uint32_t i = 0; i < FUZZ_INPUTS; i++) {
    const char name[] = {(char)('a' + i), 0};
    if (graft_graph_input_like(c->graph, name, like->values[i], &world->values[i])) return failed(c, "an input");
    if (graft_graph_input_donate(c->graph, i)) return failed(c, "an input");
    world->count++;
  }
  add_constant(c, world);
  return true;
}

static bool name_outputs(comparison *c, const fuzz_world *world) {
  for (uint32_t i = 0; i < world->count; i++) {
    char name[16];
    if (world->constant[i] || !(c->program->outputs >> i & 1)) continue;
    snprintf(name, sizeof name, "v%u", i);
    if (graft_graph_output(c->graph, name, world->values[i])) return failed(c, "an output");
    c->outputs[c->noutputs++] = i;
  }
  return true;
}

static void plant(const comparison *c) {
  if (!c->fault) return;
  void (*const fault)(graft_graph * graph) = c->program->open ? c->fault->in_open : c->fault->in_graph;
  if (fault) fault(c->graph);
}

static bool record(comparison *c, const fuzz_world *like) {
  fuzz_world world = {.device = c->device, .only = c->program->open ? like->statuses : NULL};
  if (graft_graph_create(c->device, &c->graph)) return failed(c, "a graph");
  bool good = c->program->open ? name_sizes(c, &world) : name_inputs(c, like, &world);
  if (good && graft_graph_record_begin(c->graph)) good = failed(c, "recording");
  if (good) {
    fuzz_run(c->program, &world, NULL);
    if (graft_graph_record_end(c->graph)) good = failed(c, "recording");
  }
  memcpy(c->recorded, world.statuses, sizeof c->recorded);
  if (good) good = name_outputs(c, &world);
  fuzz_empty(&world);
  if (good) plant(c);
  if (good && graft_graph_compile(c->graph, c->device, passes[c->program->passes % NPASSES], &c->exec))
    good = failed(c, "compiling");
  graft_graph_exec_info info = {0};
  if (good && graft_graph_exec_query(c->exec, &info, sizeof info)) good = failed(c, "what was compiled");
  c->report->groups = info.groups;
  c->report->grouped_nodes = info.grouped_nodes;
  if (good && c->fault && c->fault->in_exec) c->fault->in_exec(c->exec);
  return good;
}

/* --- what is the same --- */

static bool same_bits(comparison *c, const char *what, uint32_t number, graft_tensor *is, graft_tensor *expected) {
  if (is->dtype != expected->dtype || !tns_same_sizes(is, expected) || is->flags != expected->flags ||
      memcmp(is->strides, expected->strides, (size_t)is->ndim * sizeof *is->strides) != 0) {
    return differ(c, "%s v%u is %s, expected %s", what, number, TNS_SHAPE(is), TNS_SHAPE(expected));
  }
  const size_t bytes = (size_t)is->numel * dt_bytes(is->dtype);
  unsigned char *a = malloc(bytes + 1), *b = malloc(bytes + 1);
  bool good = a && b && !graft_tensor_to_host(is, a) && !graft_tensor_to_host(expected, b);
  if (!good) failed(c, what);
  for (size_t i = 0; good && i < bytes; i++) {
    if (a[i] != b[i]) good = differ(c, "%s v%u differs in element %zu", what, number, i / dt_bytes(is->dtype));
  }
  free(a);
  free(b);
  return good;
}

static bool same_sharing(comparison *c, graft_tensor *const *outs, const fuzz_world *calls, const fuzz_world *inputs) {
  for (uint32_t i = 0; i < c->noutputs; i++) {
    const graft_tensor *expected = calls->values[c->outputs[i]];
    for (uint32_t j = 0; j < i; j++) {
      bool shared = expected->storage == calls->values[c->outputs[j]]->storage;
      if ((outs[i]->storage == outs[j]->storage) != shared)
        return differ(c, "v%u and v%u: one memory, or not", c->outputs[i], c->outputs[j]);
    }
    for (uint32_t j = 0; j < FUZZ_INPUTS; j++) {
      bool shared = expected->storage == calls->values[j]->storage;
      if (!inputs->values[j]) continue;
      if ((outs[i]->storage == inputs->values[j]->storage) != shared)
        return differ(c, "v%u and input v%u: one memory, or not", c->outputs[i], j);
    }
  }
  return true;
}

static bool same_statuses(comparison *c, const fuzz_world *calls) {
  for (uint32_t i = 0; i < c->program->nsteps; i++) {
    if ((calls->statuses[i] == GRAFT_OK) != (c->recorded[i] == GRAFT_OK))
      return differ(c, "step %u: %s as a call, %s when it is recorded", i, graft_status_name(calls->statuses[i]),
                    graft_status_name(c->recorded[i]));
  }
  return true;
}

static bool same_results(comparison *c, graft_tensor *const *outs, const fuzz_world *calls, const fuzz_world *inputs) {
  bool good = true;
  for (uint32_t i = 0; i < c->noutputs && good; i++)
    good = same_bits(c, "output", c->outputs[i], outs[i], calls->values[c->outputs[i]]);
  for (uint32_t i = 0; i < FUZZ_INPUTS && good; i++)
    good = !inputs->values[i] || same_bits(c, "input", i, inputs->values[i], calls->values[i]);
  return good && same_sharing(c, outs, calls, inputs);
}

static uint64_t drawn(const comparison *c) {
  uint64_t seed, offset;
  graft_generator_state(graft_generator_default(c->device), &seed, &offset);
  return offset;
}

/* One run; with inputs that it may have to itself, or that are looked at behind it. */
static bool compare_run(comparison *c, const fuzz_world *calls, uint64_t offset, bool hands_over) {
  fuzz_world inputs = {.device = c->device};
  graft_tensor *outs[FUZZ_VALUES] = {NULL};
  bool good = begin_world(c, &inputs);
  graft_generator_set_state(graft_generator_default(c->device), c->program->seed, 0);
  const uint8_t kept[FUZZ_INPUTS] = {0};
  if (good &&
      graft_graph_run_letting_go(c->exec, inputs.values, FUZZ_INPUTS, hands_over ? NULL : kept, outs, c->noutputs))
    good = failed(c, "the run");
  if (good && drawn(c) != offset) good = differ(c, "the generator is elsewhere");
  if (good) good = same_results(c, outs, calls, &inputs);
  for (uint32_t i = 0; i < c->noutputs; i++) graft_tensor_release(outs[i]);
  fuzz_empty(&inputs);
  return good;
}

/* --- the file --- */

static bool same_files(comparison *c, const char *other) {
  FILE *a = fopen(c->path, "rb"), *b = fopen(other, "rb");
  bool good = a && b;
  for (int x = 0, y; good && x != EOF; good = x == y) x = getc(a), y = getc(b);
  if (a) fclose(a);
  if (b) fclose(b);
  return good || differ(c, "what was loaded from a file is saved otherwise");
}

/* What was loaded, saved again. */
static bool save_again(comparison *c, const graft_graph *loaded) {
  char *path = str_new("%s.again", c->path);
  bool good = path && !graft_graph_save(loaded, path);
  if (!good) failed(c, "saving what was loaded");
  if (good) good = same_files(c, path);
  if (path) remove(path);
  free(path);
  return good;
}

static bool compare_loaded(comparison *c, const fuzz_world *calls, uint64_t offset) {
  graft_graph *loaded;
  if (graft_graph_save(c->graph, c->path)) return failed(c, "saving");
  if (graft_graph_load(c->device, c->path, &loaded)) return failed(c, "loading");
  bool good = save_again(c, loaded);
  if (good && c->fault && c->fault->in_loaded) c->fault->in_loaded(loaded);
  graft_graph_exec_destroy(c->exec);
  c->exec = NULL;
  if (good && graft_graph_compile(loaded, c->device, passes[c->program->passes % NPASSES], &c->exec))
    good = failed(c, "compiling what was loaded");
  if (good && !compare_run(c, calls, offset, false)) {
    char why[sizeof c->report->why];
    snprintf(why, sizeof why, "%s", c->report->why);
    good = differ(c, "loaded from a file: %s", why);
  }
  graft_graph_destroy(loaded);
  return good;
}

/* In memory, where that is: a file that is saved waits for its disk. */
static char *new_path(void) {
  const char *folder = getenv("TMPDIR");
  if (!folder || !*folder) folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  return str_new("%s/graft-fuzz-%ld.safetensors", folder, (long)getpid());
}

static bool compare_file(comparison *c, const fuzz_world *calls, uint64_t offset) {
  if (c->fault && !c->fault->in_loaded) return true; /* it is to be found without */
  c->path = new_path();
  bool good = c->path ? compare_loaded(c, calls, offset) : differ(c, "no host memory for the name of a file");
  if (c->path) remove(c->path);
  free(c->path);
  return good;
}

static bool compare(comparison *c, fuzz_world *calls) {
  if (!begin_world(c, calls) || !record(c, calls)) return false;
  graft_generator_set_state(graft_generator_default(c->device), c->program->seed, 0);
  fuzz_run(c->program, calls, NULL);
  const uint64_t offset = drawn(c);
  bool good = same_statuses(c, calls);
  for (int i = 0; i < RUNS && good; i++) good = compare_run(c, calls, offset, i > 0);
  return good && compare_file(c, calls, offset);
}

/* --- open sizes --- */

/* The calls at one pair of sizes: those that could be made at the first one. */
static bool run_calls(comparison *c, const graft_status *only, fuzz_world *calls, uint64_t *offset) {
  calls->only = only;
  if (!begin_world(c, calls)) return false;
  graft_generator_set_state(graft_generator_default(c->device), c->program->seed, 0);
  fuzz_run(c->program, calls, NULL);
  *offset = drawn(c);
  return true;
}

/* Where a call can't be made at other sizes, no run can; what it says is not looked at. */
static bool refuses(comparison *c) {
  fuzz_world inputs = {.device = c->device};
  graft_tensor *outs[FUZZ_VALUES] = {NULL};
  if (!begin_world(c, &inputs)) return false;
  const bool refused = graft_graph_run(c->exec, inputs.values, FUZZ_INPUTS, outs, c->noutputs) != GRAFT_OK;
  for (uint32_t i = 0; i < c->noutputs; i++) graft_tensor_release(outs[i]);
  fuzz_empty(&inputs);
  return refused || differ(c, "the graph runs at sizes where a call can't be made");
}

static bool compare_sizes(comparison *c, const graft_status *only) {
  fuzz_world calls = {0};
  uint64_t offset;
  bool fails = false;
  bool good = run_calls(c, only, &calls, &offset);
  for (uint32_t i = 0; good && i < c->program->nsteps; i++) fails |= calls.statuses[i] && !only[i];
  if (good && fails) good = refuses(c);
  for (int i = 0; i < RUNS && good && !fails; i++) good = compare_run(c, &calls, offset, i > 0);
  fuzz_empty(&calls);
  return good;
}

/* At one pair of sizes it is recorded, and one program for all of them is run at each; in the end as it comes from a
 * file. */
static bool compare_open(comparison *c, fuzz_world *calls) {
  uint64_t offset;
  if (!run_calls(c, NULL, calls, &offset) || !record(c, calls)) return false;
  bool good = same_statuses(c, calls);
  for (c->at = 0; c->at < FUZZ_SIZES && good; c->at++) good = compare_sizes(c, calls->statuses);
  if (!good) {
    char why[sizeof c->report->why];
    snprintf(why, sizeof why, "%s", c->report->why);
    c->at -= c->at > 0;
    return differ(c, "at sizes %lld and %lld: %s", (long long)c->program->sizes[c->at][0],
                  (long long)c->program->sizes[c->at][1], why);
  }
  c->at = 0;
  return compare_file(c, calls, offset);
}

bool fuzz_agrees(const fuzz_program *program, graft_rt_device *device, const fuzz_fault *fault, fuzz_report *report) {
  comparison c = {.program = program, .device = device, .fault = fault, .report = report};
  fuzz_world calls = {0};
  const int64_t sizes[] = {3, 3}, one[] = {1, 1};
  const float values[] = {1, -2, 3, 0.5f, 0, -1, 2, 4, -0.25f};
  if (fault && program->open != (fault->in_open != NULL)) return true; /* it is not for this one */
  if (graft_tensor_from_host(device, GRAFT_F32, 2, program->open ? one : sizes, values, &c.constant))
    return failed(&c, "a constant");
  bool good = program->open ? compare_open(&c, &calls) : compare(&c, &calls);
  fuzz_empty(&calls);
  graft_graph_exec_destroy(c.exec);
  graft_graph_destroy(c.graph);
  graft_tensor_release(c.constant);
  return good;
}
