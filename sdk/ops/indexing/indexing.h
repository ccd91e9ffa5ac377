/* What the families indexing and scatter share: x[indices] names the same elements for both.
 *
 * The indices of index.Tensor and index_put stand for the first dims of self; NULL takes a dim as it is. A mask (bool,
 * or u8 as old programs have it) stands for as many dims as its rank, and is the tuple of index tensors that nonzero
 * gives; how many elements it names is known when it runs, so that before there is only a bound. A mask without memory,
 * of shape inference, is taken as true throughout. */
#ifndef GRAFT_SDK_OPS_INDEXING_H
#define GRAFT_SDK_OPS_INDEXING_H

#include "ops/core/op.h"

typedef struct idx_shape {
  int32_t count; /* dims of self that are indexed */
  int32_t dims[GRAFT_MAX_DIMS];
  const graft_tensor *from[GRAFT_MAX_DIMS]; /* of each: the index or the mask */
  bool masked, open; /* there are masks; and of some, how many elements they name is not known yet */
  int32_t ndim;      /* the shape that the indices broadcast to */
  int64_t sizes[GRAFT_MAX_DIMS];
  int32_t at; /* the dim of the result where it stands: that of the first index where they are neighbours, else 0 */
  int32_t rest[GRAFT_MAX_DIMS], nrest; /* dims of self that are not indexed */
  int32_t result_ndim;
  int64_t result[GRAFT_MAX_DIMS];
} idx_shape;

/* Of arguments 0 (self) and 1 (indices). */
graft_status idx_resolve(const op_call *call, idx_shape *shape);

bool idx_is_mask(const graft_tensor *t);
bool idx_is_index(const graft_tensor *t); /* i64, i32 */

/* The indices without masks, owned by the scope; `list` has room for GRAFT_MAX_DIMS. Returns how many. */
uint32_t idx_without_masks(fx *s, const graft_value *indices, graft_tensor **list);

/* self as a matrix, a row for each position that the indices can name, and for each element of the indices its row. */
typedef struct idx_rows {
  graft_tensor *matrix, *row;    /* [positions, rest], i64[elements] */
  int64_t sizes[GRAFT_MAX_DIMS]; /* of self, indexed dims first */
  int64_t order[GRAFT_MAX_DIMS]; /* that permutation of self's dims */
} idx_rows;
idx_rows idx_to_rows(fx *s, const op_call *call, const idx_shape *shape);

/* For kernels. Wraps an index where negative ones count from the end; an error where it is out of range for dim `dim`,
 * or for all elements. */
enum { IDX_NO_DIM = -1 };
graft_status idx_wrap(const char *op, int64_t *index, bool wraps, int64_t dim, int64_t size);

/* For kernels. Where each element of the result lies in dense self, in row-major order; NULL with *status set when an
 * index is out of range or memory runs out. No masks. */
int64_t *idx_places(const char *op, const graft_tensor_desc *self, const graft_tensor_list *indices, int64_t *count,
                    graft_status *status);

/* The element of dense `self` that element i of a dense index tensor names along dim: gather and scatter. -1 with
 * *status set when it is out of range. */
typedef struct idx_line {
  const char *op;
  const graft_tensor_desc *self, *index;
  int64_t dim;
  int64_t strides[GRAFT_MAX_DIMS]; /* of dense self */
} idx_line;
idx_line idx_line_of(const char *op, const graft_tensor_desc *self, const graft_tensor_desc *index, int64_t dim);
int64_t idx_line_at(const idx_line *line, int64_t i, int64_t value, graft_status *status);

/* index, where negative numbers count from the end. */
graft_tensor *idx_from_the_end(fx *s, graft_tensor *index, int64_t size);

/* An index must have something to point at along dim of self, argument `self_arg`. */
graft_status idx_check_elements(const op_call *call, int self_arg, int64_t dim, const graft_tensor *index);

/* The rule of gather and scatter: index of as many dims as self, not larger but along dim. */
graft_status idx_check_line(op_call *call, int64_t *dim);

#endif
