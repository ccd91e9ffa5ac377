/* Products of matrices in few bits: i8 by i8, float8 by float8, and numbers by weights of i8 or of 4 bits. */
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

static const op_def defs[] = {
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
