/* Movement: copies, joining, padding, repeating, rolling.
 *
 * Decompositions write into views of a new tensor by copies, which every plugin can do: nothing leaves the device. */
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"
#include "ops/shape/shape.h"

/* --- copies --- */

static graft_memory_format format_arg(const op_call *c, int arg, graft_memory_format fallback) {
  return op_absent(c, arg) || !op_int(c, arg) ? fallback : (graft_memory_format)op_int(c, arg);
}

static graft_status out_copy(op_call *c, graft_dtype dtype, const graft_tensor *self, graft_memory_format format) {
  int32_t rank = format == GRAFT_FORMAT_CHANNELS_LAST ? 4 : format == GRAFT_FORMAT_CHANNELS_LAST_3D ? 5 : self->ndim;
  if (rank != self->ndim)
    return op_error(c, "that memory format is for rank %d; self is %s", rank, op_show(c, ARG_clone_self));
  if (format == GRAFT_FORMAT_PRESERVE) {
    op_out_like(c, OUT, dtype, self);
  } else {
    op_out_format(c, OUT, dtype, self->ndim, self->sizes, format);
  }
  return GRAFT_OK;
}

/* As self is written over: its very strides, gaps included, where no two of its elements are one. */
void shape_out_over(op_call *c, const graft_tensor *self) {
  op_out_like(c, OUT, self->dtype, self);
  for (int32_t i = 0; i < self->ndim && !tns_overlaps_itself(self); i++) c->out[OUT].strides[i] = self->strides[i];
}

static graft_status infer_to_copy(op_call *c) {
  const in_to_copy in = in_to_copy_of(c->args);
  graft_dtype dtype = in.dtype ? in.dtype : in.self->dtype;
  op_set_dtype(c, ARG_to_copy_dtype, dtype);
  return out_copy(c, dtype, in.self, format_arg(c, 6, GRAFT_FORMAT_PRESERVE));
}

static graft_status infer_clone(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_clone_self);
  return out_copy(c, self->dtype, self, format_arg(c, 1, GRAFT_FORMAT_PRESERVE));
}

/* copy: src in self's shape and dtype */
static graft_status infer_copy(op_call *c) {
  const in_copy in = in_copy_of(c->args);
  const graft_tensor *source = in.src;
  for (int32_t i = 0; i < source->ndim; i++) {
    int32_t at = in.self->ndim - source->ndim + i;
    if (at < 0 || (source->sizes[i] != 1 && source->sizes[i] != in.self->sizes[at])) {
      return op_error(c, "src does not broadcast to self (%s)", op_show_tensors(c));
    }
  }
  shape_out_over(c, in.self);
  return GRAFT_OK;
}

