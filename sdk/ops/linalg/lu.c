/* The LU factorization with exchanged rows, and what follows from it: solutions, inverses, determinants. */
#include "ops/linalg/lin.h"

/* --- rules --- */

static graft_status infer_lu_factor_ex(op_call *c) {
  const graft_tensor *a = op_tensor(c, ARG_linalg_lu_factor_ex_A);
  graft_status status = lin_check_matrix(c, ARG_linalg_lu_factor_ex_A);
  if (status) return status;
  int64_t rows = a->sizes[a->ndim - 2], columns = a->sizes[a->ndim - 1];
  lin_out_columns(c, OUT_linalg_lu_factor_ex_LU, a->dtype, a->ndim, a->sizes);
  lin_out_vectors(c, OUT_linalg_lu_factor_ex_pivots, GRAFT_I32, a, 2, lin_smaller(rows, columns));
  lin_out_batch(c, OUT_linalg_lu_factor_ex_info, GRAFT_I32, a, 2);
  return GRAFT_OK;
}

static graft_status infer_inv_ex(op_call *c) {
  const graft_tensor *a = op_tensor(c, ARG_linalg_inv_ex_A);
  graft_status status = lin_check_square(c, ARG_linalg_inv_ex_A);
  if (status) return status;
  lin_out_columns(c, OUT_linalg_inv_ex_inverse, a->dtype, a->ndim, a->sizes);
  lin_out_batch(c, OUT_linalg_inv_ex_info, GRAFT_I32, a, 2);
  return GRAFT_OK;
}

/* PyTorch factors the transpose of a real matrix that lies row by row, which its LAPACK can read as it is, and the
 * formulas of its gradients count on it. Slots factor what they are given; what this says is decomposed. */
static bool factors_transpose(const graft_tensor *a) {
  bool contiguous = tns_is_contiguous(a->ndim, a->sizes, a->strides);
  return contiguous && !dt_is_complex(a->dtype) && a->sizes[a->ndim - 1] > 1;
}

static void decompose_transposed(op_call *c, const graft_tensor *a) {
  c->decompose_only = factors_transpose(a);
  c->no_decompose = !c->decompose_only;
}

static graft_status infer_det(op_call *c) {
  const graft_tensor *a = op_tensor(c, ARG_linalg_det_A);
  graft_status status = lin_check_square(c, ARG_linalg_det_A);
  if (status) return status;
  decompose_transposed(c, a);
  lin_out_batch(c, OUT_linalg_det_result, a->dtype, a, 2);
  lin_out_columns(c, OUT_linalg_det_LU, a->dtype, a->ndim, a->sizes);
  lin_out_batch(c, OUT_linalg_det_pivots, GRAFT_I32, a, 1);
  return GRAFT_OK;
}

static graft_status infer_slogdet(op_call *c) {
  const graft_tensor *a = op_tensor(c, ARG_linalg_slogdet_A);
  graft_status status = lin_check_square(c, ARG_linalg_slogdet_A);
  if (status) return status;
  decompose_transposed(c, a);
  lin_out_batch(c, OUT_linalg_slogdet_sign, a->dtype, a, 2);
  lin_out_batch(c, OUT_linalg_slogdet_logabsdet, dt_real(a->dtype), a, 2);
  lin_out_columns(c, OUT_linalg_slogdet_LU, a->dtype, a->ndim, a->sizes);
  lin_out_batch(c, OUT_linalg_slogdet_pivots, GRAFT_I32, a, 1);
  return GRAFT_OK;
}

/* Whether b is a stack of vectors beside a's matrices, as PyTorch tells: one vector, or as many as there are matrices.
 */
static bool is_vectors(const graft_tensor *a, const graft_tensor *b) {
  return b->ndim == 1 || (a->ndim - 1 == b->ndim && tns_has_sizes(b, a->ndim - 1, a->sizes));
}

static graft_status check_system(const op_call *c, const graft_tensor *a, const graft_tensor *b, bool left) {
  bool fits = a->sizes[a->ndim - 1] == b->sizes[b->ndim - (left ? 2 : 1)];
  return fits ? GRAFT_OK
              : op_error(c, "the sizes of the systems and of the right sides differ: %s", op_show_tensors(c));
}

