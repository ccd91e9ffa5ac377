/* Movement: copies, joining, padding, repeating, writing into a part. Views are made by dispatch/host_ops.c; their rows
 * here say which gradient they have.
 *
 * Decompositions write into views of a new tensor by copies, which every plugin can do: nothing leaves the device. */
#include "ops/shape/shape.h"

#include "ops/core/families.h"
#include "ops/generated/fx_ops.h"

/* --- copies --- */

static graft_memory_format format_arg(const op_call *c, int arg, graft_memory_format fallback) {
  return op_absent(c, arg) || !op_int(c, arg) ? fallback : (graft_memory_format)op_int(c, arg);
}

static graft_status out_copy(op_call *c, graft_dtype dtype, const graft_tensor *self, graft_memory_format format) {
  int32_t rank = format == GRAFT_FORMAT_CHANNELS_LAST ? 4 : format == GRAFT_FORMAT_CHANNELS_LAST_3D ? 5 : self->ndim;
  if (rank != self->ndim) return op_error(c, "that memory format is for rank %d; self is %s", rank, op_show(c, 0));
  if (format == GRAFT_FORMAT_PRESERVE) {
    op_out_like(c, 0, dtype, self);
  } else {
    op_out_format(c, 0, dtype, self->ndim, self->sizes, format);
  }
  return GRAFT_OK;
}

/* As self is written over: its very strides, gaps included, where no two of its elements are one. */
static void out_over(op_call *c, const graft_tensor *self) {
  op_out_like(c, 0, self->dtype, self);
  for (int32_t i = 0; i < self->ndim && !tns_overlaps_itself(self); i++) c->out[0].strides[i] = self->strides[i];
}

/* _to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format) */
static graft_status infer_to_copy(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  graft_dtype dtype = op_dtype(c, 1) ? op_dtype(c, 1) : self->dtype;
  op_set_dtype(c, 1, dtype);
  return out_copy(c, dtype, self, format_arg(c, 6, GRAFT_FORMAT_PRESERVE));
}

/* clone(self, memory_format) */
static graft_status infer_clone(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  return out_copy(c, self->dtype, self, format_arg(c, 1, GRAFT_FORMAT_PRESERVE));
}

/* copy(self, src, non_blocking): src in self's shape and dtype */
static graft_status infer_copy(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0), *source = op_tensor(c, 1);
  for (int32_t i = 0; i < source->ndim; i++) {
    int32_t at = self->ndim - source->ndim + i;
    if (at < 0 || (source->sizes[i] != 1 && source->sizes[i] != self->sizes[at])) {
      return op_error(c, "src does not broadcast to self (%s)", op_show_tensors(c));
    }
  }
  out_over(c, self);
  return GRAFT_OK;
}

static void write_into(fx *s, graft_tensor *view, graft_tensor *values) {
  if (s->status) return;
  graft_status status = graft_tensor_copy(view, values);
  if (status) fx_fail(s, status);
}

/* A new tensor as infer promised the first output. */
static graft_tensor *new_out(fx *s, const op_call *c) {
  const graft_meta *meta = &c->out[0];
  return fx_empty_strided(s, meta->sizes, (uint32_t)meta->ndim, meta->strides, (uint32_t)meta->ndim, meta->dtype,
                          c->device);
}

/* --- cat --- */

/* An empty tensor of rank 1 joins anything: PyTorch keeps that for old programs. */
static bool is_skipped(const graft_tensor *t) {
  return t->ndim == 1 && t->sizes[0] == 0;
}

static graft_memory_format format_of_all(const graft_value *list) {
  graft_memory_format format = tns_suggest_format(list->as.tensors[0]);
  for (uint32_t i = 1; i < list->count; i++) {
    if (tns_suggest_format(list->as.tensors[i]) != format) return GRAFT_FORMAT_CONTIGUOUS;
  }
  return format;
}

static graft_status add_to_cat(const op_call *c, const graft_tensor *first, const graft_tensor *t, uint32_t i,
                               int64_t dim, int64_t *size) {
  bool same = t->ndim == first->ndim;
  for (int32_t d = 0; same && d < t->ndim; d++) same = d == dim || t->sizes[d] == first->sizes[d];
  if (!same) {
    return op_error(c, "tensors must agree in all dims but %lld; item %u does not (%s)", (long long)dim, i,
                    op_show_tensors(c));
  }
  *size += t->sizes[dim];
  return GRAFT_OK;
}