/* A new tensor as infer promised the first output. */
graft_tensor *shape_new_out(fx *s, const op_call *c) {
  const graft_meta *meta = &c->out[OUT];
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

static graft_status infer_cat(op_call *c) {
  const graft_value *list = &c->args[ARG_cat_tensors];
  if (!list->count) return op_error(c, "expected at least one tensor");
  const graft_tensor *first = NULL;
  for (uint32_t i = 0; i < list->count; i++) {
    const graft_tensor *t = list->as.tensors[i];
    if (!t->ndim) return op_error(c, "item %u has rank 0, which can't be joined; stack it instead", i);
    if (!first && !is_skipped(t)) first = t;
  }
  graft_dtype dtype = op_promote(c, ARG_cat_tensors, ARG_cat_tensors);
  if (!dtype) return op_error(c, "these dtypes do not promote to a common one: %s", op_show_tensors(c));
  c->compute = dtype;
  if (!first) {
    op_set_int(c, ARG_cat_dim, 0);
    op_out(c, OUT, dtype, 1, (int64_t[]){0});
    return GRAFT_OK;
  }
  int64_t dim = op_int(c, ARG_cat_dim), sizes[GRAFT_MAX_DIMS], size = 0;
  graft_status status = op_wrap_dim(c, &dim, first->ndim);
  for (uint32_t i = 0; i < list->count && !status; i++) {
    const graft_tensor *t = list->as.tensors[i];
    if (!is_skipped(t) || first->ndim == 1) status = add_to_cat(c, first, t, i, dim, &size);
  }
  if (status) return status;
  for (int32_t i = 0; i < first->ndim; i++) sizes[i] = i == dim ? size : first->sizes[i];
  op_set_int(c, ARG_cat_dim, dim);
  op_out_format(c, OUT, dtype, first->ndim, sizes, format_of_all(list));
  return GRAFT_OK;
}

static void decompose_cat(fx *s, const op_call *c, graft_tensor **outs) {
  const in_cat in = in_cat_of(c->args);
  graft_tensor *out = outs[OUT] = shape_new_out(s, c);
  int64_t start = 0;
  for (uint32_t i = 0; i < in.tensors_count; i++) {
    graft_tensor *t = in.tensors[i];
    if (!t->numel) continue;
    int64_t end = start + t->sizes[in.dim];
    fx_copy_into(s, fx_slice_Tensor(s, out, in.dim, &start, &end, 1), t);
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

/* Unlike other fills PyTorch's takes no negative number for an unsigned dtype here. */
static graft_status check_pad_value(const op_call *c, graft_dtype dtype) {
  graft_scalar value = op_scalar(c, ARG_constant_pad_nd_value);
  if (dt_is_unsigned(dtype) && dt_scalar_value(&value).re < 0)
    return op_error(c, "value is %Lg; expected 0 or more for %s", dt_scalar_value(&value).re, graft_dtype_name(dtype));
  return op_number_fits(c, ARG_constant_pad_nd_value, dtype);
}

static graft_status infer_pad(op_call *c) {
  const in_constant_pad_nd in = in_constant_pad_nd_of(c->args);
  uint32_t count = in.pad_count;
  if (count % 2 || count / 2 > (uint32_t)in.self->ndim) {
    return op_error(c, "pad has %u items; expected two for each of at most %d dims", count, in.self->ndim);
  }
  graft_status status = check_pad_value(c, in.self->dtype);
  if (status) return status;
  padding p = padding_of(&c->args[ARG_constant_pad_nd_pad], in.self->ndim);
  graft_tensor cut = *in.self; /* its shape only */
  int64_t sizes[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < in.self->ndim; i++) {
    int64_t before = negative_part(p.before[i]), after = negative_part(p.after[i]);
    bool wraps = __builtin_add_overflow(in.self->sizes[i], p.before[i], &sizes[i]) ||
                 __builtin_add_overflow(sizes[i], p.after[i], &sizes[i]);
    if (!wraps && before <= in.self->sizes[i] && after <= in.self->sizes[i] - before && sizes[i] >= 0) {
      cut.sizes[i] = in.self->sizes[i] - before - after;
      continue;
    }
    return op_error(
        c, "padding by %lld and %lld leaves less than nothing, or more than can be counted, of dim %d of self %s",
        (long long)p.before[i], (long long)p.after[i], i, op_show(c, ARG_constant_pad_nd_self));
  }
  c->compute = in.self->dtype;
  if (dt_is_complex(in.value.dtype) && !dt_is_complex(in.self->dtype)) {
    return op_error(c, "value is complex, self is %s", op_show(c, ARG_constant_pad_nd_self));
  }
  if (p.adds)
    op_out_format(c, OUT, in.self->dtype, in.self->ndim, sizes, tns_suggest_format(in.self));
  else
    op_out_like(c, OUT, in.self->dtype, &cut);
  return GRAFT_OK;
}

static void decompose_pad(fx *s, const op_call *c, graft_tensor **outs) {
  const in_constant_pad_nd in = in_constant_pad_nd_of(c->args);
  graft_tensor *self = in.self;
  padding p = padding_of(&c->args[ARG_constant_pad_nd_pad], self->ndim);
  const graft_meta *meta = &c->out[OUT];
  graft_tensor *to = outs[OUT] = fx_full(s, meta->sizes, (uint32_t)meta->ndim, in.value, meta->dtype, c->device);
  for (int32_t i = 0; i < self->ndim && !s->status; i++) {
    if (!p.before[i] && !p.after[i]) continue;
    int64_t first = negative_part(-p.before[i]), last = meta->sizes[i] - negative_part(-p.after[i]);
    to = fx_slice_Tensor(s, to, i, &first, &last, 1);
    first = negative_part(p.before[i]);
    last = self->sizes[i] - negative_part(p.after[i]);
    self = fx_slice_Tensor(s, self, i, &first, &last, 1);
  }
  fx_copy_into(s, to, self);
}

/* --- repeat, flip --- */

static graft_status infer_repeat(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_repeat_self);
  const graft_value *repeats = &c->args[ARG_repeat_repeats];
  int32_t ndim = (int32_t)repeats->count, added = ndim - self->ndim;
  if (added < 0 || ndim > GRAFT_MAX_DIMS) {
    return op_error(c, "repeats has %d items; expected %d (the rank of self %s) to %d", ndim, self->ndim,
                    op_show(c, ARG_repeat_self), GRAFT_MAX_DIMS);
  }
  int64_t sizes[GRAFT_MAX_DIMS], all = 1;
  for (int32_t i = 0; i < ndim; i++) {
    if (repeats->as.ints[i] < 0)
      return op_error(c, "repeats has a negative item: %lld", (long long)repeats->as.ints[i]);
    if (__builtin_mul_overflow(repeats->as.ints[i], i < added ? 1 : self->sizes[i - added], &sizes[i]) ||
        __builtin_mul_overflow(all, sizes[i], &all)) {
      return op_error(c, "self %s repeated %lld times along dim %d has more elements than can be counted",
                      op_show(c, ARG_repeat_self), (long long)repeats->as.ints[i], i);
    }
  }
  c->compute = self->dtype;
  op_out(c, OUT, self->dtype, ndim, sizes);
  return GRAFT_OK;
}

typedef struct interleaved {
  int32_t ndim;
  int64_t base[GRAFT_MAX_DIMS], full[GRAFT_MAX_DIMS];
  uint32_t repeats; /* a bit for each dim of repeats */
} interleaved;

/* False: it has no room. */
static bool add_dim(interleaved *to, int64_t size, int64_t repeats, bool joins) {
  const bool repeated = repeats != 1;
  if (joins && to->ndim && !repeated && !(to->repeats >> (to->ndim - 1) & 1)) {
    to->base[to->ndim - 1] *= size;
    to->full[to->ndim - 1] *= size;
    return true;
  }
  if (to->ndim == GRAFT_MAX_DIMS) return false;
  if (repeated) to->repeats |= 1u << to->ndim;
  to->base[to->ndim] = size;
  to->full[to->ndim++] = size * repeats;
  return true;
}

static bool add_dims(interleaved *to, const in_repeat *in, bool joins) {
  const int32_t count = (int32_t)in->repeats_count, added = count - in->self->ndim;
  *to = (interleaved){.ndim = 0};
  for (int32_t i = 0; i < count; i++) {
    if ((i < added || in->repeats[i] != 1) && !add_dim(to, 1, in->repeats[i], joins)) return false;
    if (i >= added && !add_dim(to, in->self->sizes[i - added], 1, joins)) return false;
  }
  return true;
}

/* Before each dim that is repeated, a dim for its repeats: the shape of (1 or repeats[i], sizes[i]), ... in `full`,
 * with 1 for the repeats in `base`. Where that is too many dims, those between repeats are one, which may take a copy.
 */
static bool interleave(const in_repeat *in, interleaved *to) {
  return add_dims(to, in, false) || add_dims(to, in, true);
}

static void decompose_repeat(fx *s, const op_call *c, graft_tensor **outs) {
  const in_repeat in = in_repeat_of(c->args);
  interleaved dims;
  if (!interleave(&in, &dims)) {
    fx_fail(s, op_error(c, "repeating so many dims at once is more than %d dims", GRAFT_MAX_DIMS));
    return;
  }
  graft_tensor *base = fx_reshape(s, in.self, dims.ndim, dims.base);
  graft_tensor *wide = fx_expand(s, base, dims.full, (uint32_t)dims.ndim, false);
  outs[OUT] = fx_reshape(s, wide, c->out[OUT].ndim, c->out[OUT].sizes);
}

static graft_status infer_flip(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_flip_self);
  uint32_t mask;
  graft_status status = op_wrap_dims(c, ARG_flip_dims, self->ndim, false, &mask);
  if (status) return status;
  c->compute = self->dtype;
  op_out_like(c, OUT, self->dtype, self);
  return GRAFT_OK;
}

static void decompose_flip(fx *s, const op_call *c, graft_tensor **outs) {
  const in_flip in = in_flip_of(c->args);
  graft_tensor *x = in.self;
  for (uint32_t i = 0; i < in.dims_count && !s->status; i++) {
    int64_t dim = in.dims[i], last = x->sizes[dim] - 1;
    if (last < 1) continue;
    graft_tensor *index = fx_arange_start_step(s, graft_scalar_int(last), graft_scalar_int(-1), graft_scalar_int(-1),
                                               GRAFT_I64, x->device);
    x = fx_index_select(s, x, dim, index);
  }
  outs[OUT] = x;
}

/* --- rot90: k quarter turns from the first of two dims to the second; canonical: k in [0, 4), dims wrapped --- */

static graft_status infer_rot90(op_call *c) {
  const in_rot90 in = in_rot90_of(c->args);
  const graft_tensor *self = in.self;
  int64_t dims[2], turns = (in.k % 4 + 4) % 4;
  if (in.dims_count != 2) return op_error(c, "dims has %u items; expected 2", in.dims_count);
  if (self->ndim < 2) return op_refuse(c, ARG_rot90_self, "rank 2 or more");
  for (int i = 0; i < 2; i++) {
    dims[i] = in.dims[i];
    graft_status status = op_wrap_dim(c, &dims[i], self->ndim);
    if (status) return status;
  }
  if (dims[0] == dims[1]) return op_error(c, "dims name dim %lld twice", (long long)dims[0]);
  c->compute = self->dtype;
  if (turns)
    op_out_like(c, OUT, self->dtype, self);
  else
    op_out(c, OUT, self->dtype, self->ndim, self->sizes);
  if (turns % 2) { /* a transpose of what is flipped */
    graft_meta *out = &c->out[OUT];
    int64_t size = out->sizes[dims[0]], stride = out->strides[dims[0]];
    out->sizes[dims[0]] = out->sizes[dims[1]], out->strides[dims[0]] = out->strides[dims[1]];
    out->sizes[dims[1]] = size, out->strides[dims[1]] = stride;
  }
  op_set_int(c, ARG_rot90_k, turns);
  return op_set_ints(c, ARG_rot90_dims, dims, 2);
}

static void decompose_rot90(fx *s, const op_call *c, graft_tensor **outs) {
  const in_rot90 in = in_rot90_of(c->args);
  graft_tensor *self = in.self;
  switch (in.k) {
    case 0: outs[OUT] = fx_clone(s, self, GRAFT_FORMAT_CONTIGUOUS); return;
    case 2: outs[OUT] = fx_flip(s, self, in.dims, 2); return;
    default: break;
  }
  graft_tensor *flipped = fx_flip(s, self, &in.dims[in.k == 1], 1);
  outs[OUT] = fx_transpose(s, flipped, (int32_t)in.dims[0], (int32_t)in.dims[1]);
}

/* --- prims that copy into another shape or other strides --- */

static graft_status infer_collapse(op_call *c) {
  const in_prims_collapse in = in_prims_collapse_of(c->args);
  int64_t rank = in.a->ndim ? in.a->ndim : 1, sizes[GRAFT_MAX_DIMS];
  int32_t ndim = 0;
  if (in.start < 0 || in.end < in.start || in.end >= rank) {
    return op_error(c, "dims %lld to %lld are not an interval of %s", (long long)in.start, (long long)in.end,
                    op_show(c, ARG_prims_collapse_a));
  }
  for (int64_t d = 0; d < rank; d++) {
    int64_t size = in.a->ndim ? in.a->sizes[d] : 1;
    if (d > in.start && d <= in.end)
      sizes[ndim - 1] *= size;
    else
      sizes[ndim++] = size;
  }
  op_out(c, OUT, in.a->dtype, ndim, sizes);
  return GRAFT_OK;
}

static graft_status infer_reshape(op_call *c) {
  const in_prims_reshape in = in_prims_reshape_of(c->args);
  graft_status status = op_check_sizes(c, ARG_prims_reshape_shape);
  int64_t numel = 1;
  if (status) return status;
  for (uint32_t i = 0; i < in.shape_count; i++) numel *= in.shape[i];
  if (numel != in.a->numel) {
    return op_error(c, "shape has %lld elements; a is %s", (long long)numel, op_show(c, ARG_prims_reshape_a));
  }
  op_out(c, OUT, in.a->dtype, (int32_t)in.shape_count, in.shape);
  return GRAFT_OK;
}

static graft_status infer_copy_strided(op_call *c) {
  const in_prims_copy_strided in = in_prims_copy_strided_of(c->args);
  graft_tensor made = {.ndim = in.a->ndim, .numel = in.a->numel};
  if (in.stride_count != (uint32_t)in.a->ndim) {
    return op_error(c, "stride has %u items; a is %s", in.stride_count, op_show(c, ARG_prims_copy_strided_a));
  }
  op_out(c, OUT, in.a->dtype, in.a->ndim, in.a->sizes);
  for (int32_t d = 0; d < in.a->ndim; d++) {
    if (in.stride[d] < 0) return op_error(c, "stride %d is %lld; expected 0 or more", d, (long long)in.stride[d]);
    made.sizes[d] = in.a->sizes[d];
    made.strides[d] = c->out[OUT].strides[d] = in.stride[d];
  }
  return tns_overlaps_itself(&made) ? op_error(c, "with these strides elements of the result share memory") : GRAFT_OK;
}

static void decompose_into(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *a = op_tensor(c, ARG_prims_reshape_a), *out = outs[OUT] = shape_new_out(s, c);
  bool as_it_is = tns_has_sizes(a, c->out[OUT].ndim, c->out[OUT].sizes);
  if (!s->status) fx_copy_into(s, as_it_is ? out : fx_reshape(s, out, a->ndim, a->sizes), a);
}

/* --- tril, triu, roll --- */

static graft_status infer_triangle(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_tril_self);
  if (self->ndim < 2) return op_refuse(c, ARG_tril_self, "rank 2 or more");
  c->compute = self->dtype;
  op_out(c, OUT, self->dtype, self->ndim, self->sizes);
  return GRAFT_OK;
}

