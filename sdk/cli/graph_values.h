/* What a graph is given on the command line, and what is said of what it gives. */
#ifndef GRAFT_CLI_GRAPH_VALUES_H
#define GRAFT_CLI_GRAPH_VALUES_H

#include "graft/graft.h"

/* "NAME=WHAT" of an option. */
typedef struct cli_pair {
  char name[128];
  const char *what;
} cli_pair;
enum { CLI_MOST_PAIRS = 256 };
typedef struct cli_pairs {
  cli_pair items[CLI_MOST_PAIRS];
  uint32_t count;
} cli_pairs;
/* NULL, or what is wrong with it: the caller's text. */
char *cli_pairs_add(cli_pairs *pairs, const char *text);
/* NULL: there is none of the name. */
const char *cli_pairs_find(const cli_pairs *pairs, const char *name);

/* The tensors of all inputs, on a device: what `given` says of them, and where it says nothing, `otherwise` (NULL: an
 * error that says what is missing). One is a .npy file, or "random:SEED": floats between -1 and 1, integers and bools
 * 0 or 1. The caller gives each back; none is there on failure. */
graft_status cli_graph_inputs(const graft_graph *graph, graft_rt_device *device, const cli_pairs *given,
                              const char *otherwise, graft_tensor **inputs);
/* "f32[2,3]", with strides where it is not contiguous. */
const char *cli_graph_port_text(const graft_graph_port *port, char *text, size_t room);
/* "name  f32[2,3]  min -1 max 1 mean 0.25", and how many are no numbers. */
graft_status cli_graph_print_values(const char *kind, const char *name, graft_tensor *t);

#endif
