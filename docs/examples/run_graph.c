/* Runs a graph that was saved (docs/graphs.md): run_graph FILE. Its one input is a 2x2 matrix of f32. */
#include <graft/graft.h>
#include <stdio.h>

int main(int argc, char **argv) {
  graft_rt_device *device = graft_device_reference();
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *x, *y;
  float values[4] = {1, 2, 3, 4};
  if (argc != 2) return fprintf(stderr, "usage: run_graph FILE\n"), 2;
  if (graft_graph_load(device, argv[1], &graph) || graft_graph_compile(graph, device, NULL, &exec) ||
      graft_tensor_from_host(device, GRAFT_F32, 2, (int64_t[]){2, 2}, values, &x) ||
      graft_graph_run(exec, &x, 1, &y, 1) || graft_tensor_to_host(y, values))
    return fprintf(stderr, "run_graph: %s\n", graft_last_error()), 1;
  printf("%g %g %g %g\n", values[0], values[1], values[2], values[3]);
  graft_tensor_release(x);
  graft_tensor_release(y);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  return 0;
}
