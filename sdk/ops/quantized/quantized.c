/* Products of matrices in few bits: i8 by i8, float8 by float8, and numbers by weights of i8 or of 4 bits; and what
 * training for them does: values rounded to those that integers stand for. */
#include "base/error.h"
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

static graft_status check_matrices(const op_call *c, const graft_tensor *a, const graft_tensor *b) {
  return a->ndim == 2 && b->ndim == 2 ? GRAFT_OK : op_error(c, "expected two matrices, got %s", op_show_tensors(c));
}

static graft_status infer_int_mm(op_call *c) {
  const in_int_mm in = in_int_mm_of(c->args);
  graft_status status = check_matrices(c, in.self, in.mat2);
  if (status) return status;
  if (in.self->sizes[1] != in.mat2->sizes[0]) return op_error(c, "the inner sizes differ: %s", op_show_tensors(c));
  for (int arg = ARG_int_mm_self; arg <= ARG_int_mm_mat2; arg++) {
    graft_dtype dtype = op_tensor(c, arg)->dtype;
    if (dtype != GRAFT_I8 && !(dtype == GRAFT_U8 && arg == ARG_int_mm_self))
      return op_refuse(c, arg, arg == ARG_int_mm_self ? "i8 or u8" : "i8");
  }
  op_out(c, OUT, GRAFT_I32, 2, (int64_t[]){in.self->sizes[0], in.mat2->sizes[1]});
  return GRAFT_OK;
}

/* A factor of f32 or less, beside one of few bits. */
static graft_status check_activations(op_call *c, int arg) {
  graft_status status = op_check_floating(c, arg);
  c->compute = op_tensor(c, arg)->dtype;
  return status || c->compute != GRAFT_F64 ? status : op_refuse(c, arg, "f16, bf16 or f32");
}

static graft_status infer_int8_weight(op_call *c) {
  const in_weight_int8pack_mm in = in_weight_int8pack_mm_of(c->args);
  graft_status status = check_matrices(c, in.self, in.mat2);
  if (!status) status = check_activations(c, ARG_weight_int8pack_mm_self);
  if (!status) status = op_check_dtype(c, ARG_weight_int8pack_mm_mat2, GRAFT_I8);
  if (!status) status = op_check_same_dtype(c, ARG_weight_int8pack_mm_self, ARG_weight_int8pack_mm_scales);
  if (status) return status;
  if (in.self->sizes[1] != in.mat2->sizes[1]) return op_error(c, "the inner sizes differ: %s", op_show_tensors(c));
  if (in.scales->ndim != 1 || in.scales->sizes[0] != in.mat2->sizes[0]) {
    return op_error(c, "there is not one scale for each row of mat2: %s", op_show_tensors(c));
  }
  op_out(c, OUT, c->compute, 2, (int64_t[]){in.self->sizes[0], in.mat2->sizes[0]});
  return GRAFT_OK;
}

static graft_status infer_int4_weight(op_call *c) {
  const in_weight_int4pack_mm in = in_weight_int4pack_mm_of(c->args);
  graft_status status = check_matrices(c, in.self, in.mat2);
  if (!status) status = check_activations(c, ARG_weight_int4pack_mm_self);
  if (!status) status = op_check_dtype(c, ARG_weight_int4pack_mm_mat2, GRAFT_U8);
  if (!status) status = op_check_same_dtype(c, ARG_weight_int4pack_mm_self, ARG_weight_int4pack_mm_qScaleAndZeros);
  if (status) return status;
  int64_t depth = in.self->sizes[1], group = in.qGroupSize;
  if (depth != 2 * in.mat2->sizes[1]) return op_error(c, "the inner sizes differ: %s", op_show_tensors(c));
  if ((group != 32 && group != 64 && group != 128 && group != 256) || depth % group) {
    return op_error(c, "qGroupSize is %lld; expected 32, 64, 128 or 256, and a part of the inner size %lld",
                    (long long)group, (long long)depth);
  }
  int64_t sizes[] = {depth / group, in.mat2->sizes[0], 2};
  if (!tns_has_sizes(in.qScaleAndZeros, 3, sizes)) {
    return op_refuse(c, ARG_weight_int4pack_mm_qScaleAndZeros, "the sizes [%lld, %lld, 2]", (long long)sizes[0],
                     (long long)sizes[1]);
  }
  op_out(c, OUT, c->compute, 2, (int64_t[]){in.self->sizes[0], in.mat2->sizes[0]});
  return GRAFT_OK;
}

