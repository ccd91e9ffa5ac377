/* The Cholesky factorization, and solving with it. */
#include "ops/linalg/lin.h"

/* --- rules --- */

static graft_status infer_cholesky_ex(op_call *c) {
  const graft_tensor *a = op_tensor(c, ARG_linalg_cholesky_ex_self);
  graft_status status = lin_check_square(c, ARG_linalg_cholesky_ex_self);
  if (status) return status;
  lin_out_columns(c, OUT_linalg_cholesky_ex_L, a->dtype, a->ndim, a->sizes);
  lin_out_batch(c, OUT_linalg_cholesky_ex_info, GRAFT_I32, a, 2);
  return GRAFT_OK;
}

static graft_status infer_cholesky_inverse(op_call *c) {
  const graft_tensor *l = op_tensor(c, ARG_cholesky_inverse_self);
  graft_status status = lin_check_square(c, ARG_cholesky_inverse_self);
  if (!status) lin_out_columns(c, OUT, l->dtype, l->ndim, l->sizes);
  return status;
}

static graft_status infer_cholesky_solve(op_call *c) {
  const graft_tensor *b = op_tensor(c, ARG_cholesky_solve_self), *l = op_tensor(c, ARG_cholesky_solve_input2);
  lin_shape shape;
  graft_status status = lin_check_matrix(c, ARG_cholesky_solve_self);
  if (!status) status = lin_check_square(c, ARG_cholesky_solve_input2);
  if (!status) status = op_check_same_dtype(c, ARG_cholesky_solve_self, ARG_cholesky_solve_input2);
  if (!status) status = lin_broadcast(c, ARG_cholesky_solve_input2, ARG_cholesky_solve_self, &shape);
  if (status) return status;
  if (l->sizes[l->ndim - 1] != b->sizes[b->ndim - 2]) {
    return op_error(c, "the factor's size is not the number of rows: %s", op_show_tensors(c));
  }
  lin_out_columns(c, OUT, b->dtype, shape.ndim, shape.sizes);
  return GRAFT_OK;
}

/* --- kernels --- */

enum { A, L, INFO };

static graft_status cholesky_item(lin_matrix *m, const void *from) {
  const graft_args_linalg_cholesky_ex *args = from;
  LIN_OWNED lin_matrix a = lin_new(m[A].rows, m[A].cols);
  if (!a.at) return ref_no_memory();
  if (args->upper)
    lin_adjoint(a, m[A]);
  else
    lin_copy(a, m[A]);
  int64_t info = lin_cholesky(a);
  if (m[L].at && args->upper) lin_adjoint(m[L], a);
  if (m[L].at && !args->upper) lin_copy(m[L], a);
  if (m[INFO].at) *m[INFO].at = (ref_real)info;
  return lin_check_info(args->check_errors, info,
                        "linalg.cholesky: the input is not positive-definite, the leading minor of this order is not");
}

graft_status kernel_linalg_cholesky_ex(const graft_exec *exec, const graft_args_linalg_cholesky_ex *args) {
  const lin_operand operands[] = {[A] = {args->self, 2}, [L] = {args->L, 2}, [INFO] = {args->info, 0}};
  return lin_each(operands, 1, 2, A, cholesky_item, args);
}

/* x = (L L^H)^-1 x, or of an upper factor (U^H U)^-1 x. */
static graft_status solve_factored(lin_matrix factor, bool upper, lin_matrix x) {
  LIN_OWNED lin_matrix turned = lin_new(factor.cols, factor.rows);
  if (!turned.at) return ref_no_memory();
  lin_adjoint(turned, factor);
  lin_solve_triangle(upper ? turned : factor, (lin_triangle){.upper = false}, x);
  lin_solve_triangle(upper ? factor : turned, (lin_triangle){.upper = true}, x);
  return GRAFT_OK;
}

static graft_status inverse_item(lin_matrix *m, const void *from) {
  const graft_args_cholesky_inverse *args = from;
  lin_identity(m[1]);
  return solve_factored(m[0], args->upper, m[1]);
}

graft_status kernel_cholesky_inverse(const graft_exec *exec, const graft_args_cholesky_inverse *args) {
  const lin_operand operands[] = {{args->self, 2}, {args->out, 2}};
  return lin_each(operands, 1, 1, 0, inverse_item, args);
}

static graft_status solve_item(lin_matrix *m, const void *from) {
  const graft_args_cholesky_solve *args = from;
  lin_copy(m[2], m[0]);
  return solve_factored(m[1], args->upper, m[2]);
}

graft_status kernel_cholesky_solve(const graft_exec *exec, const graft_args_cholesky_solve *args) {
  const lin_operand operands[] = {{args->self, 2}, {args->input2, 2}, {args->out, 2}};
  return lin_each(operands, 2, 1, 2, solve_item, args);
}

/* --- decompositions --- */

