#include "conformance/cases/linalg/factors.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef long double complex cf_complex;

/* Matrix `index` of a stack. */
typedef struct cf_matrix {
  const dt_value *v;
  int64_t rows, columns;
} cf_matrix;

static cf_matrix cf_matrix_of(const cf_array *a, int64_t index) {
  int64_t rows = a->sizes[a->ndim - 2], columns = a->sizes[a->ndim - 1];
  return (cf_matrix){a->v + index * rows * columns, rows, columns};
}

/* As it is, or transposed in memory of its own. */
static bool cf_transposed(const cf_array *a, cf_array *to) {
  if (!cf_array_new(to, a->dtype, a->ndim, a->sizes)) return false;
  int64_t n = a->sizes[a->ndim - 1];
  for (int64_t i = 0; i < a->numel; i++) {
    int64_t row = i / n % n, column = i % n;
    to->v[i - row * n - column + column * n + row] = a->v[i];
  }
  return true;
}

static cf_complex cf_part(cf_matrix m, int64_t i, int64_t j) {
  dt_value v = m.v[i * m.columns + j];
  return v.re + v.im * I;
}

static int64_t cf_matrices_in(const cf_array *a) {
  int64_t each = a->sizes[a->ndim - 1] * a->sizes[a->ndim - 2];
  return each ? a->numel / each : 0;
}

/* An output by name; NULL: the op has none. */
static const cf_array *cf_result_named(const cf_check *check, const cf_array *results, const char *name) {
  const op_schema *schema = check->call->schema;
  for (uint32_t i = 0; i < schema->nrets && i < check->nouts; i++)
    if (schema->rets[i].name && strcmp(schema->rets[i].name, name) == 0) return &results[i];
  return NULL;
}

/* Whether an error is within its limit; worsens the verdict. */
static bool cf_hold(cf_verdict *v, const char *what, int64_t matrix, int64_t i, int64_t j, long double error,
                    long double limit) {
  double ratio = error == 0 ? 0 : limit > 0 && !isnan(error) ? (double)(error / limit) : INFINITY;
  if (ratio > v->ratio) v->ratio = ratio, v->error = (double)error;
  if (ratio <= 1) return true;
  v->ok = false;
  snprintf(v->text, sizeof v->text, "%s: matrix %lld at %lld,%lld is off by %.3Lg, more than %.3Lg", what,
           (long long)matrix, (long long)i, (long long)j, error, limit);
  return false;
}

/* ---- LU ---- */

static bool cf_exchange_rows(int64_t *rows, int64_t count, const cf_array *pivots, int64_t b, int64_t steps) {
  for (int64_t i = 0; i < count; i++) rows[i] = i;
  for (int64_t k = 0; k < steps; k++) {
    int64_t row = (int64_t)pivots->v[b * steps + k].re - 1;
    if (row < k || row >= count) return false;
    int64_t kept = rows[k];
    rows[k] = rows[row];
    rows[row] = kept;
  }
  return true;
}

/* Elementwise, |P A - L U| <= k u |L| |U| with k the smaller dim: theorem 9.3 of Higham, Accuracy and Stability of
 * Numerical Algorithms, 2nd edition, to first order; one more for the division of complex numbers by parts. */
static void cf_check_lu(const cf_check *check, cf_matrix a, cf_matrix lu, const int64_t *rows, int64_t b,
                        bool exchanged, cf_verdict *v) {
  int64_t k = a.rows < a.columns ? a.rows : a.columns;
  long double u = cf_u_acc(check->call->c->dtype),
              roundings = (dt_is_complex(check->call->c->dtype) ? 4 : 1) * (k + 1) * u;
  for (int64_t i = 0; i < a.rows; i++)
    for (int64_t j = 0; j < a.columns && v->ok; j++) {
      cf_complex sum = 0;
      long double terms = 0;
      for (int64_t p = 0; p <= i && p <= j && p < k; p++) {
        cf_complex term = (p == i ? 1 : cf_part(lu, i, p)) * cf_part(lu, p, j);
        sum += term, terms += cabsl(term);
      }
      cf_complex l = cf_part(lu, i, j);
      if (j < i && exchanged && cabsl(l) > 1.5L) /* sqrt 2 where the sum of both parts was compared, as LAPACK does */
        cf_hold(v, "a multiplier above 1, so that the pivot was not the largest", b, i, j, cabsl(l), 1);
      cf_hold(v, "P A - L U", b, i, j, cabsl(sum - cf_part(a, rows[i], j)), roundings * terms);
    }
}