/* One scale for all, or one for each row (column) of the result. */
static graft_status check_scale(const op_call *c, int arg, int64_t rows, int64_t columns) {
  const graft_tensor *scale = op_tensor(c, arg);
  graft_status status = op_check_floating(c, arg);
  if (status || scale->numel == 1) return status;
  return tns_has_sizes(scale, 2, (const int64_t[]){rows, columns})
             ? GRAFT_OK
             : op_refuse(c, arg, "one number, or the sizes [%lld, %lld]", (long long)rows, (long long)columns);
}

static graft_status infer_scaled_mm(op_call *c) {
  const in_scaled_mm in = in_scaled_mm_of(c->args);
  graft_status status = check_matrices(c, in.self, in.mat2);
  if (status) return status;
  if (!dt_is_float8(in.self->dtype)) return op_refuse(c, ARG_scaled_mm_self, "a float8 dtype");
  if (!dt_is_float8(in.mat2->dtype)) return op_refuse(c, ARG_scaled_mm_mat2, "a float8 dtype");
  int64_t rows = in.self->sizes[0], columns = in.mat2->sizes[1];
  if (in.self->sizes[1] != in.mat2->sizes[0]) return op_error(c, "the inner sizes differ: %s", op_show_tensors(c));
  graft_dtype dtype = in.out_dtype ? in.out_dtype : in.self->dtype;
  if (!dt_is_float(dtype) || dtype == GRAFT_F64) {
    return op_error(c, "out_dtype is %s; expected float8, f16, bf16 or f32", graft_dtype_name(dtype));
  }
  status = check_scale(c, ARG_scaled_mm_scale_a, rows, 1);
  if (!status) status = check_scale(c, ARG_scaled_mm_scale_b, 1, columns);
  if (!status && in.bias) status = op_check_floating(c, ARG_scaled_mm_bias);
  if (status) return status;
  if (in.bias && !tns_has_sizes(in.bias, 1, &columns)) {
    return op_refuse(c, ARG_scaled_mm_bias, "%lld numbers", (long long)columns);
  }
  if (in.scale_result && in.scale_result->numel != 1) return op_refuse(c, ARG_scaled_mm_scale_result, "one number");
  op_set_dtype(c, ARG_scaled_mm_out_dtype, dtype);
  op_out(c, OUT, dtype, 2, (int64_t[]){rows, columns});
  return GRAFT_OK;
}

/* --- kernels --- */

graft_status kernel_weight_int8pack_mm(const graft_exec *exec, const graft_args_weight_int8pack_mm *a) {
  int64_t rows = a->self->dl.shape[0], depth = a->self->dl.shape[1], columns = a->mat2->dl.shape[0];
  REF_OWNED ref_array x = ref_read(a->self), w = ref_read(a->mat2), scales = ref_read(a->scales),
                      y = ref_new(rows * columns, false);
  if (!x.re || !w.re || !scales.re || !y.re) return ref_no_memory();
  for (int64_t i = 0; i < y.count; i++) {
    const ref_real *row = x.re + i / columns * depth, *weights = w.re + i % columns * depth;
    y.re[i] = ref_dot(a->self->dl.dtype, row, 1, weights, 1, depth) * scales.re[i % columns];
  }
  ref_write(a->out, &y);
  return GRAFT_OK;
}

/* Column n of the weights, unpacked; see the op's header. */
static void unpack_int4(const graft_args_weight_int4pack_mm *a, const ref_array *packed, const ref_array *scales,
                        int64_t n, ref_real *weights) {
  int64_t columns = a->mat2->dl.shape[0], depth = a->self->dl.shape[1];
  for (int64_t k = 0; k < depth; k++) {
    int byte = (int)packed->re[(n * depth + k) / 2], q = k % 2 ? byte & 15 : byte >> 4;
    const ref_real *scale = scales->re + (k / a->qGroupSize * columns + n) * 2;
    weights[k] = (q - 8) * scale[0] + scale[1];
  }
}

graft_status kernel_weight_int4pack_mm(const graft_exec *exec, const graft_args_weight_int4pack_mm *a) {
  int64_t rows = a->self->dl.shape[0], depth = a->self->dl.shape[1], columns = a->mat2->dl.shape[0];
  REF_OWNED ref_array x = ref_read(a->self), packed = ref_read(a->mat2), scales = ref_read(a->qScaleAndZeros),
                      weights = ref_new(depth, false), y = ref_new(rows * columns, false);
  if (!x.re || !packed.re || !scales.re || !weights.re || !y.re) return ref_no_memory();
  for (int64_t n = 0; n < columns; n++) {
    unpack_int4(a, &packed, &scales, n, weights.re);
    for (int64_t m = 0; m < rows; m++)
      y.re[m * columns + n] = ref_dot(a->self->dl.dtype, x.re + m * depth, 1, weights.re, 1, depth);
  }
  ref_write(a->out, &y);
  return GRAFT_OK;
}

