/* The factorization of symmetric and Hermitian matrices by Bunch and Kaufman, and systems of its factors. */
#include "ops/linalg/lin.h"

static graft_status infer_ldl_factor_ex(op_call *c) {
  const graft_tensor *a = op_tensor(c, ARG_linalg_ldl_factor_ex_self);
  graft_status status = lin_check_square(c, ARG_linalg_ldl_factor_ex_self);
  if (status) return status;
  lin_out_columns(c, OUT_linalg_ldl_factor_ex_LD, a->dtype, a->ndim, a->sizes);
  lin_out_batch(c, OUT_linalg_ldl_factor_ex_pivots, GRAFT_I32, a, 1);
  lin_out_batch(c, OUT_linalg_ldl_factor_ex_info, GRAFT_I32, a, 2);
  return GRAFT_OK;
}

/* Kernels read pivots of i32, as the factorization gives them. */
static graft_status infer_ldl_solve(op_call *c) {
  const graft_tensor *ld = op_tensor(c, ARG_linalg_ldl_solve_LD), *b = op_tensor(c, ARG_linalg_ldl_solve_B);
  const graft_tensor *pivots = op_tensor(c, ARG_linalg_ldl_solve_pivots);
  lin_shape shape;
  graft_status status = lin_check_square(c, ARG_linalg_ldl_solve_LD);
  if (!status) status = lin_check_matrix(c, ARG_linalg_ldl_solve_B);
  if (!status) status = op_check_same_dtype(c, ARG_linalg_ldl_solve_LD, ARG_linalg_ldl_solve_B);
  if (status) return status;
  if (ld->sizes[ld->ndim - 1] != b->sizes[b->ndim - 2]) {
    return op_error(c, "the sizes of the systems and of the right sides differ: %s", op_show_tensors(c));
  }
  bool fits = dt_is_integral(pivots->dtype, false) && tns_has_sizes(pivots, ld->ndim - 1, ld->sizes);
  if (!fits) return op_refuse(c, ARG_linalg_ldl_solve_pivots, "one integer for each row of LD");
  status = lin_broadcast(c, ARG_linalg_ldl_solve_LD, ARG_linalg_ldl_solve_B, &shape);
  if (status) return status;
  c->decompose_only = pivots->dtype != GRAFT_I32;
  c->no_decompose = !c->decompose_only;
  lin_out_columns(c, OUT, b->dtype, shape.ndim, shape.sizes);
  return GRAFT_OK;
}

/* What is mirrored in the other triangle: as it is, or conjugated. */
static ref_complex mirrored(ref_complex z, bool hermitian) {
  return hermitian ? conjl(z) : z;
}

static ref_real size_at(lin_matrix a, int64_t i, int64_t j) {
  ref_complex z = *lin_at(a, i, j);
  return fabsl(creall(z)) + fabsl(cimagl(z));
}

/* The pivot of a step. */
typedef struct pivot {
  int64_t row, steps;
  bool zero; /* nothing stands in the column */
} pivot;

/* As LAPACK's sytf2 picks it for a lower triangle. */
static pivot pivot_of(lin_matrix a, int64_t k) {
  const ref_real alpha = (1 + sqrtl(17)) / 8;
  int64_t n = a.rows, row = k + 1;
  for (int64_t i = k + 2; i < n; i++)
    if (size_at(a, i, k) > size_at(a, row, k)) row = i;
  ref_real own = size_at(a, k, k), column = k + 1 < n ? size_at(a, row, k) : 0, beside = 0;
  if (own == 0 && column == 0) return (pivot){k, 1, true};
  if (!(own < alpha * column)) return (pivot){k, 1, false}; /* NaN, too */
  for (int64_t j = k; j < row; j++) beside = fmaxl(beside, size_at(a, row, j));
  for (int64_t i = row + 1; i < n; i++) beside = fmaxl(beside, size_at(a, i, row));
  if (!(own < alpha * column * (column / beside))) return (pivot){k, 1, false};
  return (pivot){row, size_at(a, row, row) >= alpha * beside ? 1 : 2, false};
}

static void swap(ref_complex *x, ref_complex *y) {
  ref_complex kept = *x;
  *x = *y;
  *y = kept;
}

