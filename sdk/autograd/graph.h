/* The part of the tape that one backward runs: which nodes are reached, how many gradients each waits for, and which
 * are worth running. State lives here and not in nodes, so that several threads may run graphs that share leaves. */
#ifndef GRAFT_SDK_AUTOGRAD_GRAPH_H
#define GRAFT_SDK_AUTOGRAD_GRAPH_H

#include "autograd/node.h"

typedef struct ag_task {
  ag_node *node;
  uint32_t waiting; /* gradients that are still to come */
  size_t first;     /* of its cotangents in ag_graph.cotangents; node->nouts of them */
  bool captured;    /* its cotangents are results */
  bool run;         /* its formula leads to something wanted; of a leaf: collects */
} ag_task;

typedef struct ag_graph {
  ag_task *tasks;
  uint32_t count, capacity;
  uint32_t *table; /* hash table of task index + 1, open addressing */
  uint32_t table_size;
  graft_tensor **cotangents; /* owned */
  size_t ncotangents;
  uint32_t *ready; /* heap of tasks, largest sequence first */
  uint32_t nready;
} ag_graph;

#define AG_NO_TASK UINT32_MAX

static inline bool ag_task_wanted(const ag_task *task) {
  return task->run || task->captured;
}

/* The graph below `roots`. Wanted are the nodes of `inputs`, or with inputs NULL all leaves. */
graft_status ag_graph_build(ag_graph *graph, graft_tensor *const *roots, uint32_t nroots, graft_tensor *const *inputs,
                            uint32_t ninputs);
void ag_graph_free(ag_graph *graph);                                /* releases cotangents that are left */
uint32_t ag_graph_find(const ag_graph *graph, const ag_node *node); /* AG_NO_TASK: not reached */

void ag_graph_push(ag_graph *graph, uint32_t task);
uint32_t ag_graph_pop(ag_graph *graph); /* AG_NO_TASK: none is ready */

#endif