/* cat(tensors, dim) */
static graft_status infer_cat(op_call *c) {
  const graft_value *list = &c->args[0];
  if (!list->count) return op_error(c, "expected at least one tensor");
  const graft_tensor *first = NULL;
  for (uint32_t i = 0; i < list->count; i++) {
    const graft_tensor *t = list->as.tensors[i];
    if (!t->ndim) return op_error(c, "item %u has rank 0, which can't be joined; stack it instead", i);
    if (!first && !is_skipped(t)) first = t;
  }
  graft_dtype dtype = op_promote(c, 0, 1);
  if (!dtype) return op_error(c, "these dtypes do not promote to a common one: %s", op_show_tensors(c));
  c->compute = dtype;
  if (!first) {
    op_set_int(c, 1, 0);
    op_out(c, 0, dtype, 1, (int64_t[]){0});
    return GRAFT_OK;
  }
  int64_t dim = op_int(c, 1), sizes[GRAFT_MAX_DIMS], size = 0;
  graft_status status = op_wrap_dim(c, &dim, first->ndim);
  for (uint32_t i = 0; i < list->count && !status; i++) {
    const graft_tensor *t = list->as.tensors[i];
    if (!is_skipped(t) || first->ndim == 1) status = add_to_cat(c, first, t, i, dim, &size);
  }
  if (status) return status;
  for (int32_t i = 0; i < first->ndim; i++) sizes[i] = i == dim ? size : first->sizes[i];
  op_set_int(c, 1, dim);
  op_out_format(c, 0, dtype, first->ndim, sizes, format_of_all(list));
  return GRAFT_OK;
}

static void decompose_cat(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *out = outs[0] = new_out(s, c);
  int64_t dim = op_int(c, 1), start = 0;
  for (uint32_t i = 0; i < c->args[0].count; i++) {
    graft_tensor *t = c->args[0].as.tensors[i];
    if (!t->numel) continue;
    int64_t end = start + t->sizes[dim];
    write_into(s, fx_slice_Tensor(s, out, dim, &start, &end, 1), t);
    start = end;
  }
}

/* --- constant_pad_nd --- */

typedef struct padding {
  int64_t before[GRAFT_MAX_DIMS], after[GRAFT_MAX_DIMS];
  bool adds; /* some of it is positive: else it only cuts */
} padding;

static padding padding_of(const graft_value *pad, int32_t ndim) {
  padding p = {{0}, {0}, false};
  for (uint32_t i = 0; i + 1 < pad->count; i += 2) { /* the last dim comes first */
    int32_t dim = ndim - 1 - (int32_t)i / 2;
    p.before[dim] = pad->as.ints[i];
    p.after[dim] = pad->as.ints[i + 1];
    p.adds |= p.before[dim] > 0 || p.after[dim] > 0;
  }
  return p;
}

static int64_t negative_part(int64_t x) {
  return x >= 0 ? 0 : x == INT64_MIN ? INT64_MAX : -x;
}

/* constant_pad_nd(self, pad, value) */
static graft_status infer_pad(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  uint32_t count = c->args[1].count;
  if (count % 2 || count / 2 > (uint32_t)self->ndim) {
    return op_error(c, "pad has %u items; expected two for each of at most %d dims", count, self->ndim);
  }
  padding p = padding_of(&c->args[1], self->ndim);
  graft_tensor cut = *self; /* its shape only */
  int64_t sizes[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < self->ndim; i++) {
    int64_t before = negative_part(p.before[i]), after = negative_part(p.after[i]);
    bool wraps = __builtin_add_overflow(self->sizes[i], p.before[i], &sizes[i]) ||
                 __builtin_add_overflow(sizes[i], p.after[i], &sizes[i]);
    if (!wraps && before <= self->sizes[i] && after <= self->sizes[i] - before && sizes[i] >= 0) {
      cut.sizes[i] = self->sizes[i] - before - after;
      continue;
    }
    return op_error(
        c, "padding by %lld and %lld leaves less than nothing, or more than can be counted, of dim %d of self %s",
        (long long)p.before[i], (long long)p.after[i], i, op_show(c, 0));
  }
  c->compute = self->dtype;
  if (dt_is_complex(op_scalar(c, 2).dtype) && !dt_is_complex(self->dtype)) {
    return op_error(c, "value is complex, self is %s", op_show(c, 0));
  }
  if (p.adds)
    op_out_format(c, 0, self->dtype, self->ndim, sizes, tns_suggest_format(self));
  else
    op_out_like(c, 0, self->dtype, &cut);
  return GRAFT_OK;
}

