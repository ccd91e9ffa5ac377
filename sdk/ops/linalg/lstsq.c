/* Least squares: the x of the smallest norm among those for which b - A x is smallest. The driver says how: gels, for
 * matrices of full rank, by QR; the others, which find the rank, by singular values. */
#include <float.h>
#include <string.h>

#include "ops/linalg/lin.h"

/* One right side for each matrix. */
static bool is_vector(const graft_tensor *a, const graft_tensor *b) {
  return tns_has_sizes(b, a->ndim - 1, a->sizes);
}

static bool driven_by(const in_linalg_lstsq *in, const char *driver) {
  return !strcmp(in->driver ? in->driver : "gelsy", driver);
}
static bool gives_values(const in_linalg_lstsq *in) {
  return driven_by(in, "gelsd") || driven_by(in, "gelss");
}
/* What is left is told where there are more equations than unknowns. */
static bool gives_residuals(const in_linalg_lstsq *in) {
  return lin_size(in->self, 2) > lin_size(in->self, 1) && !driven_by(in, "gelsy");
}

/* --- rule --- */

static graft_status check_system(op_call *c, const in_linalg_lstsq *in) {
  const graft_tensor *a = in->self, *b = in->b;
  graft_status status = lin_check_matrix(c, ARG_linalg_lstsq_self);
  if (!status && !b->ndim) status = op_refuse(c, ARG_linalg_lstsq_b, "a vector or matrices");
  if (!status) status = op_check_same_dtype(c, ARG_linalg_lstsq_self, ARG_linalg_lstsq_b);
  if (status) return status;
  if (!is_vector(a, b) && (b->ndim != a->ndim || lin_size(b, 2) != lin_size(a, 2))) {
    return op_error(c, "b does not fit the matrices: %s", op_show_tensors(c));
  }
  return GRAFT_OK;
}

static graft_status infer_lstsq(op_call *c) {
  const in_linalg_lstsq in = in_linalg_lstsq_of(c->args);
  graft_status status = check_system(c, &in);
  if (status) return status;
  const graft_tensor *a = in.self, *b = in.b;
  bool vector = is_vector(a, b);
  int64_t rows = lin_size(a, 2), columns = lin_size(a, 1), sides = vector ? 1 : lin_size(b, 1);
  lin_shape x = lin_shape_of(a, columns, sides);
  if (!vector) status = lin_broadcast(c, ARG_linalg_lstsq_self, ARG_linalg_lstsq_b, &x);
  if (status) return status;
  x.sizes[x.ndim - 2] = columns;
  graft_dtype real = dt_real(a->dtype);
  op_out(c, OUT_linalg_lstsq_solution, a->dtype, x.ndim - vector, x.sizes);
  if (gives_residuals(&in)) {
    x.sizes[x.ndim - 2] = sides;
    op_out(c, OUT_linalg_lstsq_residuals, real, x.ndim - 1, x.sizes);
  } else {
    lin_out_none(c, OUT_linalg_lstsq_residuals, real);
  }
  if (driven_by(&in, "gels"))
    lin_out_none(c, OUT_linalg_lstsq_rank, GRAFT_I64);
  else
    lin_out_batch(c, OUT_linalg_lstsq_rank, GRAFT_I64, a, 2);
  if (gives_values(&in))
    lin_out_vectors(c, OUT_linalg_lstsq_singular_values, real, a, 2, lin_smaller(rows, columns));
  else
    lin_out_none(c, OUT_linalg_lstsq_singular_values, real);
  c->dynamic = gives_residuals(&in) && gives_values(&in);
  return GRAFT_OK;
}

/* --- decomposition --- */

/* Singular values that count, those above rcond times the largest, and 1 / s of them, else 0. */
typedef struct spectrum {
  graft_tensor *u, *s, *vh, *counts, *inverse;
} spectrum;

static double default_rcond(const graft_tensor *a) {
  int64_t rows = lin_size(a, 2), columns = lin_size(a, 1);
  return (dt_real(a->dtype) == GRAFT_F32 ? FLT_EPSILON : DBL_EPSILON) * (double)(rows > columns ? rows : columns);
}

static spectrum spectrum_of(fx *s, graft_tensor *a, double rcond) {
  spectrum f = {0};
  fx_linalg_svd(s, a, false, true, NULL, &f.u, &f.s, &f.vh);
  f.counts = fx_gt_Tensor(s, f.s, fx_muls(s, lin_narrow(s, f.s, 1, 0, 1), rcond));
  graft_tensor *divisor = fx_where(s, f.counts, fx_tensor(f.s), fx_float(1));
  f.inverse = fx_only_where(s, f.counts, f.s ? fx_reciprocal(s, divisor) : NULL);
  if (a->dtype != dt_real(a->dtype)) f.inverse = fx_cast(s, f.inverse, a->dtype);
  return f;
}

