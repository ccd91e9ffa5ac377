/* Factories: tensors made from numbers. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

static graft_dtype dtype_of_number(const graft_scalar *number) {
  switch (dt_category_of(number->dtype)) {
    case DT_BOOL: return GRAFT_BOOL;
    case DT_INTEGER: return GRAFT_I64;
    case DT_FLOAT: return dt_default();
    default: return dt_complex(dt_default());
  }
}

/* --- rules --- */

static graft_status infer_full(op_call *c) {
  const in_full in = in_full_of(c->args);
  graft_scalar value = in.fill_value;
  graft_dtype dtype = in.dtype ? in.dtype : dtype_of_number(&value);
  graft_status status = op_check_sizes(c, ARG_full_size);
  if (status) return status;
  op_set_dtype(c, ARG_full_dtype, dtype);
  op_out(c, OUT, dtype, (int32_t)c->args[ARG_full_size].count, c->args[ARG_full_size].as.ints);
  return op_number_fits(c, ARG_full_fill_value, dtype);
}

static graft_status infer_full_like(op_call *c) {
  const in_full_like in = in_full_like_of(c->args);
  graft_dtype dtype = in.dtype ? in.dtype : in.self->dtype;
  graft_memory_format format = op_absent(c, ARG_full_like_memory_format)
                                   ? GRAFT_FORMAT_PRESERVE
                                   : (graft_memory_format)op_int(c, ARG_full_like_memory_format);
  op_set_dtype(c, ARG_full_like_dtype, dtype);
  if (format == GRAFT_FORMAT_PRESERVE || !format)
    op_out_like(c, OUT, dtype, in.self);
  else
    op_out_format(c, OUT, dtype, in.self->ndim, in.self->sizes, format);
  return op_number_fits(c, ARG_full_like_fill_value, dtype);
}

static graft_status infer_fill(op_call *c) {
  const in_fill_Scalar in = in_fill_Scalar_of(c->args);
  op_out_like(c, OUT, in.self->dtype, in.self);
  return op_number_fits(c, ARG_fill_Scalar_value, c->out[OUT].dtype);
}

static graft_status infer_zero(op_call *c) {
  const in_zero in = in_zero_of(c->args);
  op_out_like(c, OUT, in.self->dtype, in.self);
  return GRAFT_OK;
}

/* Where PyTorch makes one element, a finite number beyond the range becomes infinity in the small floating dtypes, and
 * is refused in all others, as full refuses it in any. */
static bool casts_numbers(graft_dtype dtype) {
  return dt_is_half(dtype) || dt_is_float8(dtype);
}

/* scalar_tensor: without dtype the default float, whatever the number is */
static graft_status infer_scalar_tensor(op_call *c) {
  const in_scalar_tensor in = in_scalar_tensor_of(c->args);
  graft_dtype dtype = in.dtype ? in.dtype : dt_default();
  op_set_dtype(c, ARG_scalar_tensor_dtype, dtype);
  op_out(c, OUT, dtype, 0, NULL);
  const bool casts = casts_numbers(dtype) && !dt_is_complex(op_scalar(c, ARG_scalar_tensor_s).dtype);
  return casts ? GRAFT_OK : op_number_fits(c, ARG_scalar_tensor_s, dtype);
}

/* Elements of a range: in f64, but exactly for i64, where the bounds are cut to integers first. */
static graft_status arange_count(const op_call *c, graft_dtype dtype, double *count) {
  ref_real at[3];
  for (int i = 0; i < 3; i++) {
    graft_scalar number = op_scalar(c, i);
    at[i] = dt_scalar_value(&number).re;
    if (dt_is_complex(number.dtype)) return op_error(c, "%s is complex", c->schema->args[i].name);
    if (!isfinite((double)at[i]))
      return op_error(c, "%s is %Lg; expected a finite number", c->schema->args[i].name, at[i]);
  }
  for (int i = 0; i < 3 && dtype == GRAFT_I64; i++) {
    if (!(fabsl(at[i]) <= 0x1p63L))
      return op_error(c, "%s is %Lg, which is beyond i64", c->schema->args[i].name, at[i]);
    at[i] = truncl(at[i]);
  }
  ref_real start = at[0], end = at[1], step = at[2];
  if (step == 0) return op_error(c, "step is 0");
  if (step > 0 ? end < start : end > start) {
    return op_error(c, "from %Lg to %Lg there is no way with step %Lg", start, end, step);
  }
  *count =
      dtype == GRAFT_I64 ? (double)ceill((end - start) / step) : ceil(((double)end - (double)start) / (double)step);
  if (!(*count < 0x1p62)) return op_error(c, "%g elements are too many", *count);
  return GRAFT_OK;
}

