/* Columns: calls of single tensors that together are like one call on lists. A step of an optimizer that has no op on
 * lists for something does it tensor by tensor, so that each item of a list goes through the same calls; those at one
 * place of that row of calls, one for each item, are a column. Chains take it as a call on lists (chain.h). */
#ifndef OCL_COLUMNS_H
#define OCL_COLUMNS_H

#include "graft/abi/graph.h"
#include "kernels/optimizer/lists.h"
#include "kernels/pointwise/fused.h"

enum { OCL_COLUMN_NUMBERS = OCL_INPUTS_MAX + OCL_SCALARS_MAX };

typedef struct ocl_column {
  ocl_lists call;                             /* the results, then the operands that are tensors */
  ocl_fused_op op;                            /* of the first item */
  uint32_t *nodes, count;                     /* by item */
  uint32_t first;                             /* of the nodes, in the graph's order */
  ocl_list_number number[OCL_COLUMN_NUMBERS]; /* of each item: operands that are none, then what the expression asks */
  int numbers;
  const graft_tensor_desc **items; /* of the lists */
  graft_scalar *scalars;           /* of the numbers */
} ocl_column;

typedef struct ocl_columns {
  ocl_column **items;
  uint32_t count;
} ocl_columns;

/* Those among nodes in the graph's order. What belongs to which item follows from calls on lists; where there are none,
 * and `components` are asked for, calls that give each other nothing are of different items. */
graft_status ocl_columns_find(const graft_exec *exec, const graft_graph_node *const *nodes, uint32_t count,
                              bool components, ocl_columns *columns);
void ocl_columns_free(ocl_columns *columns);

#endif
