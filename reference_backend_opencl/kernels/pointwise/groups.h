/* Groups while they are made: what is known of a graph's calls, for the files that say which of them go together. */
#ifndef OCL_GROUPS_H
#define OCL_GROUPS_H

#include "kernels/matmul/summed.h"
#include "kernels/optimizer/chain.h"
#include "kernels/optimizer/columns.h"
#include "kernels/pointwise/fused.h"

/* What is known of a node while groups are made. */
typedef struct ocl_grouped_call {
  const graft_graph_node *node;
  bool fits, multiplies; /* multiplies: a product or another call, which pointwise calls may follow */
  bool draws;
  bool normalizes;     /* what it gives beside its first result nobody may see, and it sees other shapes than its own */
  int numbers, stages; /* that its call takes */
  ocl_fused_space space;
  ocl_lists *lists;         /* a call on lists of tensors, which goes together with others alone; owned */
  const ocl_column *column; /* that this call is of: all of it are placed at once, as one on lists */
  bool leads;               /* it is the first of its column, or of the two that stand beside each other */
  uint32_t pair;            /* 1 + the call that it goes together with, as maybe another one does; none of them joins
                             * another group; 0: none */
  bool joins_pair;          /* it is that call */
  uint32_t beside;          /* 1 + the call that it is placed with at once, of which one `leads`; 0: none */
  bool placed;
  uint32_t waits; /* for how many others */
  size_t follows; /* the first edge to a node that runs behind it */
} ocl_grouped_call;

#define OCL_NO_EDGE SIZE_MAX
typedef struct ocl_edge {
  uint32_t late;
  size_t next; /* from the same node */
} ocl_edge;

enum { OCL_MEMBERS_MAX = (int)OCL_CHAIN_CALLS > (int)OCL_FUSED_OPS ? (int)OCL_CHAIN_CALLS : (int)OCL_FUSED_OPS };

typedef struct ocl_grouping {
  const graft_graph_nodes *graph;
  const graft_device *device;
  uint32_t *groups;
  ocl_grouped_call *nodes;
  ocl_columns columns;
  ocl_edge *edges;
  size_t nedges, room;
  uint32_t members[OCL_MEMBERS_MAX]; /* of the group at hand */
  int nmembers, nnumbers, nstages;
  ocl_fused_space space; /* that it runs over */
} ocl_grouping;

/* Whether any tensor of the one list lies where one of the other does. */
bool ocl_share(const graft_tensor_desc *const *a, uint32_t na, const graft_tensor_desc *const *b, uint32_t nb);

/* Finds calls that families make as one (kernels/core/grouped.h), which join no others. */
void ocl_find_together(ocl_grouping *g, const graft_exec *exec);
/* Whether the node, one of these, belongs to the group at hand, or begins it; it has then joined. */
bool ocl_join_together(ocl_grouping *g, uint32_t n);

#endif
