/* Factorizations and solvers of reference kernels: the textbook's algorithms in LAPACK's conventions. */
#include "base/error.h"
#include "ops/linalg/lin.h"

static inline ref_complex product(bool real, ref_complex a, ref_complex b) {
  return real ? creall(a) * creall(b) : a * b;
}

static ref_real size_of(ref_complex z) { /* as LAPACK compares complex numbers */
  return fabsl(creall(z)) + fabsl(cimagl(z));
}

int64_t lin_cholesky(lin_matrix a) {
  const bool real = lin_is_real(a);
  int64_t info = 0;
  for (int64_t j = 0; j < a.cols && !info; j++) {
    ref_real pivot = creall(*lin_at(a, j, j));
    for (int64_t k = 0; k < j; k++) pivot -= creall(*lin_at(a, j, k) * conjl(*lin_at(a, j, k)));
    if (!(pivot > 0)) info = j + 1;
    ref_real root = info ? 1 : sqrtl(pivot);
    *lin_at(a, j, j) = info ? pivot : root;
    for (int64_t i = j + 1; i < a.rows && !info; i++) {
      ref_complex sum = *lin_at(a, i, j);
      for (int64_t k = 0; k < j; k++) sum -= product(real, *lin_at(a, i, k), conjl(*lin_at(a, j, k)));
      *lin_at(a, i, j) = sum / root;
    }
  }
  for (int64_t i = 0; i < a.rows; i++)
    for (int64_t j = i + 1; j < a.cols; j++) *lin_at(a, i, j) = 0;
  return info;
}

static void exchange(lin_matrix a, int64_t i, int64_t k) {
  for (int64_t j = 0; i != k && j < a.cols; j++) {
    ref_complex kept = *lin_at(a, i, j);
    *lin_at(a, i, j) = *lin_at(a, k, j);
    *lin_at(a, k, j) = kept;
  }
}

static int64_t pivot_row(lin_matrix a, int64_t k) {
  int64_t best = k;
  for (int64_t i = k + 1; i < a.rows; i++)
    if (size_of(*lin_at(a, i, k)) > size_of(*lin_at(a, best, k))) best = i;
  return best;
}

int64_t lin_lu(lin_matrix a, lin_matrix pivots, bool pivot) {
  const bool real = lin_is_real(a);
  int64_t steps = a.rows < a.cols ? a.rows : a.cols, info = 0;
  for (int64_t k = 0; k < steps; k++) {
    int64_t row = pivot ? pivot_row(a, k) : k;
    pivots.at[k] = (ref_real)(row + 1);
    exchange(a, k, row);
    ref_complex head = *lin_at(a, k, k);
    if (head == 0 && !info) info = k + 1;
    for (int64_t i = k + 1; i < a.rows; i++) {
      if (head == 0 && *lin_at(a, i, k) == *lin_at(a, i, k)) continue; /* 0, or NaN, which makes NaN of its row */
      const ref_complex factor = *lin_at(a, i, k) /= head;
      for (int64_t j = k + 1; j < a.cols; j++) *lin_at(a, i, j) -= product(real, factor, *lin_at(a, k, j));
    }
  }
  return info;
}

void lin_exchange_rows(lin_matrix b, lin_matrix pivots, bool back) {
  for (int64_t k = 0; k < pivots.rows; k++) {
    int64_t at = back ? pivots.rows - 1 - k : k, row = (int64_t)creall(pivots.at[at]) - 1;
    if (row >= 0 && row < b.rows) exchange(b, at, row);
  }
}

graft_status lin_check_pivots(const char *op, lin_matrix pivots, int64_t rows, bool pairs) {
  for (int64_t k = 0; k < pivots.rows; k++) {
    int64_t pivot = (int64_t)creall(pivots.at[k]), row = pairs && pivot < 0 ? -pivot : pivot;
    if (row >= 1 && row <= rows) continue;
    return err_about(GRAFT_OUT_OF_RANGE, op,
                     "pivot %lld at position %lld is out of range for %lld rows, counted from 1", (long long)pivot,
                     (long long)k, (long long)rows);
  }
  return GRAFT_OK;
}