static void decompose_pad(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, 0);
  padding p = padding_of(&c->args[1], self->ndim);
  const graft_meta *meta = &c->out[0];
  graft_tensor *to = outs[0] = fx_full(s, meta->sizes, (uint32_t)meta->ndim, op_scalar(c, 2), meta->dtype, c->device);
  for (int32_t i = 0; i < self->ndim && !s->status; i++) {
    if (!p.before[i] && !p.after[i]) continue;
    int64_t first = negative_part(-p.before[i]), last = meta->sizes[i] - negative_part(-p.after[i]);
    to = fx_slice_Tensor(s, to, i, &first, &last, 1);
    first = negative_part(p.before[i]);
    last = self->sizes[i] - negative_part(p.after[i]);
    self = fx_slice_Tensor(s, self, i, &first, &last, 1);
  }
  write_into(s, to, self);
}

/* --- repeat, flip --- */

/* repeat(self, repeats) */
static graft_status infer_repeat(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  const graft_value *repeats = &c->args[1];
  int32_t ndim = (int32_t)repeats->count, added = ndim - self->ndim;
  if (added < 0 || ndim > GRAFT_MAX_DIMS) {
    return op_error(c, "repeats has %d items; expected %d (the rank of self %s) to %d", ndim, self->ndim, op_show(c, 0),
                    GRAFT_MAX_DIMS);
  }
  int64_t sizes[GRAFT_MAX_DIMS], all = 1;
  for (int32_t i = 0; i < ndim; i++) {
    if (repeats->as.ints[i] < 0)
      return op_error(c, "repeats has a negative item: %lld", (long long)repeats->as.ints[i]);
    if (__builtin_mul_overflow(repeats->as.ints[i], i < added ? 1 : self->sizes[i - added], &sizes[i]) ||
        __builtin_mul_overflow(all, sizes[i], &all)) {
      return op_error(c, "self %s repeated %lld times along dim %d has more elements than can be counted",
                      op_show(c, 0), (long long)repeats->as.ints[i], i);
    }
  }
  c->compute = self->dtype;
  op_out(c, 0, self->dtype, ndim, sizes);
  return GRAFT_OK;
}

int32_t shape_interleave(int32_t ndim, const int64_t *sizes, int32_t count, const int64_t *repeats, int64_t *base,
                         int64_t *full, uint32_t *mask) {
  int32_t n = 0, added = count - ndim;
  *mask = 0;
  for (int32_t i = 0; i < count; i++) {
    if (i < added || repeats[i] != 1) {
      if (n == GRAFT_MAX_DIMS) return -1;
      *mask |= 1u << n;
      base[n] = 1;
      full[n++] = repeats[i];
    }
    if (i < added) continue;
    if (n == GRAFT_MAX_DIMS) return -1;
    base[n] = full[n] = sizes[i - added];
    n++;
  }
  return n;
}

static void decompose_repeat(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, 0);
  int64_t base[GRAFT_MAX_DIMS], full[GRAFT_MAX_DIMS];
  uint32_t mask;
  int32_t ndim =
      shape_interleave(self->ndim, self->sizes, (int32_t)c->args[1].count, c->args[1].as.ints, base, full, &mask);
  if (ndim < 0) {
    fx_fail(s, op_error(c, "repeating so many dims at once is more than %d dims", GRAFT_MAX_DIMS));
    return;
  }
  graft_tensor *wide = fx_expand(s, fx_reshape(s, self, ndim, base), full, (uint32_t)ndim, false);
  outs[0] = fx_reshape(s, wide, c->out[0].ndim, c->out[0].sizes);
}