/* The columns less the rows, compared with the diagonal. */
static void decompose_triangle(fx *s, const op_call *c, graft_tensor **outs) {
  const in_tril in = in_tril_of(c->args);
  int64_t rows = in.self->sizes[in.self->ndim - 2], columns = in.self->sizes[in.self->ndim - 1];
  graft_tensor *column = fx_count_up(s, columns, GRAFT_I64, c->device);
  graft_tensor *row = fx_count_up(s, rows, GRAFT_I64, c->device);
  graft_tensor *above = fx_sub(s, column, fx_unsqueeze(s, row, 1));
  bool lower = c->schema->id == GRAFT_OP_TRIL;
  graft_tensor *kept = (lower ? fx_le_Scalar : fx_ge_Scalar)(s, above, graft_scalar_int(in.diagonal));
  outs[OUT] = fx_only_where(s, kept, in.self);
}

/* roll; canonical: shifts in [0, size), dims wrapped, or none of them and one shift over all */
static graft_status infer_roll(op_call *c) {
  const in_roll in = in_roll_of(c->args);
  uint32_t count = in.shifts_count, dims = in.dims_count;
  int64_t shift[GRAFT_MAX_DIMS], dim[GRAFT_MAX_DIMS];
  if (!count) return op_error(c, "shifts is empty; expected a shift for each dim");
  if (count > GRAFT_MAX_DIMS || (count != dims && (count != 1 || dims))) {
    return op_error(c, "shifts has %u items and dims %u; expected as many, or one shift and no dim", count, dims);
  }
  if (!in.self->ndim && dims) return op_error(c, "self has rank 0; there is no dim to roll along");
  c->compute = in.self->dtype;
  if (in.self->numel || !dims)
    op_out(c, OUT, in.self->dtype, in.self->ndim, in.self->sizes);
  else
    op_out_like(c, OUT, in.self->dtype, in.self);
  for (uint32_t i = 0; i < count; i++) {
    int64_t size = in.self->numel;
    shift[i] = in.shifts[i];
    if (dims) {
      dim[i] = in.dims[i];
      graft_status status = op_wrap_dim(c, &dim[i], in.self->ndim);
      if (status) return status;
      size = in.self->sizes[dim[i]];
    }
    shift[i] = size ? (shift[i] % size + size) % size : 0;
  }
  graft_status status = op_set_ints(c, ARG_roll_shifts, shift, count);
  return status ? status : op_set_ints(c, ARG_roll_dims, dim, dims);
}

