/* Eigenvalues and singular values: rules, kernels, gradients. The algorithms are in spectral.c. */
#include "base/error.h"
#include "ops/linalg/lin.h"

/* --- rules --- */

static graft_status infer_eigh(op_call *c) {
  const in_linalg_eigh in = in_linalg_eigh_of(c->args);
  graft_status status = lin_check_square(c, ARG_linalg_eigh_A);
  if (status) return status;
  lin_out_batch(c, OUT_linalg_eigh_eigenvalues, dt_real(in.A->dtype), in.A, 1);
  if (in.compute_v)
    lin_out_columns(c, OUT_linalg_eigh_eigenvectors, in.A->dtype, in.A->ndim, in.A->sizes);
  else
    lin_out_none(c, OUT_linalg_eigh_eigenvectors, in.A->dtype);
  return GRAFT_OK;
}

static graft_status infer_eig(op_call *c) {
  const graft_tensor *a = op_tensor(c, ARG_linalg_eig_self);
  graft_status status = lin_check_square(c, ARG_linalg_eig_self);
  if (status) return status;
  lin_out_batch(c, OUT_linalg_eig_eigenvalues, dt_complex(a->dtype), a, 1);
  lin_out_columns(c, OUT_linalg_eig_eigenvectors, dt_complex(a->dtype), a->ndim, a->sizes);
  return GRAFT_OK;
}

static graft_status infer_svd(op_call *c) {
  const in_linalg_svd in = in_linalg_svd_of(c->args);
  graft_status status = lin_check_matrix(c, ARG_linalg_svd_A);
  if (status) return status;
  int64_t rows = in.A->sizes[in.A->ndim - 2], columns = in.A->sizes[in.A->ndim - 1];
  int64_t k = lin_smaller(rows, columns);
  lin_shape u = lin_shape_of(in.A, rows, in.full_matrices ? rows : k);
  lin_shape vh = lin_shape_of(in.A, in.full_matrices ? columns : k, columns);
  lin_out_vectors(c, OUT_linalg_svd_S, dt_real(in.A->dtype), in.A, 2, k);
  if (in.compute_uv) {
    lin_out_columns(c, OUT_linalg_svd_U, in.A->dtype, u.ndim, u.sizes);
    lin_out_columns(c, OUT_linalg_svd_Vh, in.A->dtype, vh.ndim, vh.sizes);
  } else {
    lin_out_none(c, OUT_linalg_svd_U, in.A->dtype);
    lin_out_none(c, OUT_linalg_svd_Vh, in.A->dtype);
  }
  return GRAFT_OK;
}

/* --- kernels --- */

/* The whole matrix that one triangle says. */
static void hermitian_of(lin_matrix to, lin_matrix from, bool upper) {
  for (int64_t i = 0; i < to.rows; i++)
    for (int64_t j = 0; j <= i; j++) {
      ref_complex lower = upper ? conjl(*lin_at(from, j, i)) : *lin_at(from, i, j);
      *lin_at(to, i, j) = i == j ? creall(lower) : lower;
      *lin_at(to, j, i) = i == j ? creall(lower) : conjl(lower);
    }
}

static graft_status eigh_item(lin_matrix *m, const void *from) {
  const graft_args_linalg_eigh *args = from;
  LIN_OWNED lin_matrix a = lin_new(m[0].rows, m[0].cols), vectors = lin_new(m[0].rows, m[0].cols);
  LIN_OWNED lin_matrix values = lin_new(m[0].rows, 1);
  if (!a.at || !vectors.at || !values.at) return ref_no_memory();
  hermitian_of(a, m[0], args->UPLO == GRAFT_STR_UPLO_U);
  lin_eigh(a, values, vectors);
  if (m[1].at) lin_copy(m[1], values);
  if (m[2].at) lin_copy(m[2], vectors);
  return GRAFT_OK;
}

