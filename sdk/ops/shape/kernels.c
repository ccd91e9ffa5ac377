/* Reference kernels of the shape family: each is one or a few moves of a box of elements. */
#include "ops/shape/shape.h"

#include "ops/core/ref.h"

/* One side of a move: an element offset and strides into a dense array. */
typedef struct side {
  int64_t start;
  int64_t strides[GRAFT_MAX_DIMS];
} side;

static side side_of(const graft_tensor_desc *d) {
  side s = {0, {0}};
  tns_contiguous_strides(d->dl.ndim, d->dl.shape, s.strides);
  return s;
}

static void move(ref_array *to, side at, const ref_array *from, side source, int32_t ndim, const int64_t *sizes) {
  if (tns_numel(ndim, sizes) <= 0) return;
  int64_t index[GRAFT_MAX_DIMS] = {0};
  for (;;) {
    to->re[at.start] = from->re[source.start];
    if (to->im) to->im[at.start] = from->im ? from->im[source.start] : 0;
    int32_t i = ndim - 1;
    for (; i >= 0; i--) {
      at.start += at.strides[i];
      source.start += source.strides[i];
      if (++index[i] < sizes[i]) break;
      at.start -= at.strides[i] * sizes[i];
      source.start -= source.strides[i] * sizes[i];
      index[i] = 0;
    }
    if (i < 0) return;
  }
}

/* Reads what goes in, moves it, writes what comes out. */
typedef struct work {
  ref_array x, y;
} work;

static bool begin(work *w, const graft_tensor_desc *self, const graft_tensor_desc *out) {
  w->x = ref_read(self);
  w->y = ref_new(ref_numel(out), dt_is_complex(out->dl.dtype));
  return w->x.re && w->y.re;
}

static graft_status end(work *w, const graft_tensor_desc *out) {
  bool ok = w->x.re && w->y.re;
  if (ok) ref_write(out, &w->y);
  ref_free(&w->x);
  ref_free(&w->y);
  return ok ? GRAFT_OK : ref_no_memory();
}

graft_status kernel_to_copy(const graft_exec *exec, const graft_args_to_copy *a) {
  REF_OWNED ref_array x = ref_read(a->self);
  if (!x.re) return ref_no_memory();
  ref_write(a->out, &x);
  return GRAFT_OK;
}

graft_status kernel_cat(const graft_exec *exec, const graft_args_cat *a) {
  ref_array y = ref_new(ref_numel(a->out), dt_is_complex(a->out->dl.dtype));
  graft_status status = y.re ? GRAFT_OK : ref_no_memory();
  side at = side_of(a->out);
  for (uint64_t i = 0; i < a->tensors.count && !status; i++) {
    const graft_tensor_desc *t = a->tensors.items[i];
    if (!ref_numel(t)) continue; /* of another rank, perhaps */
    ref_array x = ref_read(t);
    if (!x.re)
      status = ref_no_memory();
    else
      move(&y, at, &x, side_of(t), t->dl.ndim, t->dl.shape);
    ref_free(&x);
    at.start += t->dl.shape[a->dim] * at.strides[a->dim];
  }
  if (!status) ref_write(a->out, &y);
  ref_free(&y);
  return status;
}

graft_status kernel_constant_pad_nd(const graft_exec *exec, const graft_args_constant_pad_nd *a) {
  work w;
  if (!begin(&w, a->self, a->out)) return end(&w, a->out);
  dt_value value = dt_scalar_value(a->value);
  for (int64_t i = 0; i < w.y.count; i++) {
    w.y.re[i] = value.re;
    if (w.y.im) w.y.im[i] = value.im;
  }
  side at = side_of(a->out), source = side_of(a->self);
  int64_t sizes[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < a->self->dl.ndim; i++) {
    uint64_t pair = 2 * (uint64_t)(a->self->dl.ndim - 1 - i); /* the last dim comes first */
    int64_t before = pair < a->pad.count ? a->pad.items[pair] : 0,
            after = pair < a->pad.count ? a->pad.items[pair + 1] : 0;
    sizes[i] = a->self->dl.shape[i] + (before < 0 ? before : 0) + (after < 0 ? after : 0);
    if (before < 0)
      source.start -= before * source.strides[i];
    else
      at.start += before * at.strides[i];
  }
  move(&w.y, at, &w.x, source, a->self->dl.ndim, sizes);
  return end(&w, a->out);
}

