/* See grouped.h. */
#include "kernels/core/grouped.h"

const void *ocl_node_args(const graft_exec *exec, const graft_graph_node *node, ocl_slot slot, uint32_t id) {
  ocl_call call;
  if (!node->args || ocl_call_of(exec, node->args, &call) != GRAFT_OK || call.op->id != id) return NULL;
  return !slot || call.op->slot == slot ? call.args : NULL;
}

int ocl_group_place(const graft_tensor_desc *const *list, uint32_t count, const graft_tensor_desc *desc) {
  int i = (int)count - 1;
  while (i >= 0 && list[i] != desc) i--;
  return i;
}