static graft_status infer_arange(op_call *c) {
  graft_dtype dtype = op_dtype(c, ARG_arange_start_step_dtype);
  bool integers = true;
  for (int i = 0; i < 3; i++) integers &= dt_is_integral(op_scalar(c, i).dtype, true);
  if (!dtype) dtype = integers ? GRAFT_I64 : dt_default();
  bool integral = dt_is_integral(dtype, false) && (!dt_is_unsigned(dtype) || dtype == GRAFT_U8);
  if (!integral && (!dt_is_float(dtype) || dt_is_float8(dtype))) {
    return op_error(c, "not defined for %s", graft_dtype_name(dtype));
  }
  double count = 0;
  graft_status status = arange_count(c, dtype, &count);
  if (status) return status;
  op_set_dtype(c, ARG_arange_start_step_dtype, dtype);
  op_out(c, OUT, dtype, 1, (int64_t[]){(int64_t)count});
  return GRAFT_OK;
}

/* prims::iota: length integers from start on, by step */
static graft_status infer_iota(op_call *c) {
  const in_prims_iota in = in_prims_iota_of(c->args);
  bool served = dt_is_integral(in.dtype, false) && (!dt_is_unsigned(in.dtype) || in.dtype == GRAFT_U8);
  if (!served) return op_error(c, "not defined for %s", graft_dtype_name(in.dtype));
  if (in.length < 0) return op_error(c, "length is %lld; expected 0 or more", (long long)in.length);
  if (in.step == 0) return op_error(c, "step is 0");
  op_out(c, OUT, in.dtype, 1, &in.length);
  return GRAFT_OK;
}

static void decompose_iota(fx *s, const op_call *c, graft_tensor **outs) {
  const in_prims_iota in = in_prims_iota_of(c->args);
  int64_t end = (int64_t)((uint64_t)in.start + (uint64_t)in.length * (uint64_t)in.step);
  outs[OUT] = fx_arange_start_step(s, graft_scalar_int(in.start), graft_scalar_int(end), graft_scalar_int(in.step),
                                   in.dtype, c->device);
}

static graft_status infer_eye(op_call *c) {
  const in_eye_m in = in_eye_m_of(c->args);
  if (in.n < 0 || in.m < 0)
    return op_error(c, "%lld rows and %lld columns; expected 0 or more", (long long)in.n, (long long)in.m);
  op_set_dtype(c, ARG_eye_m_dtype, op_dtype(c, ARG_eye_m_dtype) ? op_dtype(c, ARG_eye_m_dtype) : dt_default());
  op_out(c, OUT, op_dtype(c, ARG_eye_m_dtype), 2, (int64_t[]){in.n, in.m});
  return GRAFT_OK;
}

/* The way of linspace is one between numbers of the dtype: a negative one wraps before there is a step. */
static void wrap_bound(op_call *c, int arg, graft_dtype dtype) {
  graft_scalar *bound = &c->args[arg].as.scalar;
  bool wraps = dtype == GRAFT_U8 && bound->dtype == GRAFT_I64 && c->schema->id == GRAFT_OP_LINSPACE;
  if (wraps) bound->value.i = (uint8_t)bound->value.i;
}