/* flip(self, dims) */
static graft_status infer_flip(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  uint32_t mask;
  graft_status status = op_wrap_dims(c, 1, self->ndim, false, &mask);
  if (status) return status;
  c->compute = self->dtype;
  op_out_like(c, 0, self->dtype, self);
  return GRAFT_OK;
}

static void decompose_flip(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *x = op_tensor(c, 0);
  for (uint32_t i = 0; i < c->args[1].count && !s->status; i++) {
    int64_t dim = c->args[1].as.ints[i], last = x->sizes[dim] - 1;
    if (last < 1) continue;
    graft_tensor *index = fx_arange_start_step(s, graft_scalar_int(last), graft_scalar_int(-1), graft_scalar_int(-1),
                                               GRAFT_I64, x->device);
    x = fx_index_select(s, x, dim, index);
  }
  outs[0] = x;
}

/* --- writing into a part --- */

static graft_status out_scatter(op_call *c, const int64_t *part, int32_t part_ndim) {
  const graft_tensor *self = op_tensor(c, 0), *src = op_tensor(c, 1);
  bool same = src->ndim == part_ndim;
  for (int32_t i = 0; same && i < part_ndim; i++) same = src->sizes[i] == part[i];
  if (!same) {
    int64_t strides[GRAFT_MAX_DIMS] = {0};
    graft_tensor wanted = {.dtype = self->dtype, .ndim = part_ndim};
    for (int32_t i = 0; i < part_ndim; i++) wanted.sizes[i] = part[i];
    tns_contiguous_strides(part_ndim, part, strides);
    for (int32_t i = 0; i < part_ndim; i++) wanted.strides[i] = strides[i];
    char text[160];
    return op_error(c, "src must have the shape of the part it is written to, %s (%s)",
                    tns_describe(&wanted, text, sizeof text), op_show_tensors(c));
  }
  c->compute = self->dtype;
  out_over(c, self);
  return GRAFT_OK;
}

/* select_scatter(self, src, dim, index) */
static graft_status infer_select_scatter(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  int64_t dim = op_int(c, 2), index = op_int(c, 3), part[GRAFT_MAX_DIMS];
  if (!self->ndim) return op_error(c, "self has rank 0: there is nothing to select");
  graft_status status = op_wrap_dim(c, &dim, self->ndim);
  if (status) return status;
  int64_t size = self->sizes[dim];
  if (index < -size || index >= size) {
    return op_out_of_range(c, "index %lld is out of range for dim %lld of self %s", (long long)index, (long long)dim,
                           op_show(c, 0));
  }
  op_set_int(c, 2, dim);
  op_set_int(c, 3, index < 0 ? index + size : index);
  int32_t n = 0;
  for (int32_t i = 0; i < self->ndim; i++) {
    if (i != dim) part[n++] = self->sizes[i];
  }
  return out_scatter(c, part, n);
}

static int64_t clamp_bound(int64_t bound, int64_t size) {
  if (bound < 0) bound += size;
  return bound < 0 ? 0 : bound > size ? size : bound;
}

/* slice_scatter(self, src, dim, start, end, step) */
static graft_status infer_slice_scatter(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  int64_t dim = op_int(c, 2), step = op_int(c, 5), part[GRAFT_MAX_DIMS];
  if (!self->ndim) return op_error(c, "self has rank 0: there is nothing to slice");
  graft_status status = op_wrap_dim(c, &dim, self->ndim);
  if (status) return status;
  if (step < 1) return op_error(c, "step is %lld; expected 1 or more", (long long)step);
  int64_t size = self->sizes[dim];
  int64_t start = op_absent(c, 3) ? 0 : clamp_bound(op_int(c, 3), size);
  int64_t end = op_absent(c, 4) ? size : clamp_bound(op_int(c, 4), size);
  if (end < start) end = start;
  op_set_int(c, 2, dim);
  op_set_int(c, 3, start);
  op_set_int(c, 4, end);
  for (int32_t i = 0; i < self->ndim; i++) part[i] = self->sizes[i];
  part[dim] = (end - start) / step + ((end - start) % step != 0);
  return out_scatter(c, part, self->ndim);
}

