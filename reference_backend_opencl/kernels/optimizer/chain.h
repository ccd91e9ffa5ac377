/* Chains: _foreach ops over lists of one length and of the same sizes, in one kernel. Such an op treats each element
 * apart, so a kernel that has the elements of one tensor in all lists makes one op after the other of them, each
 * rounded to its dtype, and a list between two ops that nobody else sees needs no memory.
 *
 * A chain is a group of calls of a graph: kernels/pointwise/groups.c says which calls go together, and asks here. Among
 * them are columns, calls of single tensors that are like one on lists (columns.h). */
#ifndef OCL_CHAIN_H
#define OCL_CHAIN_H

#include "kernels/core/grouped.h"
#include "kernels/optimizer/lists.h"

enum { OCL_CHAIN_CALLS = 48 };

typedef struct ocl_chain ocl_chain;

/* False: the node is no call that a chain can have. `call` is as the op's slot would see it. */
bool ocl_chain_read(const graft_exec *exec, const graft_graph_node *node, ocl_lists *call);
/* Whether they have lists of the same sizes, computed in the same type. */
bool ocl_chain_alike(const graft_device *device, const ocl_lists *a, const ocl_lists *b);
/* Whether `b` sees of what `a` writes anything but that list. */
bool ocl_chain_clashes(const ocl_lists *a, const ocl_lists *b);
/* How many lists in memory the calls have, where `is_inside` says of a tensor that nobody but them sees it. */
int ocl_chain_operands(const ocl_lists *const *calls, int count,
                       bool (*is_inside)(const void *context, int call, const graft_tensor_desc *desc),
                       const void *context);

/* How many numbers of their own. */
int ocl_chain_numbers(const ocl_lists *const *calls, int count);

extern const ocl_group_kind ocl_chain_kind;

/* For the kernels of lists: in front of all else, functions of the pointwise calls in it, if it has any. */
bool ocl_chain_has_functions(const ocl_chain *chain);
void ocl_chain_write_functions(ocl_text *head, const ocl_chain *chain, const graft_device *device, size_t local);
/* For the kernels of lists: CHAIN, NUMBERS_OF_CHAIN and ROUNDS, for tensors that have the dtypes of this one. */
void ocl_chain_write(ocl_text *head, const ocl_chain *chain, const graft_device *device, uint32_t tensor);
bool ocl_chain_same_dtypes(const ocl_chain *chain, uint32_t a, uint32_t b);

#endif
