/* Elements that index tensors point to: what gather, embedding, scatter, index_put and their kin have in common.
 *
 * Each place of an index space is one element of a `plain` tensor (strides may be 0: broadcast) and, in the `picked`
 * tensor, the element at the sum of the place's own strides and of index * step for each index tensor. Gathers read
 * `picked` and write `plain`, scatters the other way round. Indices are i64. */
#ifndef OCL_INDEXED_H
#define OCL_INDEXED_H

#include "runtime/ocl.h"

enum { OCL_INDICES_MAX = 6, OCL_PLAIN = 0, OCL_PICKED = 1, OCL_INDEX = 2 };

typedef struct ocl_indexed {
  uint32_t op_id;
  const graft_tensor_desc *plain, *picked, *index[OCL_INDICES_MAX];
  int indices;
  int64_t bound[OCL_INDICES_MAX], step[OCL_INDICES_MAX]; /* of the dimension each picks from */
  bool wraps;                                            /* negative indices count from the end */
  int rank;
  int64_t size[OCL_DIMS_MAX], stride[OCL_OPERANDS_MAX][OCL_DIMS_MAX]; /* outermost first */
} ocl_indexed;

/* Adds the index space's next dimension, inside those before. */
void ocl_indexed_push(ocl_indexed *call, int64_t size, int64_t plain, int64_t picked);
/* Adds an index tensor that picks along a dimension of this size and stride. */
void ocl_indexed_add(ocl_indexed *call, const graft_tensor_desc *index, int64_t bound, int64_t step);
/* The index space as kernels want it: innermost dimension first, joined where one run. */
void ocl_indexed_geometry(const ocl_indexed *call, ocl_geometry *geometry);
/* index.Tensor and index_put: one index (or NULL) for each leading dimension of `picked`. False: not served. */
bool ocl_indexed_list(ocl_indexed *call, graft_tensor_list indices);
/* index_select and index_add: all dimensions of `plain`, of which `dim` is the index's. */
void ocl_indexed_along(ocl_indexed *call, const graft_tensor_desc *index, int64_t dim);
/* gather and scatter: an index for each element. */
void ocl_indexed_each(ocl_indexed *call, const graft_tensor_desc *index, int64_t dim);

/* For the head: the index tensors as parameters INDEX_PARAMETERS, gathered in an array by INDEX_POINTERS. */
void ocl_indexed_head(ocl_text *head, const ocl_indexed *call);
/* Elements are moved as bits where nothing is computed with them: an integer dtype of that size. */
const ocl_dtype *ocl_dtype_of_bits(const graft_device *device, graft_dtype code);

graft_status ocl_gather(const graft_exec *exec, const ocl_indexed *call);

typedef enum ocl_scatter_mode {
  OCL_SCATTER_SET, /* the last in logical order stays */
  OCL_SCATTER_ADD,
  OCL_SCATTER_MULTIPLY,
  OCL_SCATTER_MAXIMUM,
  OCL_SCATTER_MINIMUM
} ocl_scatter_mode;

typedef struct ocl_scatter {
  ocl_indexed indexed;
  ocl_scatter_mode mode;
  const graft_tensor_desc *base; /* what the output begins as; NULL: zeros */
  const graft_scalar *value;     /* in place of `plain`, or NULL */
  const graft_scalar *alpha;     /* what elements are multiplied with, or NULL */
  int64_t skip;                  /* an index that is passed over, or -1 */
  bool replaces;                 /* what is picked counts as nothing before the first element comes */
} ocl_scatter;

graft_status ocl_scatter_run(const graft_exec *exec, const ocl_scatter *call);

#endif
