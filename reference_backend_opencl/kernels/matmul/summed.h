/* A matrix product, and beside it the sums of its first factor's rows, as a layer's weight and bias have their
 * gradients of one tensor: what copies the factor for the product adds it up on the way, so that it is read once. The
 * calls are a group of a graph: kernels/pointwise/groups.c asks here. */
#ifndef OCL_SUMMED_H
#define OCL_SUMMED_H

#include "kernels/core/grouped.h"

enum { OCL_SUMMED_CALLS = 2 };

/* Whether these two calls are such a product and such a sum, which neither waits for the other, on a CPU; the sums have
 * the bits of the call alone, but for the signs of NaN. */
bool ocl_summed_match(const graft_exec *exec, const graft_graph_node *const *nodes, uint32_t count);

extern const ocl_group_kind ocl_summed_kind;

#endif