static void decompose_roll(fx *s, const op_call *c, graft_tensor **outs) {
  const in_roll in = in_roll_of(c->args);
  graft_tensor *self = in.self, *x = self;
  bool flat = !in.dims_count;
  if (flat) x = fx_reshape(s, self, 1, &self->numel);
  for (uint32_t i = 0; i < in.shifts_count && !s->status; i++) {
    int64_t dim = flat ? 0 : in.dims[i], cut = x->sizes[dim] - in.shifts[i];
    graft_tensor *parts[] = {fx_slice_Tensor(s, x, dim, &cut, NULL, 1), fx_slice_Tensor(s, x, dim, NULL, &cut, 1)};
    x = fx_cat(s, parts, 2, dim);
  }
  outs[OUT] = flat ? fx_reshape(s, x, self->ndim, self->sizes) : x;
}

/* --- gradients --- */

static void vjp_copy(op_vjp *v) {
  graft_tensor *g = v->g[OUT];
  if (vjp_needs(v, ARG_copy_self)) v->results[ARG_copy_self] = fx_zeros_like(v->s, g);
  if (!vjp_needs(v, ARG_copy_src)) return;
  graft_tensor *source = vjp_arg(v, ARG_copy_src);
  v->results[ARG_copy_src] = fx_sum_to(v->s, g, source->ndim, source->sizes);
}

