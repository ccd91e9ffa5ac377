/* Calls of a graph that a family makes as one: what it gives for that, and what it asks of nodes and groups. Which
 * calls go together kernels/pointwise/groups.c says, and kernels/pointwise/fused.c asks each kind in turn. */
#ifndef OCL_GROUPED_H
#define OCL_GROUPED_H

#include "graft/abi/graph.h"
#include "runtime/ocl.h"

typedef struct ocl_group_kind {
  /* UNIMPLEMENTED: the group is no such calls. */
  graft_status (*compile)(const graft_exec *exec, const graft_graph_group *group, void **made);
  uint64_t (*in_place)(const void *made); /* as graft_graph_compiled has it; NULL: nothing is */
  graft_status (*run)(const graft_exec *exec, void *made, const graft_graph_run_args *args);
  void (*destroy)(void *made);
} ocl_group_kind;

/* The arguments of a node that calls this op, in this slot where one is given; NULL: it does not. */
const void *ocl_node_args(const graft_exec *exec, const graft_graph_node *node, ocl_slot slot, uint32_t id);
/* Which of a group's inputs or outputs a tensor is; -1: none. */
int ocl_group_place(const graft_tensor_desc *const *list, uint32_t count, const graft_tensor_desc *desc);

#endif