/* logspace of one step fills in a number of f64; where there are more steps, all dtypes cast them. */
static graft_status check_lone_power(const op_call *c, graft_dtype dtype) {
  graft_scalar start = op_scalar(c, ARG_logspace_start);
  const double power = pow(op_float(c, ARG_logspace_base), (double)dt_scalar_value(&start).re);
  const graft_value number = fx_float(power);
  if (casts_numbers(dtype) || !op_value_fits(c, ARG_logspace_start, &number, dtype)) return GRAFT_OK;
  return op_error(c, "base to the power of start is %g, which %s can't hold", power, graft_dtype_name(dtype));
}

/* linspace and logspace, whose dtype stands behind its base */
static graft_status infer_steps(op_call *c) {
  const in_linspace in = in_linspace_of(c->args);
  int dtype_arg = op_arg_named(c->schema, "dtype");
  graft_dtype given = op_dtype(c, dtype_arg);
  int64_t steps = in.steps;
  bool has_complex = dt_is_complex(in.start.dtype) || dt_is_complex(in.end.dtype);
  graft_dtype dtype = given ? given : has_complex ? dt_complex(dt_default()) : dt_default();
  if (steps < 0) return op_error(c, "steps is %lld; expected 0 or more", (long long)steps);
  if (has_complex && !dt_is_complex(dtype))
    return op_error(c, "dtype is %s; expected a complex one", graft_dtype_name(dtype));
  bool served = dtype != GRAFT_BOOL && !dt_is_float8(dtype) && (!dt_is_unsigned(dtype) || dtype == GRAFT_U8);
  if (!served && steps > 1) return op_error(c, "not defined for %s", graft_dtype_name(dtype));
  op_set_dtype(c, dtype_arg, dtype);
  op_out(c, OUT, dtype, 1, &steps);
  /* One value is the start alone; that of logspace is made of numbers of f64. */
  int held = steps > 1 ? 2 : steps == 1 && c->schema->id == GRAFT_OP_LINSPACE;
  for (int i = 0; i < held; i++) {
    graft_status status = op_number_fits(c, i, dtype);
    if (status) return status;
    wrap_bound(c, i, dtype);
  }
  bool lone_power = steps == 1 && c->schema->id == GRAFT_OP_LOGSPACE && !has_complex;
  return lone_power ? check_lone_power(c, dtype) : GRAFT_OK;
}

/* How many places of a matrix lie below its diagonal `offset`, or on it. Rows before `first` have none, those from
 * `full` on have all of their columns, and between them each has one more than the row before it. */
static __int128 lower_triangle(int64_t rows, int64_t columns, __int128 offset) {
  const __int128 begin = -offset - 1, end = begin + columns;
  const __int128 first = begin < 0 ? 0 : begin > rows ? rows : begin;
  const __int128 full = end < first ? first : end > rows ? rows : end;
  return (full - first) * (first + full - 1 - 2 * begin) / 2 + (rows - full) * columns;
}

static graft_status infer_triangle(op_call *c) {
  const in_tril_indices in = in_tril_indices_of(c->args);
  int64_t rows = in.row, columns = in.col;
  graft_dtype dtype = in.dtype ? in.dtype : GRAFT_I64;
  if (rows < 0 || columns < 0) {
    return op_error(c, "%lld rows and %lld columns; expected 0 or more", (long long)rows, (long long)columns);
  }
  bool served = dtype == GRAFT_I64 || dtype == GRAFT_I32;
  bool lower = c->schema->id == GRAFT_OP_TRIL_INDICES;
  __int128 count = lower ? lower_triangle(rows, columns, in.offset)
                         : (__int128)rows * columns - lower_triangle(rows, columns, (__int128)in.offset - 1);
  if (count > INT64_MAX / 2) {
    return op_error(c, "the triangle of %lld rows and %lld columns has more elements than can be counted",
                    (long long)rows, (long long)columns);
  }
  if (!served) return op_error(c, "not defined for %s; expected i64 or i32", graft_dtype_name(dtype));
  op_set_dtype(c, ARG_tril_indices_dtype, dtype);
  op_out(c, OUT, dtype, 2, (int64_t[]){2, (int64_t)count});
  return GRAFT_OK;
}