graft_status kernel_linalg_eigh(const graft_exec *exec, const graft_args_linalg_eigh *args) {
  const lin_operand operands[] = {
      {args->A, 2}, {args->eigenvalues, 1}, {args->compute_v ? args->eigenvectors : NULL, 2}};
  return lin_each(operands, 1, 2, 0, eigh_item, args);
}

static graft_status eig_item(lin_matrix *m, const void *from) {
  LIN_OWNED lin_matrix a = lin_new(m[0].rows, m[0].cols), vectors = lin_new(m[0].rows, m[0].cols);
  LIN_OWNED lin_matrix values = lin_new(m[0].rows, 1);
  if (!a.at || !vectors.at || !values.at) return ref_no_memory();
  lin_copy(a, m[0]);
  graft_status status = lin_eig(a, values, vectors);
  if (status) return status;
  if (m[1].at) lin_copy(m[1], values);
  if (m[2].at) lin_copy(m[2], vectors);
  return GRAFT_OK;
}

graft_status kernel_linalg_eig(const graft_exec *exec, const graft_args_linalg_eig *args) {
  const lin_operand operands[] = {{args->self, 2}, {args->eigenvalues, 1}, {args->eigenvectors, 2}};
  return lin_each(operands, 1, 2, 0, eig_item, args);
}

static graft_status svd_item(lin_matrix *m, const void *from) {
  LIN_OWNED lin_matrix values = lin_new(m[2].at ? m[2].rows : (m[0].rows < m[0].cols ? m[0].rows : m[0].cols), 1);
  if (!values.at) return ref_no_memory();
  graft_status status = lin_svd(m[0], m[1], values, m[3]);
  if (!status && m[2].at) lin_copy(m[2], values);
  return status;
}

graft_status kernel_linalg_svd(const graft_exec *exec, const graft_args_linalg_svd *args) {
  const lin_operand operands[] = {
      {args->A, 2}, {args->compute_uv ? args->U : NULL, 2}, {args->S, 1}, {args->compute_uv ? args->Vh : NULL, 2}};
  return lin_each(operands, 1, 3, 0, svd_item, args);
}

/* --- gradients --- */

/* x_j - x_i off the diagonal, 1 on it. */
static graft_tensor *differences(fx *s, graft_tensor *x) {
  graft_tensor *e = fx_sub(s, lin_row(s, x), lin_column(s, x));
  return e ? fx_add(s, e, lin_eye(s, e->sizes[e->ndim - 1], e)) : NULL;
}

static graft_tensor *without_diagonal(fx *s, graft_tensor *x) {
  return x ? fx_sub(s, x, lin_diagonal_matrix(s, lin_diagonal(s, x))) : NULL;
}

static graft_tensor *skew(fx *s, graft_tensor *x) {
  return x ? fx_sub(s, x, fx_adjoint(s, x)) : NULL;
}

static graft_tensor *like_matrix(fx *s, graft_tensor *real, graft_tensor *like) {
  return real && like ? fx_cast(s, real, like->dtype) : NULL;
}

/* V (diag(g) + skew(V^H G) / 2 E) V^H, E the differences of the eigenvalues: the Hermitian part, as PyTorch has it, of
 * what Giles, Collected matrix derivative results, 2008, gives in section 3. */
static void vjp_eigh(op_vjp *v) {
  const in_linalg_eigh in = in_linalg_eigh_of(v->args);
  fx *s = v->s;
  graft_tensor *vectors = v->outs[OUT_linalg_eigh_eigenvectors], *values = v->outs[OUT_linalg_eigh_eigenvalues];
  graft_tensor *gvalues = v->g[OUT_linalg_eigh_eigenvalues], *gvectors = v->g[OUT_linalg_eigh_eigenvectors];
  if (!in.compute_v) {
    fx_fail(s, err_set(GRAFT_INVALID_ARGUMENT,
                       "aten::_linalg_eigh without eigenvectors has no gradient; ask for them (compute_v=True)"));
    return;
  }
  graft_tensor *turned = fx_adjoint(s, vectors), *inner = NULL;
  if (gvectors) {
    graft_tensor *turn = fx_muls(s, skew(s, lin_mm(s, turned, gvectors)), 0.5);
    inner = without_diagonal(s, fx_div(s, turn, like_matrix(s, differences(s, values), gvectors)));
  }
  if (gvalues) inner = lin_add(s, inner, lin_diagonal_matrix(s, like_matrix(s, gvalues, vectors)));
  if (inner) v->results[ARG_linalg_eigh_A] = lin_mm(s, vectors, lin_mm(s, inner, turned));
}

