/* The exponential of matrices. */
#include "ops/linalg/lin.h"

/* The one op of its kind that takes half types: the host widens them. */
static graft_status infer_matrix_exp(op_call *c) {
  const graft_tensor *a = op_tensor(c, ARG_linalg_matrix_exp_self);
  graft_status status = dt_is_half(a->dtype) ? lin_check_square_shape(c, ARG_linalg_matrix_exp_self)
                                             : lin_check_square(c, ARG_linalg_matrix_exp_self);
  if (status) return status;
  c->compute = a->dtype;
  op_out(c, OUT, a->dtype, a->ndim, a->sizes);
  return GRAFT_OK;
}

/* The largest sum of sizes in a column. */
static ref_real norm_of(lin_matrix a) {
  ref_real most = 0;
  for (int64_t j = 0; j < a.cols; j++) {
    ref_real sum = 0;
    for (int64_t i = 0; i < a.rows; i++) sum += cabsl(*lin_at(a, i, j));
    most = sum > most || isnan(sum) ? sum : most;
  }
  return most;
}

enum { DEGREE = 24, MOST_SQUARINGS = 16384 }; /* (1/2)^25 / 25! is 2e-33 */

/* Taylor's polynomial of a / 2^s, whose norm is 1/2 at most, squared s times (Higham, Functions of Matrices, 10.3). */
static graft_status exp_item(lin_matrix *m, const void *from) {
  ref_real norm = norm_of(m[0]);
  int squarings = isfinite(norm) && norm > 0.5L ? ilogbl(norm) + 2 : 0;
  LIN_OWNED lin_matrix a = lin_new(m[0].rows, m[0].cols), other = lin_new(m[0].rows, m[0].cols);
  if (!a.at || !other.at) return ref_no_memory();
  for (int64_t i = 0; i < a.rows * a.cols; i++) a.at[i] = m[0].at[i] * ldexpl(1, -squarings);
  lin_identity(m[1]);
  for (int k = DEGREE; k > 0; k--) {
    lin_product(other, a, m[1]);
    lin_identity(m[1]);
    for (int64_t i = 0; i < a.rows * a.cols; i++) m[1].at[i] += other.at[i] / k;
  }
  for (int k = 0; k < squarings && k < MOST_SQUARINGS; k++) {
    lin_product(other, m[1], m[1]);
    lin_copy(m[1], other);
  }
  return GRAFT_OK;
}

graft_status kernel_linalg_matrix_exp(const graft_exec *exec, const graft_args_linalg_matrix_exp *args) {
  const lin_operand operands[] = {{args->self, 2}, {args->out, 2}};
  return lin_each(operands, 1, 1, 0, exp_item, args);
}

/* The derivative in direction G is the upper right part of exp([[A^H, G], [0, A^H]]) (Higham, Functions of Matrices,
 * theorem 3.6). */
static void vjp_matrix_exp(op_vjp *v) {
  fx *s = v->s;
  graft_tensor *a = vjp_arg(v, ARG_linalg_matrix_exp_self), *turned = fx_adjoint(s, a);
  int64_t n = a->sizes[a->ndim - 1];
  graft_tensor *zeros = fx_zeros_like(s, turned);
  if (s->status) return;
  graft_tensor *upper = fx_cat(s, (graft_tensor *[]){turned, v->g[OUT]}, 2, a->ndim - 1);
  graft_tensor *lower = fx_cat(s, (graft_tensor *[]){zeros, turned}, 2, a->ndim - 1);
  graft_tensor *both = fx_linalg_matrix_exp(s, fx_cat(s, (graft_tensor *[]){upper, lower}, 2, a->ndim - 2));
  v->results[ARG_linalg_matrix_exp_self] = lin_narrow(s, lin_narrow(s, both, 2, 0, n), 1, n, n);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(linalg_matrix_exp),
     .roles = "v",
     .infer = infer_matrix_exp,
     .vjp = vjp_matrix_exp,
     .saves = OP_SAVE_ARGS(linalg_matrix_exp, self)},
};
OP_TABLE(linalg_exponential, defs)
