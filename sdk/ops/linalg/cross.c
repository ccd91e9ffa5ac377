/* The cross product of vectors of three. */
#include "ops/linalg/lin.h"

static graft_status infer_cross(op_call *c) {
  const graft_tensor *a = op_tensor(c, ARG_linalg_cross_self), *b = op_tensor(c, ARG_linalg_cross_other);
  if (a->ndim != b->ndim) return op_error(c, "expected tensors of one rank, got %s", op_show_tensors(c));
  int64_t dim = op_int(c, ARG_linalg_cross_dim);
  graft_status status = op_wrap_dim(c, &dim, a->ndim);
  if (status) return status;
  if (!a->ndim || a->sizes[dim] != 3 || b->sizes[dim] != 3) {
    return op_error(c, "expected vectors of 3 along dim %lld, got %s", (long long)dim, op_show_tensors(c));
  }
  status = op_check_same_dtype(c, ARG_linalg_cross_self, ARG_linalg_cross_other);
  if (status) return status;
  if (a->dtype == GRAFT_BOOL || dt_is_float8(a->dtype)) return op_refuse(c, ARG_linalg_cross_self, "numbers");
  op_set_int(c, ARG_linalg_cross_dim, dim);
  c->compute = a->dtype;
  status = op_out_broadcast(c, OUT, a->dtype);
  if (!status) op_out(c, OUT, a->dtype, c->out[OUT].ndim, c->out[OUT].sizes);
  return status;
}

static ref_real difference(graft_dtype dtype, ref_real a, ref_real b, ref_real c, ref_real d) {
  if (!dt_is_integral(dtype, false)) return a * b - c * d;
  return ref_of_bits(dtype, ref_bits(a) * ref_bits(b) - ref_bits(c) * ref_bits(d));
}

graft_status kernel_linalg_cross(const graft_exec *exec, const graft_args_linalg_cross *args) {
  ref_split s = ref_split_at(args->out, args->dim);
  graft_dtype dtype = args->out->dl.dtype;
  REF_OWNED ref_array a = ref_read(args->self), b = ref_read(args->other), y = ref_new(a.count, dt_is_complex(dtype));
  if (!a.re || !b.re || !y.re) return ref_no_memory();
  for (int64_t i = 0; i < y.count; i++) {
    int64_t part = i / s.inner % 3, first = i - part * s.inner;
    int64_t p = first + (part + 1) % 3 * s.inner, q = first + (part + 2) % 3 * s.inner;
    if (y.im) {
      ref_complex z = ref_at(&a, p) * ref_at(&b, q) - ref_at(&a, q) * ref_at(&b, p);
      y.re[i] = creall(z), y.im[i] = cimagl(z);
    } else {
      y.re[i] = difference(dtype, a.re[p], b.re[q], a.re[q], b.re[p]);
    }
  }
  ref_write(args->out, &y);
  return GRAFT_OK;
}

/* What comes before this part of each vector, in a circle, and what comes after it. */
static void decompose_cross(fx *s, const op_call *c, graft_tensor **outs) {
  const in_linalg_cross in = in_linalg_cross_of(c->args);
  const int64_t one = -1, two = -2;
  graft_tensor *a1 = fx_roll(s, in.self, &one, 1, &in.dim, 1), *b1 = fx_roll(s, in.other, &one, 1, &in.dim, 1);
  graft_tensor *a2 = fx_roll(s, in.self, &two, 1, &in.dim, 1), *b2 = fx_roll(s, in.other, &two, 1, &in.dim, 1);
  outs[OUT] = fx_sub(s, fx_mul(s, a1, b2), fx_mul(s, a2, b1));
}

/* In f32 at least: operands that were broadcast get sums of these. */
static void vjp_cross(op_vjp *v) {
  fx *s = v->s;
  const in_linalg_cross in = in_linalg_cross_of(v->args);
  graft_tensor *g = fx_widened(s, v->g[OUT]);
  if (vjp_needs(v, ARG_linalg_cross_self)) {
    v->results[ARG_linalg_cross_self] = fx_linalg_cross(s, fx_widened(s, fx_conj(s, in.other)), g, in.dim);
  }
  if (vjp_needs(v, ARG_linalg_cross_other)) {
    v->results[ARG_linalg_cross_other] = fx_linalg_cross(s, g, fx_widened(s, fx_conj(s, in.self)), in.dim);
  }
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(linalg_cross),
     .roles = "bb",
     .infer = infer_cross,
     .decompose = decompose_cross,
     .vjp = vjp_cross,
     .saves = OP_SAVE_ARGS(linalg_cross, self, other)},
};
OP_TABLE(linalg_cross, defs)
