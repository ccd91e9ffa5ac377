/* Reference kernels of indexing, and what those of scatter share with them. */
#include <string.h>

#include "ops/core/ref.h"
#include "ops/indexing/indexing.h"

graft_status idx_wrap(const char *op, int64_t *index, bool wraps, int64_t dim, int64_t size) {
  if (*index >= (wraps ? -size : 0) && *index < size) {
    if (*index < 0) *index += size;
    return GRAFT_OK;
  }
  if (dim == IDX_NO_DIM)
    return err_about(GRAFT_OUT_OF_RANGE, op, "index %lld is out of range for %lld elements", (long long)*index,
                     (long long)size);
  return err_about(GRAFT_OUT_OF_RANGE, op, "index %lld is out of range for dim %lld of size %lld", (long long)*index,
                   (long long)dim, (long long)size);
}

/* --- nonzero --- */

static bool is_set(const ref_array *x, int64_t i) {
  return x->re[i] != 0 || (x->im && x->im[i] != 0);
}

/* Of the first `rows`, wherever the rows of `to` lie; returns how many there are. */
static int64_t write_positions(const graft_tensor_desc *self, const ref_array *x, int64_t rows,
                               const graft_tensor_desc *to) {
  int64_t found = 0, *out = (int64_t *)(void *)ref_data(to);
  for (int64_t i = 0; i < x->count && found < rows; i++) {
    if (!is_set(x, i)) continue;
    found++;
    int64_t rest = i;
    for (int32_t d = self->dl.ndim - 1; d >= 0; d--) {
      out[d * to->dl.strides[1]] = rest % self->dl.shape[d];
      rest /= self->dl.shape[d];
    }
    out += to->dl.strides[0];
  }
  return found;
}

graft_status kernel_nonzero(const graft_exec *exec, const graft_args_nonzero *a) {
  REF_OWNED ref_array x = ref_read(a->self);
  if (!x.re) return ref_no_memory();
  int64_t count = 0;
  for (int64_t i = 0; i < x.count; i++) count += is_set(&x, i);
  const graft_tensor_desc *out;
  graft_status status = ref_host()->output_shape(exec, a->out, 2, (int64_t[]){count, a->self->dl.ndim}, &out);
  if (!status && count) write_positions(a->self, &x, count, out);
  return status;
}

graft_status kernel_nonzero_static(const graft_exec *exec, const graft_args_nonzero_static *a) {
  REF_OWNED ref_array x = ref_read(a->self);
  if (!x.re) return ref_no_memory();
  int64_t *out = (int64_t *)(void *)ref_data(a->out);
  for (int64_t row = write_positions(a->self, &x, a->size, a->out); row < a->size; row++) {
    for (int32_t d = 0; d < a->self->dl.ndim; d++) {
      out[row * a->out->dl.strides[0] + d * a->out->dl.strides[1]] = a->fill_value;
    }
  }
  return GRAFT_OK;
}

/* --- masked_select --- */

graft_status kernel_masked_select(const graft_exec *exec, const graft_args_masked_select *a) {
  REF_OWNED ref_array x = ref_read(a->self), mask = ref_read(a->mask), y = ref_new(x.count, x.im != NULL);
  graft_status status = x.re && mask.re && y.re ? GRAFT_OK : ref_no_memory();
  int64_t count = 0;
  for (int64_t i = 0; !status && i < x.count; i++) {
    if (mask.re[i] == 0) continue;
    ref_take(&y, count++, &x, i);
  }
  const graft_tensor_desc *out;
  if (!status) status = ref_host()->output_shape(exec, a->out, 1, &count, &out);
  y.count = count;
  if (!status && count) ref_write(out, &y);
  return status;
}

/* --- index.Tensor and index_put --- */

/* Offsets of all combinations of some dims, row-major. */
typedef struct table {
  int64_t count, *at;
} table;