static graft_tensor *solved(fx *s, graft_tensor *b, graft_tensor *factor, bool upper) {
  graft_tensor *turned = fx_adjoint(s, factor);
  graft_tensor *y = fx_linalg_solve_triangular(s, upper ? turned : factor, b, false, true, false);
  return fx_linalg_solve_triangular(s, upper ? factor : turned, y, true, true, false);
}

static void decompose_cholesky_inverse(fx *s, const op_call *c, graft_tensor **outs) {
  const in_cholesky_inverse in = in_cholesky_inverse_of(c->args);
  outs[OUT] = solved(s, lin_eye(s, in.self->sizes[in.self->ndim - 1], in.self), in.self, in.upper);
}

static void decompose_cholesky_solve(fx *s, const op_call *c, graft_tensor **outs) {
  const in_cholesky_solve in = in_cholesky_solve_of(c->args);
  outs[OUT] = solved(s, in.self, in.input2, in.upper);
}

/* --- gradients --- */

/* From A = L L^H: L^-1 dA L^-H = L^-1 dL + (L^-1 dL)^H, so that with P = tril(L^H g) + tril(L^H g, -1)^H the gradient
 * is L^-H P L^-1 / 2 (Murray, Differentiation of the Cholesky decomposition, 2016). */
static void vjp_cholesky_ex(op_vjp *v) {
  const in_linalg_cholesky_ex in = in_linalg_cholesky_ex_of(v->args);
  fx *s = v->s;
  graft_tensor *factor = v->outs[OUT_linalg_cholesky_ex_L], *g = v->g[OUT_linalg_cholesky_ex_L];
  if (!g) return;
  graft_tensor *l = in.upper ? fx_adjoint(s, factor) : factor;
  graft_tensor *turned = in.upper ? factor : fx_adjoint(s, factor);
  graft_tensor *inner = fx_tril(s, lin_mm(s, turned, in.upper ? fx_adjoint(s, g) : g), 0);
  inner = fx_add(s, inner, fx_adjoint(s, fx_tril(s, inner, -1)));
  inner = fx_linalg_solve_triangular(s, turned, fx_muls(s, inner, 0.5), true, true, false);
  v->results[ARG_linalg_cholesky_ex_self] = fx_linalg_solve_triangular(s, l, inner, false, false, false);
}

/* The factor's gradient where its product with its adjoint has -(sum + sum^H) / 2 for one. */
static graft_tensor *factor_gradient(fx *s, graft_tensor *factor, bool upper, graft_tensor *sum) {
  graft_tensor *both = fx_add(s, sum, fx_adjoint(s, sum));
  return fx_neg(s, upper ? lin_mm(s, factor, both) : lin_mm(s, both, factor));
}

static void vjp_cholesky_inverse(op_vjp *v) {
  const in_cholesky_inverse in = in_cholesky_inverse_of(v->args);
  fx *s = v->s;
  graft_tensor *inverse = v->outs[OUT];
  graft_tensor *sum = lin_mm(s, inverse, lin_mm(s, v->g[OUT], inverse));
  v->results[ARG_cholesky_inverse_self] = factor_gradient(s, in.self, in.upper, sum);
}

static void vjp_cholesky_solve(op_vjp *v) {
  const in_cholesky_solve in = in_cholesky_solve_of(v->args);
  fx *s = v->s;
  graft_tensor *back = fx_cholesky_solve(s, v->g[OUT], in.input2, in.upper);
  if (vjp_needs(v, ARG_cholesky_solve_self)) {
    v->results[ARG_cholesky_solve_self] = fx_sum_to(s, back, in.self->ndim, in.self->sizes);
  }
  if (!vjp_needs(v, ARG_cholesky_solve_input2)) return;
  graft_tensor *sum = lin_mm(s, back, fx_adjoint(s, v->outs[OUT]));
  v->results[ARG_cholesky_solve_input2] =
      fx_sum_to(s, factor_gradient(s, in.input2, in.upper, sum), in.input2->ndim, in.input2->sizes);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(linalg_cholesky_ex),
     .roles = "k",
     .flags = OP_EXACT_OUT,
     .infer = infer_cholesky_ex,
     .vjp = vjp_cholesky_ex,
     .saves = OP_SAVE_OUT(linalg_cholesky_ex, L),
     .without_grad = OP_OUT_BIT(linalg_cholesky_ex, info)},
    {.op_id = OP_WITH_KERNEL(cholesky_inverse),
     .roles = "k",
     .infer = infer_cholesky_inverse,
     .decompose = decompose_cholesky_inverse,
     .vjp = vjp_cholesky_inverse,
     .saves = OP_SAVE_ARGS(cholesky_inverse, self) | OP_SAVE_OUT(cholesky_inverse, out)},
    {.op_id = OP_WITH_KERNEL(cholesky_solve),
     .roles = "kk",
     .infer = infer_cholesky_solve,
     .decompose = decompose_cholesky_solve,
     .vjp = vjp_cholesky_solve,
     .saves = OP_SAVE_ARGS(cholesky_solve, input2) | OP_SAVE_OUT(cholesky_solve, out)},
};
OP_TABLE(linalg_cholesky, defs)