/* Column by column, as LAPACK solves; row by row where the transposed system is solved. */
static void out_solution(op_call *c, int out, graft_dtype dtype, const lin_shape *shape, bool left) {
  if (left)
    lin_out_columns(c, out, dtype, shape->ndim, shape->sizes);
  else
    op_out(c, out, dtype, shape->ndim, shape->sizes);
}

static graft_status infer_solve_ex(op_call *c) {
  const graft_tensor *a = op_tensor(c, ARG_linalg_solve_ex_A), *b = op_tensor(c, ARG_linalg_solve_ex_B);
  bool left = op_bool(c, ARG_linalg_solve_ex_left);
  lin_shape shape;
  graft_status status = lin_check_square(c, ARG_linalg_solve_ex_A);
  if (!status) status = op_check_same_dtype(c, ARG_linalg_solve_ex_A, ARG_linalg_solve_ex_B);
  if (status) return status;
  bool vectors = is_vectors(a, b);
  if (vectors && !left) return op_refuse(c, ARG_linalg_solve_ex_B, "matrices where left is false");
  if (vectors) {
    if (b->sizes[b->ndim - 1] != a->sizes[a->ndim - 1]) {
      return op_error(c, "the sizes of the systems and of the right sides differ: %s", op_show_tensors(c));
    }
    shape = (lin_shape){.ndim = a->ndim - 1};
    for (int32_t d = 0; d < shape.ndim; d++) shape.sizes[d] = a->sizes[d];
  } else {
    status = lin_check_matrix(c, ARG_linalg_solve_ex_B);
    if (!status) status = check_system(c, a, b, left);
    if (!status) status = lin_broadcast(c, ARG_linalg_solve_ex_A, ARG_linalg_solve_ex_B, &shape);
    if (status) return status;
  }
  out_solution(c, OUT_linalg_solve_ex_result, b->dtype, &shape, left);
  lin_out_columns(c, OUT_linalg_solve_ex_LU, a->dtype, a->ndim, a->sizes);
  lin_out_batch(c, OUT_linalg_solve_ex_pivots, GRAFT_I32, a, 1);
  lin_out_batch(c, OUT_linalg_solve_ex_info, GRAFT_I32, a, 2);
  return GRAFT_OK;
}

static graft_status infer_lu_solve(op_call *c) {
  const graft_tensor *lu = op_tensor(c, ARG_linalg_lu_solve_LU), *b = op_tensor(c, ARG_linalg_lu_solve_B);
  const graft_tensor *pivots = op_tensor(c, ARG_linalg_lu_solve_pivots);
  bool left = op_bool(c, ARG_linalg_lu_solve_left);
  lin_shape shape;
  graft_status status = lin_check_square(c, ARG_linalg_lu_solve_LU);
  if (!status) status = lin_check_matrix(c, ARG_linalg_lu_solve_B);
  if (!status) status = op_check_same_dtype(c, ARG_linalg_lu_solve_LU, ARG_linalg_lu_solve_B);
  if (!status) status = op_check_dtype(c, ARG_linalg_lu_solve_pivots, GRAFT_I32);
  if (!status) status = check_system(c, lu, b, left);
  if (!status && !tns_has_sizes(pivots, lu->ndim - 1, lu->sizes)) {
    status = op_refuse(c, ARG_linalg_lu_solve_pivots, "one pivot for each row of LU");
  }
  if (!status) status = lin_broadcast(c, ARG_linalg_lu_solve_LU, ARG_linalg_lu_solve_B, &shape);
  if (status) return status;
  out_solution(c, OUT, b->dtype, &shape, left);
  return GRAFT_OK;
}

/* --- kernels --- */

/* A matrix factored in memory of its own. */
typedef struct factored {
  lin_matrix lu, pivots;
  int64_t info;
} factored;

static void factored_free(factored *f) {
  lin_free(&f->lu);
  lin_free(&f->pivots);
}
#define FACTORED __attribute__((cleanup(factored_free))) factored

