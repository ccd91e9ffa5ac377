/* segment_reduce: the parts that lengths or offsets cut a dim into, each brought together to one element. A part of
 * nothing is `initial`, or what the reduction begins with; its mean, without `initial`, is NaN. */
#include <math.h>
#include <string.h>

#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"

enum { DATA = ARG_segment_reduce_data, REDUCE = ARG_segment_reduce_reduce, AXIS = ARG_segment_reduce_axis };

/* --- rule --- */

/* What says where parts begin, and how many there are. */
static int divider_of(const op_call *c) {
  return op_absent(c, ARG_segment_reduce_offsets) ? ARG_segment_reduce_lengths : ARG_segment_reduce_offsets;
}

static graft_status check_divider(const op_call *c, int arg, int64_t axis) {
  const graft_tensor *data = op_tensor(c, DATA), *divider = op_tensor(c, arg);
  if (!divider) return op_error(c, "neither lengths nor offsets are given; expected one of them");
  if (divider->dtype != GRAFT_I64 && divider->dtype != GRAFT_I32) return op_refuse(c, arg, "i64 or i32");
  if (axis != divider->ndim - 1) {
    return op_error(c, "axis is %lld; expected %d, the last dim of %s", (long long)axis, divider->ndim - 1,
                    op_show(c, arg));
  }
  if (memcmp(divider->sizes, data->sizes, (size_t)axis * sizeof *data->sizes) != 0) {
    return op_error(c, "the dims before axis differ: %s", op_show_tensors(c));
  }
  bool parts = arg == ARG_segment_reduce_lengths ? op_bool(c, ARG_segment_reduce_unsafe) || divider->numel
                                                 : divider->sizes[axis] > 0;
  return parts ? GRAFT_OK : op_refuse(c, arg, "elements");
}

static graft_status infer_segment_reduce(op_call *c) {
  const graft_tensor *data = op_tensor(c, DATA);
  int64_t axis = op_int(c, AXIS), sizes[GRAFT_MAX_DIMS];
  graft_status status = op_wrap_dim(c, &axis, data->ndim);
  if (!status) status = op_check_floating(c, DATA);
  if (!status && !op_absent(c, ARG_segment_reduce_indices)) {
    status = op_error(c, "indices are given; expected lengths or offsets");
  }
  int divider = divider_of(c);
  if (!status) status = check_divider(c, divider, axis);
  if (status) return status;
  op_set_int(c, AXIS, axis);
  c->compute = data->dtype;
  memcpy(sizes, data->sizes, sizeof sizes);
  sizes[axis] = op_tensor(c, divider)->sizes[axis] - (divider == ARG_segment_reduce_offsets);
  op_out(c, OUT, data->dtype, data->ndim, sizes);
  return GRAFT_OK;
}

/* --- kernel --- */

/* Where part `segment` of a row lies. Parts by lengths follow each other. */
typedef struct part {
  int64_t begin, end;
} part;

static graft_status next_part(const graft_args_segment_reduce *a, const ref_array *divider, int64_t at, int64_t size,
                              part *p) {
  bool by_offsets = a->offsets;
  *p = by_offsets ? (part){(int64_t)divider->re[at], (int64_t)divider->re[at + 1]}
                  : (part){p->end, p->end + (int64_t)divider->re[at]};
  if (p->begin >= 0 && p->begin <= p->end && p->end <= size) return GRAFT_OK;
  return err_about(GRAFT_OUT_OF_RANGE, "aten::segment_reduce",
                   "a segment from %lld to %lld; expected it inside the dim, of size %lld", (long long)p->begin,
                   (long long)p->end, (long long)size);
}

static ref_real begin_with(const graft_args_segment_reduce *a) {
  switch (a->reduce) {
    case GRAFT_STR_SEGMENT_REDUCE_MAX: return ref_scalar(a->initial, -INFINITY);
    case GRAFT_STR_SEGMENT_REDUCE_MIN: return ref_scalar(a->initial, INFINITY);
    case GRAFT_STR_SEGMENT_REDUCE_PROD: return ref_scalar(a->initial, 1);
    default: return ref_scalar(a->initial, 0);
  }
}

static void join(const graft_args_segment_reduce *a, ref_real *y, ref_real x) {
  switch (a->reduce) {
    case GRAFT_STR_SEGMENT_REDUCE_MAX: *y = isnan(*y) || *y > x ? *y : x; return;
    case GRAFT_STR_SEGMENT_REDUCE_MIN: *y = isnan(*y) || *y < x ? *y : x; return;
    case GRAFT_STR_SEGMENT_REDUCE_PROD: *y *= x; return;
    default: ref_add(a->data->dl.dtype, y, x);
  }
}

