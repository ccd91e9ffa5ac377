/* What a graph is given on the command line, and what is said of what it gives. */
#ifndef GRAFT_CLI_GRAPH_VALUES_H
#define GRAFT_CLI_GRAPH_VALUES_H

#include "graft/graft.h"

/* "NAME=WHAT" of an option. */
typedef struct cli_pair {
  char *name; /* owned */
  const char *what;
} cli_pair;
/* As many as are given: a training step has an input for each parameter. */
typedef struct cli_pairs {
  cli_pair *items; /* owned */
  uint32_t count;
} cli_pairs;
struct argp_state;
/* Adds it; what is wrong with it ends the program with a text that names the option. */
void cli_take_pair(cli_pairs *pairs, const char *text, const char *option, struct argp_state *state);
void cli_pairs_free(cli_pairs *pairs);
/* NULL: there is none of the name. */
const char *cli_pairs_find(const cli_pairs *pairs, const char *name);

/* What commands on one saved graph are given alike: FILE, -b, -d, -i and --size. */
typedef struct cli_graph_options {
  const char *file, *backend;
  int device;
  cli_pairs inputs, sizes;
} cli_graph_options;
enum { CLI_KEY_SIZE = 1024 };
/* For the keys of argp that a command has no case of, or does more for. */
int cli_take_graph_option(int key, const char *argument, struct argp_state *state, cli_graph_options *options);

/* --- graph_sizes.c --- */
/* What says which sizes the open ones are: --size, .npy files, and where those are silent what a run before left. */
typedef struct cli_graph_given {
  const cli_pairs *sizes, *inputs;
  graft_tensor *const *kept; /* by input; NULL: nothing */
} cli_graph_given;
/* Of a graph with open sizes the one for these; others are as they were recorded. *made is the caller's, NULL where no
 * size is open; `text` says what they are. */
graft_status cli_graph_at(const graft_graph *graph, const cli_graph_given *given, char *text, size_t room,
                          graft_graph **made);
/* Its open sizes, what is computed of them, and inputs by these; nothing where there are none. */
void cli_graph_print_sizes(const graft_graph *graph);

/* --- graph_values.c --- */
/* The tensors of all inputs, on a device: what `given` says of them, and where it says nothing, the value that the
 * graph has for them, else `otherwise` (NULL: an error that says what is missing). One is a .npy file, or
 * "random:SEED": floats between -1 and 1, integers and bools 0 or 1. What `inputs` holds is kept where nothing is given
 * and its shape fits. The caller gives each back; none is there on failure. */
graft_status cli_graph_inputs(const graft_graph *graph, graft_rt_device *device, const cli_pairs *given,
                              const char *otherwise, graft_tensor **inputs);
/* "f32[2,3]", with strides where it is not contiguous. */
const char *cli_graph_port_text(const graft_graph_port *port, char *text, size_t room);
/* "name  f32[2,3]  min -1 max 1 mean 0.25", and how many are no numbers. */
graft_status cli_graph_print_values(const char *kind, const char *name, graft_tensor *t);

#endif