static factored factor(lin_matrix a, bool pivot) {
  factored f = {.lu = lin_new(a.rows, a.cols), .pivots = lin_new(a.rows < a.cols ? a.rows : a.cols, 1)};
  if (!f.lu.at || !f.pivots.at) return f;
  lin_copy(f.lu, a);
  f.info = lin_lu(f.lu, f.pivots, pivot);
  return f;
}

static bool is_made(const factored *f) {
  return f->lu.at && f->pivots.at;
}

static void put_factors(const factored *f, lin_matrix lu, lin_matrix pivots) {
  if (lu.at) lin_copy(lu, f->lu);
  if (pivots.at) lin_copy(pivots, f->pivots);
}

#define SINGULAR "the diagonal element of U of this number is zero, so that the matrix is singular"

static graft_status lu_item(lin_matrix *m, const void *from) {
  const graft_args_linalg_lu_factor_ex *args = from;
  FACTORED f = factor(m[0], args->pivot);
  if (!is_made(&f)) return ref_no_memory();
  put_factors(&f, m[1], m[2]);
  if (m[3].at) *m[3].at = (ref_real)f.info;
  return lin_check_info(args->check_errors, f.info, "linalg.lu_factor: " SINGULAR);
}

graft_status kernel_linalg_lu_factor_ex(const graft_exec *exec, const graft_args_linalg_lu_factor_ex *args) {
  const lin_operand operands[] = {{args->A, 2}, {args->LU, 2}, {args->pivots, 1}, {args->info, 0}};
  return lin_each(operands, 1, 3, 0, lu_item, args);
}

/* x op(a) = b is op(a)^H x^H = b^H. */
static graft_status solve_sides(lin_matrix lu, lin_matrix pivots, bool left, bool adjoint, lin_matrix b, lin_matrix x) {
  if (left) {
    lin_copy(x, b);
    lin_solve_lu(lu, pivots, adjoint, x);
    return GRAFT_OK;
  }
  LIN_OWNED lin_matrix turned = lin_new(b.cols, b.rows);
  if (!turned.at) return ref_no_memory();
  lin_adjoint(turned, b);
  lin_solve_lu(lu, pivots, !adjoint, turned);
  lin_adjoint(x, turned);
  return GRAFT_OK;
}

static graft_status solve_item(lin_matrix *m, const void *from) {
  const graft_args_linalg_solve_ex *args = from;
  FACTORED f = factor(m[0], true);
  if (!is_made(&f)) return ref_no_memory();
  return solve_sides(f.lu, f.pivots, args->left, false, m[1], m[2]);
}

static graft_status solve_factors_item(lin_matrix *m, const void *from) {
  const graft_args_linalg_solve_ex *args = from;
  FACTORED f = factor(m[0], true);
  if (!is_made(&f)) return ref_no_memory();
  put_factors(&f, m[1], m[2]);
  if (m[3].at) *m[3].at = (ref_real)f.info;
  return lin_check_info(args->check_errors, f.info, "linalg.solve: " SINGULAR);
}

graft_status kernel_linalg_solve_ex(const graft_exec *exec, const graft_args_linalg_solve_ex *args) {
  const lin_operand factors[] = {{args->A, 2}, {args->LU, 2}, {args->pivots, 1}, {args->info, 0}};
  graft_status status = lin_each(factors, 1, 3, 0, solve_factors_item, args);
  if (status || !args->result) return status;
  int32_t tail = args->result->dl.ndim < args->B->dl.ndim || args->result->dl.ndim < args->A->dl.ndim ? 1 : 2;
  if (args->B->dl.ndim == 1) tail = 1;
  const lin_operand operands[] = {{args->A, 2}, {args->B, tail}, {args->result, tail}};
  return lin_each(operands, 2, 1, 2, solve_item, args);
}

static graft_status inv_item(lin_matrix *m, const void *from) {
  const graft_args_linalg_inv_ex *args = from;
  FACTORED f = factor(m[0], true);
  if (!is_made(&f)) return ref_no_memory();
  if (m[1].at) {
    lin_identity(m[1]);
    lin_solve_lu(f.lu, f.pivots, false, m[1]);
  }
  if (m[2].at) *m[2].at = (ref_real)f.info;
  return lin_check_info(args->check_errors, f.info, "linalg.inv: " SINGULAR);
}

