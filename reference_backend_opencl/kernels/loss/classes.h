/* The gradient of a cross entropy: that of the negative log likelihood, which has one number a row, and behind it that
 * of the logarithm of softmax, as one kernel. The two are a group of a graph: kernels/pointwise/groups.c asks here. */
#ifndef OCL_CLASSES_H
#define OCL_CLASSES_H

#include "graft/abi/graph.h"
#include "runtime/ocl.h"

/* Whether `late` takes what `early` gives, and both can be one kernel. That nobody else sees it the groups see to. */
bool ocl_classes_match(const graft_exec *exec, const graft_graph_node *early, const graft_graph_node *late);

typedef struct ocl_classes ocl_classes;
/* UNIMPLEMENTED: the group is no such two. */
graft_status ocl_classes_compile(const graft_exec *exec, const graft_graph_group *group, ocl_classes **made);
/* As graft_graph_compiled has it. */
uint64_t ocl_classes_in_place(const ocl_classes *classes);
graft_status ocl_classes_run(const graft_exec *exec, ocl_classes *classes, const graft_graph_run_args *args);
void ocl_classes_destroy(ocl_classes *classes);

#endif
