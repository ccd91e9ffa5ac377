/* Views that pick, order and cut dims. */
#include "tensor/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Wraps a dim of a rank into [0, rank); rank 0 counts as 1. */
static graft_status wrap_dim(int64_t *dim, int32_t ndim) {
  int64_t rank = ndim > 0 ? ndim : 1;
  if (*dim < -rank || *dim >= rank) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "dim out of range (expected to be in range of [%" PRId64 ", %" PRId64 "], but got %" PRId64 ")",
                   -rank, rank - 1, *dim);
  }
  if (*dim < 0) *dim += rank;
  return GRAFT_OK;
}

graft_status tns_alias(graft_tensor *self, graft_tensor **view) {
  return tns_view(self, self->ndim, self->sizes, self->strides, self->offset, view);
}

static graft_status check_strided(graft_tensor *self, int32_t ndim, const int64_t *sizes, const int64_t *strides,
                                  int64_t offset) {
  for (int32_t i = 0; i < ndim; i++) {
    if (sizes[i] < 0) {
      return err_set(GRAFT_INVALID_ARGUMENT, "size %s has a negative entry", TNS_INTS(ndim, sizes));
    }
    if (strides[i] < 0) {
      return err_set(GRAFT_INVALID_ARGUMENT, "negative strides are not supported, got strides %s",
                     TNS_INTS(ndim, strides));
    }
  }
  if (offset < 0) return err_set(GRAFT_INVALID_ARGUMENT, "invalid storage offset %" PRId64, offset);
  int64_t needed = tns_extent_bytes(self->dtype, ndim, sizes, strides, offset);
  if (needed < 0) {
    return err_set(GRAFT_INVALID_ARGUMENT, "storage size calculation overflowed with sizes %s and strides %s",
                   TNS_INTS(ndim, sizes), TNS_INTS(ndim, strides));
  }
  if (self->storage && (uint64_t)needed > self->storage->bytes) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "sizes %s, strides %s, storage offset %" PRId64 " and itemsize %" PRIu64
                   " require a storage of %" PRId64 " bytes, out of bounds for storage of %" PRIu64 " bytes",
                   TNS_INTS(ndim, sizes), TNS_INTS(ndim, strides), offset, dt_bytes(self->dtype), needed,
                   self->storage->bytes);
  }
  return GRAFT_OK;
}

graft_status tns_as_strided(graft_tensor *self, int32_t ndim, const int64_t *sizes, const int64_t *strides,
                            const int64_t *offset, graft_tensor **view) {
  int64_t at = offset ? *offset : self->offset;
  graft_status status = check_strided(self, ndim, sizes, strides, at);
  return status ? status : tns_view(self, ndim, sizes, strides, at, view);
}

/* Sizes, strides and offset of a view in the making. */
typedef struct geometry {
  int32_t ndim;
  int64_t offset;
  int64_t sizes[GRAFT_MAX_DIMS + 1], strides[GRAFT_MAX_DIMS + 1];
} geometry;

static geometry geometry_of(const graft_tensor *self) {
  geometry g = {self->ndim, self->offset, {0}, {0}};
  memcpy(g.sizes, self->sizes, sizeof self->sizes);
  memcpy(g.strides, self->strides, sizeof self->strides);
  return g;
}

static void geometry_drop(geometry *g, int64_t dim) {
  g->ndim--;
  for (int64_t i = dim; i < g->ndim; i++) g->sizes[i] = g->sizes[i + 1], g->strides[i] = g->strides[i + 1];
}

static void geometry_add(geometry *g, int64_t dim, int64_t size, int64_t stride) {
  for (int64_t i = g->ndim; i > dim; i--) g->sizes[i] = g->sizes[i - 1], g->strides[i] = g->strides[i - 1];
  g->sizes[dim] = size, g->strides[dim] = stride;
  g->ndim++;
}