static ref_real reduce_part(const graft_args_segment_reduce *a, const ref_array *x, int64_t first, int64_t step,
                            int64_t count) {
  ref_real y = begin_with(a);
  for (int64_t i = 0; i < count; i++) join(a, &y, x->re[first + i * step]);
  if (a->reduce != GRAFT_STR_SEGMENT_REDUCE_MEAN) return y;
  return count ? y / (ref_real)count : a->initial ? y : NAN;
}

graft_status kernel_segment_reduce(const graft_exec *exec, const graft_args_segment_reduce *a) {
  if (!ref_texts_are_known(op_schema_of(a->head.op_id), a)) return GRAFT_UNIMPLEMENTED;
  const graft_tensor_desc *by = a->offsets ? a->offsets : a->lengths;
  REF_OWNED ref_array x = ref_read(a->data), divider = ref_read(by), y = ref_new(ref_numel(a->out), false);
  if (!x.re || !divider.re || !y.re) return ref_no_memory();
  ref_split from = ref_split_at(a->data, a->axis), to = ref_split_at(a->out, a->axis);
  int64_t width = by->dl.shape[by->dl.ndim - 1];
  for (int64_t row = 0; row < to.outer; row++) {
    part p = {0, 0};
    for (int64_t segment = 0; segment < to.size; segment++) {
      graft_status status = next_part(a, &divider, row * width + segment, from.size, &p);
      if (status) return status;
      for (int64_t i = 0; i < to.inner; i++) {
        y.re[(row * to.size + segment) * to.inner + i] =
            reduce_part(a, &x, (row * from.size + p.begin) * from.inner + i, from.inner, p.end - p.begin);
      }
    }
    if (!a->offsets && !a->unsafe && p.end != from.size) {
      return err_about(GRAFT_INVALID_ARGUMENT, "aten::segment_reduce",
                       "lengths add up to %lld; expected %lld, the size of the dim", (long long)p.end,
                       (long long)from.size);
    }
  }
  ref_write(a->out, &y);
  return GRAFT_OK;
}

/* --- gradient --- */

/* For each element of data the number of its part, and 1 where it is in one, else 0; of what the parts have, what
 * belongs to the element's own. */
typedef struct members {
  fx *s;
  int64_t axis;
  graft_tensor *data, *number, *inside, *lengths;
} members;

static graft_tensor *behind(fx *s, graft_tensor *t, graft_tensor *data) {
  while (!s->status && t && t->ndim < data->ndim) t = fx_unsqueeze(s, t, t->ndim);
  return t;
}

static graft_tensor *over_data(members *m, graft_tensor *rows) {
  graft_tensor *t = behind(m->s, rows, m->data);
  return t ? fx_expand(m->s, t, m->data->sizes, (uint32_t)m->data->ndim, false) : NULL;
}

static graft_tensor *of_part(members *m, graft_tensor *t) {
  return t ? fx_gather(m->s, t, m->axis, m->number, false) : NULL;
}

static graft_tensor *bounded(fx *s, graft_tensor *t, int64_t size, int64_t from) {
  int64_t end = from + size;
  return t ? fx_slice_Tensor(s, t, t->ndim - 1, &from, &end, 1) : NULL;
}

static members members_of(op_vjp *v) {
  const in_segment_reduce in = in_segment_reduce_of(v->args);
  fx *s = v->s;
  members m = {.s = s, .axis = in.axis, .data = in.data};
  int64_t size = in.data->sizes[in.axis], parts = v->outs[OUT]->sizes[in.axis];
  graft_tensor *begins, *ends, *given = fx_cast(s, in.offsets ? in.offsets : in.lengths, GRAFT_I64);
  if (in.offsets) {
    begins = bounded(s, given, parts, 0), ends = bounded(s, given, parts, 1);
  } else {
    ends = fx_cumsum(s, given, in.axis, GRAFT_I64), begins = fx_sub(s, ends, given);
  }
  ends = fx_contiguous(s, ends);
  graft_tensor *place = fx_count_up(s, size, GRAFT_I64, in.data->device);
  place = place ? fx_contiguous(s, fx_expand(s, place, in.data->sizes, (uint32_t)in.axis + 1, false)) : NULL;
  graft_tensor *number = fx_searchsorted_Tensor(s, ends, place, false, true, NULL, NULL);
  const graft_value last = fx_int(parts - 1);
  graft_tensor *none = fx_is(s, GRAFT_OP_GE_TENSOR, number, (double)parts);
  number = fx_where(s, none, last, fx_tensor(number));
  graft_tensor *before = fx_lt_Tensor(s, place, fx_gather(s, begins, in.axis, number, false));
  m.inside = over_data(&m, fx_logical_not(s, fx_logical_or(s, none, before)));
  m.number = over_data(&m, number);
  m.lengths = fx_sub(s, ends, begins);
  return m;
}

