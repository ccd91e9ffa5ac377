/* Chains of 20 pointwise calls on f32, of arithmetic alone and with a sigmoid in each four: call by call, as a graph
 * without the pass that groups calls, and as a graph whose plugin compiles them together. All three give the same bits,
 * which is looked at first. CPU time is that of all threads, and holds where other programs run beside this one.
 *
 *   fused_chain [BACKEND [LOG2_ELEMENTS...]] */
#include <stdbool.h>
#include <string.h>

#include "measure.h"

enum { CALLS = 20, ROUNDS = 9, SIZES_MAX = 8 };

static bool with_sigmoid;

static void call(int number, graft_tensor *v, graft_tensor *x, graft_tensor *y, graft_tensor **next) {
  switch (number % 4) {
    case 0: must(graft_op_mul_Tensor(v, y, next)); return;
    case 1: must(graft_op_add_Tensor(v, x, graft_scalar_float(0.5), next)); return;
    case 2: must(with_sigmoid ? graft_op_sigmoid(v, next) : graft_op_relu(v, next)); return;
    default: must(graft_op_sub_Tensor(v, y, graft_scalar_none(), next)); return;
  }
}

static graft_tensor *chain(graft_tensor *x, graft_tensor *y) {
  graft_tensor *v = x;
  for (int i = 0; i < CALLS; i++) {
    graft_tensor *next = NULL;
    call(i, v, x, y, &next);
    if (v != x) graft_tensor_release(v);
    v = next;
  }
  return v;
}

static graft_graph_exec *compiled(graft_rt_device *device, int64_t n, const char *passes) {
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *x, *y, *out;
  must(graft_graph_create(device, &graph));
  must(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  must(graft_graph_input(graph, "y", GRAFT_F32, 1, &n, NULL, &y));
  must(graft_graph_record_begin(graph));
  out = chain(x, y);
  must(graft_graph_record_end(graph));
  must(graft_graph_output(graph, "out", out));
  must(graft_graph_compile(graph, device, passes, &exec));
  graft_graph_destroy(graph);
  graft_tensor *made[] = {x, y, out};
  for (int i = 0; i < 3; i++) graft_tensor_release(made[i]);
  return exec;
}

typedef struct chains {
  graft_rt_device *device;
  graft_tensor *in[2];
  graft_graph_exec *execs[2]; /* without and with groups */
} chains;

enum { CALL_BY_CALL, GRAPH, FUSED, WAYS };

static graft_tensor *run(const chains *c, int way) {
  graft_tensor *out = NULL;
  if (way == CALL_BY_CALL) return chain(c->in[0], c->in[1]);
  must(graft_graph_run(c->execs[way - GRAPH], c->in, 2, &out, 1));
  return out;
}

/* Of all threads: what another program on the machine takes does not count. */
static double cpu_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct taken {
  double wall_s, cpu_s;
} taken;

static taken time_of(const chains *c, int way) {
  const taken begin = {now_s(), cpu_s()};
  graft_tensor *out = run(c, way);
  must(graft_device_synchronize(c->device));
  const taken end = {now_s(), cpu_s()};
  graft_tensor_release(out);
  return (taken){end.wall_s - begin.wall_s, end.cpu_s - begin.cpu_s};
}

static void expect_same(const chains *c, int64_t n) {
  float *values[WAYS];
  for (int way = 0; way < WAYS; way++) {
    graft_tensor *out = run(c, way);
    values[way] = malloc((size_t)n * sizeof(float));
    if (!values[way]) exit(1);
    must(graft_tensor_to_host(out, values[way]));
    graft_tensor_release(out);
    if (!memcmp(values[0], values[way], (size_t)n * sizeof(float))) continue;
    fprintf(stderr, "fused_chain: the ways differ\n");
    exit(1);
  }
  for (int way = 0; way < WAYS; way++) free(values[way]);
}

static graft_tensor *numbers(graft_rt_device *device, int64_t n, unsigned seed) {
  float *values = malloc((size_t)n * sizeof *values);
  graft_tensor *t;
  if (!values) exit(1);
  for (int64_t i = 0; i < n; i++) values[i] = (float)((i * 7919 + seed) % 4001) / 1000 - 2;
  must(graft_tensor_from_host(device, GRAFT_F32, 1, &n, values, &t));
  free(values);
  return t;
}

static void measure(graft_rt_device *device, int log2_elements) {
  const int64_t n = INT64_C(1) << log2_elements;
  chains c = {.device = device, .in = {numbers(device, n, 1), numbers(device, n, 2)}};
  c.execs[0] = compiled(device, n, "-fuse");
  c.execs[1] = compiled(device, n, NULL);
  graft_graph_exec_info info;
  must(graft_graph_exec_query(c.execs[1], &info, sizeof info));
  expect_same(&c, n);
  double wall[WAYS][ROUNDS], cpu[WAYS][ROUNDS];
  for (int r = 0; r < ROUNDS; r++) {
    for (int way = 0; way < WAYS; way++) {
      const taken t = time_of(&c, way);
      wall[way][r] = 1e3 * t.wall_s;
      cpu[way][r] = 1e3 * t.cpu_s;
    }
  }
  static const char *const names[WAYS] = {"call by call", "graph, -fuse", "graph"};
  printf("2^%d elements, %d calls%s; the graph has %u of them in %u groups\n", log2_elements, CALLS,
         with_sigmoid ? " with sigmoids" : "", info.grouped_nodes, info.groups);
  for (int way = 0; way < WAYS; way++) {
    printf("  %-14s %9.2f ms %9.2f ms of CPU time\n", names[way], median_of(wall[way], ROUNDS),
           median_of(cpu[way], ROUNDS));
  }
  for (int i = 0; i < 2; i++) {
    graft_tensor_release(c.in[i]);
    graft_graph_exec_destroy(c.execs[i]);
  }
}

int main(int argc, char **argv) {
  graft_rt_device *device = device_of(argc > 1 ? argv[1] : "opencl");
  const int usual[] = {21, 24};
  for (int kind = 0; kind < 2; kind++) {
    with_sigmoid = kind == 1;
    for (int i = 2; i < argc; i++) measure(device, atoi(argv[i]));
    for (int i = 0; argc < 3 && i < 2; i++) measure(device, usual[i]);
  }
  return 0;
}