/* b less its part in the columns of q. */
static graft_tensor *squares_left(fx *s, graft_tensor *q, graft_tensor *qb, graft_tensor *b) {
  graft_tensor *left = fx_sub(s, b, lin_mm(s, q, qb)), *size = left ? fx_abs(s, left) : NULL;
  return size ? fx_sum(s, fx_mul(s, size, size), 1u << (size->ndim - 2), false) : NULL;
}

static void solve_by_qr(fx *s, const in_linalg_lstsq *in, graft_tensor *b, graft_tensor **outs) {
  bool tall = lin_size(in->self, 2) >= lin_size(in->self, 1);
  graft_tensor *q, *r;
  fx_linalg_qr(s, tall ? in->self : fx_contiguous(s, fx_adjoint(s, in->self)), "reduced", &q, &r);
  if (!tall) {
    graft_tensor *y = fx_linalg_solve_triangular(s, fx_adjoint(s, r), b, false, true, false);
    outs[OUT_linalg_lstsq_solution] = lin_mm(s, q, y);
    return;
  }
  graft_tensor *qb = lin_mm(s, fx_adjoint(s, q), b);
  outs[OUT_linalg_lstsq_solution] = fx_linalg_solve_triangular(s, r, qb, true, true, false);
  if (gives_residuals(in)) outs[OUT_linalg_lstsq_residuals] = squares_left(s, q, qb, b);
}

/* Residuals, or none where one of the matrices has not full rank. */
static graft_tensor *of_full_rank(fx *s, graft_tensor *residuals, graft_tensor *rank, int64_t full) {
  if (!residuals || !residuals->numel) return residuals;
  graft_tensor *all = fx_all(s, fx_is(s, GRAFT_OP_EQ_TENSOR, rank, (double)full));
  graft_tensor *kept = fx_masked_select(s, residuals, all);
  return kept && kept->numel ? fx_reshape(s, kept, residuals->ndim, residuals->sizes) : kept;
}

static void solve_by_values(fx *s, const in_linalg_lstsq *in, graft_tensor *b, graft_tensor **outs) {
  spectrum f = spectrum_of(s, in->self, in->rcond ? *in->rcond : default_rcond(in->self));
  graft_tensor *ub = lin_mm(s, fx_adjoint(s, f.u), b);
  outs[OUT_linalg_lstsq_solution] = lin_mm(s, fx_adjoint(s, f.vh), fx_mul(s, ub, lin_column(s, f.inverse)));
  const int64_t last = -1;
  graft_tensor *rank = fx_count_nonzero(s, f.counts, &last);
  outs[OUT_linalg_lstsq_rank] = rank;
  if (!gives_values(in)) return;
  outs[OUT_linalg_lstsq_singular_values] = f.s;
  if (gives_residuals(in)) {
    graft_tensor *left = squares_left(s, f.u, ub, b);
    outs[OUT_linalg_lstsq_residuals] = of_full_rank(s, left, rank, lin_size(in->self, 1));
  }
}

static graft_tensor *zeros_as(fx *s, const op_call *c, const graft_meta *meta) {
  return fx_full(s, meta->sizes, (uint32_t)meta->ndim, graft_scalar_int(0), meta->dtype, c->device);
}

static void decompose_lstsq(fx *s, const op_call *c, graft_tensor **outs) {
  const in_linalg_lstsq in = in_linalg_lstsq_of(c->args);
  bool vector = is_vector(in.self, in.b);
  graft_tensor *b = vector ? lin_column(s, in.b) : in.b;
  if (in.self->numel && b && b->numel) {
    if (driven_by(&in, "gels"))
      solve_by_qr(s, &in, b, outs);
    else
      solve_by_values(s, &in, b, outs);
    graft_tensor *x = outs[OUT_linalg_lstsq_solution];
    if (vector && x) outs[OUT_linalg_lstsq_solution] = fx_squeeze_dim(s, x, x->ndim - 1);
  } else if (b && gives_residuals(&in)) { /* nothing is explained */
    graft_tensor *size = fx_abs(s, b);
    if (size) outs[OUT_linalg_lstsq_residuals] = fx_sum(s, fx_mul(s, size, size), 1u << (size->ndim - 2), false);
  }
  for (uint32_t i = 0; i < c->schema->nrets; i++) {
    if (!outs[i]) outs[i] = zeros_as(s, c, &c->out[i]);
  }
}

