/* A cross entropy as one call: the logarithm of softmax and the negative log likelihood behind it, and their gradients.
 * What stands between them has an element for each class of each row, of which one a row counts, so none of it needs
 * memory. The calls are a group of a graph: kernels/pointwise/groups.c asks here. */
#ifndef OCL_CLASSES_H
#define OCL_CLASSES_H

#include "kernels/core/grouped.h"

enum { OCL_CLASSES_CALLS = 3 };

/* Whether these calls, in their order, are one that can be made at once: a loss, its gradient by way of a logarithm
 * that lies in memory, or the same where the logarithm is made for it. That nobody else sees what is between them the
 * groups see to. */
bool ocl_classes_match(const graft_exec *exec, const graft_graph_node *const *nodes, uint32_t count);

extern const ocl_group_kind ocl_classes_kind;

#endif