static graft_status geometry_view(graft_tensor *self, const geometry *g, graft_tensor **view) {
  return tns_view(self, g->ndim, g->sizes, g->strides, g->offset, view);
}

graft_status tns_diagonal(graft_tensor *self, int64_t offset, int64_t dim1, int64_t dim2, graft_tensor **view) {
  graft_status status = wrap_dim(&dim1, self->ndim);
  if (!status) status = wrap_dim(&dim2, self->ndim);
  if (status) return status;
  if (dim1 == dim2) {
    return err_set(GRAFT_INVALID_ARGUMENT, "dimensions cannot be identical: %" PRId64 ", %" PRId64 " of %s", dim1, dim2,
                   TNS_SHAPE(self));
  }
  geometry g = geometry_of(self);
  int64_t rows = self->sizes[dim1], columns = self->sizes[dim2];
  /* compared, not subtracted: the offset may be any number */
  if (offset >= 0)
    columns = offset >= columns ? 0 : columns - offset;
  else
    rows = offset <= -rows ? 0 : rows + offset;
  int64_t length = rows < columns ? rows : columns;
  if (length > 0) {
    g.offset += offset >= 0 ? offset * self->strides[dim2] : -offset * self->strides[dim1];
  }
  geometry_drop(&g, dim1 > dim2 ? dim1 : dim2);
  geometry_drop(&g, dim1 > dim2 ? dim2 : dim1);
  geometry_add(&g, g.ndim, length, self->strides[dim1] + self->strides[dim2]);
  return geometry_view(self, &g, view);
}

graft_status tns_permute(graft_tensor *self, int32_t count, const int64_t *dims, graft_tensor **view) {
  if (count != self->ndim) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "the number of dimensions of %s does not match the length of the "
                   "desired ordering %s",
                   TNS_SHAPE(self), TNS_INTS(count, dims));
  }
  geometry g = geometry_of(self);
  uint32_t seen = 0;
  for (int32_t i = 0; i < count; i++) {
    int64_t dim = dims[i];
    graft_status status = wrap_dim(&dim, self->ndim);
    if (status) return status;
    if (seen >> dim & 1) {
      return err_set(GRAFT_INVALID_ARGUMENT, "duplicate dims are not allowed: %s", TNS_INTS(count, dims));
    }
    seen |= 1u << dim;
    g.sizes[i] = self->sizes[dim], g.strides[i] = self->strides[dim];
  }
  return geometry_view(self, &g, view);
}

graft_status tns_select(graft_tensor *self, int64_t dim, int64_t index, graft_tensor **view) {
  if (self->ndim == 0) {
    return err_set(GRAFT_INVALID_ARGUMENT, "cannot be applied to a tensor without dimensions (%s)", TNS_SHAPE(self));
  }
  graft_status status = wrap_dim(&dim, self->ndim);
  if (status) return status;
  int64_t size = self->sizes[dim];
  if (index < -size || index >= size) {
    return err_set(GRAFT_INVALID_ARGUMENT, "index %" PRId64 " out of range for %s at dimension %" PRId64, index,
                   TNS_SHAPE(self), dim);
  }
  geometry g = geometry_of(self);
  g.offset += (index < 0 ? index + size : index) * self->strides[dim];
  geometry_drop(&g, dim);
  return geometry_view(self, &g, view);
}

/* A bound of a slice, counted from the end where negative, brought into [0, size]. */
static int64_t slice_bound(int64_t bound, int64_t size) {
  if (bound < 0) bound += size;
  if (bound < 0) return 0;
  return bound > size ? size : bound;
}