/* --- gradient --- */

/* Through the pseudoinverse P of A: Golub and Pereyra, The differentiation of pseudo-inverses, 1973. */
static graft_tensor *pinv_back(fx *s, graft_tensor *a, graft_tensor *p, graft_tensor *g) {
  graft_tensor *gh = fx_adjoint(s, g), *ph = fx_adjoint(s, p);
  if (lin_size(a, 2) <= lin_size(a, 1)) {
    graft_tensor *k = lin_mm(s, gh, p), *kp = lin_mm(s, k, ph);
    graft_tensor *sum = fx_sub(s, kp, fx_adjoint(s, lin_mm(s, p, k)));
    sum = fx_sub(s, sum, lin_mm(s, lin_mm(s, a, p), kp));
    return fx_add(s, sum, lin_mm(s, lin_mm(s, ph, p), fx_sub(s, gh, lin_mm(s, k, a))));
  }
  graft_tensor *k = lin_mm(s, p, gh), *pk = lin_mm(s, ph, k);
  graft_tensor *sum = fx_sub(s, pk, fx_adjoint(s, lin_mm(s, k, p)));
  sum = fx_add(s, sum, lin_mm(s, lin_mm(s, fx_sub(s, gh, lin_mm(s, a, k)), p), ph));
  return fx_sub(s, sum, lin_mm(s, lin_mm(s, pk, p), a));
}

static graft_tensor *to_shape_of(fx *s, graft_tensor *g, const graft_tensor *like) {
  return g ? fx_sum_to(s, g, like->ndim, like->sizes) : NULL;
}

static void vjp_lstsq(op_vjp *v) {
  const in_linalg_lstsq in = in_linalg_lstsq_of(v->args);
  fx *s = v->s;
  graft_tensor *a = in.self, *b = in.b, *x = v->outs[OUT_linalg_lstsq_solution], *ga = NULL, *gb = NULL;
  graft_tensor *gx = v->g[OUT_linalg_lstsq_solution], *gl = v->g[OUT_linalg_lstsq_residuals];
  bool vector = is_vector(a, b), wants_a = vjp_needs(v, ARG_linalg_lstsq_self),
       wants_b = vjp_needs(v, ARG_linalg_lstsq_b);
  if (!a->numel || !b->numel) {
    v->results[ARG_linalg_lstsq_self] = fx_zeros_like(s, a);
    v->results[ARG_linalg_lstsq_b] = fx_zeros_like(s, b);
    return;
  }
  if (vector) b = lin_column(s, b), x = lin_column(s, x), gx = gx ? lin_column(s, gx) : NULL;
  if (gx) {
    spectrum f = spectrum_of(s, a, default_rcond(a));
    graft_tensor *p = lin_mm(s, fx_mul(s, fx_adjoint(s, f.vh), lin_row(s, f.inverse)), fx_adjoint(s, f.u));
    if (wants_a) ga = pinv_back(s, a, p, lin_mm(s, gx, fx_adjoint(s, b)));
    if (wants_b) gb = lin_mm(s, fx_adjoint(s, p), gx);
  }
  if (gl && gl->numel) { /* each is the square of a column of A x - b, in which x is at its best */
    graft_tensor *weight = lin_row(s, fx_muls(s, dt_is_complex(a->dtype) ? fx_cast(s, gl, a->dtype) : gl, 2));
    graft_tensor *left = fx_mul(s, fx_sub(s, lin_mm(s, a, x), b), weight);
    if (wants_a) ga = lin_add(s, ga, lin_mm(s, left, fx_adjoint(s, x)));
    if (wants_b) gb = gb ? fx_sub(s, gb, left) : fx_neg(s, left);
  }
  v->results[ARG_linalg_lstsq_self] = to_shape_of(s, ga, a);
  if (gb) gb = to_shape_of(s, gb, b);
  v->results[ARG_linalg_lstsq_b] = gb && vector ? fx_squeeze_dim(s, gb, gb->ndim - 1) : gb;
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_LINALG_LSTSQ,
     .roles = "kk",
     .infer = infer_lstsq,
     .decompose = decompose_lstsq,
     .vjp = vjp_lstsq,
     .saves = OP_SAVE_ARGS(linalg_lstsq, self, b) | OP_SAVE_OUT(linalg_lstsq, solution),
     .without_grad = OP_OUT_BIT(linalg_lstsq, rank) | OP_OUT_BIT(linalg_lstsq, singular_values)},
};
OP_TABLE(linalg_lstsq, defs)