graft_status kernel_scaled_mm(const graft_exec *exec, const graft_args_scaled_mm *a) {
  int64_t rows = a->self->dl.shape[0], depth = a->self->dl.shape[1], columns = a->mat2->dl.shape[1];
  REF_OWNED ref_array x = ref_read(a->self), w = ref_read(a->mat2), scale_a = ref_read(a->scale_a),
                      scale_b = ref_read(a->scale_b), bias = ref_read(a->bias), result = ref_read(a->scale_result),
                      y = ref_new(rows * columns, false);
  if (!x.re || !w.re || !scale_a.re || !scale_b.re || !y.re || (a->bias && !bias.re)) return ref_no_memory();
  ref_real last = a->scale_result && dt_is_float8(a->out->dl.dtype) && result.re ? result.re[0] : 1;
  for (int64_t i = 0; i < y.count; i++) {
    int64_t m = i / columns, n = i % columns;
    ref_real sum = ref_dot(GRAFT_F32, x.re + m * depth, 1, w.re + n, columns, depth);
    sum *= scale_a.re[scale_a.count == 1 ? 0 : m] * scale_b.re[scale_b.count == 1 ? 0 : n];
    y.re[i] = (sum + (a->bias ? bias.re[n] : 0)) * last;
  }
  ref_write(a->out, &y);
  return GRAFT_OK;
}

/* --- decompositions --- */

static void decompose_int_mm(fx *s, const op_call *c, graft_tensor **outs) {
  const in_int_mm in = in_int_mm_of(c->args);
  outs[OUT] = fx_mm(s, fx_cast(s, in.self, GRAFT_I32), fx_cast(s, in.mat2, GRAFT_I32));
}

static void decompose_int8_weight(fx *s, const op_call *c, graft_tensor **outs) {
  const in_weight_int8pack_mm in = in_weight_int8pack_mm_of(c->args);
  graft_tensor *weights = fx_cast(s, in.mat2, in.self->dtype);
  outs[OUT] = fx_mul(s, fx_mm(s, in.self, fx_transpose(s, weights, 0, 1)), in.scales);
}

static void decompose_int4_weight(fx *s, const op_call *c, graft_tensor **outs) {
  const in_weight_int4pack_mm in = in_weight_int4pack_mm_of(c->args);
  int64_t columns = in.mat2->sizes[0], depth = in.self->sizes[1], group = in.qGroupSize;
  graft_tensor *pair[] = {
      fx_unsqueeze(s, fx_binary(s, GRAFT_OP_BITWISE_RIGHT_SHIFT_TENSOR, fx_tensor(in.mat2), fx_int(4)), 2),
      fx_unsqueeze(s, fx_bitwise_and_Scalar(s, in.mat2, graft_scalar_int(15)), 2)};
  graft_tensor *q = fx_cast(s, fx_cat(s, pair, 2, 2), in.self->dtype);
  q = fx_adds(s, fx_reshape(s, q, 3, (const int64_t[]){columns, depth / group, group}), -8);
  graft_tensor *scales = fx_transpose(s, in.qScaleAndZeros, 0, 1); /* [column, group, 2] */
  const int64_t ends[] = {0, 1, 2};
  graft_tensor *scale = fx_slice_Tensor(s, scales, 2, &ends[0], &ends[1], 1),
               *zero = fx_slice_Tensor(s, scales, 2, &ends[1], &ends[2], 1);
  graft_tensor *weights = fx_reshape(s, fx_add(s, fx_mul(s, q, scale), zero), 2, (const int64_t[]){columns, depth});
  outs[OUT] = fx_mm(s, in.self, fx_transpose(s, weights, 0, 1));
}

static graft_tensor *as_f32(fx *s, graft_tensor *t) {
  if (t && t->ndim > 2) t = fx_reshape(s, t, 0, NULL); /* one number, whatever its rank */
  return t ? fx_cast(s, t, GRAFT_F32) : NULL;
}

