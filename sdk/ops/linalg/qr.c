/* The QR factorization, and Householder's reflectors. */
#include <string.h>

#include "base/error.h"
#include "ops/linalg/lin.h"

/* --- rules --- */

static graft_status infer_qr(op_call *c) {
  const in_linalg_qr in = in_linalg_qr_of(c->args);
  graft_status status = lin_check_matrix(c, ARG_linalg_qr_A);
  if (status) return status;
  bool complete = !strcmp(in.mode, "complete"), only_r = !strcmp(in.mode, "r");
  int64_t rows = lin_size(in.A, 2), columns = lin_size(in.A, 1);
  int64_t inner = complete ? rows : lin_smaller(rows, columns);
  lin_shape q = lin_shape_of(in.A, rows, inner), r = lin_shape_of(in.A, inner, columns);
  if (only_r)
    lin_out_none(c, OUT_linalg_qr_Q, in.A->dtype);
  else
    lin_out_columns(c, OUT_linalg_qr_Q, in.A->dtype, q.ndim, q.sizes);
  lin_out_columns(c, OUT_linalg_qr_R, in.A->dtype, r.ndim, r.sizes);
  return GRAFT_OK;
}

static graft_status infer_geqrf(op_call *c) {
  const graft_tensor *a = op_tensor(c, ARG_geqrf_self);
  graft_status status = lin_check_matrix(c, ARG_geqrf_self);
  if (status) return status;
  lin_out_columns(c, OUT_geqrf_a, a->dtype, a->ndim, a->sizes);
  lin_out_vectors(c, OUT_geqrf_tau, a->dtype, a, 2, lin_smaller(lin_size(a, 2), lin_size(a, 1)));
  return GRAFT_OK;
}

/* Reflectors: as many as tau has, of the columns of v. */
static graft_status check_reflectors(const op_call *c, int v_arg, int tau_arg) {
  const graft_tensor *v = op_tensor(c, v_arg), *tau = op_tensor(c, tau_arg);
  graft_status status = lin_check_matrix(c, v_arg);
  if (!status) status = op_check_same_dtype(c, v_arg, tau_arg);
  if (status) return status;
  if (tau->ndim != v->ndim - 1 || !tns_has_sizes(tau, tau->ndim, tau->sizes) ||
      memcmp(tau->sizes, v->sizes, (size_t)(v->ndim - 2) * sizeof *v->sizes) != 0) {
    return op_error(c, "the reflectors and their factors differ in batch dims: %s", op_show_tensors(c));
  }
  bool fits = lin_size(tau, 1) <= lin_size(v, 1);
  return fits ? GRAFT_OK : op_error(c, "there are more factors than reflectors: %s", op_show_tensors(c));
}

static graft_status infer_householder_product(op_call *c) {
  const graft_tensor *v = op_tensor(c, ARG_linalg_householder_product_input);
  graft_status status = check_reflectors(c, ARG_linalg_householder_product_input, ARG_linalg_householder_product_tau);
  if (status) return status;
  if (lin_size(v, 2) < lin_size(v, 1)) {
    return op_refuse(c, ARG_linalg_householder_product_input, "at least as many rows as columns");
  }
  lin_out_columns(c, OUT, v->dtype, v->ndim, v->sizes);
  return GRAFT_OK;
}

static graft_status infer_ormqr(op_call *c) {
  const in_ormqr in = in_ormqr_of(c->args);
  graft_status status = check_reflectors(c, ARG_ormqr_self, ARG_ormqr_input2);
  if (!status) status = lin_check_matrix(c, ARG_ormqr_input3);
  if (!status) status = op_check_same_dtype(c, ARG_ormqr_self, ARG_ormqr_input3);
  if (status) return status;
  const graft_tensor *other = in.input3;
  bool batch = other->ndim == in.self->ndim &&
               !memcmp(other->sizes, in.self->sizes, (size_t)(other->ndim - 2) * sizeof *other->sizes);
  if (!batch) return op_error(c, "the batch dims differ: %s", op_show_tensors(c));
  if (lin_size(other, in.left ? 2 : 1) != lin_size(in.self, 2)) {
    return op_error(c, "the reflectors do not fit the matrix: %s", op_show_tensors(c));
  }
  int64_t rows = lin_size(in.self, 2), columns = lin_size(in.self, 1);
  if (lin_size(in.input2, 1) != lin_smaller(rows, columns)) {
    return op_error(c, "there is not one factor for each reflector: %s", op_show_tensors(c));
  }
  lin_out_columns(c, OUT, other->dtype, other->ndim, other->sizes);
  return GRAFT_OK;
}

/* --- kernels --- */