static void cf_check_factors(const cf_check *check, const cf_array *a, const cf_array *results, cf_verdict *v) {
  const cf_array *lu = cf_result_named(check, results, "LU"), *pivots = cf_result_named(check, results, "pivots");
  int64_t height = a->sizes[a->ndim - 2], width = a->sizes[a->ndim - 1], steps = height < width ? height : width;
  int64_t *rows = calloc((size_t)height + 1, sizeof *rows);
  if (!lu || !pivots || !rows || lu->numel != a->numel) cf_verdict_fail(v, "the factors are not there");
  for (int64_t b = 0; v->ok && b < cf_matrices_in(a); b++) {
    if (!cf_exchange_rows(rows, height, pivots, b, steps))
      cf_verdict_fail(v, "pivots: a row lies outside the matrix or above its place");
    else
      cf_check_lu(check, cf_matrix_of(a, b), cf_matrix_of(lu, b), rows, b, cf_arg_bool(check->call, "pivot", true), v);
  }
  free(rows);
}

void cf_lu_property(const cf_check *check, const cf_array *results, cf_verdict *v) {
  cf_check_factors(check, &check->in[0], results, v);
}

void cf_det_property(const cf_check *check, const cf_array *results, cf_verdict *v) {
  cf_verdict straight = *v, turned = *v;
  cf_array transpose = {0};
  cf_check_factors(check, &check->in[0], results, &straight);
  if (straight.ok)
    *v = straight;
  else if (!cf_transposed(&check->in[0], &transpose))
    cf_verdict_fail(v, "no memory to check the factors");
  else
    cf_check_factors(check, &transpose, results, &turned), *v = turned;
  cf_array_free(&transpose);
}

/* ---- orthogonal factors ---- */

/* 8 sqrt(m n) u: Householder's and Jacobi's algorithms are off by a modest multiple of m n u at most (theorem 19.4 of
 * Higham; Golub and Van Loan, Matrix Computations, 8.5.5 and 8.6.3), by the root of that where roundings are
 * independent (Higham and Mary, SIAM J. Sci. Comput. 41, 2019). */
static long double cf_orthogonal_limit(const cf_check *check, cf_matrix a) {
  return 8 * sqrtl((long double)(a.rows * a.columns)) * cf_u_acc(check->call->c->dtype);
}

static long double cf_norm(cf_matrix a) {
  long double squares = 0; /* in range: see lin_norm */
  for (int64_t i = 0; i < a.rows * a.columns; i++) squares += a.v[i].re * a.v[i].re + a.v[i].im * a.v[i].im;
  return sqrtl(squares);
}

/* Columns, or rows, of length 1 and orthogonal to each other. */
static void cf_check_orthogonal(const char *what, cf_matrix q, bool rows, int64_t b, long double limit, cf_verdict *v) {
  int64_t count = rows ? q.rows : q.columns, length = rows ? q.columns : q.rows;
  for (int64_t i = 0; i < count; i++)
    for (int64_t j = 0; j <= i && v->ok; j++) {
      cf_complex dot = i == j ? -1 : 0;
      for (int64_t k = 0; k < length; k++) {
        cf_complex x = rows ? cf_part(q, i, k) : cf_part(q, k, i), y = rows ? cf_part(q, j, k) : cf_part(q, k, j);
        dot += conjl(x) * y;
      }
      cf_hold(v, what, b, i, j, cabsl(dot), limit);
    }
}

/* a = x diag(d) y within the limit, relative to a's norm; d NULL: ones. */
static void cf_check_product(const char *what, cf_matrix a, cf_matrix x, const dt_value *d, cf_matrix y, int64_t b,
                             long double limit, cf_verdict *v) {
  long double norm = cf_norm(a);
  int64_t inner = x.columns < y.rows ? x.columns : y.rows;
  if (d && a.rows < inner) inner = a.rows;
  if (d && a.columns < inner) inner = a.columns;
  for (int64_t i = 0; i < a.rows; i++)
    for (int64_t j = 0; j < a.columns && v->ok; j++) {
      cf_complex sum = 0;
      for (int64_t k = 0; k < inner; k++) sum += cf_part(x, i, k) * (d ? d[k].re : 1) * cf_part(y, k, j);
      cf_hold(v, what, b, i, j, cabsl(sum - cf_part(a, i, j)), limit * norm);
    }
}