static table table_of(int32_t ndim, const int64_t *sizes, const int64_t *strides) {
  table t = {tns_numel(ndim, sizes), NULL};
  t.at = ref_zeros(t.count, sizeof *t.at);
  for (int64_t n = 0; t.at && n < t.count; n++) {
    int64_t rest = n;
    for (int32_t d = ndim - 1; d >= 0; d--) {
      t.at[n] += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
  }
  return t;
}

typedef struct broadcast {
  int32_t ndim;
  int64_t sizes[GRAFT_MAX_DIMS];
} broadcast;

static broadcast broadcast_of(const graft_tensor_list *indices) {
  broadcast b = {0, {0}};
  for (uint64_t i = 0; i < indices->count; i++) {
    if (indices->items[i] && indices->items[i]->dl.ndim > b.ndim) b.ndim = indices->items[i]->dl.ndim;
  }
  for (int32_t d = 0; d < b.ndim; d++) b.sizes[d] = 1;
  for (uint64_t i = 0; i < indices->count; i++) {
    if (!indices->items[i]) continue;
    const graft_dl_tensor *t = &indices->items[i]->dl;
    for (int32_t d = 0; d < t->ndim; d++) {
      if (t->shape[d] != 1) b.sizes[b.ndim - t->ndim + d] = t->shape[d];
    }
  }
  return b;
}

/* Adds index * stride to each offset of the table. */
static graft_status add_index(const char *op, table *t, const broadcast *b, const graft_tensor_desc *index, int64_t dim,
                              int64_t size, int64_t stride) {
  REF_OWNED ref_array x = ref_read(index);
  if (!x.re) return ref_no_memory();
  int64_t own[GRAFT_MAX_DIMS] = {0}, strides[GRAFT_MAX_DIMS] = {0};
  tns_contiguous_strides(index->dl.ndim, index->dl.shape, own);
  for (int32_t d = 0; d < index->dl.ndim; d++) {
    strides[b->ndim - index->dl.ndim + d] = index->dl.shape[d] == 1 ? 0 : own[d];
  }
  table from = table_of(b->ndim, b->sizes, strides);
  graft_status status = from.at ? GRAFT_OK : ref_no_memory();
  for (int64_t i = 0; i < t->count && !status; i++) {
    int64_t value = (int64_t)x.re[from.at[i]];
    status = idx_wrap(op, &value, true, dim, size);
    if (!status) t->at[i] += value * stride;
  }
  free(from.at);
  return status;
}

static int64_t *combine(const table *outer, const table *middle, const table *inner, int64_t *count) {
  *count = outer->count * middle->count * inner->count;
  int64_t *at = malloc(((size_t)*count + 1) * sizeof *at), n = 0;
  for (int64_t i = 0; at && i < outer->count; i++) {
    for (int64_t j = 0; j < middle->count; j++) {
      for (int64_t k = 0; k < inner->count; k++) at[n++] = outer->at[i] + middle->at[j] + inner->at[k];
    }
  }
  return at;
}

int64_t *idx_places(const char *op, const graft_tensor_desc *self, const graft_tensor_list *indices, int64_t *count,
                    graft_status *status) {
  int64_t strides[GRAFT_MAX_DIMS] = {0}, zeros[GRAFT_MAX_DIMS] = {0};
  int64_t sizes[2][GRAFT_MAX_DIMS], steps[2][GRAFT_MAX_DIMS]; /* dims not indexed, before and after */
  int32_t n[2] = {0, 0}, first = -1, last = -1, indexed = 0;
  tns_contiguous_strides(self->dl.ndim, self->dl.shape, strides);
  for (uint64_t i = 0; i < indices->count; i++) {
    if (!indices->items[i]) continue;
    if (first < 0) first = (int32_t)i;
    last = (int32_t)i;
    indexed++;
  }
  bool neighbours = last - first == indexed - 1;
  for (int32_t i = 0; i < self->dl.ndim; i++) {
    if ((uint64_t)i < indices->count && indices->items[i]) continue;
    int side = neighbours && i < first ? 0 : 1;
    sizes[side][n[side]] = self->dl.shape[i];
    steps[side][n[side]++] = strides[i];
  }
  broadcast b = broadcast_of(indices);
  table outer = table_of(n[0], sizes[0], steps[0]), inner = table_of(n[1], sizes[1], steps[1]);
  table middle = table_of(b.ndim, b.sizes, zeros);
  int64_t *at = NULL;
  *status = outer.at && inner.at && middle.at ? GRAFT_OK : ref_no_memory();
  for (uint64_t i = 0; i < indices->count && !*status; i++) {
    if (indices->items[i]) {
      *status = add_index(op, &middle, &b, indices->items[i], (int64_t)i, self->dl.shape[i], strides[i]);
    }
  }
  if (!*status && !(at = combine(&outer, &middle, &inner, count))) *status = ref_no_memory();
  free(outer.at);
  free(inner.at);
  free(middle.at);
  return at;
}

graft_status kernel_index_Tensor(const graft_exec *exec, const graft_args_index_Tensor *a) {
  graft_status status;
  int64_t count, *at = idx_places("aten::index.Tensor", a->self, &a->indices, &count, &status);
  if (!at) return status;
  REF_OWNED ref_array x = ref_read(a->self), y = ref_new(count, dt_is_complex(a->out->dl.dtype));
  if (!x.re || !y.re) status = ref_no_memory();
  for (int64_t i = 0; i < count && !status; i++) {
    ref_take(&y, i, &x, at[i]);
  }
  if (!status) ref_write(a->out, &y);
  free(at);
  return status;
}

/* --- take --- */

graft_status kernel_take(const graft_exec *exec, const graft_args_take *a) {
  REF_OWNED ref_array x = ref_read(a->self), index = ref_read(a->index),
                      y = ref_new(index.count, dt_is_complex(a->out->dl.dtype));
  if (!x.re || !index.re || !y.re) return ref_no_memory();
  for (int64_t i = 0; i < index.count; i++) {
    int64_t from = (int64_t)index.re[i];
    graft_status status = idx_wrap("aten::take", &from, true, IDX_NO_DIM, x.count);
    if (status) return status;
    ref_take(&y, i, &x, from);
  }
  ref_write(a->out, &y);
  return GRAFT_OK;
}

/* --- along one dim --- */

graft_status kernel_index_select(const graft_exec *exec, const graft_args_index_select *a) {
  REF_OWNED ref_array x = ref_read(a->self), index = ref_read(a->index),
                      y = ref_new(ref_numel(a->out), dt_is_complex(a->out->dl.dtype));
  if (!x.re || !index.re || !y.re) return ref_no_memory();
  ref_split s = ref_split_at(a->self, a->dim);
  for (int64_t n = 0; n < y.count; n++) {
    int64_t inner = n % s.inner, row = n / s.inner % index.count, outer = n / s.inner / index.count;
    int64_t value = (int64_t)index.re[row];
    graft_status status = idx_wrap("aten::index_select", &value, false, a->dim, s.size);
    if (status) return status;
    ref_take(&y, n, &x, (outer * s.size + value) * s.inner + inner);
  }
  ref_write(a->out, &y);
  return GRAFT_OK;
}

idx_line idx_line_of(const char *op, const graft_tensor_desc *self, const graft_tensor_desc *index, int64_t dim) {
  idx_line l = {op, self, index, dim, {0}};
  tns_contiguous_strides(self->dl.ndim, self->dl.shape, l.strides);
  return l;
}

int64_t idx_line_at(const idx_line *l, int64_t i, int64_t value, graft_status *status) {
  int64_t size = l->self->dl.ndim ? l->self->dl.shape[l->dim] : 1, at = 0;
  if ((*status = idx_wrap(l->op, &value, false, l->dim, size))) return -1;
  if (!l->self->dl.ndim || !l->index->dl.ndim) return value; /* rank 0 counts as rank 1 */
  for (int32_t d = l->index->dl.ndim - 1; d >= 0; d--) {
    int64_t own = i % l->index->dl.shape[d];
    i /= l->index->dl.shape[d];
    at += (d == l->dim ? value : own) * l->strides[d];
  }
  return at;
}

graft_status kernel_gather(const graft_exec *exec, const graft_args_gather *a) {
  REF_OWNED ref_array x = ref_read(a->self), index = ref_read(a->index),
                      y = ref_new(index.count, dt_is_complex(a->out->dl.dtype));
  if (!x.re || !index.re || !y.re) return ref_no_memory();
  graft_status status = GRAFT_OK;
  idx_line line = idx_line_of("aten::gather", a->self, a->index, a->dim);
  for (int64_t i = 0; i < index.count; i++) {
    int64_t from = idx_line_at(&line, i, (int64_t)index.re[i], &status);
    if (status) return status;
    ref_take(&y, i, &x, from);
  }
  ref_write(a->out, &y);
  return GRAFT_OK;
}