static graft_status qr_item(lin_matrix *m, const void *from) {
  LIN_OWNED lin_matrix a = lin_new(m[0].rows, m[0].cols), tau = lin_new(lin_smaller(m[0].rows, m[0].cols), 1);
  if (!a.at || !tau.at) return ref_no_memory();
  lin_copy(a, m[0]);
  lin_qr(a, tau);
  if (m[1].at) lin_reflectors_product(a, tau, m[1]);
  for (int64_t i = 0; m[2].at && i < m[2].rows; i++)
    for (int64_t j = i; j < m[2].cols; j++) *lin_at(m[2], i, j) = *lin_at(a, i, j);
  return GRAFT_OK;
}

graft_status kernel_linalg_qr(const graft_exec *exec, const graft_args_linalg_qr *args) {
  const graft_tensor_desc *q = args->mode == GRAFT_STR_QR_MODE_R ? NULL : args->Q;
  const lin_operand operands[] = {{args->A, 2}, {q, 2}, {args->R, 2}};
  return lin_each(operands, 1, 2, 0, qr_item, args);
}

static graft_status geqrf_item(lin_matrix *m, const void *from) {
  LIN_OWNED lin_matrix a = lin_new(m[0].rows, m[0].cols), tau = lin_new(lin_smaller(m[0].rows, m[0].cols), 1);
  if (!a.at || !tau.at) return ref_no_memory();
  lin_copy(a, m[0]);
  lin_qr(a, tau);
  if (m[1].at) lin_copy(m[1], a);
  if (m[2].at) lin_copy(m[2], tau);
  return GRAFT_OK;
}

graft_status kernel_geqrf(const graft_exec *exec, const graft_args_geqrf *args) {
  const lin_operand operands[] = {{args->self, 2}, {args->a, 2}, {args->tau, 1}};
  return lin_each(operands, 1, 2, 0, geqrf_item, args);
}

static graft_status product_item(lin_matrix *m, const void *from) {
  lin_reflectors_product(m[0], m[1], m[2]);
  return GRAFT_OK;
}

graft_status kernel_linalg_householder_product(const graft_exec *exec,
                                               const graft_args_linalg_householder_product *args) {
  const lin_operand operands[] = {{args->input, 2}, {args->tau, 1}, {args->out, 2}};
  return lin_each(operands, 2, 1, 0, product_item, args);
}

static graft_status ormqr_item(lin_matrix *m, const void *from) {
  const graft_args_ormqr *args = from;
  if (args->left) {
    lin_copy(m[3], m[2]);
    lin_apply_reflectors(m[0], m[1], args->transpose, m[3]);
    return GRAFT_OK;
  }
  LIN_OWNED lin_matrix turned = lin_new(m[2].cols, m[2].rows);
  if (!turned.at) return ref_no_memory();
  lin_adjoint(turned, m[2]);
  lin_apply_reflectors(m[0], m[1], !args->transpose, turned);
  lin_adjoint(m[3], turned);
  return GRAFT_OK;
}

graft_status kernel_ormqr(const graft_exec *exec, const graft_args_ormqr *args) {
  const lin_operand operands[] = {{args->self, 2}, {args->input2, 1}, {args->input3, 2}, {args->out, 2}};
  return lin_each(operands, 3, 1, 0, ormqr_item, args);
}

/* --- gradients --- */

/* X + X^H, its diagonal halved. */
static graft_tensor *both_halves(fx *s, graft_tensor *x) {
  graft_tensor *sum = fx_add(s, x, fx_adjoint(s, x));
  return fx_sub(s, sum, fx_muls(s, lin_diagonal_matrix(s, lin_diagonal(s, sum)), 0.5));
}

/* tril(X - X^H), its diagonal halved. */
static graft_tensor *lower_half(fx *s, graft_tensor *x) {
  graft_tensor *difference = fx_tril(s, fx_sub(s, x, fx_adjoint(s, x)), 0);
  return fx_sub(s, difference, fx_muls(s, lin_diagonal_matrix(s, lin_diagonal(s, difference)), 0.5));
}