static void vjp_cat(op_vjp *v) {
  const in_cat in = in_cat_of(v->args);
  graft_tensor *g = v->g[OUT];
  int64_t start = 0;
  for (uint32_t i = 0; i < in.tensors_count && !v->s->status; i++) {
    const graft_tensor *t = in.tensors[i];
    if (t->ndim != g->ndim) { /* an empty tensor that was passed over */
      v->list_results[ARG_cat_tensors][i] = shape_zeros_for(v, t);
      continue;
    }
    int64_t end = start + t->sizes[in.dim];
    v->list_results[ARG_cat_tensors][i] = fx_slice_Tensor(v->s, g, in.dim, &start, &end, 1);
    start = end;
  }
}

static void vjp_pad(op_vjp *v) {
  const in_constant_pad_nd in = in_constant_pad_nd_of(v->args);
  int64_t opposite[2 * GRAFT_MAX_DIMS];
  for (uint32_t i = 0; i < in.pad_count; i++) opposite[i] = -in.pad[i];
  v->results[ARG_constant_pad_nd_self] =
      fx_constant_pad_nd(v->s, v->g[OUT], opposite, in.pad_count, graft_scalar_int(0));
}

static void vjp_repeat(op_vjp *v) {
  const in_repeat in = in_repeat_of(v->args);
  fx *s = v->s;
  interleaved dims;
  if (!interleave(&in, &dims)) {
    fx_fail(s, err_about(GRAFT_UNIMPLEMENTED, "aten::repeat", "its gradient takes at most %d dims, repeats counted",
                         GRAFT_MAX_DIMS));
    return;
  }
  graft_tensor *sum = fx_sum(s, fx_reshape(s, v->g[OUT], dims.ndim, dims.full), dims.repeats, false);
  v->results[ARG_repeat_self] = fx_reshape(s, sum, in.self->ndim, in.self->sizes);
}

