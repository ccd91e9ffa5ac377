/* The gradients of query, key and value, each written with zero added to where a call behind it would write it: to its
 * part of one tensor, as the gradient of what the three were taken out of. The calls are a group of a graph:
 * kernels/pointwise/groups.c asks here. */
#ifndef OCL_PLACED_H
#define OCL_PLACED_H

#include "kernels/core/grouped.h"

enum { OCL_PLACED_RESULTS = 3, OCL_PLACED_CALLS = 1 + OCL_PLACED_RESULTS };

/* Whether these calls are a gradient of attention and, behind it, others that each add zero to one of its results, on a
 * CPU. That nobody else sees these results the groups see to. */
bool ocl_placed_match(const graft_exec *exec, const graft_graph_node *const *nodes, uint32_t count);

extern const ocl_group_kind ocl_placed_kind;

#endif