/* Walter and Lehmann, Algorithmic Differentiation of Linear Algebra Functions, 2012, for tall and for wide matrices. */
static void vjp_qr(op_vjp *v) {
  const in_linalg_qr in = in_linalg_qr_of(v->args);
  fx *s = v->s;
  graft_tensor *q = v->outs[OUT_linalg_qr_Q], *r = v->outs[OUT_linalg_qr_R];
  graft_tensor *gq = v->g[OUT_linalg_qr_Q], *gr = v->g[OUT_linalg_qr_R];
  int64_t rows = lin_size(in.A, 2), columns = lin_size(in.A, 1);
  bool complete = !strcmp(in.mode, "complete") && rows > columns;
  if (complete || !strcmp(in.mode, "r")) {
    fx_fail(s, err_set(GRAFT_INVALID_ARGUMENT,
                       "aten::linalg_qr has no gradient in mode 'r', nor in mode 'complete' of "
                       "more rows than columns; use mode 'reduced'"));
    return;
  }
  if (!gq && !gr) return;
  graft_tensor *qg = gq ? lin_mm(s, fx_adjoint(s, q), gq) : NULL;
  graft_tensor *rg = gr ? lin_mm(s, gr, fx_adjoint(s, r)) : NULL;
  if (rows >= columns) {
    graft_tensor *inner = lin_add(s, rg, qg ? fx_neg(s, qg) : NULL);
    graft_tensor *g = lin_add(s, lin_mm(s, q, both_halves(s, fx_triu(s, inner, 0))), gq);
    v->results[ARG_linalg_qr_A] = fx_linalg_solve_triangular(s, fx_adjoint(s, r), g, false, false, false);
    return;
  }
  graft_tensor *inner = lower_half(s, lin_add(s, qg, rg ? fx_neg(s, rg) : NULL));
  graft_tensor *square = fx_adjoint(s, lin_narrow(s, r, 1, 0, rows));
  inner = fx_linalg_solve_triangular(s, square, inner, false, false, false);
  if (!inner) return;
  lin_shape rest = lin_shape_of(r, rows, columns - rows);
  graft_tensor *zeros = fx_filled(s, inner, rest.ndim, rest.sizes, 0, inner->dtype);
  graft_tensor *wide = lin_add(s, fx_cat(s, (graft_tensor *[]){inner, zeros}, 2, r->ndim - 1), gr);
  v->results[ARG_linalg_qr_A] = lin_mm(s, q, wide);
}

/* The reflectors' product as one matrix (Schreiber and Van Loan, A Storage-Efficient WY Representation for Products of
 * Householder Transformations, 1989): Q = I - V T V^H with (I + D U) T = D, D the diagonal of tau and U what V^H V has
 * above its diagonal. No factor is divided by, so any will do: 0, and those of a singular reflector. */
typedef struct reflectors {
  graft_tensor *vectors, *tau;   /* V: below the diagonal of 1, above it 0; a column for each factor */
  graft_tensor *products, *unit; /* U and I + D U */
  graft_tensor *triangle;        /* T */
} reflectors;

static reflectors reflectors_of(fx *s, graft_tensor *given, graft_tensor *tau) {
  int64_t count = lin_size(tau, 1);
  graft_tensor *ones = fx_eye_m(s, lin_size(given, 2), count, given->dtype, given->device);
  reflectors r = {.tau = tau};
  r.vectors = fx_add(s, fx_tril(s, lin_narrow(s, given, 1, 0, count), -1), ones);
  r.products = fx_triu(s, lin_mm(s, fx_adjoint(s, r.vectors), r.vectors), 1);
  r.unit = fx_add(s, fx_mul(s, lin_column(s, tau), r.products), lin_eye(s, count, given));
  r.triangle = fx_linalg_solve_triangular(s, r.unit, lin_diagonal_matrix(s, tau), true, true, true);
  return r;
}

/* Back through Q C, or Q^H C where `adjoint`, = C - V A V^H C with A = T or T^H, to V and tau; `g` is the cotangent. */
typedef struct reflected {
  graft_tensor *matrix, *g; /* C */
  bool adjoint;
  graft_tensor *given, *tau; /* results */
} reflected;

static void reflectors_back(fx *s, graft_tensor *given, graft_tensor *tau, reflected *back) {
  int64_t count = lin_size(tau, 1), columns = lin_size(given, 1);
  if (!count) return;
  const reflectors r = reflectors_of(s, given, tau);
  graft_tensor *turned = fx_adjoint(s, r.vectors), *triangle = r.triangle;
  graft_tensor *a = back->adjoint ? fx_adjoint(s, triangle) : triangle;
  graft_tensor *w = lin_mm(s, turned, back->matrix), *h = lin_mm(s, turned, back->g);
  graft_tensor *ga = fx_neg(s, lin_mm(s, h, fx_adjoint(s, w)));
  graft_tensor *gw = fx_neg(s, lin_mm(s, fx_adjoint(s, a), h));
  graft_tensor *left = lin_mm(s, back->g, fx_adjoint(s, lin_mm(s, a, w)));
  graft_tensor *gv = fx_sub(s, lin_mm(s, back->matrix, fx_adjoint(s, gw)), left);

  /* dT = (I + D U)^-1 (dD (I - U T) - D dU T) */
  graft_tensor *gt = back->adjoint ? fx_adjoint(s, ga) : ga;
  graft_tensor *z = fx_linalg_solve_triangular(s, fx_adjoint(s, r.unit), gt, false, true, true);
  graft_tensor *rest = fx_sub(s, lin_eye(s, count, given), lin_mm(s, r.products, triangle));
  back->tau = fx_sum(s, fx_mul(s, z, fx_conj(s, rest)), 1u << (given->ndim - 1), false);
  graft_tensor *gu = fx_mul(s, lin_column(s, fx_conj(s, tau)), lin_mm(s, z, fx_adjoint(s, triangle)));
  gu = fx_triu(s, gu, 1);
  gv = fx_sub(s, gv, lin_mm(s, r.vectors, fx_add(s, gu, fx_adjoint(s, gu))));
  if (columns > count && gv) {
    lin_shape unused = lin_shape_of(given, lin_size(given, 2), columns - count);
    graft_tensor *zeros = fx_filled(s, gv, unused.ndim, unused.sizes, 0, gv->dtype);
    gv = fx_cat(s, (graft_tensor *[]){gv, zeros}, 2, given->ndim - 1);
  }
  back->given = fx_tril(s, gv, -1);
}