/* A copy of self, and the part of it that `view_op` gives, with the arguments that follow src. */
static void decompose_scatter(fx *s, const op_call *c, uint32_t view_op, graft_tensor **outs) {
  graft_value args[OP_MAX_ARGS];
  graft_tensor *part;
  outs[0] = new_out(s, c);
  write_into(s, outs[0], op_tensor(c, 0));
  args[0] = fx_tensor(outs[0]);
  for (uint32_t i = 2; i < c->schema->nargs; i++) args[i - 1] = c->args[i];
  fx_call(s, view_op, args, c->schema->nargs - 1u, &part, 1);
  write_into(s, part, op_tensor(c, 1));
}

static void decompose_select_scatter(fx *s, const op_call *c, graft_tensor **outs) {
  decompose_scatter(s, c, GRAFT_OP_SELECT_INT, outs);
}
static void decompose_slice_scatter(fx *s, const op_call *c, graft_tensor **outs) {
  decompose_scatter(s, c, GRAFT_OP_SLICE_TENSOR, outs);
}
static void decompose_as_strided_scatter(fx *s, const op_call *c, graft_tensor **outs) {
  decompose_scatter(s, c, GRAFT_OP_AS_STRIDED, outs);
}

/* prims::as_strided_scatter(self, src, size, stride, storage_offset): of a contiguous self only, so that where an
 * element is does not depend on memory that nobody sees. */
static graft_status infer_as_strided_scatter(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  const graft_value *size = &c->args[2], *stride = &c->args[3];
  int64_t last = op_int(c, 4);
  bool empty = false;
  if (!tns_is_contiguous(self->ndim, self->sizes, self->strides)) {
    return op_error(c, "self is %s; expected a contiguous tensor", op_show(c, 0));
  }
  if (size->count != stride->count)
    return op_error(c, "size has %u items, stride %u; expected as many", size->count, stride->count);
  if (size->count > GRAFT_MAX_DIMS) return op_error(c, "%u dims; expected at most %d", size->count, GRAFT_MAX_DIMS);
  for (uint32_t i = 0; i < size->count; i++) {
    if (size->as.ints[i] < 0 || stride->as.ints[i] < 0) return op_error(c, "a size or stride is negative");
    empty |= size->as.ints[i] == 0;
    last += (size->as.ints[i] - 1) * stride->as.ints[i];
  }
  if (op_int(c, 4) < 0 || (!empty && last >= self->numel)) {
    return op_error(c, "element %lld is beyond self %s", (long long)last, op_show(c, 0));
  }
  return out_scatter(c, size->as.ints, (int32_t)size->count);
}

bool shape_may_overlap(int32_t ndim, const int64_t *sizes, const int64_t *strides) {
  int32_t order[GRAFT_MAX_DIMS], n = 0;
  for (int32_t i = 0; i < ndim; i++) {
    if (sizes[i] == 0) return false;
    if (sizes[i] == 1) continue;
    int32_t at = n++;
    for (; at > 0 && strides[order[at - 1]] > strides[i]; at--) order[at] = order[at - 1];
    order[at] = i;
  }
  int64_t reach = 0;
  for (int32_t i = 0; i < n; i++) {
    if (strides[order[i]] <= reach) return true;
    reach += strides[order[i]] * (sizes[order[i]] - 1);
  }
  return false;
}

/* --- tril, triu, roll --- */

/* tril, triu(self, diagonal) */
static graft_status infer_triangle(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  if (self->ndim < 2) return op_error(c, "self is %s; expected rank 2 or more", op_show(c, 0));
  c->compute = self->dtype;
  op_out(c, 0, self->dtype, self->ndim, self->sizes);
  return GRAFT_OK;
}