graft_status tns_slice(graft_tensor *self, int64_t dim, const int64_t *start, const int64_t *end, int64_t step,
                       graft_tensor **view) {
  if (self->ndim == 0) {
    return err_set(GRAFT_INVALID_ARGUMENT, "cannot be applied to a tensor without dimensions (%s)", TNS_SHAPE(self));
  }
  graft_status status = wrap_dim(&dim, self->ndim);
  if (status) return status;
  if (step <= 0) return err_set(GRAFT_INVALID_ARGUMENT, "step must be positive, but got %" PRId64, step);
  int64_t size = self->sizes[dim];
  int64_t first = slice_bound(start ? *start : 0, size);
  int64_t last = slice_bound(end ? *end : INT64_MAX, size);
  int64_t length = last > first ? last - first : 0;
  geometry g = geometry_of(self);
  g.offset += first * self->strides[dim];
  g.sizes[dim] = length / step + (length % step != 0);
  if (__builtin_mul_overflow(self->strides[dim], step, &g.strides[dim])) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "step %" PRId64 " of dimension %" PRId64 " with stride %" PRId64 " overflows", step, dim,
                   self->strides[dim]);
  }
  return geometry_view(self, &g, view);
}

static graft_status check_split(const graft_tensor *self, uint32_t count, const int64_t *sizes, int64_t *dim) {
  if (self->ndim == 0) {
    return err_set(GRAFT_INVALID_ARGUMENT, "expects a tensor with at least 1 dimension, but got %s", TNS_SHAPE(self));
  }
  graft_status status = wrap_dim(dim, self->ndim);
  if (status) return status;
  int64_t sum = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (sizes[i] < 0) {
      return err_set(GRAFT_INVALID_ARGUMENT, "expects only non-negative entries, but got %s", TNS_INTS(count, sizes));
    }
    if (__builtin_add_overflow(sum, sizes[i], &sum)) sum = INT64_MAX;
  }
  if (sum != self->sizes[*dim]) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "expects split_sizes to sum exactly to %" PRId64
                   " (the size "
                   "of %s at dimension %" PRId64 "), but got %s",
                   self->sizes[*dim], TNS_SHAPE(self), *dim, TNS_INTS(count, sizes));
  }
  return GRAFT_OK;
}

graft_status tns_split_with_sizes(graft_tensor *self, uint32_t count, const int64_t *sizes, int64_t dim,
                                  graft_tensor **views) {
  graft_status status = check_split(self, count, sizes, &dim);
  if (status) return status;
  geometry g = geometry_of(self);
  for (uint32_t i = 0; i < count; i++) {
    graft_tensor *piece = NULL;
    g.sizes[dim] = sizes[i];
    status = geometry_view(self, &g, &piece);
    if (status) {
      while (i > 0) graft_tensor_release(views[--i]), views[i] = NULL;
      return status;
    }
    views[i] = piece;
    g.offset += sizes[i] * self->strides[dim];
  }
  return GRAFT_OK;
}

graft_status tns_squeeze_dim(graft_tensor *self, int64_t dim, graft_tensor **view) {
  return tns_squeeze_dims(self, 1, &dim, view);
}

graft_status tns_squeeze_dims(graft_tensor *self, uint32_t count, const int64_t *dims, graft_tensor **view) {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < count; i++) {
    int64_t dim = dims[i];
    graft_status status = wrap_dim(&dim, self->ndim);
    if (status) return status;
    if (mask >> dim & 1) {
      return err_set(GRAFT_INVALID_ARGUMENT, "dim %" PRId64 " appears multiple times in the list of dims %s", dim,
                     TNS_INTS(count, dims));
    }
    mask |= 1u << dim;
  }
  geometry g = geometry_of(self);
  for (int32_t i = self->ndim - 1; i >= 0; i--) {
    if ((mask >> i & 1) && self->sizes[i] == 1) geometry_drop(&g, i);
  }
  return geometry_view(self, &g, view);
}

graft_status tns_unsqueeze(graft_tensor *self, int64_t dim, graft_tensor **view) {
  graft_status status = wrap_dim(&dim, self->ndim + 1);
  if (status) return status;
  geometry g = geometry_of(self);
  int64_t stride = dim >= self->ndim ? 1 : self->sizes[dim] * self->strides[dim];
  geometry_add(&g, dim, 1, stride);
  return geometry_view(self, &g, view);
}