static void vjp_householder_product(op_vjp *v) {
  const in_linalg_householder_product in = in_linalg_householder_product_of(v->args);
  int64_t rows = lin_size(in.input, 2), columns = lin_size(in.input, 1);
  reflected back = {.matrix = fx_eye_m(v->s, rows, columns, in.input->dtype, in.input->device), .g = v->g[OUT]};
  reflectors_back(v->s, in.input, in.tau, &back);
  v->results[ARG_linalg_householder_product_input] = back.given;
  v->results[ARG_linalg_householder_product_tau] = back.tau;
}

/* What stands on the right is turned to the left. */
static void vjp_ormqr(op_vjp *v) {
  const in_ormqr in = in_ormqr_of(v->args);
  fx *s = v->s;
  graft_tensor *g = v->g[OUT];
  if (vjp_needs(v, ARG_ormqr_input3)) {
    v->results[ARG_ormqr_input3] = fx_ormqr(s, in.self, in.input2, g, in.left, !in.transpose);
  }
  if (!vjp_needs(v, ARG_ormqr_self) && !vjp_needs(v, ARG_ormqr_input2)) return;
  reflected back = {.matrix = in.left ? in.input3 : fx_adjoint(s, in.input3),
                    .g = in.left ? g : fx_adjoint(s, g),
                    .adjoint = in.transpose == in.left};
  reflectors_back(s, in.self, in.input2, &back);
  v->results[ARG_ormqr_self] = back.given;
  v->results[ARG_ormqr_input2] = back.tau;
}

/* --- decompositions --- */

static void decompose_qr(fx *s, const op_call *c, graft_tensor **outs) {
  const in_linalg_qr in = in_linalg_qr_of(c->args);
  const graft_meta *q = &c->out[OUT_linalg_qr_Q], *r = &c->out[OUT_linalg_qr_R];
  graft_tensor *a, *tau;
  fx_geqrf(s, in.A, &a, &tau);
  int64_t rows = lin_size(in.A, 2), columns = lin_size(in.A, 1), inner = r->sizes[r->ndim - 2];
  outs[OUT_linalg_qr_R] = fx_triu(s, lin_narrow(s, a, 2, 0, inner), 0);
  if (!strcmp(in.mode, "r")) {
    outs[OUT_linalg_qr_Q] = fx_filled(s, in.A, q->ndim, q->sizes, 0, q->dtype);
    return;
  }
  graft_tensor *vectors = lin_narrow(s, a, 1, 0, lin_smaller(columns, inner));
  if (columns < inner) {
    lin_shape rest = lin_shape_of(in.A, rows, inner - columns);
    graft_tensor *zeros = fx_filled(s, in.A, rest.ndim, rest.sizes, 0, in.A->dtype);
    vectors = fx_cat(s, (graft_tensor *[]){vectors, zeros}, 2, in.A->ndim - 1);
  }
  outs[OUT_linalg_qr_Q] = fx_linalg_householder_product(s, vectors, tau);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(linalg_qr),
     .roles = "k",
     .infer = infer_qr,
     .decompose = decompose_qr,
     .vjp = vjp_qr,
     .saves = OP_SAVE_OUT(linalg_qr, Q) | OP_SAVE_OUT(linalg_qr, R)},
    {.op_id = OP_WITH_KERNEL(geqrf), .roles = "k", .infer = infer_geqrf},
    {.op_id = OP_WITH_KERNEL(linalg_householder_product),
     .roles = "kk",
     .infer = infer_householder_product,
     .vjp = vjp_householder_product,
     .saves = OP_SAVE_ARGS(linalg_householder_product, input, tau)},
    {.op_id = OP_WITH_KERNEL(ormqr),
     .roles = "kkk",
     .infer = infer_ormqr,
     .vjp = vjp_ormqr,
     .saves = OP_SAVE_ARGS(ormqr, self, input2, input3)},
};
OP_TABLE(linalg_qr, defs)