/* The columns less the rows, compared with the diagonal. */
static void decompose_triangle(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, 0);
  int64_t rows = self->sizes[self->ndim - 2], columns = self->sizes[self->ndim - 1];
  const graft_scalar zero = graft_scalar_int(0), one = graft_scalar_int(1);
  graft_tensor *column = fx_arange_start_step(s, zero, graft_scalar_int(columns), one, GRAFT_I64, c->device);
  graft_tensor *row = fx_arange_start_step(s, zero, graft_scalar_int(rows), one, GRAFT_I64, c->device);
  graft_tensor *above = fx_sub(s, column, fx_unsqueeze(s, row, 1));
  bool lower = c->schema->id == GRAFT_OP_TRIL;
  graft_tensor *kept = (lower ? fx_le_Scalar : fx_ge_Scalar)(s, above, graft_scalar_int(op_int(c, 1)));
  const graft_value args[] = {fx_tensor(kept), fx_tensor(self), fx_number(zero)};
  fx_call(s, GRAFT_OP_WHERE_SELF, args, 3, &outs[0], 1);
}

/* roll(self, shifts, dims); canonical: shifts in [0, size), dims wrapped, or none of them and one shift over all */
static graft_status infer_roll(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  uint32_t count = c->args[1].count, dims = c->args[2].count;
  int64_t shift[GRAFT_MAX_DIMS], dim[GRAFT_MAX_DIMS];
  if (!count) return op_error(c, "shifts is empty; expected a shift for each dim");
  if (count > GRAFT_MAX_DIMS || (count != dims && (count != 1 || dims))) {
    return op_error(c, "shifts has %u items and dims %u; expected as many, or one shift and no dim", count, dims);
  }
  if (!self->ndim && dims) return op_error(c, "self has rank 0; there is no dim to roll along");
  c->compute = self->dtype;
  if (self->numel || !dims)
    op_out(c, 0, self->dtype, self->ndim, self->sizes);
  else
    op_out_like(c, 0, self->dtype, self);
  for (uint32_t i = 0; i < count; i++) {
    int64_t size = self->numel;
    shift[i] = c->args[1].as.ints[i];
    if (dims) {
      dim[i] = c->args[2].as.ints[i];
      graft_status status = op_wrap_dim(c, &dim[i], self->ndim);
      if (status) return status;
      size = self->sizes[dim[i]];
    }
    shift[i] = size ? (shift[i] % size + size) % size : 0;
  }
  graft_status status = op_set_ints(c, 1, shift, count);
  return status ? status : op_set_ints(c, 2, dim, dims);
}

static void decompose_roll(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, 0), *x = self;
  bool flat = !c->args[2].count;
  if (flat) x = fx_reshape(s, self, 1, &self->numel);
  for (uint32_t i = 0; i < c->args[1].count && !s->status; i++) {
    int64_t dim = flat ? 0 : c->args[2].as.ints[i], cut = x->sizes[dim] - c->args[1].as.ints[i];
    graft_tensor *parts[] = {fx_slice_Tensor(s, x, dim, &cut, NULL, 1), fx_slice_Tensor(s, x, dim, NULL, &cut, 1)};
    x = fx_cat(s, parts, 2, dim);
  }
  outs[0] = flat ? fx_reshape(s, x, self->ndim, self->sizes) : x;
}

/* --- the table --- */