graft_status kernel_linalg_inv_ex(const graft_exec *exec, const graft_args_linalg_inv_ex *args) {
  const lin_operand operands[] = {{args->A, 2}, {args->inverse, 2}, {args->info, 0}};
  return lin_each(operands, 1, 2, 0, inv_item, args);
}

static graft_status lu_solve_item(lin_matrix *m, const void *from) {
  const graft_args_linalg_lu_solve *args = from;
  graft_status status = lin_check_pivots("aten::linalg_lu_solve", m[1], m[0].rows, false);
  return status ? status : solve_sides(m[0], m[1], args->left, args->adjoint, m[2], m[3]);
}

graft_status kernel_linalg_lu_solve(const graft_exec *exec, const graft_args_linalg_lu_solve *args) {
  const lin_operand operands[] = {{args->LU, 2}, {args->pivots, 1}, {args->B, 2}, {args->out, 2}};
  return lin_each(operands, 3, 1, 3, lu_solve_item, args);
}

/* -1 where the exchanges are odd in number. */
static ref_real parity(const factored *f) {
  ref_real sign = 1;
  for (int64_t i = 0; i < f->pivots.rows; i++)
    if (creall(f->pivots.at[i]) != (ref_real)(i + 1)) sign = -sign;
  return sign;
}

static graft_status det_item(lin_matrix *m, const void *from) {
  FACTORED f = factor(m[0], true);
  if (!is_made(&f)) return ref_no_memory();
  ref_complex det = parity(&f);
  for (int64_t i = 0; i < f.lu.rows; i++) det *= *lin_at(f.lu, i, i);
  if (m[1].at) *m[1].at = det;
  put_factors(&f, m[2], m[3]);
  return GRAFT_OK;
}

graft_status kernel_linalg_det(const graft_exec *exec, const graft_args_linalg_det *args) {
  const lin_operand operands[] = {{args->A, 2}, {args->result, 0}, {args->LU, 2}, {args->pivots, 1}};
  return lin_each(operands, 1, 3, 0, det_item, args);
}

static graft_status slogdet_item(lin_matrix *m, const void *from) {
  FACTORED f = factor(m[0], true);
  if (!is_made(&f)) return ref_no_memory();
  ref_complex sign = parity(&f);
  ref_real log = 0;
  for (int64_t i = 0; i < f.lu.rows; i++) {
    ref_complex pivot = *lin_at(f.lu, i, i);
    ref_real size = cabsl(pivot);
    sign = size == 0 ? 0 : sign * (pivot / size);
    log += logl(size);
  }
  if (m[1].at) *m[1].at = sign;
  if (m[2].at) *m[2].at = log;
  put_factors(&f, m[3], m[4]);
  return GRAFT_OK;
}

graft_status kernel_linalg_slogdet(const graft_exec *exec, const graft_args_linalg_slogdet *args) {
  const lin_operand operands[] = {
      {args->A, 2}, {args->sign, 0}, {args->logabsdet, 0}, {args->LU, 2}, {args->pivots, 1}};
  return lin_each(operands, 1, 4, 0, slogdet_item, args);
}

/* --- decompositions --- */

static void decompose_inv_ex(fx *s, const op_call *c, graft_tensor **outs) {
  const in_linalg_inv_ex in = in_linalg_inv_ex_of(c->args);
  graft_tensor *lu, *pivots;
  fx_linalg_lu_factor_ex(s, in.A, true, in.check_errors, &lu, &pivots, &outs[OUT_linalg_inv_ex_info]);
  graft_tensor *eye = lin_eye(s, in.A->sizes[in.A->ndim - 1], in.A);
  outs[OUT_linalg_inv_ex_inverse] = fx_linalg_lu_solve(s, lu, pivots, eye, true, false);
}

static void decompose_solve_ex(fx *s, const op_call *c, graft_tensor **outs) {
  const in_linalg_solve_ex in = in_linalg_solve_ex_of(c->args);
  graft_tensor *lu, *pivots;
  fx_linalg_lu_factor_ex(s, in.A, true, in.check_errors, &lu, &pivots, &outs[OUT_linalg_solve_ex_info]);
  outs[OUT_linalg_solve_ex_LU] = lu, outs[OUT_linalg_solve_ex_pivots] = pivots;
  bool vectors = is_vectors(in.A, in.B);
  graft_tensor *x = fx_linalg_lu_solve(s, lu, pivots, vectors ? lin_column(s, in.B) : in.B, in.left, false);
  outs[OUT_linalg_solve_ex_result] = vectors && x ? fx_squeeze_dim(s, x, x->ndim - 1) : x;
}

