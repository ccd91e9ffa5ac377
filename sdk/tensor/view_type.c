/* Views with another element type, and the conjugate and negative bits. */
#include <inttypes.h>
#include <string.h>

#include "tensor/view.h"

/* A view of another element type; tns_view keeps the type, and this is the one place that changes it. */
static graft_status retype(graft_tensor *self, graft_dtype dtype, int32_t ndim, const int64_t *sizes,
                           const int64_t *strides, int64_t offset, uint32_t flags, graft_tensor **view) {
  graft_tensor *made;
  graft_status status = tns_view(self, ndim, sizes, strides, offset, &made);
  if (status) return status;
  made->dtype = dtype;
  made->flags = flags;
  *view = made;
  return GRAFT_OK;
}

/* The real and imaginary parts of what is stored, the conjugate bit not considered. */
static graft_status as_real_physical(graft_tensor *self, graft_tensor **view) {
  if (self->ndim == GRAFT_MAX_DIMS) {
    return err_set(GRAFT_INVALID_ARGUMENT, "%s already has %d dimensions, the most there can be", TNS_SHAPE(self),
                   GRAFT_MAX_DIMS);
  }
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < self->ndim; i++) sizes[i] = self->sizes[i], strides[i] = 2 * self->strides[i];
  sizes[self->ndim] = 2, strides[self->ndim] = 1;
  return retype(self, dt_real(self->dtype), self->ndim + 1, sizes, strides, 2 * self->offset,
                self->flags & ~(uint32_t)TNS_CONJ, view);
}

graft_status tns_view_as_real(graft_tensor *self, graft_tensor **view) {
  if (!dt_is_complex(self->dtype)) {
    return err_set(GRAFT_INVALID_ARGUMENT, "only complex tensors can be seen as real, but got %s", TNS_SHAPE(self));
  }
  if (self->flags & TNS_CONJ) {
    return err_set(GRAFT_INVALID_ARGUMENT, "%s is an unresolved conjugate; copy it first", TNS_SHAPE(self));
  }
  return as_real_physical(self, view);
}

graft_status tns_conj(graft_tensor *self, graft_tensor **view) {
  graft_status status = tns_alias(self, view);
  if (!status && dt_is_complex(self->dtype)) (*view)->flags ^= TNS_CONJ;
  return status;
}

/* Part 0 or 1 of each stored element. */
static graft_status part(graft_tensor *self, int64_t index, graft_tensor **view) {
  graft_tensor *pairs;
  graft_status status = as_real_physical(self, &pairs);
  if (status) return status;
  status = tns_select(pairs, pairs->ndim - 1, index, view);
  graft_tensor_release(pairs);
  return status;
}

graft_status tns_real(graft_tensor *self, graft_tensor **view) {
  return dt_is_complex(self->dtype) ? part(self, 0, view) : tns_alias(self, view);
}

graft_status tns_imag(graft_tensor *self, graft_tensor **view) {
  if (!dt_is_complex(self->dtype)) {
    return err_set(GRAFT_INVALID_ARGUMENT, "only complex tensors have imaginary parts, but got %s", TNS_SHAPE(self));
  }
  graft_tensor *imaginary;
  graft_status status = part(self, 1, &imaginary);
  if (status) return status;
  if (self->flags & TNS_CONJ) imaginary->flags ^= TNS_NEG;
  *view = imaginary;
  return GRAFT_OK;
}

static graft_status retype_error(const graft_tensor *self, graft_dtype dtype, const char *what) {
  return err_set(GRAFT_INVALID_ARGUMENT, "%s to see %s as %s, whose elements have another size", what, TNS_SHAPE(self),
                 graft_dtype_name(dtype));
}

/* Each element becomes `ratio` smaller ones. */
static graft_status retype_smaller(graft_tensor *self, graft_dtype dtype, int64_t ratio, graft_tensor **view) {
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];
  int32_t last = self->ndim - 1;
  for (int32_t i = 0; i < last; i++) sizes[i] = self->sizes[i], strides[i] = self->strides[i] * ratio;
  sizes[last] = self->sizes[last] * ratio, strides[last] = 1;
  return retype(self, dtype, self->ndim, sizes, strides, self->offset * ratio, self->flags, view);
}

/* `ratio` elements become one. */
static graft_status retype_larger(graft_tensor *self, graft_dtype dtype, int64_t ratio, graft_tensor **view) {
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];
  int32_t last = self->ndim - 1;
  bool divisible = self->sizes[last] % ratio == 0 && self->offset % ratio == 0;
  for (int32_t i = 0; i < last; i++) {
    sizes[i] = self->sizes[i], strides[i] = self->strides[i] / ratio;
    divisible &= self->strides[i] % ratio == 0;
  }
  if (!divisible) {
    return retype_error(self, dtype,
                        "the size of the last dimension, the storage offset and the other strides must be "
                        "divisible by the ratio of the element sizes");
  }
  sizes[last] = self->sizes[last] / ratio, strides[last] = 1;
  return retype(self, dtype, self->ndim, sizes, strides, self->offset / ratio, self->flags, view);
}

graft_status tns_view_of_dtype(graft_tensor *self, graft_dtype dtype, graft_tensor **view) {
  int64_t from = (int64_t)dt_bytes(self->dtype), to = (int64_t)dt_bytes(dtype);
  if (to == 0) return err_set(GRAFT_INVALID_ARGUMENT, "0x%08" PRIx32 " is not a dtype", dtype);
  if (self->flags & (TNS_CONJ | TNS_NEG)) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "%s is an unresolved conjugate or negative and can't be seen as %s; copy "
                   "it first",
                   TNS_SHAPE(self), graft_dtype_name(dtype));
  }
  if (from == to) { /* the same dtype included */
    return retype(self, dtype, self->ndim, self->sizes, self->strides, self->offset, self->flags, view);
  }
  if (self->ndim == 0) return retype_error(self, dtype, "at least one dimension is needed");
  if (self->strides[self->ndim - 1] != 1)
    return retype_error(self, dtype, "the stride of the last dimension must be 1");
  return from > to ? retype_smaller(self, dtype, from / to, view) : retype_larger(self, dtype, to / from, view);
}
