#include "conformance/judge/array.h"

#include <stdlib.h>
#include <string.h>

bool cf_array_new(cf_array *a, graft_dtype dtype, int32_t ndim, const int64_t *sizes) {
  int64_t n = tns_numel(ndim, sizes);
  memset(a, 0, sizeof *a);
  if (n < 0) return false;
  a->dtype = dtype, a->ndim = ndim, a->numel = n;
  for (int32_t d = 0; d < ndim; d++) a->sizes[d] = sizes[d];
  a->v = calloc((size_t)n + 1, sizeof *a->v);
  if (a->v) return true;
  memset(a, 0, sizeof *a);
  return false;
}

void cf_array_free(cf_array *a) {
  free(a->v);
  memset(a, 0, sizeof *a);
}

void *cf_array_bytes(const cf_array *a, graft_dtype dtype) {
  uint64_t each = dt_bytes(dtype);
  unsigned char *bytes = calloc((size_t)a->numel + 1, each);
  if (bytes) dt_store_row(dtype, bytes, (int64_t)each, a->numel, dt_parts_of(a->v));
  return bytes;
}

bool cf_array_read(cf_array *a, graft_tensor *tensor) {
  graft_dtype dtype = graft_tensor_dtype(tensor);
  if (!cf_array_new(a, dtype, graft_tensor_ndim(tensor), graft_tensor_sizes(tensor))) return false;
  uint64_t each = dt_bytes(dtype);
  unsigned char *bytes = malloc((size_t)a->numel * each + 1);
  bool ok = bytes && graft_tensor_to_host(tensor, bytes) == GRAFT_OK;
  if (ok) dt_load_row(dtype, bytes, (int64_t)each, a->numel, dt_parts_of(a->v));
  free(bytes);
  if (!ok) cf_array_free(a);
  return ok;
}

cf_axis cf_axis_of(const cf_array *a, int64_t dim) {
  cf_axis x = {1, 1, 1};
  if (a->ndim == 0) return x;
  if (dim < 0) dim += a->ndim;
  for (int32_t d = 0; d < a->ndim; d++) {
    if (d < dim)
      x.outer *= a->sizes[d];
    else if (d == dim)
      x.length = a->sizes[d];
    else
      x.inner *= a->sizes[d];
  }
  return x;
}
