/* What gradients of this family are made of, beside ops. */
#include "ops/linalg/lin.h"

#include <string.h>

static graft_tensor *expanded(fx *s, graft_tensor *a, const int64_t *batch, int32_t dims) {
  int64_t sizes[GRAFT_MAX_DIMS];
  memcpy(sizes, batch, (size_t)dims * sizeof *sizes);
  sizes[dims] = a->sizes[a->ndim - 2], sizes[dims + 1] = a->sizes[a->ndim - 1];
  bool same = a->ndim == dims + 2 && !memcmp(sizes, a->sizes, (size_t)a->ndim * sizeof *sizes);
  return same ? a : fx_expand(s, a, sizes, (uint32_t)dims + 2, false);
}

static graft_tensor *as_batch(fx *s, graft_tensor *a, int64_t count) {
  if (!a) return NULL;
  return fx_reshape(s, a, 3, (const int64_t[]){count, a->sizes[a->ndim - 2], a->sizes[a->ndim - 1]});
}

graft_tensor *lin_mm(fx *s, graft_tensor *a, graft_tensor *b) {
  if (!a || !b) return NULL;
  if (a->ndim == 2 && b->ndim == 2) return fx_mm(s, a, b);
  int32_t dims = (a->ndim > b->ndim ? a->ndim : b->ndim) - 2;
  int64_t sizes[GRAFT_MAX_DIMS], count = 1;
  for (int32_t d = 0; d < dims; d++) {
    int32_t i = d - dims + a->ndim - 2, j = d - dims + b->ndim - 2;
    int64_t n = i >= 0 ? a->sizes[i] : 1, m = j >= 0 ? b->sizes[j] : 1;
    count *= sizes[d] = n == 1 ? m : n;
  }
  graft_tensor *x = expanded(s, a, sizes, dims), *y = expanded(s, b, sizes, dims);
  graft_tensor *out = fx_bmm(s, as_batch(s, x, count), as_batch(s, y, count));
  sizes[dims] = a->sizes[a->ndim - 2], sizes[dims + 1] = b->sizes[b->ndim - 1];
  return fx_reshape(s, out, dims + 2, sizes);
}

graft_tensor *lin_diagonal(fx *s, graft_tensor *a) {
  return a ? fx_diagonal(s, a, 0, a->ndim - 2, a->ndim - 1) : NULL;
}

graft_tensor *lin_eye(fx *s, int64_t size, graft_tensor *like) {
  return like ? fx_eye_m(s, size, size, like->dtype, like->device) : NULL;
}

graft_tensor *lin_column(fx *s, graft_tensor *a) {
  return a ? fx_unsqueeze(s, a, a->ndim) : NULL;
}

graft_tensor *lin_row(fx *s, graft_tensor *a) {
  return a ? fx_unsqueeze(s, a, a->ndim - 1) : NULL;
}

graft_tensor *lin_diagonal_matrix(fx *s, graft_tensor *diagonal) {
  if (!diagonal) return NULL;
  return fx_mul(s, lin_eye(s, diagonal->sizes[diagonal->ndim - 1], diagonal), lin_column(s, diagonal));
}

graft_tensor *lin_add(fx *s, graft_tensor *a, graft_tensor *b) {
  return a && b ? fx_add(s, a, b) : a ? a : b;
}

graft_tensor *lin_narrow(fx *s, graft_tensor *a, int32_t from_end, int64_t from, int64_t size) {
  if (!a) return NULL;
  int64_t dim = a->ndim - from_end, end = from + size;
  if (a->sizes[dim] == size) return a;
  return fx_slice_Tensor(s, a, dim, &from, &end, 1);
}