static void decompose_scaled_mm(fx *s, const op_call *c, graft_tensor **outs) {
  const in_scaled_mm in = in_scaled_mm_of(c->args);
  graft_tensor *product = fx_mm(s, fx_cast(s, in.self, GRAFT_F32), fx_cast(s, in.mat2, GRAFT_F32));
  product = fx_mul(s, fx_mul(s, product, as_f32(s, in.scale_a)), as_f32(s, in.scale_b));
  if (in.bias) product = fx_add(s, product, as_f32(s, in.bias));
  if (in.scale_result && dt_is_float8(in.out_dtype)) product = fx_mul(s, product, as_f32(s, in.scale_result));
  outs[OUT] = fx_cast(s, product, in.out_dtype);
}

/* --- fake quantization --- */

/* Where results stand in both. */
enum {
  OUTPUT = OUT_fake_quantize_per_tensor_affine_cachemask_output,
  MASK = OUT_fake_quantize_per_tensor_affine_cachemask_mask
};

static graft_status check_range(const op_call *c, int64_t low, int64_t high) {
  if (low <= high) return GRAFT_OK;
  return op_error(c, "quant_min is %lld and quant_max %lld; expected no smaller one", (long long)low, (long long)high);
}

static graft_status infer_fake(op_call *c, const graft_tensor *self) {
  graft_status status = op_check_floating(c, ARG_fake_quantize_per_tensor_affine_cachemask_self);
  if (status) return status;
  op_out_like(c, OUTPUT, self->dtype, self);
  op_out_like(c, MASK, GRAFT_BOOL, self);
  return GRAFT_OK;
}

static graft_status infer_fake_per_tensor(op_call *c) {
  const in_fake_quantize_per_tensor_affine_cachemask in = in_fake_quantize_per_tensor_affine_cachemask_of(c->args);
  graft_status status = check_range(c, in.quant_min, in.quant_max);
  if (status) return status;
  if (in.zero_point < in.quant_min || in.zero_point > in.quant_max)
    return op_error(c, "zero_point is %lld; expected one from quant_min %lld to quant_max %lld",
                    (long long)in.zero_point, (long long)in.quant_min, (long long)in.quant_max);
  return infer_fake(c, in.self);
}

static graft_status infer_fake_per_channel(op_call *c) {
  const in_fake_quantize_per_channel_affine_cachemask in = in_fake_quantize_per_channel_affine_cachemask_of(c->args);
  enum {
    SCALE = ARG_fake_quantize_per_channel_affine_cachemask_scale,
    ZERO_POINT = ARG_fake_quantize_per_channel_affine_cachemask_zero_point
  };
  graft_dtype zero = in.zero_point->dtype;
  if (in.scale->dtype != GRAFT_F32 || in.scale->ndim != 1) return op_refuse(c, SCALE, "f32 of rank 1");
  bool served = zero == GRAFT_I32 || zero == GRAFT_F32 || zero == GRAFT_F16;
  if (!served || in.zero_point->ndim != 1) return op_refuse(c, ZERO_POINT, "i32, f32 or f16 of rank 1");
  graft_status status = check_range(c, in.quant_min, in.quant_max);
  if (status) return status;
  if (in.axis < 0 || in.axis >= in.self->ndim)
    return op_out_of_range(c, "axis %lld is none of self's (%s)", (long long)in.axis, op_show_tensors(c));
  if (in.scale->numel != in.zero_point->numel || in.scale->numel != in.self->sizes[in.axis])
    return op_error(c, "expected a scale and a zero point for each channel (%s)", op_show_tensors(c));
  return infer_fake(c, in.self);
}

/* One channel's, or all. PyTorch computes in f32, and f64 in f64 with numbers of f32. */
typedef struct fake {
  bool wide;
  bool rounds_first;  /* an integer zero point is added to what has been rounded */
  bool narrow_result; /* of f64, too, the result is a product of f32 */
  float scale;
  ref_real zero, low, high;
} fake;

static ref_real rounded(const fake *f, ref_real x) {
  return f->wide ? (ref_real)(double)x : (ref_real)(float)x;
}

/* What x becomes, and whether it was between the ends. */
static ref_real quantized(const fake *f, ref_real x, bool *inside) {
  ref_real at = rounded(f, x * (ref_real)(1.0f / f->scale));
  at = f->rounds_first ? rounded(f, f->zero + rintl(at)) : rintl(rounded(f, f->zero + at));
  *inside = at >= f->low && at <= f->high;
  ref_real held = at > f->low ? fminl(at, f->high) : f->low; /* NaN becomes the lowest */
  ref_real result = (held - f->zero) * (ref_real)f->scale;
  return f->narrow_result ? (ref_real)(float)result : rounded(f, result);
}

