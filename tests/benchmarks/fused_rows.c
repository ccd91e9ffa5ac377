/* Softmax, norms and a block's end (gelu, dropout, residual), written out in primitive ops, over rows of f32: call by
 * call, as a graph without and with the pass that groups calls, and as a graph of the op that the backend has a kernel
 * of its own for (of the last: gelu by its op). The ways take turns, and the least time of many counts, since other
 * programs may run beside this one; CPU time is that of all threads.
 *
 *   fused_rows [BACKEND [ROWS COLUMNS]] */
#include <stdbool.h>

#include "measure.h"

enum { ROUNDS = 31, INPUTS = 4, SCRAP = 32 };

static graft_tensor *scrap[SCRAP];
static int nscrap;

static graft_tensor *kept(graft_tensor *t) {
  return scrap[nscrap++] = t;
}

/* A call whose result is released when the program is over. */
#define CALL(op, ...) (made = NULL, must(graft_op_##op(__VA_ARGS__, &made)), kept(made))
static graft_tensor *made;
static const int64_t last = -1;
static int64_t columns = 1024;
#define ALONG(op, x)  CALL(op, x, &last, 1, true, 0)
#define NUMBER(value) graft_scalar_float(value)
#define ADD(a, b)     CALL(add_Tensor, a, b, graft_scalar_none())
#define SUB(a, b)     CALL(sub_Tensor, a, b, graft_scalar_none())
#define MUL(a, b)     CALL(mul_Tensor, a, b)
#define PLUS(a, x)    CALL(add_Scalar, a, NUMBER(x), graft_scalar_none())
#define TIMES(a, x)   CALL(mul_Scalar, a, NUMBER(x))

/* in: x, another matrix, and two rows. */
typedef graft_tensor *(*program_fn)(graft_tensor **in);

static graft_tensor *softmax(graft_tensor **in) {
  graft_tensor *e = CALL(exp, SUB(in[0], CALL(amax, in[0], &last, 1, true)));
  return CALL(div_Tensor, e, ALONG(sum_dim_IntList, e));
}
static graft_tensor *own_softmax(graft_tensor **in) {
  return CALL(softmax, in[0], -1, false);
}

static graft_tensor *layer_norm(graft_tensor **in) {
  graft_tensor *centred = SUB(in[0], ALONG(mean_dim, in[0]));
  graft_tensor *root = CALL(rsqrt, PLUS(ALONG(mean_dim, MUL(centred, centred)), 1e-5));
  return ADD(MUL(MUL(centred, root), in[2]), in[3]);
}
static graft_tensor *own_layer_norm(graft_tensor **in) {
  graft_tensor *out = NULL, *mean = NULL, *root = NULL;
  must(graft_op_native_layer_norm(in[0], &columns, 1, in[2], in[3], 1e-5, &out, &mean, &root));
  kept(mean);
  kept(root);
  return kept(out);
}

static graft_tensor *rms_norm(graft_tensor **in) {
  graft_tensor *root = CALL(rsqrt, PLUS(ALONG(mean_dim, MUL(in[0], in[0])), 1e-6));
  return MUL(MUL(in[0], root), in[2]);
}
static graft_tensor *own_rms_norm(graft_tensor **in) {
  graft_tensor *out = NULL, *root = NULL;
  must(graft_op_fused_rms_norm(in[0], &columns, 1, in[2], &(const double){1e-6}, &out, &root));
  kept(root);
  return kept(out);
}

/* The second matrix is the residual; what it is larger than is dropped. */
static graft_tensor *dropped(graft_tensor **in, graft_tensor *activated) {
  graft_tensor *mask = NULL;
  must(graft_tensor_to(CALL(gt_Scalar, in[1], NUMBER(0.1)), NULL, GRAFT_F32, &mask));
  return ADD(TIMES(MUL(activated, kept(mask)), 1 / 0.9), in[1]);
}
static graft_tensor *block_end(graft_tensor **in) {
  graft_tensor *error = PLUS(CALL(erf, TIMES(in[0], 0.70710678118654752)), 1);
  return dropped(in, MUL(TIMES(in[0], 0.5), error));
}
static graft_tensor *own_block_end(graft_tensor **in) {
  return dropped(in, CALL(gelu, in[0], NULL));
}

static void sweep(void) {
  while (nscrap > 0) graft_tensor_release(scrap[--nscrap]);
}

/* ---- ways ---- */

enum { CALL_BY_CALL, GRAPH, FUSED, OWN, WAYS };

typedef struct race {
  const char *name;
  program_fn program, own;
} race;

typedef struct runner {
  graft_rt_device *device;
  graft_tensor *in[INPUTS];
  const race *race;
  graft_graph_exec *execs[WAYS];
} runner;