static void decompose_det(fx *s, const op_call *c, graft_tensor **outs) {
  fx_linalg_det(s, fx_turned(s, op_tensor(c, ARG_linalg_det_A)), &outs[OUT_linalg_det_result], &outs[OUT_linalg_det_LU],
                &outs[OUT_linalg_det_pivots]);
}

static void decompose_slogdet(fx *s, const op_call *c, graft_tensor **outs) {
  fx_linalg_slogdet(s, fx_turned(s, op_tensor(c, ARG_linalg_slogdet_A)), &outs[OUT_linalg_slogdet_sign],
                    &outs[OUT_linalg_slogdet_logabsdet], &outs[OUT_linalg_slogdet_LU],
                    &outs[OUT_linalg_slogdet_pivots]);
}

/* --- gradients --- */

static void vjp_inv_ex(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *turned = fx_adjoint(s, v->outs[OUT_linalg_inv_ex_inverse]);
  v->results[ARG_linalg_inv_ex_A] = fx_neg(s, lin_mm(s, turned, lin_mm(s, v->g[OUT_linalg_inv_ex_inverse], turned)));
}

/* a^H x = b, or x a^H = b; by the factors that there are, unless the gradient's own gradient must see a. */
static graft_tensor *solve_adjoint(op_vjp *v, graft_tensor *a, graft_tensor *lu, graft_tensor *pivots, graft_tensor *b,
                                   bool left) {
  if (!v->create_graph) return fx_linalg_lu_solve(v->s, lu, pivots, b, left, true);
  graft_tensor *x, *lu_again, *pivots_again, *info;
  fx_linalg_solve_ex(v->s, fx_adjoint(v->s, a), b, left, false, &x, &lu_again, &pivots_again, &info);
  return x;
}

static void vjp_solve_ex(op_vjp *v) {
  const in_linalg_solve_ex in = in_linalg_solve_ex_of(v->args);
  fx *s = v->s;
  graft_tensor *x = v->outs[OUT_linalg_solve_ex_result], *g = v->g[OUT_linalg_solve_ex_result];
  graft_tensor *lu = v->outs[OUT_linalg_solve_ex_LU], *pivots = v->outs[OUT_linalg_solve_ex_pivots];
  bool vectors = is_vectors(in.A, in.B);
  if (vectors) x = lin_column(s, x), g = lin_column(s, g);
  graft_tensor *b = solve_adjoint(v, in.A, lu, pivots, g, in.left);
  if (vjp_needs(v, ARG_linalg_solve_ex_B) && b) {
    graft_tensor *own = vectors ? fx_squeeze_dim(s, b, b->ndim - 1) : b;
    v->results[ARG_linalg_solve_ex_B] = fx_sum_to(s, own, in.B->ndim, in.B->sizes);
  }
  if (!vjp_needs(v, ARG_linalg_solve_ex_A)) return;
  graft_tensor *a = in.left ? lin_mm(s, b, fx_adjoint(s, x)) : lin_mm(s, fx_adjoint(s, x), b);
  v->results[ARG_linalg_solve_ex_A] = fx_sum_to(s, fx_neg(s, a), in.A->ndim, in.A->sizes);
}

/* The gradient of a factor pair, L's below the diagonal and U's above. */
static graft_tensor *lu_gradient(fx *s, graft_tensor *l, graft_tensor *u) {
  return fx_neg(s, fx_add(s, fx_tril(s, l, -1), fx_triu(s, u, 0)));
}

/* Of x = (P L U)^-1 b, or of the adjoint system. What stands on the right is turned to the left. With the unit
 * triangle, P = lu_solve(I, pivots, ., adjoint). */