static void cf_check_triangle(cf_matrix r, int64_t b, cf_verdict *v) {
  for (int64_t i = 0; i < r.rows; i++)
    for (int64_t j = 0; j < i && j < r.columns && v->ok; j++)
      cf_hold(v, "R below its diagonal", b, i, j, cabsl(cf_part(r, i, j)), 0);
}

/* R^H R = A^H A: with A + E = Q R and an orthogonal Q, both sides differ by A^H E + E^H A to first order, where E is
 * within the limit of A's norm. */
static void cf_check_gram(cf_matrix a, cf_matrix r, int64_t b, long double limit, cf_verdict *v) {
  long double norm = cf_norm(a);
  for (int64_t i = 0; i < a.columns; i++)
    for (int64_t j = 0; j <= i && v->ok; j++) {
      cf_complex sum = 0;
      for (int64_t k = 0; k < r.rows; k++) sum += conjl(cf_part(r, k, i)) * cf_part(r, k, j);
      for (int64_t k = 0; k < a.rows; k++) sum -= conjl(cf_part(a, k, i)) * cf_part(a, k, j);
      cf_hold(v, "R^H R - A^H A", b, i, j, cabsl(sum), 2 * limit * norm * norm);
    }
}

void cf_qr_property(const cf_check *check, const cf_array *results, cf_verdict *v) {
  const cf_array *a = &check->in[0], *q = cf_result_named(check, results, "Q"),
                 *r = cf_result_named(check, results, "R");
  for (int64_t b = 0; v->ok && b < cf_matrices_in(a); b++) {
    cf_matrix given = cf_matrix_of(a, b), triangle = cf_matrix_of(r, b);
    long double limit = cf_orthogonal_limit(check, given);
    cf_check_triangle(triangle, b, v);
    if (q->ndim < 2) { /* R alone */
      cf_check_gram(given, triangle, b, limit, v);
      continue;
    }
    cf_check_orthogonal("Q^H Q - I", cf_matrix_of(q, b), false, b, limit, v);
    cf_check_product("A - Q R", given, cf_matrix_of(q, b), NULL, triangle, b, limit, v);
  }
}

/* Q^H applied to the matrix, by the reflectors, gives R: a and tau as LAPACK has them. */
static void cf_check_reflectors(cf_matrix given, cf_matrix a, const dt_value *tau, int64_t b, long double limit,
                                cf_verdict *v) {
  int64_t count = a.rows < a.columns ? a.rows : a.columns;
  const long double whole = limit * cf_norm(given);
  cf_complex *x = calloc((size_t)(a.rows * a.columns) + 1, sizeof *x);
  if (!x) cf_verdict_fail(v, "no memory to check the reflectors");
  for (int64_t i = 0; x && i < a.rows * a.columns; i++) x[i] = given.v[i].re + given.v[i].im * I;
  for (int64_t k = 0; x && k < count; k++)
    for (int64_t j = 0; j < a.columns; j++) {
      cf_complex sum = x[k * a.columns + j];
      for (int64_t i = k + 1; i < a.rows; i++) sum += conjl(cf_part(a, i, k)) * x[i * a.columns + j];
      sum *= conjl(tau[k].re + tau[k].im * I);
      x[k * a.columns + j] -= sum;
      for (int64_t i = k + 1; i < a.rows; i++) x[i * a.columns + j] -= cf_part(a, i, k) * sum;
    }
  for (int64_t i = 0; x && i < a.rows; i++)
    for (int64_t j = 0; j < a.columns && v->ok; j++) {
      cf_complex right = i <= j ? cf_part(a, i, j) : 0;
      cf_hold(v, "Q^H A - R", b, i, j, cabsl(x[i * a.columns + j] - right), whole);
    }
  for (int64_t k = 0; k < count && v->ok; k++) {
    long double squares = 1, size = hypotl(tau[k].re, tau[k].im);
    for (int64_t i = k + 1; i < a.rows; i++) squares += cabsl(cf_part(a, i, k)) * cabsl(cf_part(a, i, k));
    cf_hold(v, "a reflector that is not unitary", b, k, k, fabsl(size * size * squares - 2 * tau[k].re), 2 * limit);
  }
  free(x);
}

