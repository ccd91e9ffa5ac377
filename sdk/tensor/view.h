/* Views, made by the host alone: each takes a tensor and gives another over the same storage, with the sizes, strides,
 * offset and errors of PyTorch; which op is served the caller knows, and says. No memory is touched and no history is
 * recorded; that is dispatch's part. A tensor of shape only (storage NULL) gives such views, too.
 *
 * view.c: dims picked, ordered, cut; view_shape.c: dims merged, divided, broadcast; view_type.c: another element type,
 * conjugate and negative bits. */
#ifndef GRAFT_SDK_VIEW_H
#define GRAFT_SDK_VIEW_H

#include "base/error.h"
#include "tensor/tensor.h"

/* --- view.c --- */
graft_status tns_alias(graft_tensor *self, graft_tensor **view);
/* offset NULL: self's own. */
graft_status tns_as_strided(graft_tensor *self, int32_t ndim, const int64_t *sizes, const int64_t *strides,
                            const int64_t *offset, graft_tensor **view);
graft_status tns_diagonal(graft_tensor *self, int64_t offset, int64_t dim1, int64_t dim2, graft_tensor **view);
graft_status tns_permute(graft_tensor *self, int32_t count, const int64_t *dims, graft_tensor **view);
graft_status tns_select(graft_tensor *self, int64_t dim, int64_t index, graft_tensor **view);
/* start and end may be NULL: all. */
graft_status tns_slice(graft_tensor *self, int64_t dim, const int64_t *start, const int64_t *end, int64_t step,
                       graft_tensor **view);
/* views receives `count` tensors, or none of them. */
graft_status tns_split_with_sizes(graft_tensor *self, uint32_t count, const int64_t *sizes, int64_t dim,
                                  graft_tensor **views);
graft_status tns_squeeze_dim(graft_tensor *self, int64_t dim, graft_tensor **view);
graft_status tns_squeeze_dims(graft_tensor *self, uint32_t count, const int64_t *dims, graft_tensor **view);
graft_status tns_unsqueeze(graft_tensor *self, int64_t dim, graft_tensor **view);

/* --- view_shape.c --- */
/* aten::view; one size may be -1. Fails where the strides do not allow it. */
graft_status tns_view_sizes(graft_tensor *self, int32_t ndim, const int64_t *sizes, graft_tensor **view);
/* aten::expand; -1 keeps a size. */
graft_status tns_expand(graft_tensor *self, int32_t ndim, const int64_t *sizes, graft_tensor **view);
graft_status tns_broadcast_in_dim(graft_tensor *self, int32_t ndim, const int64_t *sizes, uint32_t count,
                                  const int64_t *dims, graft_tensor **view);
/* Merges dims start to end, both included. */
graft_status tns_collapse_view(graft_tensor *self, int64_t start, int64_t end, graft_tensor **view);
graft_status tns_split_dim(graft_tensor *self, int64_t dim, int64_t outer_length, graft_tensor **view);

/* --- view_type.c --- */
graft_status tns_view_as_real(graft_tensor *self, graft_tensor **view);
graft_status tns_conj(graft_tensor *self, graft_tensor **view); /* aten::_conj; a real tensor as it is */
graft_status tns_real(graft_tensor *self, graft_tensor **view);
graft_status tns_imag(graft_tensor *self, graft_tensor **view);
graft_status tns_view_of_dtype(graft_tensor *self, graft_dtype dtype, graft_tensor **view);

#endif