static graft_tensor *real_part(fx *s, graft_tensor *x) {
  graft_tensor *parts = x ? fx_view_as_real(s, x) : NULL;
  return parts ? fx_select_int(s, parts, parts->ndim - 1, 0) : NULL;
}

/* V^-H (diag(g) + (V^H G - V^H V diag(Re(V^H G))) / conj(E)) V^H, for vectors of length 1. */
static void vjp_eig(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *a = vjp_arg(v, ARG_linalg_eig_self);
  graft_tensor *vectors = v->outs[OUT_linalg_eig_eigenvectors], *values = v->outs[OUT_linalg_eig_eigenvalues];
  graft_tensor *gvalues = v->g[OUT_linalg_eig_eigenvalues], *gvectors = v->g[OUT_linalg_eig_eigenvectors];
  graft_tensor *turned = fx_adjoint(s, vectors), *inner = NULL;
  if (gvectors) {
    graft_tensor *vg = lin_mm(s, turned, gvectors), *diagonal = lin_diagonal(s, vg);
    graft_tensor *real = fx_add(s, diagonal, fx_conj(s, diagonal));
    graft_tensor *along = fx_mul(s, lin_mm(s, turned, vectors), lin_row(s, fx_muls(s, real, 0.5)));
    inner = fx_div(s, fx_sub(s, vg, along), fx_conj(s, differences(s, values)));
    inner = without_diagonal(s, inner);
  }
  if (gvalues) inner = lin_add(s, inner, lin_diagonal_matrix(s, gvalues));
  if (!inner) return;
  graft_tensor *x, *lu, *pivots, *info;
  fx_linalg_solve_ex(s, turned, lin_mm(s, inner, turned), true, false, &x, &lu, &pivots, &info);
  v->results[ARG_linalg_eig_self] = dt_is_complex(a->dtype) ? x : real_part(s, x);
}

/* x without what lies in the columns of basis, or in the rows of it. */
static graft_tensor *outside_columns(fx *s, graft_tensor *basis, graft_tensor *x) {
  return fx_sub(s, x, lin_mm(s, basis, lin_mm(s, fx_adjoint(s, basis), x)));
}
static graft_tensor *outside_rows(fx *s, graft_tensor *basis, graft_tensor *x) {
  return fx_sub(s, x, lin_mm(s, lin_mm(s, x, fx_adjoint(s, basis)), basis));
}

typedef struct factors {
  graft_tensor *u, *s, *vh;
} factors;

/* The part inside the bases that u and vh are: [skew(U^H G_U) S + S skew(V^H G_V)] / E + diag(g), E_jk = s_k^2 - s_j^2.
 */