void cf_geqrf_property(const cf_check *check, const cf_array *results, cf_verdict *v) {
  const cf_array *given = &check->in[0], *a = cf_result_named(check, results, "a");
  const cf_array *tau = cf_result_named(check, results, "tau");
  for (int64_t b = 0; v->ok && b < cf_matrices_in(given); b++) {
    cf_matrix m = cf_matrix_of(given, b);
    int64_t count = m.rows < m.columns ? m.rows : m.columns;
    cf_check_reflectors(m, cf_matrix_of(a, b), tau->v + b * count, b, cf_orthogonal_limit(check, m), v);
  }
}

/* ---- values ---- */

/* In order, and each as far from the oracle's as the matrix is off (Weyl's theorem: Golub and Van Loan, 8.1.6, 8.6.2).
 */
static void cf_check_spectrum(const dt_value *values, const dt_value *oracle, int64_t count, bool descending, int64_t b,
                              long double limit, cf_verdict *v) {
  for (int64_t i = 0; i < count && v->ok; i++) {
    bool falls = i > 0 && values[i].re<values[i - 1].re, rises = i> 0 && values[i].re > values[i - 1].re;
    if (descending ? rises : falls) cf_verdict_fail(v, "the values are not in order");
    cf_hold(v, "a value", b, i, i, fabsl(values[i].re - oracle[i].re), limit);
  }
}

/* The whole matrix, Hermitian or symmetric, of the triangle that is read. */
static bool cf_whole_of(const cf_array *a, bool upper, bool hermitian, cf_array *to) {
  if (!cf_array_new(to, a->dtype, a->ndim, a->sizes)) return false;
  int64_t n = a->sizes[a->ndim - 1];
  for (int64_t at = 0; at < a->numel; at++) {
    int64_t i = at / n % n, j = at % n, mirrored = at - i * n - j + j * n + i;
    bool read = upper ? i <= j : i >= j;
    dt_value x = a->v[read ? at : mirrored];
    to->v[at] = (dt_value){x.re, !hermitian || (read && i != j) ? x.im : i == j ? 0 : -x.im};
  }
  return true;
}

void cf_eigh_property(const cf_check *check, const cf_array *results, cf_verdict *v) {
  const graft_value *triangle = &check->call->text.args[ARG_linalg_eigh_UPLO];
  bool upper = triangle->kind == GRAFT_VALUE_STR && *triangle->as.str == 'U';
  const cf_array *values = &results[OUT_linalg_eigh_eigenvalues], *vectors = &results[OUT_linalg_eigh_eigenvectors];
  cf_array whole = {0};
  if (!cf_whole_of(&check->in[0], upper, true, &whole)) cf_verdict_fail(v, "no memory to check the eigenvalues");
  for (int64_t b = 0; v->ok && b < cf_matrices_in(&whole); b++) {
    cf_matrix a = cf_matrix_of(&whole, b);
    long double limit = cf_orthogonal_limit(check, a), whole = limit * cf_norm(a);
    const dt_value *found = values->v + b * a.rows;
    cf_check_spectrum(found, check->outs[OUT_linalg_eigh_eigenvalues].v + b * a.rows, a.rows, false, b, whole, v);
    if (vectors->ndim < 2) continue;
    cf_matrix x = cf_matrix_of(vectors, b);
    cf_check_orthogonal("V^H V - I", x, false, b, limit, v);
    for (int64_t i = 0; i < a.rows; i++)
      for (int64_t j = 0; j < a.rows && v->ok; j++) {
        cf_complex sum = -found[j].re * cf_part(x, i, j);
        for (int64_t k = 0; k < a.rows; k++) sum += cf_part(a, i, k) * cf_part(x, k, j);
        cf_hold(v, "A V - V diag(w)", b, i, j, cabsl(sum), whole);
      }
  }
  cf_array_free(&whole);
}