/* --- kernels --- */

static graft_status fill(const graft_tensor_desc *out, const graft_scalar *value) {
  REF_OWNED ref_array y = ref_new(ref_numel(out), dt_is_complex(out->dl.dtype));
  if (!y.re) return ref_no_memory();
  dt_value number = dt_scalar_value(value);
  for (int64_t i = 0; i < y.count; i++) {
    y.re[i] = number.re;
    if (y.im) y.im[i] = number.im;
  }
  ref_write(out, &y);
  return GRAFT_OK;
}

graft_status kernel_full(const graft_exec *exec, const graft_args_full *a) {
  return fill(a->out, a->fill_value);
}

graft_status kernel_full_like(const graft_exec *exec, const graft_args_full_like *a) {
  return fill(a->out, a->fill_value);
}

graft_status kernel_fill_Scalar(const graft_exec *exec, const graft_args_fill_Scalar *a) {
  return fill(a->out, a->value);
}

graft_status kernel_zero(const graft_exec *exec, const graft_args_zero *a) {
  return fill(a->out, &(graft_scalar){.dtype = GRAFT_I64});
}

graft_status kernel_scalar_tensor(const graft_exec *exec, const graft_args_scalar_tensor *a) {
  return fill(a->out, a->s);
}

graft_status kernel_arange_start_step(const graft_exec *exec, const graft_args_arange_start_step *a) {
  REF_OWNED ref_array y = ref_new(ref_numel(a->out), false);
  if (!y.re) return ref_no_memory();
  ref_real start = ref_scalar(a->start, 0), step = ref_scalar(a->step, 1);
  if (dt_is_integral(a->dtype, false)) start = truncl(start), step = truncl(step);
  for (int64_t i = 0; i < y.count; i++) y.re[i] = start + (ref_real)i * step;
  ref_write(a->out, &y);
  return GRAFT_OK;
}

graft_status kernel_eye_m(const graft_exec *exec, const graft_args_eye_m *a) {
  REF_OWNED ref_array y = ref_new(ref_numel(a->out), dt_is_complex(a->out->dl.dtype));
  if (!y.re) return ref_no_memory();
  for (int64_t i = 0; i < a->n && i < a->m; i++) y.re[i * (a->m + 1)] = 1;
  ref_write(a->out, &y);
  return GRAFT_OK;
}

/* From both ends, so that the last is `end` itself. Integers are cut after arithmetic in f64, as every backend's. */
static ref_real between(bool whole, ref_real start, ref_real end, int64_t steps, int64_t i) {
  if (steps == 1) return start;
  bool first = i < steps / 2;
  int64_t k = first ? i : steps - 1 - i;
  if (!whole)
    return first ? start + (ref_real)k * ((end - start) / (ref_real)(steps - 1))
                 : end - (ref_real)k * ((end - start) / (ref_real)(steps - 1));
  double step = ((double)end - (double)start) / (double)(steps - 1);
  return trunc(first ? fma((double)k, step, (double)start) : fma((double)-k, step, (double)end));
}

graft_status kernel_linspace(const graft_exec *exec, const graft_args_linspace *a) {
  graft_dtype dtype = a->out->dl.dtype;
  bool whole = dt_is_integral(dtype, false);
  REF_OWNED ref_array y = ref_new(ref_numel(a->out), dt_is_complex(dtype));
  if (!y.re) return ref_no_memory();
  dt_value start = dt_scalar_value(a->start), end = dt_scalar_value(a->end);
  if (whole) start.re = truncl(start.re), end.re = truncl(end.re);
  for (int64_t i = 0; i < y.count; i++) {
    y.re[i] = between(whole, start.re, end.re, y.count, i);
    if (y.im) y.im[i] = between(false, start.im, end.im, y.count, i);
  }
  ref_write(a->out, &y);
  return GRAFT_OK;
}

/* The exponents between start and end as numbers of the dtype, from both ends; integers are what C's pow gives in f64,
 * cut. */
