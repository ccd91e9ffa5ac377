/* The factors that an LU factorization keeps in one matrix, each in its own. */
#include "ops/linalg/lin.h"

/* --- rule --- */

static graft_status check_pivots(op_call *c, const graft_tensor *lu, int64_t steps) {
  const graft_tensor *pivots = op_tensor(c, ARG_lu_unpack_LU_pivots);
  graft_status status = op_check_dtype(c, ARG_lu_unpack_LU_pivots, GRAFT_I32);
  lin_shape shape = lin_shape_of(lu, steps, 1);
  if (status || tns_has_sizes(pivots, lu->ndim - 1, shape.sizes)) return status;
  return op_refuse(c, ARG_lu_unpack_LU_pivots, "one pivot for each row or column of LU_data, of the fewer");
}

static void out_matrices(op_call *c, int n, bool wanted, const graft_tensor *lu, int64_t rows, int64_t columns) {
  lin_shape shape = lin_shape_of(lu, rows, columns);
  if (wanted)
    op_out(c, n, lu->dtype, shape.ndim, shape.sizes);
  else
    lin_out_none(c, n, lu->dtype);
}

static graft_status infer_lu_unpack(op_call *c) {
  const graft_tensor *lu = op_tensor(c, ARG_lu_unpack_LU_data);
  bool data = op_bool(c, ARG_lu_unpack_unpack_data), exchanges = op_bool(c, ARG_lu_unpack_unpack_pivots);
  if (lu->ndim < 2) return op_refuse(c, ARG_lu_unpack_LU_data, "a matrix, or a stack of matrices");
  int64_t rows = lu->sizes[lu->ndim - 2], columns = lu->sizes[lu->ndim - 1], steps = lin_smaller(rows, columns);
  graft_status status = exchanges ? check_pivots(c, lu, steps) : GRAFT_OK;
  if (status) return status;
  out_matrices(c, OUT_lu_unpack_P, exchanges, lu, rows, rows);
  out_matrices(c, OUT_lu_unpack_L, data, lu, rows, steps);
  out_matrices(c, OUT_lu_unpack_U, data, lu, steps, columns);
  return GRAFT_OK;
}

/* --- kernel --- */

enum { DATA, PIVOTS, P, L, U };

static graft_status unpack_item(lin_matrix *m, const void *from) {
  for (int64_t i = 0; m[L].at && i < m[L].rows; i++)
    for (int64_t j = 0; j <= i && j < m[L].cols; j++) *lin_at(m[L], i, j) = i == j ? 1 : *lin_at(m[DATA], i, j);
  for (int64_t i = 0; m[U].at && i < m[U].rows; i++)
    for (int64_t j = i; j < m[U].cols; j++) *lin_at(m[U], i, j) = *lin_at(m[DATA], i, j);
  if (!m[P].at) return GRAFT_OK;
  graft_status status = lin_check_pivots("aten::lu_unpack", m[PIVOTS], m[P].rows, false);
  if (status) return status;
  lin_identity(m[P]);
  lin_exchange_rows(m[P], m[PIVOTS], true);
  return GRAFT_OK;
}

graft_status kernel_lu_unpack(const graft_exec *exec, const graft_args_lu_unpack *args) {
  const lin_operand operands[] = {[DATA] = {args->LU_data, 2},
                                  [PIVOTS] = {args->unpack_pivots ? args->LU_pivots : NULL, 1},
                                  [P] = {args->unpack_pivots ? args->P : NULL, 2},
                                  [L] = {args->unpack_data ? args->L : NULL, 2},
                                  [U] = {args->unpack_data ? args->U : NULL, 2}};
  return lin_each(operands, 2, 3, DATA, unpack_item, args);
}

/* --- gradient: what the triangles say of the matrix that has both --- */

/* With so many rows or columns of zeros behind it. */
static graft_tensor *widened(fx *s, graft_tensor *a, int64_t rows, int64_t columns) {
  return rows || columns ? fx_constant_pad_nd(s, a, (int64_t[]){0, columns, 0, rows}, 4, graft_scalar_int(0)) : a;
}

static void vjp_lu_unpack(op_vjp *v) {
  const in_lu_unpack in = in_lu_unpack_of(v->args);
  fx *s = v->s;
  graft_tensor *l = v->g[OUT_lu_unpack_L], *u = v->g[OUT_lu_unpack_U];
  int64_t rows = in.LU_data->sizes[in.LU_data->ndim - 2], columns = in.LU_data->sizes[in.LU_data->ndim - 1];
  int64_t steps = lin_smaller(rows, columns);
  if (!in.unpack_data || (!l && !u)) return;
  if (l) l = widened(s, fx_tril(s, l, -1), 0, columns - steps);
  if (u) u = widened(s, fx_triu(s, u, 0), rows - steps, 0);
  v->results[ARG_lu_unpack_LU_data] = lin_add(s, l, u);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(lu_unpack),
     .roles = "kk",
     .infer = infer_lu_unpack,
     .vjp = vjp_lu_unpack,
     .without_grad = OP_OUT_BIT(lu_unpack, P)},
};
OP_TABLE(linalg_lu_unpack, defs)