void lin_solve_triangle(lin_matrix t, lin_triangle kind, lin_matrix b) {
  const bool real = lin_is_real(t) && lin_is_real(b);
  int64_t n = t.rows;
  for (int64_t step = 0; step < n; step++) {
    int64_t i = kind.upper ? n - 1 - step : step;
    const int64_t first = kind.upper ? i + 1 : 0, last = kind.upper ? n : i;
    for (int64_t j = 0; j < b.cols; j++) {
      const ref_complex sum = *lin_at(b, i, j) - lin_row_by_column(real, t, i, b, j, first, last);
      *lin_at(b, i, j) = kind.unit ? sum : sum / *lin_at(t, i, i);
    }
  }
}

void lin_solve_lu(lin_matrix lu, lin_matrix pivots, bool adjoint, lin_matrix b) {
  if (!adjoint) {
    lin_exchange_rows(b, pivots, false);
    lin_solve_triangle(lu, (lin_triangle){.unit = true}, b);
    lin_solve_triangle(lu, (lin_triangle){.upper = true}, b);
    return;
  }
  LIN_OWNED lin_matrix turned = lin_new(lu.cols, lu.rows);
  lin_adjoint(turned, lu);
  lin_solve_triangle(turned, (lin_triangle){.upper = false}, b);
  lin_solve_triangle(turned, (lin_triangle){.upper = true, .unit = true}, b);
  lin_exchange_rows(b, pivots, true);
}

/* The reflector that takes column k below row k to 0, as LAPACK's larfg makes it. */
static ref_complex reflector(lin_matrix a, int64_t k) {
  ref_complex alpha = *lin_at(a, k, k);
  const ref_real below = lin_column_length(a, k + 1, k);
  if (below == 0 && cimagl(alpha) == 0) return 0;
  ref_real beta = hypotl(cabsl(alpha), below);
  if (creall(alpha) >= 0) beta = -beta;
  for (int64_t i = k + 1; i < a.rows; i++) *lin_at(a, i, k) /= alpha - beta;
  *lin_at(a, k, k) = beta;
  return (beta - alpha) / beta;
}

/* c = (I - tau v v^H) c, where v is column k of `vectors` below row k, and 1 there. `real`: all of them are. */
static void reflect(bool real, lin_matrix vectors, int64_t k, ref_complex tau, lin_matrix c, int64_t first) {
  for (int64_t j = first; tau != 0 && j < c.cols; j++) {
    ref_complex sum = *lin_at(c, k, j);
    for (int64_t i = k + 1; i < c.rows; i++) sum += product(real, conjl(*lin_at(vectors, i, k)), *lin_at(c, i, j));
    sum *= tau;
    *lin_at(c, k, j) -= sum;
    for (int64_t i = k + 1; i < c.rows; i++) *lin_at(c, i, j) -= product(real, *lin_at(vectors, i, k), sum);
  }
}

void lin_qr(lin_matrix a, lin_matrix tau) {
  const bool real = lin_is_real(a);
  for (int64_t k = 0; k < tau.rows; k++) {
    tau.at[k] = reflector(a, k);
    reflect(real, a, k, conjl(tau.at[k]), a, k + 1);
  }
}

void lin_reflectors_product(lin_matrix v, lin_matrix tau, lin_matrix q) {
  lin_identity(q);
  lin_apply_reflectors(v, tau, false, q);
}

void lin_apply_reflectors(lin_matrix v, lin_matrix tau, bool adjoint, lin_matrix c) {
  const bool real = lin_is_real(v) && lin_is_real(tau) && lin_is_real(c);
  for (int64_t step = 0; step < tau.rows; step++) {
    int64_t k = adjoint ? step : tau.rows - 1 - step;
    reflect(real, v, k, adjoint ? conjl(tau.at[k]) : tau.at[k], c, 0);
  }
}
