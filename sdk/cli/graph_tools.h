/* graft graph: what a saved graph holds (graph_show.c), as a picture (graph_dot.c), and where a backend or a pass goes
 * wrong with it (graph_bisect.c). */
#ifndef GRAFT_CLI_GRAPH_TOOLS_H
#define GRAFT_CLI_GRAPH_TOOLS_H

#include "graph/exec.h"
#include "graph_values.h"

/* What buffers are called: inputs and constants by their names, values by numbers. */
typedef struct cli_names {
  const graft_graph *graph;
  arena memory;
  const char **names; /* by buffer */
} cli_names;
graft_status cli_names_make(const graft_graph *graph, cli_names *names);
void cli_names_free(cli_names *names);
/* "x", "x f32[2,3]", or with strides and offset where it is not all of it in order; "_" where absent. */
char *cli_view_text(const cli_names *names, const gr_view *view, bool dtype, char *text, size_t room);
/* "v7 f32[3,1] = aten::mm(self=x, mat2=y)", malloc'ed; NULL: no host memory. What is written has a "!". */
char *cli_node_text(const cli_names *names, const gr_node *node);

graft_status cli_graph_show(const graft_graph *graph, graft_rt_device *device);
/* What each pass does to it on a device. */
graft_status cli_graph_show_passes(const graft_graph *graph, graft_rt_device *device);
graft_status cli_graph_dot(const graft_graph *graph);

/* What is held against what. */
typedef struct cli_bisect {
  const graft_graph *graph;
  graft_rt_device *device, *against;
  const cli_pairs *inputs;
  double tolerance; /* of a result, relative to the largest element; below 0: half of the digits of its dtype */
  /* For the tests: called, where not NULL, with what was compiled with passes. */
  void (*fault)(graft_graph_exec *exec);
} cli_bisect;
/* Prints what it finds; *found: something differs. */
graft_status cli_graph_bisect(const cli_bisect *b, bool *found);

#endif
