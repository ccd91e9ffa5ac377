/* Matrix products with what follows them: a bias and gelu, silu and a residual, and a conversion: as a graph without
 * and with the pass that groups calls. The ways take turns, and the least time of many counts.
 *
 *   fused_products [BACKEND [M K N]] */
#include <stdbool.h>

#include "measure.h"

enum { ROUNDS = 21, INPUTS = 4, SCRAP = 8 };

static graft_tensor *scrap[SCRAP];
static int nscrap;

static graft_tensor *kept(graft_tensor *t) {
  return scrap[nscrap++] = t;
}

static graft_tensor *made;
#define CALL(op, ...) (made = NULL, must(graft_op_##op(__VA_ARGS__, &made)), kept(made))

/* in: two factors, a row, and a matrix of the result's shape. */
typedef graft_tensor *(*program_fn)(graft_tensor **in);

static graft_tensor *bias_gelu(graft_tensor **in) {
  return CALL(gelu, CALL(add_Tensor, CALL(mm, in[0], in[1]), in[2], graft_scalar_none()), NULL);
}
static graft_tensor *silu_residual(graft_tensor **in) {
  return CALL(add_Tensor, CALL(silu, CALL(mm, in[0], in[1])), in[3], graft_scalar_none());
}
static graft_tensor *plain(graft_tensor **in) {
  return CALL(mm, in[0], in[1]);
}

static void sweep(void) {
  while (nscrap > 0) graft_tensor_release(scrap[--nscrap]);
}

static graft_graph_exec *compiled(graft_rt_device *device, graft_tensor **like, program_fn program,
                                  const char *passes) {
  static const char *const names[INPUTS] = {"a", "b", "c", "d"};
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *in[INPUTS];
  must(graft_graph_create(device, &graph));
  for (int i = 0; i < INPUTS; i++) must(graft_graph_input_like(graph, names[i], like[i], &in[i]));
  must(graft_graph_record_begin(graph));
  graft_tensor *out = program(in);
  must(graft_graph_record_end(graph));
  must(graft_graph_output(graph, "out", out));
  must(graft_graph_compile(graph, device, passes, &exec));
  graft_graph_destroy(graph);
  sweep();
  for (int i = 0; i < INPUTS; i++) graft_tensor_release(in[i]);
  return exec;
}

enum { PRODUCT, GRAPH, FUSED, WAYS };

static void measure(graft_rt_device *device, graft_tensor **in, const char *name, program_fn program) {
  const double begin = now_s();
  graft_graph_exec *execs[WAYS] = {compiled(device, in, plain, "-fuse"), compiled(device, in, program, "-fuse"),
                                   compiled(device, in, program, NULL)};
  const double compiling = now_s() - begin;
  double least[WAYS] = {1e9, 1e9, 1e9};
  graft_graph_exec_info info;
  must(graft_graph_exec_query(execs[FUSED], &info, sizeof info));
  for (int i = 0; i < ROUNDS * WAYS * 2; i++) {
    graft_tensor *out = NULL;
    const double start = now_s();
    must(graft_graph_run(execs[i / 2 % WAYS], in, INPUTS, &out, 1));
    must(graft_device_synchronize(device));
    const double took = now_s() - start;
    if (i % 2 && took < least[i / 2 % WAYS]) least[i / 2 % WAYS] = took; /* behind one that leaves caches as it does */
    graft_tensor_release(out);
  }
  printf("%s: %u calls in %u groups; product %.3f ms, graph without groups %.3f ms, with %.3f ms; compiled in %.1f s\n",
         name, info.grouped_nodes, info.groups, 1e3 * least[PRODUCT], 1e3 * least[GRAPH], 1e3 * least[FUSED],
         compiling);
  for (int way = 0; way < WAYS; way++) graft_graph_exec_destroy(execs[way]);
}

static graft_tensor *numbers(graft_rt_device *device, graft_dtype dtype, int64_t rows, int64_t columns, unsigned seed) {
  const int64_t sizes[] = {rows, columns}, n = rows * columns;
  float *values = malloc((size_t)n * sizeof *values);
  graft_tensor *t, *as;
  if (!values) exit(1);
  for (int64_t i = 0; i < n; i++) values[i] = (float)((i * 7919 + seed) % 4001) / 1000 - 2;
  must(graft_tensor_from_host(device, GRAFT_F32, 2, sizes, values, &t));
  free(values);
  must(graft_tensor_to(t, NULL, dtype, &as));
  graft_tensor_release(t);
  return as;
}

int main(int argc, char **argv) {
  graft_rt_device *device = device_of(argc > 1 ? argv[1] : "opencl");
  const int64_t m = argc > 4 ? atoi(argv[2]) : 512, k = argc > 4 ? atoi(argv[3]) : 512,
                n = argc > 4 ? atoi(argv[4]) : 512;
  const graft_dtype dtypes[] = {GRAFT_F32, GRAFT_BF16};
  for (int d = 0; d < 2; d++) {
    graft_tensor *in[] = {numbers(device, dtypes[d], m, k, 1), numbers(device, dtypes[d], k, n, 2),
                          numbers(device, dtypes[d], 1, n, 3), numbers(device, dtypes[d], m, n, 4)};
    printf("%s, %d x %d x %d\n", d ? "bf16" : "f32", (int)m, (int)k, (int)n);
    measure(device, in, "  bias, gelu", bias_gelu);
    measure(device, in, "  silu, residual", silu_residual);
    for (int i = 0; i < INPUTS; i++) graft_tensor_release(in[i]);
  }
  return 0;
}