/* Rows and columns p < q of what is left from column k on. */
static void exchange(lin_matrix a, int64_t k, int64_t p, int64_t q, bool hermitian) {
  for (int64_t i = q + 1; i < a.rows; i++) swap(lin_at(a, i, p), lin_at(a, i, q));
  for (int64_t i = p + 1; i < q; i++) {
    ref_complex kept = mirrored(*lin_at(a, i, p), hermitian);
    *lin_at(a, i, p) = mirrored(*lin_at(a, q, i), hermitian);
    *lin_at(a, q, i) = kept;
  }
  *lin_at(a, q, p) = mirrored(*lin_at(a, q, p), hermitian);
  swap(lin_at(a, p, p), lin_at(a, q, q));
  if (p > k) swap(lin_at(a, p, k), lin_at(a, q, k));
}

static void eliminate_one(lin_matrix a, int64_t k, bool hermitian) {
  ref_complex d = *lin_at(a, k, k);
  for (int64_t j = k + 1; j < a.rows; j++) {
    ref_complex factor = mirrored(*lin_at(a, j, k), hermitian) / d;
    for (int64_t i = j; i < a.rows; i++) *lin_at(a, i, j) -= *lin_at(a, i, k) * factor;
  }
  for (int64_t i = k + 1; i < a.rows; i++) *lin_at(a, i, k) /= d;
}

/* Columns k and k + 1 times the inverse of their two by two part D, scaled by what is beside its diagonal; the rest
 * less what they make with D. */
static void eliminate_two(lin_matrix a, int64_t k, bool hermitian) {
  ref_complex beside = *lin_at(a, k + 1, k), across = mirrored(beside, hermitian);
  ref_complex p = *lin_at(a, k, k) / across, q = *lin_at(a, k + 1, k + 1) / beside, determinant = p * q - 1;
  for (int64_t j = k + 2; j < a.rows; j++) {
    ref_complex x = *lin_at(a, j, k), y = *lin_at(a, j, k + 1);
    ref_complex first = (x * q - y) / (across * determinant), second = (y * p - x) / (beside * determinant);
    for (int64_t i = j; i < a.rows; i++) {
      *lin_at(a, i, j) -=
          *lin_at(a, i, k) * mirrored(first, hermitian) + *lin_at(a, i, k + 1) * mirrored(second, hermitian);
    }
    *lin_at(a, j, k) = first;
    *lin_at(a, j, k + 1) = second;
  }
}

static int64_t factor(lin_matrix a, lin_matrix pivots, bool hermitian) {
  int64_t info = 0;
  for (int64_t k = 0; k < a.rows;) {
    pivot p = pivot_of(a, k);
    int64_t last = k + p.steps - 1;
    if (p.zero && !info) info = k + 1;
    if (p.row != last) exchange(a, k, last, p.row, hermitian);
    for (int64_t i = k; i <= last; i++) {
      pivots.at[i] = p.steps == 1 ? (ref_real)(p.row + 1) : -(ref_real)(p.row + 1);
      if (hermitian) *lin_at(a, i, i) = creall(*lin_at(a, i, i));
    }
    if (p.steps == 2)
      eliminate_two(a, k, hermitian);
    else if (!p.zero)
      eliminate_one(a, k, hermitian);
    k += p.steps;
  }
  return info;
}

static graft_status ldl_item(lin_matrix *m, const void *from) {
  const graft_args_linalg_ldl_factor_ex *args = from;
  LIN_OWNED lin_matrix a = lin_new(m[0].rows, m[0].cols), pivots = lin_new(m[0].rows, 1);
  if (!a.at || !pivots.at) return ref_no_memory();
  for (int64_t i = 0; i < a.rows; i++)
    for (int64_t j = 0; j <= i; j++) {
      ref_complex z = *lin_at(m[0], i, j);
      *lin_at(a, i, j) = i == j && args->hermitian ? creall(z) : z;
    }
  int64_t info = factor(a, pivots, args->hermitian);
  if (m[1].at) lin_copy(m[1], a);
  if (m[2].at) lin_copy(m[2], pivots);
  if (m[3].at) *m[3].at = (ref_real)info;
  return lin_check_info(args->check_errors, info, "linalg.ldl_factor: the diagonal block of D of this number is zero");
}

graft_status kernel_linalg_ldl_factor_ex(const graft_exec *exec, const graft_args_linalg_ldl_factor_ex *args) {
  const lin_operand operands[] = {{args->self, 2}, {args->LD, 2}, {args->pivots, 1}, {args->info, 0}};
  return lin_each(operands, 1, 3, 0, ldl_item, args);
}

/* ---- systems ---- */

