/* Systems with a triangle of a matrix. */
#include "ops/linalg/lin.h"

/* --- rules --- */

static graft_status infer_solve_triangular(op_call *c) {
  const graft_tensor *a = op_tensor(c, ARG_linalg_solve_triangular_self);
  const graft_tensor *b = op_tensor(c, ARG_linalg_solve_triangular_B);
  lin_shape shape;
  graft_status status = lin_check_square(c, ARG_linalg_solve_triangular_self);
  if (!status) status = lin_check_matrix(c, ARG_linalg_solve_triangular_B);
  if (!status) status = op_check_same_dtype(c, ARG_linalg_solve_triangular_self, ARG_linalg_solve_triangular_B);
  if (!status) {
    status = lin_broadcast(c, ARG_linalg_solve_triangular_self, ARG_linalg_solve_triangular_B, &shape);
  }
  if (status) return status;
  if (a->sizes[a->ndim - 1] != b->sizes[b->ndim - (op_bool(c, ARG_linalg_solve_triangular_left) ? 2 : 1)]) {
    return op_error(c, "the sizes of the systems and of the right sides differ: %s", op_show_tensors(c));
  }
  lin_out_columns(c, OUT, b->dtype, shape.ndim, shape.sizes);
  return GRAFT_OK;
}

static graft_status infer_triangular_solve(op_call *c) {
  const graft_tensor *b = op_tensor(c, ARG_triangular_solve_self), *a = op_tensor(c, ARG_triangular_solve_A);
  lin_shape x, copy;
  graft_status status = lin_check_matrix(c, ARG_triangular_solve_self);
  if (!status) status = lin_check_square(c, ARG_triangular_solve_A);
  if (!status) status = op_check_same_dtype(c, ARG_triangular_solve_self, ARG_triangular_solve_A);
  if (!status) status = lin_broadcast(c, ARG_triangular_solve_A, ARG_triangular_solve_self, &x);
  if (!status) status = lin_broadcast(c, ARG_triangular_solve_self, ARG_triangular_solve_A, &copy);
  if (status) return status;
  if (a->sizes[a->ndim - 1] != b->sizes[b->ndim - 2]) {
    return op_error(c, "the sizes of the systems and of the right sides differ: %s", op_show_tensors(c));
  }
  lin_out_columns(c, OUT_triangular_solve_solution, b->dtype, x.ndim, x.sizes);
  lin_out_columns(c, OUT_triangular_solve_cloned_coefficient, b->dtype, copy.ndim, copy.sizes);
  return GRAFT_OK;
}

/* --- kernels --- */

enum { T, B, X, COPY };

static graft_status solve_item(lin_matrix *m, const void *from) {
  const graft_args_linalg_solve_triangular *args = from;
  if (args->left) {
    lin_copy(m[X], m[B]);
    lin_solve_triangle(m[T], (lin_triangle){args->upper, args->unitriangular}, m[X]);
    return GRAFT_OK;
  }
  LIN_OWNED lin_matrix turned = lin_new(m[T].cols, m[T].rows), x = lin_new(m[B].cols, m[B].rows);
  if (!turned.at || !x.at) return ref_no_memory();
  lin_adjoint(turned, m[T]);
  lin_adjoint(x, m[B]);
  lin_solve_triangle(turned, (lin_triangle){!args->upper, args->unitriangular}, x);
  lin_adjoint(m[X], x);
  return GRAFT_OK;
}

graft_status kernel_linalg_solve_triangular(const graft_exec *exec, const graft_args_linalg_solve_triangular *args) {
  const lin_operand operands[] = {[T] = {args->self, 2}, [B] = {args->B, 2}, [X] = {args->out, 2}};
  return lin_each(operands, 2, 1, X, solve_item, args);
}

static graft_status legacy_item(lin_matrix *m, const void *from) {
  const graft_args_triangular_solve *args = from;
  LIN_OWNED lin_matrix t = lin_new(m[T].rows, m[T].cols);
  if (!t.at) return ref_no_memory();
  for (int64_t i = 0; i < t.rows; i++)
    for (int64_t j = 0; j < t.cols; j++) *lin_at(t, i, j) = args->transpose ? *lin_at(m[T], j, i) : *lin_at(m[T], i, j);
  lin_triangle kind = {args->transpose ? !args->upper : args->upper, args->unitriangular};
  if (m[COPY].at) lin_copy(m[COPY], m[T]);
  if (!m[X].at) return GRAFT_OK;
  lin_copy(m[X], m[B]);
  lin_solve_triangle(t, kind, m[X]);
  return GRAFT_OK;
}