static void vjp_triangle(op_vjp *v) {
  int64_t diagonal = v->args[ARG_tril_diagonal].as.i;
  v->results[ARG_tril_self] = (v->schema->id == GRAFT_OP_TRIL ? fx_tril : fx_triu)(v->s, v->g[OUT], diagonal);
}

static void vjp_roll(op_vjp *v) {
  const in_roll in = in_roll_of(v->args);
  int64_t back[GRAFT_MAX_DIMS];
  for (uint32_t i = 0; i < in.shifts_count; i++) back[i] = -in.shifts[i];
  v->results[ARG_roll_self] = fx_roll(v->s, v->g[OUT], back, in.shifts_count, in.dims, in.dims_count);
}

static void vjp_flip(op_vjp *v) {
  const in_flip in = in_flip_of(v->args);
  v->results[ARG_flip_self] = fx_flip(v->s, v->g[OUT], in.dims, in.dims_count);
}

static void vjp_rot90(op_vjp *v) {
  const in_rot90 in = in_rot90_of(v->args);
  v->results[ARG_rot90_self] = fx_rot90(v->s, v->g[OUT], -in.k, in.dims, in.dims_count);
}

#define COPY_INTO(op, rule) \
  { .op_id = GRAFT_OP_PRIMS_##op, .roles = "k", .infer = rule, .decompose = decompose_into, .flags = OP_NO_WIDEN }

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(to_copy),
     .roles = "c",
     .infer = infer_to_copy,
     .vjp = shape_vjp_same,
     .flags = OP_ELEMENTWISE | OP_COPY},
    {.op_id = GRAFT_OP_CLONE,
     .roles = "c",
     .infer = infer_clone,
     .vjp = shape_vjp_same,
     .flags = OP_ELEMENTWISE | OP_COPY},
    {.op_id = GRAFT_OP_COPY, .roles = "kc", .infer = infer_copy, .vjp = vjp_copy, .flags = OP_ELEMENTWISE | OP_COPY},
    {.op_id = OP_WITH_KERNEL(cat),
     .roles = "v",
     .infer = infer_cat,
     .decompose = decompose_cat,
     .vjp = vjp_cat,
     .flags = OP_NO_WIDEN},
    {.op_id = OP_WITH_KERNEL(constant_pad_nd),
     .roles = "v",
     .infer = infer_pad,
     .decompose = decompose_pad,
     .vjp = vjp_pad,
     .flags = OP_NO_WIDEN},
    {.op_id = OP_WITH_KERNEL(repeat),
     .roles = "v",
     .infer = infer_repeat,
     .decompose = decompose_repeat,
     .vjp = vjp_repeat,
     .flags = OP_NO_WIDEN},
    {.op_id = OP_WITH_KERNEL(flip),
     .roles = "v",
     .infer = infer_flip,
     .decompose = decompose_flip,
     .vjp = vjp_flip,
     .flags = OP_NO_WIDEN},
    {.op_id = GRAFT_OP_ROT90,
     .roles = "v",
     .infer = infer_rot90,
     .decompose = decompose_rot90,
     .vjp = vjp_rot90,
     .flags = OP_NO_WIDEN},
    COPY_INTO(COLLAPSE, infer_collapse),
    COPY_INTO(RESHAPE, infer_reshape),
    COPY_INTO(COPY_STRIDED, infer_copy_strided),
    {.op_id = OP_WITH_KERNEL(tril),
     .roles = "v",
     .infer = infer_triangle,
     .decompose = decompose_triangle,
     .vjp = vjp_triangle,
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(triu),
     .roles = "v",
     .infer = infer_triangle,
     .decompose = decompose_triangle,
     .vjp = vjp_triangle,
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(roll),
     .roles = "v",
     .infer = infer_roll,
     .decompose = decompose_roll,
     .vjp = vjp_roll,
     .flags = OP_NO_WIDEN},
};
OP_TABLE(shape_movement, defs)