void cf_svd_property(const cf_check *check, const cf_array *results, cf_verdict *v) {
  const cf_array *u = &results[OUT_linalg_svd_U], *s = &results[OUT_linalg_svd_S], *vh = &results[OUT_linalg_svd_Vh];
  for (int64_t b = 0; v->ok && b < cf_matrices_in(&check->in[0]); b++) {
    cf_matrix a = cf_matrix_of(&check->in[0], b);
    int64_t k = a.rows < a.columns ? a.rows : a.columns;
    long double limit = cf_orthogonal_limit(check, a);
    const dt_value *values = s->v + b * k;
    cf_check_spectrum(values, check->outs[OUT_linalg_svd_S].v + b * k, k, true, b, limit * cf_norm(a), v);
    if (u->ndim < 2) continue;
    cf_check_orthogonal("U^H U - I", cf_matrix_of(u, b), false, b, limit, v);
    cf_check_orthogonal("V^H V - I", cf_matrix_of(vh, b), true, b, limit, v);
    cf_check_product("A - U diag(S) V^H", a, cf_matrix_of(u, b), values, cf_matrix_of(vh, b), b, limit, v);
  }
}

void cf_eig_property(const cf_check *check, const cf_array *results, cf_verdict *v) {
  const cf_array *values = &results[OUT_linalg_eig_eigenvalues], *vectors = &results[OUT_linalg_eig_eigenvectors];
  for (int64_t b = 0; v->ok && b < cf_matrices_in(&check->in[0]); b++) {
    cf_matrix a = cf_matrix_of(&check->in[0], b), x = cf_matrix_of(vectors, b);
    long double limit = cf_orthogonal_limit(check, a), norm = cf_norm(a);
    cf_complex trace = 0;
    for (int64_t j = 0; j < a.rows && v->ok; j++) {
      dt_value found = values->v[b * a.rows + j];
      cf_complex value = found.re + found.im * I;
      long double length = 0;
      trace += value - cf_part(a, j, j);
      for (int64_t i = 0; i < a.rows && v->ok; i++) {
        cf_complex sum = -value * cf_part(x, i, j);
        for (int64_t k = 0; k < a.rows; k++) sum += cf_part(a, i, k) * cf_part(x, k, j);
        length = hypotl(length, cabsl(cf_part(x, i, j)));
        cf_hold(v, "A V - V diag(w)", b, i, j, cabsl(sum), limit * norm);
      }
      cf_hold(v, "the length of a vector", b, j, j, fabsl(length - 1), limit);
    }
    if (a.rows)
      cf_hold(v, "the sum of the values and the trace", b, 0, 0, cabsl(trace),
              limit * norm * sqrtl((long double)a.rows));
  }
}

/* ---- LDL^H ---- */

/* x becomes L(k) x L(k)^H, with the columns of L(k) that a step of one or two columns has. */
static void cf_expand_step(cf_complex *x, cf_matrix ld, int64_t k, int64_t steps, bool hermitian) {
  int64_t n = ld.rows;
  for (int side = 0; side < 2; side++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t c = k; c < k + steps; c++) {
        cf_complex head = side ? x[j * n + c] : x[c * n + j];
        for (int64_t i = k + steps; i < n; i++) {
          cf_complex l = cf_part(ld, i, c);
          if (side)
            x[j * n + i] += head * (hermitian ? conjl(l) : l);
          else
            x[i * n + j] += head * l;
        }
      }
}

static void cf_exchange_both(cf_complex *x, int64_t n, int64_t p, int64_t q) {
  for (int64_t j = 0; j < n; j++) {
    cf_complex kept = x[p * n + j];
    x[p * n + j] = x[q * n + j], x[q * n + j] = kept;
  }
  for (int64_t i = 0; i < n; i++) {
    cf_complex kept = x[i * n + p];
    x[i * n + p] = x[i * n + q], x[i * n + q] = kept;
  }
}

/* The product of the steps P(1) L(1) P(2) L(2) ... D ... in x, from the last on. False: pivots that no steps have. */
static bool cf_expand_ldl(cf_complex *x, cf_matrix ld, const dt_value *pivots, bool hermitian) {
  int64_t n = ld.rows;
  for (int64_t k = 0; k < n; k++) {
    x[k * n + k] = cf_part(ld, k, k);
    if (pivots[k].re >= 0) continue;
    if (k + 1 == n || pivots[k + 1].re != pivots[k].re) return false;
    cf_complex across = cf_part(ld, k + 1, k);
    x[(k + 1) * n + k] = across, x[k * n + k + 1] = hermitian ? conjl(across) : across;
    k++, x[k * n + k] = cf_part(ld, k, k);
  }
  for (int64_t last = n - 1; last >= 0;) {
    int64_t steps = pivots[last].re < 0 ? 2 : 1, first = last - steps + 1;
    int64_t row = (int64_t)fabsl(pivots[last].re) - 1;
    if (first < 0 || row < last || row >= n) return false;
    cf_expand_step(x, ld, first, steps, hermitian);
    cf_exchange_both(x, n, last, row);
    last -= steps;
  }
  return true;
}