static void put_power(ref_array *y, int64_t i, bool whole, double base, ref_complex start, ref_complex end) {
  int64_t k = i < y->count / 2 ? i : y->count - 1 - i;
  ref_complex step = y->count > 1 ? (end - start) / (ref_real)(y->count - 1) : 0;
  ref_complex exponent = i < y->count / 2 || y->count == 1 ? start + step * (ref_real)k : end - step * (ref_real)k;
  if (y->im) {
    ref_complex power = cpowl(base, exponent);
    y->re[i] = creall(power);
    y->im[i] = cimagl(power);
  } else if (whole) {
    double along = y->count > 1 ? (double)creall(end - start) / (double)(y->count - 1) : 0;
    double at = i < y->count / 2 || y->count == 1 ? (double)creall(start) + along * (double)k
                                                  : (double)creall(end) - along * (double)k;
    y->re[i] = truncl(pow(base, at));
  } else {
    y->re[i] = powl(base, creall(exponent));
  }
}

static ref_complex number_of(graft_dtype dtype, const graft_scalar *scalar, bool held) {
  dt_value v = dt_scalar_value(scalar);
  if (!held) return CMPLXL(v.re, v.im);
  if (dt_is_integral(dtype, false)) return truncl(v.re);
  return CMPLXL(dt_round(dt_real(dtype), v.re), dt_round(dt_real(dtype), v.im));
}

graft_status kernel_logspace(const graft_exec *exec, const graft_args_logspace *a) {
  graft_dtype dtype = a->out->dl.dtype;
  REF_OWNED ref_array y = ref_new(ref_numel(a->out), dt_is_complex(dtype));
  if (!y.re) return ref_no_memory();
  ref_complex start = number_of(dtype, a->start, y.count > 1), end = number_of(dtype, a->end, y.count > 1);
  for (int64_t i = 0; i < y.count; i++) put_power(&y, i, dt_is_integral(dtype, false), a->base, start, end);
  ref_write(a->out, &y);
  return GRAFT_OK;
}

static graft_status write_triangle(const graft_tensor_desc *out, int64_t rows, int64_t columns, int64_t offset,
                                   bool lower) {
  REF_OWNED ref_array y = ref_new(ref_numel(out), false);
  if (!y.re) return ref_no_memory();
  int64_t n = 0, count = y.count / 2;
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t column = 0; column < columns; column++) {
      if (lower ? column - row > offset : column - row < offset) continue;
      y.re[n] = (ref_real)row;
      y.re[count + n++] = (ref_real)column;
    }
  }
  ref_write(out, &y);
  return GRAFT_OK;
}

graft_status kernel_tril_indices(const graft_exec *exec, const graft_args_tril_indices *a) {
  return write_triangle(a->out, a->row, a->col, a->offset, true);
}

graft_status kernel_triu_indices(const graft_exec *exec, const graft_args_triu_indices *a) {
  return write_triangle(a->out, a->row, a->col, a->offset, false);
}

/* --- decompositions --- */

static void decompose_full_like(fx *s, const op_call *c, graft_tensor **outs) {
  const graft_meta *meta = &c->out[OUT];
  int value = c->schema->id == GRAFT_OP_FILL_SCALAR ? ARG_fill_Scalar_value : ARG_full_like_fill_value;
  outs[OUT] = fx_full(s, meta->sizes, (uint32_t)meta->ndim, op_scalar(c, value), meta->dtype, c->device);
}

static void decompose_zero(fx *s, const op_call *c, graft_tensor **outs) {
  const graft_meta *meta = &c->out[OUT];
  outs[OUT] = fx_full(s, meta->sizes, (uint32_t)meta->ndim, graft_scalar_int(0), meta->dtype, c->device);
}

static void decompose_scalar_tensor(fx *s, const op_call *c, graft_tensor **outs) {
  int64_t none = 0;
  outs[OUT] = fx_full(s, &none, 0, op_scalar(c, ARG_scalar_tensor_s), c->out[OUT].dtype, c->device);
}