graft_status kernel_triangular_solve(const graft_exec *exec, const graft_args_triangular_solve *args) {
  const lin_operand operands[] = {
      [T] = {args->A, 2}, [B] = {args->self, 2}, [X] = {args->solution, 2}, [COPY] = {args->cloned_coefficient, 2}};
  return lin_each(operands, 2, 2, args->solution ? X : COPY, legacy_item, args);
}

/* --- decompositions --- */

static void decompose_triangular_solve(fx *s, const op_call *c, graft_tensor **outs) {
  const in_triangular_solve in = in_triangular_solve_of(c->args);
  graft_tensor *a = in.transpose ? fx_turned(s, in.A) : in.A;
  const graft_meta *copy = &c->out[OUT_triangular_solve_cloned_coefficient];
  graft_tensor *wide = fx_expand(s, in.A, copy->sizes, (uint32_t)copy->ndim, false);
  outs[OUT_triangular_solve_solution] =
      fx_linalg_solve_triangular(s, a, in.self, in.upper != in.transpose, true, in.unitriangular);
  outs[OUT_triangular_solve_cloned_coefficient] = fx_clone(s, wide, GRAFT_FORMAT_CONTIGUOUS);
}

/* --- gradients --- */

/* Of what a solver reads: a triangle, without the diagonal where that is 1. */
static graft_tensor *triangle(fx *s, graft_tensor *a, bool upper, bool unit) {
  return upper ? fx_triu(s, a, unit) : fx_tril(s, a, -(int64_t)unit);
}

static void vjp_solve_triangular(op_vjp *v) {
  const in_linalg_solve_triangular in = in_linalg_solve_triangular_of(v->args);
  fx *s = v->s;
  graft_tensor *x = v->outs[OUT];
  graft_tensor *b =
      fx_linalg_solve_triangular(s, fx_adjoint(s, in.self), v->g[OUT], !in.upper, in.left, in.unitriangular);
  if (vjp_needs(v, ARG_linalg_solve_triangular_B)) {
    v->results[ARG_linalg_solve_triangular_B] = fx_sum_to(s, b, in.B->ndim, in.B->sizes);
  }
  if (!vjp_needs(v, ARG_linalg_solve_triangular_self)) return;
  graft_tensor *a = fx_neg(s, in.left ? lin_mm(s, b, fx_adjoint(s, x)) : lin_mm(s, fx_adjoint(s, x), b));
  v->results[ARG_linalg_solve_triangular_self] =
      fx_sum_to(s, triangle(s, a, in.upper, in.unitriangular), in.self->ndim, in.self->sizes);
}

static void vjp_triangular_solve(op_vjp *v) {
  const in_triangular_solve in = in_triangular_solve_of(v->args);
  fx *s = v->s;
  graft_tensor *x = v->outs[OUT_triangular_solve_solution], *g = v->g[OUT_triangular_solve_solution], *a = NULL;
  graft_tensor *copied = v->g[OUT_triangular_solve_cloned_coefficient];
  if (g) {
    graft_tensor *turned = fx_conj(s, in.A), *copy = NULL, *b = NULL;
    fx_triangular_solve(s, g, turned, in.upper, !in.transpose, in.unitriangular, &b, &copy);
    v->results[ARG_triangular_solve_self] = fx_sum_to(s, b, in.self->ndim, in.self->sizes);
    graft_tensor *product = in.transpose ? lin_mm(s, fx_conj(s, x), fx_turned(s, b)) : lin_mm(s, b, fx_adjoint(s, x));
    a = triangle(s, fx_neg(s, product), in.upper, in.unitriangular);
  }
  a = lin_add(s, a, copied);
  if (a) v->results[ARG_triangular_solve_A] = fx_sum_to(s, a, in.A->ndim, in.A->sizes);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(linalg_solve_triangular),
     .roles = "kk",
     .infer = infer_solve_triangular,
     .vjp = vjp_solve_triangular,
     .saves = OP_SAVE_ARGS(linalg_solve_triangular, self) | OP_SAVE_OUT(linalg_solve_triangular, out)},
    {.op_id = OP_WITH_KERNEL(triangular_solve),
     .roles = "kk",
     .infer = infer_triangular_solve,
     .decompose = decompose_triangular_solve,
     .vjp = vjp_triangular_solve,
     .saves = OP_SAVE_ARGS(triangular_solve, A) | OP_SAVE_OUT(triangular_solve, solution)},
};
OP_TABLE(linalg_triangular, defs)