static bool is_double(lin_matrix pivots, int64_t k) {
  return creall(pivots.at[k]) < 0;
}

static void exchange_rows(lin_matrix x, lin_matrix pivots, int64_t k) {
  int64_t row = (int64_t)fabsl(creall(pivots.at[k])) - 1;
  for (int64_t j = 0; j < x.cols; j++) swap(lin_at(x, k, j), lin_at(x, row, j));
}

/* Rows k and k + 1 of a column by the inverse of their part of D; scaled by what is beside its diagonal, the largest
 * there is. */
static void divide_by_two(lin_matrix ld, int64_t k, bool hermitian, ref_complex *x, ref_complex *y) {
  ref_complex beside = *lin_at(ld, k + 1, k), across = mirrored(beside, hermitian);
  ref_complex p = *lin_at(ld, k, k) / across, q = *lin_at(ld, k + 1, k + 1) / beside, denominator = p * q - 1;
  ref_complex above = *x / across, below = *y / beside;
  *x = (q * above - below) / denominator;
  *y = (p * below - above) / denominator;
}

/* As LAPACK's sytrs and hetrs go: P L D first, step by step, then what is left, from the last step on. */
static void solve_lower(lin_matrix ld, lin_matrix pivots, bool hermitian, lin_matrix x) {
  for (int64_t k = 0, last; k < x.rows; k = last + 1) {
    last = k + (is_double(pivots, k) && k + 1 < x.rows);
    exchange_rows(x, pivots, last);
    for (int64_t j = 0; j < x.cols; j++) {
      for (int64_t i = last + 1; i < x.rows; i++)
        for (int64_t c = k; c <= last; c++) *lin_at(x, i, j) -= *lin_at(ld, i, c) * *lin_at(x, c, j);
      ref_complex d = *lin_at(ld, k, k);
      if (last > k)
        divide_by_two(ld, k, hermitian, lin_at(x, k, j), lin_at(x, last, j));
      else
        *lin_at(x, k, j) /= hermitian ? creall(d) : d;
    }
  }
}

static void solve_upper(lin_matrix ld, lin_matrix pivots, bool hermitian, lin_matrix x) {
  for (int64_t k = x.rows - 1, first; k >= 0; k = first - 1) {
    first = k - (is_double(pivots, k) && k > 0);
    for (int64_t j = 0; j < x.cols; j++)
      for (int64_t c = first; c <= k; c++)
        for (int64_t i = k + 1; i < x.rows; i++)
          *lin_at(x, c, j) -= mirrored(*lin_at(ld, i, c), hermitian) * *lin_at(x, i, j);
    exchange_rows(x, pivots, k);
  }
}

static graft_status ldl_solve_item(lin_matrix *m, const void *from) {
  const graft_args_linalg_ldl_solve *args = from;
  graft_status status = lin_check_pivots("aten::linalg_ldl_solve", m[1], m[0].rows, true);
  if (status) return status;
  lin_copy(m[3], m[2]);
  solve_lower(m[0], m[1], args->hermitian, m[3]);
  solve_upper(m[0], m[1], args->hermitian, m[3]);
  return GRAFT_OK;
}

graft_status kernel_linalg_ldl_solve(const graft_exec *exec, const graft_args_linalg_ldl_solve *args) {
  const lin_operand operands[] = {{args->LD, 2}, {args->pivots, 1}, {args->B, 2}, {args->out, 2}};
  return lin_each(operands, 3, 1, 3, ldl_solve_item, args);
}

static void decompose_ldl_solve(fx *s, const op_call *c, graft_tensor **outs) {
  const in_linalg_ldl_solve in = in_linalg_ldl_solve_of(c->args);
  graft_tensor *pivots = in.pivots;
  if (dt_bytes(pivots->dtype) > 4) /* what is out of range stays so */
    pivots = fx_clamp(s, pivots, graft_scalar_int(-INT32_MAX), graft_scalar_int(INT32_MAX));
  outs[OUT] = fx_linalg_ldl_solve(s, in.LD, fx_cast(s, pivots, GRAFT_I32), in.B, in.hermitian);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(linalg_ldl_factor_ex), .roles = "k", .flags = OP_EXACT_OUT, .infer = infer_ldl_factor_ex},
    {.op_id = OP_WITH_KERNEL(linalg_ldl_solve),
     .roles = "kkk",
     .infer = infer_ldl_solve,
     .decompose = decompose_ldl_solve},
};
OP_TABLE(linalg_ldl, defs)