static graft_tensor *svd_inner(fx *s, const factors *f, const factors *g) {
  graft_tensor *inner = NULL, *left = NULL, *right = NULL;
  graft_tensor *size = like_matrix(s, f->s, f->u);
  if (g->u) {
    left = skew(s, lin_mm(s, fx_adjoint(s, f->u), g->u));
    inner = fx_mul(s, left, lin_row(s, size));
  }
  if (g->vh) {
    right = skew(s, lin_mm(s, f->vh, fx_adjoint(s, g->vh)));
    inner = lin_add(s, inner, fx_mul(s, lin_column(s, size), right));
  }
  if (inner) inner = fx_div(s, inner, like_matrix(s, differences(s, fx_mul(s, f->s, f->s)), f->u));
  if (inner && !dt_is_complex(f->u->dtype)) inner = without_diagonal(s, inner);
  if (inner && dt_is_complex(f->u->dtype)) {
    inner = without_diagonal(s, inner);
    if (left && right) {
      graft_tensor *phase = fx_div(s, lin_diagonal(s, left), fx_muls(s, size, 2));
      inner = fx_add(s, inner, lin_diagonal_matrix(s, phase));
    }
  }
  return lin_add(s, inner, g->s ? lin_diagonal_matrix(s, like_matrix(s, g->s, f->u)) : NULL);
}

/* Townsend, Differentiating the singular value decomposition, 2016. Of full matrices the columns that are completed
 * have no say. */
static void vjp_svd(op_vjp *v) {
  const in_linalg_svd in = in_linalg_svd_of(v->args);
  fx *s = v->s;
  if (!in.compute_uv) {
    fx_fail(s, err_set(GRAFT_INVALID_ARGUMENT,
                       "aten::_linalg_svd without singular vectors has no gradient; ask for them (compute_uv=True)"));
    return;
  }
  factors f = {v->outs[OUT_linalg_svd_U], v->outs[OUT_linalg_svd_S], v->outs[OUT_linalg_svd_Vh]};
  factors g = {v->g[OUT_linalg_svd_U], v->g[OUT_linalg_svd_S], v->g[OUT_linalg_svd_Vh]};
  int64_t k = f.s->sizes[f.s->ndim - 1], rows = in.A->sizes[in.A->ndim - 2], columns = in.A->sizes[in.A->ndim - 1];
  if (in.full_matrices) {
    f.u = lin_narrow(s, f.u, 1, 0, k), g.u = lin_narrow(s, g.u, 1, 0, k);
    f.vh = lin_narrow(s, f.vh, 2, 0, k), g.vh = lin_narrow(s, g.vh, 2, 0, k);
  }
  graft_tensor *inner = svd_inner(s, &f, &g), *size = like_matrix(s, f.s, f.u);
  if (!inner) return;
  graft_tensor *a = NULL;
  if (rows > k && g.u) {
    graft_tensor *more = outside_columns(s, f.u, fx_div(s, g.u, lin_row(s, size)));
    a = lin_mm(s, fx_add(s, lin_mm(s, f.u, inner), more), f.vh);
  } else if (columns > k && g.vh) {
    graft_tensor *more = outside_rows(s, f.vh, fx_div(s, g.vh, lin_column(s, size)));
    a = lin_mm(s, f.u, fx_add(s, lin_mm(s, inner, f.vh), more));
  } else {
    a = lin_mm(s, f.u, lin_mm(s, inner, f.vh));
  }
  v->results[ARG_linalg_svd_A] = a;
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(linalg_eigh),
     .roles = "k",
     .infer = infer_eigh,
     .vjp = vjp_eigh,
     .saves = OP_SAVE_OUT(linalg_eigh, eigenvalues) | OP_SAVE_OUT(linalg_eigh, eigenvectors)},
    {.op_id = OP_WITH_KERNEL(linalg_eig),
     .roles = "k",
     .infer = infer_eig,
     .vjp = vjp_eig,
     .saves = OP_SAVE_OUT(linalg_eig, eigenvalues) | OP_SAVE_OUT(linalg_eig, eigenvectors)},
    {.op_id = OP_WITH_KERNEL(linalg_svd),
     .roles = "k",
     .infer = infer_svd,
     .vjp = vjp_svd,
     .saves = OP_SAVE_OUT(linalg_svd, U) | OP_SAVE_OUT(linalg_svd, S) | OP_SAVE_OUT(linalg_svd, Vh)},
};
OP_TABLE(linalg_spectrum, defs)
