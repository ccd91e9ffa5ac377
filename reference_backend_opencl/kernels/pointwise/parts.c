/* Pointwise ops whose operands are parts of tensors: the halves of a gated linear unit, the real and imaginary parts of
 * complex numbers. A part is a view, so that the pointwise kernel does the rest. */
#include "kernels/families.h"

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

static bool is_complex(const graft_tensor_desc *desc) {
  return desc->dl.dtype == GRAFT_C64 || desc->dl.dtype == GRAFT_C128;
}

bool ocl_pointwise_parts_caps(uint32_t op_id, ocl_op_caps *caps) {
  const uint64_t parts = OCL_BIT(F32) | OCL_BIT(F64);
  caps->flags = GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED;
  switch (op_id) {
    case GRAFT_OP_GLU:
    case GRAFT_OP_GLU_BACKWARD: caps->inputs = caps->outputs = OCL_FLOATS; return true;
    case GRAFT_OP_POLAR:
    case GRAFT_OP_COMPLEX:
      caps->inputs = parts;
      caps->outputs = OCL_COMPLEX;
      return true;
    case GRAFT_OP_ANGLE:
      caps->inputs = OCL_FLOATS | OCL_INTS | OCL_BOOLS | OCL_COMPLEX;
      caps->outputs = OCL_FLOATS;
      return true;
    default: return false;
  }
}

graft_status ocl_op_glu(const graft_exec *exec, const graft_args_glu *args) {
  view a, b;
  const ocl_parts parts = {
      .a = half_of(&a, args->self, args->dim, 0), .b = half_of(&b, args->self, args->dim, 1), .out = args->out};
  return ocl_pointwise(exec, &parts, GRAFT_OP_GLU);
}

graft_status ocl_op_glu_backward(const graft_exec *exec, const graft_args_glu_backward *args) {
  view a, b, of_a, of_b;
  const ocl_parts parts = {.a = half_of(&a, args->self, args->dim, 0),
                           .b = half_of(&b, args->self, args->dim, 1),
                           .c = args->grad_output,
                           .out = half_of(&of_a, args->out, args->dim, 0),
                           .second = half_of(&of_b, args->out, args->dim, 1)};
  return ocl_pointwise(exec, &parts, GRAFT_OP_GLU_BACKWARD);
}

static graft_status make_complex(const graft_exec *exec, uint32_t op_id, const graft_tensor_desc *a,
                                 const graft_tensor_desc *b, const graft_tensor_desc *out) {
  view re, im;
  if (!is_complex(out)) return GRAFT_UNIMPLEMENTED;
  const ocl_parts parts = {.a = a, .b = b, .out = part_of(&re, out, 0), .second = part_of(&im, out, 1)};
  return ocl_pointwise(exec, &parts, op_id);
}

graft_status ocl_op_polar(const graft_exec *exec, const graft_args_polar *args) {
  return make_complex(exec, GRAFT_OP_POLAR, args->abs, args->angle, args->out);
}

graft_status ocl_op_complex(const graft_exec *exec, const graft_args_complex *args) {
  return make_complex(exec, GRAFT_OP_COMPLEX, args->real, args->imag, args->out);
}

graft_status ocl_op_angle(const graft_exec *exec, const graft_args_angle *args) {
  view re, im;
  if (!is_complex(args->self)) return ocl_pointwise(exec, args, GRAFT_OP_ANGLE);
  const graft_args_atan2 parts = {
      .self = part_of(&im, args->self, 1), .other = part_of(&re, args->self, 0), .out = args->out};
  return ocl_pointwise(exec, &parts, GRAFT_OP_ATAN2);
}