void cf_ldl_property(const cf_check *check, const cf_array *results, cf_verdict *v) {
  const cf_array *ld = cf_result_named(check, results, "LD"), *pivots = cf_result_named(check, results, "pivots");
  bool hermitian = cf_arg_bool(check->call, "hermitian", false);
  cf_array whole = {0};
  if (!cf_whole_of(&check->in[0], false, hermitian, &whole)) cf_verdict_fail(v, "no memory to check the factors");
  for (int64_t b = 0; v->ok && b < cf_matrices_in(&whole); b++) {
    cf_matrix a = cf_matrix_of(&whole, b), factors = cf_matrix_of(ld, b);
    cf_complex *x = calloc((size_t)(a.rows * a.rows) + 1, sizeof *x);
    if (!x || !cf_expand_ldl(x, factors, pivots->v + b * a.rows, hermitian)) cf_verdict_fail(v, "the pivots are none");
    for (int64_t i = 0; i < a.rows; i++)
      for (int64_t j = 0; j < a.rows && v->ok; j++) {
        cf_hold(v, "A - P L D L^H P^T", b, i, j, cabsl(x[i * a.rows + j] - cf_part(a, i, j)),
                cf_orthogonal_limit(check, a) * cf_norm(a));
        if (j > i) cf_hold(v, "LD above its diagonal", b, i, j, cabsl(cf_part(factors, i, j)), 0);
      }
    free(x);
  }
  cf_array_free(&whole);
}

/* ---- least squares of a given rank ---- */

/* How far each element of x may be: Wedin's bound on pseudoinverses (Perturbation theory for pseudo-inverses, BIT 13,
 * 1973), with the gap behind the last singular value that counts in place of that value. */
static void cf_check_minimal(const cf_check *check, int64_t b, const dt_value *values, int64_t rank, cf_matrix x,
                             cf_verdict *v) {
  cf_matrix a = cf_matrix_of(&check->in[0], b), right = cf_matrix_of(&check->in[1], b);
  cf_matrix oracle = cf_matrix_of(&check->outs[OUT_linalg_lstsq_solution], b);
  int64_t count = a.rows < a.columns ? a.rows : a.columns;
  long double most = values[0].re, room = 0;
  if (rank) {
    long double gap = values[rank - 1].re - (rank < count ? values[rank].re : 0), condition = most / gap;
    room = condition * (condition * cf_norm(right) / most + cf_norm(oracle));
  }
  for (int64_t i = 0; i < x.rows; i++)
    for (int64_t j = 0; j < x.columns && v->ok; j++) {
      long double error = cabsl(cf_part(x, i, j) - cf_part(oracle, i, j));
      cf_hold(v, "x", b, i, j, error, cf_orthogonal_limit(check, a) * room);
    }
}

void cf_lstsq_property(const cf_check *check, const cf_array *results, cf_verdict *v) {
  const cf_array *found = &results[OUT_linalg_lstsq_singular_values];
  const cf_array *oracle = &check->outs[OUT_linalg_lstsq_singular_values], *rank = &check->outs[OUT_linalg_lstsq_rank];
  for (int64_t b = 0; v->ok && b < cf_matrices_in(&check->in[0]); b++) {
    cf_matrix a = cf_matrix_of(&check->in[0], b), x = cf_matrix_of(&results[OUT_linalg_lstsq_solution], b);
    int64_t count = a.rows < a.columns ? a.rows : a.columns;
    const dt_value *values = oracle->v + b * count;
    cf_check_spectrum(found->v + b * count, values, count, true, b, cf_orthogonal_limit(check, a) * cf_norm(a), v);
    cf_check_minimal(check, b, values, (int64_t)rank->v[b].re, x, v);
  }
}
