/* Views that merge, divide and broadcast dims. */
#include <inttypes.h>
#include <string.h>

#include "tensor/view.h"

static graft_status check_rank(int32_t ndim) {
  if (ndim <= GRAFT_MAX_DIMS) return GRAFT_OK;
  return err_set(GRAFT_INVALID_ARGUMENT, "%d dimensions, but at most %d are supported", ndim, GRAFT_MAX_DIMS);
}

/* Replaces a -1 in `sizes` by what numel leaves for it. */
static graft_status infer_sizes(int64_t numel, int32_t ndim, const int64_t *sizes, int64_t *result) {
  int64_t known = 1;
  int32_t open = -1;
  for (int32_t i = 0; i < ndim; i++) {
    if (sizes[i] == -1) {
      if (open >= 0) {
        return err_set(GRAFT_INVALID_ARGUMENT, "only one dimension of %s can be inferred", TNS_INTS(ndim, sizes));
      }
      open = i;
    } else if (sizes[i] < 0) {
      return err_set(GRAFT_INVALID_ARGUMENT, "invalid shape dimension %" PRId64 " at index %d of shape %s", sizes[i], i,
                     TNS_INTS(ndim, sizes));
    }
    result[i] = sizes[i];
  }
  if (open >= 0) result[open] = 1;
  known = tns_numel(ndim, result);
  bool fits = known == numel || (open >= 0 && known > 0 && numel % known == 0);
  if (!fits) {
    return err_set(GRAFT_INVALID_ARGUMENT, "shape %s is invalid for input of size %" PRId64, TNS_INTS(ndim, sizes),
                   numel);
  }
  if (open < 0) return GRAFT_OK;
  if (known == 0) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "cannot reshape tensor of 0 elements into shape %s because the unspecified "
                   "dimension size -1 can be any value and is ambiguous",
                   TNS_INTS(ndim, sizes));
  }
  result[open] = numel / known;
  return GRAFT_OK;
}

/* Strides with which a tensor of these sizes and strides can be seen as new_sizes (of the same numel); false: only a
 * copy can. */
static bool compute_strides(int32_t ndim, const int64_t *sizes, const int64_t *strides, int32_t new_ndim,
                            const int64_t *new_sizes, int64_t *new_strides) {
  if (ndim == 0) {
    for (int32_t i = 0; i < new_ndim; i++) new_strides[i] = 1;
    return true;
  }
  if (tns_numel(ndim, sizes) == 0) {
    bool same = ndim == new_ndim && memcmp(sizes, new_sizes, (size_t)ndim * sizeof *sizes) == 0;
    if (same)
      memcpy(new_strides, strides, (size_t)ndim * sizeof *strides);
    else
      tns_contiguous_strides(new_ndim, new_sizes, new_strides);
    return true;
  }
  /* From the innermost dim outward: collect old dims that lie one after another into a run, and let new dims use up
   * exactly that run. */
  int32_t v = new_ndim - 1;
  int64_t base = strides[ndim - 1], run = 1, used = 1;
  for (int32_t d = ndim - 1; d >= 0; d--) {
    run *= sizes[d];
    bool ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != run * base);
    if (!ends) continue;
    for (; v >= 0 && (used < run || new_sizes[v] == 1); v--) {
      new_strides[v] = used * base;
      used *= new_sizes[v];
    }
    if (used != run) return false;
    if (d > 0) base = strides[d - 1], run = 1, used = 1;
  }
  return v == -1;
}

graft_status tns_view_sizes(graft_tensor *self, int32_t ndim, const int64_t *sizes, graft_tensor **view) {
  int64_t full[GRAFT_MAX_DIMS] = {0}, strides[GRAFT_MAX_DIMS];
  graft_status status = check_rank(ndim);
  if (!status) status = infer_sizes(self->numel, ndim, sizes, full);
  if (status) return status;
  if (!compute_strides(self->ndim, self->sizes, self->strides, ndim, full, strides)) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "size %s is not compatible with the size and stride of %s (at least one "
                   "dimension spans across two contiguous subspaces); use reshape, which copies",
                   TNS_INTS(ndim, sizes), TNS_SHAPE(self));
  }
  return tns_view(self, ndim, full, strides, self->offset, view);
}

/* Size and stride of dim i of an expanded tensor; the dims inside of i are done. */
static graft_status expand_dim(const graft_tensor *self, int32_t ndim, const int64_t *wanted, int32_t i, int64_t *sizes,
                               int64_t *strides) {
  int32_t d = i - (ndim - self->ndim);
  int64_t size = d >= 0 ? self->sizes[d] : 1, target = wanted[i];
  if (d >= 0)
    strides[i] = self->strides[d];
  else
    strides[i] = i + 1 < ndim && self->ndim > 0 ? sizes[i + 1] * strides[i + 1] : 0;
  if (target == -1 && d < 0) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "size -1 isn't allowed in a leading, non-existing dimension %d "
                   "(size %s of %s)",
                   i, TNS_INTS(ndim, wanted), TNS_SHAPE(self));
  }
  sizes[i] = target == -1 ? size : target;
  if (sizes[i] == size) return GRAFT_OK;
  if (size != 1 || target < 0) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "the expanded size %" PRId64 " must match the existing size %" PRId64
                   " at non-singleton dimension %d (target %s, tensor %s)",
                   target, size, i, TNS_INTS(ndim, wanted), TNS_SHAPE(self));
  }
  strides[i] = 0;
  return GRAFT_OK;
}

