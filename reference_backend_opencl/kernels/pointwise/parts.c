/* Pointwise ops whose operands are parts of tensors: the halves of a gated linear unit, the real and imaginary parts of
 * complex numbers. A part is a view, so that the pointwise kernel does the rest. Likewise numbers that are made of an
 * op's own: the power of ten that decimals stand for. */
#include "kernels/pointwise/pointwise.h"

#include <math.h>

/* Views made here keep their descriptors on the stack: shapes and strides are copied along. */
typedef struct view {
  graft_tensor_desc desc;
  int64_t shape[OCL_DIMS_MAX], strides[OCL_DIMS_MAX];
} view;

static void view_of(view *v, const graft_tensor_desc *whole) {
  v->desc = *whole;
  v->desc.dl.shape = v->shape;
  v->desc.dl.strides = v->strides;
  for (int d = 0; d < whole->dl.ndim; d++) {
    v->shape[d] = whole->dl.shape[d];
    v->strides[d] = whole->dl.strides[d];
  }
}

/* The first or second half along a dimension. */
static const graft_tensor_desc *half_of(view *v, const graft_tensor_desc *whole, int64_t dim, int which) {
  view_of(v, whole);
  v->shape[dim] /= 2;
  uint64_t bytes = GRAFT_DTYPE_BYTES(whole->dl.dtype);
  v->desc.dl.byte_offset += (uint64_t)(which * v->shape[dim] * v->strides[dim]) * bytes;
  return &v->desc;
}

/* The real or imaginary parts of complex numbers. */
static const graft_tensor_desc *part_of(view *v, const graft_tensor_desc *whole, int which) {
  bool is_double = whole->dl.dtype == GRAFT_C128;
  view_of(v, whole);
  v->desc.dl.dtype = is_double ? GRAFT_F64 : GRAFT_F32;
  v->desc.dl.byte_offset += which * (is_double ? UINT64_C(8) : UINT64_C(4));
  for (int d = 0; d < whole->dl.ndim; d++) v->strides[d] *= 2;
  return &v->desc;
}

static const ocl_pointwise_recipe gate = {.dtypes = OCL_FLOATS, .expression = "a * sigmoid(b)"};
static const ocl_pointwise_recipe gate_slopes = {.dtypes = OCL_FLOATS,
                                                 .flags = OCL_SPECIAL | OCL_TWO_RESULTS,
                                                 .expression = "c * sigmoid(b)",
                                                 .second = "c * a * sigmoid_slope(sigmoid(b))"};
static const ocl_pointwise_recipe from_polar = {
    .dtypes = OCL_FLOATS, .flags = OCL_TWO_RESULTS, .expression = "a * apart_cos(b)", .second = "a * apart_sin(b)"};
static const ocl_pointwise_recipe from_parts = {
    .dtypes = OCL_FLOATS, .flags = OCL_TWO_RESULTS, .expression = "a", .second = "b"};
static const ocl_pointwise_recipe decimals = {.dtypes = OCL_FLOATS,
                                              .expression = "number_y < 0 ? rint(a / x) * x : rint(a * x) / x"};
static const ocl_pointwise_recipe angle_of_real = {
    .dtypes = OCL_FLOATS,
    .flags = OCL_FLOAT_RESULT,
    .expression = "a != a ? a : a < (VT)0 ? (VT)K(3.1415926535897932385) : (VT)0"};
static const ocl_pointwise_recipe angle_of_parts = {
    .dtypes = OCL_FLOATS, .flags = OCL_FLOAT_RESULT, .expression = "atan2(a, b)"};

graft_status ocl_op_glu(const graft_exec *exec, const graft_args_glu *args) {
  view a, b;
  return ocl_pointwise(
      exec, &gate,
      &(ocl_operands){.inputs = 2,
                      .input = {half_of(&a, args->self, args->dim, 0), half_of(&b, args->self, args->dim, 1)},
                      .out = args->out});
}

graft_status ocl_op_glu_backward(const graft_exec *exec, const graft_args_glu_backward *args) {
  view a, b, of_a, of_b;
  return ocl_pointwise(exec, &gate_slopes,
                       &(ocl_operands){.inputs = 3,
                                       .input = {half_of(&a, args->self, args->dim, 0),
                                                 half_of(&b, args->self, args->dim, 1), args->grad_output},
                                       .out = half_of(&of_a, args->out, args->dim, 0),
                                       .second = half_of(&of_b, args->out, args->dim, 1)});
}

static graft_status make_complex(const graft_exec *exec, const ocl_pointwise_recipe *recipe, const graft_tensor_desc *a,
                                 const graft_tensor_desc *b, const graft_tensor_desc *out) {
  view re, im;
  if (!ocl_is_complex(out->dl.dtype)) return GRAFT_UNIMPLEMENTED;
  return ocl_pointwise(
      exec, recipe,
      &(ocl_operands){.inputs = 2, .input = {a, b}, .out = part_of(&re, out, 0), .second = part_of(&im, out, 1)});
}

graft_status ocl_op_polar(const graft_exec *exec, const graft_args_polar *args) {
  return make_complex(exec, &from_polar, args->abs, args->angle, args->out);
}

graft_status ocl_op_complex(const graft_exec *exec, const graft_args_complex *args) {
  return make_complex(exec, &from_parts, args->real, args->imag, args->out);
}

graft_status ocl_op_angle(const graft_exec *exec, const graft_args_angle *args) {
  view re, im;
  if (!ocl_is_complex(args->self->dl.dtype)) {
    return ocl_pointwise(exec, &angle_of_real, &(ocl_operands){.inputs = 1, .input = {args->self}, .out = args->out});
  }
  return ocl_pointwise(
      exec, &angle_of_parts,
      &(ocl_operands){
          .inputs = 2, .input = {part_of(&im, args->self, 1), part_of(&re, args->self, 0)}, .out = args->out});
}

graft_status ocl_op_round_decimals(const graft_exec *exec, const graft_args_round_decimals *args) {
  graft_scalar scalars[] = {{.dtype = GRAFT_F64, .value.f = pow(10, fabs((double)args->decimals))},
                            {.dtype = GRAFT_F64, .value.f = args->decimals < 0 ? -1 : 1}};
  return ocl_pointwise(exec, &decimals,
                       &(ocl_operands){.op_id = GRAFT_OP_ROUND_DECIMALS,
                                       .inputs = 1,
                                       .input = {args->self},
                                       .out = args->out,
                                       .scalars = 2,
                                       .scalar = {&scalars[0], &scalars[1]}});
}
