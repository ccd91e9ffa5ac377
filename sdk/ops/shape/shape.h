/* The shape family: rules, decompositions and the table in shape.c, reference kernels in shape_kernels.c, gradients
 * (those of the host's views too) in shape_vjp.c. */
#ifndef GRAFT_SDK_OPS_SHAPE_H
#define GRAFT_SDK_OPS_SHAPE_H

#include "ops/core/op.h"

graft_status ref_to_copy(const graft_exec *exec, const graft_args_to_copy *a);
graft_status ref_cat(const graft_exec *exec, const graft_args_cat *a);
graft_status ref_constant_pad_nd(const graft_exec *exec, const graft_args_constant_pad_nd *a);
graft_status ref_repeat(const graft_exec *exec, const graft_args_repeat *a);
graft_status ref_flip(const graft_exec *exec, const graft_args_flip *a);
graft_status ref_tril(const graft_exec *exec, const graft_args_tril *a);
graft_status ref_triu(const graft_exec *exec, const graft_args_triu *a);
graft_status ref_roll(const graft_exec *exec, const graft_args_roll *a);
graft_status ref_select_scatter(const graft_exec *exec, const graft_args_select_scatter *a);
graft_status ref_slice_scatter(const graft_exec *exec, const graft_args_slice_scatter *a);

/* clang-format off */
#define SHAPE_VJPS(X)                                                                                                 \
  X(same)                                                                                                             \
  X(copy) X(cat) X(pad) X(repeat) X(flip) X(select_scatter) X(slice_scatter) X(as_strided_scatter) X(select) X(slice) \
      X(view) X(expand) X(permute) X(as_strided) X(diagonal) X(split) X(view_as_real) X(conj) X(real) X(imag)         \
          X(broadcast_in_dim) X(view_of_dtype) X(triangle) X(roll)
/* clang-format on */
#define SHAPE_DECLARE(name) void shape_vjp_##name(op_vjp *v);
SHAPE_VJPS(SHAPE_DECLARE)
#undef SHAPE_DECLARE

/* clang-format off */
#define SHAPE_HOSTS(X)                                                                                                \
  X(alias) X(expand) X(permute) X(view) X(squeeze_dims) X(view_as_real) X(conj) X(real) X(imag) X(view_of_dtype)      \
  X(collapse_view) X(split_dim) X(broadcast_in_dim) X(as_strided) X(diagonal) X(select) X(slice) X(split_with_sizes)  \
  X(squeeze_dim) X(unsqueeze)
/* clang-format on */
#define SHAPE_DECLARE(name) graft_status shape_host_##name(op_call *call, graft_tensor **outs, uint32_t nouts);
SHAPE_HOSTS(SHAPE_DECLARE)
#undef SHAPE_DECLARE

/* Two elements of a tensor of these strides may be one: PyTorch's conservative test. */
bool shape_may_overlap(int32_t ndim, const int64_t *sizes, const int64_t *strides);
/* Before each dim of `sizes` that is repeated, a dim for its repeats: the shape of (1 or repeats[i], sizes[i]), ... in
 * `full`, with 1 for the repeats in `base`. Returns the rank, -1 when it is too large; *mask has a bit for each repeat.
 */
int32_t shape_interleave(int32_t ndim, const int64_t *sizes, int32_t count, const int64_t *repeats, int64_t *base,
                         int64_t *full, uint32_t *mask);

#endif