static void vjp_lu_solve(op_vjp *v) {
  const in_linalg_lu_solve in = in_linalg_lu_solve_of(v->args);
  fx *s = v->s;
  graft_tensor *g = v->g[OUT], *x = v->outs[OUT];
  if (vjp_needs(v, ARG_linalg_lu_solve_B)) {
    graft_tensor *b = fx_linalg_lu_solve(s, in.LU, in.pivots, g, in.left, !in.adjoint);
    v->results[ARG_linalg_lu_solve_B] = fx_sum_to(s, b, in.B->ndim, in.B->sizes);
  }
  if (!vjp_needs(v, ARG_linalg_lu_solve_LU)) return;
  bool adjoint = in.adjoint == in.left;
  graft_tensor *turned = fx_adjoint(s, in.LU), *lu;
  if (!in.left) g = fx_adjoint(s, g), x = fx_adjoint(s, x);
  if (!adjoint) {
    graft_tensor *h = fx_linalg_solve_triangular(s, turned, g, false, true, false);
    graft_tensor *k = fx_linalg_solve_triangular(s, turned, h, true, true, true);
    graft_tensor *ux = lin_mm(s, fx_triu(s, in.LU, 0), x);
    lu = lu_gradient(s, lin_mm(s, k, fx_adjoint(s, ux)), lin_mm(s, h, fx_adjoint(s, x)));
  } else {
    graft_tensor *eye = lin_eye(s, in.LU->sizes[in.LU->ndim - 1], in.LU);
    graft_tensor *gy =
        fx_linalg_lu_solve(s, fx_expand(s, eye, in.LU->sizes, (uint32_t)in.LU->ndim, false), in.pivots, g, true, false);
    graft_tensor *y =
        fx_linalg_lu_solve(s, fx_expand(s, eye, in.LU->sizes, (uint32_t)in.LU->ndim, false), in.pivots, x, true, false);
    graft_tensor *h = fx_linalg_solve_triangular(s, in.LU, gy, false, true, true);
    graft_tensor *k = fx_linalg_solve_triangular(s, in.LU, h, true, true, false);
    graft_tensor *z = fx_add(s, y, lin_mm(s, fx_triu(s, turned, 1), y));
    lu = lu_gradient(s, lin_mm(s, y, fx_adjoint(s, h)), lin_mm(s, z, fx_adjoint(s, k)));
  }
  v->results[ARG_linalg_lu_solve_LU] = fx_sum_to(s, lu, in.LU->ndim, in.LU->sizes);
}

/* A^H G = diag(d) for the gradient G of a determinant. A pivot of 0 becomes eps, as PyTorch has it: 0 over it is 0. */
static graft_tensor *determinant_gradient(op_vjp *v, graft_tensor *a, graft_tensor *lu, graft_tensor *pivots,
                                          graft_tensor *d, bool mend) {
  fx *s = v->s;
  if (!d) return NULL;
  int64_t sizes[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < d->ndim; i++) sizes[i] = d->sizes[i];
  sizes[d->ndim] = a->sizes[a->ndim - 1];
  graft_tensor *diagonal = lin_diagonal_matrix(s, fx_expand(s, lin_column(s, d), sizes, (uint32_t)d->ndim + 1, false));
  if (mend && !v->create_graph) {
    double eps = dt_real(a->dtype) == GRAFT_F32 ? 0x1p-23 : 0x1p-52;
    graft_tensor *zero = fx_is(s, GRAFT_OP_EQ_SCALAR, lin_diagonal(s, lu), 0);
    lu = fx_add(s, lu, fx_muls(s, lin_diagonal_matrix(s, fx_cast(s, zero, a->dtype)), eps));
  }
  if (factors_transpose(a) && !v->create_graph) return fx_linalg_lu_solve(s, lu, pivots, diagonal, true, false);
  return solve_adjoint(v, a, lu, pivots, diagonal, true);
}

static void vjp_det(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *d = fx_mul(s, v->g[OUT_linalg_det_result], fx_conj(s, v->outs[OUT_linalg_det_result]));
  v->results[ARG_linalg_det_A] = determinant_gradient(v, vjp_arg(v, ARG_linalg_det_A), v->outs[OUT_linalg_det_LU],
                                                      v->outs[OUT_linalg_det_pivots], d, true);
}

