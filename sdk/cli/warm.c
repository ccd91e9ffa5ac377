/* graft warm: makes each of a list of calls once, so that a backend that compiles for them keeps what later processes
 * take. The list is what models make while they are trained (warm_calls.txt, by
 * tests/benchmarks/torch/record_calls.py); processes share it, since some drivers compile one program at a time in
 * each. */
#include <argp.h>
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "conformance/text/text.h"
#include "graft_opencl.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

enum { MAX_JOBS = 64, MAX_RESULTS = 16 };

static const char *const calls[] = {
#include "warm_calls.inc"
};
static const uint32_t call_count = sizeof calls / sizeof *calls;

typedef struct options {
  const char *backend, *op;
  int device;
  uint32_t jobs;
  bool quiet;
  atomic_uint *made; /* calls, by all processes; NULL: not counted */
} options;

enum { SECONDS_A_LINE = 5 };

/* What one process did, or all together. */
typedef struct outcome {
  bool opened, counts; /* counts: the plugin says how many programs it compiled and loaded */
  uint32_t selected, done, not_served, failed;
  uint64_t compiled, loaded;
} outcome;

/* ---- A process ---- */

/* Zeros: an index that is in range wherever it points. All elements of the storage, since those of a tensor may share
 * memory. */
static graft_status fill(void *context, uint32_t index, graft_tensor *tensor) {
  const graft_storage *storage = tensor->storage;
  graft_dtype dtype = tensor->dtype;
  const int64_t elements = (int64_t)(storage->bytes / dt_bytes(dtype)), stride = 1;
  graft_tensor *all = NULL, *zeros = NULL;
  void *values = calloc((size_t)elements + 1, dt_bytes(dtype));
  (void)context, (void)index;
  if (!values) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for %lld values", (long long)elements);
  graft_status status = tns_view(tensor, 1, &elements, &stride, 0, &all);
  if (status == GRAFT_OK) status = graft_tensor_from_host(tensor->device, dtype, 1, &elements, values, &zeros);
  if (status == GRAFT_OK) status = graft_tensor_copy(all, zeros);
  graft_tensor_release(zeros);
  graft_tensor_release(all);
  free(values);
  return status;
}

/* How many results a call has: of a list of tensors one for each, of other outputs one. */
static uint32_t results_of(const txt_call *call) {
  graft_meta metas[MAX_RESULTS];
  uint32_t count = 0;
  graft_status status =
      graft_infer(call->schema->id, call->args, call->nargs, metas, sizeof *metas, MAX_RESULTS, &count);
  return status == GRAFT_OK && count <= MAX_RESULTS ? count : call->schema->nrets;
}

static graft_status make_call(const char *text, graft_rt_device *device) {
  txt_call call;
  graft_tensor *outs[MAX_RESULTS] = {0};
  graft_status status = txt_parse_call(text, NULL, &call);
  if (status != GRAFT_OK) return status;
  uint32_t count = 0;
  status = txt_make(&call, device, fill, NULL);
  if (status == GRAFT_OK) count = results_of(&call);
  if (status == GRAFT_OK) status = graft_call(call.schema->id, call.args, call.nargs, outs, count);
  for (uint32_t i = 0; i < count; i++) graft_tensor_release(outs[i]);
  txt_free(&call);
  return status;
}

static void count_programs(outcome *sum, graft_rt_device *device) {
  graft_opencl_statistics counts = {.struct_size = sizeof counts};
  const void *table;
  void *plugin;
  if (graft_device_extension(device, GRAFT_OPENCL_STATISTICS, 1, &table, &plugin) != GRAFT_OK) return;
  sum->counts = ((const graft_opencl_statistics_api *)table)->query(plugin, &counts) == GRAFT_OK;
  sum->compiled = counts.programs_built;
  sum->loaded = counts.programs_loaded;
}

/* A backend may leave it to its driver to keep programs, where that is quicker for those who just work. */
static void keep_all(graft_rt_device *device) {
  const void *table;
  void *plugin;
  if (graft_device_extension(device, GRAFT_OPENCL_PROGRAMS, 1, &table, &plugin) == GRAFT_OK)
    ((const graft_opencl_programs_api *)table)->keep_all(plugin);
}

/* Says how far all processes are, now and then. */
static void tell(const options *o, time_t *said) {
  const time_t now = time(NULL);
  if (!o->made || o->quiet || now - *said < SECONDS_A_LINE) return;
  *said = now;
  fprintf(stderr, "graft warm: %u of %u calls\n", atomic_load(o->made), call_count);
}

static outcome run_share(const options *o, uint32_t share) {
  outcome sum = {0};
  graft_rt_device *device;
  if (!cli_open(o->backend, o->device, &device)) {
    if (share == 0) cli_error("warm", CLI_USAGE);
    return sum;
  }
  sum.opened = true;
  keep_all(device);
  time_t said = time(NULL);
  for (uint32_t i = share; i < call_count; i += o->jobs) {
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(calls[i], " "), calls[i]);
    if (o->made) atomic_fetch_add(o->made, 1);
    if (share == 0) tell(o, &said);
    if (o->op && fnmatch(o->op, name, 0) != 0) continue;
    sum.selected++;
    graft_status status = make_call(calls[i], device);
    if (status == GRAFT_OK) status = graft_device_synchronize(device);
    sum.done += status == GRAFT_OK;
    sum.not_served += status == GRAFT_UNIMPLEMENTED;
    if (status == GRAFT_OK || status == GRAFT_UNIMPLEMENTED) continue;
    sum.failed++;
    fprintf(stderr, "graft warm: %s: %s\n", calls[i], graft_last_error());
  }
  count_programs(&sum, device);
  return sum;
}

