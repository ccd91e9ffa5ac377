/* Movement of elements, for families that come to it in the end. */
#ifndef OCL_SHAPE_H
#define OCL_SHAPE_H

#include "runtime/ocl.h"

/* What goes where: dimensions outermost first, all in elements. */
typedef struct ocl_region {
  int rank;
  int64_t size[OCL_DIMS_MAX], to[OCL_DIMS_MAX], from[OCL_DIMS_MAX];
  int64_t start_to, start_from;
} ocl_region;

/* The whole of a tensor, as it lies in another of its shape. */
graft_status ocl_move_whole(const graft_exec *exec, const graft_tensor_desc *from, const graft_tensor_desc *to);

/* Tensors with elements of one dtype, contiguous, one behind the other along a dim; by a GPU (join.c). */
graft_status ocl_join(const graft_exec *exec, const graft_args_cat *args);

/* Parts of one dtype, contiguous, that lie one behind the other in the result; by a CPU, where they are many
 * (listed.c).
 */
bool ocl_joins_listed(const graft_device *device, const graft_args_cat *args);
graft_status ocl_join_listed(const graft_exec *exec, const graft_args_cat *args);

/* constant_pad_nd by a CPU, with an element of the result's dtype (pad.c). */
graft_status ocl_pad(const graft_exec *exec, const graft_args_constant_pad_nd *args, const void *element);

#endif