/* Of log|det|; a complex sign turns with the imaginary part of what goes into it. */
static void vjp_slogdet(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *a = vjp_arg(v, ARG_linalg_slogdet_A), *d = v->g[OUT_linalg_slogdet_logabsdet];
  graft_tensor *g = v->g[OUT_linalg_slogdet_sign];
  if (dt_is_complex(a->dtype)) {
    graft_tensor *turn = NULL;
    if (g) {
      turn = fx_mul(s, g, fx_conj(s, v->outs[OUT_linalg_slogdet_sign]));
      turn =
          fx_mul(s, fx_sub(s, turn, fx_conj(s, turn)), fx_filled(s, turn, 0, NULL, 0.5, turn ? turn->dtype : a->dtype));
    }
    d = lin_add(s, d ? fx_cast(s, d, a->dtype) : NULL, turn);
  }
  if (!d) return;
  v->results[ARG_linalg_slogdet_A] =
      determinant_gradient(v, a, v->outs[OUT_linalg_slogdet_LU], v->outs[OUT_linalg_slogdet_pivots], d, false);
}

/* P c, for pivots of the first rows. */
static graft_tensor *permuted(fx *s, graft_tensor *pivots, graft_tensor *c) {
  if (!c) return NULL;
  int64_t rows = c->sizes[c->ndim - 2], have = pivots->sizes[pivots->ndim - 1], sizes[GRAFT_MAX_DIMS];
  for (int32_t d = 0; d < pivots->ndim; d++) sizes[d] = pivots->sizes[d];
  sizes[pivots->ndim - 1] = rows - have;
  if (rows > have) {
    graft_tensor *rest = fx_arange_start_step(s, graft_scalar_int(have + 1), graft_scalar_int(rows + 1),
                                              graft_scalar_int(1), GRAFT_I32, c->device);
    rest = fx_expand(s, rest, sizes, (uint32_t)pivots->ndim, false);
    pivots = fx_cat(s, (graft_tensor *[]){pivots, rest}, 2, pivots->ndim - 1);
  }
  for (int32_t d = 0; d < pivots->ndim; d++) sizes[d] = c->sizes[d];
  sizes[c->ndim - 1] = rows;
  graft_tensor *eye = fx_expand(s, lin_eye(s, rows, c), sizes, (uint32_t)c->ndim, false);
  return fx_linalg_lu_solve(s, eye, pivots, c, true, true);
}

/* With S = L^-1 P^T dA U^-1 = L^-1 dL + dU U^-1 of the leading square, whose first term is strictly lower and whose
 * second is upper; rows below it, or columns beside it, give theirs by the product rule. */