/* ---- All of them ---- */

/* The process that runs a share; the pipe's end that its outcome comes from is put into *from. */
static pid_t start(const options *o, uint32_t share, int *from) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a plugin that never comes back would keep it once the parent is gone */
    outcome sum = run_share(o, share);
    bool written = write(ends[1], &sum, sizeof sum) == (ssize_t)sizeof sum;
    _exit(written ? CLI_OK : CLI_FAILED);
  }
  close(ends[1]);
  *from = ends[0];
  if (pid < 0) close(ends[0]);
  return pid;
}

static void add(outcome *sum, const outcome *part) {
  sum->opened = sum->opened || part->opened;
  sum->counts = sum->counts || part->counts;
  sum->selected += part->selected;
  sum->done += part->done;
  sum->not_served += part->not_served;
  sum->failed += part->failed;
  sum->compiled += part->compiled;
  sum->loaded += part->loaded;
}

/* False: a process ended without an answer. */
static bool run_all(const options *o, outcome *sum) {
  pid_t pids[MAX_JOBS];
  int from[MAX_JOBS];
  bool complete = true;
  fflush(stdout);
  for (uint32_t i = 0; i < o->jobs; i++) pids[i] = start(o, i, &from[i]);
  for (uint32_t i = 0; i < o->jobs; i++) {
    outcome part = {0};
    if (pids[i] < 0 || read(from[i], &part, sizeof part) != (ssize_t)sizeof part) complete = false;
    if (pids[i] < 0) continue;
    add(sum, &part);
    close(from[i]);
    waitpid(pids[i], NULL, 0);
  }
  return complete;
}

static void print_outcome(const outcome *sum) {
  printf("%u calls of %u made", sum->done, sum->selected);
  if (sum->not_served) printf(", %u not served by this backend", sum->not_served);
  if (sum->counts)
    printf("; %llu programs compiled, %llu were there already", (unsigned long long)sum->compiled,
           (unsigned long long)sum->loaded);
  puts("");
  if (!sum->counts && sum->selected)
    puts("this backend counts no programs: what it compiled and kept, if anything, is not known");
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  char *end;
  switch (key) {
    case 'b': o->backend = argument; return 0;
    case 'o': o->op = cli_only_pattern(o->op, argument, state); return 0;
    case 'q': o->quiet = true; return 0;
    case 'd': o->device = cli_device_number(argument, state); return 0;
    case 'j':
      o->jobs = (uint32_t)strtoul(argument, &end, 10);
      if (*end || end == argument || o->jobs < 1 || o->jobs > MAX_JOBS)
        argp_error(state, "--jobs: '%s' is no number from 1 to %d", argument, MAX_JOBS);
      return 0;
    case ARGP_KEY_ARG: argp_usage(state); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static uint32_t processors(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : n > MAX_JOBS ? MAX_JOBS : (uint32_t)n;
}

int cli_warm(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"backend", 'b', "NAME|PATH", 0, "a backend's name or the path of its library (default: opencl)", 0},
      {"device", 'd', "N", 0, "its device, counted from 0", 0},
      {"op", 'o', "GLOB", 0, "only these ops: 'aten::mm', 'aten::sum.*'", 0},
      {"jobs", 'j', "N", 0, "processes (default: one a processor)", 0},
      {"quiet", 'q', 0, 0, "does not say every few seconds how far it is", 0},
      {0}};
  static const struct argp argp = {
      rows,
      parse,
      NULL,
      "Makes the calls that models of many kinds make while they are trained, each once. A backend that compiles "
      "kernels for them keeps these (GRAFT_CACHE_DIR), so that later processes need not wait; a second run is short. "
      "Exit status: 0 all done, 1 a call failed, 2 usage, no such backend or nothing is kept, 3 no call was made.",
      NULL,
      NULL,
      NULL};
  options o = {.backend = "opencl", .jobs = processors()};
  outcome sum = {0};
  if (argp_parse(&argp, argc, argv, 0, NULL, &o)) return CLI_USAGE;
  const char *folder = getenv("GRAFT_CACHE_DIR");
  if (folder && strcmp(folder, "none") == 0) {
    fprintf(stderr, "graft warm: GRAFT_CACHE_DIR=none: what is compiled would not be kept\n");
    return CLI_USAGE;
  }
  setenv("GRAFT_FALLBACK", "error", 1); /* what leaves the device compiles nothing */
  void *shared = mmap(NULL, sizeof *o.made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  o.made = shared == MAP_FAILED ? NULL : shared;
  bool complete = run_all(&o, &sum);
  if (!sum.opened) return CLI_USAGE; /* the first process has said why */
  print_outcome(&sum);
  if (!complete) fprintf(stderr, "graft warm: a process ended before its last call\n");
  if (sum.compiled && folder && *folder && access(folder, W_OK | X_OK) != 0) {
    fprintf(stderr, "graft warm: nothing is kept in GRAFT_CACHE_DIR=%s: %s\n", folder, strerror(errno));
    return CLI_USAGE;
  }
  if (!complete || sum.failed) return CLI_FAILED;
  return sum.done ? CLI_OK : CLI_NOTHING;
}