graft_status kernel_repeat(const graft_exec *exec, const graft_args_repeat *a) {
  work w;
  if (!begin(&w, a->self, a->out)) return end(&w, a->out);
  int32_t ndim = a->out->dl.ndim, added = ndim - a->self->dl.ndim;
  side own = side_of(a->self);
  int64_t strides[GRAFT_MAX_DIMS];
  tns_contiguous_strides(ndim, a->out->dl.shape, strides);
  for (int64_t i = 0; i < w.y.count; i++) {
    int64_t from = 0, rest = i;
    for (int32_t d = 0; d < ndim; d++) {
      int64_t index = rest / strides[d];
      rest %= strides[d];
      if (d >= added) from += index % a->self->dl.shape[d - added] * own.strides[d - added];
    }
    ref_take(&w.y, i, &w.x, from);
  }
  return end(&w, a->out);
}

graft_status kernel_flip(const graft_exec *exec, const graft_args_flip *a) {
  work w;
  if (!begin(&w, a->self, a->out)) return end(&w, a->out);
  side source = side_of(a->self);
  for (uint64_t i = 0; i < a->dims.count; i++) {
    int64_t *stride = &source.strides[a->dims.items[i]];
    source.start += (a->self->dl.shape[a->dims.items[i]] - 1) * *stride;
    *stride = -*stride;
  }
  move(&w.y, side_of(a->out), &w.x, source, a->self->dl.ndim, a->self->dl.shape);
  return end(&w, a->out);
}

/* self with src moved over it: src's dims have `strides` in self. */
static graft_status over(const graft_tensor_desc *self, const graft_tensor_desc *src, side at,
                         const graft_tensor_desc *out) {
  work w;
  if (!begin(&w, self, out)) return end(&w, out);
  move(&w.y, side_of(out), &w.x, side_of(self), self->dl.ndim, self->dl.shape);
  ref_array x = ref_read(src);
  if (x.re)
    move(&w.y, at, &x, side_of(src), src->dl.ndim, src->dl.shape);
  else
    ref_free(&w.y);
  ref_free(&x);
  return end(&w, out);
}

graft_status kernel_select_scatter(const graft_exec *exec, const graft_args_select_scatter *a) {
  side at = side_of(a->out);
  at.start = a->index * at.strides[a->dim];
  for (int64_t i = a->dim; i + 1 < a->out->dl.ndim; i++) at.strides[i] = at.strides[i + 1];
  return over(a->self, a->src, at, a->out);
}

graft_status kernel_slice_scatter(const graft_exec *exec, const graft_args_slice_scatter *a) {
  side at = side_of(a->out);
  at.start = (a->start ? *a->start : 0) * at.strides[a->dim];
  at.strides[a->dim] *= a->step;
  return over(a->self, a->src, at, a->out);
}

/* Elements on one side of a diagonal of the last two dims; the others are 0. */
static graft_status keep_triangle(const graft_tensor_desc *self, const graft_tensor_desc *out, int64_t diagonal,
                                  bool lower) {
  work w;
  if (!begin(&w, self, out)) return end(&w, out);
  int64_t rows = self->dl.shape[self->dl.ndim - 2], columns = self->dl.shape[self->dl.ndim - 1];
  for (int64_t i = 0; i < w.y.count; i++) {
    int64_t column = i % columns, row = i / columns % rows;
    if (lower ? column - row > diagonal : column - row < diagonal) continue;
    ref_take(&w.y, i, &w.x, i);
  }
  return end(&w, out);
}

graft_status kernel_tril(const graft_exec *exec, const graft_args_tril *a) {
  return keep_triangle(a->self, a->out, a->diagonal, true);
}

graft_status kernel_triu(const graft_exec *exec, const graft_args_triu *a) {
  return keep_triangle(a->self, a->out, a->diagonal, false);
}

/* Each element moves on along the dims; without dims, along all elements in a row. */
graft_status kernel_roll(const graft_exec *exec, const graft_args_roll *a) {
  work w;
  if (!begin(&w, a->self, a->out)) return end(&w, a->out);
  side s = side_of(a->self);
  for (int64_t i = 0; i < w.y.count; i++) {
    int64_t to = i;
    if (!a->dims.count) to = (i + a->shifts.items[0]) % w.y.count;
    for (uint64_t d = 0; d < a->dims.count; d++) {
      int64_t dim = a->dims.items[d], size = a->self->dl.shape[dim], at = to / s.strides[dim] % size;
      to += ((at + a->shifts.items[d]) % size - at) * s.strides[dim];
    }
    ref_take(&w.y, to, &w.x, i);
  }
  return end(&w, a->out);
}