static void vjp_lu_factor_ex(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *lu = v->outs[OUT_linalg_lu_factor_ex_LU], *pivots = v->outs[OUT_linalg_lu_factor_ex_pivots];
  graft_tensor *g = v->g[OUT_linalg_lu_factor_ex_LU];
  if (!g) return;
  int64_t rows = lu->sizes[lu->ndim - 2], columns = lu->sizes[lu->ndim - 1], k = lin_smaller(rows, columns);
  graft_tensor *square = lin_narrow(s, lin_narrow(s, lu, 2, 0, k), 1, 0, k);
  graft_tensor *head = lin_narrow(s, lin_narrow(s, g, 2, 0, k), 1, 0, k);
  graft_tensor *turned = fx_adjoint(s, square), *below = NULL, *beside = NULL;
  graft_tensor *gl = fx_tril(s, head, -1), *gu = fx_triu(s, head, 0);
  graft_tensor *lower = fx_add(s, gl, lin_mm(s, fx_triu(s, turned, 1), gl));
  graft_tensor *upper = lin_mm(s, gu, fx_tril(s, turned, 0));
  if (rows > k) {
    below = lin_narrow(s, g, 2, k, rows - k);
    upper = fx_sub(s, upper, lin_mm(s, fx_adjoint(s, lin_narrow(s, lu, 2, k, rows - k)), below));
  }
  if (columns > k) {
    beside = lin_narrow(s, g, 1, k, columns - k);
    lower = fx_sub(s, lower, lin_mm(s, beside, fx_adjoint(s, lin_narrow(s, lu, 1, k, columns - k))));
  }
  graft_tensor *inner = fx_add(s, fx_tril(s, lower, -1), fx_triu(s, upper, 0));
  if (columns > k) {
    inner = fx_linalg_solve_triangular(s, turned, inner, false, false, false);
    inner = fx_cat(s, (graft_tensor *[]){inner, beside}, 2, lu->ndim - 1);
    inner = fx_linalg_solve_triangular(s, turned, inner, true, true, true);
  } else {
    inner = fx_linalg_solve_triangular(s, turned, inner, true, true, true);
    if (rows > k) inner = fx_cat(s, (graft_tensor *[]){inner, below}, 2, lu->ndim - 2);
    inner = fx_linalg_solve_triangular(s, turned, inner, false, false, false);
  }
  v->results[ARG_linalg_lu_factor_ex_A] = permuted(s, pivots, inner);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(linalg_lu_factor_ex),
     .roles = "k",
     .flags = OP_EXACT_OUT,
     .infer = infer_lu_factor_ex,
     .vjp = vjp_lu_factor_ex,
     .saves = OP_SAVE_OUT(linalg_lu_factor_ex, LU) | OP_SAVE_OUT(linalg_lu_factor_ex, pivots),
     .without_grad = OP_OUT_BIT(linalg_lu_factor_ex, pivots) | OP_OUT_BIT(linalg_lu_factor_ex, info)},
    {.op_id = OP_WITH_KERNEL(linalg_inv_ex),
     .roles = "k",
     .flags = OP_EXACT_OUT,
     .infer = infer_inv_ex,
     .decompose = decompose_inv_ex,
     .vjp = vjp_inv_ex,
     .saves = OP_SAVE_OUT(linalg_inv_ex, inverse),
     .without_grad = OP_OUT_BIT(linalg_inv_ex, info)},
    {.op_id = OP_WITH_KERNEL(linalg_solve_ex),
     .roles = "kk",
     .flags = OP_EXACT_OUT,
     .infer = infer_solve_ex,
     .decompose = decompose_solve_ex,
     .vjp = vjp_solve_ex,
     .saves = OP_SAVE_ARGS(linalg_solve_ex, A) | OP_SAVE_OUT(linalg_solve_ex, result) |
              OP_SAVE_OUT(linalg_solve_ex, LU) | OP_SAVE_OUT(linalg_solve_ex, pivots),
     .without_grad =
         OP_OUT_BIT(linalg_solve_ex, LU) | OP_OUT_BIT(linalg_solve_ex, pivots) | OP_OUT_BIT(linalg_solve_ex, info)},
    {.op_id = OP_WITH_KERNEL(linalg_lu_solve),
     .roles = "kkk",
     .infer = infer_lu_solve,
     .vjp = vjp_lu_solve,
     .saves = OP_SAVE_ARGS(linalg_lu_solve, LU, pivots) | OP_SAVE_OUT(linalg_lu_solve, out)},
    {.op_id = OP_WITH_KERNEL(linalg_det),
     .roles = "k",
     .infer = infer_det,
     .decompose = decompose_det,
     .vjp = vjp_det,
     .saves = OP_SAVE_ARGS(linalg_det, A) | OP_SAVE_OUT(linalg_det, result) | OP_SAVE_OUT(linalg_det, LU) |
              OP_SAVE_OUT(linalg_det, pivots),
     .without_grad = OP_OUT_BIT(linalg_det, LU) | OP_OUT_BIT(linalg_det, pivots)},
    {.op_id = OP_WITH_KERNEL(linalg_slogdet),
     .roles = "k",
     .infer = infer_slogdet,
     .decompose = decompose_slogdet,
     .vjp = vjp_slogdet,
     .saves = OP_SAVE_ARGS(linalg_slogdet, A) | OP_SAVE_OUT(linalg_slogdet, sign) | OP_SAVE_OUT(linalg_slogdet, LU) |
              OP_SAVE_OUT(linalg_slogdet, pivots),
     .without_grad = OP_OUT_BIT(linalg_slogdet, LU) | OP_OUT_BIT(linalg_slogdet, pivots)},
};
OP_TABLE(linalg_lu, defs)