#define VIEW(name, maker, formula) \
  { .op_id = GRAFT_OP_##name, .roles = "k", .host = shape_host_##maker, .vjp = shape_vjp_##formula }
static const op_def defs[] = {
    {.op_id = GRAFT_OP_TO_COPY,
     .roles = "c",
     .infer = infer_to_copy,
     .vjp = shape_vjp_same,
     .flags = OP_ELEMENTWISE | OP_COPY,
     .reference = OP_REF(to_copy)},
    {.op_id = GRAFT_OP_CLONE,
     .roles = "c",
     .infer = infer_clone,
     .vjp = shape_vjp_same,
     .flags = OP_ELEMENTWISE | OP_COPY},
    {.op_id = GRAFT_OP_COPY,
     .roles = "kc",
     .infer = infer_copy,
     .vjp = shape_vjp_copy,
     .flags = OP_ELEMENTWISE | OP_COPY},
    {.op_id = GRAFT_OP_CAT,
     .roles = "v",
     .infer = infer_cat,
     .decompose = decompose_cat,
     .vjp = shape_vjp_cat,
     .flags = OP_NO_WIDEN,
     .reference = OP_REF(cat)},
    {.op_id = GRAFT_OP_CONSTANT_PAD_ND,
     .roles = "v",
     .infer = infer_pad,
     .decompose = decompose_pad,
     .vjp = shape_vjp_pad,
     .flags = OP_NO_WIDEN,
     .reference = OP_REF(constant_pad_nd)},
    {.op_id = GRAFT_OP_REPEAT,
     .roles = "v",
     .infer = infer_repeat,
     .decompose = decompose_repeat,
     .vjp = shape_vjp_repeat,
     .flags = OP_NO_WIDEN,
     .reference = OP_REF(repeat)},
    {.op_id = GRAFT_OP_FLIP,
     .roles = "v",
     .infer = infer_flip,
     .decompose = decompose_flip,
     .vjp = shape_vjp_flip,
     .flags = OP_NO_WIDEN,
     .reference = OP_REF(flip)},
    {.op_id = GRAFT_OP_SELECT_SCATTER,
     .roles = "vv",
     .infer = infer_select_scatter,
     .decompose = decompose_select_scatter,
     .vjp = shape_vjp_select_scatter,
     .flags = OP_NO_WIDEN,
     .reference = OP_REF(select_scatter)},
    {.op_id = GRAFT_OP_SLICE_SCATTER,
     .roles = "vv",
     .infer = infer_slice_scatter,
     .decompose = decompose_slice_scatter,
     .vjp = shape_vjp_slice_scatter,
     .flags = OP_NO_WIDEN,
     .reference = OP_REF(slice_scatter)},
    {.op_id = GRAFT_OP_PRIMS_AS_STRIDED_SCATTER,
     .roles = "vv",
     .infer = infer_as_strided_scatter,
     .decompose = decompose_as_strided_scatter,
     .vjp = shape_vjp_as_strided_scatter,
     .flags = OP_NO_WIDEN},
    {.op_id = GRAFT_OP_TRIL,
     .roles = "v",
     .infer = infer_triangle,
     .decompose = decompose_triangle,
     .vjp = shape_vjp_triangle,
     .flags = OP_NO_WIDEN | OP_EXACT_OUT,
     .reference = OP_REF(tril)},
    {.op_id = GRAFT_OP_TRIU,
     .roles = "v",
     .infer = infer_triangle,
     .decompose = decompose_triangle,
     .vjp = shape_vjp_triangle,
     .flags = OP_NO_WIDEN | OP_EXACT_OUT,
     .reference = OP_REF(triu)},
    {.op_id = GRAFT_OP_ROLL,
     .roles = "v",
     .infer = infer_roll,
     .decompose = decompose_roll,
     .vjp = shape_vjp_roll,
     .flags = OP_NO_WIDEN,
     .reference = OP_REF(roll)},
    VIEW(ALIAS, alias, same),
    VIEW(AS_STRIDED, as_strided, as_strided),
    VIEW(DIAGONAL, diagonal, diagonal),
    VIEW(EXPAND, expand, expand),
    VIEW(PERMUTE, permute, permute),
    VIEW(SELECT_INT, select, select),
    VIEW(SLICE_TENSOR, slice, slice),
    VIEW(SPLIT_WITH_SIZES, split_with_sizes, split),
    VIEW(SQUEEZE_DIM, squeeze_dim, view),
    VIEW(SQUEEZE_DIMS, squeeze_dims, view),
    VIEW(UNSQUEEZE, unsqueeze, view),
    VIEW(VIEW, view, view),
    VIEW(VIEW_AS_REAL, view_as_real, view_as_real),
    VIEW(PRIMS_CONJ, conj, conj),
    VIEW(PRIMS_REAL, real, real),
    VIEW(PRIMS_IMAG, imag, imag),
    VIEW(PRIMS_BROADCAST_IN_DIM, broadcast_in_dim, broadcast_in_dim),
    VIEW(PRIMS_COLLAPSE_VIEW, collapse_view, view),
    VIEW(PRIMS_SPLIT_DIM, split_dim, view),
    VIEW(PRIMS_VIEW_OF_DTYPE, view_of_dtype, view_of_dtype),
};
OP_TABLE(shape, defs)