/* Shared by the elements that are the extremum, NaNs among them. */
static graft_tensor *of_extremum(members *m, graft_tensor *g, graft_tensor *out) {
  fx *s = m->s;
  graft_tensor *chosen = fx_logical_or(s, fx_isnan(s, m->data), fx_eq_Tensor(s, m->data, of_part(m, out)));
  chosen = fx_cast(s, fx_logical_and(s, chosen, m->inside), g->dtype);
  graft_tensor *count = fx_scatter_add(s, fx_zeros_like(s, out), m->axis, m->number, chosen);
  return fx_only_where(s, fx_is(s, GRAFT_OP_GT_TENSOR, chosen, 0), fx_div(s, of_part(m, g), of_part(m, count)));
}

/* The product of the others: out / x, or where x is the only 0 (or NaN) of its part, the product without it. Where
 * there is none, the product again: as a half it may have come near 0. */
static graft_tensor *of_product(members *m, const in_segment_reduce *in, graft_tensor *g, graft_tensor *out) {
  fx *s = m->s;
  m->data = fx_widened(s, m->data);
  out = fx_widened(s, out);
  graft_scalar begin = in->initial.dtype ? in->initial : graft_scalar_int(1);
  graft_tensor *bad = fx_logical_or(s, fx_isnan(s, m->data), fx_is(s, GRAFT_OP_EQ_TENSOR, m->data, 0));
  bad = fx_logical_and(s, bad, m->inside);
  graft_tensor *plain =
      fx_where(s, fx_logical_or(s, bad, fx_logical_not(s, m->inside)), fx_float(1), fx_tensor(m->data));
  graft_tensor *start = out ? fx_full_like(s, out, begin, GRAFT_DTYPE_NONE, NULL, GRAFT_FORMAT_CONTIGUOUS) : NULL;
  graft_tensor *without = fx_scatter_reduce_two(s, start, m->axis, m->number, plain, "prod", true);
  graft_tensor *count = fx_scatter_add(s, fx_zeros_like(s, out), m->axis, m->number, fx_cast(s, bad, out->dtype));
  graft_tensor *only = fx_logical_and(s, bad, fx_is(s, GRAFT_OP_EQ_TENSOR, of_part(m, count), 1));
  graft_tensor *none = fx_is(s, GRAFT_OP_EQ_TENSOR, count, 0);
  graft_tensor *all = fx_where(s, none, fx_tensor(without), fx_tensor(out));
  graft_tensor *others =
      fx_where(s, only, fx_tensor(of_part(m, without)), fx_tensor(fx_div(s, of_part(m, all), plain)));
  return fx_mul(s, of_part(m, g), others);
}

static void vjp_segment_reduce(op_vjp *v) {
  const in_segment_reduce in = in_segment_reduce_of(v->args);
  graft_tensor *g = v->g[OUT], *out = v->outs[OUT];
  if (!out->numel || !in.data->numel) {
    v->results[DATA] = fx_zeros_like(v->s, in.data);
    return;
  }
  members m = members_of(v);
  graft_tensor *result;
  if (!strcmp(in.reduce, "max") || !strcmp(in.reduce, "min"))
    result = of_extremum(&m, g, out);
  else if (!strcmp(in.reduce, "prod"))
    result = of_product(&m, &in, g, out);
  else
    result = of_part(&m, g);
  if (!strcmp(in.reduce, "mean")) {
    graft_tensor *counts = behind(v->s, fx_cast(v->s, m.lengths, g->dtype), out);
    result = fx_div(v->s, result, of_part(&m, fx_expand(v->s, counts, out->sizes, (uint32_t)out->ndim, false)));
  }
  v->results[DATA] = fx_only_where(v->s, m.inside, result);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(segment_reduce),
     .roles = "viki",
     .infer = infer_segment_reduce,
     .vjp = vjp_segment_reduce,
     .saves = OP_SAVE_ARGS(segment_reduce, data, lengths, offsets) | OP_SAVE_OUT(segment_reduce, out),
     .flags = OP_NO_WIDEN},
};
OP_TABLE(reduction_segments, defs)