static graft_graph_exec *compiled(const runner *r, program_fn program, const char *passes) {
  static const char *const names[INPUTS] = {"a", "b", "c", "d"};
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *in[INPUTS];
  must(graft_graph_create(r->device, &graph));
  for (int i = 0; i < INPUTS; i++) must(graft_graph_input_like(graph, names[i], r->in[i], &in[i]));
  must(graft_graph_record_begin(graph));
  graft_tensor *out = program(in);
  must(graft_graph_record_end(graph));
  must(graft_graph_output(graph, "out", out));
  must(graft_graph_compile(graph, r->device, passes, &exec));
  graft_graph_destroy(graph);
  sweep();
  for (int i = 0; i < INPUTS; i++) graft_tensor_release(in[i]);
  return exec;
}

static double cpu_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void run(runner *r, int way, double *wall_s, double *cpu) {
  graft_tensor *out = NULL;
  const double begin = now_s(), begin_cpu = cpu_s();
  if (way == CALL_BY_CALL)
    r->race->program(r->in);
  else
    must(graft_graph_run(r->execs[way], r->in, INPUTS, &out, 1));
  must(graft_device_synchronize(r->device));
  if (now_s() - begin < *wall_s) *wall_s = now_s() - begin;
  if (cpu_s() - begin_cpu < *cpu) *cpu = cpu_s() - begin_cpu;
  if (out) graft_tensor_release(out);
  sweep();
}

static void measure(runner *r, int64_t rows) {
  static const char *const names[WAYS] = {"call by call", "graph, -fuse", "graph", "its own op"};
  const char *const passes[WAYS] = {NULL, "-fuse", NULL, "-fuse"};
  double wall[WAYS], cpu[WAYS];
  graft_graph_exec_info info;
  for (int way = GRAPH; way < WAYS; way++)
    r->execs[way] = compiled(r, way == OWN ? r->race->own : r->race->program, passes[way]);
  must(graft_graph_exec_query(r->execs[FUSED], &info, sizeof info));
  for (int way = 0; way < WAYS; way++) wall[way] = cpu[way] = 1e9;
  for (int i = 0; i < ROUNDS; i++) {
    for (int way = 0; way < WAYS; way++) {
      double before_s = 1e9, before_cpu_s = 1e9; /* one that leaves caches as this way leaves them */
      run(r, way, &before_s, &before_cpu_s);
      run(r, way, &wall[way], &cpu[way]);
    }
  }
  printf("%s, %d x %d: %u calls in %u groups; its own op / graph: %.2f, of CPU time %.2f\n", r->race->name, (int)rows,
         (int)columns, info.grouped_nodes, info.groups, wall[OWN] / wall[FUSED], cpu[OWN] / cpu[FUSED]);
  for (int way = 0; way < WAYS; way++)
    printf("  %-14s %9.2f ms %9.2f ms of CPU time\n", names[way], 1e3 * wall[way], 1e3 * cpu[way]);
  for (int way = GRAPH; way < WAYS; way++) graft_graph_exec_destroy(r->execs[way]);
}

static graft_tensor *numbers(graft_rt_device *device, int64_t rows, unsigned seed) {
  const int64_t n = rows * columns, sizes[] = {rows, columns};
  float *values = malloc((size_t)n * sizeof *values);
  graft_tensor *t;
  if (!values) exit(1);
  for (int64_t i = 0; i < n; i++) values[i] = (float)((i * 7919 + seed) % 4001) / 1000 - 2;
  must(graft_tensor_from_host(device, GRAFT_F32, rows > 1 ? 2 : 1, rows > 1 ? sizes : sizes + 1, values, &t));
  free(values);
  return t;
}

int main(int argc, char **argv) {
  static const race races[] = {{"softmax", softmax, own_softmax},
                               {"layer norm", layer_norm, own_layer_norm},
                               {"rms norm", rms_norm, own_rms_norm},
                               {"gelu, dropout, residual", block_end, own_block_end}};
  runner r = {.device = device_of(argc > 1 ? argv[1] : "opencl")};
  const int64_t rows = argc > 3 ? atoi(argv[2]) : 4096;
  if (argc > 3) columns = atoi(argv[3]);
  for (int i = 0; i < INPUTS; i++) r.in[i] = numbers(r.device, i < 2 ? rows : 1, (unsigned)i);
  for (size_t i = 0; i < sizeof races / sizeof *races; i++) {
    r.race = &races[i];
    measure(&r, rows);
  }
  for (int i = 0; i < INPUTS; i++) graft_tensor_release(r.in[i]);
  return 0;
}