static bool is_wide(const graft_tensor_desc *self) {
  return self->dl.dtype == GRAFT_F64 || self->dl.dtype == GRAFT_WIDE;
}

graft_status kernel_fake_quantize_per_tensor_affine_cachemask(
    const graft_exec *exec, const graft_args_fake_quantize_per_tensor_affine_cachemask *a) {
  REF_OWNED ref_array x = ref_read(a->self), mask = ref_new(x.count, false);
  const fake f = {.wide = is_wide(a->self),
                  .rounds_first = true,
                  .narrow_result = true,
                  .scale = (float)a->scale,
                  .zero = (ref_real)a->zero_point,
                  .low = (ref_real)a->quant_min,
                  .high = (ref_real)a->quant_max};
  if (!x.re || !mask.re) return ref_no_memory();
  for (int64_t i = 0; i < x.count; i++) {
    bool inside;
    x.re[i] = quantized(&f, x.re[i], &inside);
    mask.re[i] = inside;
  }
  ref_write(a->output, &x);
  ref_write(a->mask, &mask);
  return GRAFT_OK;
}

graft_status kernel_fake_quantize_per_channel_affine_cachemask(
    const graft_exec *exec, const graft_args_fake_quantize_per_channel_affine_cachemask *a) {
  REF_OWNED ref_array x = ref_read(a->self), scale = ref_read(a->scale), zero = ref_read(a->zero_point),
                      mask = ref_new(x.count, false);
  bool whole = a->zero_point->dl.dtype == GRAFT_I32;
  ref_split split = ref_split_at(a->self, a->axis);
  if (!x.re || !scale.re || !zero.re || !mask.re) return ref_no_memory();
  for (int64_t c = 0; whole && c < zero.count; c++) {
    if (zero.re[c] >= (ref_real)a->quant_min && zero.re[c] <= (ref_real)a->quant_max) continue;
    return err_about(GRAFT_INVALID_ARGUMENT, "aten::fake_quantize_per_channel_affine_cachemask",
                     "zero_point holds %Lg; expected numbers from quant_min %lld to quant_max %lld", zero.re[c],
                     (long long)a->quant_min, (long long)a->quant_max);
  }
  for (int64_t i = 0; i < x.count; i++) {
    int64_t c = i / split.inner % split.size;
    const fake f = {.wide = is_wide(a->self),
                    .rounds_first = whole,
                    .scale = (float)scale.re[c],
                    .zero = zero.re[c],
                    .low = (ref_real)a->quant_min,
                    .high = (ref_real)a->quant_max};
    bool inside;
    x.re[i] = quantized(&f, x.re[i], &inside);
    mask.re[i] = inside;
  }
  ref_write(a->output, &x);
  ref_write(a->mask, &mask);
  return GRAFT_OK;
}

/* Straight through where nothing was cut. */
static void vjp_fake(op_vjp *v) {
  if (v->g[OUTPUT])
    v->results[ARG_fake_quantize_per_tensor_affine_cachemask_self] = fx_mul(v->s, v->g[OUTPUT], v->outs[MASK]);
}

#define FAKE(name, roles_, infer_)                                                    \
  {                                                                                   \
    .op_id = OP_WITH_KERNEL(name), .roles = roles_, .infer = infer_, .vjp = vjp_fake, \
    .saves = OP_SAVE_OUT(name, mask), .without_grad = OP_OUT_BIT(name, mask)          \
  }

static const op_def defs[] = {
    FAKE(fake_quantize_per_tensor_affine_cachemask, "k", infer_fake_per_tensor),
    FAKE(fake_quantize_per_channel_affine_cachemask, "kkk", infer_fake_per_channel),
    {.op_id = GRAFT_OP_INT_MM,
     .flags = OP_EXACT_OUT,
     .roles = "kk",
     .infer = infer_int_mm,
     .decompose = decompose_int_mm},
    {.op_id = OP_WITH_KERNEL(weight_int8pack_mm),
     .roles = "vkv",
     .infer = infer_int8_weight,
     .decompose = decompose_int8_weight},
    {.op_id = OP_WITH_KERNEL(weight_int4pack_mm),
     .roles = "vkv",
     .infer = infer_int4_weight,
     .decompose = decompose_int4_weight},
    {.op_id = OP_WITH_KERNEL(scaled_mm), .roles = "kkkkkk", .infer = infer_scaled_mm, .decompose = decompose_scaled_mm},
};
OP_TABLE(quantized, defs)