static void vjp_none(op_vjp *v) {
  (void)v;
} /* the result does not depend on self's values */

/* --- memory whose contents are not set: the host does it alone --- */

static graft_status host_empty(op_call *call, graft_tensor **outs) {
  const in_empty_memory_format in = in_empty_memory_format_of(call->args);
  graft_meta meta = {.ndim = 0};
  int64_t format = op_absent(call, ARG_empty_memory_format_memory_format)
                       ? GRAFT_FORMAT_CONTIGUOUS
                       : op_int(call, ARG_empty_memory_format_memory_format);
  uint32_t rank = format == GRAFT_FORMAT_CHANNELS_LAST      ? 4
                  : format == GRAFT_FORMAT_CHANNELS_LAST_3D ? 5
                                                            : in.size_count;
  if (format == GRAFT_FORMAT_PRESERVE)
    return op_error(call, "there is no tensor whose memory format could be preserved");
  graft_status status = op_check_sizes(call, ARG_empty_memory_format_size);
  if (status) return status;
  if (rank != in.size_count)
    return op_error(call, "that memory format is for rank %u; size has %u items", rank, in.size_count);
  op_call result = *call;
  op_out_format(&result, 0, in.dtype ? in.dtype : dt_default(), (int32_t)in.size_count, in.size,
                (graft_memory_format)format);
  meta = result.out[0];
  return graft_tensor_empty_strided(call->device, meta.dtype, meta.ndim, meta.sizes, meta.strides, outs);
}

static graft_status host_empty_strided(op_call *call, graft_tensor **outs) {
  const in_empty_strided in = in_empty_strided_of(call->args);
  if (in.size_count != in.stride_count)
    return op_error(call, "size has %u items, stride %u; expected as many", in.size_count, in.stride_count);
  return graft_tensor_empty_strided(call->device, in.dtype ? in.dtype : dt_default(), (int32_t)in.size_count, in.size,
                                    in.stride, outs);
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_EMPTY_MEMORY_FORMAT, .roles = "", .host = host_empty},
    {.op_id = GRAFT_OP_EMPTY_STRIDED, .roles = "", .host = host_empty_strided},
    {.op_id = GRAFT_OP_PRIMS_IOTA, .roles = "", .infer = infer_iota, .decompose = decompose_iota},
    {.op_id = OP_WITH_KERNEL(full), .roles = "", .infer = infer_full},
    {.op_id = OP_WITH_KERNEL(full_like),
     .roles = "k",
     .infer = infer_full_like,
     .decompose = decompose_full_like,
     .vjp = vjp_none,
     .flags = OP_LIKE},
    {.op_id = OP_WITH_KERNEL(fill_Scalar),
     .roles = "c",
     .infer = infer_fill,
     .decompose = decompose_full_like,
     .vjp = vjp_none,
     .flags = OP_ELEMENTWISE | OP_FILLS},
    {.op_id = OP_WITH_KERNEL(zero),
     .roles = "c",
     .infer = infer_zero,
     .decompose = decompose_zero,
     .vjp = vjp_none,
     .flags = OP_ELEMENTWISE},
    {.op_id = OP_WITH_KERNEL(scalar_tensor),
     .roles = "",
     .infer = infer_scalar_tensor,
     .decompose = decompose_scalar_tensor},
    {.op_id = OP_WITH_KERNEL(arange_start_step), .roles = "", .infer = infer_arange},
    {.op_id = OP_WITH_KERNEL(eye_m), .roles = "", .infer = infer_eye},
    {.op_id = OP_WITH_KERNEL(linspace), .roles = "", .infer = infer_steps},
    {.op_id = OP_WITH_KERNEL(logspace), .roles = "", .infer = infer_steps},
    {.op_id = OP_WITH_KERNEL(tril_indices), .roles = "", .infer = infer_triangle},
    {.op_id = OP_WITH_KERNEL(triu_indices), .roles = "", .infer = infer_triangle},
};
OP_TABLE(factory, defs)
