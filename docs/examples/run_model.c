/* Runs a model that was saved (docs/graphs.md): run_model FILE BACKEND <X >Y. It has one input and one output of f32,
 * whose elements come and go row by row. */
#include <graft/graft.h>
#include <stdio.h>

enum { ROOM = 1 << 18 };

int main(int argc, char **argv) {
  static float data[ROOM + 1];
  graft_rt_backend *backend;
  graft_rt_device *device;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *x, *y;
  graft_graph_port in;
  if (argc != 3) return fprintf(stderr, "usage: run_model FILE BACKEND <X >Y\n"), 2;
  const size_t count = fread(data, sizeof *data, ROOM, stdin);
  if (graft_backend_open(argv[2], NULL, &backend) || graft_backend_device(backend, 0, &device) ||
      graft_graph_load(device, argv[1], &graph) || graft_graph_compile(graph, device, NULL, &exec) ||
      graft_graph_input_query(graph, 0, &in, sizeof in) || graft_tensor_empty(device, in.dtype, in.ndim, in.sizes, &x))
    return fprintf(stderr, "run_model: %s\n", graft_last_error()), 1;
  if (graft_graph_input_count(graph) != 1 || in.dtype != GRAFT_F32 || graft_tensor_numel(x) != (int64_t)count)
    return fprintf(stderr, "run_model: it takes %lld numbers of f32\n", (long long)graft_tensor_numel(x)), 1;
  graft_tensor_release(x);
  if (graft_tensor_from_host(device, in.dtype, in.ndim, in.sizes, data, &x) || graft_graph_run(exec, &x, 1, &y, 1) ||
      graft_tensor_dtype(y) != GRAFT_F32 || graft_tensor_numel(y) > ROOM || graft_tensor_to_host(y, data))
    return fprintf(stderr, "run_model: %s\n", graft_last_error()), 1;
  fwrite(data, sizeof *data, (size_t)graft_tensor_numel(y), stdout);
  graft_tensor_release(x);
  graft_tensor_release(y);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  return 0;
}