graft_status tns_expand(graft_tensor *self, int32_t ndim, const int64_t *sizes, graft_tensor **view) {
  graft_status status = check_rank(ndim);
  if (status) return status;
  if (ndim < self->ndim) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "the number of sizes in %s must be at least the number of dimensions of "
                   "%s",
                   TNS_INTS(ndim, sizes), TNS_SHAPE(self));
  }
  int64_t full[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];
  for (int32_t i = ndim - 1; i >= 0; i--) {
    status = expand_dim(self, ndim, sizes, i, full, strides);
    if (status) return status;
  }
  return tns_view(self, ndim, full, strides, self->offset, view);
}

static graft_status check_broadcast_dims(const graft_tensor *self, int32_t ndim, const int64_t *sizes, uint32_t count,
                                         const int64_t *dims) {
  graft_status status = check_rank(ndim);
  if (status) return status;
  bool ascending = count == (uint32_t)self->ndim;
  for (uint32_t i = 0; ascending && i < count; i++) {
    ascending = dims[i] > (i ? dims[i - 1] : -1) && dims[i] < ndim;
  }
  if (!ascending) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "expected one dim of shape %s for each of %s, strictly "
                   "ascending, but got %s",
                   TNS_INTS(ndim, sizes), TNS_SHAPE(self), TNS_INTS(count, dims));
  }
  for (uint32_t i = 0; i < count; i++) {
    if (self->sizes[i] == 1 || self->sizes[i] == sizes[dims[i]]) continue;
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "size %" PRId64
                   " at dimension %u of %s cannot be broadcast "
                   "to %" PRId64,
                   self->sizes[i], i, TNS_SHAPE(self), sizes[dims[i]]);
  }
  return GRAFT_OK;
}

graft_status tns_broadcast_in_dim(graft_tensor *self, int32_t ndim, const int64_t *sizes, uint32_t count,
                                  const int64_t *dims, graft_tensor **view) {
  graft_status status = check_broadcast_dims(self, ndim, sizes, count, dims);
  if (status) return status;
  int64_t strides[GRAFT_MAX_DIMS];
  uint32_t own = 0;
  for (int32_t i = 0; i < ndim; i++) {
    if (own < count && dims[own] == i) {
      strides[i] = self->sizes[own] == sizes[i] ? self->strides[own] : 0;
      own++;
    } else if (sizes[i] != 1) {
      strides[i] = 0;
    } else {
      strides[i] = own == count ? 1 : self->strides[own] * self->sizes[own];
    }
  }
  return tns_view(self, ndim, sizes, strides, self->offset, view);
}

static graft_status collapse_strides(const graft_tensor *self, int64_t start, int64_t end, int64_t *length,
                                     int64_t *stride) {
  *length = self->sizes[end], *stride = self->strides[end];
  for (int64_t i = end - 1; i >= start; i--) {
    bool nested =
        self->sizes[i] == 1 || self->sizes[i + 1] == 1 || self->strides[i] == self->strides[i + 1] * self->sizes[i + 1];
    if (!nested && self->numel != 0) {
      return err_set(GRAFT_INVALID_ARGUMENT,
                     "dimensions %" PRId64 " to %" PRId64
                     " of %s can't be seen as "
                     "one; use collapse, which copies",
                     start, end, TNS_SHAPE(self));
    }
    if (self->sizes[i] != 1 && self->strides[i] < *stride) *stride = self->strides[i];
    *length *= self->sizes[i];
  }
  return GRAFT_OK;
}

graft_status tns_collapse_view(graft_tensor *self, int64_t start, int64_t end, graft_tensor **view) {
  int64_t rank = self->ndim > 0 ? self->ndim : 1;
  if (start < 0 || end < start || end >= rank) {
    return err_set(GRAFT_INVALID_ARGUMENT, "dimensions %" PRId64 " to %" PRId64 " are not an interval of %s", start,
                   end, TNS_SHAPE(self));
  }
  int64_t one = 1;
  if (self->ndim == 0) return tns_view(self, 1, &one, &one, self->offset, view);
  if (start == end) return tns_alias(self, view);
  int64_t length, stride;
  graft_status status = collapse_strides(self, start, end, &length, &stride);
  if (status) return status;
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];
  int32_t ndim = 0;
  for (int32_t i = 0; i < self->ndim; i++) {
    if (i > start && i <= end) continue;
    sizes[ndim] = i == start ? length : self->sizes[i];
    strides[ndim++] = i == start ? stride : self->strides[i];
  }
  if (self->numel == 0) tns_contiguous_strides(ndim, sizes, strides);
  return tns_view(self, ndim, sizes, strides, self->offset, view);
}

graft_status tns_split_dim(graft_tensor *self, int64_t dim, int64_t outer_length, graft_tensor **view) {
  graft_status status = check_rank(self->ndim + 1);
  if (status) return status;
  if (dim < 0 || dim >= self->ndim) {
    return err_set(GRAFT_INVALID_ARGUMENT, "dim %" PRId64 " is not one of %s", dim, TNS_SHAPE(self));
  }
  if (outer_length <= 0 || self->sizes[dim] % outer_length != 0) {
    return err_set(GRAFT_INVALID_ARGUMENT, "dimension %" PRId64 " of %s can't be divided into %" PRId64 " equal parts",
                   dim, TNS_SHAPE(self), outer_length);
  }
  int64_t inner = self->sizes[dim] / outer_length;
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];
  int32_t n = 0;
  for (int32_t i = 0; i < self->ndim; i++) {
    if (i == dim) sizes[n] = outer_length, strides[n++] = self->strides[i] * inner;
    sizes[n] = i == dim ? inner : self->sizes[i];
    strides[n++] = self->strides[i];
  }
  return tns_view(self, n, sizes, strides, self->offset, view);
}
